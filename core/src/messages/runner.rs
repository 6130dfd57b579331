//! What the TaskRunner hears.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{Attempt, NodeId};
use crate::outcome::{Exit, Phase};
use crate::settings::Settings;
use crate::spec::UnitNames;
use crate::time::Span;

use super::audit::Audit;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum RunnerMessage {
    /// From ClusterState: these attempts hold their nodes and are to run.
    Launch(Vec<Launch>),
    /// From ClusterState: these are to end.
    Stop(Vec<Attempt>),
    /// From ClusterState: these may run for so much longer from now on, whatever was said before.
    Extend(Vec<(Attempt, Span)>),
    /// From ClusterState: these count as ended; nothing more is to be said about them.
    Abandon(Vec<Attempt>),
    /// From ClusterState: the node is back; end everything on it that is not wanted and say so.
    Sweep {
        node: NodeId,
        sweep: u64,
    },
    /// From ClusterState: a node was added, and its agent begins with this session. Sessions are
    /// unique, so an agent never obeys what was meant for an earlier node of the same id.
    NodeAdded {
        node: NodeId,
        session: u64,
    },
    /// From ClusterState: the node was removed.
    NodeGone(NodeId),
    /// From ClusterState: what the ledger says of some nodes.
    Audit(Arc<Audit>),
    /// From a node's agent.
    Report {
        node: NodeId,
        session: u64,
        report: AgentReport,
    },
    Settings(Arc<Settings>),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Launch {
    pub attempt: Attempt,
    pub node: NodeId,
    /// How long it may run, if its role says so.
    pub timeout: Option<Span>,
    /// The units it was given, where they have names.
    pub units: Option<Arc<UnitNames>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AgentReport {
    /// The agent began a new session: whatever ran before it is gone.
    Hello,
    Reached(Attempt, Phase),
    Finished(Attempt, Exit),
    /// Everything that was not wanted has ended.
    Swept(u64),
    /// This should run here, and is not known.
    Unknown(Attempt),
    /// This runs here, and should not: it was told to stop.
    Unwanted(Attempt),
}
