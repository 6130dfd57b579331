//! What waits with one shape in one leaf: roles (or whole atomic groups) in their order.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::collections::{Paged, Seldom};
use crate::id::GroupId;

use super::groups::{self, JobView};
use super::order::Order;
use super::shapes::ShapeId;

/// A role that has waiting tasks, or an atomic group that waits as a whole (role 0).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) group: GroupId,
    pub(super) role: u16,
}

/// An entry and the order under which it was queued.
pub(super) type Queued = (Order, Entry);

/// What comes in order goes to the back of a plain queue; what belongs further ahead stands beside it.
/// Entries that no longer wait, or wait under another order by now, are passed over when they come to
/// the front.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue {
    arrivals: VecDeque<Queued>,
    others: Seldom<BTreeSet<Queued>>,
    /// Tasks that wait here.
    pub(super) tasks: u64,
}

impl Queue {
    /// Adds tasks of an entry, which takes its place by order if it is not there already.
    pub(super) fn add(&mut self, queued: Queued, tasks: u64) {
        self.tasks += tasks;
        match self.arrivals.back() {
            Some(last) if *last == queued => {}
            Some(last) if *last > queued => {
                self.others.insert(queued);
            }
            _ => {
                if self.arrivals.capacity() == 0 {
                    // Where every job has a shape of its own, one entry is all there ever is.
                    self.arrivals.reserve_exact(1);
                }
                self.arrivals.push_back(queued);
            }
        }
    }

    /// The first entry that still waits as it was queued.
    pub(super) fn head(&mut self, waits: impl Fn(Queued) -> bool) -> Option<Queued> {
        while self.arrivals.front().is_some_and(|queued| !waits(*queued)) {
            self.arrivals.pop_front();
        }
        while self.others.first().is_some_and(|queued| !waits(*queued)) {
            self.others.pop_first();
        }
        match (self.arrivals.front(), self.others.first()) {
            (Some(arrival), Some(other)) => Some(*arrival.min(other)),
            (arrival, other) => arrival.or(other).copied(),
        }
    }

    /// Up to so many of the entries that still wait as they were queued, in order.
    pub(super) fn first(&self, most: usize, waits: impl Fn(Queued) -> bool) -> Vec<Entry> {
        let (mut arrivals, mut others) = (self.arrivals.iter().peekable(), self.others.iter().peekable());
        let mut found: Vec<Entry> = Vec::new();
        while found.len() < most {
            let next = match (arrivals.peek(), others.peek()) {
                (Some(arrival), Some(other)) if arrival > other => others.next(),
                (Some(_), _) => arrivals.next(),
                (None, _) => others.next(),
            };
            let Some(queued) = next else { break };
            if waits(*queued) && found.last() != Some(&queued.1) {
                found.push(queued.1);
            }
        }
        found
    }

    /// Tasks of the entries that come before this place. `size` says how many an entry has, none if it does not
    /// wait any more. Only what is before, or what is behind, is gone through, whichever is less.
    pub(super) fn tasks_before(&self, order: Order, size: impl Fn(Queued) -> u64) -> u64 {
        let is_before = |queued: &&Queued| queued.0 < order;
        let before = self.arrivals.partition_point(|queued| is_before(&queued));
        let is_alone = |queued: &&Queued| self.arrivals.binary_search(queued).is_err();
        let sum = |arrivals: Range<usize>, wanted: bool| -> u64 {
            let arrivals = self.arrivals.range(arrivals).copied();
            let others = self.others.iter().filter(|queued| is_before(queued) == wanted);
            arrivals.chain(others.filter(is_alone).copied()).map(&size).sum()
        };
        match before <= self.arrivals.len() / 2 {
            true => sum(0..before, true),
            false => self.tasks.saturating_sub(sum(before..self.arrivals.len(), false)),
        }
    }

    /// Drops entries that no longer wait, once they are most of the queue.
    pub(super) fn compact(&mut self, waits: impl Fn(Queued) -> bool) {
        const LENGTH_MIN: usize = 64;
        let length = self.arrivals.len() + self.others.len();
        if length < LENGTH_MIN || length as u64 <= 2 * self.tasks {
            return;
        }
        self.arrivals.retain(|queued| waits(*queued));
        if let Some(others) = self.others.there_mut() {
            others.retain(|queued| waits(*queued));
        }
    }
}

/// Whether an entry still waits with this shape, under this order.
pub(super) fn waits(jobs: &Paged<JobView>, shape: ShapeId, is_gang: bool, (order, entry): Queued) -> bool {
    groups::find(jobs, entry.group).is_some_and(|group| {
        let role = &group.roles[usize::from(entry.role)];
        let queued = if is_gang { group.gang == Some(shape) } else { role.shape == shape && role.queued > 0 };
        queued && role.order == order
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;

    fn queued(job: u64) -> Queued {
        let entry = Entry { group: GroupId::new(JobId(job), 0), role: 0 };
        (Order::by_arrival(0, entry), entry)
    }

    #[test]
    fn what_comes_back_takes_its_old_place() {
        let mut queue = Queue::default();
        for job in [1, 2, 3] {
            queue.add(queued(job), 1);
        }
        let not_first = |one: Queued| one != queued(1);
        assert_eq!(queue.head(not_first), Some(queued(2)));
        queue.add(queued(1), 1);
        assert_eq!(queue.head(|_| true), Some(queued(1)));
    }

    #[test]
    fn what_ranks_higher_goes_ahead() {
        let mut queue = Queue::default();
        let (_, late) = queued(9);
        let ahead = (Order::by_arrival(0, late), late);
        let rank = |(order, entry): Queued| (Order::new(1, order.arrival, order.last), entry);
        queue.add(rank(queued(1)), 1);
        queue.add(ahead, 1);
        assert_eq!(queue.head(|_| true), Some(ahead));
    }

    #[test]
    fn entries_that_no_longer_wait_do_not_pile_up() {
        let mut queue = Queue::default();
        for job in 1..=1_000 {
            queue.add(queued(job), 1);
        }
        queue.tasks = 1;
        queue.compact(|one| one == queued(500));
        assert_eq!((queue.arrivals.len(), queue.head(|_| true)), (1, Some(queued(500))));
    }

    #[test]
    fn what_comes_before_is_counted_from_either_end() {
        let mut queue = Queue::default();
        for job in [2, 4, 6, 8, 10, 1, 5] {
            queue.add(queued(job), job);
        }
        // One that is there twice, under the same order, counts once; one that does not wait is not counted.
        queue.others.insert(queued(4));
        queue.tasks -= 6;
        let size = |(_, entry): Queued| if entry.group.job().0 == 6 { 0 } else { entry.group.job().0 };
        let before = |job| queue.tasks_before(queued(job).0, size);
        assert_eq!([1, 2, 3, 5, 6, 7, 9, 11].map(before), [0, 1, 3, 7, 12, 12, 20, 30]);
    }
}
