//! Elastic groups that give way above their minima: to whatever cannot start otherwise, and to groups that have
//! had less.
//!
//! Who has had how much is the run time of the job, for its weight. Of two groups of one queue the one that has
//! had most gives to the one that has had least, if they would be further apart by the end of a *span*, the time
//! for which sizes rest, than what the move itself changes of that. So of what the two will have had by then the
//! larger always falls, and the smaller does not pass it. Because this looks at how fast they come closer, too,
//! sizes come to rest: to wait until what they have had is as far apart would let them swing for ever.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::id::{GroupId, JobId, NodeId, Slot, TaskId};
use crate::messages::Outbox;
use crate::outcome::StopCause;
use crate::resources::Resources;
use crate::settings::JobKey;
use crate::time::{Span, Time};

use super::Scheduler;
use super::floors::Floors;
use super::leaf::LeafId;
use super::nodes::NodeEntry;
use super::preempt::{BENEFICIARIES_MAX, Cause, Measure, Pass, Wish, lowers};
use super::queue::Entry;
use super::search::Beneficiary;
use super::shapes::{self, Place, ShapeId};
use super::stop_records::StopRecord;
use super::victims::{Candidates, LaneValue, Tier};

/// So many of those that wait with one shape are looked at.
const ENTRIES_MAX: usize = 4;

/// So many pairs are tried in one turn.
const PAIRS_MAX: usize = 64;

/// Whoever gave or was given something rests for so long at least.
const REST_MIN: Span = Span::from_whole_seconds(1);

/// What lacks its minimum, or is no elastic group, and cannot start otherwise.
pub(super) struct Minimum {
    /// The level of whoever is helped.
    pub(super) level: u16,
    floors: Floors,
    /// Members above the minima of their groups, of those first that have had most.
    candidates: Candidates,
}

/// How a job stands: what it has had, what it is given in one span, and what its tasks cost.
#[derive(Clone, Copy, Debug)]
struct Had {
    so_far: u128,
    in_one_span: u128,
}

impl Had {
    fn by_then(self) -> u128 {
        self.so_far.saturating_add(self.in_one_span)
    }
}

/// A role that would grow.
#[derive(Clone, Copy, Debug)]
struct Wanting {
    entry: Entry,
    shape: ShapeId,
}

impl Scheduler {
    pub(super) fn minimum_cause(&self, pass: &Pass) -> Minimum {
        let mut candidates = Candidates::default();
        for ((tier, leaf), slots) in &pass.candidates.lanes {
            if *tier == Tier::Surplus {
                candidates.lanes.insert((*tier, *leaf), self.who_has_had_most(slots, pass.now));
            }
        }
        Minimum { level: 0, floors: self.floors(), candidates }
    }

    /// Members in the order in which they go: one of the job that has had most, as it stands after that, and
    /// so on; of one job the newest first.
    pub(super) fn who_has_had_most(&self, slots: &[Slot], now: Time) -> Vec<Slot> {
        if self.settings.shares.job_key != JobKey::RunTime {
            return slots.to_vec();
        }
        let span = self.settings.elastic.freeze.max(REST_MIN);
        let changes = self.supposed_costs();
        let mut of_job: BTreeMap<JobId, Vec<Slot>> = BTreeMap::new();
        for slot in slots.iter().rev() {
            of_job.entry(self.task_in(*slot).job()).or_default().push(*slot);
        }
        let had = |job: JobId| self.had(job, now, span, &changes).by_then();
        let mut heap: BinaryHeap<(u128, Reverse<JobId>)> =
            of_job.keys().map(|job| (had(*job), Reverse(*job))).collect();
        let mut ordered = Vec::with_capacity(slots.len());
        while let Some((had, Reverse(job))) = heap.pop() {
            let Some(slot) = of_job.get_mut(&job).and_then(Vec::pop) else { continue };
            ordered.push(slot);
            let step = self.step_of(self.task_in(slot), now, span);
            heap.push((had.saturating_sub(step), Reverse(job)));
        }
        ordered
    }

