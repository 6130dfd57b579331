//! Elastic groups: atomic ones that vary in size. They start with their minima, in one commit like any atomic
//! group, and what is above that is their *surplus*: it waits role by role, one task at a time, in leaves of
//! its own that are served after everything else of the turn.
//!
//! A group grows only once its start is known to have been booked, so no member ever runs without the minima.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::id::{GroupId, JobId};
use crate::messages::{Outbox, RoleArrival};
use crate::spec::Start;
use crate::time::{Span, Time};

use super::groups::{GroupView, RoleView};
use super::queue::Entry;
use super::shapes::{Place, ShapeId};
use super::{Scheduler, gangs, groups};

/// Where an elastic group is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// It waits for its minima.
    Waiting,
    /// Its minima are part of this plan, of which the answer has not come.
    Starting {
        plan: u64,
    },
    Running,
    /// It fell below a minimum: JobState returns its members once all have ended.
    Broken,
}

/// What an elastic group has beyond others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct ElasticGroup {
    pub(super) phase: Phase,
    /// How long its size rests after a change; as the settings say unless given.
    freeze: Option<Span>,
    /// Its size rests until then.
    pub(super) thaws: Option<Time>,
}

/// What a role of an elastic group has beyond others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct ElasticRole {
    pub(super) min: u32,
    pub(super) max: u32,
    initial: u32,
    /// Members with an attempt, and those of them that are being stopped.
    pub(super) live: u32,
    pub(super) stopping: u32,
    /// Members that ended unfinished, minus those that were returned; the two come over different links.
    away: i32,
    /// It grows no more.
    pub(super) closed: bool,
}

/// The books of elastic groups.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Elastic {
    /// Groups whose minima are part of a plan that has not been answered.
    starting: BTreeMap<u64, Vec<GroupId>>,
    /// Groups whose size rests, by the time at which that ends.
    #[serde(skip)]
    thaws: BTreeSet<(Time, GroupId)>,
    /// Groups whose size was changed in this turn.
    pub(super) resized: Vec<GroupId>,
    /// Shapes that would grow into what is to stay free.
    pub(super) aside: BTreeSet<ShapeId>,
    /// When groups are compared again that have had more and less.
    pub(super) even_at: Option<Time>,
}

impl ElasticGroup {
    /// For a group that may vary in size.
    pub(super) fn for_arrival(
        start: Start,
        roles: &[RoleArrival],
        freeze: Option<Span>,
    ) -> Option<Box<ElasticGroup>> {
        let is_elastic = start == Start::Atomic && roles.iter().any(|role| role.min < role.tasks);
        is_elastic.then(|| Box::new(ElasticGroup { phase: Phase::Waiting, freeze, thaws: None }))
    }
}

impl ElasticRole {
    pub(super) fn new(role: &RoleArrival) -> ElasticRole {
        let (min, max, initial) = (role.min, role.tasks, role.initial);
        ElasticRole { min, max, initial, live: 0, stopping: 0, away: 0, closed: false }
    }

    pub(super) fn set_bounds(&mut self, min: u32, max: u32) {
        (self.min, self.max) = (min, max);
    }

    pub(super) fn count_away(&mut self, change: i32) {
        self.away += change;
    }
}

impl RoleView {
    /// Members that have ended for good.
    fn done(&self, elastic: &ElasticRole) -> u32 {
        let others = i64::from(self.waiting()) + i64::from(elastic.live) + i64::from(elastic.away);
        (i64::from(self.tasks()) - others).max(0) as u32
    }

    /// How many start together: everything that waits, or what an elastic role lacks of its minimum.
    pub(super) fn needed(&self) -> u32 {
        match &self.elastic {
            None => self.waiting(),
            Some(elastic) => elastic.min.saturating_sub(self.done(elastic)),
        }
    }

    /// With how many it starts if there is room for them.
    pub(super) fn wished(&self) -> u32 {
        let Some(elastic) = self.elastic.as_ref().filter(|elastic| !elastic.closed) else {
            return self.needed();
        };
        let wished = elastic.initial.min(elastic.max).saturating_sub(self.done(elastic));
        wished.min(self.waiting()).max(self.needed())
    }

