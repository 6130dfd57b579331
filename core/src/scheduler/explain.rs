//! Why a group waits, computed from the state as it is when somebody asks.

use crate::explanation::{Explanation, NoRoom, Reason};
use crate::id::{GroupId, TaskId};
use crate::resources::{KindId, Resources};
use crate::spec::{ShapeSpec, Start};

use super::Scheduler;
use super::groups::{GroupView, RoleView};
use super::packing::without_copies;

/// The kind of which the largest part of the request is missing; ties go to the first.
fn most_lacking(request: &Resources, free: &Resources) -> Option<KindId> {
    let parts = request.lacking_in(free).map(|(kind, missing)| {
        let per_million = i128::from(missing) * 1_000_000 / i128::from(request.get(kind));
        (per_million, std::cmp::Reverse(kind))
    });
    parts.max().map(|(_, std::cmp::Reverse(kind))| kind)
}

impl Scheduler {
    /// Why the tasks of this group wait; `None` if the group is not known or finished.
    pub fn explain(&self, id: GroupId) -> Option<Explanation> {
        let group = self.group(id)?;
        let waiting = group.waiting() + group.held_back();
        Some(self.explanation(id, waiting, self.reason(group, &group.roles)))
    }

    /// Why this task waits; `None` if there is no such task or its group is finished.
    pub fn explain_task(&self, task: TaskId) -> Option<Explanation> {
        let group = self.group(task.group)?;
        let role = group.roles.get(usize::from(task.role))?;
        let waits = role.waits(task.index)?;
        if !waits && group.held_back() == 0 {
            return Some(self.explanation(task.group, 0, Reason::NotWaiting));
        }
        // In an atomic group the hardest role keeps all of them waiting.
        let roles = if group.start == Start::Atomic { &group.roles } else { std::slice::from_ref(role) };
        let waiting = u64::from(role.waiting()) + group.held_back();
        Some(self.explanation(task.group, waiting, self.reason(group, roles)))
    }

    fn explanation(&self, id: GroupId, waiting: u64, reason: Reason) -> Explanation {
        let ahead = if reason == Reason::NotWaiting { 0 } else { self.tasks_ahead_of(id) };
        Explanation { waiting, ahead, reason, settings: self.settings.version }
    }

    /// Why these roles of the group wait.
    fn reason(&self, group: &GroupView, roles: &[RoleView]) -> Reason {
        if group.held_back() > 0 {
            return Reason::Stopping { live: u64::from(group.live_count) };
        }
        let waiting_roles = || roles.iter().filter(|role| role.waiting() > 0);
        let Some(role) = waiting_roles().next() else { return Reason::NotWaiting };
        let shape = group.gang.unwrap_or(role.shape);
        if let Some(window) = self.shapes.get(shape).window {
            return Reason::Window { closes: window.closes };
        }
        if self.is_starved() {
            return Reason::NoCredit;
        }
        // The hardest role speaks for the group: the one for which the fewest nodes would do.
        let mut reasons: Vec<NoRoom> = waiting_roles().map(|role| self.no_room(&role.spec)).collect();
        reasons.sort_by_key(|room| room.nodes - room.too_small);
        let mut room = reasons.swap_remove(0);
        if group.start == Start::Atomic {
            room.placeable = self.placeable(group);
        }
        match room.too_small == room.nodes {
            true => Reason::NeverFits(room),
            false => Reason::NoRoom(room),
        }
    }

    fn no_room(&self, shape: &ShapeSpec) -> NoRoom {
        let mut room = NoRoom::default();
        let request = &shape.request;
        for (_, node) in self.nodes.iter() {
            room.nodes += 1;
            if !request.fits_in(&node.view.capacity) {
                room.too_small += 1;
            } else if !node.takes_work() {
                room.closed += 1;
            } else if let Some(kind) = most_lacking(request, &node.free) {
                room.count_lacking(&self.settings.kinds, kind);
            }
        }
        room.lacking.sort_by(|left, right| (right.1, &left.0).cmp(&(left.1, &right.0)));
        room
    }

    /// How many tasks of an atomic group find room now when its roles take it one after the other.
    fn placeable(&self, group: &GroupView) -> u64 {
        let open = self.nodes.iter().filter(|(_, node)| node.takes_work());
        let mut free: Vec<Resources> = open.map(|(_, node)| node.free.clone()).collect();
        let mut placed = 0;
        for role in group.roles.iter().filter(|role| role.waiting() > 0) {
            let (request, mut left) = (&role.spec.request, u64::from(role.waiting()));
            for free in &mut free {
                let count = request.copies_in(free, left);
                *free = without_copies(free, request, count);
                left -= count;
                placed += count;
            }
        }
        placed
    }

    /// Waiting tasks of groups that came before this one.
    fn tasks_ahead_of(&self, id: GroupId) -> u64 {
        let jobs = self.jobs.iter().take_while(|(job, _)| *job <= id.job().0);
        let groups = jobs.flat_map(|(job, view)| {
            let own = job == id.job().0;
            view.groups.iter().take(if own { id.index() } else { view.groups.len() })
        });
        groups.flatten().filter(|group| !group.withdrawn).map(GroupView::waiting).sum()
    }
}
