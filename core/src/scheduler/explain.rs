//! Why a group waits, computed from the state as it is when somebody asks.

use crate::explanation::{
    Explanation, InOnePool, Nearest, NoRoom, NodeExplanation, Reason, Subject, Surplus,
};
use crate::id::{GroupId, TaskId};
use crate::messages::Refusal;
use crate::resources::Resources;
use crate::spec::Start;

use super::Scheduler;
use super::elastic::Phase;
use super::groups::{GroupView, RoleView};
use super::nodes::NodeEntry;
use super::obstacles::on_node;
use super::packing::without_copies;
use super::prospects::Prospect;

impl Scheduler {
    /// Gets ready for questions: those that follow, until something changes, look at each way in which
    /// nodes stand once. Without it every question looks at every node.
    pub fn prepare_to_explain(&mut self) {
        self.nodes.prepare_to_explain();
    }

    /// What keeps the waiting tasks of a group, or one task, from the node of this name.
    pub fn explain_on(&self, subject: Subject, node: &str) -> Result<Vec<NodeExplanation>, Refusal> {
        let (id, only) = match subject {
            Subject::Group(group) => (group, None),
            Subject::Task(task) => (task.group, Some(task)),
        };
        let unknown = || match subject {
            Subject::Group(group) => Refusal::UnknownGroup(group.job()),
            Subject::Task(task) => Refusal::UnknownTask(task),
        };
        let group = self.group(id).ok_or_else(unknown)?;
        if let Some(task) = only {
            let role = group.roles.get(usize::from(task.role)).ok_or_else(unknown)?;
            role.waits(task.index).ok_or_else(unknown)?;
        }
        let (_, entry) = self.nodes.named(node).ok_or_else(|| Refusal::UnknownNode(node.to_owned()))?;
        let asked = |index: usize, role: &RoleView| match only {
            Some(task) => usize::from(task.role) == index && role.waits(task.index) == Some(true),
            None => role.waiting() > 0,
        };
        let roles = group.roles.iter().enumerate().filter(|(index, role)| asked(*index, role));
        let explain = |(index, role): (usize, &RoleView)| NodeExplanation {
            group: id,
            role: index as u16,
            on_node: on_node(&role.spec, entry, &self.settings.kinds),
            settings: self.settings.version,
        };
        Ok(roles.map(explain).collect())
    }

    /// The same as [`Scheduler::explain`], with what the gate could do for the group.
    pub fn explain_with_gate(&mut self, id: GroupId) -> Option<Explanation> {
        let mut explanation = self.explain(id)?;
        if matches!(explanation.reason, Reason::NoRoom(_)) {
            explanation.gate = self.outlook(id).map(Box::new);
        }
        Some(explanation)
    }

    /// Why the tasks of this group wait; `None` if the group is not known or finished.
    pub fn explain(&self, id: GroupId) -> Option<Explanation> {
        let group = self.group(id)?;
        let waiting = group.waiting() + group.held_back();
        Some(self.explanation(id, waiting, self.reason(id, group, &group.roles)))
    }

    /// Why this task waits; `None` if there is no such task or its group is finished.
    pub fn explain_task(&self, task: TaskId) -> Option<Explanation> {
        let group = self.group(task.group)?;
        let role = group.roles.get(usize::from(task.role))?;
        let waits = role.waits(task.index)?;
        if !waits && group.held_back() == 0 {
            let runs = self.explain_running(task).map(|runs| Reason::Running(Box::new(runs)));
            return Some(self.explanation(task.group, 0, runs.unwrap_or(Reason::NotWaiting)));
        }
        // In an atomic group the hardest role keeps all of them waiting.
        let roles = if group.start == Start::Atomic { &group.roles } else { std::slice::from_ref(role) };
        let waiting = u64::from(role.waiting()) + group.held_back();
        Some(self.explanation(task.group, waiting, self.reason(task.group, group, roles)))
    }

    pub(super) fn explanation(&self, id: GroupId, waiting: u64, reason: Reason) -> Explanation {
        let waits = !matches!(reason, Reason::NotWaiting | Reason::Running(_));
        let ahead = if waits { self.tasks_ahead_of(id) } else { 0 };
        let group = self.group(id).filter(|_| waits);
        let shape = group.and_then(|group| {
            let role = group.roles.iter().find(|role| role.waiting() > 0).or(group.roles.first());
            Some(group.gang.unwrap_or(role?.shape))
        });
        let share = shape.and_then(|shape| self.explain_share(id, shape)).map(Box::new);
        let claim = if waits { self.claim_note(id) } else { None };
        Explanation { waiting, ahead, reason, share, claim, gate: None, settings: self.settings.version }
    }

    /// Why these roles of the group wait.
    fn reason(&self, id: GroupId, group: &GroupView, roles: &[RoleView]) -> Reason {
        if group.held_back() > 0 {
            return Reason::Stopping { live: u64::from(group.live_count) };
        }
        if let Some(Phase::Running | Phase::Starting { .. }) = group.phase() {
            return self.why_no_growth(group);
        }
        let waiting_roles = || roles.iter().filter(|role| role.wants_room());
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
        let is_unable = group.start == Start::Atomic && self.prospect(group) == Prospect::Never;
        self.reason_of_nodes(id, group, roles, is_unable)
    }

