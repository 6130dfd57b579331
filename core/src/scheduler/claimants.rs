//! Who holds a claim: the first in order of those that have waited long enough and do not fit.
//!
//! Shapes of which something waits ripen: one deadline, that of the shape that is next. Whoever holds a claim
//! keeps it until it starts, unless a group of a higher band, or one that is before it in its own queue, wants
//! the same pool. That another share has less by now does not take a claim away: it would go to and fro and
//! nobody would ever start.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::messages::ClaimEvent;
use crate::resources::Resources;
use crate::settings::JobKey;
use crate::spec::{ShapeSpec, Tie};
use crate::time::{Span, Time};

use super::claims::Claim;
use super::leaf::LeafId;
use super::order::Order;
use super::queue::Entry;
use super::shapes::{Place, ShapeId, ShapeKey, Shapes, waits};
use super::{Scheduler, groups};

/// So many of those that wait with one shape are looked at.
const ENTRIES_MAX: usize = 16;

/// So many are tried in one turn; the others in the next, so that nobody is passed over for good because many
/// that come before cannot be met.
const TRIES_MAX: usize = 32;

/// A claim that nobody knows the start of, or that is late, is looked at again after this long at least.
const REVIEW_MIN: Span = Span::from_millis(1_000);

/// Somebody who may hold a claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimant {
    pub(super) entry: Entry,
    pub(super) atomic: bool,
    pub(super) shape: ShapeId,
    pub(super) leaf: LeafId,
    pub(super) level: u16,
    order: Order,
}

/// What came of looking for nodes that somebody may claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tried {
    /// There was nothing to look at: others hold what it wants.
    Held,
    Granted,
    /// On no nodes that were looked at it could ever start.
    InVain,
    /// It needs several pools, and others hold some of them. Nobody after it is given a claim until these have
    /// started, or it would never find all of them free.
    HoldsBack,
}

impl Scheduler {
    /// A shape was tried in vain: what waits of it may come to hold a claim.
    pub(super) fn note_in_vain(&mut self, shapes: &[ShapeId]) {
        let Some(after) = self.settings.claims_after() else { return };
        for id in shapes.iter().copied() {
            if self.claims.ripe.contains(&id) {
                self.claims.unsettled = true;
            } else if !self.claims.ripens.contains_key(&id) {
                self.let_ripen(id, after);
            }
        }
    }

    /// Sets the time from which on something of this shape has waited long enough.
    fn let_ripen(&mut self, id: ShapeId, after: Span) {
        let oldest = self.first_of(id).into_iter().map(|entry| self.waits_since(entry)).min();
        if let Some(oldest) = oldest.filter(|_| !self.is_surplus(self.shapes.get(id).leaf)) {
            self.claims.ripens.insert(id, oldest + after);
            self.claims.ripening.insert((oldest + after, id));
        }
    }

    /// The first entries that wait with a shape, if it waits for room.
    fn first_of(&self, id: ShapeId) -> Vec<Entry> {
        let Some(shape) = self.shapes.find(id).filter(|shape| shape.place != Place::Idle) else {
            return Vec::new();
        };
        let atomic = matches!(shape.key, ShapeKey::Gang(..));
        shape.queue.first(ENTRIES_MAX, |queued| waits(&self.jobs, id, atomic, queued))
    }

    fn waits_since(&self, entry: Entry) -> Time {
        groups::find(&self.jobs, entry.group).expect("what waits is there").since
    }

    /// What is not stored of the claims, and everything where the time to wait has changed.
    pub(super) fn rebuild_claims(&mut self) {
        self.claims.ripening = self.claims.ripens.iter().map(|(shape, at)| (*at, *shape)).collect();
    }

    /// Begins to count anew, after the settings have changed.
    pub(super) fn ripen_anew(&mut self) {
        self.claims.ripens.clear();
        self.claims.ripening.clear();
        self.claims.ripe.clear();
        let waiting: Vec<ShapeId> = self.shapes.iter().map(|(id, _)| id).collect();
        self.note_in_vain(&waiting);
        self.claims.unsettled = true;
    }

    /// When time alone changes who holds a claim.
    pub(super) fn next_claim(&self) -> Option<Time> {
        if self.settings.claims_after().is_none() || self.is_starved() {
            return None;
        }
        let ripe = self.claims.ripening.first().map(|(at, _)| *at);
        let review = self.claims.entries.iter().map(|claim| claim.review).min();
        let offers = self.claims.offers && !self.claims.is_empty();
        let again = self.claims.unsettled || self.claims.unfinished || offers;
        let again = again.then_some(Time::ZERO);
        [ripe, review, again, self.claims.ask_again].into_iter().flatten().min()
    }

