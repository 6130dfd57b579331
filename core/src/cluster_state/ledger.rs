//! The ledger: who holds what where, entered by commits and taken out by ends.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{Attempt, NodeId, Slot, Ticket};
use crate::messages::{EndReport, JobMessage, Outbox, Refusal, Released, StopOrder, Withdrawal};
use crate::mutation::{self, Mutation};
use crate::outcome::{Outcome, Phase, StopCause};
use crate::spec::{ShapeSpec, Units};
use crate::time::Time;

use super::ClusterState;
use super::broken::Sign;

/// One attempt that holds its node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LiveAttempt {
    pub attempt: Attempt,
    pub node: NodeId,
    pub phase: Phase,
    /// Why it was told to stop, if it was.
    pub stop: Option<Box<StopCause>>,
    /// Its group is being withdrawn and waits for its end.
    pub(super) withdrawn: bool,
    pub shape: Arc<ShapeSpec>,
    /// The units it was given, where they have names.
    pub units: Option<Arc<Units>>,
}

impl ClusterState {
    pub(super) fn live_attempt(&self, attempt: Attempt) -> Option<&LiveAttempt> {
        self.live.get(attempt.slot.index())?.as_ref().filter(|live| live.attempt == attempt)
    }

    fn live_attempt_mut(&mut self, attempt: Attempt) -> Option<&mut LiveAttempt> {
        self.live.get_mut(attempt.slot.index())?.as_mut().filter(|live| live.attempt == attempt)
    }

    pub(super) fn book(&mut self, attempt: Attempt, id: NodeId, shape: Arc<ShapeSpec>) {
        let index = attempt.slot.index();
        self.live.reach(index, || None);
        assert!(self.live[index].is_none(), "a slot is used again only after its release");
        let node = self.nodes[id.index()].as_mut().expect("work is booked on a node that is there");
        assert!(node.has_room_for(&shape), "nothing is booked above capacity");
        node.used += &shape.request;
        if mutation::active(Mutation::ChargeTwice) {
            node.used += &shape.request;
        }
        let units = node.give_units(&shape);
        node.company.join(&shape);
        node.phases[Phase::Scheduled as usize] += 1;
        self.on_node.push(&mut node.attempts, attempt.slot.0);
        self.note_usage(id);
        let phase = Phase::Scheduled;
        self.live[index] =
            Some(LiveAttempt { attempt, node: id, phase, stop: None, withdrawn: false, shape, units });
    }

    /// Takes an attempt out of the ledger without telling anybody.
    pub(super) fn unbook(&mut self, slot: Slot) -> LiveAttempt {
        let live = self.live[slot.index()].take().expect("only live attempts are taken out");
        let node = self.nodes[live.node.index()].as_mut().expect("a node outlives its attempts");
        node.used -= &live.shape.request;
        node.company.leave(&live.shape);
        node.take_units_back(live.units.as_deref());
        node.phases[live.phase as usize] -= 1;
        self.on_node.remove(&mut node.attempts, slot.0);
        self.note_usage(live.node);
        live
    }

    /// Releases first, then tells JobState and the Scheduler in the same turn.
    pub(super) fn release(&mut self, slot: Slot, outcome: Outcome, out: &mut Outbox) {
        let live = self.unbook(slot);
        let released = Released { attempt: live.attempt, node: live.node, outcome };
        if mutation::active(Mutation::DropRelease) && live.attempt.slot.0.is_multiple_of(5) {
            out.jobs.push(crate::messages::JobMessage::Released(vec![released]));
        } else {
            out.released(released);
        }
        self.pending.touch(live.node);
        if live.withdrawn {
            let group = live.attempt.task.group;
            let left = self.withdrawing.get_mut(&group).expect("a withdrawn group is counted");
            *left -= 1;
            if *left == 0 {
                self.withdrawing.remove(&group);
                out.withdrawn(group);
            }
        }
    }

    /// Ends everything on a node whose agent will not be asked any more.
    pub(super) fn release_all_on(&mut self, id: NodeId, outcome: Outcome, out: &mut Outbox) {
        let Some(node) = self.node(id) else { return };
        let slots: Vec<u32> = self.on_node.iter(node.attempts).collect();
        for slot in slots {
            let attempt = self.live[slot as usize].as_ref().expect("chained attempts are live").attempt;
            out.abandon(attempt);
            self.release(Slot(slot), outcome, out);
        }
    }

    pub(super) fn ended(&mut self, now: Time, report: EndReport, out: &mut Outbox) {
        let slot = report.attempt.slot;
        let live = if mutation::active(Mutation::IgnoreAttemptNumber) {
            self.live.get(slot.index()).and_then(Option::as_ref)
        } else {
            self.live_attempt(report.attempt)
        };
        // A report of an attempt that is not live any more changes nothing.
        let Some(live) = live else { return };
        let outcome = Outcome::of(report.exit, live.stop.as_deref().copied());
        let (node, sign) = (live.node, Sign::of(live, outcome));
        self.release(slot, outcome, out);
        if let Some(sign) = sign {
            self.note_sign(now, node, sign, out);
        }
    }

    pub(super) fn progress(&mut self, attempt: Attempt, phase: Phase, out: &mut Outbox) {
        let Some(live) = self.live_attempt_mut(attempt) else { return };
        if phase <= live.phase {
            return;
        }
        let before = std::mem::replace(&mut live.phase, phase);
        let id = live.node;
        let node = self.node_mut(id).expect("a node outlives its attempts");
        node.phases[before as usize] -= 1;
        node.phases[phase as usize] += 1;
        self.note_progress(id);
        out.job_progress(attempt, phase);
    }

    pub(super) fn stop(&mut self, order: StopOrder, out: &mut Outbox) {
        let Some(live) = self.live_attempt_mut(order.attempt) else { return };
        if live.stop.is_none() {
            live.stop = Some(Box::new(order.cause));
            out.runner_stop(order.attempt);
        }
    }

    /// Lets JobState cancel whatever runs on a node; it answers the ticket.
    pub(super) fn cancel_on_node(&mut self, ticket: Ticket, name: String, out: &mut Outbox) {
        let Some(node) = self.node_id(&name).and_then(|id| self.node(id)) else {
            return out.refuse(ticket, Refusal::UnknownNode(name));
        };
        let live = |slot: u32| self.live[slot as usize].as_ref().expect("chained attempts are live");
        let tasks = self.on_node.iter(node.attempts).map(|slot| live(slot).attempt.task).collect();
        out.jobs.push(JobMessage::CancelTasks { ticket, tasks });
    }

    /// Stops what is live of a cancelled group. It is withdrawn once the last of it has ended.
    pub(super) fn withdraw(&mut self, withdrawal: Withdrawal, out: &mut Outbox) {
        let mut left = 0;
        for attempt in withdrawal.attempts {
            let Some(live) = self.live_attempt_mut(attempt) else { continue };
            live.withdrawn = true;
            left += 1;
            self.stop(StopOrder { attempt, cause: withdrawal.cause }, out);
        }
        if left == 0 || mutation::active(Mutation::WithdrawEarly) {
            out.withdrawn(withdrawal.group);
        }
        if left > 0 {
            let before = self.withdrawing.insert(withdrawal.group, left);
            assert!(before.is_none(), "a group is withdrawn once");
        }
    }
}
