//! Fillers: work that runs on what is claimed until the claimant can start, and goes then.
//!
//! Only such work is let in as the gate may stop the very moment that the claimant needs it: it waits once more
//! when it is stopped, and neither its band, nor a protection, nor a bound on stops could hold the claimant up.
//! Where stops are bounded by time nobody is let in, because others could have used up what is allowed; nor
//! are elastic groups, of which the size may rest. A filler is one for as long as it runs, whoever comes to
//! hold the claim.
//!
//! Each time fillers are stopped a claimant starts that was waiting. If that fails after all, nobody is let in
//! before it once more until it has started. So nobody is let in and stopped for the same group again and again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::id::{Attempt, GroupId, JobId, NodeId, Slot, TaskId};
use crate::messages::Outbox;
use crate::mutation::{self, Mutation};
use crate::outcome::StopCause;
use crate::spec::{OnPreempt, Start};
use crate::time::Time;

use super::claim_choice::has_room_for_all;
use super::claims::{Claim, Held};
use super::groups::RoleView;
use super::live::LiveView;
use super::packing::Room;
use super::preempt::{Measure, Pass};
use super::queue::Entry;
use super::search::{Beneficiary, Places, UNITS_MAX};
use super::shapes::Place;
use super::victims::Unit;
use super::{Scheduler, groups};

impl Scheduler {
    /// Whether fillers can be stopped at any time.
    fn may_clear(&self) -> bool {
        let rebalance = self.settings.rebalance;
        rebalance.backfill && rebalance.rate.is_none() && rebalance.stops_per_task > 0
    }

    /// Whether fillers are let onto what this claim keeps: only while somebody else has to end first.
    pub(super) fn admits_fillers(&self, claim: &Claim) -> bool {
        let claimant = groups::find(&self.jobs, claim.entry.group);
        let is_cleared = claimant.is_none_or(|group| group.cleared);
        let stays = |live: &LiveView| !live.stopping && self.yields_from(live, claim.entry.group).is_none();
        self.may_clear() && !is_cleared && self.awaited_live(claim).any(stays)
    }

    /// How many tasks may start next as fillers of this claim; of an atomic group all or none.
    pub(super) fn may_fill(&self, claim: &Claim, entry: Entry, atomic: bool, now: Time) -> u32 {
        let Some(group) = groups::find(&self.jobs, entry.group) else { return 0 };
        let rebalance = self.settings.rebalance;
        let has_terms = mutation::active(Mutation::FillFirm)
            || self.may_yield(entry, claim.entry.group) && group.elastic.is_none();
        // Who may not be stopped yet is as good as gone if he may when the claimant is expected to start.
        let expected = claim.expected.filter(|_| !claim.late);
        let in_time = rebalance.minimum_run.is_zero()
            || expected.is_some_and(|expected| now + rebalance.minimum_run <= expected);
        if !self.admits_fillers(claim) || !has_terms || !in_time {
            return 0;
        }
        let stoppable = |role: &RoleView| role.next_stoppable(rebalance.stops_per_task);
        match atomic {
            false => stoppable(&group.roles[usize::from(entry.role)]),
            true if group.live_count > 0 => 0,
            true => match group.roles.iter().all(|role| stoppable(role) == u32::MAX) {
                true => u32::MAX,
                false => 0,
            },
        }
    }

    /// Whether work of this role, or of all roles of its atomic group, gives way to a group once that can start.
    fn may_yield(&self, entry: Entry, claimant: GroupId) -> bool {
        let Some(group) = groups::find(&self.jobs, entry.group) else { return false };
        let default = self.settings.rebalance.on_preempt;
        let requeues = |role: &RoleView| role.on_preempt.unwrap_or(default) == OnPreempt::Requeue;
        let requeues = match group.start {
            Start::Independent => requeues(&group.roles[usize::from(entry.role)]),
            Start::Atomic => group.roles.iter().all(requeues),
        };
        let level = |job: JobId| self.shares.leaf(self.leaf_of(job)).level;
        let is_firm = self.jobs.get(entry.group.job().0).is_some_and(|job| job.is_firm());
        let is_other = entry.group != claimant;
        is_other && requeues && !is_firm && level(entry.group.job()) >= level(claimant.job())
    }

