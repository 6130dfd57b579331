//! The TaskRunner: from launch to terminal report. It hands attempts to the node agents, watches
//! that each state ends in time, and passes ends on to ClusterState.

mod audit;
mod reports;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::collections::{Blocks, Chain, Deadlines, Links, reach};
use crate::id::{Attempt, NodeId};
use crate::machine::{Broken, Machine, promise};
use crate::messages::{AgentMessage, ClusterMessage, EndReport, Launch, Outbox, RunnerMessage};
use crate::mutation::{self, Mutation};
use crate::outcome::{Exit, Phase};
use crate::settings::Settings;
use crate::spec::UnitNames;
use crate::time::{MaybeSpan, Span, Time};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskRunner {
    settings: Arc<Settings>,
    /// Live attempts by slot, chained by node.
    live: Blocks<Option<Dispatch>>,
    on_node: Links,
    agents: Vec<Agent>,
    #[serde(skip)]
    deadlines: Deadlines,
}

/// One attempt on its way.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Dispatch {
    attempt: Attempt,
    node: NodeId,
    stage: Stage,
    deadline: Time,
    /// How long it may run, if its role says so.
    timeout: MaybeSpan,
    /// The units it was given, where they have names.
    units: Option<Arc<UnitNames>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Stage {
    /// Sent to the agent, which has not said anything about it yet.
    Sent,
    /// The agent has it, and it has come this far there.
    Begun(Phase),
    /// It was told to end.
    Stopping,
    /// It was told to end because it stayed in this phase for too long.
    TimingOut(Phase),
}

/// What is known of a node's agent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Agent {
    session: u64,
    /// The session in which the agent of the next node of this id has begun anew, heard before the node.
    early: u64,
    attempts: Chain,
    /// A sweep that the agent has not confirmed yet.
    sweep: Option<u64>,
}

impl TaskRunner {
    pub fn new(settings: Arc<Settings>) -> TaskRunner {
        TaskRunner {
            settings,
            live: Blocks::default(),
            on_node: Links::default(),
            agents: Vec::new(),
            deadlines: Deadlines::default(),
        }
    }

