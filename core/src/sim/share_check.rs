//! The shares by plain counting: what the jobs say where they belong, against what the host was told.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::id::{GroupId, JobId};
use crate::job_state::GroupStatus;
use crate::machine::{Broken, promise};
use crate::outcome::TaskState;
use crate::settings::ShareSettings;
use crate::share_report::{ShareBook, ShareName};
use crate::spec::JobSpec;

use super::world::World;

/// Tasks that run and tasks that wait, by share.
type Counts = BTreeMap<ShareName, (u64, u64)>;

impl World {
    /// Every share has, in running and waiting tasks, what the jobs that belong to it have, and the host
    /// was told so.
    pub(super) fn check_shares(&self) -> Result<(), Broken> {
        let settings = &self.scheduler.settings().shares;
        let shares_nothing = settings.classes.is_none() && settings.queues.is_empty();
        let expected = if shares_nothing { Counts::new() } else { self.count_by_share(settings) };
        let told = counts(&self.shares);
        promise!(8, told == expected, "the host was told of {told:?}, the jobs say {expected:?}");
        let mut now = ShareBook::default();
        now.apply(&self.scheduler.share_news());
        let (told, now) = (figures(&self.shares), figures(&now));
        promise!(8, told == now, "the host was told of {told:?}, the books say {now:?}");
        Ok(())
    }

    fn count_by_share(&self, settings: &ShareSettings) -> Counts {
        let mut counts = Counts::new();
        for live in self.cluster.live() {
            self.count(&mut counts, settings, live.attempt.task.job(), (1, 0));
        }
        for (id, job) in self.jobs.jobs() {
            for (index, group) in job.groups.iter().enumerate() {
                let group_id = GroupId::new(id, index as u16);
                let waiting = match group.is_elastic() {
                    false => {
                        let queued = group.count(TaskState::Queued) + group.count(TaskState::Assigned);
                        queued - group.delayed()
                    }
                    // What its size rests for wants nothing.
                    true if group.live > 0 && self.scheduler.rests(group_id) => 0,
                    true => group.wanted(),
                };
                if group.status == GroupStatus::Active && waiting > 0 {
                    self.count(&mut counts, settings, id, (0, waiting));
                }
            }
        }
        counts
    }

    fn count(&self, counts: &mut Counts, settings: &ShareSettings, job: JobId, tasks: (u64, u64)) {
        let Ok(job) = self.jobs.job(job) else { return };
        for name in shares_of(&job.spec, settings) {
            let count = counts.entry(name).or_default();
            *count = (count.0 + tasks.0, count.1 + tasks.1);
        }
    }
}

/// The class and the queue that a job belongs to.
fn shares_of(spec: &JobSpec, settings: &ShareSettings) -> [ShareName; 2] {
    let queue = &spec.standing.queue;
    let class: Arc<str> = settings.class_of(&spec.requestor, queue).unwrap_or("").into();
    let queue = if settings.queue(queue).is_some() { Arc::clone(queue) } else { Arc::from("") };
    let whole = ShareName { class: Arc::clone(&class), queue: None };
    [whole, ShareName { class, queue: Some(queue) }]
}

fn counts(book: &ShareBook) -> Counts {
    let report = book.report().into_iter();
    let counts = report.map(|status| (status.name, (status.running, status.waiting)));
    counts.filter(|(_, counts)| *counts != (0, 0)).collect()
}

fn figures(book: &ShareBook) -> BTreeMap<ShareName, (u64, u64)> {
    let report = book.report().into_iter().filter(|status| status.running + status.waiting > 0);
    report.map(|status| (status.name, (status.target, status.held))).collect()
}
