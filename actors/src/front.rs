//! The front: drains the lane in slices, hands commands to the machines, and passes on what they
//! answer to callers, to the board and to subscribers.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, System, WrapFuture};
use metrics::{Counter, Gauge};
use plimsoll_core::id::{NodeId, Ticket};
use plimsoll_core::messages::{
    AgentMessage, Answer, ClusterMessage, HostMessage, JobMessage, NodeEvent, RebalancerMessage,
    RunnerMessage, SchedulerMessage,
};
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::JobSpec;
use tokio::sync::oneshot;

use crate::agents::{AgentBatch, Ping};
use crate::board::Board;
use crate::commands::{Command, ReplySender};
use crate::lane::Lane;
use crate::router::{Batch, Router};
use crate::shell::Common;
use crate::snapshot;
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
    last_ticket: u64,
    pending: BTreeMap<Ticket, Pending>,
    many: BTreeMap<Ticket, Many>,
    subscribers: Vec<Subscriber>,
    events_in: Counter,
    lane_depth: Gauge,
}

/// A caller that waits for an answer.
enum Pending {
    Plain(ReplySender),
    /// One of many; the first ticket of them stands for all.
    OfMany(Ticket),
}

struct Many {
    answers: Vec<Answer>,
    outstanding: usize,
    reply: oneshot::Sender<Vec<Answer>>,
}