    /// Attempts on their way, by slot, with the node of each.
    pub fn live(&self) -> impl Iterator<Item = (Attempt, NodeId)> + '_ {
        self.live.iter().flatten().map(|dispatch| (dispatch.attempt, dispatch.node))
    }

    /// An attempt whose deadline has passed without anything being done about it.
    pub fn overdue_since(&self, now: Time) -> Option<Attempt> {
        let overdue = self.live.iter().flatten().find(|dispatch| dispatch.deadline <= now);
        overdue.map(|dispatch| dispatch.attempt)
    }

    /// The session that each node's agent is believed to be in.
    pub fn session(&self, node: NodeId) -> u64 {
        self.agents.get(node.index()).map_or(0, |agent| agent.session)
    }

    fn agent_mut(&mut self, node: NodeId) -> &mut Agent {
        reach(&mut self.agents, node.index(), Agent::default);
        &mut self.agents[node.index()]
    }

    fn dispatch_mut(&mut self, attempt: Attempt) -> Option<&mut Dispatch> {
        self.live.get_mut(attempt.slot.index())?.as_mut().filter(|dispatch| dispatch.attempt == attempt)
    }

    fn launch(&mut self, now: Time, launch: Launch, out: &mut Outbox) {
        let Launch { attempt, node, timeout, units } = launch;
        let index = attempt.slot.index();
        self.live.reach(index, || None);
        assert!(self.live[index].is_none(), "a slot is used again only after its release");
        let (deadline, timeout) = (now + self.settings.deadlines.dispatch, timeout.into());
        self.live[index] =
            Some(Dispatch { attempt, node, stage: Stage::Sent, deadline, timeout, units: units.clone() });
        self.deadlines.set(index, deadline);
        self.agent_mut(node);
        let agent = &mut self.agents[node.index()];
        self.on_node.push(&mut agent.attempts, attempt.slot.0);
        out.agents.push((node, AgentMessage::Start { session: agent.session, attempt, units }));
    }

    fn enter_stage(&mut self, attempt: Attempt, stage: Stage, deadline: Time) {
        let dispatch = self.dispatch_mut(attempt).expect("the caller has seen the attempt");
        dispatch.stage = stage;
        dispatch.deadline = deadline;
        self.deadlines.set(attempt.slot.index(), deadline);
    }

    fn stop(&mut self, now: Time, attempt: Attempt, stage: Stage, out: &mut Outbox) {
        let Some(dispatch) = self.dispatch_mut(attempt) else { return };
        if matches!(dispatch.stage, Stage::Stopping | Stage::TimingOut(_)) {
            return;
        }
        let node = dispatch.node;
        let deadline = now + self.settings.deadlines.stop;
        self.enter_stage(attempt, stage, deadline);
        out.agents.push((node, AgentMessage::Stop(attempt)));
        if mutation::active(Mutation::ConfirmStopEarly) {
            self.end(attempt, Exit::Stopped, out);
        }
    }

    /// The attempt may run for so long from now on; one that does not run yet, from when it does.
    fn extend(&mut self, now: Time, attempt: Attempt, span: Span) {
        let Some(dispatch) = self.dispatch_mut(attempt) else { return };
        dispatch.timeout = span.into();
        match dispatch.stage {
            Stage::Begun(phase) if phase != Phase::Installing => {
                let deadline = now + span;
                self.enter_stage(attempt, Stage::Begun(phase), deadline);
            }
            Stage::Sent | Stage::Begun(_) | Stage::Stopping | Stage::TimingOut(_) => {}
        }
    }

    /// Forgets an attempt; true if it was there.
    fn remove(&mut self, attempt: Attempt) -> bool {
        let Some(dispatch) = self.dispatch_mut(attempt) else { return false };
        let node = dispatch.node;
        self.live[attempt.slot.index()] = None;
        self.deadlines.clear(attempt.slot.index());
        self.on_node.remove(&mut self.agents[node.index()].attempts, attempt.slot.0);
        true
    }

    fn abandon(&mut self, attempt: Attempt, out: &mut Outbox) {
        let Some(dispatch) = self.dispatch_mut(attempt) else { return };
        // Should the agent ever hear this, the execution ends there too.
        out.agents.push((dispatch.node, AgentMessage::Stop(attempt)));
        self.remove(attempt);
    }

    fn end(&mut self, attempt: Attempt, exit: Exit, out: &mut Outbox) {
        let Some(dispatch) = self.dispatch_mut(attempt) else { return };
        let exit = match (dispatch.stage, exit) {
            (Stage::TimingOut(phase), Exit::Stopped) => Exit::TimedOut(phase),
            (_, exit) => exit,
        };
        self.remove(attempt);
        out.ended(EndReport { attempt, exit });
    }

    fn sweep(&mut self, node: NodeId, sweep: u64, out: &mut Outbox) {
        let agent = self.agent_mut(node);
        agent.sweep = Some(sweep);
        let session = agent.session;
        out.agents.push((node, AgentMessage::Sweep { session, sweep }));
    }

    /// The new agent may have begun anew before this is heard.
    fn node_added(&mut self, node: NodeId, session: u64) {
        let agent = self.agent_mut(node);
        agent.session = agent.session.max(agent.early).max(session);
        agent.early = 0;
    }

    fn node_gone(&mut self, node: NodeId) {
        let agent = self.agent_mut(node);
        debug_assert!(agent.attempts.is_empty(), "a removed node's attempts were abandoned first");
        agent.sweep = None;
    }

    fn overdue(&mut self, now: Time, index: usize, out: &mut Outbox) {
        let dispatch = self.live[index].as_ref().expect("only live attempts have deadlines");
        let (attempt, node) = (dispatch.attempt, dispatch.node);
        match dispatch.stage {
            Stage::Sent => self.stop(now, attempt, Stage::TimingOut(Phase::Scheduled), out),
            Stage::Begun(Phase::Installing) if mutation::active(Mutation::PrepareForever) => {}
            Stage::Begun(phase) => self.stop(now, attempt, Stage::TimingOut(phase), out),
            stage @ (Stage::Stopping | Stage::TimingOut(_)) => {
                // The execution may still be there: only the node's liveness can settle it.
                out.cluster.push(ClusterMessage::Unresponsive(node));
                let deadline = now + self.settings.deadlines.stop;
                self.enter_stage(attempt, stage, deadline);
            }
        }
    }
}

impl Machine for TaskRunner {
    type Message = RunnerMessage;

    fn receive(&mut self, now: Time, batch: Vec<RunnerMessage>, out: &mut Outbox) {
        for message in batch {
            match message {
                RunnerMessage::Launch(list) => list.into_iter().for_each(|one| self.launch(now, one, out)),
                RunnerMessage::Stop(list) => {
                    list.into_iter().for_each(|one| self.stop(now, one, Stage::Stopping, out));
                }
                RunnerMessage::Extend(list) => {
                    list.into_iter().for_each(|(attempt, span)| self.extend(now, attempt, span));
                }
                RunnerMessage::Abandon(list) => list.into_iter().for_each(|one| self.abandon(one, out)),
                RunnerMessage::Sweep { node, sweep } => self.sweep(node, sweep, out),
                RunnerMessage::NodeAdded { node, session } => self.node_added(node, session),
                RunnerMessage::NodeGone(node) => self.node_gone(node),
                RunnerMessage::Report { node, session, report } => {
                    self.report(now, node, session, report, out);
                }
                RunnerMessage::Audit(audit) => self.audit(&audit, out),
                RunnerMessage::Settings(settings) => self.settings = settings,
            }
        }
        while let Some(index) = self.deadlines.pop_due(now) {
            self.overdue(now, index, out);
        }
    }

    fn wake_at(&self) -> Option<Time> {
        self.deadlines.earliest()
    }

    fn rebuild(&mut self) {
        self.deadlines = Deadlines::default();
        for (index, dispatch) in self.live.iter().enumerate() {
            let deadline = dispatch.as_ref().map_or(Time::NEVER, |dispatch| dispatch.deadline);
            self.deadlines.set(index, deadline);
        }
    }

    fn check(&self) -> Result<(), Broken> {
        let chained: usize = self.agents.iter().map(|agent| self.on_node.iter(agent.attempts).count()).sum();
        promise!(4, chained == self.live().count(), "an attempt on its way is chained to no agent");
        Ok(())
    }
}
