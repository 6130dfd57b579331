//! Who comes first among the waiting work of one share: a number to compare, smaller is sooner.

use serde::{Deserialize, Serialize};

use crate::settings::JobKey;

use super::queue::Entry;

/// The place of an entry among all that wait in its leaf. No two entries of a leaf have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub(super) struct Order {
    /// What the policy looks at first.
    pub(super) rank: u128,
    /// Then the arrival, or where sizes come before it, the size.
    pub(super) arrival: u64,
    /// Then the role, or the arrival and the role, so that no two are equal.
    pub(super) last: u64,
}

impl Order {
    /// Behind everything.
    pub(super) const LAST: Order = Order { rank: u128::MAX, arrival: u64::MAX, last: u64::MAX };

    /// First come, first served, among those of one rank.
    pub(super) fn by_arrival(rank: u128, entry: Entry) -> Order {
        Order { rank, arrival: entry.group.order(), last: u64::from(entry.role) }
    }

    /// The older what waits, the smaller, where jobs are compared by this key.
    pub(super) fn age(self, key: JobKey) -> (u64, Order) {
        (if key == JobKey::RunTime { self.last } else { self.arrival }, self)
    }
}
