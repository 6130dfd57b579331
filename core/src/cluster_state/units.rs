//! Units with names: who holds which of them on a node.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{Attempt, NodeId};
use crate::messages::{Outbox, SchedulerMessage};
use crate::mutation::{self, Mutation};
use crate::resources::KindId;
use crate::spec::{ShapeSpec, UnitNames, Units};

use super::{ClusterState, LiveAttempt, Node};

/// The named units of a node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NodeUnits {
    pub offered: Units,
    /// What the live attempts hold, also of units that the node does not offer any more.
    pub held: BTreeSet<(KindId, Arc<str>)>,
}

impl NodeUnits {
    pub(super) fn of(offered: Units) -> Option<Box<NodeUnits>> {
        (!offered.is_empty()).then(|| Box::new(NodeUnits { offered, held: BTreeSet::new() }))
    }
}

impl Node {
    /// Other units are offered from now on. What is held stays held until its holder has ended.
    pub(super) fn rename_units(&mut self, offered: Units) {
        Arc::make_mut(&mut self.facts).named_kinds = offered.kinds();
        match &mut self.units {
            Some(units) => units.offered = offered,
            none => *none = NodeUnits::of(offered),
        }
        self.forget_units_when_clear();
    }

    fn forget_units_when_clear(&mut self) {
        if self.units.as_ref().is_some_and(|units| units.offered.is_empty() && units.held.is_empty()) {
            self.units = None;
        }
    }

    /// Gives a task of this shape its units, for which there is room.
    pub(super) fn give_units(&mut self, shape: &ShapeSpec) -> Option<Arc<Units>> {
        let units = self.units.as_mut()?;
        let given = match mutation::active(Mutation::GiveUnitsTwice) {
            true => units.offered.choose(&shape.request, &BTreeSet::new()),
            false => units.offered.choose(&shape.request, &units.held),
        };
        units.held.extend(given.each().map(|(kind, name)| (kind, Arc::clone(name))));
        (!given.is_empty()).then(|| Arc::new(given))
    }

    pub(super) fn take_units_back(&mut self, given: Option<&Units>) {
        let (Some(given), Some(units)) = (given, &mut self.units) else { return };
        for (kind, name) in given.each() {
            units.held.remove(&(kind, Arc::clone(name)));
        }
        self.forget_units_when_clear();
    }

    /// Whether a unit that was given is offered no more. Where a kind has no names any more its units are
    /// counted again, and nobody has to go.
    fn has_revoked(&self, given: &Units) -> bool {
        let Some(units) = &self.units else { return false };
        given.iter().any(|(kind, names)| {
            let offered = units.offered.get(kind);
            offered.is_some_and(|offered| names.iter().any(|name| !offered.contains(name)))
        })
    }
}

impl ClusterState {
    /// The named units that a live attempt has, by the names of their kinds.
    pub fn units_of(&self, live: &LiveAttempt) -> Option<UnitNames> {
        live.units.as_ref().map(|units| units.by_kind(&self.settings.kinds))
    }

    /// Has the Scheduler stop whoever holds a unit that the node does not offer any more. It hears of this
    /// before it hears of the node, so that what they give back counts when the node has become too small.
    pub(super) fn revoke_units(&self, id: NodeId, out: &mut Outbox) {
        let Some(node) = self.node(id).filter(|node| node.units.is_some()) else { return };
        let live = self.on_node.iter(node.attempts).filter_map(|slot| self.live[slot as usize].as_ref());
        let lost = live.filter(|live| live.units.as_deref().is_some_and(|given| node.has_revoked(given)));
        let lost: Vec<Attempt> = lost.map(|live| live.attempt).collect();
        if !lost.is_empty() && !mutation::active(Mutation::KeepRevoked) {
            out.scheduler.push(SchedulerMessage::Revoked(lost));
        }
    }
}