    /// When something is to be done apart from claims.
    pub fn next_but_claims(&self) -> Option<Time> {
        let more = self.has_more_to_plan() || !self.questions.is_empty();
        if more { Some(Time::ZERO) } else { self.deadline_but_claims() }
    }

    pub(super) fn deadline_but_claims(&self) -> Option<Time> {
        let gate = [self.earmarks.next_deadline(), self.next_disruption()];
        let deadlines =
            [self.shapes.next_window_close(), self.limits.next_wake(), self.next_thaw(), self.next_raise()];
        deadlines.into_iter().chain(gate).flatten().min()
    }

    /// Decides who holds a claim from now on, when everything is planned that can be.
    pub(super) fn renew_claims(&mut self, now: Time) {
        let Some(after) = self.settings.claims_after() else { return };
        // Whoever looked for room meanwhile supposed that others were gone.
        for index in (0..self.claims.entries.len()).rev() {
            match self.why_over(&self.claims.entries[index]) {
                Some(why) => {
                    let nodes = self.end_claim(index, why);
                    self.unserved.extend(nodes);
                }
                None => {
                    self.lift_claim(index);
                    self.hold_claim(index);
                }
            }
        }
        if self.has_more_to_plan() || self.is_starved() {
            return;
        }
        while let Some((at, id)) = self.claims.ripening.first().copied().filter(|(at, _)| *at <= now) {
            self.claims.ripening.remove(&(at, id));
            self.claims.ripens.remove(&id);
            self.claims.ripe.insert(id);
            self.claims.unsettled = true;
        }
        if self.claims.ask_again.is_some_and(|at| at <= now) {
            (self.claims.ask_again, self.claims.unsettled) = (None, true);
        }
        let due = |claim: &Claim| claim.review <= now;
        let late: Vec<Entry> =
            self.claims.entries.iter().filter(|claim| due(claim)).map(|claim| claim.entry).collect();
        for entry in late {
            self.review_claim(entry, now, after);
        }
        self.settle_claimants(now, after);
    }

    /// Decides who holds a claim if that may have changed, or goes on with deciding. What changes meanwhile is
    /// looked at when everybody was tried.
    fn settle_claimants(&mut self, now: Time, after: Span) {
        let goes_on = std::mem::take(&mut self.claims.unfinished) && !self.claims.ripe.is_empty();
        if !goes_on {
            self.claims.passed.clear();
        }
        if goes_on || std::mem::take(&mut self.claims.unsettled) && !self.claims.ripe.is_empty() {
            self.grant_claims(now, after);
        }
    }

    /// A claimant has not started when it was expected to: other nodes may be free sooner by now.
    fn review_claim(&mut self, entry: Entry, now: Time, after: Span) {
        let Some(index) = self.claims.of(entry.group) else { return };
        let Claim { atomic, shape, .. } = self.claims.entries[index];
        let claimant = self.claimant(shape, entry, atomic);
        let pool = self.claims.entries[index].pool.clone();
        self.lift_claim(index);
        self.claims.barred = self.pools_but(pool.as_ref());
        let found = self.choose_nodes(&claimant, now);
        self.claims.barred.clear();
        let review = now + after.max(REVIEW_MIN);
        match found.filter(|found| found.places != self.claims.entries[index].places) {
            Some(mut found) => {
                let nodes = self.end_claim(index, ClaimEvent::Moved);
                self.unserved.extend(nodes);
                (found.late, found.review, found.pool) = (true, review, pool);
                self.enter_claim(found);
            }
            None => {
                let claim = &mut self.claims.entries[index];
                (claim.late, claim.review) = (true, review);
                self.hold_claim(index);
            }
        }
    }

    /// Every pool but this one, where somebody is to stay in it.
    fn pools_but(&self, pool: Option<&Arc<str>>) -> BTreeSet<Arc<str>> {
        let Some(pool) = pool else { return BTreeSet::new() };
        self.nodes.pools.names().filter(|other| *other != pool).cloned().collect()
    }

    fn claimant(&self, shape: ShapeId, entry: Entry, atomic: bool) -> Claimant {
        let leaf = self.shapes.get(shape).leaf;
        let order = groups::find(&self.jobs, entry.group).expect("what waits is there").roles
            [usize::from(entry.role)]
        .order;
        Claimant { entry, atomic, shape, leaf, level: self.shares.leaf(leaf).level, order }
    }

