//! Why a group waits, computed from the state as it is when somebody asks.

use crate::explanation::{Explanation, NodeExplanation, Reason, Subject, Surplus};
use crate::id::{GroupId, TaskId};
use crate::messages::Refusal;
use crate::spec::Start;

use super::Scheduler;
use super::elastic::Phase;
use super::groups::{GroupView, RoleView};
use super::obstacles::on_node;
use super::prospects::Prospect;

/// Why something waits, and what would still keep it if that were over.
pub(super) struct Why {
    reason: Reason,
    besides: Option<Reason>,
}

impl From<Reason> for Why {
    fn from(reason: Reason) -> Why {
        Why { reason, besides: None }
    }
}

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
        let (at, entry) = self.nodes.named(node).ok_or_else(|| Refusal::UnknownNode(node.to_owned()))?;
        let asked = |index: usize, role: &RoleView| match only {
            Some(task) => usize::from(task.role) == index && role.waits(task.index) == Some(true),
            None => role.waiting() > 0,
        };
        let roles = group.roles.iter().enumerate().filter(|(index, role)| asked(*index, role));
        let explain = |(index, role): (usize, &RoleView)| NodeExplanation {
            group: id,
            role: index as u16,
            on_node: {
                let sight = self.sight(id, Some(role.shape));
                on_node(&role.spec, sight.of(at, entry), &self.settings.kinds)
            },
            settings: self.settings.version,
        };
        Ok(roles.map(explain).collect())
    }

    /// Why the tasks of this group wait, with what the gate could do for them: of the group as a whole, but role
    /// by role where several wait that do not start together. `None` if the group is not known or finished.
    pub fn explain_with_gate(&mut self, id: GroupId) -> Option<Vec<Explanation>> {
        let mut explanations = self.explain_apart(id)?;
        // What the gate does is for the group: it is told once, with the first role that lacks room.
        if let Some(first) = explanations.iter().position(|one| matches!(one.reason, Reason::NoRoom(_))) {
            explanations[first].gate = self.outlook(id).map(Box::new);
        }
        Some(explanations)
    }

    /// The same without the gate.
    pub fn explain_apart(&self, id: GroupId) -> Option<Vec<Explanation>> {
        let group = self.group(id)?;
        let waiting = group.roles.iter().enumerate().filter(|(_, role)| role.waiting() > 0);
        if group.start == Start::Atomic || waiting.clone().count() < 2 {
            return Some(self.explain(id).into_iter().collect());
        }
        let one = |(index, role): (usize, &RoleView)| {
            let why = self.reason(id, group, std::slice::from_ref(role));
            let number = index as u16;
            let explanation = self.explanation(id, Some(number), u64::from(role.waiting()), why);
            Explanation { role: Some(number), ..explanation }
        };
        Some(waiting.map(one).collect())
    }

    /// Why the tasks of this group wait; `None` if the group is not known or finished. Where several roles wait
    /// that do not start together, the hardest speaks for all of them.
    pub fn explain(&self, id: GroupId) -> Option<Explanation> {
        let group = self.group(id)?;
        let waiting = group.waiting() + group.held_back();
        Some(self.explanation(id, None, waiting, self.reason(id, group, &group.roles)))
    }

    /// Why this task waits; `None` if there is no such task or its group is finished.
    pub fn explain_task(&self, task: TaskId) -> Option<Explanation> {
        let group = self.group(task.group)?;
        let role = group.roles.get(usize::from(task.role))?;
        let waits = role.waits(task.index)?;
        if !waits && group.held_back() == 0 {
            let runs = self.explain_running(task).map(|runs| Reason::Running(Box::new(runs)));
            return Some(self.explanation(task.group, None, 0, runs.unwrap_or(Reason::NotWaiting).into()));
        }
        // In an atomic group the hardest role keeps all of them waiting.
        let roles = if group.start == Start::Atomic { &group.roles } else { std::slice::from_ref(role) };
        let waiting = u64::from(role.waiting()) + group.held_back();
        let why = self.reason(task.group, group, roles);
        Some(self.explanation(task.group, Some(task.role), waiting, why))
    }

    /// What is said of a group, or of one role of it.
    pub(super) fn explanation(&self, id: GroupId, role: Option<u16>, waiting: u64, why: Why) -> Explanation {
        let Why { reason, besides } = why;
        let besides = besides.map(Box::new);
        let waits = !matches!(reason, Reason::NotWaiting | Reason::Running(_));
        let ahead = if waits { self.tasks_ahead_of(id) } else { 0 };
        let group = self.group(id).filter(|_| waits);
        let shape = group.and_then(|group| {
            let asked = role.and_then(|role| group.roles.get(usize::from(role)));
            let waiting = || group.roles.iter().find(|role| role.waiting() > 0);
            Some(group.gang.unwrap_or(asked.or_else(waiting).or(group.roles.first())?.shape))
        });
        let share = shape.and_then(|shape| self.explain_share(id, shape)).map(Box::new);
        let claim = if waits { self.claim_note(id) } else { None };
        let settings = self.settings.version;
        Explanation { waiting, role: None, ahead, reason, besides, share, claim, gate: None, settings }
    }

    /// Why these roles of the group wait.
    fn reason(&self, id: GroupId, group: &GroupView, roles: &[RoleView]) -> Why {
        if group.held_back() > 0 {
            return Reason::Stopping { live: u64::from(group.live_count) }.into();
        }
        if let Some(Phase::Running | Phase::Starting { .. }) = group.phase() {
            return self.why_no_growth(group).into();
        }
        let waiting_roles = || roles.iter().filter(|role| role.wants_room());
        let Some(role) = waiting_roles().next() else { return Reason::NotWaiting.into() };
        let shape = group.gang.unwrap_or(role.shape);
        if let Some(window) = self.shapes.get(shape).window {
            return Reason::Window { closes: window.closes }.into();
        }
        if self.is_starved() {
            return Reason::NoCredit.into();
        }
        if self.has_more_to_plan() {
            return Reason::NextTurn.into();
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
    ) -> Why {
        let waiting_roles = || roles.iter().filter(|role| role.wants_room());
        // The hardest role speaks for the group: the one for which the fewest nodes would do.
        let rooms = waiting_roles().map(|role| {
            let sight = self.sight(id, Some(role.shape));
            let room = self.no_room(&role.spec, &sight);
            (room, sight)
        });
        let (mut room, sight) = rooms.min_by_key(|(room, _)| room.possible).expect("something waits");
        if group.start == Start::Atomic {
            // What one task needs is not what the group needs.
            self.explain_whole(id, group, &sight, &mut room);
        }
        let shape = group.gang.or_else(|| waiting_roles().next().map(|role| role.shape));
        let limited = |role: &RoleView| self.shapes.is_limited(group.gang.unwrap_or(role.shape));
        let limit = waiting_roles().all(limited).then(|| self.explain_limit(shape?, self.now));
        if room.possible == 0 || is_unable {
            return Why { reason: Reason::NeverFits(room), besides: limit.flatten().map(Reason::Limited) };
        }
        match limit {
            Some(Some(limit)) => {
                let needed: u64 = waiting_roles().map(|role| u64::from(role.needed())).sum();
                let ruled_out: u64 = room.filters.iter().map(|count| count.first).sum();
                let is_full = match group.start {
                    Start::Atomic => room.placeable < needed,
                    Start::Independent => ruled_out == room.nodes,
                };
                let besides = is_full.then_some(Reason::NoRoom(room));
                Why { reason: Reason::Limited(limit), besides }
            }
            // It was released by time alone: its deadline has come, or comes at once.
            Some(None) => Reason::NextTurn.into(),
            None => Reason::NoRoom(room).into(),
        }
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
}
