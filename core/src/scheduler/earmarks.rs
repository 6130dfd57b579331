//! Earmarks: what a stop frees is for whom it was done, and for nobody else, until that has started, does
//! not want it any more, or has not come for it in time.
//!
//! An earmark is no entry of the ledger. In the Scheduler's own view the room of an ended victim simply
//! stays taken, and so does what is needed of the room that was free beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{GroupId, NodeId, Slot};
use crate::mutation::{self, Mutation};
use crate::outcome::StopCause;
use crate::resources::Resources;
use crate::spec::ShapeSpec;
use crate::time::Time;

use super::elastic::Phase;
use super::groups::{GroupView, RoleView};
use super::plan::{Bind, Turn, bind};
use super::preempt::Pass;
use super::queue::Entry;
use super::search::{Beneficiary, Places};
use super::{Scheduler, credit, groups};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Earmark {
    pub(super) group: GroupId,
    /// A whole atomic group, or one task of a role.
    pub(super) atomic: bool,
    pub(super) cause: StopCause,
    /// Where its tasks go, by role.
    pub(super) places: Vec<(u16, NodeId)>,
    /// Attempts that have to end first.
    pub(super) pending: BTreeSet<Slot>,
    /// The room of those that have ended.
    pub(super) left: Vec<(NodeId, Arc<ShapeSpec>)>,
    /// What is needed besides, of each node.
    pub(super) kept: Vec<(NodeId, Resources)>,
    /// It is over then. Nothing while somebody has to end first: what is not free yet is not idle.
    pub(super) until: Option<Time>,
}

/// Why an earmark is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EarmarkEnd {
    /// Its beneficiary runs.
    Started,
    /// Its beneficiary was cancelled, or runs elsewhere.
    NotWanted,
    /// Its beneficiary did not come for it in time.
    Expired,
    /// One of its nodes has changed or is gone.
    NodeChanged,
    /// There is less room than there was when it was made.
    NoRoom,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Earmarks {
    entries: BTreeMap<u64, Earmark>,
    of_slot: BTreeMap<Slot, u64>,
    last: u64,
    /// What ended in this turn.
    #[serde(skip)]
    pub(super) ended: Vec<(u64, EarmarkEnd)>,
    /// A group that lost in this turn what was kept for it, although it waits.
    #[serde(skip)]
    pub(super) wronged: Option<GroupId>,
}

impl Earmarks {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Earmark)> {
        self.entries.iter().map(|(number, earmark)| (*number, earmark))
    }

    pub(super) fn insert(&mut self, earmark: Earmark) {
        self.last += 1;
        self.of_slot.extend(earmark.pending.iter().map(|slot| (*slot, self.last)));
        self.entries.insert(self.last, earmark);
    }

    fn remove(&mut self, number: u64) -> Earmark {
        let earmark = self.entries.remove(&number).expect("the caller has seen it");
        self.of_slot.retain(|_, of| *of != number);
        earmark
    }

    /// Whether something is kept for this group.
    pub(super) fn is_for(&self, group: GroupId) -> bool {
        self.entries.values().any(|earmark| earmark.group == group)
    }

    /// Whether the end of this attempt is waited for.
    pub(super) fn waits_for(&self, slot: Slot) -> bool {
        self.of_slot.contains_key(&slot)
    }

    /// An attempt has ended: its room stays taken if it is earmarked.
    pub(super) fn take_in(&mut self, slot: Slot, node: NodeId, shape: &Arc<ShapeSpec>) -> bool {
        if mutation::active(Mutation::StealEarmark) {
            return false;
        }
        let Some(number) = self.of_slot.remove(&slot) else { return false };
        let earmark = self.entries.get_mut(&number).expect("who is waited for is known");
        earmark.pending.remove(&slot);
        earmark.left.push((node, Arc::clone(shape)));
        true
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.entries.values().filter_map(|earmark| earmark.until).min()
    }

    /// Tasks of a role for which something is earmarked.
    pub(super) fn promised(&self) -> BTreeMap<(GroupId, u16), u32> {
        let mut promised = BTreeMap::new();
        for earmark in self.entries.values() {
            for (role, _) in &earmark.places {
                *promised.entry((earmark.group, *role)).or_default() += 1;
            }
        }
        promised
    }

    /// What is kept on a node, as shapes and as amounts.
    pub(super) fn on(&self, node: NodeId) -> (Vec<&Arc<ShapeSpec>>, Resources) {
        let (mut shapes, mut amounts) = (Vec::new(), Resources::new());
        for earmark in self.entries.values() {
            shapes.extend(earmark.left.iter().filter(|(on, _)| *on == node).map(|(_, shape)| shape));
            for (_, kept) in earmark.kept.iter().filter(|(on, _)| *on == node) {
                amounts += kept;
            }
        }
        (shapes, amounts)
    }
}

