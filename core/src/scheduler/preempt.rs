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
use crate::shares::bucket::Bucket;
use crate::spec::ShapeSpec;
use crate::time::Time;

use super::Scheduler;
use super::account::Account;
use super::leaf::LeafId;
use super::order::Order;
use super::outlook::Supposition;
use super::search::{Beneficiary, Places};
use super::shapes::{Place, ShapeId};
use super::stop_records::StopRecord;
use super::victims::{Candidates, LaneValue, Unit};

/// So many who wait are helped in one turn; the others come in the next.
pub(super) const BENEFICIARIES_MAX: usize = 256;

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
    pub(super) ending: BTreeMap<Slot, (NodeId, Arc<ShapeSpec>)>,
    /// Room that beneficiaries will find without anybody's help.
    pub(super) found: Vec<(NodeId, Arc<ShapeSpec>)>,
    accounts: (Vec<Account>, Vec<Account>),
    /// Tasks that are seen to, by role.
    pub(super) promised: BTreeMap<(GroupId, u16), u32>,
    pub(super) helped: usize,
    pub(super) stopped: usize,
    /// When there is more to be done.
    pub(super) again: Option<Time>,
    /// Nobody is stopped: somebody wants to know who would be.
    pub(super) supposed: Option<Supposition>,
}

impl Pass {
    fn is_over(&self) -> bool {
        self.helped >= BENEFICIARIES_MAX || self.supposed.as_ref().is_some_and(Supposition::is_over)
    }
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

/// What must not rise with a stop, what must fall, and what must fall where that stays the same.
pub type Measure = (u128, u128, u128);

/// Whether a stop has lowered the measure.
pub(super) fn lowers(before: Measure, after: Measure) -> bool {
    after.0 <= before.0 && (after.1, after.2) < (before.1, before.2)
}

/// What a cause says to a search.
pub(super) trait Cause {
    /// What taking from a leaf is worth, and of which account it is; nothing if it is not to be touched.
    fn value(&self, scheduler: &Scheduler, wish: &Wish, leaf: LeafId) -> Option<LaneValue>;
    /// What one attempt of a leaf is worth.
    fn step(&self, scheduler: &Scheduler, leaf: LeafId, slot: Slot) -> i128;
    /// Whether the attempt may go for this cause, or from when on.
    fn spares_until(&self, scheduler: &Scheduler, slot: Slot) -> Option<Time>;
    /// What every stop lowers, as the books stand.
    fn measure(&self, scheduler: &Scheduler, wish: &Wish, pass: &Pass) -> Measure;
    fn name(&self, group: GroupId) -> StopCause;
    /// Who may go for this cause, where these are not all who may go at all.
    fn candidates(&self) -> Option<&Candidates> {
        None
    }
    /// Whether the attempt may go although the size of its group rests.
    fn wakes(&self, _: &Scheduler, _: Slot) -> bool {
        false
    }
    /// Whether atomic groups may go whole.
    fn takes_whole(&self) -> bool {
        true
    }
}

/// What has to become less by a stop.
type MeasureOf<'a> = dyn Fn(&Scheduler, &Pass) -> Measure + 'a;

impl Scheduler {
    /// Takes away what may be taken for those who cannot start otherwise.
    pub(super) fn disrupt(&mut self, now: Time, out: &mut Outbox) {
        if !self.settings.rebalance.any() {
            return;
        }
        if self.ahead {
            return self.see_to_higher(now, out);
        }
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        let due = self.unsettled || is_due(self.retry_at);
        if !(due || is_due(self.elastic.even_at)) || self.has_more_to_plan() || self.is_starved() {
            return;
        }
        self.elastic.even_at = None;
        if !due {
            return self.even_out_alone(now, out);
        }
        (self.unsettled, self.retry_at) = (false, None);
        let wishes = self.wishes(now);
        if wishes.is_empty() && !self.any_may_grow() {
            return;
        }
        let mut pass = self.begin_pass(now);
        self.clear_claims(&mut pass, out);
        self.help_by_cause(&wishes, &mut pass, out);
        self.even_out(&mut pass, out);
        self.end_pass(&mut pass);
        self.freeze_resized(now);
        let later = pass.candidates.next.into_iter().chain(pass.again).min();
        self.retry_at = later.filter(|at| *at > now);
        self.unsettled |= pass.helped >= BENEFICIARIES_MAX;
    }

