//! Shares that have and want nothing, and those that begin to: by run time, whoever comes has no claim on the
//! time in which it wanted nothing. Newcomers begin where the least is of those who have or want something,
//! and never before where that has been.

use std::collections::BTreeSet;

use crate::settings::ShareSettings;
use crate::shares::run_time::VirtualTime;
use crate::time::Time;

use super::leaf::LeafId;
use super::shares::{LeafShare, QueueShare, Shares, class_weight};

/// The queues of one class that have or want something.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Busy {
    queues: BTreeSet<u32>,
    /// The sum of their weights, in millionths.
    weights: u64,
}

impl QueueShare {
    /// Whether it has or wants something.
    fn is_busy(&self) -> bool {
        self.account.tasks > 0 || self.waiting.tasks > 0
    }
}

impl Shares {
    /// Lists a queue among those that have or want something, or takes it off the list.
    pub(super) fn note_busy(&mut self, queue: u32) {
        let share = &self.queues[queue as usize];
        let weight = share.account.clock.weight().millionths();
        let busy = &mut self.busy[usize::from(share.class)];
        match share.is_busy() {
            true if busy.queues.insert(queue) => busy.weights += weight,
            false if busy.queues.remove(&queue) => busy.weights -= weight,
            _ => {}
        }
    }

    pub(super) fn all_busy(&self) -> Vec<Busy> {
        let mut all = vec![Busy::default(); self.classes.len()];
        for (index, queue) in self.queues.iter().enumerate().filter(|(_, queue)| queue.is_busy()) {
            let busy = &mut all[usize::from(queue.class)];
            busy.queues.insert(index as u32);
            busy.weights += queue.account.clock.weight().millionths();
        }
        all
    }

    /// Whether the lists of those who have or want something are what they should be.
    pub(super) fn knows_who_is_busy(&self) -> bool {
        self.busy == self.all_busy()
    }

    /// The sum of the weights of the queues of a class that have or want something, in millionths.
    pub(super) fn busy_weights(&self, class: usize) -> u64 {
        self.busy[class].weights
    }

    /// Whether a class gets only what nobody else can use.
    pub(super) fn is_last(&self, class: usize) -> bool {
        self.last[class]
    }

    /// The settings weigh shares otherwise, which the clocks know by now.
    pub(super) fn weigh(&mut self, settings: &ShareSettings) {
        self.last = (0..self.classes.len()).map(|class| class_weight(class, settings).is_none()).collect();
        self.busy = self.all_busy();
    }

    /// The least run time among the classes that have or want something. Those of 0% do not count: they may
    /// wait for ever with what they have had.
    fn least_class(&self, now: Time) -> Option<VirtualTime> {
        let busy = (0..self.classes.len()).filter(|class| !self.last[*class] && self.class_is_busy(*class));
        busy.map(|class| self.classes[class].clock.value(now, self.classes[class].cost)).min()
    }

    fn class_is_busy(&self, class: usize) -> bool {
        !self.busy[class].queues.is_empty()
    }

    fn least_queue(&self, now: Time, class: usize) -> Option<VirtualTime> {
        let accounts = self.busy[class].queues.iter().map(|queue| &self.queues[*queue as usize].account);
        accounts.map(|account| account.clock.value(now, account.cost)).min()
    }

    /// Work comes to a leaf. A share that had none has no claim on the time in which it wanted nothing: it
    /// begins where the least of the others is, or was when there was one.
    pub(super) fn welcome(&mut self, now: Time, id: LeafId) {
        let LeafShare { class, queue, .. } = *self.leaf(id);
        let class = usize::from(class);
        if self.queues[queue as usize].is_busy() {
            return;
        }
        let least = self.least_queue(now, class);
        self.queue_floors[class].raise(least);
        self.queues[queue as usize].account.clock.place(now, self.queue_floors[class].value());
        if !self.class_is_busy(class) {
            let floor = self.class_floor(now);
            self.classes[class].clock.place(now, floor);
        }
    }

    /// Where a class begins that had and wanted nothing.
    pub(super) fn class_floor(&mut self, now: Time) -> VirtualTime {
        let least = self.least_class(now);
        self.class_floor.raise(least);
        self.class_floor.value()
    }

    /// Something of a leaf has gone. A share that has and wants nothing any more counts once more for where
    /// newcomers begin: who was alone leaves them nothing to make up for.
    pub(super) fn take_leave(&mut self, now: Time, id: LeafId) {
        let LeafShare { class, queue, .. } = *self.leaf(id);
        let (class, share) = (usize::from(class), &self.queues[queue as usize]);
        if share.is_busy() {
            return;
        }
        let own = share.account.clock.value(now, share.account.cost);
        let least = self.least_queue(now, class).map_or(own, |least| least.min(own));
        self.queue_floors[class].raise(Some(least));
        if !self.class_is_busy(class) && !self.last[class] {
            let own = self.classes[class].clock.value(now, self.classes[class].cost);
            let least = self.least_class(now).map_or(own, |least| least.min(own));
            self.class_floor.raise(Some(least));
        }
    }

    /// Newcomers begin where they did before the shares became others.
    pub(super) fn inherit_floors(&mut self, other: &Shares) {
        self.class_floor.raise(Some(other.class_floor.value()));
        for (name, floor) in self.class_names.iter().zip(&mut self.queue_floors) {
            let same = other.class_names.iter().position(|one| one == name);
            floor.raise(same.map(|class| other.queue_floors[class].value()));
        }
    }
}
