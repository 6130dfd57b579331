//! Taking running work away so that something that waits can start: only as much as lets it start, found
//! by planning without the victims, and nobody goes if that is not enough.
//!
//! One pass looks at what waits and cannot start, cause by cause. It works on the Scheduler's own view as it
//! will be when everything has ended that was told to, and puts the view back as it was before it ends. The
//! work of a pass is bounded: so many beneficiaries, so many candidates, so many victims for each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::{GroupId, NodeId, Slot, TaskId};
use crate::messages::{Outbox, SchedulerMessage};
use crate::mutation::{self, Mutation};
use crate::outcome::StopCause;
use crate::resources::Resources;
use crate::shares::bucket::Bucket;
use crate::spec::ShapeSpec;
use crate::time::Time;

use super::account::Account;
use super::earmarks::Earmark;
use super::leaf::LeafId;
use super::order::Order;
use super::queue::Entry;
use super::shapes::{Place, ShapeId, ShapeKey};
use super::victims::{Candidates, LaneValue, Unit, Walk};
use super::{Scheduler, groups, shapes};

/// So many who wait are helped in one turn; the others come in the next.
const BENEFICIARIES_MAX: usize = 256;

/// So many attempts or whole atomic groups are taken out in search of room for one of them.
const UNITS_MAX: usize = 128;

/// Something that waits with a closed window, that no limit keeps, and that has no room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) shape: ShapeId,
    pub(super) leaf: LeafId,
    pub(super) level: u16,
    pub(super) class: u16,
    pub(super) queue: u32,
    order: Order,
}

/// One pass, and what it supposes.
pub(super) struct Pass {
    pub(super) now: Time,
    pub(super) candidates: Candidates,
    /// How much room each attempt leaves that is ending anyway.
    ending: BTreeMap<Slot, (NodeId, Arc<ShapeSpec>)>,
    /// Room that beneficiaries will find without anybody's help.
    found: Vec<(NodeId, Arc<ShapeSpec>)>,
    accounts: (Vec<Account>, Vec<Account>),
    /// Tasks that are seen to, by role.
    promised: BTreeMap<(GroupId, u16), u32>,
    helped: usize,
    pub(super) stopped: usize,
    /// When there is more to be done.
    pub(super) again: Option<Time>,
}

/// Whom a place is looked for.
#[derive(Clone, Copy, Debug)]
struct Beneficiary {
    entry: Entry,
    atomic: bool,
    leaf: LeafId,
    shape: ShapeId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Help {
    /// One more has or gets a place.
    Given,
    /// Nothing can be done for this wish.
    None,
    /// The pass is over.
    Enough,
}

/// What a cause says to a search.
pub(super) trait Cause {
    /// What taking from a leaf is worth, and of which account it is; nothing if it is not to be touched.
    fn value(&self, scheduler: &Scheduler, wish: &Wish, leaf: LeafId) -> Option<LaneValue>;
    /// What one attempt of a leaf is worth.
    fn step(&self, scheduler: &Scheduler, leaf: LeafId, slot: Slot) -> i128;
    /// Whether the attempt may go for this cause, or from when on.
    fn spares_until(&self, scheduler: &Scheduler, slot: Slot) -> Option<Time>;
    /// The measure that every stop lowers, as the books stand.
    fn measure(&self, scheduler: &Scheduler, wish: &Wish) -> (u128, u128);
    /// Whether the stop of these has lowered the measure.
    fn lowers(&self, scheduler: &Scheduler, wish: &Wish, before: (u128, u128), victims: &[TaskId]) -> bool;
    fn name(&self, group: GroupId) -> StopCause;
}

/// Roles and the nodes on which a task of each would find room.
type Places = Vec<(u16, NodeId)>;

impl Scheduler {
    /// Takes away what may be taken for those who cannot start otherwise.
    pub(super) fn disrupt(&mut self, now: Time, out: &mut Outbox) {
        if !self.settings.rebalance.any() {
            return;
        }
        let due = self.unsettled || self.retry_at.is_some_and(|at| at <= now);
        if !due || self.has_more_to_plan() || self.is_starved() {
            return;
        }
        (self.unsettled, self.retry_at) = (false, None);
        let wishes = self.wishes(now);
        if wishes.is_empty() {
            return;
        }
        let mut pass = self.begin_pass(now);
        self.help_by_cause(&wishes, &mut pass, out);
        self.end_pass(&mut pass);
        let later = pass.candidates.next.into_iter().chain(pass.again).min();
        self.retry_at = later.filter(|at| *at > now);
        self.unsettled |= pass.helped >= BENEFICIARIES_MAX;
    }

