//! On which nodes a claimant is expected to start first, and who has to end there until then.
//!
//! Ends are supposed one after the other, in the order in which they are expected, until the claimant would
//! find room. Who says how long it takes, or is of a kind that was measured, is expected to end then. Of
//! everybody else, and of those who are late, nothing is known: they are taken to stay as long again as they
//! have stayed, so that what has run for ever is chosen last. Whoever was let in until somebody can start who
//! holds a claim is as good as gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::id::{Attempt, GroupId, NodeId};
use crate::spec::{NodeChoice, ShapeSpec};
use crate::time::{Span, Time};

use super::claimants::Claimant;
use super::claims::{Claim, Held};
use super::live::LiveView;
use super::nodes::NodeEntry;
use super::packing::Room;
use super::shapes::ShapeKey;
use super::{Scheduler, groups};

/// So many nodes that would do are looked at for a single task; of a larger cluster another part each time.
const NODES_FOR_ONE: usize = 256;

/// So many are looked at for each role of a group that starts as a whole, or so many times its tasks.
const NODES_FOR_GROUP: usize = 2_048;
const NODES_PER_TASK: usize = 8;

/// When an attempt is expected to end, and whether that is more than a guess.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct End {
    pub(super) at: Time,
    pub(super) is_guess: bool,
}

impl Scheduler {
    fn expected_end(&self, live: &LiveView, claimant: GroupId, now: Time) -> End {
        if live.stopping {
            return End { at: now, is_guess: false };
        }
        if let Some(from) = self.yields_from(live, claimant) {
            return End { at: from.max(now), is_guess: false };
        }
        let group = groups::find(&self.jobs, live.attempt.task.group).expect("a group outlives it");
        let role = &group.roles[usize::from(live.attempt.task.role)];
        let mean = || role.task_key.as_ref().and_then(|key| self.durations.mean(key));
        let expected = role.expects().or_else(mean).or(role.timeout.get());
        match expected.map(|expected| live.since + expected).filter(|end| *end > now) {
            Some(at) => End { at, is_guess: false },
            None => {
                let again = now.since(live.since).max(Span::from_millis(1));
                End { at: now + again, is_guess: true }
            }
        }
    }

    /// The attempts on nodes that would do for the claimant, in the order in which they are expected to end.
    fn ends_for(&self, claimant: &Claimant, now: Time) -> Vec<(End, Attempt)> {
        let key = &self.shapes.get(claimant.shape).key;
        let most = match key {
            ShapeKey::Task(_) => NODES_FOR_ONE,
            ShapeKey::Gang(roles, _) => {
                let tasks: u64 = roles.iter().map(|(_, count)| u64::from(*count)).sum();
                NODES_FOR_GROUP.max(NODES_PER_TASK * tasks as usize)
            }
        };
        let does = |spec: &Arc<ShapeSpec>, entry: &NodeEntry| {
            !entry.keeps_out(spec)
                && spec.request.fits_in(&entry.view.offered())
                && spec.rules.allow(&entry.view.facts)
                && !self.claims.barred.contains(entry.view.facts.pool.as_str())
        };
        let mut wanted: Vec<(&Arc<ShapeSpec>, usize)> = key.specs().map(|spec| (spec, most)).collect();
        let mut ends = Vec::new();
        for (_, entry) in self.nodes.iter_from(self.claims.chosen as usize * most) {
            if wanted.is_empty() {
                break;
            }
            let mut will_do = false;
            for (_, left) in wanted.iter_mut().filter(|(spec, _)| does(spec, entry)) {
                *left -= 1;
                will_do = true;
            }
            if !will_do {
                continue;
            }
            wanted.retain(|(_, left)| *left > 0);
            let live = self.live.on_node(entry.attempts);
            ends.extend(
                live.filter(|live| !self.earmarks.waits_for(live.attempt.slot))
                    .map(|live| (self.expected_end(live, claimant.entry.group, now), live.attempt)),
            );
        }
        ends.sort_unstable_by_key(|(end, attempt)| (*end, attempt.task, attempt.slot));
        ends
    }

    /// The claim that this one would make, if it can be met at all.
    pub(super) fn choose_nodes(&mut self, claimant: &Claimant, now: Time) -> Option<Claim> {
        let ends = self.ends_for(claimant, now);
        self.claims.chosen += 1;
        let lifted = self.withheld_for(claimant.shape);
        self.nodes.lift(&lifted, true);
        let places = self.earliest_places(claimant, &ends);
        self.nodes.lift(&lifted, false);
        self.claim_at(claimant, places?, &ends, now)
    }

    /// Where the claimant finds room first, if everybody ends in this order.
    fn earliest_places(
        &mut self,
        claimant: &Claimant,
        ends: &[(End, Attempt)],
    ) -> Option<Vec<(u16, NodeId)>> {
        let (mut ended, mut fails, mut step) = (0, 0, 1);
        let mut found = self.places_of(claimant);
        while found.is_none() && ended < ends.len() {
            fails = ended;
            let next = (ended + step).min(ends.len());
            self.suppose_ended(&ends[ended..next], true);
            (ended, step) = (next, step * 2);
            found = self.places_of(claimant);
        }
        // With `fails` ends there is no room, with `ended` there is.
        while found.is_some() && ended > fails + 1 {
            let middle = fails + (ended - fails) / 2;
            self.suppose_ended(&ends[middle..ended], false);
            match self.places_of(claimant) {
                Some(earlier) => (found, ended) = (Some(earlier), middle),
                None => {
                    self.suppose_ended(&ends[middle..ended], true);
                    fails = middle;
                }
            }
        }
        self.suppose_ended(&ends[..ended], false);
        found
    }

