//! Finished jobs are kept within bounds of number and age, then only summed up.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::id::JobId;
use crate::messages::{JobEvent, Outbox};
use crate::outcome::TaskState;
use crate::settings::Retention;
use crate::time::Time;

use super::JobState;

/// Finished jobs in the order of their ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Finished {
    order: VecDeque<(Time, JobId)>,
    pub(super) summary: Summary,
}

/// What is still known about jobs that are no longer kept.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    pub jobs_completed: u64,
    pub jobs_failed: u64,
    pub jobs_cancelled: u64,
    pub jobs_aborted: u64,
    pub tasks: u64,
}

impl Finished {
    pub(super) fn enter(&mut self, now: Time, job: JobId) {
        self.order.push_back((now, job));
    }

    pub(super) fn next_expiry(&self, retention: Retention) -> Option<Time> {
        self.order.front().map(|(finished, _)| *finished + retention.finished_age)
    }

    fn pop_expired(&mut self, now: Time, retention: Retention) -> Option<JobId> {
        let too_many = self.order.len() as u64 > retention.finished_jobs;
        let too_old = self.next_expiry(retention)? <= now;
        if too_many || too_old { self.order.pop_front().map(|(_, job)| job) } else { None }
    }
}

impl JobState {
    pub(super) fn forget_old(&mut self, now: Time, out: &mut Outbox) {
        while let Some(id) = self.finished.pop_expired(now, self.settings.retention) {
            let job = self.jobs.remove(id.0).expect("a finished job is kept until it expires");
            self.sets.leave(&job.spec.relations.job_set, id);
            out.job_event(JobEvent::Expired { job: id });
            let summary = &mut self.finished.summary;
            summary.tasks += job.spec.tasks();
            match job.state() {
                TaskState::Completed => summary.jobs_completed += 1,
                TaskState::Cancelled => summary.jobs_cancelled += 1,
                TaskState::Aborted => summary.jobs_aborted += 1,
                _ => summary.jobs_failed += 1,
            }
        }
    }
}
