//! Credit: a host that carries out the assignments itself says how many it can take. Without credit
//! nothing is committed; what had its turn then is served first when credit comes back.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::mutation::{self, Mutation};

use super::Scheduler;
use super::plan::Turn;
use super::shapes::{Place, ShapeId};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Credit {
    /// Placements allowed in all.
    granted: u64,
    /// Placements made.
    used: u64,
    /// How far `granted` is ahead of what the host has dealt with.
    window: u64,
    /// What was to be looked at when credit ran out.
    shapes: BTreeSet<ShapeId>,
    nodes: BTreeSet<NodeId>,
}

impl Credit {
    fn left(&self) -> u64 {
        self.granted.saturating_sub(self.used)
    }

    /// A group that is larger than the whole window may start when the host has nothing to do.
    fn covers(&self, tasks: u64) -> bool {
        self.left() >= tasks || (self.left() > 0 && self.left() >= self.window)
    }
}

/// Uses credit for so many placements; false if there is not enough.
pub(super) fn spend(credit: &mut Option<Credit>, tasks: u64) -> bool {
    match credit {
        None => true,
        Some(credit) if credit.covers(tasks) => {
            credit.used += tasks;
            true
        }
        Some(_) => false,
    }
}

impl Scheduler {
    pub(super) fn has_credit(&self, tasks: u64) -> bool {
        self.credit.as_ref().is_none_or(|credit| credit.covers(tasks))
    }

    /// Whether something waits for credit and for nothing else that is known.
    pub fn is_starved(&self) -> bool {
        self.credit.as_ref().is_some_and(|credit| !credit.shapes.is_empty() || !credit.nodes.is_empty())
    }

    pub(super) fn grant(&mut self, granted: u64, window: u64, turn: &mut Turn) {
        let credit = self.credit.get_or_insert_default();
        (credit.granted, credit.window) = (credit.granted.max(granted), window);
        self.serve_starved(turn);
    }

    /// The host begins to count anew: what was placed before does not matter any more.
    pub(super) fn begin_credit(&mut self, window: Option<u64>, turn: &mut Turn) {
        let before = self.credit.take().unwrap_or_default();
        let (granted, window_size) = (window.unwrap_or(u64::MAX), window.unwrap_or(u64::MAX));
        self.credit = Some(Credit { granted, used: 0, window: window_size, ..before });
        self.serve_starved(turn);
        if window.is_none() {
            self.credit = None;
        }
    }

    /// A refused placement costs nothing.
    pub(super) fn refund_credit(&mut self) {
        if let Some(credit) = &mut self.credit {
            // It may have been used before the host began to count.
            credit.used = credit.used.saturating_sub(1);
        }
    }

    /// Puts everything that had its turn back into this one, if there is credit again.
    pub(super) fn serve_starved(&mut self, turn: &mut Turn) {
        let Some(credit) = self.credit.as_mut().filter(|credit| credit.left() > 0) else { return };
        if mutation::active(Mutation::ForgetStarved) {
            (credit.nodes, credit.shapes) = Default::default();
        }
        std::mem::take(&mut credit.nodes).into_iter().for_each(|node| turn.touch(node));
        for shape in std::mem::take(&mut credit.shapes) {
            if self.shapes.waits_for_room(shape) {
                self.shapes.move_to(shape, Place::Open, &self.jobs);
            }
        }
    }

    /// Credit ran out: remembers what was still to be looked at.
    pub(super) fn starve(&mut self, nodes: Vec<NodeId>) {
        let open = self.shapes.open();
        for shape in &open {
            self.shapes.move_to(*shape, Place::Indexed, &self.jobs);
        }
        let credit = self.credit.as_mut().expect("only credit can run out");
        credit.shapes.extend(open);
        credit.nodes.extend(nodes);
    }
}
