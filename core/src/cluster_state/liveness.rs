//! Heartbeats: silent nodes are suspect and keep their attempts; nodes given up have lost them for
//! good and take no work again until everything that ran there is confirmed to have ended.

use std::num::NonZeroU64;

use crate::id::{NodeId, Ticket};
use crate::messages::{Answer, Outbox, Refusal, RunnerMessage};
use crate::mutation::{self, Mutation};
use crate::outcome::Outcome;
use crate::spec::Liveness;
use crate::time::{Span, Time};

use super::ClusterState;

impl ClusterState {
    pub(super) fn heartbeat(
        &mut self,
        now: Time,
        ticket: Ticket,
        name: String,
        heard: bool,
        out: &mut Outbox,
    ) {
        let Some(id) = self.node_id(&name) else { return out.refuse(ticket, Refusal::UnknownNode(name)) };
        match heard {
            true => self.heartbeat_back(now, id, out),
            false => self.heartbeat_lost(now, id, out),
        }
        out.reply(ticket, Answer::Done);
    }

    pub(super) fn heartbeat_lost(&mut self, now: Time, id: NodeId, out: &mut Outbox) {
        let Some(node) = self.node_mut(id) else { return };
        match node.liveness {
            Liveness::Ready => {
                node.liveness = Liveness::Suspect;
                self.expect_news(now, id);
                self.announce(id, out);
            }
            Liveness::Suspect => {}
            // A sweep that is under way may have been lost with the agent: ask again on return.
            Liveness::Down => node.sweep = None,
        }
    }

    /// Sets how long the node may go on without being heard.
    pub(super) fn expect_news(&mut self, now: Time, id: NodeId) {
        let deadlines = self.settings.deadlines;
        let Some(node) = self.node_mut(id) else { return };
        node.silent_until = match node.liveness {
            Liveness::Ready if deadlines.heartbeat.is_zero() => Time::NEVER,
            Liveness::Ready => now + deadlines.heartbeat,
            Liveness::Suspect => now + deadlines.down,
            Liveness::Down => Time::NEVER,
        };
        let silent_until = node.silent_until;
        self.silences.set(id.index(), silent_until);
    }

    /// The node was not heard in time.
    pub(super) fn silent(&mut self, now: Time, id: NodeId, out: &mut Outbox) {
        match self.node(id).map(|node| node.liveness) {
            Some(Liveness::Ready) => self.heartbeat_lost(now, id, out),
            Some(Liveness::Suspect) => self.give_up(id, out),
            Some(Liveness::Down) | None => unreachable!("nothing is expected of {id}"),
        }
    }

    /// Heartbeats are to come at another pace: it begins now.
    pub(super) fn change_heartbeat(&mut self, now: Time, before: Span) {
        if self.settings.deadlines.heartbeat == before {
            return;
        }
        let ready = self.nodes().filter(|(_, node)| node.liveness == Liveness::Ready);
        for id in ready.map(|(id, _)| id).collect::<Vec<_>>() {
            self.expect_news(now, id);
        }
    }

    /// The host knows that the node is dead: it is given up at once.
    pub(super) fn node_down(&mut self, now: Time, id: NodeId, out: &mut Outbox) {
        self.heartbeat_lost(now, id, out);
        if self.node(id).is_some_and(|node| node.liveness == Liveness::Suspect) {
            self.silences.clear(id.index());
            self.give_up(id, out);
        }
    }

    pub(super) fn heartbeat_back(&mut self, now: Time, id: NodeId, out: &mut Outbox) {
        let Some(node) = self.node_mut(id) else { return };
        match node.liveness {
            Liveness::Ready => self.expect_news(now, id),
            Liveness::Suspect => self.make_ready(now, id, out),
            Liveness::Down if mutation::active(Mutation::TrustReturnedNode) => self.make_ready(now, id, out),
            // It is being swept already.
            Liveness::Down if node.sweep.is_some() => {}
            Liveness::Down => {
                self.last_sweep += 1;
                let sweep = self.last_sweep;
                self.node_mut(id).expect("the node is there").sweep = NonZeroU64::new(sweep);
                out.runner.push(RunnerMessage::Sweep { node: id, sweep });
            }
        }
    }

    pub(super) fn swept(&mut self, now: Time, id: NodeId, sweep: u64, out: &mut Outbox) {
        let Some(node) = self.node(id) else { return };
        if node.liveness == Liveness::Down && node.sweep == NonZeroU64::new(sweep) {
            self.make_ready(now, id, out);
        }
    }

    pub(super) fn give_up(&mut self, id: NodeId, out: &mut Outbox) {
        let Some(node) = self.node_mut(id) else { return };
        assert_eq!(node.liveness, Liveness::Suspect, "only suspect nodes have a deadline");
        node.liveness = Liveness::Down;
        node.silent_until = Time::NEVER;
        self.release_all_on(id, Outcome::Lost, out);
        self.announce(id, out);
    }

    fn make_ready(&mut self, now: Time, id: NodeId, out: &mut Outbox) {
        let node = self.node_mut(id).expect("the caller has seen the node");
        node.liveness = Liveness::Ready;
        node.sweep = None;
        self.expect_news(now, id);
        self.announce(id, out);
    }
}
