//! What every stop is answerable for: for whom it was done, who went together, and what got better by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::id::{GroupId, NodeId, Slot, TaskId};
use crate::machine::{Broken, promise};
use crate::outcome::StopCause;
use crate::resources::Resources;
use crate::spec::{Company, NodeFacts, ShapeSpec};

use super::Scheduler;
use super::preempt::{Measure, lowers};
use super::search::Places;

/// Attempts that were stopped together so that one task or atomic group can start.
#[derive(Clone, Debug)]
pub struct StopRecord {
    /// Names the beneficiary.
    pub cause: StopCause,
    /// The beneficiary is a whole atomic group.
    pub atomic: bool,
    /// Where the tasks of the beneficiary go, by role.
    pub places: Places,
    /// Those who go, each with everybody who goes with it.
    pub units: Vec<Vec<TaskId>>,
    /// What must not rise and what must fall by it, as it was and as it will be.
    pub before: Measure,
    pub after: Measure,
    /// For those who want to see for themselves.
    pub evidence: Option<Evidence>,
}

/// What a stop was decided by.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// How the nodes will stand once everybody has ended.
    pub rooms: BTreeMap<NodeId, SupposedRoom>,
    /// What tasks of these roles of the beneficiary ask for.
    pub wanted: BTreeMap<u16, Arc<ShapeSpec>>,
    /// The beneficiary stays in one pool, and none is chosen yet.
    pub decides_pool: bool,
    /// Where each of those runs who go, and what it holds there.
    pub held: BTreeMap<TaskId, (NodeId, Arc<ShapeSpec>)>,
}

/// A node as it is supposed to be.
#[derive(Clone, Debug)]
pub struct SupposedRoom {
    pub facts: Arc<NodeFacts>,
    /// Whether it takes new work, room apart, and from whom.
    pub open: bool,
    pub cordoned: bool,
    pub free: Resources,
    pub company: Company,
}

impl Scheduler {
    /// Who was stopped in the last turn for somebody else's sake.
    pub fn stop_records(&self) -> &[StopRecord] {
        &self.stop_records
    }

    /// From now on records of stops say what they were decided by.
    pub fn keep_evidence_of_stops(&mut self) {
        self.witnessed = true;
    }

    /// How the nodes are supposed to stand without these attempts, and who wants what of them.
    pub(super) fn evidence(&self, group: GroupId, places: &Places, slots: &[Slot]) -> Evidence {
        let mut rooms: BTreeMap<NodeId, SupposedRoom> = BTreeMap::new();
        for (id, node) in self.nodes.iter() {
            let (free, company) = (node.free.clone(), node.company.clone());
            let (facts, open, cordoned) = (Arc::clone(&node.view.facts), node.view.open, node.is_cordoned());
            rooms.insert(id, SupposedRoom { facts, open, cordoned, free, company });
        }
        let mut held = BTreeMap::new();
        for slot in slots {
            let (node, shape) = self.held_by(*slot);
            let room = rooms.get_mut(&node).expect("it is on a node");
            room.free += &shape.request;
            room.company.leave(&shape);
            held.insert(self.task_in(*slot), (node, shape));
        }
        let wanted = places.iter().map(|(role, _)| (*role, self.role_spec(group, *role))).collect();
        Evidence { rooms, wanted, decides_pool: self.decides_pool(group), held }
    }

    /// Every stop has lowered the measure of its cause, and took from nobody of a higher band.
    pub(super) fn check_stops(&self) -> Result<(), Broken> {
        for record in &self.stop_records {
            let StopRecord { cause, before, after, units, .. } = record;
            promise!(8, lowers(*before, *after), "{cause:?}: nothing got better, {before:?} is {after:?}");
            promise!(8, !units.is_empty(), "{cause:?}: nobody had to go");
            let Some(beneficiary) = cause.beneficiary() else { continue };
            let level = |job| self.shares.leaf(self.leaf_of(job)).level;
            let above = level(beneficiary.job());
            let strictly = matches!(cause, StopCause::HigherWork(_));
            for task in units.iter().flatten() {
                let below = level(task.job());
                let lower = if strictly { below > above } else { below >= above };
                promise!(8, lower, "{cause:?}: {task} is of a higher band");
            }
        }
        Ok(())
    }

    /// Everybody who is waited for is on his way out, nothing is kept without an end, and it is enough.
    pub(super) fn check_earmarks(&self) -> Result<(), Broken> {
        let wronged = self.earmarks.wronged;
        promise!(8, wronged.is_none(), "{wronged:?} waits, and lost what was kept for it");
        for (number, earmark) in self.earmarks.iter() {
            let mut kept: BTreeMap<NodeId, Resources> = BTreeMap::new();
            for slot in &earmark.pending {
                let live = self.live.get(*slot).filter(|live| live.stopping);
                let node = live.and_then(|live| live.node());
                promise!(
                    8,
                    node.is_some(),
                    "earmark {number} waits for {slot:?}, which is not being stopped"
                );
                *kept.entry(node.expect("just seen")).or_default() += &self.held_by(*slot).1.request;
            }
            let has_end = !earmark.pending.is_empty() || earmark.until.is_some();
            promise!(8, has_end, "earmark {number} keeps what is free, without an end");
            for (node, shape) in &earmark.left {
                *kept.entry(*node).or_default() += &shape.request;
            }
            for (node, amount) in &earmark.kept {
                *kept.entry(*node).or_default() += amount;
            }
            for (role, node) in earmark.places.iter().filter(|_| self.group(earmark.group).is_some()) {
                *kept.entry(*node).or_default() -= &self.role_spec(earmark.group, *role).request;
            }
            let enough = kept.values().all(|left| !left.has_negative());
            promise!(8, enough, "earmark {number} keeps too little for whom it is");
        }
        Ok(())
    }
}
