//! Sizes that are changed while a group waits or runs. They are absolute, so saying the same twice changes
//! nothing.
//!
//! A start with the sizes of before may be on its way. So the smaller of the old and the new minimum holds
//! until a *fence* has come back by way of ClusterState; a group that has too few members by then starts
//! again as a whole.

use crate::id::{GroupId, Ticket};
use crate::messages::{Answer, Outbox, Refusal, Resize, SchedulerMessage};
use crate::spec::RoleSpec;

use super::{Group, GroupStatus, JobState, Role};

impl JobState {
    /// A role of an elastic group may vary between these sizes from now on.
    pub(super) fn resize(&mut self, ticket: Ticket, resize: Resize, out: &mut Outbox) {
        let Resize { group, min, max, .. } = resize;
        match self.check_resize(&resize) {
            Err(refusal) => out.refuse(ticket, refusal),
            Ok(None) => out.reply(ticket, Answer::Done),
            Ok(Some(role)) => {
                let view = self.group_mut(group);
                view.fences += 1;
                view.roles[usize::from(role)].set_bounds(min, max);
                out.scheduler.push(SchedulerMessage::Resize { group, role, min, max });
                out.reply(ticket, Answer::Done);
            }
        }
    }

    /// Which role is to be resized, or none if it has these sizes already.
    fn check_resize(&self, resize: &Resize) -> Result<Option<u16>, Refusal> {
        let Resize { group: id, min, max, .. } = *resize;
        let job = self.job(id.job())?;
        let spec = job.spec.groups.get(id.index()).ok_or(Refusal::UnknownGroup(id.job()))?;
        let by_name = |role: &RoleSpec| role.name == resize.role;
        let alone = resize.role.is_empty() && spec.roles.len() == 1;
        let role = if alone { Some(0) } else { spec.roles.iter().position(by_name) };
        let role = role.ok_or_else(|| Refusal::UnknownRole { group: id, role: resize.role.clone() })?;
        let group = &job.groups[id.index()];
        let view = &group.roles[role];
        let bounds = view.bounds.ok_or(Refusal::NotElastic(id))?;
        if (bounds.min, bounds.max) == (min, max) {
            return Ok(None);
        }
        let over = matches!(group.status, GroupStatus::Withdrawing | GroupStatus::Finished);
        // A role that begins to end takes no new members, so it can never reach a larger minimum.
        let too_late = view.is_closing() && min > bounds.min;
        if over || view.is_closed() || too_late {
            return Err(Refusal::GroupOver(id));
        }
        let tasks = job.groups.iter().flat_map(|group| &group.roles).map(|role| u64::from(role.tasks()));
        let grown = u64::from(max.saturating_sub(view.tasks()));
        let limit = self.settings.limits.tasks_per_job;
        if tasks.sum::<u64>() + grown > limit {
            return Err(Refusal::TooManyTasks { limit });
        }
        let mut others = group.roles.iter().enumerate().filter(|(index, _)| *index != role);
        let none_needed = min == 0 && others.all(|(_, role)| role.bounds.is_none_or(|one| one.min == 0));
        if max < min.max(1) || none_needed {
            return Err(Refusal::ImpossibleSize { min, max });
        }
        let size = view.live() + view.done();
        if group.live > 0 && group.status == GroupStatus::Active && min > bounds.min.max(size) {
            return Err(Refusal::BelowMinimum { running: size, min });
        }
        Ok(Some(role as u16))
    }
}

impl Role {
    fn set_bounds(&mut self, min: u32, max: u32) {
        self.make_room_for(max);
        self.bounds.iter_mut().for_each(|bounds| bounds.change(min, max));
    }
}

impl Group {
    /// Nothing is on its way any more that was planned with other sizes: from now on only the new ones hold.
    pub(super) fn settle_bounds(&mut self, id: GroupId, out: &mut Outbox) {
        if self.fences > 0 {
            return;
        }
        self.roles.iter_mut().filter_map(|role| role.bounds.as_mut()).for_each(|bounds| bounds.settle());
        if self.status == GroupStatus::Active && self.live > 0 && !self.has_minima() {
            self.begin_to_break(id, out);
        }
    }
}