    /// How many members it may still grow by.
    pub(super) fn surplus(&self) -> u32 {
        let Some(elastic) = self.elastic.as_ref().filter(|elastic| !elastic.closed) else { return 0 };
        elastic.max.saturating_sub(self.tasks() - self.waiting()).min(self.waiting())
    }

    /// Members that run and are not being stopped, and those that are done.
    pub(super) fn steady(&self) -> u32 {
        let elastic = self.elastic.as_ref();
        elastic.map_or(0, |elastic| elastic.live - elastic.stopping + self.done(elastic))
    }
}

impl GroupView {
    pub(super) fn phase(&self) -> Option<Phase> {
        self.elastic.as_ref().map(|elastic| elastic.phase)
    }

    /// If enough of an elastic group runs already when it arrives, it only has to grow.
    pub(super) fn runs_already(&mut self) {
        let runs = self.roles.iter().all(|role| {
            role.elastic.as_ref().is_some_and(|elastic| role.tasks() - role.waiting() >= elastic.min)
        });
        if let Some(elastic) = self.elastic.as_mut().filter(|_| runs) {
            elastic.phase = Phase::Running;
        }
    }

    /// How many tasks start together when it starts.
    pub(super) fn needed(&self) -> u64 {
        self.roles.iter().map(|role| u64::from(role.needed())).sum()
    }

    /// Whether it can be queued as a whole: something is needed, and nothing that is needed is still away.
    pub(super) fn waits_as_whole(&self) -> bool {
        let is_there = self.roles.iter().all(|role| role.needed() <= role.waiting());
        // As long as the ends of members are on their way nobody knows what of its minima is done already.
        let waits = self.phase().is_none_or(|phase| phase == Phase::Waiting && self.live_count == 0);
        self.start == Start::Atomic && waits && is_there && self.needed() > 0 && !self.withdrawn
    }

    /// How many members of a role are to wait as surplus.
    pub(super) fn surplus_of(&self, role: &RoleView) -> u32 {
        let elastic = self
            .elastic
            .as_ref()
            .filter(|elastic| elastic.phase == Phase::Running && elastic.thaws.is_none() && !self.withdrawn);
        elastic.map_or(0, |_| role.surplus())
    }
}

impl Scheduler {
    /// The minima of an elastic group are part of the plan of this turn.
    pub(super) fn starts_with_plan(&mut self, id: GroupId) {
        let plan = self.last_plan + 1;
        let group = groups::find_mut(&mut self.jobs, id).expect("the caller has seen the group");
        if let Some(elastic) = &mut group.elastic {
            elastic.phase = Phase::Starting { plan };
            self.elastic.starting.entry(plan).or_default().push(id);
        }
    }

    /// A plan was dealt with: groups whose minima were booked with it may grow.
    pub(super) fn plan_is_booked(&mut self, now: Time, plan: u64) {
        if self.elastic.starting.is_empty() {
            return;
        }
        for id in self.elastic.starting.remove(&plan).unwrap_or_default() {
            let Some(group) = groups::find_mut(&mut self.jobs, id) else { continue };
            let Some(elastic) = &mut group.elastic else { continue };
            if elastic.phase == (Phase::Starting { plan }) {
                elastic.phase = Phase::Running;
                self.resettle(now, id);
            }
        }
    }

    /// The minima of an elastic group were refused.
    pub(super) fn start_is_refused(&mut self, id: GroupId) {
        let group = groups::find_mut(&mut self.jobs, id).expect("the caller has seen the group");
        if let Some(elastic) = &mut group.elastic
            && matches!(elastic.phase, Phase::Starting { .. })
        {
            elastic.phase = Phase::Waiting;
        }
    }

    /// Everything of a broken elastic group has ended: it waits as a whole.
    pub(super) fn mend(&mut self, now: Time, id: GroupId) {
        let Some(group) = groups::find_mut(&mut self.jobs, id) else { return };
        if let Some(elastic) = &mut group.elastic
            && elastic.phase == Phase::Broken
        {
            elastic.phase = Phase::Waiting;
            let order = self.order_of(now, Entry { group: id, role: 0 });
            let group = groups::find_mut(&mut self.jobs, id).expect("just seen");
            group.roles[0].order = order;
            self.resettle(now, id);
        }
    }

