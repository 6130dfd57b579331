//! Claims: what a large group needs is kept for it, node by node as it becomes free, so that small work
//! cannot pass it for ever.
//!
//! A claim is no entry of the ledger and nothing runs because of it. It names the nodes on which its
//! claimant is expected to start first, and who has to end there until then. In the Scheduler's own view
//! what is needed of these nodes stays taken, and the claimant counts as company there. What is left over is
//! for everybody. Whoever may use what is claimed, the claimant itself, those who are gone before it is
//! expected to start, and those who go once it can, looks for room while the claim is *lifted*.
//!
//! At most one claim is held in each pool; work that stays in no pool claims in all of them together. No
//! claim waits for another, so there is no circle; and a claim ends when its claimant starts, is gone or has
//! changed, when one of its nodes does not do any more, or when another group comes first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{Attempt, GroupId, NodeId};
use crate::messages::{ClaimEvent, ClaimNews, HostMessage, JobMessage, Outbox};
use crate::mutation::{self, Mutation};
use crate::resources::Resources;
use crate::spec::{Company, ShapeSpec};
use crate::time::Time;

use super::groups::{GroupView, RoleView};
use super::nodes::Nodes;
use super::plan::{Served, Turn};
use super::queue::Entry;
use super::shapes::ShapeId;
use super::{Scheduler, groups};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Claim {
    /// An atomic group, or a role of which one task is to start.
    pub(super) entry: Entry,
    pub(super) atomic: bool,
    pub(super) shape: ShapeId,
    /// Where its tasks are to go, by role.
    pub(super) places: Vec<(u16, NodeId)>,
    pub(super) nodes: BTreeMap<NodeId, Held>,
    /// The pool whose claim it is; none if it is that of all pools.
    pub(super) pool: Option<Arc<str>>,
    pub(super) made: Time,
    /// When it is expected to start, by what is declared and measured; nothing if that is not known.
    pub(super) expected: Option<Time>,
    /// When its nodes are chosen anew if it has not started by then.
    pub(super) review: Time,
    /// It has not started when it was expected to. Nobody is let in before it by time any more.
    pub(super) late: bool,
}

/// What a claim keeps of one node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Held {
    /// The tasks that are to run here.
    pub(super) shapes: Vec<Arc<ShapeSpec>>,
    /// Attempts that end first.
    pub(super) awaited: Vec<Attempt>,
    /// So much of what is free is kept; nothing while the claim is lifted.
    kept: Option<Resources>,
}

impl Held {
    pub(super) fn new(shapes: Vec<Arc<ShapeSpec>>, awaited: Vec<Attempt>) -> Held {
        Held { shapes, awaited, kept: None }
    }

    pub(super) fn need(&self) -> Resources {
        let mut need = Resources::new();
        self.shapes.iter().for_each(|shape| need += &shape.request);
        need
    }

    /// So much of what is free is kept by now.
    pub(super) fn kept(&self) -> Option<&Resources> {
        self.kept.as_ref()
    }

