//! What waits with one shape: roles (or whole atomic groups) in order of arrival.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::id::GroupId;

/// A role that has waiting tasks, or an atomic group that waits as a whole (role 0).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) group: GroupId,
    pub(super) role: u16,
}

/// Arrivals go to the back of a plain queue; what comes back to an old place stands beside it.
/// Entries that no longer wait are passed over when they come to the front.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue {
    arrivals: VecDeque<Entry>,
    returned: BTreeSet<Entry>,
    /// Tasks that wait here.
    pub(super) tasks: u64,
}

impl Queue {
    /// Adds tasks of an entry, which takes its place by arrival if it is not there already.
    pub(super) fn add(&mut self, entry: Entry, tasks: u64) {
        self.tasks += tasks;
        match self.arrivals.back() {
            Some(last) if *last == entry => {}
            Some(last) if *last > entry => {
                self.returned.insert(entry);
            }
            _ => self.arrivals.push_back(entry),
        }
    }

    /// The first entry that still waits.
    pub(super) fn head(&mut self, waits: impl Fn(Entry) -> bool) -> Option<Entry> {
        while self.arrivals.front().is_some_and(|entry| !waits(*entry)) {
            self.arrivals.pop_front();
        }
        while self.returned.first().is_some_and(|entry| !waits(*entry)) {
            self.returned.pop_first();
        }
        match (self.arrivals.front(), self.returned.first()) {
            (Some(arrival), Some(returned)) => Some(*arrival.min(returned)),
            (arrival, returned) => arrival.or(returned).copied(),
        }
    }

    /// Drops entries that no longer wait, once they are most of the queue.
    pub(super) fn compact(&mut self, waits: impl Fn(Entry) -> bool) {
        const LENGTH_MIN: usize = 64;
        let length = self.arrivals.len() + self.returned.len();
        if length < LENGTH_MIN || length as u64 <= 2 * self.tasks {
            return;
        }
        self.arrivals.retain(|entry| waits(*entry));
        self.returned.retain(|entry| waits(*entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;

    fn entry(job: u64) -> Entry {
        Entry { group: GroupId::new(JobId(job), 0), role: 0 }
    }

    #[test]
    fn what_comes_back_takes_its_old_place() {
        let mut queue = Queue::default();
        for job in [1, 2, 3] {
            queue.add(entry(job), 1);
        }
        let not_first = |one: Entry| one != entry(1);
        assert_eq!(queue.head(not_first), Some(entry(2)));
        queue.add(entry(1), 1);
        assert_eq!(queue.head(|_| true), Some(entry(1)));
    }

    #[test]
    fn entries_that_no_longer_wait_do_not_pile_up() {
        let mut queue = Queue::default();
        for job in 1..=1_000 {
            queue.add(entry(job), 1);
        }
        queue.tasks = 1;
        queue.compact(|one| one == entry(500));
        assert_eq!((queue.arrivals.len(), queue.head(|_| true)), (1, Some(entry(500))));
    }
}
