//! What ends: attempts that are over, placements that were refused, and work on nodes that are drained.

use crate::id::{Attempt, GroupId, NodeId};
use crate::messages::{Outbox, Released};
use crate::mutation::{self, Mutation};
use crate::outcome::{Outcome, StopCause};
use crate::spec::Start;
use crate::time::{Span, Time};

use super::plan::Turn;
use super::queue::Entry;
use super::shapes::{Place, ShapeId};
use super::{Scheduler, groups};

/// The mean of all run times forgets a run after about so many others.
const RUNS_REMEMBERED: u64 = 16;

impl Scheduler {
    /// These hold units that are gone: they are stopped and queue again.
    pub(super) fn revoke(&mut self, attempts: &[Attempt], out: &mut Outbox) {
        for attempt in attempts {
            if self.live.get(attempt.slot).is_some_and(|live| live.attempt == *attempt) {
                self.stop(attempt.slot, StopCause::CapacityLoss, out);
            }
        }
    }

    /// A node that is drained or out of use: everything on it is stopped and queues again.
    pub(super) fn vacate(&mut self, node: NodeId, out: &mut Outbox) {
        let vacated = self.nodes.get(node).filter(|entry| entry.view.state.is_vacated());
        let Some(entry) = vacated.filter(|_| !mutation::active(Mutation::KeepDrained)) else { return };
        let slots: Vec<_> = self.live.on_node(entry.attempts).map(|live| live.attempt.slot).collect();
        for slot in slots {
            self.stop(slot, StopCause::Drain, out);
        }
    }

    pub(super) fn released(&mut self, now: Time, released: Released) {
        let id = released.attempt.task.group;
        self.remember_duration(now, &released);
        if !self.end_live(now, released.attempt) {
            return;
        }
        if released.outcome.is_failure() {
            self.note_failure(now, released);
        }
        let role = released.attempt.task.role;
        let group = self.group_mut(id).expect("a group outlives its attempts");
        if released.outcome.final_state().is_none() {
            group.count_returning(role, 1);
        }
        if group.elastic.is_some() {
            if released.outcome == Outcome::Completed {
                // JobState says so too, but room that is free by now is for others already.
                group.roles[usize::from(role)].stop_growing();
            }
            self.resettle(now, id);
        }
        self.drop_group_when_clear(id);
    }

    /// How long a task ran that ended by itself or in time, also under the name its role gives.
    pub(super) fn remember_duration(&mut self, now: Time, released: &Released) {
        let Some(live) = self.live.get(released.attempt.slot) else { return };
        let known = live.attempt == released.attempt && released.outcome.tells_duration();
        if !known {
            return;
        }
        let ran = now.since(live.since);
        let kept = self.mean_run.0 - self.mean_run.0 / RUNS_REMEMBERED;
        self.mean_run = if self.mean_run.is_zero() { ran } else { Span(kept + ran.0 / RUNS_REMEMBERED) };
        let group = groups::find(&self.jobs, released.attempt.task.group);
        let role = group.map(|group| &group.roles[usize::from(released.attempt.task.role)]);
        if let Some(key) = role.and_then(|role| role.task_key.as_ref()) {
            self.durations.record(key, ran);
        }
    }

    /// Takes an attempt out of the view and gives back what it was charged; false if unknown.
    pub(super) fn end_live(&mut self, now: Time, attempt: Attempt) -> bool {
        // Jobs outlive their attempts: of what is not known any more nothing is live.
        let Some(leaf) = self.jobs.get(attempt.task.job().0).map(|job| job.leaf) else { return false };
        let Some(live) = self.live.remove(attempt, leaf) else { return false };
        self.give_back_draw(leaf, attempt.slot);
        let group =
            groups::find_mut(&mut self.jobs, attempt.task.group).expect("a group outlives its attempts");
        group.live_count -= 1;
        self.live.unlink_group(&mut group.live, attempt.slot);
        if let Some(elastic) = &mut group.roles[usize::from(attempt.task.role)].elastic {
            elastic.live -= 1;
            elastic.stopping -= u32::from(live.stopping);
        }
        if let Some(node) = live.node() {
            let shape = &group.roles[usize::from(attempt.task.role)].spec;
            self.nodes.unlink(node, attempt.slot, &mut self.live);
            if self.earmarks.is_empty() || !self.earmarks.take_in(attempt.slot, node, shape) {
                self.nodes.give_back(node, shape);
            }
        }
        self.count_running(now, attempt.task, -1);
        self.untie_if_idle(attempt.task.group);
        true
    }

    /// Refused placements: refund them and look for other places at once.
    pub(super) fn conflict(&mut self, attempts: Vec<Attempt>, turn: &mut Turn) {
        let mut groups: Vec<GroupId> = Vec::new();
        for attempt in attempts {
            if mutation::active(Mutation::KeepChargeOnConflict) {
                continue;
            }
            let (node, grown) =
                self.live.get(attempt.slot).map_or((None, false), |live| (live.node(), live.grown));
            if !self.end_live(turn.now, attempt) {
                continue;
            }
            if !grown {
                self.start_is_refused(attempt.task.group);
            }
            node.into_iter().for_each(|node| turn.touch(node));
            self.refund_credit();
            let id = attempt.task.group;
            let group = self.group_mut(id).expect("a group outlives its attempts");
            if !group.withdrawn {
                let role = &mut group.roles[usize::from(attempt.task.role)];
                role.returned.insert(attempt.task.index, attempt.number + 1);
            }
            if groups.last() != Some(&id) {
                groups.push(id);
            }
        }
        self.serve_starved(turn);
        for id in groups {
            self.doubt(id);
            for shape in self.requeue_at_once(id) {
                self.shapes.move_to(shape, Place::Open, &self.jobs);
            }
            self.drop_group_when_clear(id);
        }
    }

    pub(super) fn requeue_at_once(&mut self, id: GroupId) -> Vec<ShapeId> {
        let group = groups::find_mut(&mut self.jobs, id).expect("the caller has seen the group");
        if group.withdrawn || group.waiting() == 0 {
            return Vec::new();
        }
        if group.elastic.is_some() {
            self.resettle(self.now, id);
            let group = groups::find(&self.jobs, id).expect("just seen");
            let roles = group.roles.iter().filter(|role| role.queued > 0).map(|role| role.shape);
            return group.gang.into_iter().chain(roles).collect();
        }
        if group.start == Start::Atomic {
            return vec![self.enqueue_gang(id)];
        }
        let mut added_to = Vec::new();
        for (index, role) in group.roles.iter_mut().enumerate() {
            let added = role.waiting() - role.queued;
            if added > 0 {
                role.queued += added;
                let queued = (role.order, Entry { group: id, role: index as u16 });
                added_to.push((role.shape, queued, added));
            }
        }
        for (shape, queued, added) in &added_to {
            self.add_waiting(*shape, *queued, u64::from(*added));
        }
        added_to.into_iter().map(|(shape, ..)| shape).collect()
    }
}