/// How many single tasks of a role wait for a place.
fn waits_for_places(group: &GroupView, role: u16) -> u32 {
    let role = &group.roles[usize::from(role)];
    match (&group.elastic, group.phase()) {
        _ if group.withdrawn => 0,
        (None, _) => role.waiting(),
        (Some(_), Some(Phase::Running)) => role.surplus(),
        (Some(_), _) => 0,
    }
}

impl Scheduler {
    /// Keeps for the beneficiary what the victims leave, what is leaving its nodes anyway, and what is
    /// needed of the room that is free there.
    pub(super) fn earmark(
        &mut self,
        beneficiary: &Beneficiary,
        cause: StopCause,
        places: Places,
        victims: &[Slot],
        pass: &mut Pass,
    ) {
        let group = beneficiary.entry.group;
        self.end_claim_of(group);
        let mut needs: BTreeMap<NodeId, Resources> = BTreeMap::new();
        for (role, node) in &places {
            *needs.entry(*node).or_default() += &self.role_spec(group, *role).request;
        }
        let pending = self.assign_room(group, &places, victims, pass);
        for slot in &pending {
            let live = self.live.get(*slot).expect("who is waited for is live");
            let request = self.request_of(live.attempt.task).clone();
            *needs.get_mut(&live.node().expect("it is on a node")).expect("on its nodes") -= &request;
        }
        let mut kept = Vec::new();
        for (node, need) in needs {
            let mut lacking = Resources::new();
            need.iter()
                .filter(|(_, amount)| *amount > 0)
                .for_each(|(kind, amount)| lacking.set(kind, amount));
            if !lacking.is_zero() {
                self.nodes.keep(node, &lacking);
                kept.push((node, lacking));
            }
        }
        // Where nobody has to go first it is free at once, but it may have to wait for credit or a limit.
        let until = pending.is_empty().then(|| pass.now + self.settings.rebalance.earmark);
        let (atomic, left) = (beneficiary.atomic, Vec::new());
        self.earmarks.insert(Earmark { group, atomic, cause, places, pending, left, kept, until });
    }

    /// Which of those who are ending have to end before these places are free. The room of the others who go is
    /// for whoever comes next.
    fn assign_room(
        &mut self,
        group: GroupId,
        places: &Places,
        victims: &[Slot],
        pass: &mut Pass,
    ) -> BTreeSet<Slot> {
        for slot in victims {
            let (node, shape) = self.held_by(*slot);
            self.nodes.give_back(node, &shape);
            pass.ending.insert(*slot, (node, shape));
        }
        let specs: Vec<(NodeId, Arc<ShapeSpec>)> =
            places.iter().map(|(role, node)| (*node, self.role_spec(group, *role))).collect();
        let its_nodes: BTreeSet<NodeId> = specs.iter().map(|(node, _)| *node).collect();
        specs.iter().for_each(|(node, spec)| self.nodes.take(*node, spec));
        let (mut needed, mut spare) = (BTreeSet::new(), Vec::new());
        // Whoever would still find room beside the beneficiary need not be waited for.
        for (slot, (node, shape)) in pass.ending.iter().filter(|(_, (node, _))| its_nodes.contains(node)) {
            match self.nodes.get(*node).is_some_and(|on| on.has_room_for(shape)) {
                true => {
                    self.nodes.take(*node, shape);
                    spare.push((*node, Arc::clone(shape)));
                }
                false => drop(needed.insert(*slot)),
            }
        }
        for (node, shape) in spare.iter().chain(&specs) {
            self.nodes.give_back(*node, shape);
        }
        for slot in &needed {
            let (node, shape) = pass.ending.remove(slot).expect("just seen");
            self.nodes.take(node, &shape);
        }
        needed
    }

