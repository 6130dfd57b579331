//! What a service that runs the work itself has begun, by attempt and by the name of the node: a node that
//! becomes idle costs what runs there, however much runs elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_core::id::{Attempt, NodeId};

use crate::assignments::Assignment;

#[derive(Debug, Default)]
pub(crate) struct Begun {
    by_attempt: BTreeMap<Attempt, Assignment>,
    by_name: BTreeMap<Arc<str>, BTreeSet<Attempt>>,
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

    pub(crate) fn all(&self) -> impl Iterator<Item = &Assignment> {
        self.by_attempt.values()
    }
}
