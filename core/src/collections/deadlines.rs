//! Deadlines by dense index: set, move, clear and find the earliest, without stale entries.

use crate::time::Time;

use super::FitTree;

#[derive(Clone, Debug)]
pub struct Deadlines {
    tree: FitTree<Time>,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines { tree: FitTree::new(Time::NEVER, 0) }
    }
}

impl Deadlines {
    /// Sets or moves the deadline of `index`; [`Time::NEVER`] clears it.
    pub fn set(&mut self, index: usize, deadline: Time) {
        match deadline {
            Time::NEVER => self.tree.remove(index),
            _ => self.tree.set(index, deadline, &[]),
        }
    }

    pub fn clear(&mut self, index: usize) {
        self.tree.remove(index);
    }

    pub fn earliest(&self) -> Option<Time> {
        self.tree.min_key()
    }

    /// Takes out the earliest entry whose deadline has come.
    pub fn pop_due(&mut self, now: Time) -> Option<usize> {
        if self.tree.min_key()? > now {
            return None;
        }
        let index = self.tree.min_index()?;
        self.tree.remove(index);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
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
}
