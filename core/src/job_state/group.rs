//! A group as JobState sees it: its roles, and where it is between running, breaking and done.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::collections::Seldom;
use crate::id::{GroupId, TaskId};
use crate::messages::{Outbox, ReturnedTask, SchedulerMessage};
use crate::outcome::{StopCause, TaskState};
use crate::roll_up::{TaskResult, state_of_all};
use crate::spec::{GroupSpec, Start};
use crate::time::Time;

use super::elastic::Bounds;
use super::role::Role;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Group {
    pub start: Start,
    pub status: GroupStatus,
    pub roles: SmallVec<[Role; 1]>,
    /// Live attempts.
    pub live: u32,
    /// Tasks of a breaking group that wait until the whole group can start again.
    pub(super) returned: Seldom<Vec<ReturnedTask>>,
    /// An atomic group starts again no sooner than this.
    pub not_before: Time,
    /// The pool whose claim it holds while it waits.
    pub assigned: Option<Arc<str>>,
    /// Tasks that are being cancelled while the rest of the group goes on.
    pub(super) cancelling: Seldom<BTreeSet<(u16, u32)>>,
    /// Why it is being withdrawn, if it is.
    withdrawal: Option<StopCause>,
    /// What was told to the Scheduler about an elastic group and has not come back by way of ClusterState:
    /// until then members that nobody here knows of may still start.
    pub(super) fences: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GroupStatus {
    Active,
    /// An atomic group lost a member: the others are being stopped, then all start again.
    Breaking,
    /// It was cancelled or aborted; it is final once nothing of it is live.
    Withdrawing,
    Finished,
}

impl Group {
    /// Why it is being withdrawn, if it is.
    pub fn withdrawal(&self) -> Option<StopCause> {
        self.withdrawal
    }

    pub(super) fn new(spec: &GroupSpec) -> Group {
        let mut roles: SmallVec<[Role; 1]> = spec.roles.iter().map(Role::new).collect();
        if spec.is_elastic() {
            for (role, spec) in roles.iter_mut().zip(&spec.roles) {
                role.bounds = Some(Bounds::new(spec.min, spec.max));
            }
        }
        Group {
            start: spec.start,
            status: GroupStatus::Active,
            roles,
            live: 0,
            returned: Seldom::default(),
            not_before: Time::ZERO,
            assigned: None,
            cancelling: Seldom::default(),
            withdrawal: None,
            fences: 0,
        }
    }

    pub fn task_state(&self, task: TaskId) -> Option<TaskState> {
        let state = self.roles.get(usize::from(task.role))?.state(task.index)?;
        Some(if state.is_waiting() { self.waiting_state() } else { state })
    }

    /// The state of its tasks that wait.
    fn waiting_state(&self) -> TaskState {
        if self.assigned.is_some() { TaskState::Assigned } else { TaskState::Queued }
    }

    /// How many tasks wait for a place, whether or not it holds a claim.
    pub fn waiting(&self) -> u64 {
        self.roles.iter().map(|role| u64::from(role.count(TaskState::Queued))).sum()
    }

    /// How many tasks are in this state.
    pub fn count(&self, state: TaskState) -> u64 {
        match state {
            state if !state.is_waiting() => self.roles.iter().map(|role| u64::from(role.count(state))).sum(),
            state if state == self.waiting_state() => self.waiting(),
            _ => 0,
        }
    }

    /// The roll-up of its tasks.
    pub fn state(&self) -> TaskState {
        let present = TaskState::ALL.into_iter().filter(|state| self.count(*state) > 0);
        state_of_all(present).expect("a group has tasks")
    }

    /// The worst that came of its tasks.
    pub fn result(&self) -> TaskResult {
        TaskResult::of_all(self.roles.iter().map(|role| role.result))
    }

    pub(super) fn set_state(&mut self, task: TaskId, state: TaskState) {
        self.roles[usize::from(task.role)].set_state(task.index, state);
    }

    /// Begins the withdrawal; false if there is nothing left to end or it is under way.
    pub(super) fn withdraw(&mut self, cause: StopCause) -> bool {
        if matches!(self.status, GroupStatus::Withdrawing | GroupStatus::Finished) {
            return false;
        }
        self.status = GroupStatus::Withdrawing;
        self.withdrawal = Some(cause);
        self.returned.take();
        true
    }

    /// A broken group of which nothing is live any more queues again as a whole.
    pub(super) fn start_again_when_clear(&mut self, id: GroupId, now: Time, out: &mut Outbox) {
        if self.status != GroupStatus::Breaking || self.live > 0 || now < self.not_before || self.fences > 0 {
            return;
        }
        self.status = GroupStatus::Active;
        if self.is_elastic() {
            // Said on its own: members may have completed while it broke, and then none returns.
            out.scheduler.push(SchedulerMessage::Mend(id));
        }
        for returned in self.returned.take() {
            let TaskId { role, index, .. } = returned.task;
            let tried = self.roles[usize::from(role)].tried.there_mut();
            if let Some(tried) = tried.and_then(|tried| tried.get_mut(&index)) {
                // Its time has come too: the group waits for the last of them.
                tried.delayed = None;
            }
            out.return_task(returned);
        }
    }

    /// Nothing of it is live any more: what has not ended does so as the withdrawal
    /// says. Tells how, and how many.
    pub(super) fn end_rest(&mut self) -> (TaskState, u64) {
        let end = match self.withdrawal {
            Some(StopCause::Abort) => TaskState::Aborted,
            Some(StopCause::GroupDone) => TaskState::Completed,
            _ => TaskState::Cancelled,
        };
        let left: u32 = self.roles.iter().map(Role::unfinished).sum();
        for role in &mut self.roles {
            role.end_rest(end);
        }
        (end, u64::from(left))
    }

    /// True once, when the last task became final.
    pub(super) fn finish_if_done(&mut self) -> bool {
        if self.status == GroupStatus::Finished || !self.roles.iter().all(Role::is_final) {
            return false;
        }
        // A withdrawal that is under way is answered before the group is gone.
        if self.status == GroupStatus::Withdrawing && !self.roles.iter().all(Role::is_closed) {
            return false;
        }
        self.status = GroupStatus::Finished;
        true
    }
}
