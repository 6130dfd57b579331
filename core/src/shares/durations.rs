//! How long tasks of a kind take: the mean of what was measured, for a bounded number of keys. What was
//! never measured has no mean. A full memory makes room by forgetting the key that was measured least
//! recently.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// What is known of one key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub key: Arc<str>,
    /// Microseconds of all samples.
    pub total: u128,
    pub samples: u64,
}

/// A memory as it is stored: the least recently measured key first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoredDurations {
    pub capacity: usize,
    pub keys: Vec<Measured>,
}

/// Means by key, the least recently measured forgotten first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "StoredDurations", into = "StoredDurations")]
pub struct Durations {
    capacity: usize,
    /// By key, the turn of its last measurement.
    turns: BTreeMap<Arc<str>, u64>,
    by_turn: BTreeMap<u64, Measured>,
    next_turn: u64,
}

impl Durations {
    /// A memory for at most `capacity` keys.
    pub fn new(capacity: usize) -> Durations {
        Durations { capacity, turns: BTreeMap::new(), by_turn: BTreeMap::new(), next_turn: 0 }
    }

    pub fn len(&self) -> usize {
        self.turns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The mean of all samples of a key, rounded down; `None` if there are none.
    pub fn mean(&self, key: &str) -> Option<Span> {
        let measured = self.by_turn.get(self.turns.get(key)?)?;
        let mean = measured.total / u128::from(measured.samples.max(1));
        // The mean of numbers of 64 bits.
        Some(Span(mean as u64))
    }

    /// A task of this key took so long.
    pub fn record(&mut self, key: &str, took: Span) {
        let known = self.turns.get(key).and_then(|turn| self.by_turn.remove(turn));
        let mut measured = match known {
            Some(measured) => measured,
            None => Measured { key: key.into(), total: 0, samples: 0 },
        };
        if measured.samples < u64::MAX {
            measured.total += u128::from(took.0);
            measured.samples += 1;
        }
        self.keep(measured);
    }

    /// Keeps this as the last measured key, and no more keys than there is room for.
    fn keep(&mut self, measured: Measured) {
        self.turns.insert(Arc::clone(&measured.key), self.next_turn);
        self.by_turn.insert(self.next_turn, measured);
        self.next_turn += 1;
        while self.by_turn.len() > self.capacity {
            let Some((_, oldest)) = self.by_turn.pop_first() else { return };
            self.turns.remove(&oldest.key);
        }
    }
}

/// Two memories are equal if they know the same and forget in the same order.
impl PartialEq for Durations {
    fn eq(&self, other: &Durations) -> bool {
        self.capacity == other.capacity && self.by_turn.values().eq(other.by_turn.values())
    }
}

impl Eq for Durations {}

impl From<StoredDurations> for Durations {
    fn from(stored: StoredDurations) -> Durations {
        let mut durations = Durations::new(stored.capacity);
        stored.keys.into_iter().for_each(|measured| durations.keep(measured));
        durations
    }
}

impl From<Durations> for StoredDurations {
    fn from(durations: Durations) -> StoredDurations {
        let keys = durations.by_turn.into_values().collect();
        StoredDurations { capacity: durations.capacity, keys }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Span {
        Span::from_whole_seconds(seconds)
    }

    #[test]
    fn the_mean_is_that_of_the_samples_and_of_nothing_else() {
        let mut durations = Durations::new(10);
        assert_eq!(durations.mean("foo"), None);
        durations.record("foo", seconds(5));
        assert_eq!(durations.mean("foo"), Some(seconds(5)));
        durations.record("foo", seconds(21));
        durations.record("foo", seconds(25));
        assert_eq!(durations.mean("foo"), Some(seconds(17)));
        durations.record("bar", seconds(10));
        assert_eq!(durations.mean("bar"), Some(seconds(10)));
    }

    #[test]
    fn the_least_recently_measured_key_is_forgotten() {
        let mut durations = Durations::new(3);
        for key in ["foo", "bar", "baz", "foo", "oof"] {
            durations.record(key, seconds(1));
        }
        assert_eq!(durations.len(), 3);
        assert_eq!(durations.mean("bar"), None);
        assert!(["foo", "baz", "oof"].iter().all(|key| durations.mean(key).is_some()));
    }

    #[test]
    fn the_longest_come_first_and_the_unknown_last() {
        let mut durations = Durations::new(10);
        for task in 0..5 {
            durations.record(&format!("task: {task}"), seconds(task * 10));
        }
        let mut tasks = ["task: 2", "new", "task: 0", "task: 4", "task: 3", "task: 1"];
        tasks.sort_by_key(|task| std::cmp::Reverse(durations.mean(task)));
        assert_eq!(tasks, ["task: 4", "task: 3", "task: 2", "task: 1", "task: 0", "new"]);
    }

    #[test]
    fn a_memory_survives_storing_with_its_order() {
        let mut durations = Durations::new(3);
        for (key, took) in [("a", 4), ("b", 6), ("c", 8), ("a", 2)] {
            durations.record(key, seconds(took));
        }
        let text = serde_json::to_string(&durations).expect("it serialises");
        let mut back: Durations = serde_json::from_str(&text).expect("it is read back");
        assert_eq!(back, durations);
        back.record("d", seconds(1));
        durations.record("d", seconds(1));
        assert_eq!(back, durations);
        assert_eq!((back.mean("b"), back.mean("a")), (None, Some(seconds(3))));
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let mut durations = Durations::new(0);
        durations.record("a", seconds(1));
        assert!(durations.is_empty());
        assert_eq!(durations.mean("a"), None);
    }

    #[test]
    fn the_largest_samples_do_not_overflow() {
        let mut durations = Durations::new(1);
        for _ in 0..3 {
            durations.record("a", Span(u64::MAX));
        }
        assert_eq!(durations.mean("a"), Some(Span(u64::MAX)));
    }
}
