//! The node agents: many machines share an actor, because a message to a random one of tens of
//! thousands of actors costs ten times one to a warm shard. A panic in an agent restarts it alone.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, MessageResult, WrapFuture,
};
use metrics::Gauge;
use plimsoll_core::id::{Attempt, NodeId};
use plimsoll_core::machine::Machine;
use plimsoll_core::messages::{AgentMessage, ExecutorMessage, Outbox, RunnerMessage};
use plimsoll_core::node_agent::NodeAgent;
use plimsoll_core::outcome::{Exit, FailureCause, Phase};
use plimsoll_core::task_runner::TaskRunner;
use plimsoll_core::turn_log::TurnRecord;
use tokio::task::AbortHandle;

use crate::board::{Board, TaskFailure};
use crate::clock::Clock;
use crate::preparations::Preparations;
use crate::recorder::Recorder;
use crate::router::Mailbox;
use crate::vital::Vital;
use crate::work::{Started, Work};

/// Messages for agents of this shard, in order.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct AgentBatch(pub(crate) Vec<(NodeId, AgentMessage)>);

/// Agents come and go with their nodes.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) enum AgentChange {
    Begin {
        node: NodeId,
        name: Arc<str>,
        session: u64,
    },
    /// The agent of a restored runtime: what ran before is gone.
    BeginAnew {
        node: NodeId,
        name: Arc<str>,
        last_session: u64,
    },
    End {
        node: NodeId,
    },
}

/// An execution came this far, on a worker thread.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct ExecutionNews {
    pub(crate) node: NodeId,
    pub(crate) attempt: Attempt,
    /// Which execution speaks: an agent that began anew does not listen to older ones.
    pub(crate) serial: u64,
    pub(crate) what: Progress,
}

#[derive(Clone, Debug)]
pub(crate) enum Progress {
    Reached(Phase),
    /// With the words of a failure.
    Exited(Exit, Option<Arc<str>>),
}

/// Whether the agent of this node is alive.
#[derive(Message)]
#[rtype(result = "bool")]
pub(crate) struct Ping(pub(crate) NodeId);

/// Stop everything; the answer is how many executions there are.
#[derive(Message)]
#[rtype(result = "usize")]
pub(crate) struct StopAll;

/// How many executions have not ended.
#[derive(Message)]
#[rtype(result = "usize")]
pub(crate) struct CountExecutions;

pub(crate) struct AgentShard {
    pub(crate) agents: Seats,
    /// What was ended without waiting for it, by the names of the nodes, which may be gone.
    pub(crate) ending: BTreeMap<Arc<str>, Vec<AbortHandle>>,
    pub(crate) work: Work,
    pub(crate) preparations: Preparations,
    pub(crate) runner: Mailbox<TaskRunner>,
    pub(crate) board: Arc<Board>,
    pub(crate) clock: Clock,
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// Its own address, for executions to report to: making one anew for each costs as much as two messages.
    pub(crate) address: Option<Addr<AgentShard>>,
    /// What an agent says, emptied after each turn: its room is used again.
    pub(crate) said: Outbox,
    /// Batches that were sent and not heard yet.
    pub(crate) depth: Gauge,
    pub(crate) _vital: Vital,
    /// Agents whose next step panics, to see what becomes of it.
    #[cfg(any(test, feature = "sabotage"))]
    pub(crate) sabotaged: std::collections::BTreeSet<NodeId>,
}

pub(crate) struct Seat {
    machine: NodeAgent,
    name: Arc<str>,
}

/// Agents by the numbers of their nodes, which are few and used again.
#[derive(Default)]
pub(crate) struct Seats(Vec<Option<Seat>>);

impl Seats {
    fn get(&self, node: NodeId) -> Option<&Seat> {
        self.0.get(node.index())?.as_ref()
    }

    fn get_mut(&mut self, node: NodeId) -> Option<&mut Seat> {
        self.0.get_mut(node.index())?.as_mut()
    }

    fn insert(&mut self, node: NodeId, seat: Seat) {
        if self.0.len() <= node.index() {
            self.0.resize_with(node.index() + 1, || None);
        }
        self.0[node.index()] = Some(seat);
    }

    fn remove(&mut self, node: NodeId) {
        if let Some(seat) = self.0.get_mut(node.index()) {
            *seat = None;
        }
    }
}