/// What a slice of commands becomes: one batch per machine.
#[derive(Default)]
struct Slice {
    jobs: Vec<JobMessage>,
    cluster: Vec<ClusterMessage>,
    scheduler: Vec<SchedulerMessage>,
    runner: Vec<RunnerMessage>,
    rebalancer: Vec<RebalancerMessage>,
    snapshots: Vec<oneshot::Sender<snapshot::Snapshot>>,
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
            last_ticket,
            pending: BTreeMap::new(),
            many: BTreeMap::new(),
            subscribers: Vec::new(),
            events_in: metrics::counter!("plimsoll_events_in_total"),
            lane_depth: metrics::gauge!("plimsoll_lane_depth"),
        }
    }

    fn router(&self) -> &Router {
        self.common.router.get().expect("wiring is done before the first command")
    }

    fn ticket(&mut self, pending: Pending) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.pending.insert(ticket, pending);
        ticket
    }

    /// Takes a slice off the lane. If more is there the rest follows after the others had a turn.
    fn drain(&mut self, context: &mut Context<Self>) {
        self.lane.answer();
        let taken = self.drain_slice(context);
        if taken > 0 {
            self.lane.wake_waiting();
        }
        if !self.lane.is_empty() {
            let later = async { tokio::task::yield_now().await }.into_actor(self);
            context.spawn(later.map(|(), front, context| front.drain(context)));
        }
    }

    fn drain_slice(&mut self, context: &mut Context<Self>) -> u64 {
        let mut slice = Slice::default();
        let mut taken = 0;
        while taken < SLICE_MAX as u64 {
            let Some(command) = self.lane.pop() else { break };
            taken += 1;
            self.take(command, &mut slice);
        }
        self.events_in.increment(taken);
        self.lane_depth.set(self.lane.len() as f64);
        self.hand_on(slice, context);
        taken
    }

    fn take(&mut self, command: Command, slice: &mut Slice) {
        match command {
            Command::Submit(spec, reply) => {
                let ticket = self.ticket(Pending::Plain(reply));
                slice.jobs.push(JobMessage::Submit { ticket, job: spec, adopted: Vec::new() });
            }
            Command::SubmitMany(specs, reply) => self.take_many(specs, reply, slice),
            Command::Cancel(job, reply) => {
                let ticket = self.ticket(Pending::Plain(reply));
                slice.jobs.push(JobMessage::Cancel { ticket, job });
            }
            Command::AddNode(node, reply) => {
                let ticket = self.ticket(Pending::Plain(reply));
                slice.cluster.push(ClusterMessage::AddNode { ticket, node });
            }
            Command::UpdateNode(name, patch, reply) => {
                let ticket = self.ticket(Pending::Plain(reply));
                slice.cluster.push(ClusterMessage::UpdateNode { ticket, name, patch });
            }
            Command::RemoveNode(name, reply) => {
                let ticket = self.ticket(Pending::Plain(reply));
                slice.cluster.push(ClusterMessage::RemoveNode { ticket, name });
            }
            Command::Heartbeat(node, true) => slice.cluster.push(ClusterMessage::HeartbeatBack(node)),
            Command::Heartbeat(node, false) => slice.cluster.push(ClusterMessage::HeartbeatLost(node)),
            Command::Explain(group, reply) => {
                let ticket = self.ticket(Pending::Plain(reply));
                slice.scheduler.push(SchedulerMessage::Explain { ticket, group });
            }
            Command::Settings(settings) => {
                let runner = self.common.runner_settings(&settings);
                slice.change_settings(&settings, runner);
                self.settings = settings;
            }
            Command::Subscribe(subscriber) => self.subscribers.push(subscriber),
            Command::Snapshot(reply) => slice.snapshots.push(reply),
            Command::Finished { node, attempts, exit } => {
                let exited = |attempt| (node, AgentMessage::Exited(attempt, exit));
                let messages = attempts.into_iter().map(exited).collect();
                self.router().shard(node).do_send(AgentBatch(messages));
            }
            Command::Acknowledge(attempts) => self.router().acknowledge(&attempts),
            #[cfg(test)]
            Command::Sabotage => slice.jobs.push(crate::tests::impossible()),
            Command::Drained(reply) => {
                let _ = reply.send(());
            }
        }
    }

    fn take_many(
        &mut self,
        specs: Vec<Arc<JobSpec>>,
        reply: oneshot::Sender<Vec<Answer>>,
        slice: &mut Slice,
    ) {
        if specs.is_empty() {
            let _ = reply.send(Vec::new());
            return;
        }
        let first = Ticket(self.last_ticket + 1);
        let many = Many { answers: Vec::with_capacity(specs.len()), outstanding: specs.len(), reply };
        self.many.insert(first, many);
        for spec in specs {
            let ticket = self.ticket(Pending::OfMany(first));
            slice.jobs.push(JobMessage::Submit { ticket, job: spec, adopted: Vec::new() });
        }
    }

    fn hand_on(&mut self, slice: Slice, context: &mut Context<Self>) {
        let router = self.router();
        let Slice { jobs, cluster, scheduler, runner, rebalancer, snapshots } = slice;
        if !cluster.is_empty() {
            router.cluster.do_send(Batch(cluster));
        }
        if !jobs.is_empty() {
            router.jobs.do_send(Batch(jobs));
        }
        if !scheduler.is_empty() {
            router.scheduler.do_send(Batch(scheduler));
        }
        if !runner.is_empty() {
            router.runner.do_send(Batch(runner));
        }
        if !rebalancer.is_empty() {
            router.rebalancer.do_send(Batch(rebalancer));
        }
        for reply in snapshots {
            self.take_snapshot(reply, context);
        }
    }

    fn take_snapshot(&self, reply: oneshot::Sender<snapshot::Snapshot>, context: &mut Context<Self>) {
        let cell = std::rc::Rc::clone(&self.common.router);
        let taken = self.common.clock.now();
        let (settings, last_ticket) = (Settings::clone(&self.settings), self.last_ticket);
        let work = async move {
            let router = cell.get().expect("wiring is done before the first command");
            if let Some(snapshot) = snapshot::take(router, taken, settings, last_ticket).await {
                let _ = reply.send(snapshot);
            }
        };
        // Snapshots wait for each other, and the lane waits for them.
        context.wait(work.into_actor(self));
    }

    fn answer(&mut self, ticket: Ticket, answer: Answer) {
        let Some(pending) = self.pending.remove(&ticket) else { return };
        match pending {
            Pending::Plain(reply) => {
                let _ = reply.send(answer);
            }
            Pending::OfMany(first) => {
                let many = self.many.get_mut(&first).expect("many are kept until all are answered");
                many.answers.push(answer);
                many.outstanding -= 1;
                if many.outstanding == 0 {
                    let many = self.many.remove(&first).expect("just seen");
                    let _ = many.reply.send(many.answers);
                }
            }
        }
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

impl Slice {
    fn change_settings(&mut self, settings: &Arc<Settings>, runner: Arc<Settings>) {
        self.jobs.push(JobMessage::Settings(Arc::clone(settings)));
        self.cluster.push(ClusterMessage::Settings(Arc::clone(settings)));
        self.scheduler.push(SchedulerMessage::Settings(Arc::clone(settings)));
        self.runner.push(RunnerMessage::Settings(runner));
        self.rebalancer.push(RebalancerMessage::Settings(Arc::clone(settings)));
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
                HostMessage::Reply { ticket, answer } => self.answer(ticket, answer),
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
            drained += self.drain_slice(context);
        }
        drained
    }
}

impl Handler<MachineStopped> for Front {
    type Result = ();

    fn handle(&mut self, _: MachineStopped, context: &mut Context<Self>) {
        self.lane.close();
        while self.lane.pop().is_some() {}
        // Callers learn of the end when the other end of their answer is dropped.
        self.pending.clear();
        self.many.clear();
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
