//! The ledger's promises: it is the sum of the live attempts, and never above capacity unless a
//! node shows a deficit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::{GroupId, TaskId};
use crate::machine::{Broken, promise};
use crate::outcome::Phase;
use crate::resources::Resources;
use crate::spec::Liveness;
use crate::time::Time;

use super::ClusterState;

impl ClusterState {
    pub(super) fn check_ledger(&self) -> Result<(), Broken> {
        let mut tasks: BTreeMap<TaskId, u32> = BTreeMap::new();
        let mut withdrawn: BTreeMap<GroupId, u32> = BTreeMap::new();
        let mut on_nodes = 0;
        for (id, node) in self.nodes() {
            let (mut used, mut phases) = (Resources::new(), [0; Phase::COUNT]);
            let mut held = BTreeSet::new();
            for slot in self.on_node.iter(node.attempts) {
                let live = self.live.get(slot as usize).and_then(Option::as_ref);
                promise!(1, live.is_some_and(|live| live.node == id), "slot {slot} is not live on {id}");
                let live = live.expect("checked above");
                used += &live.shape.request;
                phases[live.phase as usize] += 1;
                on_nodes += 1;
                for (kind, name) in live.units.iter().flat_map(|units| units.each()) {
                    let is_new = held.insert((kind, Arc::clone(name)));
                    promise!(1, is_new, "two attempts on {id} hold the unit {name}");
                }
            }
            promise!(1, used == node.used, "{id} holds {used:?} but its ledger says {:?}", node.used);
            let noted = node.units.as_ref().map(|units| units.held.clone()).unwrap_or_default();
            promise!(1, held == noted, "{id} does not know which of its units are held");
            let expected = match node.liveness {
                Liveness::Ready => !self.settings.deadlines.heartbeat.is_zero(),
                Liveness::Suspect => true,
                Liveness::Down => false,
            };
            let awaited = node.silent_until != Time::NEVER;
            promise!(4, expected == awaited, "{id} is {:?} and awaited: {awaited}", node.liveness);
            let reserved = node.reservation.is_some();
            promise!(3, !reserved || node.tasks() == 0, "{id} is reserved but work runs there");
            promise!(1, phases == node.phases, "{id} counts its phases wrongly");
        }
        promise!(1, on_nodes == self.live().count(), "a live attempt is on no node");
        for (slot, live) in self.live.iter().enumerate() {
            let Some(live) = live else { continue };
            promise!(1, live.attempt.slot.index() == slot, "{} is in a wrong slot", live.attempt);
            let earlier = tasks.insert(live.attempt.task, live.attempt.number);
            promise!(3, earlier.is_none(), "{} has two live attempts", live.attempt.task);
            if live.withdrawn {
                *withdrawn.entry(live.attempt.task.group).or_default() += 1;
            }
        }
        promise!(9, withdrawn == self.withdrawing, "withdrawn groups are counted wrongly");
        Ok(())
    }
}
