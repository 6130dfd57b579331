//! Keeps count of assignments that the service has not dealt with. It watches what ClusterState
//! says, so it knows of an assignment before anybody can acknowledge it.

use std::collections::BTreeSet;

use plimsoll_core::id::Attempt;
use plimsoll_core::messages::{JobMessage, SchedulerMessage};

#[derive(Debug)]
pub(crate) struct CreditCount {
    window: u64,
    /// Bound to a node, neither acknowledged nor ended.
    outstanding: BTreeSet<Attempt>,
    dealt_with: u64,
}

impl CreditCount {
    pub(crate) fn new(window: u64) -> CreditCount {
        CreditCount { window, outstanding: BTreeSet::new(), dealt_with: 0 }
    }

    /// What the Scheduler may know: so many placements in all.
    pub(crate) fn message(&self) -> SchedulerMessage {
        SchedulerMessage::Credit { granted: self.dealt_with + self.window, window: self.window }
    }

    /// Takes in what ClusterState tells JobState; true if credit came back.
    pub(crate) fn watch(&mut self, messages: &[JobMessage]) -> bool {
        let before = self.dealt_with;
        for message in messages {
            match message {
                JobMessage::Committed(list) => {
                    self.outstanding.extend(list.iter().map(|started| started.attempt));
                }
                JobMessage::Released(list) => list.iter().for_each(|released| self.deal(released.attempt)),
                _ => {}
            }
        }
        self.dealt_with > before
    }

    /// The service has taken these over; true if credit came back.
    pub(crate) fn acknowledge(&mut self, attempts: &[Attempt]) -> bool {
        let before = self.dealt_with;
        attempts.iter().for_each(|attempt| self.deal(*attempt));
        self.dealt_with > before
    }

    fn deal(&mut self, attempt: Attempt) {
        if self.outstanding.remove(&attempt) {
            self.dealt_with += 1;
        }
    }
}
