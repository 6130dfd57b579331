//! What the Monitor asks for, and what comes of it: the ledger of a few nodes, compared by everybody who
//! keeps a view of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::id::{Attempt, GroupId, NodeId};
use crate::resources::Resources;
use crate::settings::Settings;

use super::scheduler::NodeView;

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
    /// All nodes from this id on, up to the next slice.
    pub first: NodeId,
    pub nodes: Vec<NodeAudit>,
    /// Where the next slice begins; `None` after the last.
    pub next: Option<NodeId>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeAudit {
    pub node: NodeId,
    /// The first session of its agent, which no other node of this id has had.
    pub session: u64,
    /// As it was announced, or should have been.
    pub view: NodeView,
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
    #[error("the Scheduler had a wrong view of {0}; it has the right one now")]
    WrongView(NodeId),
    #[error("the Scheduler does not add up what is free on {0}")]
    WrongSum(NodeId),
    #[error("{group} could have started and waited: a wake-up was lost; it has started now, in turn {turn}")]
    LostWakeUp {
        group: GroupId,
        /// Counts the Scheduler's turns of planning.
        turn: u64,
    },
    #[error("{group} can never run and was not ended for that; it is now, in turn {turn}")]
    Overlooked { group: GroupId, turn: u64 },
    #[error("JobState does not know that {0} is live")]
    UnknownToJobs(Attempt),
    #[error("JobState took {0} for live, which has ended; it counts as lost now")]
    EndMissed(Attempt),
    #[error("{0} holds its node, and the TaskRunner does not know of it; it counts as lost now")]
    Undispatched(Attempt),
    #[error("the TaskRunner watched over {0}, which has ended; it does not any more")]
    Overdispatched(Attempt),
    #[error("{0} should run, and its node's agent does not know of it; it counts as lost now")]
    Unexecuted(Attempt),
    #[error("{attempt} ran on {node}, and nobody wanted it; it was told to stop")]
    Orphan { attempt: Attempt, node: NodeId },
    #[error("the board was wrong about {0}; it is right now")]
    WrongBoard(NodeId),
}

impl Finding {
    /// Every kind by its name, for whoever counts them.
    pub const KINDS: [&str; 12] = [
        "end_unheard",
        "wrong_view",
        "wrong_sum",
        "lost_wake_up",
        "overlooked",
        "unknown_to_jobs",
        "end_missed",
        "undispatched",
        "overdispatched",
        "unexecuted",
        "orphan",
        "wrong_board",
    ];

    /// Which of [`Finding::KINDS`] this is.
    pub fn kind(&self) -> usize {
        match self {
            Finding::EndUnheard(_) => 0,
            Finding::WrongView(_) => 1,
            Finding::WrongSum(_) => 2,
            Finding::LostWakeUp { .. } => 3,
            Finding::Overlooked { .. } => 4,
            Finding::UnknownToJobs(_) => 5,
            Finding::EndMissed(_) => 6,
            Finding::Undispatched(_) => 7,
            Finding::Overdispatched(_) => 8,
            Finding::Unexecuted(_) => 9,
            Finding::Orphan { .. } => 10,
            Finding::WrongBoard(_) => 11,
        }
    }

    /// Whether it has been mended; what has not is for people.
    pub fn is_mended(&self) -> bool {
        !matches!(self, Finding::WrongSum(_) | Finding::UnknownToJobs(_))
    }
}
