//! Jobs by name: job sets, to be listed, moved and cancelled as one, and the unfinished jobs of each queue.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{JobId, Ticket};
use crate::machine::{Broken, promise};
use crate::messages::{Answer, Outbox, Refusal};

use super::{Job, JobState};

/// Jobs under the name of what they belong to. The empty name is nobody's, and costs nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct NamedJobs(BTreeMap<Box<str>, BTreeSet<JobId>>);

impl NamedJobs {
    pub(super) fn enter(&mut self, set: &str, job: JobId) {
        if set.is_empty() {
            return;
        }
        match self.0.get_mut(set) {
            Some(jobs) => drop(jobs.insert(job)),
            None => drop(self.0.insert(set.into(), BTreeSet::from([job]))),
        }
    }

    pub(super) fn leave(&mut self, set: &str, job: JobId) {
        if let Some(jobs) = self.0.get_mut(set) {
            jobs.remove(&job);
            if jobs.is_empty() {
                self.0.remove(set);
            }
        }
    }
}

impl JobState {
    /// The jobs of a set that are kept, oldest first, or that there is none.
    pub fn job_set(&self, set: &str) -> Result<impl Iterator<Item = JobId> + '_, Refusal> {
        let jobs = self.sets.0.get(set).ok_or_else(|| Refusal::UnknownJobSet(set.to_owned()))?;
        Ok(jobs.iter().copied())
    }

    pub(super) fn list_set(&self, ticket: Ticket, set: &str, out: &mut Outbox) {
        match self.job_set(set) {
            Ok(jobs) => out.reply(ticket, Answer::Jobs(jobs.collect())),
            Err(refusal) => out.refuse(ticket, refusal),
        }
    }

    /// The jobs of a queue that have not ended, oldest first. Those that name no queue are found by looking
    /// at every job that is kept.
    pub(super) fn of_queue(&self, queue: &str) -> Vec<JobId> {
        if queue.is_empty() {
            let nameless = |job: &Job| job.finished.is_none() && job.spec.standing.queue.is_empty();
            return self.jobs().filter(|(_, job)| nameless(job)).map(|(id, _)| id).collect();
        }
        self.queues.0.get(queue).into_iter().flatten().copied().collect()
    }

    /// All kept jobs by their sets, and those that have not ended by their queues.
    fn by_name(&self) -> (NamedJobs, NamedJobs) {
        let (mut sets, mut queues) = (NamedJobs::default(), NamedJobs::default());
        for (id, job) in self.jobs() {
            sets.enter(&job.spec.relations.job_set, id);
            if job.finished.is_none() {
                queues.enter(&job.spec.standing.queue, id);
            }
        }
        (sets, queues)
    }

    pub(super) fn rebuild_sets(&mut self) {
        (self.sets, self.queues) = self.by_name();
    }

    pub(super) fn check_sets(&self) -> Result<(), Broken> {
        let (sets, queues) = self.by_name();
        promise!(4, self.sets == sets, "the index of job sets is not what the jobs say");
        promise!(4, self.queues == queues, "the index of queues is not what the jobs say");
        Ok(())
    }
}
