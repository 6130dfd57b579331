//! For whom running work is taken away, from whom, and what gets better by it.
//!
//! - *Higher work*: a strict band that cannot start otherwise takes from lower bands.
//! - *Imbalance*: while the gate is open, a class below its percent takes from classes above theirs.
//! - *Fair share* and *lifetime*: a queue below its fair share takes work older than its lifetime from
//!   queues of its class that are above what is protected of theirs.
//!
//! Nobody ever takes from a higher band. Every stop lowers the measure of its cause: what waits above the
//! band of its victims; what the classes are short of their percents; what the queues of a class are short
//! of their fair shares, without the classes being short of more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::id::{GroupId, Slot, TaskId};
use crate::messages::{Outbox, RebalancerMessage};
use crate::outcome::StopCause;
use crate::settings::ShareKey;
use crate::shares::fair_shares::{self, QueueShare};
use crate::time::Time;

use super::Scheduler;
use super::account::Account;
use super::leaf::LeafId;
use super::preempt::{Cause, Help, Pass, Wish};
use super::shapes::ShapeId;
use super::shares::{self, weight_of};
use super::sums::Sums;
use super::victims::LaneValue;

/// A strict band that cannot start otherwise; `old_only` spares what is younger than its lifetime.
struct HigherWork {
    old_only: bool,
}

/// A class below its percent.
struct Imbalance {
    targets: Vec<u64>,
}

/// A queue below its fair share.
struct FairShare {
    cause: fn(GroupId) -> StopCause,
    /// By queue share: what it may hold, and what is left to it when others take.
    shares: BTreeMap<u32, (u128, u128)>,
    targets: Vec<u64>,
}

impl Scheduler {
    pub(super) fn help_by_cause(&mut self, wishes: &[Wish], pass: &mut Pass, out: &mut Outbox) {
        let rebalance = self.settings.rebalance;
        if rebalance.higher || rebalance.lifetime {
            let cause = HigherWork { old_only: !rebalance.higher };
            let lowest = self.settings.shares.levels() as u16 - 1;
            for wish in wishes.iter().filter(|wish| wish.level < lowest) {
                while self.help(wish, &cause, pass, out) == Help::Given {}
            }
        }
        if self.gate_open && self.settings.shares.classes.is_some() {
            let before = pass.stopped;
            if self.help_classes(wishes, pass, out) != Help::Enough && pass.stopped > before {
                out.rebalancer.push(RebalancerMessage::Rebalanced);
            }
        }
        if (rebalance.lifetime || rebalance.protected_fraction.is_some()) && !self.shares.is_plain() {
            self.help_queues(wishes, pass, out);
        }
    }

