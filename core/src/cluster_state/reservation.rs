//! Manual nodes: people reserve one, have it prepared, use it and give it back. Whoever has it has it
//! for himself, so a reservation keeps all other work away.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{NodeId, Ticket};
use crate::messages::{Answer, NodeEvent, Outbox, Preparation, Refusal, Returned};
use crate::mutation::{self, Mutation};
use crate::spec::{Condition, ReservationSpec};
use crate::time::Time;

use super::{ClusterState, Node, Usage};

/// Somebody who has a node for himself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reservation {
    pub who: Arc<str>,
    /// What is to be installed first, in words that the executor understands.
    pub prepare: Option<Arc<str>>,
    pub stage: ReservationStage,
    /// Since when it has been in this stage.
    pub since: Time,
    /// Why it is over once the preparations have ended, if that is what it waits for.
    pub(super) ending: Option<Returned>,
    /// No other reservation had this number; what is said about another is void.
    pub(super) number: u64,
    /// When it is over if the preparations are not.
    pub(super) deadline: Time,
}

/// How far a reservation is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum ReservationStage {
    /// The preparations have not begun.
    Waiting,
    Installing,
    /// The node is ready and in use.
    Running,
    /// It was given back while it was being prepared, or that took too long; the preparations are being ended.
    Returning,
}

impl ReservationStage {
    pub(super) fn usage(self) -> Usage {
        match self {
            ReservationStage::Waiting => Usage::Waiting,
            ReservationStage::Installing | ReservationStage::Returning => Usage::Installing,
            ReservationStage::Running => Usage::Running,
        }
    }
}

impl Node {
    /// Why nobody can reserve the node now.
    fn refuses_reservation(&self) -> Option<Refusal> {
        let name = || self.facts.name.clone();
        if self.condition != Condition::Manual {
            return Some(Refusal::NotManual { node: name(), condition: self.condition });
        }
        if let Some(reservation) = &self.reservation {
            return Some(Refusal::NodeReserved { node: name(), who: reservation.who.to_string() });
        }
        if self.tasks() > 0 {
            return Some(Refusal::NodeBusy { node: name(), tasks: self.tasks() });
        }
        // The condition comes first and is the right one; anything else is in the way.
        let objection = self.state().objections().into_iter().nth(1);
        objection.map(|why| Refusal::NodeClosed { node: name(), why: why.to_owned() })
    }

    pub(super) fn preparation_due(&self) -> Time {
        self.reservation.as_ref().map_or(Time::NEVER, |reservation| reservation.deadline)
    }
}

impl ClusterState {
    pub(super) fn reserve(
        &mut self,
        now: Time,
        ticket: Ticket,
        name: String,
        wish: ReservationSpec,
        out: &mut Outbox,
    ) {
        let Some(id) = self.node_id(&name) else { return out.refuse(ticket, Refusal::UnknownNode(name)) };
        let deadlines = self.settings.deadlines;
        self.last_reservation += 1;
        let number = self.last_reservation;
        let node = self.node_mut(id).expect("a named node is there");
        if let Some(refusal) = node.refuses_reservation() {
            return out.refuse(ticket, refusal);
        }
        let ReservationSpec { who, prepare } = wish;
        let (stage, deadline) = match &prepare {
            Some(_) => (ReservationStage::Waiting, now + deadlines.dispatch),
            None => (ReservationStage::Running, Time::NEVER),
        };
        let reservation = Reservation { who, prepare, stage, since: now, ending: None, number, deadline };
        node.reservation = Some(Box::new(reservation));
        self.preparations.set(id.index(), deadline);
        out.reply(ticket, Answer::Done);
        self.tell_reservation(id, out);
        self.ask_to_prepare(id, out);
        self.announce(id, out);
    }

    fn tell_reservation(&self, id: NodeId, out: &mut Outbox) {
        let Some(reservation) = self.node(id).and_then(|node| node.reservation.as_ref()) else { return };
        let (who, stage) = (Arc::clone(&reservation.who), reservation.stage);
        out.node_event(NodeEvent::Reserved { node: id, who, stage });
    }

