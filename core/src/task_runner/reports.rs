//! What the node agents say, taken only from their current session.

use crate::id::{Attempt, NodeId};
use crate::messages::{AgentMessage, AgentReport, ClusterMessage, Finding, HostMessage, Outbox};
use crate::outcome::{Exit, Phase};
use crate::time::{Span, Time};

use super::{Stage, TaskRunner};

/// Which node of an id a session belongs to: each has its own, and begins to count there.
fn incarnation(session: u64) -> u64 {
    session >> u32::BITS
}

impl TaskRunner {
    pub(super) fn report(
        &mut self,
        now: Time,
        node: NodeId,
        session: u64,
        report: AgentReport,
        out: &mut Outbox,
    ) {
        let current = self.agent_mut(node).session;
        match report {
            // Of a node that was added under the id of one that is still known here: what was meant for
            // that one is not for this agent.
            AgentReport::Hello if incarnation(session) > incarnation(current) => {
                let agent = self.agent_mut(node);
                agent.early = agent.early.max(session);
            }
            AgentReport::Hello if session > current => self.hello(node, session, out),
            _ if session != current => {}
            AgentReport::Hello => {}
            AgentReport::Reached(attempt, phase) => self.reached(now, attempt, phase, out),
            AgentReport::Finished(attempt, exit) => self.end(attempt, exit, out),
            AgentReport::Swept(sweep) => self.swept(node, sweep, out),
            AgentReport::Unknown(attempt) => self.unknown_to_agent(attempt, out),
            AgentReport::Unwanted(attempt) => {
                out.host.push(HostMessage::Finding(Finding::Orphan { attempt, node }));
            }
        }
    }

    /// The agent began anew. What it had begun is gone; what it may not have heard is said again.
    fn hello(&mut self, node: NodeId, session: u64, out: &mut Outbox) {
        let agent = self.agent_mut(node);
        agent.session = session;
        let (attempts, sweep) = (agent.attempts, agent.sweep);
        let mut slots: Vec<u32> = self.on_node.iter(attempts).collect();
        slots.reverse(); // chains are newest first; the agent hears them in the order of launch
        for slot in slots {
            let dispatch = self.live[slot as usize].as_ref().expect("chained attempts are live");
            let attempt = dispatch.attempt;
            match dispatch.stage {
                Stage::Sent => {
                    let units = dispatch.units.clone();
                    out.agents.push((node, AgentMessage::Start { session, attempt, units }));
                }
                Stage::Begun(_) => self.end(attempt, Exit::Lost, out),
                Stage::Stopping | Stage::TimingOut(_) => self.end(attempt, Exit::Stopped, out),
            }
        }
        if let Some(sweep) = sweep {
            out.agents.push((node, AgentMessage::Sweep { session, sweep }));
        }
    }

    fn reached(&mut self, now: Time, attempt: Attempt, phase: Phase, out: &mut Outbox) {
        let Some(dispatch) = self.dispatch_mut(attempt) else { return };
        match dispatch.stage {
            Stage::Begun(before) if phase <= before => return,
            Stage::Sent | Stage::Begun(_) => {}
            // It is to end: how far it came does not matter any more.
            Stage::Stopping | Stage::TimingOut(_) => return,
        }
        let timeout = dispatch.timeout.get();
        let deadline = now + self.time_for(phase, timeout);
        self.enter_stage(attempt, Stage::Begun(phase), deadline);
        out.cluster_progress(attempt, phase);
    }

    /// How long an attempt may stay in a phase. Nothing more need be heard of one that waits on its node
    /// before it has ended, so that it gets the time to run.
    fn time_for(&self, phase: Phase, timeout: Option<Span>) -> Span {
        let deadlines = &self.settings.deadlines;
        match (phase, timeout) {
            (Phase::Installing, _) => deadlines.prepare,
            (_, Some(timeout)) => Span(timeout.0.saturating_add(deadlines.overhead.0)),
            (_, None) => deadlines.run,
        }
    }

    fn swept(&mut self, node: NodeId, sweep: u64, out: &mut Outbox) {
        let agent = self.agent_mut(node);
        if agent.sweep == Some(sweep) {
            agent.sweep = None;
            out.cluster.push(ClusterMessage::Swept { node, sweep });
        }
    }
}
