//! Who has to go so that somebody can start: taken out one by one, in the order of the cause, until there is
//! room, and everybody put back who is not needed for it.
//!
//! For one task only the nodes on which something was taken out can have gained room, so thousands of
//! candidates are looked at. For an atomic group every step is a search over all nodes, so there are fewer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::{GroupId, NodeId, Slot, TaskId};
use crate::mutation::{self, Mutation};
use crate::spec::ShapeSpec;
use crate::time::Time;

use super::leaf::LeafId;
use super::nodes::NodeEntry;
use super::preempt::{Cause, Pass, Wish};
use super::queue::{Entry, Queued};
use super::shapes::{ShapeId, ShapeKey};
use super::victims::{Unit, Walk};
use super::{Scheduler, groups, shapes};

/// So many attempts or whole atomic groups are taken out in search of room for an atomic group.
pub(super) const UNITS_MAX: usize = 128;

/// Whom a place is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beneficiary {
    pub(super) entry: Entry,
    pub(super) atomic: bool,
    pub(super) leaf: LeafId,
    pub(super) shape: ShapeId,
}

/// Roles and the nodes on which a task of each would find room.
pub(super) type Places = Vec<(u16, NodeId)>;

/// Those who were taken out so far.
#[derive(Default)]
struct Taken {
    units: Vec<Unit>,
    gone: BTreeSet<Slot>,
}

impl Scheduler {
    /// The first task or atomic group of a wish for which nothing is done yet.
    pub(super) fn next_beneficiary(&self, wish: &Wish, pass: &Pass) -> Option<Beneficiary> {
        let atomic = matches!(self.shapes.get(wish.shape).key, ShapeKey::Gang(..));
        let most = pass.helped + pass.promised.len() + 1;
        let is_own =
            |id: GroupId| self.settings.shares.ageing.is_none() || self.own_level(id.job()) == wish.level;
        // Entries of jobs that are gone stay in the queue for a while.
        let waits =
            |queued: Queued| shapes::waits(&self.jobs, wish.shape, atomic, queued) && is_own(queued.1.group);
        let entries = self.shapes.get(wish.shape).queue.first(most, waits);
        let still_waits = |entry: &Entry| {
            let group = groups::find(&self.jobs, entry.group).expect("a queued group is there");
            let role = if atomic {
                group.roles.iter().position(|role| role.wants_room())?
            } else {
                usize::from(entry.role)
            };
            let promised = pass.promised.get(&(entry.group, role as u16)).copied().unwrap_or(0);
            (promised < if atomic { 1 } else { group.roles[role].waiting() }).then_some(())
        };
        let entry = entries.into_iter().find(|entry| still_waits(entry).is_some())?;
        Some(Beneficiary { entry, atomic, leaf: wish.leaf, shape: wish.shape })
    }

    /// Where the beneficiary would go as things are supposed to be, with nothing taken.
    pub(super) fn places_for(&mut self, beneficiary: &Beneficiary) -> Option<Places> {
        let Beneficiary { entry, atomic, shape, .. } = *beneficiary;
        if atomic {
            return self.room_for_gang(entry.group);
        }
        let spec = self.role_spec(entry.group, entry.role);
        let scope = self.shapes.get(shape).scopes[0];
        self.nodes.first_fit(scope, &spec).map(|node| vec![(entry.role, node)])
    }

    /// Looks for those who have to go, and where the beneficiary goes then. The view is as it was before.
    pub(super) fn search(
        &mut self,
        wish: &Wish,
        beneficiary: &Beneficiary,
        cause: &dyn Cause,
        pass: &mut Pass,
    ) -> Option<(Vec<Unit>, Places)> {
        let candidates = cause.candidates().unwrap_or(&pass.candidates);
        let lanes = candidates.lanes.keys();
        let lanes = lanes.filter_map(|lane| cause.value(self, wish, lane.1).map(|value| (*lane, value)));
        let mut walk = Walk::new(candidates, lanes.collect());
        let mut again = pass.again;
        let found = match beneficiary.atomic {
            true => self.search_for_gang(beneficiary, cause, (&mut walk, pass.now), &mut again),
            false => self.search_for_task(beneficiary, cause, (&mut walk, pass.now), &mut again),
        };
        pass.again = again;
        if let Some(supposed) = &mut pass.supposed {
            supposed.note_steps(walk.steps());
        }
        found
    }