    /// By how much the cost of what jobs run will change: some are being stopped, for some something is kept.
    fn supposed_costs(&self) -> BTreeMap<JobId, (u128, u128)> {
        let mut changes: BTreeMap<JobId, (u128, u128)> = BTreeMap::new();
        for live in self.live.stopping() {
            let task = live.attempt.task;
            changes.entry(task.job()).or_default().0 += self.price(self.request_of(task)).cost;
        }
        for ((group, role), tasks) in self.earmarks.promised() {
            if self.group(group).is_some() {
                let cost = self.price(self.request_of(TaskId { group, role, index: 0 })).cost;
                changes.entry(group.job()).or_default().1 += cost * u128::from(tasks);
            }
        }
        changes
    }

    fn had(&self, job: JobId, now: Time, span: Span, changes: &BTreeMap<JobId, (u128, u128)>) -> Had {
        let clock = self.jobs.get(job.0).and_then(|job| job.clock.as_deref());
        let Some(clock) = clock else { return Had { so_far: 0, in_one_span: 0 } };
        let (less, more) = changes.get(&job).copied().unwrap_or_default();
        let cost = (clock.cost + more).saturating_sub(less);
        let (so_far, in_one_span) = clock.clock.so_far_and_next(now, clock.cost, cost, span);
        Had { so_far, in_one_span }
    }

    /// What one task adds to what its job has had, in one span.
    fn step_of(&self, task: TaskId, now: Time, span: Span) -> u128 {
        let clock = self.jobs.get(task.job().0).and_then(|job| job.clock.as_deref());
        let cost = self.price(self.request_of(task)).cost;
        clock.map_or(0, |clock| clock.clock.so_far_and_next(now, 0, cost, span).1)
    }

    /// Whether elastic groups give to each other, and one of them would take something.
    pub(super) fn any_may_grow(&self) -> bool {
        let rebalance = self.settings.rebalance;
        rebalance.elastic
            && self.settings.shares.job_key == JobKey::RunTime
            && self.shapes.iter().any(|(id, shape)| self.would_grow(id, shape.leaf, shape.place))
    }

    /// Whether this is what elastic groups would have above their minima, and it has no room.
    fn would_grow(&self, id: ShapeId, leaf: LeafId, place: Place) -> bool {
        self.is_surplus(leaf) && (place == Place::Indexed || self.elastic.aside.contains(&id))
    }

    /// The time of comparing has come, and nothing else has happened.
    pub(super) fn even_out_alone(&mut self, now: Time, out: &mut Outbox) {
        if !self.any_may_grow() {
            return;
        }
        let mut pass = self.begin_pass(now);
        self.even_out(&mut pass, out);
        self.end_pass(&mut pass);
        self.freeze_resized(now);
    }

    /// Elastic groups are compared after a while, if the settings say so.
    pub(super) fn compare_later(&mut self, now: Time) {
        let interval = self.settings.elastic.resize_interval;
        if self.settings.rebalance.elastic && !interval.is_zero() {
            self.elastic.even_at.get_or_insert(now + interval);
        }
    }

    /// Lets whoever has had most give to whoever has had least, as long as they are too far apart.
    pub(super) fn even_out(&mut self, pass: &mut Pass, out: &mut Outbox) {
        if !self.any_may_grow() {
            return;
        }
        self.compare_later(pass.now);
        let mut tried: BTreeSet<(Entry, GroupId)> = BTreeSet::new();
        loop {
            let givers = self.givers(pass);
            let Some((wanting, giver)) = self.next_pair(&givers, &mut tried, pass) else { return };
            if tried.len() > PAIRS_MAX || pass.helped >= BENEFICIARIES_MAX {
                return;
            }
            self.give(wanting, giver, &givers[&giver], pass, out);
        }
    }

    /// Groups of which somebody may go, and who that is, the newest first.
    fn givers(&self, pass: &Pass) -> BTreeMap<GroupId, Vec<Slot>> {
        let mut givers: BTreeMap<GroupId, Vec<Slot>> = BTreeMap::new();
        let lanes = pass.candidates.lanes.iter().filter(|((tier, _), _)| *tier == Tier::Surplus);
        for slot in lanes.flat_map(|(_, slots)| slots) {
            let Some(live) = self.live.get(*slot).filter(|live| !live.stopping) else { continue };
            givers.entry(live.attempt.task.group).or_default().push(*slot);
        }
        givers
    }