    /// Whether something comes in after which somebody may have to give way.
    pub(super) fn note_unsettled(&mut self, batch: &[SchedulerMessage]) {
        let means_nothing = |message: &SchedulerMessage| {
            use SchedulerMessage::{Audit, Committed, Explain, ExplainOn, GateClock, ListSizes, ListWaiting};
            matches!(
                message,
                Audit(_)
                    | Committed { .. }
                    | Explain { .. }
                    | ExplainOn { .. }
                    | GateClock { .. }
                    | ListSizes { .. }
                    | ListWaiting { .. }
            )
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

    pub(super) fn wishes(&self, now: Time) -> Vec<Wish> {
        let waiting = self.shapes.iter().filter(|(_, shape)| shape.place == Place::Indexed);
        let waiting = waiting.filter(|(id, shape)| {
            shape.window.is_none()
                && !self.is_surplus(shape.leaf)
                && self.limit_on(shape.leaf, *id, now).is_none()
        });
        // What is raised takes no more from others than before: it wishes from the level of its own.
        let raised = self.raised_places();
        let mut wishes: Vec<Wish> = Vec::new();
        for (id, shape) in waiting {
            let leaf = self.shares.leaf(shape.leaf);
            let (class, queue) = (leaf.class, leaf.queue);
            let others = raised.range((shape.leaf, 0)..=(shape.leaf, u16::MAX)).map(|(_, own)| *own);
            let wish = |level| Wish { shape: id, leaf: shape.leaf, level, class, queue, order: shape.order };
            wishes.extend(std::iter::once(leaf.level).chain(others).map(wish));
        }
        wishes.sort_unstable_by_key(|wish| (wish.level, wish.order, wish.shape));
        wishes
    }

    /// Supposes that everything has ended that is about to, and that everybody runs for whom something is
    /// kept.
    pub(super) fn begin_pass(&mut self, now: Time) -> Pass {
        let accounts = self.shares.accounts();
        self.suppose_books(now);
        let unassigned = self.live.stopping().filter(|live| !self.earmarks.waits_for(live.attempt.slot));
        let ending: BTreeMap<Slot, (NodeId, Arc<ShapeSpec>)> = unassigned
            .filter_map(|live| {
                Some((live.attempt.slot, (live.node()?, Arc::clone(self.spec_of(live.attempt.task)))))
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
            supposed: None,
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

    pub(super) fn end_pass(&mut self, pass: &mut Pass) {
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
        if pass.is_over() {
            pass.supposed.iter_mut().for_each(Supposition::note_break);
            return Help::Enough;
        }
        if self.limit_on(wish.leaf, wish.shape, pass.now).is_some() {
            return Help::None;
        }
        let Some(beneficiary) = self.next_beneficiary(wish, pass) else { return Help::None };
        // What is claimed for it is room for it.
        let group = beneficiary.entry.group;
        self.claims.of(group).into_iter().for_each(|index| self.lift_claim(index));
        let help = self.help_one(wish, &beneficiary, cause, pass, out);
        self.claims.of(group).into_iter().for_each(|index| self.hold_claim(index));
        help
    }

    fn help_one(
        &mut self,
        wish: &Wish,
        beneficiary: &Beneficiary,
        cause: &dyn Cause,
        pass: &mut Pass,
        out: &mut Outbox,
    ) -> Help {
        if let Some(places) = self.places_for(beneficiary) {
            // What is ending anyway makes room for it.
            self.note_promised(beneficiary, &places, pass);
            for (role, node) in places {
                let spec = self.role_spec(beneficiary.entry.group, role);
                self.nodes.take(node, &spec);
                pass.found.push((node, spec));
            }
            if let Some(supposed) = &mut pass.supposed {
                supposed.note_room(beneficiary.entry.group);
            }
            return Help::Given;
        }
        let Some(found) = self.search(wish, beneficiary, cause, pass) else { return Help::None };
        let measure = |scheduler: &Scheduler, pass: &Pass| cause.measure(scheduler, wish, pass);
        let name = cause.name(beneficiary.entry.group);
        match self.take_away(beneficiary, (name, &measure), found, pass, out) {
            true => Help::Given,
            false => Help::None,
        }
    }

    /// Has these go so that the beneficiary starts at these places, unless nothing gets better by it or too many
    /// were stopped of late.
    pub(super) fn take_away(
        &mut self,
        beneficiary: &Beneficiary,
        (name, measure): (StopCause, &MeasureOf<'_>),
        (units, places): (Vec<Unit>, Places),
        pass: &mut Pass,
        out: &mut Outbox,
    ) -> bool {
        let before = measure(self, pass);
        let slots: Vec<Slot> = units.iter().flatten().copied().collect();
        let tasks: Vec<TaskId> = slots.iter().map(|slot| self.task_in(*slot)).collect();
        for task in &tasks {
            self.charge(pass.now, self.leaf_of(task.job()), *task, -1);
        }
        let group = beneficiary.entry.group;
        let is_asked = pass.supposed.is_some();
        let evidence = (self.witnessed && !is_asked).then(|| self.evidence(group, &places, &slots));
        self.note_promised(beneficiary, &places, pass);
        let after = measure(self, pass);
        let helps = lowers(before, after) || mutation::active(Mutation::StopForNothing);
        if !helps || !(is_asked || self.may_stop(tasks.len() as u64, pass)) {
            self.note_not_promised(beneficiary, &places, pass);
            for task in &tasks {
                self.charge(pass.now, self.leaf_of(task.job()), *task, 1);
            }
            return false;
        }
        if is_asked {
            self.suppose(beneficiary, name, &places, &slots, pass);
            return true;
        }
        let units = units.iter().map(|unit| unit.iter().map(|slot| self.task_in(*slot)).collect());
        let (units, atomic) = (units.collect(), beneficiary.atomic);
        let record =
            StopRecord { cause: name, atomic, places: places.clone(), units, before, after, evidence };
        self.stop_records.push(record);
        self.earmark(beneficiary, name, places, &slots, pass);
        self.send_away(&slots, name, out);
        pass.stopped += 1;
        true
    }

    /// Stops these for somebody else's sake. Elastic groups that go on without them rest from now on.
    pub(super) fn send_away(&mut self, slots: &[Slot], cause: StopCause, out: &mut Outbox) {
        for slot in slots {
            self.count_stop(*slot);
            self.stop(*slot, cause, out);
        }
        let groups: BTreeSet<GroupId> = slots.iter().map(|slot| self.task_in(*slot).group).collect();
        for id in groups {
            if self.goes_on(id) {
                self.note_resized(self.now, id);
            }
        }
    }

    /// Whether so many may be stopped now; if time alone keeps them, the pass comes again.
    pub(super) fn may_stop(&mut self, tasks: u64, pass: &mut Pass) -> bool {
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

    /// From when on so many could be stopped at the rate that is allowed, once others have been; `None` if there
    /// never is.
    pub(super) fn stoppable_from(&self, now: Time, others: u64, tasks: u64) -> Option<Time> {
        let Some(rate) = self.settings.rebalance.rate else { return Some(now) };
        let mut bucket = self.stop_bucket.unwrap_or_else(|| Bucket::new(rate, now));
        if bucket.rate() != rate {
            bucket.set_rate(now, rate);
        }
        bucket.charge(now, others);
        Some(bucket.next_time_for(now, tasks)).filter(|next| *next != Time::NEVER)
    }

    pub(super) fn note_promised(&mut self, beneficiary: &Beneficiary, places: &Places, pass: &mut Pass) {
        let group = beneficiary.entry.group;
        pass.helped += 1;
        for (role, _) in places {
            *pass.promised.entry((group, *role)).or_default() += 1;
            let task = TaskId { group, role: *role, index: 0 };
            self.charge(pass.now, beneficiary.leaf, task, 1);
        }
    }

    pub(super) fn note_not_promised(&mut self, beneficiary: &Beneficiary, places: &Places, pass: &mut Pass) {
        let group = beneficiary.entry.group;
        pass.helped -= 1;
        for (role, _) in places {
            *pass.promised.get_mut(&(group, *role)).expect("just promised") -= 1;
            let task = TaskId { group, role: *role, index: 0 };
            self.charge(pass.now, beneficiary.leaf, task, -1);
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
}
