//! Jobs that are to stand elsewhere: another queue, band or priority, at once.

use std::sync::Arc;

use crate::id::{JobId, Ticket};
use crate::messages::{Addressed, Answer, HostMessage, Outbox, Refusal, Reprioritised};
use crate::spec::{JobSpec, StandingChange};

use super::JobState;

impl JobState {
    /// Changes how a job, or every job of a set, stands. Finished jobs stay as they were.
    pub(super) fn reprioritise(
        &mut self,
        ticket: Ticket,
        jobs: &Addressed,
        change: &StandingChange,
        out: &mut Outbox,
    ) {
        let jobs: Result<Vec<JobId>, Refusal> = match jobs {
            Addressed::Job(job) => self.job(*job).map(|_| vec![*job]),
            Addressed::Set(set) => self.job_set(set).map(Iterator::collect),
        };
        match jobs {
            Err(refusal) => out.refuse(ticket, refusal),
            Ok(jobs) => {
                let moved = jobs.into_iter().filter(|job| self.restand(*job, change, out)).collect();
                out.reply(ticket, Answer::Jobs(moved));
            }
        }
    }

    /// Whether anything is other than before.
    fn restand(&mut self, id: JobId, change: &StandingChange, out: &mut Outbox) -> bool {
        let job = self.jobs.get_mut(id.0).expect("the caller has seen the job");
        let standing = change.applied_to(&job.spec.standing);
        if job.finished.is_some() || standing == job.spec.standing {
            return false;
        }
        if standing.queue != job.spec.standing.queue {
            self.queues.leave(&job.spec.standing.queue, id);
            self.queues.enter(&standing.queue, id);
        }
        let spec = JobSpec { standing: standing.clone(), ..JobSpec::clone(&job.spec) };
        job.spec = Arc::new(spec);
        out.host.push(HostMessage::Respecified { job: id, spec: Arc::clone(&job.spec) });
        out.reprioritised(Reprioritised { job: id, standing });
        true
    }
}
