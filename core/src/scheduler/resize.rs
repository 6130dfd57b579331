//! Elastic groups that change their size from outside: other bounds are set.

use crate::id::{Attempt, Slot};
use crate::messages::Outbox;
use crate::outcome::StopCause;
use crate::time::Time;

use super::queue::Entry;
use super::{Scheduler, groups};

impl Scheduler {
    /// A role may vary between these sizes from now on; whoever is above stops, the newest first.
    pub(super) fn resize(&mut self, now: Time, entry: Entry, (min, max): (u32, u32), out: &mut Outbox) {
        if let Some(group) = groups::find_mut(&mut self.jobs, entry.group) {
            let role = &mut group.roles[usize::from(entry.role)];
            role.set_bounds(min, max);
            let excess = if group.withdrawn { 0 } else { role.steady().saturating_sub(max) };
            let of_role =
                |live: &&super::live::LiveView| live.attempt.task.role == entry.role && !live.stopping;
            let slots = self.live.of_group(group.live).filter(of_role).map(|live| live.attempt.slot);
            let slots: Vec<Slot> = slots.take(excess as usize).collect();
            for slot in &slots {
                self.stop(*slot, StopCause::Resized, out);
            }
            self.doubt(entry.group);
            match slots.is_empty() {
                true => self.resettle(now, entry.group),
                false => self.note_resized(now, entry.group),
            }
        }
        out.fence(entry.group);
    }

    /// Whether this attempt joined an elastic group that ran already.
    pub fn has_joined(&self, attempt: Attempt) -> bool {
        self.live.get(attempt.slot).is_some_and(|live| live.attempt == attempt && live.grown)
    }
}