    /// Starts those for whom everything has become free, and lets go of what nobody comes for.
    pub(super) fn advance_earmarks(&mut self, turn: &mut Turn) {
        if self.earmarks.is_empty() {
            return;
        }
        let numbers: Vec<u64> = self.earmarks.iter().map(|(number, _)| number).collect();
        // Of those that stay: whoever has been started is waited for no more.
        let mut promised = BTreeMap::new();
        let mut given_up = BTreeSet::new();
        for number in numbers {
            let earmark = &self.earmarks.entries[&number];
            let (group, places) = (earmark.group, earmark.places.clone());
            let is_free = earmark.pending.is_empty();
            let is_over = earmark.until.is_some_and(|until| until <= turn.now);
            let ends = !mutation::active(Mutation::KeepEarmark);
            if !self.is_wanted(earmark, &promised) && ends {
                given_up.extend(places.iter().filter(|_| !earmark.atomic).map(|(role, _)| (group, *role)));
                self.end_earmark(number, EarmarkEnd::NotWanted, turn);
            } else if is_over && ends {
                self.end_earmark(number, EarmarkEnd::Expired, turn);
            } else if is_free && !self.start_earmarked(number, turn) {
                let until = turn.now + self.settings.rebalance.earmark;
                let earmark = self.earmarks.entries.get_mut(&number).expect("it was not started");
                earmark.until.get_or_insert(until);
            }
            if self.earmarks.entries.contains_key(&number) || mutation::active(Mutation::CountStarted) {
                for (role, _) in places {
                    *promised.entry((group, role)).or_default() += 1;
                }
            }
        }
        self.earmarks.wronged = self.wronged_by(&given_up);
    }

    /// A group that was given up as not wanting what is kept, although more of it waits than is kept for it.
    fn wronged_by(&self, given_up: &BTreeSet<(GroupId, u16)>) -> Option<GroupId> {
        let promised = if given_up.is_empty() { BTreeMap::new() } else { self.earmarks.promised() };
        let is_wronged = |(id, role): &&(GroupId, u16)| {
            let waits = self.group(*id).map_or(0, |group| waits_for_places(group, *role));
            waits > promised.get(&(*id, *role)).copied().unwrap_or(0)
        };
        given_up.iter().find(is_wronged).map(|(id, _)| *id)
    }

    /// Whether the beneficiary still waits, also beside others for whom something is kept.
    fn is_wanted(&self, earmark: &Earmark, promised: &BTreeMap<(GroupId, u16), u32>) -> bool {
        let Some(group) = self.group(earmark.group).filter(|group| !group.withdrawn) else { return false };
        match earmark.atomic {
            true => {
                // Guests need no place of their own.
                let wants = |view: &RoleView| if view.spec.guest_of.is_some() { 0 } else { view.needed() };
                let places =
                    |role: usize| earmark.places.iter().filter(move |(of, _)| usize::from(*of) == role);
                let mut roles = group.roles.iter().enumerate();
                let as_before = |(role, view)| places(role).count() == wants(view) as usize;
                group.gang.is_some() && roles.all(as_before)
            }
            false => earmark.places.iter().all(|(role, _)| {
                let before = promised.get(&(earmark.group, *role)).copied().unwrap_or(0);
                before < waits_for_places(group, *role)
            }),
        }
    }

    /// The earmark is over: what it kept is free for all.
    fn end_earmark(&mut self, number: u64, end: EarmarkEnd, turn: &mut Turn) -> Earmark {
        let mut earmark = self.earmarks.remove(number);
        for (node, shape) in std::mem::take(&mut earmark.left) {
            self.nodes.give_back(node, &shape);
            turn.touch(node);
        }
        for (node, amount) in std::mem::take(&mut earmark.kept) {
            self.nodes.release(node, &amount);
            turn.touch(node);
        }
        self.earmarks.ended.push((number, end));
        self.unsettled = true;
        earmark
    }

    /// A node changes or goes: what was earmarked there is void.
    pub(super) fn end_earmarks_on(&mut self, node: NodeId, turn: &mut Turn) {
        if self.earmarks.is_empty() {
            return;
        }
        let concerns = |earmark: &Earmark| {
            earmark.places.iter().any(|(_, on)| *on == node) || earmark.left.iter().any(|(on, _)| *on == node)
        };
        let concerned = self.earmarks.iter().filter(|(_, earmark)| concerns(earmark));
        let numbers: Vec<u64> = concerned.map(|(number, _)| number).collect();
        for number in numbers {
            self.end_earmark(number, EarmarkEnd::NodeChanged, turn);
        }
    }

