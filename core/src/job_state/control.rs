//! What is done to jobs from outside: cancelled, aborted, assigned to a pool.

use std::sync::Arc;

use crate::id::{GroupId, JobId, TaskId, Ticket};
use crate::messages::{Answer, HostMessage, Outbox};
use crate::outcome::StopCause;

use super::{GroupStatus, JobState};

impl JobState {
    pub(super) fn cancel(&mut self, ticket: Ticket, id: JobId, out: &mut Outbox) {
        if let Err(refusal) = self.job(id) {
            return out.refuse(ticket, refusal);
        }
        self.withdraw(id, StopCause::Cancel, out);
        out.reply(ticket, Answer::Done);
    }

    /// The first of several says why; whoever is finished already keeps its end.
    pub(super) fn abort(&mut self, ticket: Ticket, id: JobId, reason: Arc<str>, out: &mut Outbox) {
        if let Err(refusal) = self.job(id) {
            return out.refuse(ticket, refusal);
        }
        if self.withdraw(id, StopCause::Abort, out) {
            let job = self.jobs.get_mut(id.0).expect("checked above");
            job.aborted.get_or_insert_with(|| Arc::clone(&reason));
            out.host.push(HostMessage::Aborted { job: id, reason });
        }
        out.reply(ticket, Answer::Done);
    }

    /// Begins to end whatever of the job has not ended and is not about to; false if that is nothing.
    pub(super) fn withdraw(&mut self, id: JobId, cause: StopCause, out: &mut Outbox) -> bool {
        let groups = self.job(id).map_or(0, |job| job.groups.len());
        let withdrawn = (0..groups).filter(|index| {
            let id = GroupId::new(id, *index as u16);
            self.withdraw_group(id, cause, out)
        });
        withdrawn.count() > 0
    }

    pub(super) fn withdraw_group(&mut self, id: GroupId, cause: StopCause, out: &mut Outbox) -> bool {
        let group = self.group_mut(id);
        if !group.withdraw(cause) {
            return false;
        }
        out.withdraw_group(id, cause);
        for (at, role, index) in group.forget_delays() {
            self.delays.remove(&(at, TaskId { group: id, role, index }));
        }
        true
    }

    /// The group holds the claim of a pool from now on, or none any more. The Scheduler says so whenever
    /// it changes, also when the group starts; what is finished or forgotten by then does not care.
    pub(super) fn assigned(&mut self, id: GroupId, pool: Option<Arc<str>>, out: &mut Outbox) {
        let Some(job) = self.jobs.get_mut(id.job().0) else { return };
        let Some(group) = job.groups.get_mut(id.index()) else { return };
        let pool = pool.filter(|_| group.status != GroupStatus::Finished);
        if group.assigned != pool {
            group.assigned.clone_from(&pool);
            out.host.push(HostMessage::Assigned { group: id, pool });
        }
    }
}