    /// Whether something comes in after which somebody may have to give way.
    pub(super) fn note_unsettled(&mut self, batch: &[SchedulerMessage]) {
        let means_nothing = |message: &SchedulerMessage| {
            use SchedulerMessage::{Audit, Committed, Explain, ExplainOn};
            matches!(message, Audit(_) | Committed { .. } | Explain { .. } | ExplainOn { .. })
        };
        self.unsettled |= !batch.iter().all(means_nothing);
    }

    /// When time alone may let somebody take something from somebody else.
    pub(super) fn next_disruption(&self) -> Option<Time> {
        if self.is_starved() || !self.settings.rebalance.any() {
            return None;
        }
        if self.unsettled { Some(Time::ZERO) } else { self.retry_at }
    }

    fn wishes(&self, now: Time) -> Vec<Wish> {
        let waiting = self.shapes.iter().filter(|(_, shape)| shape.place == Place::Indexed);
        let waiting = waiting.filter(|(id, shape)| {
            shape.window.is_none()
                && !self.is_surplus(shape.leaf)
                && self.limit_on(shape.leaf, *id, now).is_none()
        });
        let wish = |(id, shape): (ShapeId, &super::shapes::Shape)| {
            let leaf = self.shares.leaf(shape.leaf);
            let (level, class, queue) = (leaf.level, leaf.class, leaf.queue);
            Wish { shape: id, leaf: shape.leaf, level, class, queue, order: shape.order }
        };
        let mut wishes: Vec<Wish> = waiting.map(wish).collect();
        wishes.sort_unstable_by_key(|wish| (wish.level, wish.order, wish.shape));
        wishes
    }

    /// Supposes that everything has ended that is about to, and that everybody runs for whom something is
    /// kept.
    fn begin_pass(&mut self, now: Time) -> Pass {
        let accounts = self.shares.accounts();
        self.suppose_books(now);
        let unassigned = self.live.stopping().filter(|live| !self.earmarks.waits_for(live.attempt.slot));
        let ending: BTreeMap<Slot, (NodeId, Arc<ShapeSpec>)> = unassigned
            .filter_map(|live| {
                Some((live.attempt.slot, (live.node?, Arc::clone(self.spec_of(live.attempt.task)))))
            })
            .collect();
        for (node, shape) in ending.values() {
            self.nodes.give_back(*node, shape);
        }
        Pass {
            now,
            candidates: self.candidates(now),
            ending,
            found: Vec::new(),
            accounts,
            promised: self.earmarks.promised(),
            helped: 0,
            stopped: 0,
            again: None,
        }
    }

    /// Changes the books to what they will be: without those that are being stopped, with those for whom
    /// something is kept.
    pub(super) fn suppose_books(&mut self, now: Time) {
        let stopping: Vec<_> = self.live.stopping().map(|live| live.attempt.task).collect();
        for task in stopping {
            self.charge(now, self.leaf_of(task.job()), task, -1);
        }
        for ((group, role), tasks) in self.earmarks.promised() {
            if self.group(group).is_some() {
                let task = TaskId { group, role, index: 0 };
                self.charge(now, self.leaf_of(group.job()), task, i64::from(tasks));
            }
        }
    }

    fn end_pass(&mut self, pass: &mut Pass) {
        for (node, shape) in std::mem::take(&mut pass.found) {
            self.nodes.give_back(node, &shape);
        }
        for (node, shape) in std::mem::take(&mut pass.ending).into_values() {
            self.nodes.take(node, &shape);
        }
        self.shares.restore_accounts(std::mem::take(&mut pass.accounts));
    }