    /// Everything is free that the beneficiary needs: it starts, unless a limit or credit keeps it for now.
    /// False if the earmark stays.
    fn start_earmarked(&mut self, number: u64, turn: &mut Turn) -> bool {
        let earmark = &self.earmarks.entries[&number];
        let (group, atomic, places) = (earmark.group, earmark.atomic, earmark.places.clone());
        let view = groups::find(&self.jobs, group).expect("the caller has seen that it is wanted");
        let shape = match view.gang.filter(|_| atomic) {
            Some(shape) => shape,
            None => view.roles[usize::from(places[0].0)].shape,
        };
        let leaf = self.shapes.get(shape).leaf;
        let tasks = if atomic { view.needed() } else { 1 };
        // What grows by what another gave takes nothing that is to stay free.
        let stands_aside = self.shapes.is_limited(shape) && !self.elastic.aside.contains(&shape);
        let limited = stands_aside || self.limit_on(leaf, shape, turn.now).is_some();
        if limited || !self.has_credit(tasks) {
            return false;
        }
        self.end_earmark(number, EarmarkEnd::Started, turn);
        if !self.take_places(group, &places) {
            let last = self.earmarks.ended.last_mut().expect("it has just ended");
            last.1 = EarmarkEnd::NoRoom;
            return true;
        }
        credit::spend(&mut self.credit, tasks);
        self.has_started(group);
        match atomic {
            true => self.bind_gang_at(group, &places, turn),
            false => self.bind_task(group, places[0], turn),
        }
        self.shapes.settle(shape, &self.jobs);
        if atomic {
            self.shapes.release(shape, &mut self.nodes);
        }
        self.bind_if_tied(group);
        true
    }

    /// Takes room at all of these places, or at none of them.
    fn take_places(&mut self, group: GroupId, places: &[(u16, NodeId)]) -> bool {
        let view = groups::find(&self.jobs, group).expect("the caller has seen the group");
        let spec = |role: u16| Arc::clone(&view.roles[usize::from(role)].spec);
        let places: Vec<(Arc<ShapeSpec>, NodeId)> =
            places.iter().map(|(role, node)| (spec(*role), *node)).collect();
        for (index, (spec, node)) in places.iter().enumerate() {
            let entry = self.nodes.get(*node);
            let fits = entry.is_some_and(|on| on.has_room_for(spec) && spec.rules.allow(&on.view.facts));
            if !fits {
                places[..index].iter().for_each(|(spec, node)| self.nodes.give_back(*node, spec));
                return false;
            }
            self.nodes.take(*node, spec);
        }
        true
    }

    /// Starts one task of a role at a place that was taken for it.
    fn bind_task(&mut self, group: GroupId, (role, node): (u16, NodeId), turn: &mut Turn) {
        let entry = Entry { group, role };
        let view = groups::find_mut(&mut self.jobs, group).expect("the caller has seen the group");
        turn.begin_part(&view.roles[usize::from(role)], false, false);
        let shape = view.roles[usize::from(role)].shape;
        // While the size of its group rests nothing of it is queued.
        let is_queued = view.roles[usize::from(role)].queued > 0;
        let (index, number) = match is_queued {
            true => view.roles[usize::from(role)].take_queued(),
            false => view.roles[usize::from(role)].take(),
        };
        bind(&mut self.live, &mut self.nodes, view, Bind { entry, index, number, node }, turn);
        if is_queued {
            self.take_waiting(shape, 1);
        }
        self.count_started(turn.now, entry, 1);
        self.has_grown(turn.now, group);
    }

    /// What is earmarked on a node: shapes of tasks that have ended there, and amounts.
    pub fn earmarked_on(&self, node: NodeId) -> (Vec<Arc<ShapeSpec>>, Resources) {
        let (shapes, amounts) = self.earmarks.on(node);
        (shapes.into_iter().map(Arc::clone).collect(), amounts)
    }

    /// The earmarks by number: for whom, why, and until when.
    pub fn earmarks(&self) -> Vec<(u64, GroupId, StopCause, Option<Time>)> {
        let all = self.earmarks.iter();
        all.map(|(number, earmark)| (number, earmark.group, earmark.cause, earmark.until)).collect()
    }

    /// The earmarks that ended in the last turn.
    pub fn earmarks_ended(&self) -> &[(u64, EarmarkEnd)] {
        &self.earmarks.ended
    }
}
