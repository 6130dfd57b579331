//! Resource vectors: whole amounts by kind, dense, so that fitting is a short loop over integers.

use std::fmt;
use std::ops::{AddAssign, SubAssign};

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::collections::Empty;
use crate::quantity::Unit;

/// The index of a resource kind in [`Kinds`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct KindId(pub u16);

/// The resource kinds of a cluster, in the order of their ids.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kinds {
    names: Vec<String>,
}

/// More kinds than this are refused: every node index carries one number per kind.
pub const KINDS_MAX: usize = 32;

/// The kinds that need no declaration.
pub const KINDS_BUILT_IN: [&str; 4] = ["slot", "cpu", "memory", "gpu"];

impl Default for Kinds {
    fn default() -> Kinds {
        Kinds { names: KINDS_BUILT_IN.map(str::to_owned).to_vec() }
    }
}

impl Kinds {
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub fn id(&self, name: &str) -> Option<KindId> {
        let position = self.names.iter().position(|known| known == name)?;
        Some(KindId(position as u16))
    }

    pub fn name(&self, id: KindId) -> &str {
        &self.names[usize::from(id.0)]
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// How amounts of this kind are written and counted.
    pub fn unit(&self, id: KindId) -> Unit {
        Unit::of_kind(self.name(id))
    }

    /// Whether every kind of `earlier` has the same number here, so that amounts keep their meaning.
    pub fn continues(&self, earlier: &Kinds) -> bool {
        self.names.starts_with(&earlier.names)
    }

    /// Adds a kind, or finds it; `None` when there is no room for another.
    pub fn declare(&mut self, name: &str) -> Option<KindId> {
        if let Some(id) = self.id(name) {
            return Some(id);
        }
        if self.names.len() == KINDS_MAX {
            return None;
        }
        self.names.push(name.to_owned());
        Some(KindId(self.names.len() as u16 - 1))
    }
}

/// An amount per kind, in base units. Free amounts may be negative: that is a deficit.
///
/// Trailing zeros are never stored, so equal vectors compare equal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Resources {
    amounts: SmallVec<[i64; 4]>,
}

/// The largest amount of one kind on one node or in one request. Sums over all nodes stay far
/// inside 64 bits.
pub const AMOUNT_MAX: i64 = 1 << 50;

impl Resources {
    pub fn new() -> Resources {
        Resources::default()
    }

    /// A vector with this amount of one kind.
    pub fn of(kind: KindId, amount: i64) -> Resources {
        let mut resources = Resources::new();
        resources.set(kind, amount);
        resources
    }

    pub fn get(&self, kind: KindId) -> i64 {
        self.amounts.get(usize::from(kind.0)).copied().unwrap_or(0)
    }

    pub fn set(&mut self, kind: KindId, amount: i64) {
        let index = usize::from(kind.0);
        if self.amounts.len() <= index {
            self.amounts.resize(index + 1, 0);
        }
        self.amounts[index] = amount;
        self.trim();
    }

    /// The stored amounts, by kind index; kinds beyond the end are zero.
    pub fn amounts(&self) -> &[i64] {
        &self.amounts
    }

    /// What is left of this beside others, kind by kind; nothing where they have more.
    pub fn beside(&self, others: &Resources) -> Resources {
        let mut left = self.clone();
        if !others.is_zero() {
            self.iter().for_each(|(kind, amount)| left.set(kind, (amount - others.get(kind)).max(0)));
        }
        left
    }

    pub fn is_zero(&self) -> bool {
        self.amounts.is_empty()
    }

    pub fn has_negative(&self) -> bool {
        self.amounts.iter().any(|amount| *amount < 0)
    }

    /// The kinds with a non-zero amount, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (KindId, i64)> + '_ {
        let entries = self.amounts.iter().enumerate();
        entries.filter(|(_, amount)| **amount != 0).map(|(index, amount)| (KindId(index as u16), *amount))
    }

    /// Whether every requested amount is there. What is not requested does not matter, so a deficit
    /// of one kind does not keep away a request that does not touch it.
    pub fn fits_in(&self, free: &Resources) -> bool {
        self.iter().all(|(kind, amount)| amount <= free.get(kind))
    }

    /// The kinds of which `free` has too little.
    pub fn lacking_in<'a>(&'a self, free: &'a Resources) -> impl Iterator<Item = (KindId, i64)> + 'a {
        self.iter().map(|(kind, amount)| (kind, amount - free.get(kind))).filter(|(_, missing)| *missing > 0)
    }

    /// How many copies of this request fit into `free`, at most `most`.
    pub fn copies_in(&self, free: &Resources, most: u64) -> u64 {
        let by_kind = self.iter().map(|(kind, amount)| free.get(kind).max(0) as u64 / amount.max(1) as u64);
        by_kind.min().unwrap_or(most).min(most)
    }

    /// The smaller amount of each kind.
    pub fn componentwise_min(&self, other: &Resources) -> Resources {
        let length = self.amounts.len().max(other.amounts.len());
        let mut smaller = Resources::new();
        for index in 0..length {
            let kind = KindId(index as u16);
            smaller.amounts.push(self.get(kind).min(other.get(kind)));
        }
        smaller.trim();
        smaller
    }

    fn trim(&mut self) {
        while self.amounts.last() == Some(&0) {
            self.amounts.pop();
        }
    }
}

impl Empty for Resources {
    const EMPTY: &'static Resources = &Resources { amounts: SmallVec::new_const() };

    fn has_nothing(&self) -> bool {
        self.is_zero()
    }
}

impl AddAssign<&Resources> for Resources {
    fn add_assign(&mut self, other: &Resources) {
        if self.amounts.len() < other.amounts.len() {
            self.amounts.resize(other.amounts.len(), 0);
        }
        for (mine, theirs) in self.amounts.iter_mut().zip(&other.amounts) {
            *mine += theirs;
        }
        self.trim();
    }
}

impl SubAssign<&Resources> for Resources {
    fn sub_assign(&mut self, other: &Resources) {
        if self.amounts.len() < other.amounts.len() {
            self.amounts.resize(other.amounts.len(), 0);
        }
        for (mine, theirs) in self.amounts.iter_mut().zip(&other.amounts) {
            *mine -= theirs;
        }
        self.trim();
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(kind, amount)| (kind.0, amount))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: KindId = KindId(1);
    const GPU: KindId = KindId(3);

    #[test]
    fn equal_amounts_are_equal_vectors_however_they_came_about() {
        let mut left = Resources::of(GPU, 2);
        left += &Resources::of(CPU, 1);
        left -= &Resources::of(GPU, 2);
        assert_eq!(left, Resources::of(CPU, 1));
    }

    #[test]
    fn a_deficit_of_one_kind_does_not_keep_others_away() {
        let mut free = Resources::of(CPU, 4);
        free.set(GPU, -1);
        assert!(Resources::of(CPU, 4).fits_in(&free));
        assert!(!Resources::of(GPU, 1).fits_in(&free));
        assert!(Resources::new().fits_in(&free));
    }

    #[test]
    fn copies_are_counted_by_the_scarcest_kind() {
        let mut request = Resources::of(CPU, 2);
        request.set(GPU, 1);
        let mut free = Resources::of(CPU, 9);
        free.set(GPU, 3);
        assert_eq!(request.copies_in(&free, 100), 3);
        assert_eq!(Resources::new().copies_in(&free, 7), 7);
    }
}
