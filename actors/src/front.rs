//! The front: drains the lane in slices, hands commands to the machines, and passes on what they
//! answer to callers, to the board and to subscribers.

use std::sync::Arc;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, System, WrapFuture};
use metrics::{Counter, Gauge};
use plimsoll_core::id::NodeId;
use plimsoll_core::messages::{ClusterMessage, HostMessage, NodeEvent};
use plimsoll_core::settings::Settings;
use tokio::sync::oneshot;

use crate::agents::Ping;
use crate::board::Board;
use crate::commands::Command;
use crate::lane::Lane;
use crate::replies::Replies;
use crate::router::{Batch, Router};
use crate::shell::Common;
use crate::slice::Slice;
use crate::snapshot::{self, SnapshotResult};
use crate::subscriptions::{Event, Subscriber};

/// Commands taken off the lane before others on this thread have their turn.
const SLICE_MAX: usize = 512;

/// The bell: there is something on the lane.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Ring;

/// What a machine's turn said to the host.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct HostBatch(pub(crate) Vec<HostMessage>);

/// A machine's step panicked: everything ends.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct MachineStopped;

/// Hand on what is left on the lane and take nothing more; the answer is how many there were.
#[derive(Message)]
#[rtype(result = "u64")]
pub(crate) struct DrainAll;

/// End the thread that all deciding actors share.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Leave;

pub(crate) struct Front {
    lane: Arc<Lane<Command>>,
    common: Common,
    board: Arc<Board>,
    /// The settings that the machines were told last.
    settings: Arc<Settings>,
    replies: Replies,
    subscribers: Vec<Subscriber>,
    events_in: Counter,
    lane_depth: Gauge,
}

impl Front {
    pub(crate) fn new(
        lane: Arc<Lane<Command>>,
        common: Common,
        board: Arc<Board>,
        settings: Arc<Settings>,
        last_ticket: u64,
    ) -> Front {
        Front {
            lane,
            common,
            board,
            settings,
            replies: Replies::after(last_ticket),
            subscribers: Vec::new(),
            events_in: metrics::counter!("plimsoll_events_in_total"),
            lane_depth: metrics::gauge!("plimsoll_lane_depth"),
        }
    }

    fn router(&self) -> &Router {
        self.common.router.get().expect("wiring is done before the first command")
    }

    /// Takes a slice off the lane. If more is there the rest follows after the others had a turn.
    fn drain(&mut self, context: &mut Context<Self>) {
        self.lane.answer();
        self.drain_slice(context);
        if !self.lane.is_empty() {
            let later = async { tokio::task::yield_now().await }.into_actor(self);
            context.spawn(later.map(|(), front, context| front.drain(context)));
        }
    }

    fn drain_slice(&mut self, context: &mut Context<Self>) -> usize {
        let mut slice = Slice::default();
        let mut taken = 0;
        while taken < SLICE_MAX {
            let Some(command) = self.lane.pop() else { break };
            taken += 1;
            slice.take(command, &mut self.replies);
        }
        self.lane.free(taken);
        self.events_in.increment(taken as u64);
        self.lane_depth.set(self.lane.len() as f64);
        self.hand_on(slice, context);
        taken
    }

    fn hand_on(&mut self, mut slice: Slice, context: &mut Context<Self>) {
        if let Some(settings) = slice.settings.take() {
            let runner = self.common.runner_settings(&settings);
            slice.change_settings(&settings, runner);
            self.settings = settings;
        }
        if !slice.subscribers.is_empty() {
            self.subscribers.retain(Subscriber::is_read);
            self.subscribers.append(&mut slice.subscribers);
        }
        let snapshots = std::mem::take(&mut slice.snapshots);
        slice.hand_on(self.router());
        for reply in snapshots {
            self.take_snapshot(reply, context);
        }
    }

    fn take_snapshot(&self, reply: oneshot::Sender<SnapshotResult>, context: &mut Context<Self>) {
        let cell = std::rc::Rc::clone(&self.common.router);
        let taken = self.common.clock.now();
        let (settings, last_ticket) = (Settings::clone(&self.settings), self.replies.last_ticket());
        let work = async move {
            let router = cell.get().expect("wiring is done before the first command");
            // Without an answer a machine is gone, and the caller learns why from the dropped reply.
            if let Some(snapshot) = snapshot::take(router, taken, settings, last_ticket).await {
                let _ = reply.send(snapshot);
            }
        };
        // Snapshots wait for each other, and the lane waits for them.
        context.wait(work.into_actor(self));
    }

    /// One execution that does not end says nothing about the rest of its node: if the agent is alive
    /// the node goes on, and only that attempt keeps what it holds.
    fn ask_agent(&self, node: NodeId, context: &mut Context<Self>) {
        let answer = self.router().shard(node).send(Ping(node));
        context.spawn(answer.into_actor(self).map(move |alive, front, _| {
            if alive.unwrap_or(false) {
                let back = vec![ClusterMessage::HeartbeatBack(node)];
                front.router().cluster.do_send(Batch(back));
            }
        }));
    }

    fn publish(&mut self, events: Vec<Event>) {
        if events.is_empty() || self.subscribers.is_empty() {
            return;
        }
        let events: Arc<[Event]> = events.into();
        self.subscribers.retain(|subscriber| subscriber.publish(&events));
    }
}

impl Actor for Front {
    type Context = Context<Self>;
}

impl Handler<Ring> for Front {
    type Result = ();

    fn handle(&mut self, _: Ring, context: &mut Context<Self>) {
        self.drain(context);
    }
}

impl Handler<HostBatch> for Front {
    type Result = ();

    fn handle(&mut self, batch: HostBatch, context: &mut Context<Self>) {
        let keep_events = !self.subscribers.is_empty();
        let mut events = Vec::new();
        for message in batch.0 {
            match message {
                HostMessage::Reply { ticket, answer } => self.replies.answer(ticket, answer),
                // The board learned of it when it was said.
                HostMessage::Accepted { .. } => {}
                HostMessage::Job(event) => {
                    self.board.note_job(&event);
                    if keep_events {
                        events.push(Event::Job(event));
                    }
                }
                HostMessage::Node(event) => {
                    self.board.note_node(&event);
                    if let NodeEvent::Unresponsive { node } = event {
                        self.ask_agent(node, context);
                    }
                    if keep_events {
                        events.push(Event::Node(event));
                    }
                }
            }
        }
        self.publish(events);
    }
}

impl Handler<DrainAll> for Front {
    type Result = u64;

    fn handle(&mut self, _: DrainAll, context: &mut Context<Self>) -> u64 {
        self.lane.close();
        let mut drained = 0;
        while !self.lane.is_empty() {
            drained += self.drain_slice(context) as u64;
        }
        drained
    }
}

impl Handler<MachineStopped> for Front {
    type Result = ();

    fn handle(&mut self, _: MachineStopped, context: &mut Context<Self>) {
        self.lane.close();
        while self.lane.pop().is_some() {}
        self.replies.drop_all();
        self.subscribers.clear();
        self.board.close();
        context.notify(Leave);
    }
}

impl Handler<Leave> for Front {
    type Result = ();

    fn handle(&mut self, _: Leave, _: &mut Context<Self>) {
        System::current().stop();
    }
}
