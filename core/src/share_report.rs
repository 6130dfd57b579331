//! How the shares stand, for people and gauges: what the Scheduler says of the shares that changed, put
//! together again on the other side.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::settings::ShareUnit;
use crate::shares::fair_shares::{self, QueueShare, WHOLE};
use crate::shares::ratio::Weight;

/// What changed about the shares in one turn.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ShareNews {
    /// What was said before counts no more: the shares are others.
    pub anew: bool,
    /// What shares are counted in.
    pub unit: ShareUnit,
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
    /// What it holds, and what it holds and wants together, in the unit of the shares.
    pub held: u64,
    pub demand: u64,
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
    /// What shares are counted in.
    pub unit: ShareUnit,
    /// Of a class: its percent of all there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u64>,
    /// What it should hold, in the unit of the shares: its part of all there is, or, for a queue, of what
    /// its class should hold. A queue that has and wants nothing should hold nothing.
    pub target: u64,
    /// The same, where others of its class leave some of theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjusted: Option<Adjusted>,
    /// What it holds.
    pub held: u64,
    /// Tasks that run, and tasks that wait.
    pub running: u64,
    pub waiting: u64,
}

/// What a queue should hold when what others cannot use is shared too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Adjusted {
    /// No more than it can use itself.
    pub capped: u64,
    /// As if it could use any amount.
    pub uncapped: u64,
}

/// Everything that was said, put together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShareBook {
    unit: ShareUnit,
    total: u64,
    loads: BTreeMap<ShareName, ShareLoad>,
}

impl ShareBook {
    pub fn apply(&mut self, news: &ShareNews) {
        if news.anew {
            self.loads.clear();
        }
        (self.unit, self.total) = (news.unit, news.total);
        for load in &news.loads {
            self.loads.insert(load.name.clone(), load.clone());
        }
    }

    /// All shares by name, each class before its queues.
    pub fn report(&self) -> Vec<ShareStatus> {
        let targets = self.class_targets();
        let queues = self.queue_shares(&targets);
        let status = |load: &ShareLoad| {
            let of_class = targets.get(&*load.name.class).copied().unwrap_or(0);
            let share = queues.get(&load.name);
            // Shares are rounded down; what a part of them is of a class is rounded to the nearest.
            let part = |part: u64| {
                let doubled = 2 * u128::from(part) * u128::from(of_class) + u128::from(WHOLE);
                (doubled / (2 * u128::from(WHOLE))) as u64
            };
            let target = match load.name.queue {
                None => of_class,
                Some(_) => share.map_or(0, |(target, _)| *target),
            };
            let adjusted = share.map(|(_, share)| Adjusted {
                capped: part(share.demand_capped),
                uncapped: part(share.uncapped),
            });
            let percent = load.name.queue.is_none().then_some(load.weight);
            let ShareLoad { name, held, running, waiting, .. } = load.clone();
            ShareStatus { name, unit: self.unit, percent, target, adjusted, held, running, waiting }
        };
        self.loads.values().map(status).collect()
    }

    /// What each queue that has or wants something should hold by its weight alone, and its shares of what its
    /// class should hold.
    fn queue_shares(&self, targets: &BTreeMap<&str, u64>) -> BTreeMap<&ShareName, (u64, QueueShare)> {
        let mut by_class: BTreeMap<&str, Vec<&ShareLoad>> = BTreeMap::new();
        for load in self.loads.values().filter(|load| load.name.queue.is_some() && load.is_active()) {
            by_class.entry(&load.name.class).or_default().push(load);
        }
        let mut shares = BTreeMap::new();
        for (class, loads) in by_class {
            let of_class = targets.get(class).copied().unwrap_or(0);
            let weights: u128 = loads.iter().map(|load| u128::from(load.weight)).sum();
            let share = |load: &&ShareLoad| {
                let weight = Weight::from_millionths(load.weight).unwrap_or_default();
                let demand = u128::from(load.demand) * u128::from(WHOLE) / u128::from(of_class.max(1));
                QueueShare::new(weight, demand.min(u128::from(WHOLE)) as u64)
            };
            let mut of_queues: Vec<QueueShare> = loads.iter().map(share).collect();
            fair_shares::adjust(&mut of_queues);
            for (load, share) in loads.into_iter().zip(of_queues) {
                let target = u128::from(of_class) * u128::from(load.weight) / weights.max(1);
                shares.insert(&load.name, (target as u64, share));
            }
        }
        shares
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
        let (held, waiting) = counts;
        ShareLoad { name, weight, held, demand: held + waiting, running: held, waiting }
    }

    #[test]
    fn targets_are_those_of_the_division_and_queues_share_what_their_class_should_hold() {
        let mut book = ShareBook::default();
        let classes =
            [load("b", None, 40, (0, 0)), load("a", None, 60, (3, 1)), load("none", None, 0, (1, 0))];
        let queues = [load("a", Some("x"), 2_000_000, (3, 0)), load("a", Some("y"), 1_000_000, (0, 1))];
        let news = |anew, total, loads| ShareNews { anew, unit: ShareUnit::Slot, total, loads };
        book.apply(&news(true, 11, [&classes[..], &queues].concat()));
        let targets =
            |book: &ShareBook| -> Vec<u64> { book.report().iter().map(|status| status.target).collect() };
        assert_eq!(targets(&book), [7, 4, 2, 4, 0], "a, a/x, a/y, b, none");
        let gone = load("a", Some("y"), 1_000_000, (0, 0));
        book.apply(&news(false, 10, vec![gone]));
        assert_eq!(targets(&book), [6, 6, 0, 4, 0]);
        book.apply(&news(true, 0, Vec::new()));
        assert_eq!(book.report(), []);
    }

    #[test]
    fn what_a_queue_cannot_use_is_shared_again() {
        let mut book = ShareBook::default();
        let queues = [("small", (10, 0)), ("large", (0, 500)), ("gone", (0, 0))];
        let queues = queues.map(|(name, counts)| load("", Some(name), 1_000_000, counts));
        let loads = [&[load("", None, 100, (10, 500))][..], &queues].concat();
        book.apply(&ShareNews { anew: true, unit: ShareUnit::Slot, total: 100, loads });
        let of = |queue: &str| {
            let report = book.report();
            let status = report.iter().find(|status| status.name.queue.as_deref() == Some(queue));
            let status = status.expect("it is there");
            (status.target, status.adjusted.map(|shares| (shares.capped, shares.uncapped)))
        };
        assert_eq!(of("small"), (50, Some((10, 50))));
        assert_eq!(of("large"), (50, Some((90, 90))));
        assert_eq!(of("gone"), (0, None));
    }
}
