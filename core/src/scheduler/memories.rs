//! Which nodes remember which snapshot: that of the last task that was placed on them.
//!
//! A node remembers one at most, so this is never larger than the cluster. Nodes that remember nothing
//! are not listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::NodeId;

use super::nodes::NodeEntry;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Memories {
    nodes: BTreeMap<Arc<str>, BTreeSet<NodeId>>,
}

impl Memories {
    pub(super) fn of(entries: &[Option<NodeEntry>]) -> Memories {
        let mut memories = Memories::default();
        for (index, entry) in entries.iter().enumerate() {
            let snapshot = entry.as_ref().and_then(|entry| entry.snapshot.as_ref());
            memories.change(NodeId(index as u32), None, snapshot);
        }
        memories
    }

    /// The node remembers something else from now on.
    pub(super) fn change(&mut self, node: NodeId, before: Option<&Arc<str>>, now: Option<&Arc<str>>) {
        if let Some(before) = before
            && let Some(nodes) = self.nodes.get_mut(before)
        {
            nodes.remove(&node);
            if nodes.is_empty() {
                self.nodes.remove(before);
            }
        }
        match now.map(|now| (now, self.nodes.get_mut(now))) {
            None => {}
            Some((_, Some(nodes))) => drop(nodes.insert(node)),
            Some((now, None)) => drop(self.nodes.insert(Arc::clone(now), BTreeSet::from([node]))),
        }
    }

    /// The nodes that remember this snapshot, by id.
    pub(super) fn with(&self, snapshot: &str) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.get(snapshot).into_iter().flatten().copied()
    }

    /// How many nodes remember this snapshot.
    pub(super) fn count(&self, snapshot: &str) -> usize {
        self.nodes.get(snapshot).map_or(0, BTreeSet::len)
    }
}
