//! Turn logs: what each machine heard, when, and what it said. Replaying one gives the same machines
//! the same batches at the same times and compares every outbox, bit for bit.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::id::NodeId;
use crate::machine::Machine;
use crate::machines::Machines;
use crate::messages::{
    AgentMessage, ClusterMessage, JobMessage, Outbox, RebalancerMessage, RunnerMessage, SchedulerMessage,
};
use crate::node_agent::NodeAgent;
use crate::settings::Settings;
use crate::time::Time;

/// A machine, as logs and errors name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum MachineName {
    JobState,
    Scheduler,
    ClusterState,
    TaskRunner,
    Rebalancer,
    NodeAgent(NodeId),
}

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineName::NodeAgent(node) => write!(f, "NodeAgent of {node}"),
            other => write!(f, "{other:?}"),
        }
    }
}

/// The first record of a log: what the machines began with.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    pub settings: Settings,
}

/// One turn of one machine: when, what it heard, what it said.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum TurnRecord {
    Jobs(Time, Vec<JobMessage>, Outbox),
    Scheduler(Time, Vec<SchedulerMessage>, Outbox),
    Cluster(Time, Vec<ClusterMessage>, Outbox),
    Runner(Time, Vec<RunnerMessage>, Outbox),
    Rebalancer(Time, Vec<RebalancerMessage>, Outbox),
    Agent(NodeId, Time, Vec<AgentMessage>, Outbox),
    /// An agent began, with this session.
    AgentBegan(NodeId, u64),
    /// An agent began anew after a crash.
    AgentRestarted(NodeId, Outbox),
}

/// Why a log does not replay.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum Mismatch {
    #[error("turn {turn}: the {machine} said something else at {at} than the log has")]
    Outbox { turn: u64, machine: MachineName, at: Time },
    #[error("turn {turn}: the {machine} speaks before it began")]
    UnknownAgent { turn: u64, machine: MachineName },
}

/// The machines of a replay.
#[derive(Clone, Debug)]
pub struct Replay {
    machines: Machines,
    agents: BTreeMap<NodeId, NodeAgent>,
    turns: u64,
}

impl Replay {
    pub fn new(header: Header) -> Replay {
        let machines = Machines::new(&Arc::new(header.settings));
        Replay { machines, agents: BTreeMap::new(), turns: 0 }
    }

    /// Turns replayed so far.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Gives the machine of the record the same turn and compares what it says.
    pub fn step(&mut self, record: TurnRecord) -> Result<(), Mismatch> {
        self.turns += 1;
        let turn = self.turns;
        match record {
            TurnRecord::Jobs(at, batch, out) => {
                again(&mut self.machines.jobs, turn, MachineName::JobState, at, batch, &out)
            }
            TurnRecord::Scheduler(at, batch, out) => {
                again(&mut self.machines.scheduler, turn, MachineName::Scheduler, at, batch, &out)
            }
            TurnRecord::Cluster(at, batch, out) => {
                again(&mut self.machines.cluster, turn, MachineName::ClusterState, at, batch, &out)
            }
            TurnRecord::Runner(at, batch, out) => {
                again(&mut self.machines.runner, turn, MachineName::TaskRunner, at, batch, &out)
            }
            TurnRecord::Rebalancer(at, batch, out) => {
                again(&mut self.machines.rebalancer, turn, MachineName::Rebalancer, at, batch, &out)
            }
            TurnRecord::Agent(node, at, batch, out) => {
                let agent = self.agent(turn, node)?;
                again(agent, turn, MachineName::NodeAgent(node), at, batch, &out)
            }
            TurnRecord::AgentBegan(node, session) => {
                self.agents.insert(node, NodeAgent::new(node, session));
                Ok(())
            }
            TurnRecord::AgentRestarted(node, expected) => {
                let agent = self.agent(turn, node)?;
                let mut out = Outbox::default();
                *agent = NodeAgent::restarted(agent, &mut out);
                let machine = MachineName::NodeAgent(node);
                same(out == expected, Mismatch::Outbox { turn, machine, at: Time::ZERO })
            }
        }
    }

    fn agent(&mut self, turn: u64, node: NodeId) -> Result<&mut NodeAgent, Mismatch> {
        let machine = MachineName::NodeAgent(node);
        self.agents.get_mut(&node).ok_or(Mismatch::UnknownAgent { turn, machine })
    }
}

fn again<M: Machine>(
    machine: &mut M,
    turn: u64,
    name: MachineName,
    at: Time,
    batch: Vec<M::Message>,
    expected: &Outbox,
) -> Result<(), Mismatch> {
    let mut out = Outbox::default();
    machine.receive(at, batch, &mut out);
    same(out == *expected, Mismatch::Outbox { turn, machine: name, at })
}

fn same(equal: bool, mismatch: Mismatch) -> Result<(), Mismatch> {
    if equal { Ok(()) } else { Err(mismatch) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Ticket;
    use crate::job_state::JobState;
    use crate::resources::Resources;
    use crate::spec::JobSpec;

    fn submit() -> Vec<JobMessage> {
        let job = Arc::new(JobSpec::bag("j", 1, Resources::new()));
        vec![JobMessage::Submit { ticket: Ticket(1), job, adopted: Vec::new() }]
    }

    #[test]
    fn a_turn_replays_and_a_forged_one_does_not() {
        let settings = Settings::default();
        let mut jobs = JobState::new(Arc::new(settings.clone()));
        let mut out = Outbox::default();
        jobs.receive(Time(5), submit(), &mut out);
        let mut replay = Replay::new(Header { settings });
        assert_eq!(replay.step(TurnRecord::Jobs(Time(5), submit(), out.clone())), Ok(()));
        let forged = replay.step(TurnRecord::Jobs(Time(6), submit(), out));
        let mismatch = Mismatch::Outbox { turn: 2, machine: MachineName::JobState, at: Time(6) };
        assert_eq!(forged, Err(mismatch), "the second job has another number");
    }
}
