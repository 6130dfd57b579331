//! Deadlines by dense index: set, move, clear and find the earliest, without stale entries.

use crate::time::Time;

use super::{Blocks, FitTree};

/// So many deadlines stand in a row; the tree knows the earliest of each.
const ROW: usize = 16;

#[derive(Clone, Debug)]
pub struct Deadlines {
    times: Blocks<Time>,
    rows: FitTree<Time>,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines { times: Blocks::default(), rows: FitTree::new(Time::NEVER, 0) }
    }
}

impl Deadlines {
    /// Sets or moves the deadline of `index`; [`Time::NEVER`] clears it.
    pub fn set(&mut self, index: usize, deadline: Time) {
        if deadline == Time::NEVER {
            return self.clear(index);
        }
        self.times.reach(index, || Time::NEVER);
        self.change(index, deadline);
    }

    pub fn clear(&mut self, index: usize) {
        if self.times.get(index).is_some_and(|deadline| *deadline != Time::NEVER) {
            self.change(index, Time::NEVER);
        }
    }

    fn change(&mut self, index: usize, deadline: Time) {
        let before = std::mem::replace(&mut self.times[index], deadline);
        let earliest = self.rows.key(index / ROW).unwrap_or(Time::NEVER);
        if before > earliest && deadline >= earliest {
            return;
        }
        match self.times.row(index, ROW).iter().min() {
            None | Some(&Time::NEVER) => self.rows.remove(index / ROW),
            Some(earliest) => self.rows.set(index / ROW, *earliest, &[]),
        }
    }

    pub fn earliest(&self) -> Option<Time> {
        self.rows.min_key()
    }

    /// Takes out the earliest entry whose deadline has come; of several, the one with the smallest index.
    pub fn pop_due(&mut self, now: Time) -> Option<usize> {
        let earliest = self.rows.min_key().filter(|earliest| *earliest <= now)?;
        let first = self.rows.min_index()? * ROW;
        let place = self.times.row(first, ROW).iter().position(|deadline| *deadline == earliest)?;
        self.clear(first + place);
        Some(first + place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn due_entries_come_out_in_order_and_once() {
        let mut deadlines = Deadlines::default();
        deadlines.set(3, Time(20));
        deadlines.set(1, Time(10));
        deadlines.set(2, Time(10));
        deadlines.set(4, Time(30));
        deadlines.set(4, Time::NEVER);
        assert_eq!(deadlines.earliest(), Some(Time(10)));
        assert_eq!(deadlines.pop_due(Time(9)), None);
        assert_eq!(deadlines.pop_due(Time(20)), Some(1));
        assert_eq!(deadlines.pop_due(Time(20)), Some(2));
        assert_eq!(deadlines.pop_due(Time(20)), Some(3));
        assert_eq!(deadlines.pop_due(Time(99)), None);
    }

    proptest! {
        /// Goal: deadlines come out as from an ordered set, whatever was set, moved and cleared.
        #[test]
        fn they_come_out_as_from_an_ordered_set(
            steps in prop::collection::vec((0usize..100, prop::option::of(0u64..20), 0u64..20), 0..200),
        ) {
            let (mut deadlines, mut plain) = (Deadlines::default(), BTreeSet::new());
            for (index, deadline, now) in steps {
                deadlines.set(index, deadline.map_or(Time::NEVER, Time));
                plain.retain(|(_, other)| *other != index);
                plain.extend(deadline.map(|deadline| (Time(deadline), index)));
                prop_assert_eq!(deadlines.earliest(), plain.first().map(|(deadline, _)| *deadline));
                let due = plain.first().copied().filter(|(deadline, _)| *deadline <= Time(now));
                prop_assert_eq!(deadlines.pop_due(Time(now)), due.map(|(_, index)| index));
                plain.retain(|one| Some(*one) != due);
            }
        }
    }
}
