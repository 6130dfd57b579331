//! Higher bands are seen to before lower ones use up what is free.
//!
//! Where a strict band takes from others what it cannot start without, lower work that is placed first would only be
//! stopped again in the same turn. So such a turn ends before lower bands are served: higher work takes what it
//! needs, is kept room for, and the rest is planned in the next turn, whatever has come by then.

use crate::messages::Outbox;
use crate::time::Time;

use super::Scheduler;
use super::leaf::LeafId;

impl Scheduler {
    /// Whether something of a strict band waits that may be helped before this leaf is served.
    pub(super) fn sees_to_higher_first(&self, leaf: LeafId) -> bool {
        if !self.settings.rebalance.higher || !self.unsettled {
            return false;
        }
        let lowest = self.settings.shares.levels() as u16 - 1;
        let level = self.shares.leaf(leaf).level.min(lowest);
        self.shares.leaves.iter().any(|other| other.level < level && other.waiting > 0)
    }

    /// Takes away what higher work cannot start without, while lower work has not been planned yet.
    pub(super) fn see_to_higher(&mut self, now: Time, out: &mut Outbox) {
        let lowest = self.settings.shares.levels() as u16 - 1;
        let mut wishes = self.wishes(now);
        wishes.retain(|wish| wish.level < lowest);
        if wishes.is_empty() || self.is_starved() {
            return;
        }
        let mut pass = self.begin_pass(now);
        self.help_minima_and_higher(&wishes, &mut pass, out);
        self.end_pass(&mut pass);
    }
}