    /// The class that is furthest below its percent is served first, task by task.
    fn help_classes(&mut self, wishes: &[Wish], pass: &mut Pass, out: &mut Outbox) -> Help {
        let cause = Imbalance { targets: self.class_targets() };
        let mut stuck: BTreeSet<ShapeId> = BTreeSet::new();
        loop {
            let entitled = |wish: &&Wish| {
                let held = self.running_units(usize::from(wish.class));
                let wanted = self.units_of(wish.shape, self.price_of(wish.shape)).max(1);
                !stuck.contains(&wish.shape) && held + wanted <= cause.targets[usize::from(wish.class)]
            };
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
                Help::None => drop(stuck.insert(wish.shape)),
                Help::Enough => return Help::Enough,
            }
        }
    }

    /// The queue that is furthest below its fair share, for its weight, is served first.
    fn help_queues(&mut self, wishes: &[Wish], pass: &mut Pass, out: &mut Outbox) {
        let cause = self.fair_cause();
        let mut stuck: BTreeSet<ShapeId> = BTreeSet::new();
        loop {
            let entitled = |wish: &&Wish| {
                let share = cause.shares.get(&wish.queue).map_or(0, |(share, _)| *share);
                !stuck.contains(&wish.shape) && self.measure_with(wish) <= share
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
                Help::None => drop(stuck.insert(wish.shape)),
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
    fn class_shortfall(&self, targets: &[u64]) -> u128 {
        let short = |(class, target): (usize, &u64)| target.saturating_sub(self.running_units(class));
        targets.iter().enumerate().map(|one| u128::from(short(one))).sum()
    }

    /// How much of what its class has a queue holds, as queues are compared.
    pub(super) fn queue_measure(&self, account: &Account) -> u128 {
        match self.settings.shares.queue_key {
            ShareKey::Dominant => {
                u128::from(shares::dominant_parts(&account.usage, |kind| self.nodes.capacity(kind)))
            }
            _ => account.cost,
        }
    }

    /// The same, with the head of a wish on top.
    fn measure_with(&self, wish: &Wish) -> u128 {
        let account = &self.shares.queues[wish.queue as usize].account;
        let mut with = Account { usage: account.usage.clone(), cost: account.cost, ..Account::default() };
        with.cost += self.price_of(wish.shape).cost;
        with.usage.add(&self.shapes.get(wish.shape).total_request(), 1);
        self.queue_measure(&with)
    }

    fn fair_cause(&self) -> FairShare {
        let fraction = self.settings.rebalance.protected_fraction;
        let cause = if fraction.is_some() { StopCause::FairShare } else { StopCause::Lifetime };
        let kept = u128::from(fraction.unwrap_or(1_000_000));
        let shares = self.fair_shares();
        let shares = shares
            .into_iter()
            .map(|(queue, (capped, fair))| (queue, (capped, capped.max(fair) * kept / 1_000_000)));
        FairShare { cause, shares: shares.collect(), targets: self.class_targets() }
    }

    /// What each queue that has or wants something may hold of its class: no more than it can use, and what
    /// its weight alone gives.
    pub(super) fn fair_shares(&self) -> BTreeMap<u32, (u128, u128)> {
        let queues = self.shares.queues.iter().enumerate();
        let mut demands: BTreeMap<u32, Account> = queues
            .map(|(queue, share)| {
                let Account { usage, cost, .. } = &share.account;
                (queue as u32, Account { usage: usage.clone(), cost: *cost, ..Account::default() })
            })
            .collect();
        for (id, shape) in self.shapes.iter() {
            let heads = self.shapes.waiting(id) / super::gangs::gang_size(&shape.key);
            let queue = demands.get_mut(&self.shares.leaf(shape.leaf).queue).expect("a leaf has a queue");
            queue.cost += self.price_of(id).cost * u128::from(heads);
            queue.usage.add(&shape.total_request(), heads as i64);
        }
        let mut found = BTreeMap::new();
        for class in 0..self.shares.classes.len() {
            let pot = self.pot_of(class).max(1);
            let of_class = demands
                .iter()
                .filter(|(queue, _)| usize::from(self.shares.queues[**queue as usize].class) == class);
            let wanted = of_class.map(|(queue, demand)| (*queue, self.queue_measure(demand)));
            let wanted: Vec<(u32, u128)> = wanted.filter(|(_, demand)| *demand > 0).collect();
            let whole = u128::from(fair_shares::WHOLE);
            let share = |(queue, demand): &(u32, u128)| {
                let weight = weight_of(&self.shares.queues[*queue as usize], &self.settings.shares);
                let demand = demand.saturating_mul(whole).div_ceil(pot).min(whole);
                QueueShare::new(weight, demand as u64)
            };
            let mut queue_shares: Vec<QueueShare> = wanted.iter().map(share).collect();
            fair_shares::adjust(&mut queue_shares);
            let amount = |part: u64| (u128::from(part) * pot).div_ceil(whole);
            for ((queue, _), share) in wanted.iter().zip(queue_shares) {
                found.insert(*queue, (amount(share.demand_capped), amount(share.fair)));
            }
        }
        found
    }

    fn pot_of(&self, class: usize) -> u128 {
        if self.settings.shares.queue_key != ShareKey::Dominant {
            return u128::from(self.fair_pot(class).0);
        }
        let classes = self.settings.shares.classes.as_ref();
        let percent = classes.map_or(100, |classes| classes.percents.classes()[class].percent);
        let percent = if percent == 0 { 100 } else { percent };
        u128::from(shares::WHOLE) * u128::from(percent) / 100
    }

    fn level_of(&self, task: TaskId) -> u16 {
        self.shares.leaf(self.leaf_of(task.job())).level
    }
}

impl Cause for HigherWork {
    fn value(&self, scheduler: &Scheduler, wish: &Wish, leaf: LeafId) -> Option<LaneValue> {
        let share = scheduler.shares.leaf(leaf);
        if share.level <= wish.level {
            return None;
        }
        let targets = scheduler.class_targets();
        let class = usize::from(share.class);
        let borrows = targets.get(class).is_some_and(|target| scheduler.running_units(class) > *target);
        let value = i128::from(borrows) << u16::BITS | i128::from(share.level);
        Some(LaneValue { leaf, account: leaf.0, value })
    }

    fn step(&self, _: &Scheduler, _: LeafId, _: Slot) -> i128 {
        0
    }

    fn spares_until(&self, scheduler: &Scheduler, slot: Slot) -> Option<Time> {
        self.old_only
            .then(|| scheduler.live.get(slot).map_or(Time::NEVER, |live| scheduler.outlives_at(live)))
    }

    fn measure(&self, _: &Scheduler, _: &Wish) -> (u128, u128) {
        (0, 0)
    }

    fn lowers(&self, scheduler: &Scheduler, wish: &Wish, _: (u128, u128), victims: &[TaskId]) -> bool {
        victims.iter().all(|task| scheduler.level_of(*task) > wish.level)
    }

    fn name(&self, group: GroupId) -> StopCause {
        if self.old_only { StopCause::Lifetime(group) } else { StopCause::HigherWork(group) }
    }
}

impl Cause for Imbalance {
    fn value(&self, scheduler: &Scheduler, wish: &Wish, leaf: LeafId) -> Option<LaneValue> {
        let share = scheduler.shares.leaf(leaf);
        let class = usize::from(share.class);
        let above = scheduler.running_units(class).saturating_sub(self.targets[class]);
        let touched = share.class != wish.class && share.level >= wish.level && above > 0;
        touched.then_some(LaneValue { leaf, account: u32::from(share.class), value: above.into() })
    }

    fn step(&self, scheduler: &Scheduler, _: LeafId, slot: Slot) -> i128 {
        let request = scheduler.request_of(scheduler.task_in(slot));
        let (price, mut amounts) = (scheduler.price(request), Sums::default());
        amounts.add(request, 1);
        let capacity = |kind| scheduler.nodes.capacity(kind);
        shares::units(scheduler.settings.shares.unit, price.slots, price.cost, &amounts, capacity).into()
    }

    fn spares_until(&self, _: &Scheduler, _: Slot) -> Option<Time> {
        None
    }

    fn measure(&self, scheduler: &Scheduler, _: &Wish) -> (u128, u128) {
        (scheduler.class_shortfall(&self.targets), 0)
    }

    fn lowers(&self, scheduler: &Scheduler, wish: &Wish, before: (u128, u128), victims: &[TaskId]) -> bool {
        let not_higher = victims.iter().all(|task| scheduler.level_of(*task) >= wish.level);
        not_higher && self.measure(scheduler, wish) < before
    }

    fn name(&self, group: GroupId) -> StopCause {
        StopCause::Imbalance(group)
    }
}

impl Cause for FairShare {
    fn value(&self, scheduler: &Scheduler, wish: &Wish, leaf: LeafId) -> Option<LaneValue> {
        let share = scheduler.shares.leaf(leaf);
        let queue = &scheduler.shares.queues[share.queue as usize];
        let held = scheduler.queue_measure(&queue.account);
        let kept = self.shares.get(&share.queue).map_or(0, |(_, kept)| *kept);
        let others = share.class == wish.class && share.queue != wish.queue && share.level >= wish.level;
        let weight = u128::from(weight_of(queue, &scheduler.settings.shares).millionths());
        let value = i128::try_from(held * 1_000_000 / weight).unwrap_or(i128::MAX);
        (others && held > kept).then_some(LaneValue { leaf, account: share.queue, value })
    }

    fn step(&self, scheduler: &Scheduler, leaf: LeafId, slot: Slot) -> i128 {
        let request = scheduler.request_of(scheduler.task_in(slot));
        let mut account = Account { cost: scheduler.price(request).cost, ..Account::default() };
        account.usage.add(request, 1);
        let queue = scheduler.shares.queue_of(leaf);
        let weight = u128::from(weight_of(queue, &scheduler.settings.shares).millionths());
        i128::try_from(scheduler.queue_measure(&account) * 1_000_000 / weight).unwrap_or(i128::MAX)
    }

    fn spares_until(&self, scheduler: &Scheduler, slot: Slot) -> Option<Time> {
        Some(scheduler.live.get(slot).map_or(Time::NEVER, |live| scheduler.outlives_at(live)))
    }

    /// What the queues of the class are short of, behind what the classes are short of.
    fn measure(&self, scheduler: &Scheduler, wish: &Wish) -> (u128, u128) {
        let queues = self
            .shares
            .iter()
            .filter(|(queue, _)| scheduler.shares.queues[**queue as usize].class == wish.class);
        let short = queues.map(|(queue, (share, _))| {
            share.saturating_sub(scheduler.queue_measure(&scheduler.shares.queues[*queue as usize].account))
        });
        (scheduler.class_shortfall(&self.targets), short.sum())
    }

    fn lowers(&self, scheduler: &Scheduler, wish: &Wish, before: (u128, u128), victims: &[TaskId]) -> bool {
        let not_higher = victims.iter().all(|task| scheduler.level_of(*task) >= wish.level);
        let after = self.measure(scheduler, wish);
        not_higher && after.0 <= before.0 && after.1 < before.1
    }

    fn name(&self, group: GroupId) -> StopCause {
        (self.cause)(group)
    }
}