    /// Asks the host to prepare the node, if that is what the reservation waits for.
    pub(super) fn ask_to_prepare(&self, id: NodeId, out: &mut Outbox) {
        let Some(reservation) = self.node(id).and_then(|node| node.reservation.as_ref()) else { return };
        let begun = matches!(reservation.stage, ReservationStage::Waiting | ReservationStage::Installing);
        if let Some(what) = reservation.prepare.clone().filter(|_| begun) {
            out.node_event(NodeEvent::Prepare { node: id, reservation: reservation.number, what });
        }
    }

    pub(super) fn give_back(&mut self, now: Time, ticket: Ticket, name: String, out: &mut Outbox) {
        let Some(id) = self.node_id(&name) else { return out.refuse(ticket, Refusal::UnknownNode(name)) };
        let stage = self.node(id).and_then(|node| Some(node.reservation.as_ref()?.stage));
        let Some(stage) = stage else { return out.refuse(ticket, Refusal::NotReserved(name)) };
        out.reply(ticket, Answer::Done);
        match stage {
            ReservationStage::Running => self.end_reservation(id, Returned::ByHand, out),
            ReservationStage::Returning => {}
            ReservationStage::Waiting | ReservationStage::Installing => {
                self.end_preparations(now, id, Returned::ByHand, out);
            }
        }
    }

    /// Has the preparations ended. Until they have the node is nobody else's: two would be at it.
    fn end_preparations(&mut self, now: Time, id: NodeId, why: Returned, out: &mut Outbox) {
        let deadline = now + self.settings.deadlines.stop;
        let reservation = self.node_mut(id).and_then(|node| node.reservation.as_mut());
        let reservation = reservation.expect("the caller has seen the reservation");
        let number = reservation.number;
        (reservation.stage, reservation.since) = (ReservationStage::Returning, now);
        (reservation.ending, reservation.deadline) = (Some(why), deadline);
        self.preparations.set(id.index(), deadline);
        out.node_event(NodeEvent::EndPreparation { node: id, reservation: number });
        self.tell_reservation(id, out);
        self.note_usage(id);
    }

    /// News of the preparations. What is said about another reservation than the current one is void.
    pub(super) fn prepared(
        &mut self,
        now: Time,
        id: NodeId,
        number: u64,
        how: Preparation,
        out: &mut Outbox,
    ) {
        let deadlines = self.settings.deadlines;
        let reservation = self.node_mut(id).and_then(|node| node.reservation.as_mut());
        let Some(reservation) = reservation.filter(|reservation| reservation.number == number) else {
            return;
        };
        use ReservationStage::{Installing, Returning, Running, Waiting};
        let (stage, deadline) = match (reservation.stage, how) {
            (Running, _) | (Returning | Installing, Preparation::Begun) => return,
            (Returning, _) => {
                let why = reservation.ending.unwrap_or(Returned::ByHand);
                return self.end_reservation(id, why, out);
            }
            (_, Preparation::Failed) => return self.end_reservation(id, Returned::NotPrepared, out),
            (Waiting, Preparation::Begun) => (Installing, now + deadlines.prepare),
            (Waiting | Installing, Preparation::Done) => (Running, Time::NEVER),
        };
        (reservation.stage, reservation.since, reservation.deadline) = (stage, now, deadline);
        self.preparations.set(id.index(), deadline);
        self.note_usage(id);
        self.tell_reservation(id, out);
    }

    /// The preparations took too long, or did not end in time.
    pub(super) fn preparation_late(&mut self, now: Time, id: NodeId, out: &mut Outbox) {
        let reservation = self.node(id).and_then(|node| node.reservation.as_ref());
        let Some(reservation) = reservation else { return };
        match reservation.ending {
            Some(why) => self.end_reservation(id, why, out),
            None => self.end_preparations(now, id, Returned::TooLate, out),
        }
    }

    fn end_reservation(&mut self, id: NodeId, why: Returned, out: &mut Outbox) {
        self.preparations.clear(id.index());
        self.node_mut(id).expect("the caller has seen the node").reservation = None;
        out.node_event(NodeEvent::Returned { node: id, why });
        if !mutation::active(Mutation::ReturnInSilence) {
            self.announce(id, out);
        }
    }
}