    /// From when on an attempt goes once this group can start; nothing if it does not.
    pub(super) fn yields_from(&self, live: &LiveView, claimant: GroupId) -> Option<Time> {
        let task = live.attempt.task;
        let entry = Entry { group: task.group, role: task.role };
        if !live.fills || !self.may_clear() || !self.may_yield(entry, claimant) {
            return None;
        }
        self.protected_until(live).map_or(Some(Time::ZERO), |until| (until != Time::NEVER).then_some(until))
    }

    /// Whether an attempt goes once a claimant can start who needs its place.
    pub(super) fn yields_to_somebody(&self, live: &LiveView) -> bool {
        live.fills && self.may_clear()
    }

    /// Tasks that go once this group can start.
    pub(super) fn fillers_before(&self, id: GroupId) -> Vec<TaskId> {
        let Some(index) = self.claims.of(id) else { return Vec::new() };
        let fillers = self.awaited_live(&self.claims.entries[index]);
        fillers.filter(|live| self.yields_from(live, id).is_some()).map(|live| live.attempt.task).collect()
    }

    /// These were let onto what a claim keeps.
    pub(super) fn note_fillers(&mut self, placed: &[(Attempt, NodeId)], index: usize) {
        for (attempt, node) in placed {
            if self.claims.entries[index].nodes.contains_key(node) {
                self.live.get_mut(attempt.slot).expect("just placed").fills = true;
            }
        }
    }

    /// Has the fillers go where nobody else is waited for any more.
    pub(super) fn clear_claims(&mut self, pass: &mut Pass, out: &mut Outbox) {
        if !self.may_clear() || mutation::active(Mutation::FillForGood) {
            return;
        }
        let claims = self.claims.entries.iter();
        let ready: Vec<(GroupId, Time)> = claims
            .filter_map(|claim| Some((claim.entry.group, self.clears_from(claim, pass.now)?)))
            .collect();
        for (group, from) in ready {
            if from > pass.now {
                pass.again = pass.again.into_iter().chain([from]).min();
                continue;
            }
            let Some(index) = self.claims.of(group) else { continue };
            let claim = self.claims.entries[index].clone();
            self.lift_claim(index);
            let lifted = self.withheld_for(claim.shape);
            self.nodes.lift(&lifted, true);
            self.clear_claim(&claim, pass, out);
            self.nodes.lift(&lifted, false);
            self.claims.of(group).into_iter().for_each(|index| self.hold_claim(index));
        }
    }

    /// From when on everybody may be stopped whom a claimant waits for; nothing if others have to end first, or if
    /// it could not start.
    fn clears_from(&self, claim: &Claim, now: Time) -> Option<Time> {
        if self.why_over(claim).is_some() {
            return None;
        }
        let shape = self.shapes.get(claim.shape);
        let waits = shape.place == Place::Indexed && shape.window.is_none();
        if !waits || self.limit_on(shape.leaf, claim.shape, now).is_some() {
            return None;
        }
        let mut from = None;
        for live in self.awaited_live(claim).filter(|live| !live.stopping) {
            from = from.max(Some(self.yields_from(live, claim.entry.group)?));
        }
        from
    }

    fn clear_claim(&mut self, claim: &Claim, pass: &mut Pass, out: &mut Outbox) {
        let (entry, atomic, shape) = (claim.entry, claim.atomic, claim.shape);
        let leaf = self.shapes.get(shape).leaf;
        let beneficiary = Beneficiary { entry, atomic, leaf, shape };
        if self.places_for(&beneficiary).is_some() {
            // What is ending anyway makes room for it.
            return;
        }
        let Some(found) = self.who_fills(claim, &beneficiary, pass.now) else { return };
        let measure = Scheduler::unmet_claims;
        if self.take_away(&beneficiary, (StopCause::Backfill(entry.group), &measure), found, pass, out) {
            self.group_mut(entry.group).expect("a claimant is there").cleared = true;
        }
    }

