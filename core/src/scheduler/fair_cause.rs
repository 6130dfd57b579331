//! Queues that take from each other: a queue below its fair share takes work older than its lifetime from queues
//! of its class that are above what is protected of theirs.

use std::collections::BTreeMap;

use crate::id::{GroupId, Slot};
use crate::outcome::StopCause;
use crate::settings::ShareKey;
use crate::shares::fair_shares::{self, QueueShare};
use crate::time::Time;

use super::Scheduler;
use super::account::Account;
use super::leaf::LeafId;
use super::preempt::{Cause, Measure, Pass, Wish};
use super::shares::{self, weight_of};
use super::victims::LaneValue;

/// A queue below its fair share.
pub(super) struct FairShare {
    cause: fn(GroupId) -> StopCause,
    /// By queue share: what it may hold, and what is left to it when others take.
    pub(super) shares: BTreeMap<u32, (u128, u128)>,
    targets: Vec<u64>,
    /// What there is for the queues of each class.
    pots: Vec<u128>,
}

impl Scheduler {
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
    pub(super) fn measure_with(&self, wish: &Wish) -> u128 {
        let account = &self.shares.queues[wish.queue as usize].account;
        let mut with = Account { usage: account.usage.clone(), cost: account.cost, ..Account::default() };
        with.cost += self.price_of(wish.shape).cost;
        with.usage.add(&self.shapes.get(wish.shape).total_request(), 1);
        self.queue_measure(&with)
    }

    pub(super) fn fair_cause(&self) -> FairShare {
        let fraction = self.settings.rebalance.protected_fraction;
        let cause = if fraction.is_some() { StopCause::FairShare } else { StopCause::Lifetime };
        let kept = u128::from(fraction.unwrap_or(1_000_000));
        let shares = self.fair_shares();
        let shares = shares
            .into_iter()
            .map(|(queue, (capped, fair))| (queue, (capped, capped.max(fair) * kept / 1_000_000)));
        let pots = (0..self.shares.classes.len()).map(|class| self.pot_of(class).max(1)).collect();
        FairShare { cause, shares: shares.collect(), targets: self.class_targets(), pots }
    }

    /// What each queue that has or wants something may hold of its class: no more than it can use, and what
    /// its weight alone gives.
    pub(super) fn fair_shares(&self) -> BTreeMap<u32, (u128, u128)> {
        let queues = self.shares.queues.iter().enumerate();
        let demands: BTreeMap<u32, Account> = queues
            .map(|(queue, share)| {
                let Account { usage, cost, .. } = &share.account;
                let (mut usage, cost) = (usage.clone(), cost + share.waiting.cost);
                usage.join(&share.waiting.amounts);
                (queue as u32, Account { usage, cost, ..Account::default() })
            })
            .collect();
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
}

impl FairShare {
    /// The square of what a queue holds, for its weight: the sum over all falls exactly when something goes
    /// from a queue that has more for its weight to one that has less.
    fn unevenness(&self, scheduler: &Scheduler, queue: u32, held: u128) -> u128 {
        const PARTS: u128 = 1 << 40;
        let queue = &scheduler.shares.queues[queue as usize];
        let weight = u128::from(weight_of(queue, &scheduler.settings.shares).millionths()).max(1);
        let pot = self.pots[usize::from(queue.class)];
        let part = held.saturating_mul(PARTS) / pot;
        part.saturating_mul(part).saturating_mul(1_000_000) / weight
    }

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
            // Queues take from those of their own class only.
            is_last: false,
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

    /// What the queues of the class are short of, then how uneven they are, beside what the classes are
    /// short of.
    fn measure(&self, scheduler: &Scheduler, wish: &Wish, _: &Pass) -> Measure {
        let of_class = |queue: &u32| scheduler.shares.queues[*queue as usize].class == wish.class;
        let (mut short, mut uneven) = (0, 0u128);
        for (queue, (share, _)) in self.shares.iter().filter(|(queue, _)| of_class(queue)) {
            let held = scheduler.queue_measure(&scheduler.shares.queues[*queue as usize].account);
            short += share.saturating_sub(held);
            uneven = uneven.saturating_add(self.unevenness(scheduler, *queue, held));
        }
        (scheduler.class_shortfall(&self.targets), short, uneven)
    }

    fn name(&self, group: GroupId) -> StopCause {
        (self.cause)(group)
    }
}