    /// Those that have waited long enough, the first in order first.
    fn claimants(&mut self, now: Time, after: Span) -> Vec<Claimant> {
        let mut found = Vec::new();
        for id in self.claims.ripe.clone() {
            let entries = self.first_of(id);
            let is_ripe = |entry: &Entry| self.waits_since(*entry) + after <= now;
            let ripe: Vec<Entry> = entries.iter().copied().filter(is_ripe).collect();
            if ripe.is_empty() {
                self.claims.ripe.remove(&id);
                if !entries.is_empty() {
                    self.let_ripen(id, after);
                }
                continue;
            }
            let shape = self.shapes.get(id);
            if shape.place != Place::Indexed || shape.window.is_some() || self.is_surplus(shape.leaf) {
                continue;
            }
            let atomic = matches!(shape.key, ShapeKey::Gang(..));
            let turn = self.claim_turn(shape.leaf);
            for entry in ripe.into_iter().filter(|entry| !self.earmarks.is_for(entry.group)) {
                let claimant = self.claimant(id, entry, atomic);
                found.push((turn, claimant));
            }
        }
        found.sort_unstable_by(|(turn, claimant), (other, other_claimant)| {
            turn.compare(other).then_with(|| claimant.order.cmp(&other_claimant.order))
        });
        found.into_iter().map(|(_, claimant)| claimant).collect()
    }

    /// Gives every pool that has none a claimant, and those that come first the pool they want.
    fn grant_claims(&mut self, now: Time, after: Span) {
        let claimants = self.claimants(now, after);
        let least = self.shapes.least_request();
        let mut tries = 0;
        // What is alike is not tried twice in vain.
        let mut hopeless: BTreeSet<(ShapeId, bool)> = BTreeSet::new();
        for claimant in claimants {
            let entry = claimant.entry;
            let is_passed = self.claims.passed.contains(&entry) || self.claims.of(entry.group).is_some();
            if is_passed || !self.needs_claim(&claimant, &least) {
                continue;
            }
            if self.is_everything_claimed(&claimant) {
                break;
            }
            let stays = self.group(entry.group).is_some_and(|group| group.tie != Tie::None);
            if hopeless.contains(&(claimant.shape, stays)) {
                self.claims.passed.insert(entry);
                continue;
            }
            if tries == TRIES_MAX {
                self.claims.unfinished = true;
                return;
            }
            match self.try_claim(&claimant, now, after) {
                Tried::Held => {}
                Tried::Granted => tries += 1,
                Tried::InVain => {
                    tries += 1;
                    hopeless.insert((claimant.shape, stays));
                    self.claims.passed.insert(entry);
                }
                Tried::HoldsBack => break,
            }
        }
        self.claims.passed.clear();
    }

    /// Whether nobody that comes after this one could have a claim either.
    fn is_everything_claimed(&self, claimant: &Claimant) -> bool {
        let all = self.claims.entries.iter().find(|claim| claim.pool.is_none());
        all.is_some_and(|claim| self.shares.leaf(claimant.leaf).level > self.level_of_claim(claim))
    }

    fn level_of_claim(&self, claim: &Claim) -> u16 {
        self.shares.leaf(self.shapes.get(claim.shape).leaf).level
    }

    /// Whether this one goes before a claimant, whatever the shares have by now.
    fn goes_before(&self, claimant: &Claimant, claim: &Claim) -> bool {
        let holder = self.claimant(claim.shape, claim.entry, claim.atomic);
        let before_in_queue = self.settings.shares.job_key == JobKey::Priority
            && holder.leaf == claimant.leaf
            && claimant.order < holder.order;
        claimant.level < holder.level || before_in_queue
    }