    /// How many claimants wait for whom nothing is done yet. Fillers hold no claim when they are stopped.
    fn unmet_claims(&self, pass: &Pass) -> Measure {
        let promised: BTreeSet<GroupId> =
            pass.promised.iter().filter(|(_, tasks)| **tasks > 0).map(|((group, _), _)| *group).collect();
        let unmet = self.claims.entries.iter().filter(|claim| !promised.contains(&claim.entry.group));
        (0, unmet.count() as u128, 0)
    }

    /// The fillers that are in the way of a claimant where it is expected, the newest first, and where it goes
    /// then. Whoever need not go for it to find room anywhere stays.
    fn who_fills(
        &mut self,
        claim: &Claim,
        beneficiary: &Beneficiary,
        now: Time,
    ) -> Option<(Vec<Unit>, Places)> {
        let mut units = self.in_the_way(claim, now)?;
        let mut places = claim.places.clone();
        units.iter().for_each(|unit| self.put_aside(unit));
        for index in (0..units.len()).rev().take(UNITS_MAX) {
            self.put_back(&units[index]);
            match self.places_for(beneficiary) {
                Some(others) => {
                    places = others;
                    units.remove(index);
                }
                None => self.put_aside(&units[index]),
            }
        }
        units.iter().for_each(|unit| self.put_back(unit));
        Some((units, places))
    }

    fn in_the_way(&self, claim: &Claim, now: Time) -> Option<Vec<Unit>> {
        let room = |(node, held)| Some((node, (Room::on(self.nodes.get(node)?), held)));
        let held = claim.nodes.iter().map(|(node, held)| (*node, held));
        let mut rooms: BTreeMap<NodeId, (Room, &Held)> = held.map(room).collect::<Option<_>>()?;
        let has_room = |(room, held): &(Room, &Held)| has_room_for_all(room.clone(), &held.shapes);
        let mut fillers: Vec<&LiveView> = self.awaited_live(claim).filter(|live| !live.stopping).collect();
        fillers.sort_unstable_by_key(|live| Reverse((live.since, live.attempt.task)));
        let (mut units, mut gone): (Vec<Unit>, BTreeSet<Slot>) = Default::default();
        for live in fillers {
            let is_needed = live.node().and_then(|node| rooms.get(&node)).is_some_and(|room| !has_room(room));
            if !is_needed || gone.contains(&live.attempt.slot) {
                continue;
            }
            let (unit, _) = self.unit_of(live.attempt.slot, now, &gone)?;
            for slot in &unit {
                let (node, shape) = self.held_by(*slot);
                rooms.get_mut(&node).into_iter().for_each(|(room, _)| room.give_back(&shape));
            }
            gone.extend(unit.iter().copied());
            units.push(unit);
        }
        (!units.is_empty() && rooms.values().all(has_room)).then_some(units)
    }

    /// Attempts that run on what is claimed until the claimant can start, and since when.
    pub fn fillers(&self) -> impl Iterator<Item = (Attempt, Time)> {
        let fillers = self.live.iter().filter(|live| live.fills && !live.stopping);
        fillers.map(|live| (live.attempt, live.since))
    }

    /// Claimants that wait only for fillers who could be stopped now.
    pub fn held_up_by_fillers(&self) -> Vec<GroupId> {
        let mut scheduler = self.clone();
        let pass = scheduler.begin_pass(self.now);
        let claims = (0..self.claims.entries.len()).filter(|index| {
            let claim = &self.claims.entries[*index];
            let is_due = self.clears_from(claim, self.now).is_some_and(|from| from <= self.now);
            scheduler.lift_claim(*index);
            is_due && self.may_clear() && scheduler.in_the_way(claim, pass.now).is_some()
        });
        claims.map(|index| self.claims.entries[index].entry.group).collect()
    }
}
