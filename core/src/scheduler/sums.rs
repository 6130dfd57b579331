//! Sums of amounts over many tasks or nodes: wider than one amount can be.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::resources::{KindId, Resources};

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums(SmallVec<[i128; 4]>);

impl Sums {
    pub(super) fn get(&self, kind: KindId) -> i128 {
        self.0.get(usize::from(kind.0)).copied().unwrap_or(0)
    }

    /// Adds an amount so many times; a negative number takes away.
    pub(super) fn add(&mut self, amounts: &Resources, times: i64) {
        let amounts = amounts.amounts();
        if self.0.len() < amounts.len() {
            self.0.resize(amounts.len(), 0);
        }
        for (sum, amount) in self.0.iter_mut().zip(amounts) {
            *sum += i128::from(*amount) * i128::from(times);
        }
    }

    /// Adds other sums.
    pub(super) fn join(&mut self, other: &Sums) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(sum, other)| *sum += other);
    }

    /// The kinds of which there is something.
    pub(super) fn iter(&self) -> impl Iterator<Item = (KindId, i128)> + '_ {
        let sums = self.0.iter().enumerate().filter(|(_, sum)| **sum != 0);
        sums.map(|(kind, sum)| (KindId(kind as u16), *sum))
    }
}