impl AgentShard {
    /// Lets an agent hear these messages, and carries out what it asks of the executor, until it
    /// asks nothing more. What it reports goes into `reports`.
    fn turn(
        &mut self,
        node: NodeId,
        mut messages: Vec<AgentMessage>,
        reports: &mut Vec<RunnerMessage>,
        context: &mut Context<Self>,
    ) {
        while !messages.is_empty() {
            let Some(seat) = self.agents.get_mut(node) else { return };
            let now = self.clock.now();
            let copy = self.recorder.is_some().then(|| messages.clone());
            let mut out = std::mem::take(&mut self.said);
            let machine = &mut seat.machine;
            let batch = std::mem::take(&mut messages);
            #[cfg(any(test, feature = "sabotage"))]
            let sabotaged = self.sabotaged.remove(&node);
            let step = || {
                #[cfg(any(test, feature = "sabotage"))]
                assert!(!sabotaged, "as it was told to");
                machine.receive(now, batch, &mut out);
            };
            if catch_unwind(AssertUnwindSafe(step)).is_err() {
                return self.restart(node, reports, context);
            }
            if let (Some(recorder), Some(batch)) = (&self.recorder, copy) {
                recorder.record(&TurnRecord::Agent(node, now, batch, out.clone()));
            }
            reports.append(&mut out.runner);
            for (_, order) in out.executor.drain(..) {
                messages.extend(self.carry_out(node, order));
            }
            self.said = out;
        }
    }

    fn carry_out(&mut self, node: NodeId, order: ExecutorMessage) -> Option<AgentMessage> {
        match order {
            ExecutorMessage::Run(attempt, units) => {
                let name = &self.agents.get(node).expect("only agents that are there speak").name;
                let spec = self.board.spec(attempt.task.job());
                let address = self.address.as_ref().expect("an actor that was started has an address");
                let work = &mut self.work;
                let start = AssertUnwindSafe(|| work.start(node, attempt, spec, name, units, address));
                // Whatever the executor does, it costs its own task only.
                let failed = || Started::Over(Exit::Failed(FailureCause::Panic), None);
                match catch_unwind(start).unwrap_or_else(|_| failed()) {
                    Started::Running(phase) => Some(AgentMessage::Reached(attempt, phase)),
                    Started::Over(exit, text) => {
                        self.note_failure(node, attempt, text);
                        Some(AgentMessage::Exited(attempt, exit))
                    }
                }
            }
            ExecutorMessage::Kill(attempt) => {
                let name = &self.agents.get(node).expect("only agents that are there speak").name;
                let spec = self.board.spec(attempt.task.job());
                let over = self.work.stop(node, attempt, spec, name);
                over.map(|exit| AgentMessage::Exited(attempt, exit))
            }
        }
    }

    /// What a failed task says is for people: it goes to the board and no machine hears of it.
    fn note_failure(&self, node: NodeId, attempt: Attempt, text: Option<Arc<str>>) {
        if let (Some(text), Some(seat)) = (text, self.agents.get(node)) {
            self.board.note_failure(TaskFailure { attempt, node: Arc::clone(&seat.name), text });
        }
    }

    /// An agent panicked: its executions end with it.
    fn restart(&mut self, node: NodeId, reports: &mut Vec<RunnerMessage>, context: &mut Context<Self>) {
        tracing::error!(%node, "an agent panicked and begins anew");
        self.abandon(node);
        self.begin_anew(node, reports, context);
    }

    /// Ends everything on a node without waiting for it, and remembers what is not over yet.
    fn abandon(&mut self, node: NodeId) {
        let mut ending = self.work.abandon(node);
        self.preparations.abandon(node);
        self.ending.retain(|_, ending| !ending.iter().all(AbortHandle::is_finished));
        if let Some(seat) = self.agents.get(node).filter(|_| !ending.is_empty()) {
            self.ending.entry(Arc::clone(&seat.name)).or_default().append(&mut ending);
        }
    }

    /// The agent says that it has begun anew only when nothing is left of what ended on its node: what ran may
    /// be started again as soon as that is heard.
    fn begin_anew(&mut self, node: NodeId, reports: &mut Vec<RunnerMessage>, context: &mut Context<Self>) {
        let Some(seat) = self.agents.get_mut(node) else { return };
        let mut out = Outbox::default();
        seat.machine = NodeAgent::restarted(&seat.machine, &mut out);
        if let Some(recorder) = &self.recorder {
            recorder.record(&TurnRecord::AgentRestarted(node, out.clone()));
        }
        let ending = self.ending.get(&seat.name).cloned().unwrap_or_default();
        if ending.iter().all(AbortHandle::is_finished) {
            return reports.append(&mut out.runner);
        }
        let over = async move {
            while !ending.iter().all(AbortHandle::is_finished) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let over = over.into_actor(self).map(move |(), shard, _| shard.report(out.runner));
        context.spawn(over);
    }

    /// An agent for a node that was added. Should a node of that name have left before with something that
    /// has not ended yet, that is waited for.
    fn begin(&mut self, node: NodeId, name: Arc<str>, session: u64, context: &mut Context<Self>) {
        if let Some(recorder) = &self.recorder {
            recorder.record(&TurnRecord::AgentBegan(node, session));
        }
        let is_awaited = self.ending.contains_key(&name);
        self.agents.insert(node, Seat { machine: NodeAgent::new(node, session), name });
        if is_awaited {
            self.begin_anew_and_report(node, context);
        }
    }

    fn begin_anew_and_report(&mut self, node: NodeId, context: &mut Context<Self>) {
        let mut reports = Vec::new();
        self.begin_anew(node, &mut reports, context);
        self.report(reports);
    }

    pub(crate) fn name_of(&self, node: NodeId) -> Option<Arc<str>> {
        self.agents.get(node).map(|seat| Arc::clone(&seat.name))
    }

    fn report(&mut self, reports: Vec<RunnerMessage>) {
        self.work.hand_over();
        self.runner.post(reports);
    }
}

impl Actor for AgentShard {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.address = Some(context.address());
    }
}