    /// What JobState hears when everything that was planned before has been dealt with.
    pub(super) fn break_elastic(&mut self, now: Time, id: GroupId, out: &mut Outbox) {
        let Some(group) = groups::find_mut(&mut self.jobs, id) else { return };
        let Some(elastic) = &mut group.elastic else { return };
        elastic.phase = Phase::Broken;
        if let Some(at) = elastic.thaws.take() {
            self.elastic.thaws.remove(&(at, id));
        }
        self.resettle(now, id);
        out.fence(id);
    }

    /// A role grows no more.
    pub(super) fn close_role(&mut self, now: Time, entry: Entry, out: &mut Outbox) {
        if let Some(group) = groups::find_mut(&mut self.jobs, entry.group) {
            group.roles[usize::from(entry.role)].stop_growing();
            self.resettle(now, entry.group);
        }
        out.fence(entry.group);
    }

    /// A role is over: what of it never ran is not needed.
    pub(super) fn discard_role(&mut self, now: Time, entry: Entry) {
        let Some(group) = groups::find_mut(&mut self.jobs, entry.group) else { return };
        let role = &mut group.roles[usize::from(entry.role)];
        role.stop_growing();
        role.abandon_waiting();
        self.resettle(now, entry.group);
    }

    /// Puts what waits of an elastic group where it belongs after something of it changed.
    pub(super) fn resettle(&mut self, now: Time, id: GroupId) {
        let Some(group) = groups::find(&self.jobs, id).filter(|group| group.elastic.is_some()) else {
            return;
        };
        let wanted = group.waits_as_whole().then(|| group.needed());
        let queued = group.gang.map(|gang| gangs::gang_size(&self.shapes.get(gang).key));
        // The sizes of the roles may be others although the sum is the same.
        if queued.is_some() && (wanted != queued || !self.gang_is_right(group)) {
            self.dequeue_gang(id);
        }
        let group = groups::find(&self.jobs, id).expect("just seen");
        if wanted.is_some() && group.gang.is_none() {
            let shape = self.enqueue_gang(id);
            self.arrived(now, shape);
        }
        let roles = groups::find(&self.jobs, id).map_or(0, |group| group.roles.len());
        for role in 0..roles {
            self.resettle_surplus(now, Entry { group: id, role: role as u16 });
        }
    }

    fn resettle_surplus(&mut self, now: Time, entry: Entry) {
        let group = groups::find(&self.jobs, entry.group).expect("the caller has seen the group");
        let role = &group.roles[usize::from(entry.role)];
        let (shape, queued, before) = (role.shape, role.queued, role.order);
        let wanted = group.surplus_of(role);
        if wanted == 0 && queued == 0 {
            return;
        }
        if wanted > queued {
            self.compare_later(now);
        }
        let order = if wanted > 0 { self.order_of(now, entry) } else { before };
        let group = groups::find_mut(&mut self.jobs, entry.group).expect("just seen");
        let role = &mut group.roles[usize::from(entry.role)];
        (role.queued, role.order) = (wanted, order);
        if wanted < queued {
            self.take_waiting(shape, u64::from(queued - wanted));
        }
        if wanted > queued || (wanted > 0 && order != before) {
            self.add_waiting(shape, (order, entry), u64::from(wanted.saturating_sub(queued)));
        }
        match wanted > queued {
            // Nothing is collected: whoever grows has its place already.
            true => self.shapes.move_to(shape, Place::Open, &self.jobs),
            false => self.shapes.settle(shape, &self.jobs),
        }
    }

    /// A task was placed: if its group is elastic, it has grown.
    pub(super) fn has_grown(&mut self, now: Time, id: GroupId) {
        if groups::find(&self.jobs, id).is_some_and(|group| group.elastic.is_some()) {
            self.note_resized(now, id);
        }
    }

    /// The size of a group was changed: at the end of the turn it begins to rest.
    pub(super) fn note_resized(&mut self, now: Time, id: GroupId) {
        if self.elastic.resized.last() != Some(&id) {
            self.elastic.resized.push(id);
        }
        self.resettle(now, id);
    }

