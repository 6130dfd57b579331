//! How time was spent when a dry run is over.

use crate::plan::usage::{JobTime, UsageReport};

use super::DryRun;

impl DryRun<'_> {
    pub(super) fn usage(&self) -> UsageReport {
        let until = self.scenario.until.unwrap_or(self.world.now);
        let mut spent = self.spent.clone();
        for live in self.world.jobs.live() {
            spent[live.attempt.task.job().0 as usize - 1].add(live.since, live.began(), until);
        }
        let jobs = self.jobs.iter().zip(spent).map(|(job, spent)| JobTime::new(&job.name, spent)).collect();
        UsageReport::new(self.scenario.now, until, &self.world.cluster, jobs)
    }
}
