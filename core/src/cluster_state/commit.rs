//! Commits: each placement is checked against its node as it is now; an atomic group is booked
//! whole or not at all.

use std::sync::Arc;

use crate::messages::{Launch, NodeEvent, Outbox, Placement, Plan, PlanPart, SchedulerMessage, Started};
use crate::mutation::{self, Mutation};
use crate::spec::ShapeSpec;

use super::ClusterState;

impl ClusterState {
    pub(super) fn commit(&mut self, plan: Plan, out: &mut Outbox) {
        let mut placements = plan.placements.as_slice();
        let mut unit: Vec<(PlanPart, &[Placement])> = Vec::new();
        for part in plan.parts {
            let (own, rest) = placements.split_at(part.count as usize);
            placements = rest;
            if !part.atomic || mutation::active(Mutation::SplitAtomicGroup) {
                for placement in own {
                    self.commit_one(*placement, &part, out);
                }
                continue;
            }
            let complete = !part.bound_to_next;
            unit.push((part, own));
            if complete {
                self.commit_unit(&unit, out);
                unit.clear();
            }
        }
        debug_assert!(placements.is_empty() && unit.is_empty(), "every placement belongs to a part");
        out.scheduler.push(SchedulerMessage::Committed { plan: plan.number });
    }

    fn commit_one(&mut self, placement: Placement, part: &PlanPart, out: &mut Outbox) {
        if self.can_hold(placement, &part.shape, part.adopted) {
            self.book(placement.attempt, placement.node, Arc::clone(&part.shape));
            self.announce_booked(placement, part, out);
        } else if !mutation::active(Mutation::SwallowConflict) {
            out.conflict(placement.attempt);
        }
    }

    fn commit_unit(&mut self, unit: &[(PlanPart, &[Placement])], out: &mut Outbox) {
        let placements =
            || unit.iter().flat_map(|(part, placements)| placements.iter().map(move |one| (part, *one)));
        let mut booked = 0;
        for (part, placement) in placements() {
            if !self.can_hold(placement, &part.shape, part.adopted) {
                break;
            }
            self.book(placement.attempt, placement.node, Arc::clone(&part.shape));
            booked += 1;
        }
        if booked == placements().count() {
            for (part, placement) in placements() {
                self.announce_booked(placement, part, out);
            }
            return;
        }
        for (_, placement) in placements().take(booked) {
            self.unbook(placement.attempt.slot);
        }
        for (_, placement) in placements() {
            out.conflict(placement.attempt);
        }
    }

    /// Whether the decision still holds: the node is the one that was looked at, and has the room.
    fn can_hold(&self, placement: Placement, shape: &ShapeSpec, adopted: bool) -> bool {
        let Some(node) = self.node(placement.node) else { return false };
        if mutation::active(Mutation::SkipVersionCheck) {
            return true;
        }
        node.version == placement.version && (adopted || node.admits(shape)) && node.has_room_for(shape)
    }

    fn announce_booked(&self, placement: Placement, part: &PlanPart, out: &mut Outbox) {
        let Placement { attempt, node, .. } = placement;
        let given = self.live_attempt(attempt).and_then(|live| live.units.as_ref());
        let units = given.map(|units| Arc::new(units.by_kind(&self.settings.kinds)));
        if let Some(units) = &units {
            out.node_event(NodeEvent::UnitsGiven { node, attempt, units: Arc::clone(units) });
        }
        out.committed(Started { attempt, node });
        out.launch(Launch { attempt, node, timeout: part.timeout, units });
    }
}