    /// Ends a turn: groups whose size was changed in it rest from now on.
    pub(super) fn freeze_resized(&mut self, now: Time) {
        for id in std::mem::take(&mut self.elastic.resized) {
            let default = self.settings.elastic.freeze;
            let Some(group) = groups::find_mut(&mut self.jobs, id) else { continue };
            let Some(elastic) = &mut group.elastic else { continue };
            let freeze = elastic.freeze.unwrap_or(default);
            if elastic.phase == Phase::Running && !freeze.is_zero() {
                self.rest(now, id, freeze);
            }
        }
    }

    /// The size of a group rests for so long.
    pub(super) fn rest(&mut self, now: Time, id: GroupId, span: Span) {
        let group = groups::find_mut(&mut self.jobs, id).expect("the caller has seen the group");
        let Some(elastic) = &mut group.elastic else { return };
        let thaws = elastic.thaws.map_or(now + span, |before| before.max(now + span));
        if let Some(before) = elastic.thaws.replace(thaws) {
            self.elastic.thaws.remove(&(before, id));
        }
        self.elastic.thaws.insert((thaws, id));
        self.resettle(now, id);
    }

    /// Whether an elastic group has its minima and is not about to end.
    pub(super) fn goes_on(&self, id: GroupId) -> bool {
        let group = self.group(id).filter(|group| group.phase() == Some(Phase::Running));
        group.is_some_and(|group| {
            let mut roles = group.roles.iter();
            roles.all(|role| role.elastic.as_ref().is_none_or(|elastic| role.steady() >= elastic.min))
        })
    }

    /// How long the size of a group rests after it was changed.
    pub(super) fn freeze_of(&self, id: GroupId) -> Span {
        let own = self.group(id).and_then(|group| group.elastic.as_ref()?.freeze);
        own.unwrap_or(self.settings.elastic.freeze)
    }

    /// How many members a role has above its minimum that go on.
    pub(super) fn above_minimum(&self, id: GroupId, role: u16) -> u32 {
        let Some(group) = self.group(id) else { return 0 };
        let role = &group.roles[usize::from(role)];
        role.elastic.as_ref().map_or(0, |elastic| role.steady().saturating_sub(elastic.min))
    }

    /// Groups that have rested long enough may grow again.
    pub(super) fn thaw_due(&mut self, now: Time) {
        while let Some((at, id)) = self.elastic.thaws.first().copied().filter(|(at, _)| *at <= now) {
            self.elastic.thaws.remove(&(at, id));
            let group = groups::find_mut(&mut self.jobs, id);
            if let Some(elastic) = group.and_then(|group| group.elastic.as_mut()) {
                elastic.thaws = None;
                self.resettle(now, id);
            }
        }
    }

    pub(super) fn next_thaw(&self) -> Option<Time> {
        self.elastic.thaws.first().map(|(at, _)| *at)
    }

    /// Groups of which the size rests, and until when.
    pub fn resting(&self) -> BTreeMap<GroupId, Time> {
        self.elastic.thaws.iter().map(|(at, id)| (*id, *at)).collect()
    }

    /// At which level of strict bands a job is.
    pub fn level_of_job(&self, job: JobId) -> Option<u16> {
        self.jobs.get(job.0).map(|job| self.shares.leaf(job.leaf).level)
    }

    /// Whether the size of a group rests.
    pub fn rests(&self, id: GroupId) -> bool {
        self.group(id).is_some_and(|group| group.elastic.as_ref().is_some_and(|one| one.thaws.is_some()))
    }

    /// A group goes: it rests no more.
    pub(super) fn forget_elastic(&mut self, id: GroupId) {
        let group = groups::find(&self.jobs, id);
        if let Some(at) = group.and_then(|group| group.elastic.as_ref()?.thaws) {
            self.elastic.thaws.remove(&(at, id));
        }
    }

    pub(super) fn rebuild_elastic(&mut self) {
        self.elastic.thaws.clear();
        for (job, view) in self.jobs.iter() {
            for (index, group) in view.groups.iter().enumerate() {
                let thaws = group.as_ref().and_then(|group| group.elastic.as_ref()?.thaws);
                let id = GroupId::new(crate::id::JobId(job), index as u16);
                self.elastic.thaws.extend(thaws.map(|at| (at, id)));
            }
        }
    }
}
