//! Compares what jobs believe to be live with the ledger.

use std::sync::Arc;

use crate::collections::reach;
use crate::id::{Attempt, NodeId};
use crate::messages::{Audit, Finding, HostMessage, NodeAudit, Outbox, Released};
use crate::outcome::Outcome;
use crate::time::Time;

use super::JobState;

/// Live attempts on each node, in number.
#[derive(Clone, Debug, Default)]
pub(super) struct OnNode(Vec<i64>);

impl OnNode {
    pub(super) fn change(&mut self, node: NodeId, by: i64) {
        reach(&mut self.0, node.index(), || 0);
        self.0[node.index()] += by;
    }

    fn get(&self, node: NodeId) -> i64 {
        self.0.get(node.index()).copied().unwrap_or(0)
    }
}

impl JobState {
    pub(super) fn rebuild_on_node(&mut self) {
        self.on_node = OnNode::default();
        for live in self.live.iter().flatten() {
            self.on_node.change(live.node, 1);
        }
    }

    /// Nothing is on its way from the ledger: both know the same, or something was lost.
    pub(super) fn audit(&mut self, now: Time, audit: &Arc<Audit>, out: &mut Outbox) {
        for node in &audit.nodes {
            self.audit_node(now, node, out);
        }
        // Behind everything that was said of these nodes: whoever reads what jobs say compares too.
        out.host.push(HostMessage::Ledger(Arc::clone(audit)));
    }

    fn audit_node(&mut self, now: Time, audit: &NodeAudit, out: &mut Outbox) {
        let known = |attempt: &Attempt| {
            let live = self.live.get(attempt.slot.index()).and_then(Option::as_ref);
            live.is_some_and(|live| live.attempt == *attempt)
        };
        let (known, unknown): (Vec<Attempt>, Vec<Attempt>) = audit.live.iter().copied().partition(known);
        let findings = unknown.into_iter().map(|one| HostMessage::Finding(Finding::UnknownToJobs(one)));
        out.host.extend(findings);
        if self.on_node.get(audit.node) == known.len() as i64 {
            return;
        }
        // Only now it is worth a look at everything.
        let believed = self.live().filter(|live| live.node == audit.node).map(|live| live.attempt);
        let ended: Vec<Attempt> = believed.filter(|attempt| !known.contains(attempt)).collect();
        for attempt in ended {
            out.host.push(HostMessage::Finding(Finding::EndMissed(attempt)));
            let released = Released { attempt, node: audit.node, outcome: Outcome::Lost };
            self.released(now, released, out);
        }
    }
}
