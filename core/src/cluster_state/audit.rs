//! The ledger of a few nodes, for everybody to compare with.

use std::sync::Arc;

use crate::id::NodeId;
use crate::messages::{Audit, JobMessage, NodeAudit, Outbox, SchedulerMessage};

use super::ClusterState;

impl ClusterState {
    /// Tells JobState and the Scheduler what the ledger says of so many nodes, behind everything that was
    /// said before.
    pub(super) fn audit(&self, first: NodeId, most: u32, out: &mut Outbox) {
        let from = first.index().min(self.nodes.len());
        let until = (from + most as usize).min(self.nodes.len());
        let nodes = (from..until).filter_map(|index| {
            let (id, node) = (NodeId(index as u32), self.nodes[index].as_ref()?);
            let live = self.on_node.iter(node.attempts);
            let live = live.filter_map(|slot| Some(self.live[slot as usize].as_ref()?.attempt));
            Some(NodeAudit { node: id, version: node.version, free: node.free(), live: live.collect() })
        });
        let next = (until < self.nodes.len()).then_some(NodeId(until as u32));
        let audit = Arc::new(Audit { nodes: nodes.collect(), next });
        out.jobs.push(JobMessage::Audit(Arc::clone(&audit)));
        out.scheduler.push(SchedulerMessage::Audit(audit));
    }
}
