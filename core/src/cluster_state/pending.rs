//! Which nodes have room that nobody has looked at: a node is pending exactly while its last
//! release is newer than what the Scheduler has seen.

use serde::{Deserialize, Serialize};

use crate::collections::reach;
use crate::id::NodeId;
use crate::messages::{Outbox, SchedulerMessage};
use crate::mutation::{self, Mutation};

use super::ClusterState;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PendingNodes {
    sequence: u64,
    seen: u64,
    /// The sequence of each node's last release.
    last_release: Vec<u64>,
    /// Nodes that gained room in the current turn.
    touched: Vec<NodeId>,
}

impl PendingNodes {
    pub(super) fn touch(&mut self, node: NodeId) {
        if self.touched.last() != Some(&node) {
            self.touched.push(node);
        }
    }

    pub(super) fn forget(&mut self, node: NodeId) {
        if let Some(last) = self.last_release.get_mut(node.index()) {
            *last = 0;
        }
        self.touched.retain(|touched| *touched != node);
    }

    pub(super) fn is_pending(&self, node: NodeId) -> bool {
        self.last_release.get(node.index()).is_some_and(|last| *last > self.seen)
    }

    /// Nodes that are pending, by the sequence under which they were reported.
    pub(super) fn unseen(&self) -> Vec<(u64, NodeId)> {
        let all = self.last_release.iter().enumerate().filter(|(_, sequence)| **sequence > self.seen);
        let mut unseen: Vec<_> = all.map(|(index, sequence)| (*sequence, NodeId(index as u32))).collect();
        unseen.sort_unstable();
        unseen
    }

    pub(super) fn seen(&mut self, sequence: u64) {
        self.seen = self.seen.max(sequence);
    }
}

impl ClusterState {
    /// Ends a turn: nodes that gained room and take work are pending from now on.
    pub(super) fn report_pending(&mut self, out: &mut Outbox) {
        if self.pending.touched.is_empty() {
            return;
        }
        let mut nodes = std::mem::take(&mut self.pending.touched);
        nodes.sort_unstable();
        nodes.dedup();
        nodes.retain(|id| self.node(*id).is_some_and(|node| node.takes_work()));
        if nodes.is_empty() || mutation::active(Mutation::ForgetPending) {
            return;
        }
        self.pending.sequence += 1;
        let sequence = self.pending.sequence;
        let last_release = &mut self.pending.last_release;
        if let Some(last) = self.nodes.len().checked_sub(1) {
            reach(last_release, last, || 0);
        }
        for node in &nodes {
            last_release[node.index()] = sequence;
        }
        self.note_pending(sequence, &nodes);
        out.scheduler.push(SchedulerMessage::Pending { sequence, nodes });
    }

    /// Whether the node has room that the Scheduler has not looked at.
    pub fn is_pending(&self, id: NodeId) -> bool {
        self.pending.is_pending(id)
    }

    /// Whether the Scheduler has looked at everything that was reported to it.
    pub fn all_seen(&self) -> bool {
        self.pending.seen == self.pending.sequence
    }
}
