//! What is told of claims: who holds one, of which nodes, until when, and why it is over.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{GroupId, NodeId};
use crate::time::Time;

/// Something about the claim of a group has changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClaimNews {
    pub at: Time,
    pub group: GroupId,
    pub event: ClaimEvent,
    /// The claim, if it was made.
    pub claim: Option<Box<ClaimView>>,
}

/// A claim as the host sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClaimView {
    pub group: GroupId,
    /// The pool whose claim it is, `*` for that of all pools.
    pub pool: Arc<str>,
    /// Nodes that are kept for the claimant as they become free.
    pub nodes: Vec<NodeId>,
    /// Attempts that have to end there first.
    pub awaited: u32,
    /// Attempts that run there until the claimant can start, and go then.
    pub yielding: u32,
    /// Since when it is held.
    pub made: Time,
    /// When the claimant is expected to start, by what is declared and measured.
    pub expected: Option<Time>,
}

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClaimEvent {
    Made,
    /// The claimant runs.
    Started,
    /// The claimant was cancelled or has ended.
    Gone,
    /// The claimant wants something else by now, or the settings have changed.
    Changed,
    /// A limit keeps the claimant, whatever room there is.
    Limited,
    /// A node does not do any more.
    NodeChanged,
    /// Another group comes first.
    Overtaken,
    /// Work was taken away for the claimant: it gets what is freed by that.
    Helped,
    /// It has not started in time, and other nodes are expected to be free sooner.
    Moved,
}

impl ClaimEvent {
    /// In words that follow "the claim is over:".
    pub fn words(self) -> &'static str {
        match self {
            ClaimEvent::Made => "it was made",
            ClaimEvent::Started => "it was used",
            ClaimEvent::Gone => "its group is gone",
            ClaimEvent::Changed => "its group wants something else",
            ClaimEvent::Limited => "a limit keeps its group",
            ClaimEvent::NodeChanged => "one of its nodes does not do any more",
            ClaimEvent::Overtaken => "another group comes first",
            ClaimEvent::Helped => "work was taken away for its group",
            ClaimEvent::Moved => "other nodes are expected to be free sooner",
        }
    }
}
