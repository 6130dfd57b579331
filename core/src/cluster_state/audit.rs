//! The ledger of a few nodes, for everybody to compare with.

use std::sync::Arc;

use crate::id::{Attempt, NodeId};
use crate::messages::{
    Audit, Finding, HostMessage, JobMessage, NodeAudit, Outbox, RunnerMessage, SchedulerMessage,
};
use crate::outcome::Outcome;

use super::ClusterState;

impl ClusterState {
    /// Tells everybody what the ledger says of so many nodes, behind everything that was said before.
    pub(super) fn audit(&self, first: NodeId, most: u32, out: &mut Outbox) {
        let from = first.index().min(self.nodes.len());
        let until = (from + most as usize).min(self.nodes.len());
        let nodes = (from..until).filter_map(|index| {
            let (id, node) = (NodeId(index as u32), self.nodes[index].as_ref()?);
            let live = self.on_node.iter(node.attempts);
            let live = live.filter_map(|slot| Some(self.live[slot as usize].as_ref()?.attempt));
            let (session, view, free) = (node.session, node.view(), node.free());
            Some(NodeAudit { node: id, session, view, free, live: live.collect() })
        });
        let next = (until < self.nodes.len()).then_some(NodeId(until as u32));
        let audit = Arc::new(Audit { first, nodes: nodes.collect(), next });
        out.host.push(HostMessage::Standing(Arc::clone(&audit)));
        out.jobs.push(JobMessage::Audit(Arc::clone(&audit)));
        out.runner.push(RunnerMessage::Audit(Arc::clone(&audit)));
        out.scheduler.push(SchedulerMessage::Audit(audit));
    }

    /// The TaskRunner does not know of these. Had they ended, that would have been heard before this: what
    /// is still live will never be heard of.
    pub(super) fn undispatched(&mut self, attempts: Vec<Attempt>, out: &mut Outbox) {
        for attempt in attempts {
            if self.live_attempt(attempt).is_some() {
                out.host.push(HostMessage::Finding(Finding::Undispatched(attempt)));
                self.release(attempt.slot, Outcome::Lost, out);
            }
        }
    }
}