    /// Looks for nodes that can be claimed, in pools of which nobody holds the claim who comes before.
    fn try_claim(&mut self, claimant: &Claimant, now: Time, after: Span) -> Tried {
        let wanted = self.pools_of(claimant);
        let in_the_way = |claim: &Claim| match (&claim.pool, &wanted) {
            (Some(pool), Some(wanted)) => wanted.contains(pool),
            _ => true,
        };
        let (mut yielding, mut barred): (Vec<usize>, BTreeSet<Arc<str>>) = Default::default();
        for (index, claim) in self.claims.entries.iter().enumerate().filter(|(_, claim)| in_the_way(claim)) {
            match &claim.pool {
                _ if self.goes_before(claimant, claim) => yielding.push(index),
                Some(pool) => drop(barred.insert(Arc::clone(pool))),
                None => return Tried::Held,
            }
        }
        let one_pool = wanted.is_some() || !barred.is_empty();
        let is_left = |pool: &Arc<str>| !barred.contains(pool);
        let any_left = match &wanted {
            Some(wanted) => wanted.iter().any(is_left),
            None => self.nodes.pools.names().any(is_left),
        };
        if !any_left {
            return if wanted.is_some() { Tried::Held } else { self.needs_all_pools(claimant, now) };
        }
        let needs_all = wanted.is_none() && one_pool;
        if let Some(wanted) = &wanted {
            barred.extend(self.nodes.pools.names().filter(|pool| !wanted.contains(*pool)).cloned());
        }
        yielding.iter().for_each(|index| self.lift_claim(*index));
        self.claims.barred = barred;
        let found = self.choose_nodes(claimant, now);
        self.claims.barred.clear();
        let takes = found.as_ref().is_some_and(|found| self.takes_from_those_below(claimant, found));
        let Some(mut found) = found.filter(|_| !takes) else {
            yielding.iter().for_each(|index| self.hold_claim(*index));
            if takes {
                self.claims.ask_again = Some(now + REVIEW_MIN);
                return Tried::InVain;
            }
            return if needs_all { self.needs_all_pools(claimant, now) } else { Tried::InVain };
        };
        found.pool = if one_pool { self.pool_at(&found) } else { None };
        for index in yielding.into_iter().rev() {
            let claim = &self.claims.entries[index];
            if claim.pool.is_none() || found.pool.is_none() || claim.pool == found.pool {
                let nodes = self.end_claim(index, ClaimEvent::Overtaken);
                self.unserved.extend(nodes);
            } else {
                self.hold_claim(index);
            }
        }
        let unknown = now + after.max(REVIEW_MIN);
        found.review = found.expected.map_or(unknown, |expected| expected.max(now + REVIEW_MIN));
        if found.nodes.values().all(|held| held.awaited.is_empty()) {
            // There is room by now: it is served next.
            self.shapes.move_to(claimant.shape, Place::Open, &self.jobs);
            self.claims.retry_all();
        }
        self.enter_claim(found);
        Tried::Granted
    }

    /// What may run in any pool does not fit into one of which nobody holds the claim: whether it could start in
    /// several together. It does not wait for claimants that are late, which may never start.
    fn needs_all_pools(&mut self, claimant: &Claimant, now: Time) -> Tried {
        if self.claims.entries.iter().any(|claim| claim.late) {
            return Tried::Held;
        }
        let claims = 0..self.claims.entries.len();
        claims.clone().for_each(|index| self.lift_claim(index));
        let found = self.choose_nodes(claimant, now);
        claims.for_each(|index| self.hold_claim(index));
        let Some(found) = found else { return Tried::InVain };
        let pools: BTreeSet<&str> = found.nodes.keys().map(|node| self.pool_of(*node)).collect();
        if pools.len() > 1 { Tried::HoldsBack } else { Tried::Held }
    }

    fn pool_at(&self, claim: &Claim) -> Option<Arc<str>> {
        let (_, node) = claim.places.first()?;
        Some(self.nodes.get(*node)?.view.facts.pool.as_str().into())
    }

    /// The pools of which it can hold the claim, if it stays in one; none if it is for all of them.
    fn pools_of(&self, claimant: &Claimant) -> Option<BTreeSet<Arc<str>>> {
        let shape = self.shapes.get(claimant.shape);
        if let Some(pool) = shape.key.bound_pool() {
            return Some(BTreeSet::from([Arc::clone(pool)]));
        }
        let group = groups::find(&self.jobs, claimant.entry.group)?;
        let stays = claimant.atomic && group.tie != Tie::None && self.nodes.pools.is_divided();
        let one = |spec: &Arc<ShapeSpec>| match spec.rules.pools.as_slice() {
            [pool] => Some(Arc::<str>::from(pool.as_str())),
            _ => None,
        };
        let mut named = shape.key.specs().map(one);
        let first = named.next().flatten();
        match first.filter(|first| named.all(|pool| pool.as_ref() == Some(first))) {
            Some(pool) => Some(BTreeSet::from([pool])),
            None if stays => Some(self.nodes.pools.names().cloned().collect()),
            None => None,
        }
    }

    /// Whether others could keep it from starting: an atomic group always; a task only where others are
    /// smaller, so that what one of them leaves is not enough for it.
    fn needs_claim(&self, claimant: &Claimant, least: &Resources) -> bool {
        match &self.shapes.get(claimant.shape).key {
            ShapeKey::Gang(..) => true,
            ShapeKey::Task(spec) => spec.exclusive || !spec.ports.is_empty() || !spec.request.fits_in(least),
        }
    }
}

impl Shapes {
    /// The least that anything requests that waits or runs, kind by kind.
    fn least_request(&self) -> Resources {
        let requests = self.iter().flat_map(|(_, shape)| shape.key.specs()).map(|spec| &spec.request);
        let least = requests.filter(|request| !request.is_zero()).cloned();
        least.reduce(|least, request| least.componentwise_min(&request)).unwrap_or_default()
    }
}
