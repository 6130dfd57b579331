//! Elastic groups: atomic ones whose roles may vary in size between a smallest and a largest number of
//! members.
//!
//! The largest size is a ceiling, not an amount of work. A member that is lost above the minimum only makes
//! the group smaller. Once members of a role complete it grows no more, and when enough are done and none is
//! live, those that never ran are not needed: they end as unused.
//!
//! The Scheduler grows a group on its own, so a member may be on its way that nobody here has heard of. Before
//! a group starts again as a whole, or a role is called done, the Scheduler is told and a *fence* comes back
//! by way of ClusterState, behind everything that was planned before.

use serde::{Deserialize, Serialize};

use crate::id::{GroupId, TaskId};
use crate::messages::{JobEvent, Outbox, ReturnedTask, SchedulerMessage};
use crate::outcome::TaskState;
use crate::time::Time;

use super::{Group, GroupStatus, JobState, Role};

/// Between which sizes a role may vary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bounds {
    pub min: u32,
    pub max: u32,
    /// A smaller minimum of before, with which a start may still be on its way.
    before: u32,
    /// It grows no more.
    closing: bool,
}

impl Bounds {
    pub(super) fn new(min: u32, max: u32) -> Bounds {
        Bounds { min, max, before: min, closing: false }
    }

    /// Other sizes hold from now on. The smallest minimum of those with which a start may still be on its way
    /// is remembered.
    pub(super) fn change(&mut self, min: u32, max: u32) {
        self.before = self.least();
        (self.min, self.max) = (min, max);
    }

    /// With fewer members than this it does not run.
    fn least(&self) -> u32 {
        self.min.min(self.before)
    }

    /// What was on its way has arrived.
    pub(super) fn settle(&mut self) {
        self.before = self.min;
    }
}

impl Role {
    /// Whether enough members run or are done.
    fn has_minimum(&self) -> bool {
        self.bounds.is_none_or(|bounds| self.live() + self.done() >= bounds.least())
    }

    /// Whether there is nothing left to wait for: enough is done and nothing runs.
    fn is_over(&self) -> bool {
        self.bounds.is_some_and(|bounds| self.live() == 0 && self.done() >= bounds.min.max(1))
    }

    pub(super) fn is_closing(&self) -> bool {
        self.bounds.is_some_and(|bounds| bounds.closing)
    }

    /// How many members it lacks of its minimum.
    fn lacks(&self) -> u32 {
        self.bounds.map_or(0, |bounds| bounds.min.saturating_sub(self.live() + self.done()))
    }

    /// How many members it would still take.
    fn growth(&self) -> u32 {
        let delayed = self.tried.values().filter(|tried| tried.delayed.is_some()).count() as u32;
        let size = self.live() + self.done() + delayed;
        // A member may complete while its group breaks, when nothing is said of it yet.
        let begins_to_end = self.count(TaskState::Completed) > 0;
        let bounds = self.bounds.filter(|bounds| !bounds.closing && !begins_to_end);
        bounds.map_or(0, |bounds| bounds.max.saturating_sub(size).min(self.tasks() - size))
    }
}

impl Group {
    pub fn is_elastic(&self) -> bool {
        self.roles.iter().any(|role| role.bounds.is_some())
    }

    /// Whether every role of an elastic group has its minimum.
    pub fn has_minima(&self) -> bool {
        self.is_elastic() && self.roles.iter().all(Role::has_minimum)
    }

    /// How many members an elastic group would take now: what its minima lack, or up to its largest size.
    pub fn wanted(&self) -> u64 {
        let of = if self.has_minima() { Role::growth } else { Role::lacks };
        self.roles.iter().map(|role| u64::from(of(role))).sum()
    }

    /// The time of a member has come for which it waited: it returns on its own, or with its broken group.
    pub(super) fn return_member(&mut self, returned: ReturnedTask, now: Time, out: &mut Outbox) {
        let id = returned.task.group;
        match self.status {
            GroupStatus::Active => out.return_task(returned),
            GroupStatus::Breaking if self.returned.iter().all(|known| known.task != returned.task) => {
                self.returned.push(returned);
            }
            _ => {}
        }
        self.start_again_when_clear(id, now, out);
    }

    /// Roles that are to grow no more from now on.
    fn begin_closing(&mut self) -> Vec<u16> {
        let all_over = self.roles.iter().all(|role| {
            role.bounds.is_some_and(|bounds| bounds.min == 0 && role.live() == 0) || role.is_over()
        });
        let mut closing = Vec::new();
        for (index, role) in self.roles.iter_mut().enumerate() {
            let begins = role.count(TaskState::Completed) > 0 || role.is_over() || all_over;
            if let Some(bounds) = role.bounds.as_mut().filter(|bounds| begins && !bounds.closing) {
                bounds.closing = true;
                closing.push(index as u16);
            }
        }
        closing
    }
}

impl JobState {
    /// After something of an elastic group has ended: roles that begin to complete grow no more, and what is
    /// left of those that are over is not needed.
    pub(super) fn close_roles(&mut self, now: Time, id: GroupId, out: &mut Outbox) {
        let group = self.group_mut(id);
        if !group.is_elastic() || group.status != GroupStatus::Active {
            return;
        }
        for role in group.begin_closing() {
            group.fences += 1;
            out.scheduler.push(SchedulerMessage::Close { group: id, role });
        }
        if group.fences > 0 {
            return;
        }
        let (mut forgotten, mut unused) = (Vec::new(), 0);
        for (index, role) in group.roles.iter_mut().enumerate() {
            let enough = role.bounds.is_some_and(|bounds| role.done() >= bounds.min);
            if role.is_closed() || !role.is_closing() || role.live() > 0 || !enough {
                continue;
            }
            unused += u64::from(role.unfinished());
            if !role.is_final() {
                out.scheduler.push(SchedulerMessage::Discard { group: id, role: index as u16 });
            }
            role.discard_rest();
            for (task, tried) in role.tried.there_mut().into_iter().flatten() {
                let task = TaskId { group: id, role: index as u16, index: *task };
                forgotten.extend(tried.delayed.take().map(|(at, _)| (at, task)));
            }
        }
        for (at, task) in forgotten {
            self.delays.remove(&(at, task));
            let (group, role, comes_back) = (id, task.role, false);
            out.scheduler.push(SchedulerMessage::Member { group, role, comes_back });
        }
        if unused > 0 {
            let state = TaskState::Unused;
            out.job_event(JobEvent::NotRun { group: id, state, tasks: unused, at: now });
            self.end_auxiliary(id, out);
        }
    }

    /// What was planned before a break or a close has been dealt with.
    pub(super) fn fenced(&mut self, now: Time, id: GroupId, out: &mut Outbox) {
        if self.job(id.job()).is_err() {
            return;
        }
        let group = self.group_mut(id);
        group.fences -= 1;
        group.settle_bounds(id, out);
        group.start_again_when_clear(id, now, out);
        self.close_roles(now, id, out);
        self.finish_group_if_done(now, id, out);
    }
}
