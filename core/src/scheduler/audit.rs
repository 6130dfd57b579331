//! Compares the view of the nodes with the ledger, mends what can be mended safely, and looks whether
//! something waits that could start.

use crate::id::Attempt;
use crate::machine::Machine;
use crate::messages::{Audit, Audited, Finding, HostMessage, NodeAudit, Outbox, SchedulerMessage};
use crate::time::Time;

use super::Scheduler;
use super::plan::Turn;

impl Scheduler {
    /// Whether the turn has no reason of its own to place anything: only slices of the ledger have come,
    /// nothing collects, nothing is due and nothing is left over.
    pub(super) fn is_idle_turn(&self, now: Time, batch: &[SchedulerMessage]) -> bool {
        let audit = |message: &SchedulerMessage| matches!(message, SchedulerMessage::Audit(_));
        !batch.is_empty()
            && batch.iter().all(audit)
            && self.booked_plan == self.last_plan
            && self.earmarks.is_empty()
            && !self.has_more_to_plan()
            && self.shapes.next_window_close().is_none()
            && self.next_deadline().is_none_or(|deadline| deadline > now)
    }

    pub(super) fn audit(&mut self, audit: &Audit, turn: &mut Turn, out: &mut Outbox) {
        // With a plan on its way, or room that is kept for somebody, the view differs from the ledger on
        // purpose: nothing could be said.
        let conclusive = self.booked_plan == self.last_plan && self.earmarks.is_empty();
        if conclusive {
            for node in &audit.nodes {
                self.audit_node(node, turn, out);
            }
        }
        let compared = if conclusive { audit.nodes.len() as u64 } else { 0 };
        out.host.push(HostMessage::Audited(Audited { compared, next: audit.next }));
    }

    fn audit_node(&mut self, audit: &NodeAudit, turn: &mut Turn, out: &mut Outbox) {
        let Some(entry) = self.nodes.get(audit.node) else {
            return out.host.push(HostMessage::Finding(Finding::WrongView(audit.node)));
        };
        let believed = self.live.on_node(entry.attempts).map(|live| live.attempt);
        let ended: Vec<Attempt> = believed.filter(|attempt| !audit.live.contains(attempt)).collect();
        for attempt in ended {
            forget_ended(self, turn, attempt);
            out.host.push(HostMessage::Finding(Finding::EndUnheard(attempt)));
        }
        let entry = self.nodes.get(audit.node).expect("it was there before");
        if entry.view.version != audit.version || entry.free != audit.free {
            out.host.push(HostMessage::Finding(Finding::WrongView(audit.node)));
        }
        if entry.takes_work() {
            turn.touch(audit.node);
        }
    }

    /// An idle turn that placed something has found work that nobody had woken.
    pub(super) fn note_lost_wake_ups(&self, turn: &Turn, out: &mut Outbox) {
        let mut groups: Vec<_> = turn.placed().map(|attempt| attempt.task.group).collect();
        groups.dedup();
        let findings = groups.into_iter().map(|group| HostMessage::Finding(Finding::LostWakeUp(group)));
        out.host.extend(findings);
    }
}

/// Takes an attempt out of the view of which the ledger knows nothing any more.
fn forget_ended(scheduler: &mut Scheduler, turn: &Turn, attempt: Attempt) {
    if scheduler.end_live(turn.now, attempt) {
        scheduler.drop_group_when_clear(attempt.task.group);
    }
}
