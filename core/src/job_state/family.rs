//! Jobs that are parts of another job, submitted by a task of it while it runs.

use crate::id::{JobId, Ticket};
use crate::messages::{Answer, Outbox, Refusal};

use super::{GroupStatus, Job, JobState};

/// Jobs are parts of jobs at most so deep.
const DEPTH_MAX: u8 = 16;

/// So many unfinished parts a job may have at a time.
const CHILDREN_MAX: usize = 10_000;

impl Job {
    /// Whether something of it goes on and is not being ended.
    pub fn goes_on(&self) -> bool {
        let going = |status| matches!(status, GroupStatus::Active | GroupStatus::Breaking);
        self.groups.iter().any(|group| going(group.status))
    }
}

impl JobState {
    /// How deep a part of this job is, if the job can have another.
    pub(super) fn check_parent(&self, parent: Option<JobId>) -> Result<u8, Refusal> {
        let Some(parent) = parent else { return Ok(0) };
        let job = self.job(parent)?;
        if !job.goes_on() {
            return Err(Refusal::ParentEnded(parent));
        }
        if job.depth >= DEPTH_MAX {
            return Err(Refusal::TooDeep { limit: u64::from(DEPTH_MAX) });
        }
        if job.children.len() >= CHILDREN_MAX {
            return Err(Refusal::TooManyChildren { job: parent, limit: CHILDREN_MAX as u64 });
        }
        Ok(job.depth + 1)
    }

    pub(super) fn enter_parent(&mut self, parent: Option<JobId>, child: JobId) {
        if let Some(parent) = parent.and_then(|parent| self.jobs.get_mut(parent.0)) {
            parent.children.insert(child);
        }
    }

    /// A finished job is no unfinished part of its parent any more, if that is still known.
    pub(super) fn leave_parent(&mut self, parent: Option<JobId>, child: JobId) {
        let parent = parent.and_then(|parent| self.jobs.get_mut(parent.0));
        if let Some(children) = parent.and_then(|parent| parent.children.there_mut()) {
            children.remove(&child);
        }
    }

    pub(super) fn list_children(&self, ticket: Ticket, job: JobId, out: &mut Outbox) {
        match self.job(job) {
            Ok(job) => out.reply(ticket, Answer::Jobs(job.children.iter().copied().collect())),
            Err(refusal) => out.refuse(ticket, refusal),
        }
    }

    /// A job, the unfinished parts of it, and the parts of these.
    pub(super) fn tree_of(&self, job: JobId) -> Vec<JobId> {
        let mut tree = vec![job];
        let mut next = 0;
        while let Some(job) = tree.get(next).and_then(|id| self.job(*id).ok()) {
            tree.extend(job.children.iter());
            next += 1;
        }
        tree
    }
}