    /// What of this much free room is kept, when this much comes to it.
    fn keeps_of(&self, free: &Resources, coming: &Resources) -> Resources {
        let mut kept = Resources::new();
        if mutation::active(Mutation::StealClaim) {
            return kept;
        }
        for (kind, need) in self.need().iter() {
            let free = free.get(kind).max(0);
            let left = (free + coming.get(kind) - need).clamp(0, free);
            kept.set(kind, free - left);
        }
        kept
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Claims {
    pub(super) entries: Vec<Claim>,
    /// When the oldest of those that wait with a shape has waited long enough.
    pub(super) ripens: BTreeMap<ShapeId, Time>,
    /// The same by time.
    #[serde(skip)]
    pub(super) ripening: BTreeSet<(Time, ShapeId)>,
    /// Shapes of which something has.
    pub(super) ripe: BTreeSet<ShapeId>,
    /// Who holds a claim is to be asked again.
    pub(super) unsettled: bool,
    /// Not everybody has been asked yet: the next turn goes on.
    pub(super) unfinished: bool,
    /// Who was tried in vain since the question was asked.
    pub(super) passed: BTreeSet<Entry>,
    /// The same from this time on: somebody may hold none as long as others have less than their own.
    pub(super) ask_again: Option<Time>,
    /// A claimant was kept from starting by something else than a lack of room.
    retry: bool,
    /// Those who may use what is claimed meanwhile are to be looked at.
    pub(super) offers: bool,
    /// How often nodes were chosen, so that large clusters are looked at part by part.
    pub(super) chosen: u64,
    /// What JobState was told.
    told: BTreeMap<GroupId, Arc<str>>,
    /// For as long as nodes are chosen, pools that are not to be used.
    #[serde(skip)]
    pub(super) barred: BTreeSet<Arc<str>>,
    /// Nodes of which something was said in this turn.
    #[serde(skip)]
    changed: BTreeSet<NodeId>,
    #[serde(skip)]
    news: Vec<ClaimNews>,
}

/// What a claim of all pools is called.
pub const ALL_POOLS: &str = "*";

impl Claims {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All claimants are tried in the next turn.
    pub(super) fn retry_all(&mut self) {
        self.retry = true;
    }

    pub(super) fn of(&self, group: GroupId) -> Option<usize> {
        self.entries.iter().position(|claim| claim.entry.group == group)
    }

    /// What is kept on a node: who counts as company, and how much.
    pub(super) fn on(&self, node: NodeId) -> (Vec<&Arc<ShapeSpec>>, Resources) {
        let held = self.entries.iter().filter_map(|claim| claim.nodes.get(&node));
        let mut found = (Vec::new(), Resources::new());
        for held in held {
            if let Some(kept) = &held.kept {
                found.0.extend(&held.shapes);
                found.1 += kept;
            }
        }
        found
    }
}

impl Nodes {
    fn hold(&mut self, node: NodeId, held: &mut Held, coming: &Resources) {
        if self.get(node).is_none() || held.kept.is_some() {
            return;
        }
        let shapes = &held.shapes;
        let mut kept = Resources::new();
        self.change(node, |entry| {
            kept = held.keeps_of(&entry.free, coming);
            entry.free -= &kept;
            shapes.iter().for_each(|shape| entry.company.join(shape));
        });
        held.kept = Some(kept);
    }

    fn let_go(&mut self, node: NodeId, held: &mut Held) {
        let Some(kept) = held.kept.take() else { return };
        if self.get(node).is_some() {
            self.change(node, |entry| {
                entry.free += &kept;
                held.shapes.iter().for_each(|shape| entry.company.leave(shape));
            });
        }
    }
}

impl Scheduler {
    /// Lets what a claim keeps be found, for whom that is.
    pub(super) fn lift_claim(&mut self, index: usize) {
        for (node, held) in &mut self.claims.entries[index].nodes {
            self.nodes.let_go(*node, held);
        }
    }

    /// Keeps for the claimant what is free by now.
    pub(super) fn hold_claim(&mut self, index: usize) {
        for (node, held) in &mut self.claims.entries[index].nodes {
            // What has ended frees nothing any more.
            held.awaited.retain(|one| self.live.get(one.slot).is_some_and(|live| live.attempt == *one));
            let mut coming = Resources::new();
            for attempt in &held.awaited {
                let group = groups::find(&self.jobs, attempt.task.group).expect("a group outlives it");
                coming += &group.roles[usize::from(attempt.task.role)].spec.request;
            }
            self.nodes.hold(*node, held, &coming);
        }
    }

    /// Something is about to be said of a node: nothing is kept there meanwhile.
    pub(super) fn release_claimed(&mut self, node: NodeId) {
        for claim in &mut self.claims.entries {
            if let Some(held) = claim.nodes.get_mut(&node) {
                self.nodes.let_go(node, held);
                self.claims.changed.insert(node);
            }
        }
    }

    /// Ends the claims whose claimants do not want or cannot use them any more, and keeps for the others
    /// what has become free.
    pub(super) fn settle_claims(&mut self, turn: &mut Turn) {
        for index in (0..self.claims.entries.len()).rev() {
            let claim = &self.claims.entries[index];
            if let Some(why) = self.why_over(claim) {
                self.end_claim(index, why).into_iter().for_each(|node| turn.touch(node));
                continue;
            }
            self.lift_claim(index);
            self.hold_claim(index);
        }
        self.claims.changed.clear();
    }

    /// Why a claim is over, if it is.
    pub(super) fn why_over(&self, claim: &Claim) -> Option<ClaimEvent> {
        let Some(group) = self.group(claim.entry.group).filter(|group| !group.withdrawn) else {
            return (!mutation::active(Mutation::KeepClaim)).then_some(ClaimEvent::Gone);
        };
        if !self.still_wants(claim, group) {
            return Some(ClaimEvent::Changed);
        }
        if self.shapes.is_limited(claim.shape) {
            return Some(ClaimEvent::Limited);
        }
        let suits = |(node, held): (&NodeId, &Held)| {
            let Some(entry) = self.nodes.get(*node) else { return false };
            let allowed =
                |shape: &Arc<ShapeSpec>| !entry.keeps_out(shape) && shape.rules.allow(&entry.view.facts);
            let is_there = claim.pool.as_ref().is_none_or(|pool| **pool == *entry.view.facts.pool);
            is_there && held.shapes.iter().all(allowed) && held.need().fits_in(&entry.view.offered())
        };
        if !claim.nodes.iter().all(suits) {
            return Some(ClaimEvent::NodeChanged);
        }
        let is_taken = |on: &(&NodeId, &Held)| self.is_taken(*on);
        let changed = claim.nodes.iter().filter(|(node, _)| self.claims.changed.contains(*node));
        if changed.into_iter().any(|on| is_taken(&on)) {
            return Some(ClaimEvent::NodeChanged);
        }
        let taken = self.settings.rebalance.any() && claim.nodes.iter().any(|on| is_taken(&on));
        taken.then_some(ClaimEvent::Overtaken)
    }

    /// Whether there is too little for the claimant although everybody ends who is awaited: work was taken
    /// away for somebody else, who has it now, or the node has become smaller.
    fn is_taken(&self, (node, held): (&NodeId, &Held)) -> bool {
        let Some(entry) = self.nodes.get(*node) else { return true };
        let mut free = entry.view.offered();
        let others = self.live.on_node(entry.attempts).map(|live| live.attempt);
        for attempt in others.filter(|attempt| !held.awaited.contains(attempt)) {
            free -= self.request_of(attempt.task);
        }
        !held.need().fits_in(&free)
    }

    /// Whether the claimant waits as it did when its nodes were chosen.
    fn still_wants(&self, claim: &Claim, group: &GroupView) -> bool {
        match claim.atomic {
            true => {
                let wants = |view: &RoleView| if view.spec.guest_of.is_some() { 0 } else { view.needed() };
                let places =
                    |role: usize| claim.places.iter().filter(move |(of, _)| usize::from(*of) == role);
                let mut roles = group.roles.iter().enumerate();
                group.gang == Some(claim.shape)
                    && roles.all(|(role, view)| places(role).count() == wants(view) as usize)
            }
            false => {
                let role = &group.roles[usize::from(claim.entry.role)];
                role.shape == claim.shape && role.queued > 0
            }
        }
    }

    /// The claim is over: what it kept is free for all, on these nodes.
    pub(super) fn end_claim(&mut self, index: usize, why: ClaimEvent) -> Vec<NodeId> {
        self.lift_claim(index);
        let claim = self.claims.entries.remove(index);
        self.claims.unsettled = true;
        let group = claim.entry.group;
        if why == ClaimEvent::Started {
            self.has_started(group);
        }
        self.claims.news.push(ClaimNews { at: self.now, group, event: why, claim: None });
        claim.nodes.into_keys().collect()
    }

    /// A claimant runs: others may be let in before it once more when it waits again.
    pub(super) fn has_started(&mut self, group: GroupId) {
        self.group_mut(group).into_iter().for_each(|group| group.cleared = false);
    }

    /// The group is helped otherwise: it needs no claim.
    pub(super) fn end_claim_of(&mut self, group: GroupId) {
        if let Some(index) = self.claims.of(group) {
            let nodes = self.end_claim(index, ClaimEvent::Helped);
            self.unserved.extend(nodes);
        }
    }

    /// All claims are over: whoever may hold one is decided anew.
    pub(super) fn end_all_claims(&mut self, turn: &mut Turn) {
        while !self.claims.entries.is_empty() {
            self.end_claim(0, ClaimEvent::Changed).into_iter().for_each(|node| turn.touch(node));
        }
    }

    pub(super) fn enter_claim(&mut self, claim: Claim) {
        let group = claim.entry.group;
        self.claims.entries.push(claim);
        // Others may be gone before this claimant who were not gone before the last one.
        self.claims.offers = true;
        // It may wait for nobody but those who go at once.
        self.unsettled |= self.settings.rebalance.backfill;
        self.hold_claim(self.claims.entries.len() - 1);
        let view = self.view_of(self.claims.entries.last().expect("just entered"));
        let claim = Some(Box::new(view));
        self.claims.news.push(ClaimNews { at: self.now, group, event: ClaimEvent::Made, claim });
    }

    /// Tries the claimants of nodes that gained room, before anybody else.
    pub(super) fn serve_claimants(&mut self, turn: &mut Turn) {
        let touched: BTreeSet<NodeId> = turn.touched().iter().copied().collect();
        let mut index = 0;
        if self.is_starved() {
            // Credit is used in order: claimants are tried once there is some.
            self.claims.retry |=
                self.claims.entries.iter().any(|claim| claim.nodes.keys().any(|node| touched.contains(node)));
            return;
        }
        let retry = std::mem::take(&mut self.claims.retry);
        while index < self.claims.entries.len() {
            let concerns =
                retry || self.claims.entries[index].nodes.keys().any(|node| touched.contains(node));
            if !concerns {
                index += 1;
                continue;
            }
            // What was served before in this turn may have bound the job of this claimant to a pool: it waits
            // with another shape then.
            if let Some(why) = self.why_over(&self.claims.entries[index]) {
                self.end_claim(index, why).into_iter().for_each(|node| turn.touch(node));
            } else if !self.serve_claimant(index, turn) {
                index += 1;
            }
        }
    }

    /// Starts a claimant if there is room for it; then its claim is over.
    fn serve_claimant(&mut self, index: usize, turn: &mut Turn) -> bool {
        let Claim { entry, atomic, shape, .. } = self.claims.entries[index];
        let leaf = self.shapes.get(shape).leaf;
        let collects = self.shapes.get(shape).window.is_some();
        if collects || self.limit_on(leaf, shape, turn.now).is_some() {
            // Its window closes, or the limit is told of, when it is its turn.
            self.open_unless_collecting(shape);
            self.claims.retry = true;
            return false;
        }
        self.lift_claim(index);
        let waiting = self.shapes.waiting(shape);
        let served = self.place_waiting(entry, atomic, 1, turn);
        if self.shapes.waiting(shape) == waiting {
            self.hold_claim(index);
            if served == Served::NoCredit {
                self.open_unless_collecting(shape);
                self.claims.retry = true;
            }
            return false;
        }
        let nodes = self.end_claim(index, ClaimEvent::Started);
        nodes.into_iter().for_each(|node| turn.touch(node));
        self.shapes.settle(shape, &self.jobs);
        if atomic {
            self.shapes.release(shape, &mut self.nodes);
        }
        self.bind_if_tied(entry.group);
        true
    }

    /// Tells of what has changed.
    pub(super) fn tell_claims(&mut self, out: &mut Outbox) {
        for news in std::mem::take(&mut self.claims.news) {
            out.host.push(HostMessage::Claim(news));
        }
        if self.claims.told.is_empty() && self.claims.is_empty() {
            return;
        }
        let pool = |claim: &Claim| claim.pool.clone().unwrap_or_else(|| ALL_POOLS.into());
        let held: BTreeMap<GroupId, Arc<str>> =
            self.claims.entries.iter().map(|claim| (claim.entry.group, pool(claim))).collect();
        for group in self.claims.told.keys().filter(|group| !held.contains_key(*group)) {
            out.jobs.push(JobMessage::Unassigned { group: *group });
        }
        for (group, pool) in held.iter().filter(|(group, pool)| self.claims.told.get(*group) != Some(*pool)) {
            out.jobs.push(JobMessage::Assigned { group: *group, pool: Arc::clone(pool) });
        }
        self.claims.told = held;
    }

    /// What is claimed by others than this group: on which node, the tasks that are to run there, and how
    /// much is kept for them.
    pub fn claimed_from(&self, group: Option<GroupId>) -> Vec<(NodeId, Vec<Arc<ShapeSpec>>, Resources)> {
        // A claim of one task is none of the other roles of its group.
        let is_own = |claim: &Claim| claim.atomic && Some(claim.entry.group) == group;
        let others = self.claims.entries.iter().filter(|claim| !is_own(claim));
        let nodes = others.flat_map(|claim| &claim.nodes);
        nodes
            .map(|(node, held)| (*node, held.shapes.clone(), held.kept.clone().unwrap_or_default()))
            .collect()
    }

    /// When a live attempt was placed.
    pub fn began(&self, attempt: Attempt) -> Option<Time> {
        self.live.get(attempt.slot).filter(|live| live.attempt == attempt).map(|live| live.since)
    }

    /// Who is waited for on the nodes of a claim, and what is needed there.
    pub fn awaited(&self, group: GroupId) -> Vec<(NodeId, Vec<Attempt>, Resources)> {
        let claim = self.claims.of(group).map(|index| &self.claims.entries[index]);
        let nodes = claim.into_iter().flat_map(|claim| &claim.nodes);
        nodes.map(|(node, held)| (*node, held.awaited.clone(), held.need())).collect()
    }

    /// Whether a task of this shape would find room on a node if nothing were claimed there.
    pub(super) fn has_room_unclaimed(&self, node: NodeId, shape: &ShapeSpec) -> bool {
        let Some(entry) = self.nodes.get(node).filter(|entry| !entry.keeps_out(shape)) else { return false };
        let (shapes, kept) = self.claims.on(node);
        let (mut free, mut company): (Resources, Company) = (entry.free.clone(), entry.company.clone());
        free += &kept;
        shapes.into_iter().for_each(|shape| company.leave(shape));
        !free.has_negative()
            && shape.request.fits_in(&free)
            && company.admits(shape)
            && shape.rules.allow(&entry.view.facts)
    }
}
