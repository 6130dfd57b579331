//! What the Monitor asks for, and what comes of it: the ledger of a few nodes, compared by everybody who
//! keeps a view of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::id::{Attempt, GroupId, NodeId};
use crate::resources::Resources;
use crate::settings::Settings;

/// What the Monitor hears.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum MonitorMessage {
    Settings(Arc<Settings>),
    /// A slice has been compared.
    Audited(Audited),
}

/// A few nodes as the ledger has them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Audit {
    pub nodes: Vec<NodeAudit>,
    /// Where the next slice begins; `None` after the last.
    pub next: Option<NodeId>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeAudit {
    pub node: NodeId,
    pub version: u64,
    pub free: Resources,
    /// By slot.
    pub live: Vec<Attempt>,
}

/// What came of a slice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Audited {
    /// Nodes that could be compared; none while something was on its way.
    pub compared: u64,
    pub next: Option<NodeId>,
}

/// Something that should not be. Always a fault of this program, never of its users.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Finding {
    #[error("the Scheduler took {0} for live, which has ended; it does not any more")]
    EndUnheard(Attempt),
    #[error("the Scheduler has a wrong view of {0}")]
    WrongView(NodeId),
    #[error("{0} could have started and waited: a wake-up was lost; it has started now")]
    LostWakeUp(GroupId),
    #[error("JobState does not know that {0} is live")]
    UnknownToJobs(Attempt),
}