impl Handler<AgentBatch> for AgentShard {
    type Result = ();

    fn handle(&mut self, batch: AgentBatch, context: &mut Context<Self>) {
        self.depth.decrement(1.0);
        let span = tracing::debug_span!("turn", machine = "NodeAgents", messages = batch.0.len());
        let _entered = span.enter();
        let mut reports = Vec::new();
        let mut messages = batch.0.into_iter().peekable();
        while let Some((node, first)) = messages.next() {
            let mut turn = vec![first];
            while let Some((_, message)) = messages.next_if(|(next, _)| *next == node) {
                turn.push(message);
            }
            self.turn(node, turn, &mut reports, context);
        }
        self.report(reports);
    }
}

impl Handler<AgentChange> for AgentShard {
    type Result = ();

    fn handle(&mut self, change: AgentChange, context: &mut Context<Self>) {
        match change {
            AgentChange::Begin { node, name, session } => self.begin(node, name, session, context),
            AgentChange::BeginAnew { node, name, last_session } => {
                self.agents.insert(node, Seat { machine: NodeAgent::new(node, last_session), name });
                self.begin_anew_and_report(node, context);
            }
            AgentChange::End { node } => {
                self.abandon(node);
                self.agents.remove(node);
            }
        }
    }
}

impl Handler<ExecutionNews> for AgentShard {
    type Result = ();

    fn handle(&mut self, news: ExecutionNews, context: &mut Context<Self>) {
        let ExecutionNews { node, attempt, serial, what } = news;
        if !self.work.is_current(node, attempt, serial) {
            return;
        }
        let message = match what {
            Progress::Reached(phase) => AgentMessage::Reached(attempt, phase),
            Progress::Exited(exit, text) => {
                let stopped = self.work.end(node, attempt);
                // What ends after it was told to has obeyed, unless it came to its own good end.
                let obeyed = stopped && matches!(exit, Exit::Failed(_));
                if !obeyed {
                    self.note_failure(node, attempt, text);
                }
                AgentMessage::Exited(attempt, if obeyed { Exit::Stopped } else { exit })
            }
        };
        let mut reports = Vec::new();
        self.turn(node, vec![message], &mut reports, context);
        self.report(reports);
    }
}

impl Handler<Ping> for AgentShard {
    type Result = bool;

    fn handle(&mut self, ping: Ping, _: &mut Context<Self>) -> bool {
        self.agents.get(ping.0).is_some()
    }
}

/// The next step of this node's agent is to panic.
#[cfg(any(test, feature = "sabotage"))]
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct SabotageAgent(pub(crate) NodeId);

#[cfg(any(test, feature = "sabotage"))]
impl Handler<SabotageAgent> for AgentShard {
    type Result = ();

    fn handle(&mut self, agent: SabotageAgent, _: &mut Context<Self>) {
        self.sabotaged.insert(agent.0);
    }
}

impl Handler<StopAll> for AgentShard {
    type Result = MessageResult<StopAll>;

    fn handle(&mut self, _: StopAll, _: &mut Context<Self>) -> MessageResult<StopAll> {
        self.work.stop_all();
        self.preparations.abandon_all();
        MessageResult(self.work.count())
    }
}

impl Handler<CountExecutions> for AgentShard {
    type Result = MessageResult<CountExecutions>;

    fn handle(&mut self, _: CountExecutions, _: &mut Context<Self>) -> MessageResult<CountExecutions> {
        MessageResult(self.work.count())
    }
}

#[cfg(test)]
impl Handler<crate::vital::Sabotage> for AgentShard {
    type Result = ();

    fn handle(&mut self, _: crate::vital::Sabotage, _: &mut Context<Self>) {
        panic!("as it was told to");
    }
}
