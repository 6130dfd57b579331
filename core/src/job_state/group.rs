//! A group as JobState sees it: its roles, and where it is between running, breaking and done.

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::messages::{Outbox, ReturnedTask};
use crate::outcome::TaskState;
use crate::spec::{GroupSpec, Start};
use crate::time::Time;

use super::role::{Role, severity};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Group {
    pub start: Start,
    pub status: GroupStatus,
    pub roles: Vec<Role>,
    /// Live attempts.
    pub live: u32,
    /// Tasks of a breaking group that wait until the whole group can start again.
    pub(super) returned: Vec<ReturnedTask>,
    /// An atomic group starts again no sooner than this.
    pub not_before: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum GroupStatus {
    Active,
    /// An atomic group lost a member: the others are being stopped, then all start again.
    Breaking,
    /// It was cancelled; it is final once nothing of it is live.
    Withdrawing,
    Finished,
}

impl Group {
    pub(super) fn new(spec: &GroupSpec) -> Group {
        let roles = spec.roles.iter().map(|role| Role::new(role.max)).collect();
        Group {
            start: spec.start,
            status: GroupStatus::Active,
            roles,
            live: 0,
            returned: Vec::new(),
            not_before: Time::ZERO,
        }
    }

    pub fn task_state(&self, task: TaskId) -> Option<TaskState> {
        self.roles.get(usize::from(task.role))?.state(task.index)
    }

    /// How many tasks are in this state.
    pub fn count(&self, state: TaskState) -> u64 {
        self.roles.iter().map(|role| u64::from(role.count(state))).sum()
    }

    /// The roll-up of its tasks: the furthest of the unfinished ones, else the worst end.
    pub fn state(&self) -> TaskState {
        let present = TaskState::ALL.into_iter().filter(|state| self.count(*state) > 0);
        present.max_by_key(|state| severity(*state)).expect("a group has tasks")
    }

    pub(super) fn set_state(&mut self, task: TaskId, state: TaskState) {
        self.roles[usize::from(task.role)].set_state(task.index, state);
    }

    /// Begins the withdrawal; false if there is nothing left to cancel or it is under way.
    pub(super) fn withdraw(&mut self) -> bool {
        if matches!(self.status, GroupStatus::Withdrawing | GroupStatus::Finished) {
            return false;
        }
        self.status = GroupStatus::Withdrawing;
        self.returned.clear();
        true
    }

    /// A broken group of which nothing is live any more queues again as a whole.
    pub(super) fn start_again_when_clear(&mut self, now: Time, out: &mut Outbox) {
        if self.status != GroupStatus::Breaking || self.live > 0 || now < self.not_before {
            return;
        }
        self.status = GroupStatus::Active;
        for task in self.returned.drain(..) {
            out.return_task(task);
        }
    }

    pub(super) fn cancel_rest(&mut self) {
        for role in &mut self.roles {
            role.cancel_rest();
        }
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
