//! Job sets: jobs that belong together by the name of their set, to be listed, moved and cancelled as one.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{JobId, Ticket};
use crate::machine::{Broken, promise};
use crate::messages::{Answer, Outbox, Refusal};

use super::JobState;

/// The jobs of every set that are kept, finished or not. Jobs without a set are in none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct JobSets(BTreeMap<Box<str>, BTreeSet<JobId>>);

impl JobSets {
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

    fn sets_of_jobs(&self) -> JobSets {
        let mut sets = JobSets::default();
        self.jobs().for_each(|(id, job)| sets.enter(&job.spec.job_set, id));
        sets
    }

    pub(super) fn rebuild_sets(&mut self) {
        self.sets = self.sets_of_jobs();
    }

    pub(super) fn check_sets(&self) -> Result<(), Broken> {
        promise!(4, self.sets == self.sets_of_jobs(), "the index of job sets is not what the jobs say");
        Ok(())
    }
}
