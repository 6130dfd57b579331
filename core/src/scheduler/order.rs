//! Who comes first among the waiting work of one share: a number to compare, smaller is sooner.

use serde::{Deserialize, Serialize};

use crate::settings::JobKey;

use super::queue::Entry;

/// The place of an entry among all that wait in its leaf. No two entries of a leaf have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub(super) struct Order {
    /// What the policy looks at first, in two halves: whole it would stand at every sixteenth byte.
    rank: (u64, u64),
    /// Then the arrival, or where sizes come before it, the size.
    pub(super) arrival: u64,
    /// Then the role, or the arrival and the role, so that no two are equal.
    pub(super) last: u64,
}

impl Order {
    /// Behind everything.
    pub(super) const LAST: Order = Order { rank: (u64::MAX, u64::MAX), arrival: u64::MAX, last: u64::MAX };

    pub(super) fn new(rank: u128, arrival: u64, last: u64) -> Order {
        Order { rank: ((rank >> u64::BITS) as u64, rank as u64), arrival, last }
    }

    /// What the policy looks at first.
    pub(super) fn rank(self) -> u128 {
        u128::from(self.rank.0) << u64::BITS | u128::from(self.rank.1)
    }

    /// First come, first served, among those of one rank.
    pub(super) fn by_arrival(rank: u128, entry: Entry) -> Order {
        Order::new(rank, entry.group.order(), u64::from(entry.role))
    }

    /// The older what waits, the smaller, where jobs are compared by this key.
    pub(super) fn age(self, key: JobKey) -> (u64, Order) {
        (if key == JobKey::RunTime { self.last } else { self.arrival }, self)
    }
}