    /// The first pair in order that is too far apart and was not tried yet.
    fn next_pair(
        &self,
        givers: &BTreeMap<GroupId, Vec<Slot>>,
        tried: &mut BTreeSet<(Entry, GroupId)>,
        pass: &Pass,
    ) -> Option<(Wanting, GroupId)> {
        let (now, changes) = (pass.now, self.supposed_costs());
        let span = self.span_of(givers);
        let had = |group: GroupId| self.had(group.job(), now, span, &changes).so_far;
        let mut wanting: Vec<(u128, Wanting)> =
            self.wanting(pass).into_iter().map(|one| (had(one.entry.group), one)).collect();
        wanting.sort_by_key(|(had, one)| (*had, one.entry));
        let mut giving: Vec<(u128, GroupId)> = givers.keys().map(|group| (had(*group), *group)).collect();
        giving.sort_by_key(|(had, group)| Reverse((*had, *group)));
        for (least, one) in &wanting {
            let own = self.leaf_of(one.entry.group.job());
            for (_, giver) in giving.iter().filter(|(most, _)| most > least) {
                let is_pair = giver.job() != one.entry.group.job() && self.leaf_of(giver.job()) == own;
                if is_pair && !self.rests(*giver) && tried.insert((one.entry, *giver)) {
                    return Some((*one, *giver));
                }
            }
        }
        None
    }

    /// For how long what groups are given is looked ahead: as long as their sizes rest.
    fn span_of(&self, givers: &BTreeMap<GroupId, Vec<Slot>>) -> Span {
        let rests = givers.keys().map(|group| self.freeze_of(*group));
        rests.max().unwrap_or_default().max(self.settings.elastic.freeze).max(REST_MIN)
    }

    /// Roles that would grow and have no room, and for which nothing is done yet.
    fn wanting(&self, pass: &Pass) -> Vec<Wanting> {
        let mut found = Vec::new();
        for (id, shape) in self.shapes.iter() {
            if !self.would_grow(id, shape.leaf, shape.place)
                || self.limit_on(shape.leaf, id, pass.now).is_some()
            {
                continue;
            }
            let waits = |queued| shapes::waits(&self.jobs, id, false, queued);
            let entries = shape.queue.first(ENTRIES_MAX, waits);
            let is_free = |entry: &Entry| !self.earmarks.is_for(entry.group) && !self.rests(entry.group);
            found.extend(entries.into_iter().filter(is_free).map(|entry| Wanting { entry, shape: id }));
        }
        found
    }

    /// One group gives so much to another as one member of that needs, if they are too far apart for that.
    fn give(
        &mut self,
        wanting: Wanting,
        giver: GroupId,
        slots: &[Slot],
        pass: &mut Pass,
        out: &mut Outbox,
    ) -> Option<()> {
        let Wanting { entry, shape } = wanting;
        let spec = self.role_spec(entry.group, entry.role);
        let leaf = self.shapes.get(shape).leaf;
        let scope = self.shapes.get(shape).scopes[0];
        let has_room = self.nodes.first_fit(scope, &spec).is_some();
        if has_room && self.short_of_headroom(&spec.request).is_none() {
            // What is ending anyway makes room for it.
            return None;
        }
        let (node, victims) = self.who_gives(&spec, slots)?;
        if has_room && !self.keeps_headroom(&spec.request, &victims) {
            return None;
        }
        let span = self.span_of(&BTreeMap::from([(giver, Vec::new())])).max(self.freeze_of(entry.group));
        let changes = self.supposed_costs();
        let had = |group: GroupId| self.had(group.job(), pass.now, span, &changes);
        let (has_most, has_least) = (had(giver), had(entry.group));
        let (most, least) = (has_most.by_then(), has_least.by_then());
        let given: u128 = victims.iter().map(|slot| self.step_of(self.task_in(*slot), pass.now, span)).sum();
        let task = TaskId { group: entry.group, role: entry.role, index: 0 };
        let taken = self.step_of(task, pass.now, span);
        let band = given.saturating_add(taken);
        let is_far = has_most.so_far > has_least.so_far && most.saturating_sub(least) > band;
        if !is_far {
            return None;
        }
        let before = (0, most, 0);
        let after = (0, most.saturating_sub(given).max(least.saturating_add(taken)), 0);
        if !lowers(before, after) {
            return None;
        }
        if !self.may_stop(victims.len() as u64, pass) {
            return None;
        }
        let name = StopCause::Evenness(entry.group);
        let places = vec![(entry.role, node)];
        // Where there is room that is to stay free, nobody sees why they go by looking for room.
        let evidence = (self.witnessed && !has_room).then(|| self.evidence(entry.group, &places, &victims));
        for slot in &victims {
            let task = self.task_in(*slot);
            self.charge(pass.now, self.leaf_of(task.job()), task, -1);
        }
        let beneficiary = Beneficiary { entry, atomic: false, leaf, shape };
        self.note_promised(&beneficiary, &places, pass);
        let units = victims.iter().map(|slot| vec![self.task_in(*slot)]).collect();
        let places_now = places.clone();
        let record =
            StopRecord { cause: name, atomic: false, places: places_now, units, before, after, evidence };
        self.stop_records.push(record);
        self.earmark(&beneficiary, name, places, &victims, pass);
        self.send_away(&victims, name, out);
        for group in [giver, entry.group] {
            let rest = self.freeze_of(group).max(REST_MIN);
            self.rest(pass.now, group, rest);
        }
        pass.stopped += 1;
        Some(())
    }