    /// Sees to one more task, or atomic group, of a wish.
    pub(super) fn help(&mut self, wish: &Wish, cause: &dyn Cause, pass: &mut Pass, out: &mut Outbox) -> Help {
        if pass.helped >= BENEFICIARIES_MAX {
            return Help::Enough;
        }
        if self.limit_on(wish.leaf, wish.shape, pass.now).is_some() {
            return Help::None;
        }
        let Some(beneficiary) = self.next_beneficiary(wish, pass) else { return Help::None };
        if let Some(places) = self.places_for(&beneficiary) {
            // What is ending anyway makes room for it.
            self.note_promised(&beneficiary, &places, pass);
            for (role, node) in places {
                let spec = self.role_spec(beneficiary.entry.group, role);
                self.nodes.take(node, &spec);
                pass.found.push((node, spec));
            }
            return Help::Given;
        }
        let before = cause.measure(self, wish);
        let Some((units, places)) = self.search(wish, &beneficiary, cause, pass) else { return Help::None };
        let tasks: Vec<_> = units.iter().flatten().map(|slot| self.task_in(*slot)).collect();
        for task in &tasks {
            self.charge(pass.now, self.leaf_of(task.job()), *task, -1);
        }
        self.note_promised(&beneficiary, &places, pass);
        let lowers = cause.lowers(self, wish, before, &tasks);
        let allowed = lowers && self.may_stop(tasks.len() as u64, pass);
        if !allowed && !mutation::active(Mutation::StopForNothing) {
            self.note_not_promised(&beneficiary, &places, pass);
            for task in &tasks {
                self.charge(pass.now, self.leaf_of(task.job()), *task, 1);
            }
            return Help::None;
        }
        let slots: Vec<Slot> = units.into_iter().flatten().collect();
        self.earmark(&beneficiary, cause, places, &slots, pass);
        let name = cause.name(beneficiary.entry.group);
        for slot in slots {
            self.count_stop(slot);
            self.stop(slot, name, out);
        }
        pass.stopped += 1;
        Help::Given
    }

