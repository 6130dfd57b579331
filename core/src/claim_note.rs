//! What claims mean to something that waits, as data and in words.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::GroupId;
use crate::time::Time;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum ClaimNote {
    /// It holds the claim of a pool, `*` for that of all pools.
    Holds {
        pool: Arc<str>,
        /// Nodes that are kept for it as they become free.
        nodes: Vec<String>,
        /// Tasks that have to end there first.
        awaited: u32,
        /// Tasks that run there until it can start, and go then.
        yielding: u32,
        /// When it is expected to start, if that is known.
        expected: Option<Time>,
    },
    /// These nodes have room for it, and are kept for others.
    KeptFromIt(Vec<KeptNode>),
}

/// A node that is kept for a group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptNode {
    pub node: String,
    pub group: GroupId,
    /// When that group is expected to start, if that is known.
    pub until: Option<Time>,
}

impl fmt::Display for ClaimNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClaimNote::Holds { nodes, awaited, yielding, expected, .. } => {
                write!(f, "{} kept for it", named(nodes))?;
                match awaited {
                    0 => {}
                    1 => f.write_str(", where 1 task has to end first")?,
                    awaited => write!(f, ", where {awaited} tasks have to end first")?,
                }
                match yielding {
                    0 => {}
                    1 => f.write_str("; 1 task goes when it can start")?,
                    yielding => write!(f, "; {yielding} tasks go when it can start")?,
                }
                match expected {
                    Some(expected) => write!(f, "; expected to start at {expected}"),
                    None => f.write_str("; nobody knows when it starts"),
                }
            }
            ClaimNote::KeptFromIt(kept) => {
                let note = |kept: &KeptNode| {
                    let (node, job) = (&kept.node, kept.group.job().0);
                    let until = kept.until.map_or("it starts".to_owned(), |until| until.to_string());
                    format!("node {node} is kept for job {job} group {} until {until}", kept.group.index())
                };
                f.write_str(&kept.iter().map(note).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Nodes by name, in words that go before "kept".
fn named(nodes: &[String]) -> String {
    match nodes {
        [] => "nothing is".to_owned(),
        [node] => format!("node {node} is"),
        [first @ .., last] => format!("nodes {} and {last} are", first.join(", ")),
    }
}