    /// The node on which a task finds room once some of these have gone, and which of them.
    fn who_gives(&self, spec: &crate::spec::ShapeSpec, slots: &[Slot]) -> Option<(NodeId, Vec<Slot>)> {
        let mut left: BTreeMap<u16, u32> = BTreeMap::new();
        let mut nodes: BTreeMap<NodeId, (NodeEntry, Vec<Slot>)> = BTreeMap::new();
        for slot in slots {
            let task = self.task_in(*slot);
            let above = left.entry(task.role).or_insert_with(|| self.above_minimum(task.group, task.role));
            let Some(fewer) = above.checked_sub(1) else { continue };
            *above = fewer;
            let (node, held) = self.held_by(*slot);
            let known = || (self.nodes.get(node).expect("it is there").clone(), Vec::new());
            let (entry, gone) = nodes.entry(node).or_insert_with(known);
            entry.free += &held.request;
            entry.company.leave(&held);
            gone.push(*slot);
            if !entry.has_room_for(spec) || !spec.rules.allow(&entry.view.facts) {
                continue;
            }
            let (mut entry, mut gone) = nodes.remove(&node).expect("just seen");
            // Whoever is not needed stays.
            for index in (0..gone.len()).rev() {
                let (_, held) = self.held_by(gone[index]);
                entry.free -= &held.request;
                entry.company.join(&held);
                if entry.has_room_for(spec) {
                    gone.remove(index);
                } else {
                    entry.free += &held.request;
                    entry.company.leave(&held);
                }
            }
            return (!gone.is_empty()).then_some((node, gone));
        }
        None
    }

    /// Whether as much stays free as before if these go and a task of this request comes.
    fn keeps_headroom(&self, request: &Resources, victims: &[Slot]) -> bool {
        let mut freed = Resources::new();
        victims.iter().for_each(|slot| freed += &self.held_by(*slot).1.request);
        request.fits_in(&freed)
    }
}

impl Cause for Minimum {
    fn value(&self, scheduler: &Scheduler, wish: &Wish, leaf: LeafId) -> Option<LaneValue> {
        let is_above = scheduler.shares.leaf(leaf).level < wish.level;
        (!is_above).then(|| self.floors.value(scheduler, leaf))
    }

    fn step(&self, scheduler: &Scheduler, _: LeafId, slot: Slot) -> i128 {
        self.floors.step(scheduler, slot)
    }

    fn spares_until(&self, _: &Scheduler, _: Slot) -> Option<Time> {
        None
    }

    /// How much waits that is no growth.
    fn measure(&self, scheduler: &Scheduler, wish: &Wish, pass: &Pass) -> Measure {
        (0, scheduler.waiting_above(wish.level, pass), 0)
    }

    fn name(&self, group: GroupId) -> StopCause {
        StopCause::Minimum(group)
    }

    fn candidates(&self) -> Option<&Candidates> {
        Some(&self.candidates)
    }

    /// A higher band need not wait until others have rested.
    fn wakes(&self, scheduler: &Scheduler, slot: Slot) -> bool {
        scheduler.shares.leaf(scheduler.leaf_of(scheduler.task_in(slot).job())).level > self.level
    }

    fn takes_whole(&self) -> bool {
        false
    }
}