    /// How the nodes stand for these roles of the group, of which something waits.
    pub(super) fn reason_of_nodes(
        &self,
        id: GroupId,
        group: &GroupView,
        roles: &[RoleView],
        is_unable: bool,
    ) -> Reason {
        let waiting_roles = || roles.iter().filter(|role| role.wants_room());
        // The hardest role speaks for the group: the one for which the fewest nodes would do.
        let mut reasons: Vec<NoRoom> = waiting_roles().map(|role| self.no_room(&role.spec)).collect();
        reasons.sort_by_key(|room| room.possible);
        let mut room = reasons.swap_remove(0);
        if group.start == Start::Atomic {
            let (placeable, left) = self.placeable(group, |_| true);
            room.placeable = placeable;
            room.in_one_pool = self.in_one_pool(id, group);
            room.within = self.within_hops(group);
            // What one task needs is not what the group needs.
            let stays_near = room.within.is_some() || room.in_one_pool.is_some() || group.bound.is_some();
            room.nearest = (!stays_near).then(|| self.other_nodes(group, &left)).flatten();
        }
        if room.possible == 0 || is_unable {
            return Reason::NeverFits(room);
        }
        let shape = group.gang.or_else(|| waiting_roles().next().map(|role| role.shape));
        let limited = |role: &RoleView| self.shapes.is_limited(group.gang.unwrap_or(role.shape));
        match waiting_roles().all(limited).then(|| self.explain_limit(shape?, self.now)) {
            Some(Some(limit)) => Reason::Limited(limit),
            // It was released by time alone: its deadline has come, or comes at once.
            Some(None) => Reason::NextTurn,
            None => Reason::NoRoom(room),
        }
    }

    /// The pool in which most of an atomic group that stays in one would find room.
    fn in_one_pool(&self, id: GroupId, group: &GroupView) -> Option<InOnePool> {
        if !self.decides_pool(id) {
            return None;
        }
        let mut best = InOnePool { placeable: 0, wanted: group.waiting(), best: None };
        for pool in self.nodes.pools.names() {
            let (placeable, _) = self.placeable(group, |node| *node.view.facts.pool == **pool);
            if placeable > best.placeable {
                (best.placeable, best.best) = (placeable, Some(pool.to_string()));
            }
        }
        Some(best)
    }

    /// Why an elastic group that has its minimum does not grow.
    fn why_no_growth(&self, group: &GroupView) -> Reason {
        let more: u64 = group.roles.iter().map(|role| u64::from(role.surplus())).sum();
        if group.waiting() == 0 {
            return Reason::NotWaiting;
        }
        let rests = group.elastic.as_ref().and_then(|elastic| elastic.thaws);
        let short = |role: &RoleView| self.short_of_headroom(&role.spec.request).is_some();
        let mut queued = group.roles.iter().filter(|role| role.queued > 0);
        let because = match rests {
            _ if more == 0 => Surplus::Enough,
            Some(until) => Surplus::Resting { until },
            None if queued.any(short) => Surplus::Headroom,
            None => Surplus::NothingFree,
        };
        Reason::Surplus { more, because }
    }

    /// The nodes with which an atomic group could start: one for each task that finds no room. Who minds
    /// company is sure of a node only if it is alone there.
    fn other_nodes(&self, group: &GroupView, left: &[u64]) -> Option<Nearest> {
        let roles = || group.roles.iter().filter(|role| role.wants_room());
        if roles().any(|role| role.spec.rules.node.is_some()) {
            return None;
        }
        let minds_company = roles().any(|role| role.spec.minds_company());
        let nodes = roles().zip(left).map(|(role, left)| {
            let tasks = if minds_company { u64::from(role.needed()) } else { *left };
            (tasks, self.amounts(&role.spec.request))
        });
        let nodes: Vec<_> = nodes.filter(|(tasks, _)| *tasks > 0).collect();
        (!nodes.is_empty()).then_some(Nearest::OtherNodes { nodes })
    }

    /// How many tasks of an atomic group find room now when its roles take it one after the other, on
    /// nodes that stand alike one after the other, and how many of each role that wants some do not.
    fn placeable(&self, group: &GroupView, counts: impl Fn(&NodeEntry) -> bool) -> (u64, Vec<u64>) {
        let waiting = || group.roles.iter().filter(|role| role.wants_room());
        let alike = self.nodes.alike(waiting().map(|role| &*role.spec)).into_iter();
        let entry = |id| self.nodes.get(id).expect("only nodes that are there stand somewhere");
        let alike =
            alike.map(|(id, nodes)| (entry(id), nodes)).filter(|(node, _)| node.takes_work() && counts(node));
        let mut free: Vec<(&NodeEntry, Resources, u64)> =
            alike.map(|(node, nodes)| (node, node.free.clone(), nodes)).collect();
        let (mut placed, mut all_left) = (0, Vec::new());
        for role in waiting() {
            let (request, mut left) = (&role.spec.request, u64::from(role.needed()));
            let mut after = Vec::with_capacity(free.len() + 2);
            for (node, free, nodes) in free {
                let each = request.copies_in(&free, left);
                if each == 0 || !role.spec.rules.allow(&node.view.facts) {
                    after.push((node, free, nodes));
                    continue;
                }
                // So many nodes take as many as they can, one may take the rest.
                let full = nodes.min(left / each);
                let rest = if full < nodes { left - full * each } else { 0 };
                for (nodes, tasks) in [(full, each), (u64::from(rest > 0), rest)] {
                    after.push((node, without_copies(&free, request, tasks), nodes));
                    left -= nodes * tasks;
                    placed += nodes * tasks;
                }
                after.push((node, free, nodes - full - u64::from(rest > 0)));
            }
            after.retain(|(_, _, nodes)| *nodes > 0);
            free = after;
            all_left.push(left);
        }
        (placed, all_left)
    }
}
