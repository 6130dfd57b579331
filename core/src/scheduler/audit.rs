//! Compares the view of the nodes with the ledger, mends what can be mended safely, and looks whether
//! something waits that could start.

use crate::id::{Attempt, NodeId};
use crate::machine::Machine;
use crate::messages::{Audit, Audited, Finding, HostMessage, NodeAudit, NodeNews, Outbox, SchedulerMessage};
use crate::time::Time;

use super::Scheduler;
use super::plan::Turn;
use super::shapes::{Place, ShapeId};

/// So many shapes, and so many groups that are to fail, are looked at anew with each slice of nodes.
const SAMPLE: usize = 16;

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
            self.forget_removed(audit, turn, out);
        }
        let compared = if conclusive { audit.nodes.len() as u64 } else { 0 };
        out.host.push(HostMessage::Audited(Audited { compared, next: audit.next }));
    }

    fn audit_node(&mut self, audit: &NodeAudit, turn: &mut Turn, out: &mut Outbox) {
        let (node, view) = (audit.node, &audit.view);
        if self.nodes.get(node).is_none_or(|entry| entry.view != *view) {
            out.host.push(HostMessage::Finding(Finding::WrongView(node)));
            self.node_news(NodeNews { node, view: Some(view.clone()) }, turn, out);
        }
        let entry = self.nodes.get(node).expect("it is there by now");
        let believed = self.live.on_node(entry.attempts).map(|live| live.attempt);
        let ended: Vec<Attempt> = believed.filter(|attempt| !audit.live.contains(attempt)).collect();
        for attempt in ended {
            forget_ended(self, turn, attempt);
            out.host.push(HostMessage::Finding(Finding::EndUnheard(attempt)));
        }
        let entry = self.nodes.get(node).expect("it was there before");
        // What is claimed is free in the ledger.
        let mut free = entry.free.clone();
        free += &self.claims.on(node).1;
        if free != audit.free {
            out.host.push(HostMessage::Finding(Finding::WrongSum(node)));
        }
        if entry.takes_work() {
            turn.touch(node);
        }
    }

    /// Nodes that are not there any more are not here either.
    fn forget_removed(&mut self, audit: &Audit, turn: &mut Turn, out: &mut Outbox) {
        let until = audit.next.map_or(self.nodes.len(), NodeId::index);
        let slice = (audit.first.index()..until).map(|index| NodeId(index as u32));
        let is_there = |node: &NodeId| audit.nodes.binary_search_by_key(node, |one| one.node).is_ok();
        let is_known = |node: &NodeId| self.nodes.get(*node).is_some();
        let removed: Vec<NodeId> = slice.filter(|node| is_known(node) && !is_there(node)).collect();
        for node in removed {
            out.host.push(HostMessage::Finding(Finding::WrongView(node)));
            self.node_news(NodeNews { node, view: None }, turn, out);
        }
    }

    /// In an idle turn, some of what waits for room is tried anew, and some of what is to fail if it can
    /// never fit is doubted anew: nothing should come of it.
    pub(super) fn sample_waiting(&mut self) {
        if self.is_starved() {
            return;
        }
        for _ in 0..SAMPLE.min(self.shapes.len()) {
            self.sampled = (self.sampled + 1) % self.shapes.len() as u32;
            let shape = ShapeId(self.sampled);
            if self.shapes.waits_for_room(shape) {
                self.shapes.move_to(shape, Place::Open, &self.jobs);
            }
        }
        self.prospects.doubt_some(SAMPLE);
    }

    /// An idle turn that placed something has found work that nobody had woken.
    pub(super) fn note_lost_wake_ups(&self, turn: &Turn, out: &mut Outbox) {
        let mut groups: Vec<_> = turn.placed().map(|attempt| attempt.task.group).collect();
        groups.dedup();
        let turn = self.rounds;
        let findings =
            groups.into_iter().map(|group| HostMessage::Finding(Finding::LostWakeUp { group, turn }));
        out.host.extend(findings);
    }

    /// Nor should an idle turn have found a group that can never run.
    pub(super) fn note_overlooked(&self, out: &mut Outbox) {
        let turn = self.rounds;
        let findings = self.found_unable().iter().map(|group| Finding::Overlooked { group: *group, turn });
        out.host.extend(findings.map(HostMessage::Finding));
    }
}

/// Takes an attempt out of the view of which the ledger knows nothing any more.
fn forget_ended(scheduler: &mut Scheduler, turn: &Turn, attempt: Attempt) {
    if scheduler.end_live(turn.now, attempt) {
        scheduler.drop_group_when_clear(attempt.task.group);
    }
}
