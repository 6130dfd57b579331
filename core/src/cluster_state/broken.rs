//! Nodes on which everything fails: when tasks of several services failed on a node in a row, it is set
//! broken with the reason, and tried again after a while or when somebody says so.

use std::sync::Arc;

use crate::breakdown::{Breakdown, Culprit};
use crate::id::{NodeId, TaskId};
use crate::messages::{NodeEvent, Outbox};
use crate::mutation::{self, Mutation};
use crate::outcome::Outcome;
use crate::spec::{Condition, ShapeSpec};
use crate::time::Time;

use super::{ClusterState, LiveAttempt, Node};

/// An end that says something about the node it happened on.
pub(super) enum Sign {
    Good,
    Bad(Culprit),
}

impl Sign {
    pub(super) fn of(live: &LiveAttempt, outcome: Outcome) -> Option<Sign> {
        match outcome {
            Outcome::Completed => Some(Sign::Good),
            outcome if outcome.is_failure() => Some(Sign::Bad(culprit(live.attempt.task, &live.shape))),
            _ => None,
        }
    }
}

fn culprit(task: TaskId, shape: &ShapeSpec) -> Culprit {
    match shape.service.as_deref() {
        Some((name, _)) => Culprit::Service(name.clone()),
        None => Culprit::Job(task.job()),
    }
}

impl Node {
    /// Somebody has set the condition by hand: whatever failed before does not count any more, and a
    /// node that is broken now stays so.
    pub(super) fn start_over(&mut self) {
        self.failed_in_a_row.take();
        self.breakdown = None;
    }

    /// Notes what people said who set the node broken.
    pub(super) fn note_reason(&mut self, now: Time, reason: &str) {
        let (failed, since, until, reason) = (Vec::new(), now, None, Some(reason.into()));
        self.breakdown = Some(Arc::new(Breakdown { failed, since, until, reason }));
    }

    pub(super) fn probe_at(&self) -> Time {
        self.breakdown.as_ref().and_then(|breakdown| breakdown.until).unwrap_or(Time::NEVER)
    }
}

impl ClusterState {
    /// Takes in how an attempt ended on a node, and sets the node broken if that is one too many.
    pub(super) fn note_sign(&mut self, now: Time, id: NodeId, sign: Sign, out: &mut Outbox) {
        let faulty = self.settings.faulty;
        let Some(node) = self.node_mut(id) else { return };
        let culprit = match sign {
            Sign::Bad(culprit) if faulty.broken_after > 0 => culprit,
            _ => return drop(node.failed_in_a_row.take()),
        };
        // A node in the hands of people is theirs to judge.
        if node.condition != Condition::Automated {
            return;
        }
        if !node.failed_in_a_row.contains(&culprit) {
            node.failed_in_a_row.push(culprit);
        }
        if (node.failed_in_a_row.len() as u64) < faulty.broken_after {
            return;
        }
        let until = (!faulty.probe.is_zero()).then(|| now + faulty.probe);
        let failed = node.failed_in_a_row.take();
        let breakdown = Arc::new(Breakdown { failed, since: now, until, reason: None });
        node.condition = Condition::Broken;
        node.breakdown = Some(Arc::clone(&breakdown));
        self.probes.set(id.index(), until.unwrap_or(Time::NEVER));
        out.node_event(NodeEvent::Broken { node: id, breakdown });
        if !mutation::active(Mutation::BreakInSilence) {
            self.announce(id, out);
        }
    }

    /// The time has come to try a broken node again.
    pub(super) fn probe(&mut self, id: NodeId, out: &mut Outbox) {
        let node = self.node_mut(id).expect("a removed node has no deadline");
        assert!(node.breakdown.is_some(), "only nodes that broke down are tried again");
        node.condition = Condition::Automated;
        node.start_over();
        out.node_event(NodeEvent::BreakdownOver { node: id });
        self.announce(id, out);
    }
}
