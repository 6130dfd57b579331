//! What a service that runs the work itself has begun, by attempt and by the name of the node: a node that
//! becomes idle costs what runs there, however much runs elsewhere.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use plimsoll_core::id::{Attempt, NodeId};
use rustc_hash::FxBuildHasher;

use crate::assignments::Assignment;

#[derive(Debug, Default)]
pub(crate) struct Begun {
    // Whatever leaves these is in an order that is none of theirs.
    by_attempt: HashMap<Attempt, Assignment, FxBuildHasher>,
    by_name: HashMap<Arc<str>, BTreeSet<Attempt>>,
}

impl Begun {
    pub(crate) fn insert(&mut self, start: Assignment) {
        self.by_name.entry(Arc::clone(&start.node)).or_default().insert(start.attempt);
        self.by_attempt.insert(start.attempt, start);
    }

    pub(crate) fn remove(&mut self, attempt: Attempt) -> Option<Assignment> {
        let start = self.by_attempt.remove(&attempt)?;
        let there = self.by_name.get_mut(&start.node).expect("what has begun is listed by its node");
        there.remove(&attempt);
        if there.is_empty() {
            self.by_name.remove(&start.node);
        }
        Some(start)
    }

    pub(crate) fn node_of(&self, attempt: Attempt) -> Option<NodeId> {
        self.by_attempt.get(&attempt).map(|start| start.node_id)
    }

    /// What has begun on nodes of this name.
    pub(crate) fn on(&self, name: &str) -> Vec<(NodeId, Attempt)> {
        let there = self.by_name.get(name).into_iter().flatten();
        there.map(|attempt| (self.by_attempt[attempt].node_id, *attempt)).collect()
    }

    /// What has begun on one node, whatever else has its name.
    pub(crate) fn on_node(&self, node: NodeId) -> Vec<Assignment> {
        let there = self.by_attempt.values().filter(|start| start.node_id == node);
        let mut there: Vec<Assignment> = there.cloned().collect();
        there.sort_unstable_by_key(|start| start.attempt);
        there
    }
}
