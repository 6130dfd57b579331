//! Watches from outside how jobs end: what nobody aborted is not aborted, what was aborted is not called
//! cancelled, and whatever has ended keeps its end.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{GroupId, JobId, TaskId};
use crate::job_state::Group;
use crate::machine::{Broken, promise};
use crate::messages::{HostMessage, JobEvent};
use crate::outcome::{Outcome, StopCause, TaskState};

use super::world::World;

/// What was told of the ends of tasks and jobs.
#[derive(Debug, Default)]
pub(super) struct Endings {
    aborted: BTreeSet<JobId>,
    /// Groups that were being cancelled before their job was aborted: the first of the two says which.
    cancelled_before: BTreeSet<GroupId>,
    /// Groups that can never fit and were ended for that.
    unable: BTreeSet<GroupId>,
    final_states: BTreeMap<TaskId, TaskState>,
}

impl Endings {
    pub(super) fn watch(&mut self, messages: &[HostMessage], world: &World) -> Result<(), Broken> {
        for message in messages {
            match message {
                HostMessage::Aborted { job, .. } => self.note_abort(*job, world),
                HostMessage::Unsatisfiable { group, .. } => drop(self.unable.insert(*group)),
                HostMessage::Job(JobEvent::Ended { attempt, outcome, state, .. }) => {
                    let (task, aborted) = (attempt.task, self.aborted.contains(&attempt.task.job()));
                    let unable = self.unable.contains(&task.group);
                    let aborted = aborted || unable || has_hosts(world, task.group);
                    promise!(9, aborted || *outcome != Outcome::Aborted, "{attempt} was aborted by nobody");
                    let before = self.final_states.get(&task);
                    promise!(4, before.is_none(), "{task} ends again after it was {before:?}");
                    if state.is_final() {
                        self.final_states.insert(task, *state);
                    }
                }
                HostMessage::Job(JobEvent::Finished { job, state, result, .. }) => {
                    self.finished(*job, *state, world)?;
                    let view =
                        world.jobs.job(*job).map_err(|_| Broken::new(4, "a job is gone at its end"))?;
                    promise!(4, view.result() == *result, "{job} is said to have come to {result:?}");
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn note_abort(&mut self, id: JobId, world: &World) {
        if !self.aborted.insert(id) {
            return;
        }
        let groups = world.jobs.job(id).map_or(&[][..], |job| &job.groups);
        let cancelled = |group: &Group| group.withdrawal().is_some_and(|cause| cause != StopCause::Abort);
        let before = groups.iter().enumerate().filter(|(_, group)| cancelled(group));
        self.cancelled_before.extend(before.map(|(index, _)| GroupId::new(id, index as u16)));
    }

    /// Every task is in the state that was told of it, and the job in the worst of them.
    fn finished(&self, id: JobId, state: TaskState, world: &World) -> Result<(), Broken> {
        let job = world.jobs.job(id).map_err(|_| Broken::new(4, "a job is gone at its end"))?;
        let (mut present, mut unable) = (BTreeSet::new(), false);
        for (index, group) in job.groups.iter().enumerate() {
            let id = GroupId::new(id, index as u16);
            let is_unable = self.unable.contains(&id);
            unable |= is_unable;
            for (role, view) in group.roles.iter().enumerate() {
                for index in 0..view.tasks() {
                    let task = TaskId { group: id, role: role as u16, index };
                    let state = group.task_state(task).expect("the role has this task");
                    let told = self.final_states.get(&task).copied();
                    promise!(4, told.is_none_or(|told| told == state), "{task} is {state:?}, not {told:?}");
                    let cancelled = told.is_none() && state == TaskState::Cancelled;
                    let aborted = self.aborted.contains(&id.job()) && !self.cancelled_before.contains(&id);
                    promise!(9, !(cancelled && aborted), "{task} was aborted, not cancelled");
                    promise!(9, !(cancelled && is_unable), "{task} could never fit, it was not cancelled");
                    present.insert(state);
                }
            }
        }
        let aborted = self.aborted.contains(&id);
        promise!(
            9,
            (aborted || unable) == job.aborted.is_some(),
            "{id} does not know whether it was aborted"
        );
        let groups = (0..job.groups.len()).map(|index| GroupId::new(id, index as u16));
        let may_be = aborted || unable || groups.into_iter().any(|group| has_hosts(world, group));
        promise!(9, may_be || !present.contains(&TaskState::Aborted), "{id} was aborted by nobody");
        let worst = [TaskState::Aborted, TaskState::Failed, TaskState::Cancelled, TaskState::Completed]
            .into_iter()
            .find(|state| present.contains(state));
        promise!(4, worst == Some(state), "{id} ended as {state:?}, the worst of its tasks is {worst:?}");
        Ok(())
    }
}

/// Whether some of its tasks are guests, which are aborted when their hosts end.
fn has_hosts(world: &World, group: GroupId) -> bool {
    let job = world.jobs.job(group.job());
    job.is_ok_and(|job| job.groups[group.index()].roles.iter().any(|role| role.host.is_some()))
}
