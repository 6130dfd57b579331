//! Why a group waits, computed from the state as it is when somebody asks.

use std::collections::BTreeMap;

use crate::explanation::{Explanation, FilterCount, Nearest, NoRoom, Reason};
use crate::id::{GroupId, NodeId, TaskId};
use crate::resources::{KindId, Resources};
use crate::spec::{Filter, NodeFacts, ShapeSpec, Start};

use super::Scheduler;
use super::groups::{GroupView, RoleView};
use super::nodes::NodeEntry;
use super::packing::without_copies;

/// The kind of which the largest part of the request is missing; ties go to the first.
fn most_lacking(request: &Resources, free: &Resources) -> Option<KindId> {
    let parts = request.lacking_in(free).map(|(kind, missing)| {
        let per_million = i128::from(missing) * 1_000_000 / i128::from(request.get(kind));
        (per_million, std::cmp::Reverse(kind))
    });
    parts.max().map(|(_, std::cmp::Reverse(kind))| kind)
}

/// Every filter that the node does not pass, in order.
fn failures(shape: &ShapeSpec, node: &NodeEntry) -> Vec<Filter> {
    let ready = (!node.view.open).then_some(Filter::Ready);
    // A node in deficit takes nothing at all until that is over.
    let room = node.free.has_negative() || !shape.request.fits_in(&node.free);
    let room = room.then_some(Filter::Resources);
    let company = node.company.objections(shape);
    let mut failures: Vec<Filter> =
        ready.into_iter().chain(room).chain(shape.rules.failures(&node.view.facts)).chain(company).collect();
    failures.sort_unstable();
    failures
}

fn count(counts: &mut Vec<(Filter, u64)>, filter: Filter) {
    match counts.iter_mut().find(|(known, _)| *known == filter) {
        Some((_, count)) => *count += 1,
        None => counts.push((filter, 1)),
    }
}

#[derive(Default)]
struct FilterCounts {
    counts: BTreeMap<Filter, FilterCount>,
}

impl FilterCounts {
    fn note(&mut self, failures: &[Filter]) {
        for (position, filter) in failures.iter().enumerate() {
            let empty = FilterCount { filter: *filter, fails: 0, first: 0, only: 0 };
            let count = self.counts.entry(*filter).or_insert(empty);
            count.fails += 1;
            count.first += u64::from(position == 0);
            count.only += u64::from(failures.len() == 1);
        }
    }

    fn counts(self) -> Vec<FilterCount> {
        self.counts.into_values().collect()
    }
}

/// The nodes to which one change is enough, best first.
#[derive(Default)]
struct NearestNode {
    /// Lacks nothing but room: the smallest part of the request, in millionths, over all kinds.
    room: Option<(i128, NodeId)>,
    ready: Option<NodeId>,
    suitable: Option<(Filter, NodeId)>,
}

impl NearestNode {
    fn note(&mut self, id: NodeId, node: &NodeEntry, request: &Resources, failures: &[Filter]) {
        let [only] = failures else { return };
        match only {
            Filter::Resources if node.free.has_negative() => {}
            Filter::Resources => {
                let part = |(kind, missing)| i128::from(missing) * 1_000_000 / i128::from(request.get(kind));
                let parts: i128 = request.lacking_in(&node.free).map(part).sum();
                let best = self.room.is_none_or(|best| (parts, id) < best);
                self.room = if best { Some((parts, id)) } else { self.room };
            }
            Filter::Ready => self.ready = self.ready.or(Some(id)),
            // No change makes another node the one that is wanted.
            Filter::Node => {}
            filter => self.suitable = self.suitable.or(Some((*filter, id))),
        }
    }
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
        if self.has_more_to_plan() {
            return Reason::NextTurn;
        }
        // The hardest role speaks for the group: the one for which the fewest nodes would do.
        let mut reasons: Vec<NoRoom> = waiting_roles().map(|role| self.no_room(&role.spec)).collect();
        reasons.sort_by_key(|room| room.possible);
        let mut room = reasons.swap_remove(0);
        if group.start == Start::Atomic {
            room.placeable = self.placeable(group);
            // What one task needs is not what the group needs.
            room.nearest = None;
        }
        match room.possible == 0 {
            true => Reason::NeverFits(room),
            false => Reason::NoRoom(room),
        }
    }

    fn no_room(&self, shape: &ShapeSpec) -> NoRoom {
        let mut room = NoRoom::default();
        let mut filters = FilterCounts::default();
        let mut nearest = NearestNode::default();
        let request = &shape.request;
        for (id, node) in self.nodes.iter() {
            room.nodes += 1;
            let unsuitable = shape.rules.failures(&node.view.facts).next();
            let is_too_small = !request.fits_in(&node.view.capacity);
            room.possible += u64::from(unsuitable.is_none() && !is_too_small);
            if !node.view.open || node.free.has_negative() {
                room.closed += 1;
            } else if is_too_small {
                room.too_small += 1;
            } else if let Some(kind) = most_lacking(request, &node.free) {
                room.count_lacking(&self.settings.kinds, kind);
            } else if let Some(filter) = unsuitable {
                count(&mut room.unsuitable, filter);
            } else if let Some(filter) = node.company.objections(shape).next() {
                count(&mut room.occupied, filter);
            }
            let failures = failures(shape, node);
            filters.note(&failures);
            nearest.note(id, node, request, &failures);
        }
        room.lacking.sort_by(|left, right| (right.1, &left.0).cmp(&(left.1, &right.0)));
        room.unsuitable.sort_unstable();
        room.occupied.sort_unstable();
        room.filters = filters.counts();
        room.nearest = Some(self.nearest(nearest, shape));
        room
    }

    fn nearest(&self, found: NearestNode, shape: &ShapeSpec) -> Nearest {
        let name = |id: NodeId| self.nodes.get(id).expect("just seen").view.facts.name.clone();
        let kinds = &self.settings.kinds;
        let show =
            |(kind, amount): (KindId, i64)| (kinds.name(kind).to_owned(), kinds.unit(kind).format(amount));
        if let Some((_, id)) = found.room {
            let free = &self.nodes.get(id).expect("just seen").free;
            let missing = shape.request.lacking_in(free).map(show).collect();
            return Nearest::Room { node: name(id), missing };
        }
        if let Some(id) = found.ready {
            return Nearest::Ready { node: name(id) };
        }
        if let Some(name) = &shape.rules.node {
            let pinned = self.nodes.named(name);
            return match pinned {
                None => Nearest::NamedNode { node: name.clone() },
                Some(node) => Nearest::Several { node: name.clone(), filters: failures(shape, node) },
            };
        }
        if let Some((filter, id)) = found.suitable {
            return Nearest::Suitable { node: name(id), filter };
        }
        Nearest::AnotherNode { request: shape.request.iter().map(show).collect() }
    }

    /// How many tasks of an atomic group find room now when its roles take it one after the other.
    fn placeable(&self, group: &GroupView) -> u64 {
        let open = self.nodes.iter().filter(|(_, node)| node.takes_work());
        let mut free: Vec<(&NodeFacts, Resources)> =
            open.map(|(_, node)| (&*node.view.facts, node.free.clone())).collect();
        let mut placed = 0;
        for role in group.roles.iter().filter(|role| role.waiting() > 0) {
            let (request, mut left) = (&role.spec.request, u64::from(role.waiting()));
            let suits = |facts: &NodeFacts| role.spec.rules.allow(facts);
            for (_, free) in free.iter_mut().filter(|(facts, _)| suits(facts)) {
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
