//! Watches from outside that tasks are tried again as their roles say: not too often and not too early.

use std::collections::BTreeMap;

use crate::id::{Attempt, TaskId};
use crate::job_state::GroupStatus;
use crate::machine::{Broken, promise};
use crate::messages::{HostMessage, JobEvent};
use crate::outcome::TaskState;
use crate::spec::Retries;
use crate::time::{Span, Time};

use super::world::World;

/// What each task has used of its retries, counted from the events alone.
#[derive(Debug, Default)]
pub(super) struct Tries {
    used: BTreeMap<TaskId, (u32, Time)>,
}

impl Tries {
    pub(super) fn watch(&mut self, messages: &[HostMessage], world: &World) -> Result<(), Broken> {
        for message in messages {
            match message {
                HostMessage::Job(JobEvent::Ended { attempt, outcome, at, state, .. }) => {
                    let Some(retries) = retries_of(*attempt, world) else { continue };
                    if retries.covers(*outcome) && *state == TaskState::Queued {
                        self.count(*attempt, retries, *at)?;
                    }
                }
                HostMessage::Job(JobEvent::Bound { attempt, at, .. }) => {
                    let not_before = self.used.get(&attempt.task).map_or(Time::ZERO, |(_, at)| *at);
                    promise!(4, *at >= not_before, "{attempt} begins before its time");
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn count(&mut self, attempt: Attempt, retries: &Retries, now: Time) -> Result<(), Broken> {
        let (used, not_before) = self.used.entry(attempt.task).or_default();
        *used += 1;
        promise!(4, *used <= retries.most, "{} is tried again for the {used}th time", attempt.task);
        let mut wait = u128::from(retries.backoff.0);
        for _ in 1..*used {
            wait = wait * u128::from(retries.factor) / 1_000;
        }
        *not_before = now + Span(wait.min(u128::from(retries.cap.0)) as u64);
        Ok(())
    }
}

/// Lost members of a group that is being cancelled wait until it is gone, which may be in the same turn,
/// whatever they have used.
fn retries_of(attempt: Attempt, world: &World) -> Option<&Retries> {
    let job = world.jobs.job(attempt.task.job()).ok()?;
    let group = &job.spec.groups[attempt.task.group.index()];
    let status = job.groups[attempt.task.group.index()].status;
    let active = matches!(status, GroupStatus::Active | GroupStatus::Breaking);
    group.roles[usize::from(attempt.task.role)].retries.as_deref().filter(|_| active)
}
