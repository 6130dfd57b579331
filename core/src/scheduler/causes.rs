//! For whom running work is taken away, from whom, and what gets better by it.
//!
//! - *Minimum*: what cannot start otherwise takes what elastic groups have above their minima.
//! - *Higher work*: a strict band that cannot start otherwise takes from lower bands.
//! - *Imbalance*: while the gate is open, a class below its percent takes from classes above theirs.
//! - *Fair share* and *lifetime*: a queue below its fair share takes work older than its lifetime from
//!   queues of its class that are above what is protected of theirs.
//!
//! Nobody ever takes from a higher band. Every stop lowers the measure of its cause: how many tasks wait that
//! are above the band of its victims; what the classes are short of their percents; what the queues of a class
//! are short of their fair shares and, where that stays the same, how uneven they are, without the classes being
//! short of more (`fair_cause.rs`).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::id::{GroupId, Slot};
use crate::messages::{Outbox, RebalancerMessage};
use crate::outcome::StopCause;
use crate::time::Time;

use super::Scheduler;
use super::floors::Floors;
use super::leaf::LeafId;
use super::outlook::Supposition;
use super::preempt::{Cause, Help, Measure, Pass, Wish};
use super::shapes::ShapeId;
use super::shares::weight_of;
use super::victims::LaneValue;

/// A strict band that cannot start otherwise; `old_only` spares what is younger than its lifetime.
struct HigherWork {
    old_only: bool,
    floors: Floors,
}

/// A class below its percent.
struct Imbalance {
    targets: Vec<u64>,
}

impl Scheduler {
    pub(super) fn help_by_cause(&mut self, wishes: &[Wish], pass: &mut Pass, out: &mut Outbox) {
        let rebalance = self.settings.rebalance;
        self.help_minima_and_higher(wishes, pass, out);
        // The Rebalancer may not have heard yet that the gate is to stay closed.
        let is_open = pass.supposed.as_ref().map_or(self.gate_open, Supposition::is_open);
        if is_open && rebalance.threshold > 0 && self.settings.shares.classes.is_some() {
            let before = pass.stopped;
            if self.help_classes(wishes, pass, out) != Help::Enough && pass.stopped > before {
                out.rebalancer.push(RebalancerMessage::Rebalanced);
            }
        }
        if (rebalance.lifetime || rebalance.protected_fraction.is_some()) && !self.shares.is_plain() {
            self.help_queues(wishes, pass, out);
        }
    }

    /// Minima take what elastic groups have above theirs, and strict bands take from lower ones.
    pub(super) fn help_minima_and_higher(&mut self, wishes: &[Wish], pass: &mut Pass, out: &mut Outbox) {
        let rebalance = self.settings.rebalance;
        if rebalance.elastic {
            let mut cause = self.minimum_cause(pass);
            for wish in wishes {
                cause.level = wish.level;
                while self.help(wish, &cause, pass, out) == Help::Given {}
            }
        }
        if rebalance.higher || rebalance.lifetime {
            let cause = HigherWork { old_only: !rebalance.higher, floors: self.floors() };
            let lowest = self.settings.shares.levels() as u16 - 1;
            for wish in wishes.iter().filter(|wish| wish.level < lowest) {
                while self.help(wish, &cause, pass, out) == Help::Given {}
            }
        }
    }

    /// The class that is furthest below its percent is served first, task by task.
    fn help_classes(&mut self, wishes: &[Wish], pass: &mut Pass, out: &mut Outbox) -> Help {
        let cause = Imbalance { targets: self.class_targets() };
        let mut stuck: BTreeSet<(ShapeId, u16)> = BTreeSet::new();
        loop {
            let entitled =
                |wish: &&Wish| !stuck.contains(&(wish.shape, wish.level)) && cause.is_entitled(self, wish);
            let below = |wish: &&Wish| {
                let class = usize::from(wish.class);
                let lacking = cause.targets[class] - self.running_units(class);
                (lacking, Reverse((wish.level, wish.class)))
            };
            // Of one class the first wish in order: `max_by_key` takes the last of equals.
            let next = wishes.iter().rev().filter(entitled).max_by_key(below).copied();
            let Some(wish) = next else { return Help::None };
            match self.help(&wish, &cause, pass, out) {
                Help::Given => {}
                Help::None => drop(stuck.insert((wish.shape, wish.level))),
                Help::Enough => return Help::Enough,
            }
        }
    }

