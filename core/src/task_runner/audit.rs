//! Compares the attempts on their way with the ledger, and has the agents compare theirs.

use crate::id::{Attempt, NodeId};
use crate::messages::{AgentMessage, Audit, ClusterMessage, Finding, HostMessage, NodeAudit, Outbox};
use crate::outcome::Exit;

use super::TaskRunner;

impl TaskRunner {
    pub(super) fn audit(&mut self, audit: &Audit, out: &mut Outbox) {
        let mut unknown = Vec::new();
        for node in &audit.nodes {
            unknown.extend(node.live.iter().copied().filter(|attempt| self.dispatch(*attempt).is_none()));
            self.audit_node(node, out);
        }
        if !unknown.is_empty() {
            out.cluster.push(ClusterMessage::Undispatched(unknown));
        }
    }

    fn audit_node(&mut self, audit: &NodeAudit, out: &mut Outbox) {
        // Whatever ends in the ledger was ended here before, or the ledger has said so before this.
        for attempt in self.on_node(audit.node) {
            if !audit.live.contains(&attempt) {
                out.host.push(HostMessage::Finding(Finding::Overdispatched(attempt)));
                self.abandon(attempt, out);
            }
        }
        let session = self.session(audit.node);
        let attempts = self.on_node(audit.node);
        out.agents.push((audit.node, AgentMessage::Wanted { session, attempts }));
    }

    /// The agent does not know of an attempt that it was told to start. Had it ended, that would have been
    /// heard before this.
    pub(super) fn unknown_to_agent(&mut self, attempt: Attempt, out: &mut Outbox) {
        if self.dispatch(attempt).is_some() {
            out.host.push(HostMessage::Finding(Finding::Unexecuted(attempt)));
            self.end(attempt, Exit::Lost, out);
        }
    }

    fn dispatch(&self, attempt: Attempt) -> Option<&super::Dispatch> {
        self.live.get(attempt.slot.index())?.as_ref().filter(|dispatch| dispatch.attempt == attempt)
    }

    fn on_node(&self, node: NodeId) -> Vec<Attempt> {
        let Some(agent) = self.agents.get(node.index()) else { return Vec::new() };
        let live = self.on_node.iter(agent.attempts);
        live.filter_map(|slot| Some(self.live[slot as usize].as_ref()?.attempt)).collect()
    }
}