    fn search_for_gang(
        &mut self,
        beneficiary: &Beneficiary,
        cause: &dyn Cause,
        (walk, now): (&mut Walk<'_>, Time),
        again: &mut Option<Time>,
    ) -> Option<(Vec<Unit>, Places)> {
        let mut taken = Taken::default();
        let mut places = None;
        while places.is_none() && taken.units.len() < UNITS_MAX {
            let Some(added) = self.take_next(beneficiary, cause, (&mut *walk, now), &mut taken, again) else {
                break;
            };
            self.put_aside(&added);
            places = self.places_for(beneficiary);
        }
        if places.is_some() && !mutation::active(Mutation::StopTooMany) {
            for index in (0..taken.units.len()).rev() {
                self.put_back(&taken.units[index]);
                match self.places_for(beneficiary) {
                    Some(fewer) => {
                        places = Some(fewer);
                        taken.units.remove(index);
                    }
                    None => self.put_aside(&taken.units[index]),
                }
            }
        }
        taken.units.iter().for_each(|unit| self.put_back(unit));
        places.map(|places| (taken.units, places))
    }

    fn search_for_task(
        &mut self,
        beneficiary: &Beneficiary,
        cause: &dyn Cause,
        (walk, now): (&mut Walk<'_>, Time),
        again: &mut Option<Time>,
    ) -> Option<(Vec<Unit>, Places)> {
        let spec = self.role_spec(beneficiary.entry.group, beneficiary.entry.role);
        let mut taken = Taken::default();
        let mut nodes: BTreeMap<NodeId, NodeEntry> = BTreeMap::new();
        let mut with_room: Vec<NodeId> = Vec::new();
        while with_room.is_empty() {
            let Some(added) = self.take_next(beneficiary, cause, (&mut *walk, now), &mut taken, again) else {
                break;
            };
            for slot in added {
                let (node, shape) = self.held_by(slot);
                let known =
                    nodes.entry(node).or_insert_with(|| self.nodes.get(node).expect("it is there").clone());
                known.free += &shape.request;
                known.company.leave(&shape);
                let has_room = known.has_room_for(&spec) && spec.rules.allow(&known.view.facts);
                if has_room && !with_room.contains(&node) {
                    with_room.push(node);
                }
            }
        }
        with_room.first()?;
        if !mutation::active(Mutation::StopTooMany) {
            self.spare_for_task(&spec, &mut taken.units, &mut nodes, &mut with_room);
        }
        let node = *with_room.first()?;
        Some((taken.units, vec![(beneficiary.entry.role, node)]))
    }

    /// Puts everybody back without whom there is still room for a task on one of these nodes. An atomic group may
    /// have made room on several: what is needed for one of them may not be for another.
    fn spare_for_task(
        &self,
        spec: &ShapeSpec,
        units: &mut Vec<Unit>,
        nodes: &mut BTreeMap<NodeId, NodeEntry>,
        with_room: &mut Vec<NodeId>,
    ) {
        for index in (0..units.len()).rev() {
            let held: Vec<(NodeId, Arc<ShapeSpec>)> =
                units[index].iter().map(|slot| self.held_by(*slot)).collect();
            for (node, shape) in &held {
                let entry = nodes.get_mut(node).expect("it was taken from");
                entry.free -= &shape.request;
                entry.company.join(shape);
            }
            let still = with_room.iter().copied().filter(|node| nodes[node].has_room_for(spec));
            let still: Vec<NodeId> = still.collect();
            if !still.is_empty() {
                units.remove(index);
                *with_room = still;
                continue;
            }
            for (node, shape) in &held {
                let entry = nodes.get_mut(node).expect("it was taken from");
                entry.free += &shape.request;
                entry.company.leave(shape);
            }
        }
    }

    /// Takes out the next who may go, with those who go with it, and says who that is.
    fn take_next(
        &self,
        beneficiary: &Beneficiary,
        cause: &dyn Cause,
        (walk, now): (&mut Walk<'_>, Time),
        taken: &mut Taken,
        again: &mut Option<Time>,
    ) -> Option<Unit> {
        loop {
            let started = |slot: Slot| {
                let live = self.live.get(slot).filter(|live| !live.stopping && !taken.gone.contains(&slot));
                live.map(|live| live.since)
            };
            let slot = walk.next(started)?;
            let rests = self.rests_until(slot).filter(|_| !cause.wakes(self, slot));
            let rests = rests.filter(|_| !mutation::active(Mutation::WakeResting));
            if let Some(until) = cause.spares_until(self, slot).max(rests).filter(|until| *until > now) {
                let until = Some(until).filter(|until| *until != Time::NEVER);
                *again = again.iter().copied().chain(until).min();
                continue;
            }
            let group = self.task_in(slot).group;
            let own = group == beneficiary.entry.group;
            let Some((added, whole)) = self.unit_of(slot, now, &taken.gone).filter(|_| !own) else {
                continue;
            };
            if whole && !cause.takes_whole() {
                continue;
            }
            let leaf = self.leaf_of(group.job());
            for slot in &added {
                walk.take_off(leaf, cause.step(self, leaf, *slot));
            }
            taken.gone.extend(added.iter().copied());
            let mut unit = added.clone();
            if whole {
                // Those of the group that were to go alone go with it.
                let of_group = |unit: &mut Unit| self.task_in(unit[0]).group == group;
                unit.extend(taken.units.extract_if(.., of_group).flatten());
            }
            taken.units.push(unit);
            return Some(added);
        }
    }

    pub(super) fn put_aside(&mut self, unit: &[Slot]) {
        for slot in unit {
            let (node, spec) = self.held_by(*slot);
            self.nodes.give_back(node, &spec);
        }
    }

    pub(super) fn put_back(&mut self, unit: &[Slot]) {
        for slot in unit {
            let (node, spec) = self.held_by(*slot);
            self.nodes.take(node, &spec);
        }
    }

    /// The node of a candidate, and what it holds there.
    pub(super) fn held_by(&self, slot: Slot) -> (NodeId, Arc<ShapeSpec>) {
        let live = self.live.get(slot).expect("candidates are live");
        (live.node().expect("candidates are on a node"), Arc::clone(self.spec_of(live.attempt.task)))
    }

    pub(super) fn spec_of(&self, task: TaskId) -> &Arc<ShapeSpec> {
        let group = self.group(task.group).expect("a group outlives its attempts");
        &group.roles[usize::from(task.role)].spec
    }

    pub(super) fn role_spec(&self, group: GroupId, role: u16) -> Arc<ShapeSpec> {
        let view = groups::find(&self.jobs, group).expect("the caller has seen the group");
        Arc::clone(&view.roles[usize::from(role)].spec)
    }
}