    /// The queue that is furthest below its fair share, for its weight, is served first.
    fn help_queues(&mut self, wishes: &[Wish], pass: &mut Pass, out: &mut Outbox) {
        let cause = self.fair_cause();
        let mut stuck: BTreeSet<(ShapeId, u16)> = BTreeSet::new();
        loop {
            let entitled = |wish: &&Wish| {
                let share = cause.shares.get(&wish.queue).map_or(0, |(share, _)| *share);
                !stuck.contains(&(wish.shape, wish.level)) && self.measure_with(wish) <= share
            };
            let below = |wish: &&Wish| {
                let weight = weight_of(&self.shares.queues[wish.queue as usize], &self.settings.shares);
                let held = self.queue_measure(&self.shares.queues[wish.queue as usize].account);
                let held = held * 1_000_000 / u128::from(weight.millionths());
                (Reverse((wish.level, held)), Reverse(wish.queue))
            };
            let next = wishes.iter().rev().filter(entitled).max_by_key(below).copied();
            let Some(wish) = next else { return };
            match self.help(&wish, &cause, pass, out) {
                Help::Given => {}
                Help::None => drop(stuck.insert((wish.shape, wish.level))),
                Help::Enough => return,
            }
        }
    }

    /// What each class is entitled to; nothing where there are no classes.
    pub(super) fn class_targets(&self) -> Vec<u64> {
        let Some(classes) = &self.settings.shares.classes else { return Vec::new() };
        let mut targets = vec![0; classes.percents.classes().len()];
        classes.percents.targets(self.total_units(), &mut targets);
        targets
    }

    /// What the classes together are short of what they are entitled to.
    pub(super) fn class_shortfall(&self, targets: &[u64]) -> u128 {
        let short = |(class, target): (usize, &u64)| target.saturating_sub(self.running_units(class));
        targets.iter().enumerate().map(|one| u128::from(short(one))).sum()
    }

    /// How many tasks wait in this band and above it, beside those who are seen to.
    pub(super) fn waiting_above(&self, level: u16, pass: &Pass) -> u128 {
        let leaves = self.shares.leaves.iter().filter(|leaf| leaf.level <= level);
        let waiting: u64 = leaves.map(|leaf| leaf.waiting).sum();
        let of_level = |group: GroupId| self.shares.leaf(self.leaf_of(group.job())).level <= level;
        let promised = pass.promised.iter().filter(|((group, _), _)| of_level(*group));
        let promised: u64 = promised.map(|(_, tasks)| u64::from(*tasks)).sum();
        u128::from(waiting.saturating_sub(promised))
    }
}

impl Cause for HigherWork {
    fn value(&self, scheduler: &Scheduler, wish: &Wish, leaf: LeafId) -> Option<LaneValue> {
        let is_lower = scheduler.shares.leaf(leaf).level > wish.level;
        is_lower.then(|| self.floors.value(scheduler, leaf))
    }

    fn step(&self, scheduler: &Scheduler, _: LeafId, slot: Slot) -> i128 {
        self.floors.step(scheduler, slot)
    }

    fn spares_until(&self, scheduler: &Scheduler, slot: Slot) -> Option<Time> {
        self.old_only
            .then(|| scheduler.live.get(slot).map_or(Time::NEVER, |live| scheduler.outlives_at(live)))
    }

    fn measure(&self, scheduler: &Scheduler, wish: &Wish, pass: &Pass) -> Measure {
        (0, scheduler.waiting_above(wish.level, pass), 0)
    }

    /// A strict band need not wait until others have rested.
    fn wakes(&self, _: &Scheduler, _: Slot) -> bool {
        true
    }

    fn name(&self, group: GroupId) -> StopCause {
        if self.old_only { StopCause::Lifetime(group) } else { StopCause::HigherWork(group) }
    }
}

impl Imbalance {
    /// Whether the class of a wish is entitled to what it asks for.
    fn is_entitled(&self, scheduler: &Scheduler, wish: &Wish) -> bool {
        let held = scheduler.running_units(usize::from(wish.class));
        let wanted = scheduler.units_of(wish.shape, scheduler.price_of(wish.shape)).max(1);
        held + wanted <= self.targets[usize::from(wish.class)]
    }
}

impl Cause for Imbalance {
    fn value(&self, scheduler: &Scheduler, wish: &Wish, leaf: LeafId) -> Option<LaneValue> {
        let share = scheduler.shares.leaf(leaf);
        let class = usize::from(share.class);
        let touched = share.class != wish.class && share.level >= wish.level;
        touched.then(|| LaneValue {
            account: u32::from(share.class),
            held: i128::from(scheduler.running_units(class)) - i128::from(self.targets[class]),
            own: 0,
            is_last: scheduler.shares.is_last(class),
            by_share: true,
            level: share.level,
        })
    }

    fn step(&self, scheduler: &Scheduler, _: LeafId, slot: Slot) -> i128 {
        scheduler.units_held(slot).into()
    }

    fn spares_until(&self, _: &Scheduler, _: Slot) -> Option<Time> {
        None
    }

    fn measure(&self, scheduler: &Scheduler, _: &Wish, _: &Pass) -> Measure {
        (0, scheduler.class_shortfall(&self.targets), 0)
    }

    fn name(&self, group: GroupId) -> StopCause {
        StopCause::Imbalance(group)
    }
}
