//! What is done to jobs from outside: cancelled, aborted, assigned to a pool.

use std::sync::Arc;

use crate::explanation::Explanation;
use crate::id::{GroupId, JobId, TaskId, Ticket};
use crate::messages::{Answer, Cancelled, HostMessage, Outbox};
use crate::outcome::{StopCause, TaskState};
use crate::spec::Start;
use crate::time::Time;

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

    /// Cancels several jobs; tells how many of them had not ended and were not about to.
    pub(super) fn cancel_all(&mut self, ticket: Ticket, which: Cancelled, out: &mut Outbox) {
        let jobs: Vec<JobId> = match which {
            Cancelled::Set(set) => match self.job_set(&set) {
                Ok(jobs) => jobs.collect(),
                Err(refusal) => return out.refuse(ticket, refusal),
            },
            Cancelled::Queue(queue) => self.of_queue(&queue),
            Cancelled::Tree(job) => match self.job(job) {
                Ok(_) => self.tree_of(job),
                Err(refusal) => return out.refuse(ticket, refusal),
            },
        };
        let cancelled = jobs.into_iter().filter(|job| self.withdraw(*job, StopCause::Cancel, out));
        let count = cancelled.count() as u64;
        out.reply(ticket, Answer::Count(count));
    }

    /// Cancels these tasks, atomic groups as a whole. Whatever has ended by now keeps its end.
    pub(super) fn cancel_tasks(&mut self, ticket: Ticket, tasks: Vec<TaskId>, out: &mut Outbox) {
        let mut count = 0;
        for task in tasks {
            let Ok(job) = self.job(task.job()) else { continue };
            let group = &job.groups[task.group.index()];
            let is_live = group.task_state(task).is_some_and(TaskState::is_live);
            let is_new = !group.cancelling.contains(&(task.role, task.index));
            let going = matches!(group.status, GroupStatus::Active | GroupStatus::Breaking);
            if !(is_live && is_new && going) {
                continue;
            }
            count += 1;
            if group.start == Start::Atomic {
                self.withdraw_group(task.group, StopCause::Cancel, out);
            } else {
                self.group_mut(task.group).cancelling.insert((task.role, task.index));
                out.stop_task(task, StopCause::Cancel);
            }
        }
        out.reply(ticket, Answer::Count(count));
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

    /// The group can never fit: what has not ended of it is aborted, and the reason kept. What is finished
    /// or being ended by then does not care.
    pub(super) fn unsatisfiable(
        &mut self,
        now: Time,
        group: GroupId,
        explanation: Arc<Explanation>,
        out: &mut Outbox,
    ) {
        let is_kept = self.job(group.job()).is_ok();
        if !is_kept || !self.withdraw_group(group, StopCause::Abort, out) {
            return;
        }
        let job = self.jobs.get_mut(group.job().0).expect("one of its groups is ended");
        job.aborted.get_or_insert_with(|| explanation.sentence().into());
        out.host.push(HostMessage::Unsatisfiable { group, at: now, explanation });
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
