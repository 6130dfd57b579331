//! Which nodes have changed, for indexes that catch up when they are asked.

use std::collections::VecDeque;

use crate::id::NodeId;

#[derive(Clone, Debug, Default)]
pub(super) struct ChangeLog {
    /// Oldest first.
    changes: VecDeque<NodeId>,
    /// How many changes came before the first of them.
    forgotten: u64,
}

impl ChangeLog {
    /// Something about a node has changed, one of so many.
    pub(super) fn note(&mut self, node: NodeId, nodes: usize) {
        self.changes.push_back(node);
        // An index that is this far behind is built anew at less cost.
        if self.changes.len() > 2 * nodes + 1_024 {
            self.forgotten += 1;
            self.changes.pop_front();
        }
    }

    /// Changes so far.
    pub(super) fn now(&self) -> u64 {
        self.forgotten + self.changes.len() as u64
    }

    /// What has changed since then, unless that is too long ago.
    pub(super) fn since(&self, seen: u64) -> Option<impl Iterator<Item = NodeId> + '_> {
        let first = seen.checked_sub(self.forgotten)?;
        Some(self.changes.range(first as usize..).copied())
    }

    /// Nobody needs what has changed so far.
    pub(super) fn clear(&mut self) {
        self.forgotten = self.now();
        self.changes.clear();
    }
}
