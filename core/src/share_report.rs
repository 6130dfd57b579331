//! How the shares stand, for people and gauges: what the Scheduler says of the shares that changed, put
//! together again on the other side.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What changed about the shares in one turn.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ShareNews {
    /// What was said before counts no more: the shares are others.
    pub anew: bool,
    /// All there is to share, in the unit of the shares.
    pub total: u64,
    pub loads: Vec<ShareLoad>,
}

/// What one share has and wants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShareLoad {
    pub name: ShareName,
    /// The percent of a class, or the weight of a queue in millionths.
    pub weight: u64,
    /// What it holds, in the unit of the shares.
    pub held: u64,
    /// Tasks that run, and tasks that wait.
    pub running: u64,
    pub waiting: u64,
}

/// A class, or a queue in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ShareName {
    /// Empty where there are no classes.
    pub class: Arc<str>,
    /// Empty for work that names no queue; `None` for the class as a whole.
    pub queue: Option<Arc<str>>,
}

/// How one share stands against what it should have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShareStatus {
    #[serde(flatten)]
    pub name: ShareName,
    /// Of a class: its percent of all there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u64>,
    /// What it should hold, in the unit of the shares: its part of all there is, or, for a queue, of what
    /// its class should hold. A queue that has and wants nothing should hold nothing.
    pub target: u64,
    /// What it holds.
    pub held: u64,
    /// Tasks that run, and tasks that wait.
    pub running: u64,
    pub waiting: u64,
}

/// Everything that was said, put together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShareBook {
    total: u64,
    loads: BTreeMap<ShareName, ShareLoad>,
}

impl ShareBook {
    pub fn apply(&mut self, news: &ShareNews) {
        if news.anew {
            self.loads.clear();
        }
        self.total = news.total;
        for load in &news.loads {
            self.loads.insert(load.name.clone(), load.clone());
        }
    }

    /// All shares by name, each class before its queues.
    pub fn report(&self) -> Vec<ShareStatus> {
        let targets = self.class_targets();
        let mut active: BTreeMap<&str, u128> = BTreeMap::new();
        for load in self.loads.values().filter(|load| load.name.queue.is_some() && load.is_active()) {
            *active.entry(&load.name.class).or_default() += u128::from(load.weight);
        }
        let status = |load: &ShareLoad| {
            let of_class = targets.get(&*load.name.class).copied().unwrap_or(0);
            let weights = active.get(&*load.name.class).copied().unwrap_or(0);
            let target = match load.name.queue {
                None => of_class,
                Some(_) if !load.is_active() => 0,
                Some(_) => (u128::from(of_class) * u128::from(load.weight) / weights.max(1)) as u64,
            };
            let percent = load.name.queue.is_none().then_some(load.weight);
            let ShareLoad { name, held, running, waiting, .. } = load.clone();
            ShareStatus { name, percent, target, held, running, waiting }
        };
        self.loads.values().map(status).collect()
    }

    /// As classes are divided: each its percent, rounded down, and the first of the largest the rest.
    fn class_targets(&self) -> BTreeMap<&str, u64> {
        let classes = || self.loads.values().filter(|load| load.name.queue.is_none());
        let part = |load: &ShareLoad| (u128::from(self.total) * u128::from(load.weight) / 100) as u64;
        let mut targets: BTreeMap<&str, u64> =
            classes().map(|load| (&*load.name.class, part(load))).collect();
        let rest = self.total.saturating_sub(targets.values().sum());
        let first = classes().min_by_key(|load| (std::cmp::Reverse(load.weight), &load.name));
        if let Some(target) = first.and_then(|load| targets.get_mut(&*load.name.class)) {
            *target += rest;
        }
        targets
    }
}

impl ShareLoad {
    fn is_active(&self) -> bool {
        self.running + self.waiting > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(class: &str, queue: Option<&str>, weight: u64, counts: (u64, u64)) -> ShareLoad {
        let name = ShareName { class: class.into(), queue: queue.map(Arc::from) };
        ShareLoad { name, weight, held: counts.0, running: counts.0, waiting: counts.1 }
    }

    #[test]
    fn targets_are_those_of_the_division_and_queues_share_what_their_class_should_hold() {
        let mut book = ShareBook::default();
        let classes =
            [load("b", None, 40, (0, 0)), load("a", None, 60, (3, 1)), load("none", None, 0, (1, 0))];
        let queues = [load("a", Some("x"), 2_000_000, (3, 0)), load("a", Some("y"), 1_000_000, (0, 1))];
        book.apply(&ShareNews { anew: true, total: 11, loads: [&classes[..], &queues].concat() });
        let targets =
            |book: &ShareBook| -> Vec<u64> { book.report().iter().map(|status| status.target).collect() };
        assert_eq!(targets(&book), [7, 4, 2, 4, 0], "a, a/x, a/y, b, none");
        let gone = load("a", Some("y"), 1_000_000, (0, 0));
        book.apply(&ShareNews { anew: false, total: 10, loads: vec![gone] });
        assert_eq!(targets(&book), [6, 6, 0, 4, 0]);
        book.apply(&ShareNews { anew: true, total: 0, loads: Vec::new() });
        assert_eq!(book.report(), []);
    }
}
