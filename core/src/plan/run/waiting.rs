//! How shares stand when a dry run is over, what waits, and why.

use crate::explanation::Explanation;
use crate::id::{GroupId, JobId};
use crate::share_report::ShareBook;
use crate::sim::World;

use super::super::report::{PlanReport, WaitingGroup};
use super::DryRun;

impl DryRun<'_> {
    /// Adds how shares stand and what waits, with the reasons, and hands the report over.
    pub(super) fn finish(mut self) -> PlanReport {
        let mut shares = ShareBook::default();
        shares.apply(&self.world.scheduler.share_news());
        self.report.add_shares(shares.report());
        self.world.scheduler.prepare_to_explain();
        let mut waiting = Vec::new();
        for (number, spec) in self.jobs.iter().enumerate() {
            for (index, group) in spec.groups.iter().enumerate() {
                let id = GroupId::new(JobId(number as u64 + 1), index as u16);
                for explanation in why(&mut self.world, id).into_iter().filter(|one| one.waiting > 0) {
                    waiting.push(WaitingGroup {
                        job: spec.name.clone(),
                        group: group.name.clone(),
                        tasks: explanation.waiting,
                        sentence: explanation.sentence(),
                        explanation,
                    });
                }
            }
        }
        self.report.waiting = waiting;
        self.report
    }
}

/// Why tasks of a group are queued, and why others are not queued yet.
fn why(world: &mut World, id: GroupId) -> Vec<Explanation> {
    let queued = world.scheduler.explain_with_gate(id).unwrap_or_default();
    let group = world.jobs.job(id.job()).ok().and_then(|job| job.groups.get(id.index()));
    let delay = group.and_then(|group| group.delay(world.now));
    let delayed = Explanation::of_delay(delay, world.scheduler.settings().version);
    Explanation::with_delay(queued, Some(delayed))
}
