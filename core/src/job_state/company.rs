//! Tasks that are there for others: guests end with their hosts, auxiliary ones with their group.

use crate::id::{GroupId, TaskId};
use crate::messages::{JobEvent, Outbox, SchedulerMessage};
use crate::mutation::{self, Mutation};
use crate::outcome::{StopCause, TaskState};
use crate::roll_up::TaskResult;
use crate::time::Time;

use super::retries::Next;
use super::role::Role;
use super::{Group, GroupStatus, JobState};

impl Group {
    /// What becomes of a task whose attempt has ended: a guest does not come back without its host.
    pub(super) fn next_of_guest(&self, task: TaskId, next: Next) -> Next {
        match next {
            Next::AtOnce | Next::Later(_) if self.has_lost_its_host(task) => {
                Next::Final(self.end_of_guest(task.role))
            }
            next => next,
        }
    }

    /// A task that is being cancelled by itself does not come back, however its attempt has ended.
    pub(super) fn next_of_cancelled(&mut self, task: TaskId, next: Next) -> Next {
        let keep = mutation::active(Mutation::RequeueCancelled);
        let cancelling = self.cancelling.there_mut();
        if keep || !cancelling.is_some_and(|tasks| tasks.remove(&(task.role, task.index))) {
            return next;
        }
        match next {
            Next::AtOnce | Next::Later(_) => Next::Final(TaskState::Cancelled),
            next => next,
        }
    }

    /// Whether this task is a guest whose host has ended.
    fn has_lost_its_host(&self, task: TaskId) -> bool {
        let host = self.roles[usize::from(task.role)].host.map(|host| &self.roles[usize::from(host)]);
        let state = host.and_then(|host| host.state(task.index));
        state.is_some_and(TaskState::is_final)
    }

    fn end_of_guest(&self, role: u16) -> TaskState {
        let auxiliary = self.roles[usize::from(role)].auxiliary;
        if auxiliary { TaskState::Completed } else { TaskState::Aborted }
    }

    fn is_going(&self) -> bool {
        matches!(self.status, GroupStatus::Active | GroupStatus::Breaking)
    }

    /// Whether everything it is for is done, and something is left.
    fn needs_nobody_any_more(&self) -> bool {
        self.is_going()
            && self.roles.iter().any(|role| role.auxiliary && !role.is_final())
            && self.roles.iter().all(|role| role.auxiliary || role.is_final())
    }
}

impl JobState {
    /// A task is final: its guests end, and with the last that its group is for everybody else of it.
    pub(super) fn end_company(&mut self, now: Time, task: TaskId, out: &mut Outbox) {
        let group = self.group_mut(task.group);
        if group.is_going() && group.roles.iter().any(|role| role.host == Some(task.role)) {
            self.end_guests(now, task, out);
        }
        self.end_auxiliary(task.group, out);
    }

    /// With the last that a group is for everybody else of it ends.
    pub(super) fn end_auxiliary(&mut self, id: GroupId, out: &mut Outbox) {
        let group = self.group_mut(id);
        if group.needs_nobody_any_more() && !mutation::active(Mutation::KeepAuxiliary) {
            self.withdraw_group(id, StopCause::GroupDone, out);
        }
    }

    fn end_guests(&mut self, now: Time, host: TaskId, out: &mut Outbox) {
        let group = self.group_mut(host.group);
        let mut waiting = Vec::new();
        let is_guest = |role: &Role| role.host == Some(host.role);
        for (role, view) in group.roles.iter().enumerate().filter(|(_, view)| is_guest(view)) {
            let guest = TaskId { role: role as u16, ..host };
            match view.state(guest.index) {
                Some(TaskState::Queued) => waiting.push(guest),
                Some(state) if state.is_live() && !mutation::active(Mutation::KeepGuests) => {
                    let auxiliary = view.auxiliary;
                    let cause = if auxiliary { StopCause::GroupDone } else { StopCause::HostEnded };
                    out.stop_task(guest, cause);
                }
                _ => {}
            }
        }
        for guest in waiting {
            self.drop_returned(now, guest, out);
        }
    }

    /// A guest that was to start again with its group does not, because its host is gone.
    fn drop_returned(&mut self, now: Time, guest: TaskId, out: &mut Outbox) {
        let group = self.group_mut(guest.group);
        debug_assert!(group.status == GroupStatus::Breaking, "guests start together with their hosts");
        if let Some(returned) = group.returned.there_mut() {
            returned.retain(|returned| returned.task != guest);
        }
        let state = group.end_of_guest(guest.role);
        group.set_state(guest, state);
        let role = &mut group.roles[usize::from(guest.role)];
        let result = if state == TaskState::Completed { TaskResult::None } else { TaskResult::Warn };
        role.result = role.result.max(result);
        let tried = role.tried.there_mut().and_then(|tried| tried.get_mut(&guest.index));
        let delayed = tried.and_then(|tried| tried.delayed.take());
        if let Some((at, _)) = delayed {
            self.delays.remove(&(at, guest));
        }
        out.scheduler.push(SchedulerMessage::Member {
            group: guest.group,
            role: guest.role,
            comes_back: false,
        });
        out.job_event(JobEvent::NotRun { group: guest.group, state, tasks: 1, at: now });
    }
}
