//! A NodeAgent: the executions on one node, reconciled with what is wanted by attempt, idempotently.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{Attempt, NodeId};
use crate::machine::{Broken, Machine};
use crate::messages::{AgentMessage, AgentReport, ExecutorMessage, Outbox};
use crate::mutation::{self, Mutation};
use crate::outcome::Exit;
use crate::spec::UnitNames;
use crate::time::Time;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeAgent {
    node: NodeId,
    /// Raised whenever the agent begins anew; what was meant for an earlier session is void.
    session: u64,
    /// Executions that have not ended, and whether they were told to stop.
    executions: BTreeMap<Attempt, bool>,
    /// A sweep to be confirmed once nothing runs any more.
    sweep: Option<u64>,
}

impl NodeAgent {
    /// An agent that begins its first session together with its node.
    pub fn new(node: NodeId, session: u64) -> NodeAgent {
        NodeAgent { node, session, executions: BTreeMap::new(), sweep: None }
    }

    /// An agent that begins anew after a crash, and says so. Its executions died with it.
    pub fn restarted(before: &NodeAgent, out: &mut Outbox) -> NodeAgent {
        let agent = NodeAgent::new(before.node, before.session + 1);
        agent.report(AgentReport::Hello, out);
        agent
    }

    pub fn session(&self) -> u64 {
        self.session
    }

    /// Attempts whose execution has not ended.
    pub fn executions(&self) -> impl Iterator<Item = Attempt> + '_ {
        self.executions.keys().copied()
    }

    fn start(&mut self, session: u64, attempt: Attempt, units: Option<Arc<UnitNames>>, out: &mut Outbox) {
        if session != self.session && !mutation::active(Mutation::ObeyOldSession) {
            return;
        }
        if let Entry::Vacant(place) = self.executions.entry(attempt) {
            place.insert(false);
            out.executor.push((self.node, ExecutorMessage::Run(attempt, units)));
        }
    }

    fn stop(&mut self, attempt: Attempt, out: &mut Outbox) {
        match self.executions.get_mut(&attempt) {
            Some(stopping) if !*stopping => {
                *stopping = true;
                out.executor.push((self.node, ExecutorMessage::Kill(attempt)));
            }
            Some(_) => {}
            // Not here: it has ended, or never arrived in this session. Either way it does not run.
            None => self.report(AgentReport::Finished(attempt, Exit::Stopped), out),
        }
    }

    fn sweep(&mut self, session: u64, sweep: u64, out: &mut Outbox) {
        if session != self.session {
            return;
        }
        self.sweep = Some(sweep);
        let running: Vec<Attempt> = self.executions().collect();
        for attempt in running {
            self.stop(attempt, out);
        }
        self.confirm_sweep_when_clear(out);
    }

    /// Compares what runs with what should: the first is stopped where it is too much, the second reported
    /// where it is missing.
    fn wanted(&mut self, session: u64, attempts: &[Attempt], out: &mut Outbox) {
        if session != self.session {
            return;
        }
        for attempt in attempts.iter().filter(|attempt| !self.executions.contains_key(attempt)) {
            self.report(AgentReport::Unknown(*attempt), out);
        }
        let unwanted = |(attempt, stopping): (&Attempt, &bool)| {
            (!*stopping && !attempts.contains(attempt)).then_some(*attempt)
        };
        let unwanted: Vec<Attempt> = self.executions.iter().filter_map(unwanted).collect();
        for attempt in unwanted {
            self.report(AgentReport::Unwanted(attempt), out);
            self.stop(attempt, out);
        }
    }

    fn exited(&mut self, attempt: Attempt, exit: Exit, out: &mut Outbox) {
        if self.executions.remove(&attempt).is_some() {
            self.report(AgentReport::Finished(attempt, exit), out);
            self.confirm_sweep_when_clear(out);
        }
    }

    fn confirm_sweep_when_clear(&mut self, out: &mut Outbox) {
        if self.executions.is_empty()
            && let Some(sweep) = self.sweep.take()
        {
            self.report(AgentReport::Swept(sweep), out);
        }
    }

    fn report(&self, report: AgentReport, out: &mut Outbox) {
        out.report(self.node, self.session, report);
    }
}

impl Machine for NodeAgent {
    type Message = AgentMessage;

