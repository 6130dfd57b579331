//! What is asked and told about how nodes spent their time.

use serde::{Deserialize, Serialize};

use crate::cluster_state::Usage;
use crate::spec::Condition;
use crate::time::{Span, Time};

/// Whose time is asked about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum UsageOf {
    Node(String),
    /// Every node that is in this pool now.
    Pool(String),
    All,
}

/// A node was in this state from then on, until the next entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UsageEntry {
    pub from: Time,
    pub condition: Condition,
    pub usage: Usage,
}

/// Time spent in one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StateTime {
    pub condition: Condition,
    pub usage: Usage,
    pub span: Span,
}

/// How nodes spent their time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct UsageAnswer {
    /// When it was told.
    pub at: Time,
    /// How many nodes it is about.
    pub nodes: u64,
    /// Before this moment not everything is known of each of them.
    pub complete_since: Time,
    /// In sum over the nodes, by state.
    pub times: Vec<StateTime>,
    /// Of a single node: the states it was in, oldest first, the last of them the current one.
    pub entries: Vec<UsageEntry>,
}

impl UsageAnswer {
    /// Time in this state, whatever the condition.
    pub fn time_in(&self, usage: Usage) -> Span {
        let times = self.times.iter().filter(|time| time.usage == usage);
        Span(times.map(|time| time.span.0).sum())
    }
}