    /// The first task or atomic group of a wish for which nothing is done yet.
    fn next_beneficiary(&self, wish: &Wish, pass: &Pass) -> Option<Beneficiary> {
        let atomic = matches!(self.shapes.get(wish.shape).key, ShapeKey::Gang(..));
        let most = pass.helped + pass.promised.len() + 1;
        let waits = |queued| shapes::waits(&self.jobs, wish.shape, atomic, queued);
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
    fn places_for(&mut self, beneficiary: &Beneficiary) -> Option<Vec<(u16, NodeId)>> {
        let Beneficiary { entry, atomic, shape, .. } = *beneficiary;
        if atomic {
            return self.room_for_gang(entry.group);
        }
        let spec = self.role_spec(entry.group, entry.role);
        let scope = self.shapes.get(shape).scopes[0];
        let node = self.nodes.first_fit(scope, &spec)?;
        Some(vec![(entry.role, node)])
    }

    /// Looks for those who have to go: takes them out one by one, in the order of the cause, until the
    /// beneficiary finds room, and puts back everybody who is not needed for it.
    fn search(
        &mut self,
        wish: &Wish,
        beneficiary: &Beneficiary,
        cause: &dyn Cause,
        pass: &mut Pass,
    ) -> Option<(Vec<Unit>, Places)> {
        let lanes = pass.candidates.lanes.keys();
        let lanes = lanes.filter_map(|leaf| cause.value(self, wish, *leaf)).collect();
        let mut walk = Walk::new(&pass.candidates, lanes);
        let (mut taken, mut gone): (Vec<Unit>, BTreeSet<Slot>) = Default::default();
        let mut again = pass.again;
        let mut places = None;
        while places.is_none() && taken.len() < UNITS_MAX {
            let started = |slot: Slot| {
                let live = self.live.get(slot).filter(|live| !live.stopping && !gone.contains(&slot));
                live.map(|live| live.since)
            };
            let Some(slot) = walk.next(started) else { break };
            if let Some(until) = cause.spares_until(self, slot).filter(|until| *until > pass.now) {
                let until = Some(until).filter(|until| *until != Time::NEVER);
                again = again.into_iter().chain(until).min();
                continue;
            }
            let task = self.task_in(slot);
            let own = task.group == beneficiary.entry.group;
            let Some(unit) = self.unit_of(slot, pass.now, &gone).filter(|_| !own) else { continue };
            let leaf = self.leaf_of(task.job());
            for slot in &unit {
                walk.take_off(leaf, cause.step(self, leaf, *slot));
            }
            self.put_aside(&unit);
            gone.extend(unit.iter().copied());
            taken.push(unit);
            places = self.places_for(beneficiary);
        }
        pass.again = again;
        if places.is_some() && !mutation::active(Mutation::StopTooMany) {
            for index in (0..taken.len()).rev() {
                self.put_back(&taken[index]);
                match self.places_for(beneficiary) {
                    Some(fewer) => {
                        places = Some(fewer);
                        taken.remove(index);
                    }
                    None => self.put_aside(&taken[index]),
                }
            }
        }
        taken.iter().for_each(|unit| self.put_back(unit));
        places.map(|places| (taken, places))
    }

    /// Keeps for the beneficiary what the victims leave, what is leaving its nodes anyway, and what is
    /// needed of the room that is free there.
    fn earmark(
        &mut self,
        beneficiary: &Beneficiary,
        cause: &dyn Cause,
        places: Vec<(u16, NodeId)>,
        victims: &[Slot],
        pass: &mut Pass,
    ) {
        let group = beneficiary.entry.group;
        let mut needs: BTreeMap<NodeId, Resources> = BTreeMap::new();
        for (role, node) in &places {
            *needs.entry(*node).or_default() += &self.role_spec(group, *role).request;
        }
        let on_its_nodes = |node: Option<NodeId>| node.is_some_and(|node| needs.contains_key(&node));
        let victims =
            victims.iter().filter(|slot| on_its_nodes(self.live.get(**slot).and_then(|live| live.node)));
        let mut pending: BTreeSet<Slot> = victims.copied().collect();
        let ending = pass.ending.iter().filter(|(_, (node, _))| needs.contains_key(node));
        let ending: Vec<Slot> = ending.map(|(slot, _)| *slot).collect();
        for slot in ending {
            let (node, shape) = pass.ending.remove(&slot).expect("just seen");
            self.nodes.take(node, &shape);
            pending.insert(slot);
        }
        for slot in &pending {
            let live = self.live.get(*slot).expect("who is waited for is live");
            let request = self.request_of(live.attempt.task).clone();
            *needs.get_mut(&live.node.expect("it is on a node")).expect("on its nodes") -= &request;
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
        let until = pass.now + self.settings.rebalance.earmark;
        let (cause, atomic, left) = (cause.name(group), beneficiary.atomic, Vec::new());
        self.earmarks.insert(Earmark { group, atomic, cause, places, pending, left, kept, until });
    }

    /// Whether so many may be stopped now; if time alone keeps them, the pass comes again.
    fn may_stop(&mut self, tasks: u64, pass: &mut Pass) -> bool {
        let Some(rate) = self.settings.rebalance.rate else { return true };
        let bucket = self.stop_bucket.get_or_insert_with(|| Bucket::new(rate, pass.now));
        if bucket.rate() != rate {
            bucket.set_rate(pass.now, rate);
        }
        if bucket.refusal(pass.now, tasks).is_some() && !mutation::active(Mutation::IgnoreStopRate) {
            let next = Some(bucket.next_time_for(pass.now, tasks)).filter(|next| *next != Time::NEVER);
            pass.again = pass.again.into_iter().chain(next).min();
            return false;
        }
        bucket.charge(pass.now, tasks);
        true
    }

    fn note_promised(&mut self, beneficiary: &Beneficiary, places: &[(u16, NodeId)], pass: &mut Pass) {
        let group = beneficiary.entry.group;
        pass.helped += 1;
        for (role, _) in places {
            *pass.promised.entry((group, *role)).or_default() += 1;
            let task = TaskId { group, role: *role, index: 0 };
            self.charge(pass.now, beneficiary.leaf, task, 1);
        }
    }

    fn note_not_promised(&mut self, beneficiary: &Beneficiary, places: &[(u16, NodeId)], pass: &mut Pass) {
        let group = beneficiary.entry.group;
        pass.helped -= 1;
        for (role, _) in places {
            *pass.promised.get_mut(&(group, *role)).expect("just promised") -= 1;
            let task = TaskId { group, role: *role, index: 0 };
            self.charge(pass.now, beneficiary.leaf, task, -1);
        }
    }

    fn put_aside(&mut self, unit: &[Slot]) {
        for slot in unit {
            let live = *self.live.get(*slot).expect("candidates are live");
            let spec = Arc::clone(self.spec_of(live.attempt.task));
            self.nodes.give_back(live.node.expect("candidates are on a node"), &spec);
        }
    }

    fn put_back(&mut self, unit: &[Slot]) {
        for slot in unit {
            let live = *self.live.get(*slot).expect("candidates are live");
            let spec = Arc::clone(self.spec_of(live.attempt.task));
            self.nodes.take(live.node.expect("candidates are on a node"), &spec);
        }
    }

    fn count_stop(&mut self, slot: Slot) {
        let task = self.task_in(slot);
        let group = self.group_mut(task.group).expect("a group outlives its attempts");
        group.roles[usize::from(task.role)].count_stop(task.index);
    }

    pub(super) fn task_in(&self, slot: Slot) -> TaskId {
        self.live.get(slot).expect("the caller has seen the attempt").attempt.task
    }

    fn spec_of(&self, task: TaskId) -> &Arc<ShapeSpec> {
        let group = self.group(task.group).expect("a group outlives its attempts");
        &group.roles[usize::from(task.role)].spec
    }

    fn role_spec(&self, group: GroupId, role: u16) -> Arc<ShapeSpec> {
        let view = groups::find(&self.jobs, group).expect("the caller has seen the group");
        Arc::clone(&view.roles[usize::from(role)].spec)
    }
}
