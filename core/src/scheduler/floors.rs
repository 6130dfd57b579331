//! What of each share is its own: beyond that it has borrowed.

use std::collections::BTreeMap;

use crate::id::Slot;

use super::Scheduler;
use super::account::Account;
use super::leaf::LeafId;
use super::shares;
use super::sums::Sums;
use super::victims::LaneValue;

/// What the classes are entitled to, or, where there are none, the fair shares of the queues.
#[derive(Debug)]
pub(super) enum Floors {
    /// Everything is one share: nobody borrows.
    None,
    Classes(Vec<u64>),
    Queues(BTreeMap<u32, u128>),
}

impl Floors {
    /// How a leaf stands against what is its own.
    pub(super) fn value(&self, scheduler: &Scheduler, leaf: LeafId) -> LaneValue {
        let share = scheduler.shares.leaf(leaf);
        let (account, held, own) = match self {
            Floors::None => (0, 0, 0),
            Floors::Classes(targets) => {
                let class = usize::from(share.class);
                (class as u32, scheduler.running_units(class).into(), targets[class].into())
            }
            Floors::Queues(fair) => {
                let queue = &scheduler.shares.queues[share.queue as usize];
                let own = fair.get(&share.queue).copied().unwrap_or(0);
                let held = signed(scheduler.queue_measure(&queue.account));
                (share.queue, held, signed(own))
            }
        };
        let is_last = scheduler.shares.is_last(usize::from(share.class));
        LaneValue { account, held, own, is_last, by_share: false, level: share.level }
    }

    /// What one attempt is of that.
    pub(super) fn step(&self, scheduler: &Scheduler, slot: Slot) -> i128 {
        match self {
            Floors::None => 0,
            Floors::Classes(_) => scheduler.units_held(slot).into(),
            Floors::Queues(_) => signed(scheduler.measure_held(slot)),
        }
    }
}

fn signed(amount: u128) -> i128 {
    i128::try_from(amount).unwrap_or(i128::MAX)
}

impl Scheduler {
    pub(super) fn floors(&self) -> Floors {
        if self.settings.shares.classes.is_some() {
            return Floors::Classes(self.class_targets());
        }
        if self.shares.is_plain() {
            return Floors::None;
        }
        let fair = self.fair_shares().into_iter();
        Floors::Queues(fair.map(|(queue, (capped, fair))| (queue, capped.max(fair))).collect())
    }

    /// What an attempt takes of what classes are entitled to.
    pub(super) fn units_held(&self, slot: Slot) -> u64 {
        let request = self.request_of(self.task_in(slot));
        let (price, mut amounts) = (self.price(request), Sums::default());
        amounts.add(request, 1);
        let capacity = |kind| self.nodes.capacity(kind);
        shares::units(self.settings.shares.unit, price.slots, price.cost, &amounts, capacity)
    }

    /// How much an attempt is of what its queue holds, as queues are compared.
    pub(super) fn measure_held(&self, slot: Slot) -> u128 {
        let request = self.request_of(self.task_in(slot));
        let mut account = Account { cost: self.price(request).cost, ..Account::default() };
        account.usage.add(request, 1);
        self.queue_measure(&account)
    }
}