    fn receive(&mut self, _now: Time, batch: Vec<AgentMessage>, out: &mut Outbox) {
        for message in batch {
            match message {
                AgentMessage::Start { session, attempt, units } => self.start(session, attempt, units, out),
                AgentMessage::Stop(attempt) => self.stop(attempt, out),
                AgentMessage::Sweep { session, sweep } => self.sweep(session, sweep, out),
                AgentMessage::Wanted { session, attempts } => self.wanted(session, &attempts, out),
                AgentMessage::Reached(attempt, phase) => {
                    if self.executions.get(&attempt) == Some(&false) {
                        self.report(AgentReport::Reached(attempt, phase), out);
                    }
                }
                AgentMessage::Exited(attempt, exit) => self.exited(attempt, exit, out),
            }
        }
    }

    /// An agent has no deadlines of its own: the TaskRunner watches its answers.
    fn wake_at(&self) -> Option<Time> {
        None
    }

    fn check(&self) -> Result<(), Broken> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{GroupId, JobId, Slot, TaskId};
    use crate::messages::RunnerMessage;

    const NODE: NodeId = NodeId(3);

    fn attempt(number: u32) -> Attempt {
        let task = TaskId { group: GroupId::new(JobId(1), 0), role: 0, index: 0 };
        Attempt { task, number, slot: Slot(0) }
    }

    fn hear(agent: &mut NodeAgent, message: AgentMessage) -> Outbox {
        let mut out = Outbox::default();
        agent.receive(Time(0), vec![message], &mut out);
        out
    }

    fn reports(out: &Outbox) -> Vec<AgentReport> {
        let reports = out.runner.iter().map(|message| match message {
            RunnerMessage::Report { report, .. } => report.clone(),
            other => panic!("an agent only reports, it said {other:?}"),
        });
        reports.collect()
    }

    #[test]
    fn starting_and_stopping_twice_is_doing_it_once() {
        let mut agent = NodeAgent::new(NODE, 0);
        let start = AgentMessage::Start { session: 0, attempt: attempt(1), units: None };
        assert_eq!(
            hear(&mut agent, start.clone()).executor,
            [(NODE, ExecutorMessage::Run(attempt(1), None))]
        );
        assert!(hear(&mut agent, start).is_empty());
        let stop = AgentMessage::Stop(attempt(1));
        assert_eq!(hear(&mut agent, stop.clone()).executor, [(NODE, ExecutorMessage::Kill(attempt(1)))]);
        assert!(hear(&mut agent, stop.clone()).is_empty());
        let out = hear(&mut agent, AgentMessage::Exited(attempt(1), Exit::Stopped));
        assert_eq!(reports(&out), [AgentReport::Finished(attempt(1), Exit::Stopped)]);
        let out = hear(&mut agent, stop);
        assert_eq!(reports(&out), [AgentReport::Finished(attempt(1), Exit::Stopped)]);
    }

    #[test]
    fn what_was_meant_for_an_earlier_session_is_void() {
        let mut out = Outbox::default();
        let mut agent = NodeAgent::restarted(&NodeAgent::new(NODE, 0), &mut out);
        assert_eq!(reports(&out), [AgentReport::Hello]);
        assert!(
            hear(&mut agent, AgentMessage::Start { session: 0, attempt: attempt(1), units: None }).is_empty()
        );
    }

    #[test]
    fn what_nobody_wants_is_stopped_and_what_is_missing_is_told() {
        let mut agent = NodeAgent::new(NODE, 0);
        hear(&mut agent, AgentMessage::Start { session: 0, attempt: attempt(1), units: None });
        let wanted = |session, number| AgentMessage::Wanted { session, attempts: vec![attempt(number)] };
        assert!(hear(&mut agent, wanted(0, 1)).is_empty(), "all is well");
        assert!(hear(&mut agent, wanted(1, 2)).is_empty(), "it was meant for another session");
        let out = hear(&mut agent, wanted(0, 2));
        let told = [AgentReport::Unknown(attempt(2)), AgentReport::Unwanted(attempt(1))];
        assert_eq!(reports(&out), told);
        assert_eq!(out.executor, [(NODE, ExecutorMessage::Kill(attempt(1)))]);
        let out = hear(&mut agent, AgentMessage::Wanted { session: 0, attempts: Vec::new() });
        assert!(out.is_empty(), "it is being stopped already");
    }

    #[test]
    fn a_sweep_is_confirmed_when_the_last_execution_has_ended() {
        let mut agent = NodeAgent::new(NODE, 0);
        hear(&mut agent, AgentMessage::Start { session: 0, attempt: attempt(1), units: None });
        let out = hear(&mut agent, AgentMessage::Sweep { session: 0, sweep: 9 });
        assert!(reports(&out).is_empty());
        let out = hear(&mut agent, AgentMessage::Exited(attempt(1), Exit::Completed));
        let finished = AgentReport::Finished(attempt(1), Exit::Completed);
        assert_eq!(reports(&out), [finished, AgentReport::Swept(9)]);
    }
}
