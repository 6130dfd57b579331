//! The front: drains the lane in slices and hands commands to the machines.

use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, ResponseFuture, System, WrapFuture,
};
use metrics::{Counter, Gauge};
use plimsoll_core::id::NodeId;
use plimsoll_core::messages::{ClusterMessage, MonitorMessage};
use plimsoll_core::settings::Settings;
use tokio::sync::oneshot;

use crate::agents::Ping;
use crate::commands::Command;
use crate::fatal::Part;
use crate::herald::{Expect, Flush, Herald, Subscribe};
use crate::lane::Lane;
use crate::monitor::ForMonitor;
use crate::replies::Tickets;
use crate::router::Router;
use crate::shell::Common;
use crate::slice::Slice;
use crate::snapshot::{self, SnapshotResult};
use crate::vital::Vital;

/// Commands taken off the lane before others on this thread have their turn.
const SLICE_MAX: usize = 256;

/// The bell: there is something on the lane.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Ring;

/// An agent has not confirmed a stop in time.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct AgentSilent(pub(crate) NodeId);

/// Hand on what is left on the lane and take nothing more; the answer is how many there were.
#[derive(Message)]
#[rtype(result = "u64")]
pub(crate) struct DrainAll;

/// Answered when the machines have nothing more to say and the herald has passed it all on.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Settle;

/// End the thread that all deciding actors share.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Leave;

pub(crate) struct Front {
    lane: Arc<Lane<Command>>,
    common: Common,
    herald: Addr<Herald>,
    /// The settings that the machines were told last.
    settings: Arc<Settings>,
    tickets: Tickets,
    /// A slice is to be taken off the lane.
    draining: bool,
    events_in: Counter,
    lane_depth: Gauge,
    _vital: Vital,
}

impl Front {
    pub(crate) fn new(
        lane: Arc<Lane<Command>>,
        common: Common,
        herald: Addr<Herald>,
        settings: Arc<Settings>,
        last_ticket: u64,
    ) -> Front {
        Front {
            _vital: Vital::new(Part::Front, &common.emergency),
            lane,
            common,
            herald,
            settings,
            tickets: Tickets::after(last_ticket),
            draining: false,
            events_in: metrics::counter!("plimsoll_events_in_total"),
            lane_depth: metrics::gauge!("plimsoll_lane_depth"),
        }
    }

    fn router(&self) -> &Router {
        self.common.router.get().expect("wiring is done before the first command")
    }

    /// Takes a slice off the lane, then the next one when the machines have caught up with this one:
    /// mailboxes give no back-pressure, so the lane is where work waits. The bell is answered only when
    /// the lane is empty: until then nobody needs to ring.
    fn drain(&mut self, context: &mut Context<Self>) {
        const LOOK_AGAIN: Duration = Duration::from_millis(1);
        if self.router().backlog.is_long() {
            context.run_later(LOOK_AGAIN, |front, context| front.drain(context));
            return;
        }
        self.drain_slice(context);
        if self.lane.is_empty() {
            self.lane.answer();
        }
        self.draining = !self.lane.is_empty();
        if self.draining {
            let caught_up = self.router().caught_up().into_actor(self);
            context.spawn(caught_up.map(|(), front, context| front.drain(context)));
        }
    }

    fn drain_slice(&mut self, context: &mut Context<Self>) -> usize {
        let mut slice = Slice::default();
        let (mut taken, mut weight) = (0, 0);
        while weight < SLICE_MAX {
            let Some(command) = self.lane.pop() else { break };
            taken += 1;
            weight += command.weight();
            slice.take(command, &mut self.tickets);
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
            if let Some(router) = self.common.router.get() {
                router.monitor.do_send(ForMonitor(MonitorMessage::Settings(Arc::clone(&settings))));
            }
            self.settings = settings;
        }
        if !slice.subscribers.is_empty() {
            self.herald.do_send(Subscribe(std::mem::take(&mut slice.subscribers)));
        }
        if !self.tickets.expected.is_empty() {
            self.herald.do_send(Expect(std::mem::take(&mut self.tickets.expected)));
        }
        let snapshots = std::mem::take(&mut slice.snapshots);
        slice.hand_on(self.router());
        for reply in snapshots {
            self.take_snapshot(reply, context);
        }
    }

    fn take_snapshot(&self, reply: oneshot::Sender<SnapshotResult>, context: &mut Context<Self>) {
        let cell = std::rc::Rc::clone(&self.common.router);
        let (taken, fatal) = (self.common.clock.now(), self.common.fatal.clone());
        let (settings, last_ticket) = (Settings::clone(&self.settings), self.tickets.last());
        let work = async move {
            let router = cell.get().expect("wiring is done before the first command");
            // Without an answer a machine is gone, and the caller learns why from the dropped reply.
            let snapshot = snapshot::take(router, taken, settings, last_ticket).await;
            // A machine that panicked in between has left a state that is not whole.
            if let (Some(snapshot), None) = (snapshot, fatal.get()) {
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
                front.router().cluster.post(back);
            }
        }));
    }
}

impl Actor for Front {
    type Context = Context<Self>;
}

impl Handler<Ring> for Front {
    type Result = ();

    fn handle(&mut self, _: Ring, context: &mut Context<Self>) {
        if !std::mem::replace(&mut self.draining, true) {
            // Never at once: a mailbox is served until it is empty, so whoever rings without a pause
            // would stop all others.
            let others_first = async { tokio::task::yield_now().await }.into_actor(self);
            context.spawn(others_first.map(|(), front, context| front.drain(context)));
        }
    }
}

impl Handler<AgentSilent> for Front {
    type Result = ();

    fn handle(&mut self, silent: AgentSilent, context: &mut Context<Self>) {
        self.ask_agent(silent.0, context);
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

impl Handler<Settle> for Front {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Settle, _: &mut Context<Self>) -> ResponseFuture<()> {
        /// What one machine says may make the next one speak: so many hops at most.
        const HOPS: usize = 6;
        let (cell, herald) = (std::rc::Rc::clone(&self.common.router), self.herald.clone());
        Box::pin(async move {
            let router = cell.get().expect("wiring is done before the first command");
            for _ in 0..HOPS {
                router.caught_up().await;
            }
            let _ = herald.send(Flush).await;
        })
    }
}

impl Handler<Leave> for Front {
    type Result = ();

    fn handle(&mut self, _: Leave, _: &mut Context<Self>) {
        System::current().stop();
    }
}

#[cfg(test)]
impl Handler<crate::vital::Sabotage> for Front {
    type Result = ();

    fn handle(&mut self, sabotage: crate::vital::Sabotage, _: &mut Context<Self>) {
        use crate::vital::Sabotage;
        let router = self.router();
        match sabotage {
            Sabotage::Panic(Part::Front) => panic!("as it was told to"),
            Sabotage::Panic(Part::Herald) => router.herald.do_send(sabotage),
            Sabotage::Panic(Part::Monitor) => router.monitor.do_send(sabotage),
            Sabotage::Panic(Part::Agents) => router.shards[0].do_send(sabotage),
            Sabotage::Panic(Part::Machine(_)) => router.scheduler.do_send(sabotage),
            Sabotage::Delay(messages) => router.backlog.add(messages),
            Sabotage::CatchUp(messages) => router.backlog.done(messages),
        }
    }
}