    fn places_of(&mut self, claimant: &Claimant) -> Option<Vec<(u16, NodeId)>> {
        let entry = claimant.entry;
        if claimant.atomic {
            return self.room_for_gang(entry.group);
        }
        let group = groups::find(&self.jobs, entry.group).expect("what waits is there");
        let spec = Arc::clone(&group.roles[usize::from(entry.role)].spec);
        if self.claims.barred.is_empty() {
            let scope = self.shapes.get(claimant.shape).scopes[0];
            let node = self.nodes.first_fit(scope, &spec)?;
            return Some(vec![(entry.role, node)]);
        }
        let packs = self.settings.placement == NodeChoice::Pack;
        let in_order = self.nodes.pools_in_order(&spec.request, packs);
        let mut allowed = in_order.into_iter().filter(|pool| !self.claims.barred.contains(pool));
        let node = allowed.find_map(|pool| {
            let (spec, scope) = self.shapes.in_pool(claimant.shape, &pool, &mut self.nodes);
            self.nodes.first_fit(scope, &spec)
        })?;
        Some(vec![(entry.role, node)])
    }

    /// Supposes that these have ended, or that they have not.
    fn suppose_ended(&mut self, ends: &[(End, Attempt)], ended: bool) {
        for (_, attempt) in ends {
            let live = *self.live.get(attempt.slot).expect("only live attempts are supposed to end");
            let group = groups::find(&self.jobs, attempt.task.group).expect("a group outlives it");
            let spec = Arc::clone(&group.roles[usize::from(attempt.task.role)].spec);
            let node = live.node().expect("it was found on a node");
            match ended {
                true => self.nodes.give_back(node, &spec),
                false => self.nodes.take(node, &spec),
            }
        }
    }

    /// The claim on these places: on each node those are awaited who end first, until there is room.
    fn claim_at(
        &self,
        claimant: &Claimant,
        places: Vec<(u16, NodeId)>,
        ends: &[(End, Attempt)],
        now: Time,
    ) -> Option<Claim> {
        let group = groups::find(&self.jobs, claimant.entry.group)?;
        let mut shapes: BTreeMap<NodeId, Vec<Arc<ShapeSpec>>> = BTreeMap::new();
        for (role, node) in &places {
            shapes.entry(*node).or_default().push(Arc::clone(&group.roles[usize::from(*role)].spec));
        }
        let mut on_node: BTreeMap<NodeId, Vec<(End, Attempt)>> = BTreeMap::new();
        for (end, attempt) in ends {
            let node = self.live.get(attempt.slot).and_then(|live| live.node())?;
            if shapes.contains_key(&node) {
                on_node.entry(node).or_default().push((*end, *attempt));
            }
        }
        let (mut start, mut nodes) = (End { at: now, is_guess: false }, BTreeMap::new());
        for (node, shapes) in shapes {
            let mut room = Room::on(self.nodes.get(node)?);
            let mut awaited: Vec<Attempt> = Vec::new();
            let mut coming = on_node.remove(&node).unwrap_or_default().into_iter();
            while !has_room_for_all(room.clone(), &shapes) {
                let (end, attempt) = coming.next()?;
                let group = groups::find(&self.jobs, attempt.task.group)?;
                room.give_back(&group.roles[usize::from(attempt.task.role)].spec);
                awaited.push(attempt);
                start = End { at: start.at.max(end.at), is_guess: start.is_guess | end.is_guess };
            }
            nodes.insert(node, Held::new(shapes, awaited));
        }
        let expected = (!start.is_guess).then_some(start.at);
        Some(Claim {
            entry: claimant.entry,
            atomic: claimant.atomic,
            shape: claimant.shape,
            places,
            nodes,
            pool: None,
            made: now,
            expected,
            review: now,
            late: false,
        })
    }

    /// How many attempts have to end before a claimant can start, and how many go once it can.
    pub(super) fn awaited_by(&self, claim: &Claim) -> (u32, u32) {
        let (mut ending, mut yielding) = (0, 0);
        for live in self.awaited_live(claim) {
            match self.yields_from(live, claim.entry.group) {
                Some(_) => yielding += 1,
                None => ending += 1,
            }
        }
        (ending, yielding)
    }

    /// Who is awaited by a claimant and has not ended.
    pub(super) fn awaited_live(&self, claim: &Claim) -> impl Iterator<Item = &LiveView> {
        let held = claim.nodes.values().flat_map(|held| &held.awaited);
        held.filter_map(|one| self.live.get(one.slot).filter(|live| live.attempt == *one))
    }
}

pub(super) fn has_room_for_all(mut room: Room, shapes: &[Arc<ShapeSpec>]) -> bool {
    shapes.iter().all(|shape| {
        let admits = !room.free.has_negative() && room.admits(shape);
        if admits {
            room.take(shape);
        }
        admits
    })
}
