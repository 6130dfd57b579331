//! For whom running work is taken away, from whom, and what gets better by it.
//!
//! - *Higher work*: a strict band that cannot start otherwise takes from lower bands.
//! - *Imbalance*: while the gate is open, a class below its percent takes from classes above theirs.
//! - *Fair share* and *lifetime*: a queue below its fair share takes work older than its lifetime from
//!   queues of its class that are above what is protected of theirs.
//!
//! Nobody ever takes from a higher band. Every stop lowers the measure of its cause: how many tasks wait that
//! are above the band of its victims; what the classes are short of their percents; what the queues of a class
//! are short of their fair shares, without the classes being short of more.

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
use super::floors::Floors;
use super::leaf::LeafId;
use super::preempt::{Cause, Help, Measure, Pass, Wish, lowers};
use super::shapes::ShapeId;
use super::shares::{self, weight_of};
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
            let cause = HigherWork { old_only: !rebalance.higher, floors: self.floors() };
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
        let mut stuck: BTreeSet<(ShapeId, u16)> = BTreeSet::new();
        loop {
            let entitled = |wish: &&Wish| {
                let held = self.running_units(usize::from(wish.class));
                let wanted = self.units_of(wish.shape, self.price_of(wish.shape)).max(1);
                !stuck.contains(&(wish.shape, wish.level))
                    && held + wanted <= cause.targets[usize::from(wish.class)]
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

    /// What a queue holds, and what of that is protected when others take.
    pub(super) fn held_and_kept(&self, queue: u32) -> (u128, u128) {
        let kept = self.fair_cause().shares.get(&queue).map_or(0, |(_, kept)| *kept);
        (self.queue_measure(&self.shares.queues[queue as usize].account), kept)
    }

    /// Who would go for the first of a wish, for which cause, and whether at once.
    pub(super) fn who_would_go(
        &mut self,
        wish: &Wish,
        pass: &mut Pass,
    ) -> Option<(StopCause, bool, Vec<TaskId>)> {
        let rebalance = self.settings.rebalance;
        let mut causes: Vec<(Box<dyn Cause>, bool)> = Vec::new();
        let lowest = self.settings.shares.levels() as u16 - 1;
        if (rebalance.higher || rebalance.lifetime) && wish.level < lowest {
            let cause = HigherWork { old_only: !rebalance.higher, floors: self.floors() };
            causes.push((Box::new(cause), true));
        }
        if rebalance.threshold > 0 && self.settings.shares.classes.is_some() {
            causes.push((Box::new(Imbalance { targets: self.class_targets() }), self.gate_open));
        }
        if (rebalance.lifetime || rebalance.protected_fraction.is_some()) && !self.shares.is_plain() {
            let cause = self.fair_cause();
            let share = cause.shares.get(&wish.queue).map_or(0, |(share, _)| *share);
            if self.measure_with(wish) <= share {
                causes.push((Box::new(cause), true));
            }
        }
        let beneficiary = self.next_beneficiary(wish, pass)?;
        for (cause, at_once) in causes {
            let before = cause.measure(self, wish, pass);
            let Some((units, places)) = self.search(wish, &beneficiary, &*cause, pass) else { continue };
            let tasks: Vec<TaskId> = units.iter().flatten().map(|slot| self.task_in(*slot)).collect();
            for task in &tasks {
                self.charge(pass.now, self.leaf_of(task.job()), *task, -1);
            }
            self.note_promised(&beneficiary, &places, pass);
            let after = cause.measure(self, wish, pass);
            self.note_not_promised(&beneficiary, &places, pass);
            for task in &tasks {
                self.charge(pass.now, self.leaf_of(task.job()), *task, 1);
            }
            if lowers(before, after) {
                return Some((cause.name(beneficiary.entry.group), at_once, tasks));
            }
        }
        None
    }

    /// How many tasks wait in this band and above it, beside those who are seen to.
    fn waiting_above(&self, level: u16, pass: &Pass) -> u128 {
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
        (0, scheduler.waiting_above(wish.level, pass))
    }

    fn name(&self, group: GroupId) -> StopCause {
        if self.old_only { StopCause::Lifetime(group) } else { StopCause::HigherWork(group) }
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
        (0, scheduler.class_shortfall(&self.targets))
    }

    fn name(&self, group: GroupId) -> StopCause {
        StopCause::Imbalance(group)
    }
}

impl FairShare {
    /// An amount that a queue holds, for its weight.
    fn weighed(scheduler: &Scheduler, queue: u32, amount: u128) -> i128 {
        const PARTS: u128 = 1_000_000_000_000;
        let queue = &scheduler.shares.queues[queue as usize];
        let weight = u128::from(weight_of(queue, &scheduler.settings.shares).millionths()).max(1);
        i128::try_from(amount.saturating_mul(PARTS) / weight).unwrap_or(i128::MAX)
    }
}

impl Cause for FairShare {
    fn value(&self, scheduler: &Scheduler, wish: &Wish, leaf: LeafId) -> Option<LaneValue> {
        let share = scheduler.shares.leaf(leaf);
        let held = scheduler.queue_measure(&scheduler.shares.queues[share.queue as usize].account);
        let kept = self.shares.get(&share.queue).map_or(0, |(_, kept)| *kept);
        let touched = share.class == wish.class && share.queue != wish.queue && share.level >= wish.level;
        let weighed = |amount| FairShare::weighed(scheduler, share.queue, amount);
        touched.then(|| LaneValue {
            account: share.queue,
            held: weighed(held),
            own: weighed(kept),
            by_share: true,
            level: share.level,
        })
    }

    fn step(&self, scheduler: &Scheduler, leaf: LeafId, slot: Slot) -> i128 {
        FairShare::weighed(scheduler, scheduler.shares.leaf(leaf).queue, scheduler.measure_held(slot))
    }

    fn spares_until(&self, scheduler: &Scheduler, slot: Slot) -> Option<Time> {
        Some(scheduler.live.get(slot).map_or(Time::NEVER, |live| scheduler.outlives_at(live)))
    }

    /// What the queues of the class are short of, beside what the classes are short of.
    fn measure(&self, scheduler: &Scheduler, wish: &Wish, _: &Pass) -> Measure {
        let queues = self
            .shares
            .iter()
            .filter(|(queue, _)| scheduler.shares.queues[**queue as usize].class == wish.class);
        let short = queues.map(|(queue, (share, _))| {
            share.saturating_sub(scheduler.queue_measure(&scheduler.shares.queues[*queue as usize].account))
        });
        (scheduler.class_shortfall(&self.targets), short.sum())
    }

    fn name(&self, group: GroupId) -> StopCause {
        (self.cause)(group)
    }
}
