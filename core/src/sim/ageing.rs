//! What has waited for long stands where it should by then: measured from outside, turn by turn.

use std::collections::BTreeMap;

use crate::id::GroupId;
use crate::machine::{Broken, promise};
use crate::scheduler::Scheduler;
use crate::time::Time;

use super::world::World;

/// Since when each group waits below the first strict band.
#[derive(Clone, Debug, Default)]
pub(super) struct Ages {
    since: BTreeMap<GroupId, Time>,
}

impl Ages {
    /// The Scheduler has had a turn.
    pub(super) fn watch(&mut self, now: Time, scheduler: &Scheduler) {
        let counts = scheduler.settings().shares.ageing().is_some();
        let waiting = if counts { scheduler.waiting_below() } else { Vec::new() };
        let waiting: BTreeMap<GroupId, u16> = waiting.into_iter().collect();
        self.since.retain(|id, _| waiting.contains_key(id));
        for id in waiting.into_keys() {
            self.since.entry(id).or_insert(now);
        }
    }
}

impl World {
    /// Everybody who waits is raised by one strict band for each full time of ageing, and by no more.
    pub(super) fn check_ages(&self) -> Result<(), Broken> {
        let settings = &self.scheduler.settings().shares;
        let Some(after) = settings.ageing() else { return Ok(()) };
        for (id, since) in &self.ages.since {
            let Ok(job) = self.jobs.job(id.job()) else { continue };
            let own = settings.level(settings.band(&job.spec.standing.band)) as u64;
            let level = own.saturating_sub(self.now.since(*since).0 / after.0);
            let (expected, found) = ((*since, level as u16), self.scheduler.age_of(*id));
            promise!(4, found == Some(expected), "{id} should stand at {expected:?}, not at {found:?}");
        }
        Ok(())
    }
}
