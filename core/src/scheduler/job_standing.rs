//! How jobs stand: in which leaf their work waits, and where in it.

use std::sync::Arc;

use crate::id::{GroupId, JobId, Slot, TaskId};
use crate::resources::Resources;
use crate::settings::{COST_SCALE, JobKey, ShareSettings};
use crate::shares::ratio::Weight;
use crate::spec::{Standing, Start};
use crate::time::{Span, Time};

use super::Scheduler;
use super::account::{Price, RunClock};
use super::elastic::Phase;
use super::gangs::gang_size;
use super::groups::{self, JobClock, JobView};
use super::growth::{Size, surplus_order};
use super::leaf::LeafId;
use super::limits::Limits;
use super::order::Order;
use super::queue::{Entry, Queued};
use super::shapes::{Place, ShapeId, ShapeKey, Shapes};
use super::shares::Shares;

/// A length of time as orders carry it.
pub(super) fn milliseconds(span: Span) -> u32 {
    u32::try_from(span.0 / 1_000).unwrap_or(u32::MAX)
}

/// A number that is the smaller the larger the priority is.
fn urgency(priority: i32) -> u32 {
    !(priority as u32 ^ 1 << 31)
}

/// When a job is to be finished; never, if nobody says so.
fn finish_by(job: &JobView) -> Time {
    job.standing.as_deref().and_then(|(_, standing)| standing.finish_by.get()).unwrap_or(Time::NEVER)
}

/// A moment as orders carry it that have room for no more.
fn tenths(time: Time) -> u32 {
    u32::try_from(time.0 / 100_000).unwrap_or(u32::MAX)
}

/// More running tasks than this, and more turns, count as this.
const RUNNING_MAX: u128 = (1 << 20) - 1;
const SERVED_MAX: u128 = (1 << 44) - 1;

/// Whose turn it is in a round of jobs: the fewest running tasks, then who was served longest ago.
fn turn(job: &JobView) -> u128 {
    u128::from(job.running).min(RUNNING_MAX) << 44 | u128::from(job.served).min(SERVED_MAX)
}

/// What the place of a job in its line depends on beside the job itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct InLine {
    /// By how many strict bands it is raised.
    pub(super) raised: u16,
    /// Its class gets what nobody else can use: there the oldest job goes first, and not each in turn.
    pub(super) last: bool,
}

/// The place of an entry among all that wait in its leaf. By run time each job is taken to start a task of the
/// same cost, so that the heavier goes first, and among equals the larger.
pub(super) fn order(
    settings: &ShareSettings,
    (now, ahead): (Time, Span),
    (job, standing): (&JobView, InLine),
    entry: Entry,
    expected: u32,
    size: impl FnOnce() -> Size,
) -> Order {
    let InLine { raised, last } = standing;
    let urgency = u128::from(urgency(job.priority()));
    match settings.job_key {
        JobKey::Priority => {
            let band = settings.band(job.band());
            let level = settings.level(band).saturating_sub(usize::from(raised));
            let band = if raised > 0 { settings.band_of_level(level) } else { band };
            let band = band.map_or(0, |band| band as u128);
            Order::by_arrival(band << 96 | urgency << 64 | u128::from(finish_by(job).0), entry)
        }
        JobKey::LeastRunning => {
            let rank =
                urgency << 96 | u128::from(tenths(finish_by(job))) << 64 | if last { 0 } else { turn(job) };
            // The longest task first.
            let last =
                u64::from(!expected) << 32 | (entry.group.index() as u64) << 16 | u64::from(entry.role);
            Order::new(rank, entry.group.job().0, last)
        }
        JobKey::RunTime => {
            let clock = job.clock.as_ref();
            let ahead = clock.map(|clock| clock.clock.ahead(now, clock.cost, COST_SCALE.into(), ahead));
            let parts = ahead.unwrap_or_default().parts();
            let level = settings.level(settings.band(job.band())).saturating_sub(usize::from(raised));
            // Who shares with other bands by weight has no other claim.
            let rank = match settings.band_of_level(level) {
                Some(_) => u128::from(tenths(finish_by(job))) << 96 | parts.min((1 << 96) - 1),
                None => parts,
            };
            size().order(rank, entry)
        }
    }
}

impl Scheduler {
    /// Enters a job with its first group.
    pub(super) fn enter_job(&mut self, now: Time, id: JobId, requestor: Arc<str>, standing: Standing) {
        if self.jobs.get(id.0).is_some() {
            return;
        }
        let leaf = self.leaf_for(&requestor, &standing);
        let mut job = JobView::new(leaf, requestor, standing);
        if self.settings.shares.job_key == JobKey::RunTime {
            job.clock = Some(self.new_clock(now, leaf, job.band()));
        }
        self.jobs.insert(id.0, job);
    }

    /// A newcomer begins where the least is of those that want to run.
    pub(super) fn new_clock(&mut self, now: Time, leaf: LeafId, band: &str) -> Box<JobClock> {
        self.raise_floor(now, leaf);
        let mut clock = RunClock::new(self.band_weight(band));
        clock.place(now, self.shares.leaf(leaf).floor.value());
        Box::new(JobClock { clock, cost: 0 })
    }

    fn raise_floor(&mut self, now: Time, leaf: LeafId) {
        // Whoever has run on since it was queued takes its place anew. A floor that is not raised for once is
        // too low for a while, which does no harm.
        const LOOKS: usize = 16;
        for _ in 0..LOOKS {
            let Some(shape) = self.shapes.leaf(leaf).first() else { return };
            if !self.has_run_on(shape, now) {
                let head = self.shapes.head(shape, &self.jobs);
                let job = head.and_then(|(_, entry)| self.jobs.get(entry.group.job().0));
                let clock = job.and_then(|job| job.clock.as_deref());
                let value = clock.map(|clock| clock.clock.value(now, clock.cost));
                return self.shares.leaves[leaf.index()].floor.raise(value);
            }
        }
    }

    /// What a band counts for where bands are weights.
    pub(super) fn band_weight(&self, band: &str) -> Weight {
        let shares = &self.settings.shares;
        let band = shares.band(band).map(|band| shares.bands[band].value);
        band.and_then(|value| Weight::from_number(value as f64)).unwrap_or(Weight::ONE)
    }

    /// Where a group waits, and by which lifetime limits tell it apart.
    pub(super) fn place_of(&self, id: GroupId) -> (LeafId, Option<Span>) {
        let (_, lifetime) = self.place_of_job(id.job());
        (self.leaf_of_group(id), lifetime)
    }

    /// The same for the work of a job that has not waited for long.
    pub(super) fn place_of_job(&self, id: JobId) -> (LeafId, Option<Span>) {
        let job = self.jobs.get(id.0).expect("the caller has seen the job");
        let matters = self.settings.shares.minds_lifetimes();
        (job.leaf, job.lifetime().filter(|_| matters))
    }

    /// The same for what an elastic group has above its minima.
    pub(super) fn surplus_place_of(&mut self, id: JobId) -> (LeafId, Option<Span>) {
        let (leaf, lifetime) = self.place_of_job(id);
        let (leaf, is_new) = self.shares.surplus_leaf(leaf, &self.settings.shares);
        if is_new {
            self.shapes.add_leaf(self.settings.kinds.len());
        }
        (leaf, lifetime)
    }

    /// Where the tasks of a role wait one by one.
    pub(super) fn place_of_role(&mut self, entry: Entry) -> (LeafId, Option<Span>) {
        let group = groups::find(&self.jobs, entry.group).expect("the caller has seen the group");
        match group.elastic {
            None => self.place_of(entry.group),
            Some(_) => self.surplus_place_of(entry.group.job()),
        }
    }

    pub(super) fn leaf_for(&mut self, requestor: &str, standing: &Standing) -> LeafId {
        let (leaf, is_new) = self.shares.leaf_for(requestor, standing, &self.settings.shares);
        if is_new {
            self.shapes.add_leaf(self.settings.kinds.len());
        }
        leaf
    }

    pub(super) fn leaf_of(&self, id: JobId) -> LeafId {
        self.jobs.get(id.0).expect("the caller has seen the job").leaf
    }

    /// So many tasks more wait with a shape; the caller sees to it that the shape is where it belongs.
    pub(super) fn add_waiting(&mut self, shape: ShapeId, queued: Queued, tasks: u64) {
        self.touch_age(queued.1.group);
        self.shapes.add_waiting(shape, queued, tasks);
        if !self.shares.is_plain() {
            self.shares.welcome(self.now, self.shapes.get(shape).leaf);
        }
        self.count_waiting(shape, tasks as i64);
    }

    /// So many tasks do not wait with a shape any longer; the caller settles the shape.
    pub(super) fn take_waiting(&mut self, shape: ShapeId, tasks: u64) {
        self.shapes.take_waiting(shape, tasks);
        self.count_waiting(shape, -(tasks as i64));
        let leaf = self.shapes.get(shape).leaf;
        self.take_leave(self.now, leaf);
        self.limits.stale |= self.limited && self.shares.leaf(leaf).waiting == 0;
    }

    fn count_waiting(&mut self, id: ShapeId, tasks: i64) {
        let shape = self.shapes.get(id);
        if self.shares.is_plain() {
            return self.shares.count_plainly(shape.leaf, tasks);
        }
        // An atomic group waits as one: its size divides what is counted in tasks.
        let heads = tasks / gang_size(&shape.key) as i64;
        let (leaf, price) = (shape.leaf, self.price_of(id));
        self.shares.count_waiting(leaf, &shape.total_request(), price, (heads, tasks));
    }

    /// Counts everything that waits, after the books were opened anew.
    pub(super) fn count_all_waiting(&mut self) {
        let shapes: Vec<(ShapeId, u64)> =
            self.shapes.iter().map(|(id, _)| (id, self.shapes.waiting(id))).collect();
        for (shape, tasks) in shapes.into_iter().filter(|(_, tasks)| *tasks > 0) {
            self.count_waiting(shape, tasks as i64);
        }
    }

    /// Tasks of a role have started: they count for their share and their job, and use up a grant.
    pub(super) fn count_started(&mut self, now: Time, entry: Entry, tasks: u32) {
        self.starts += 1;
        self.touch_age(entry.group);
        let job = self.jobs.get_mut(entry.group.job().0).expect("a group has a job");
        job.served = self.starts;
        let (leaf, lifetime) = (job.leaf, job.lifetime());
        self.count_running(now, TaskId { group: entry.group, role: entry.role, index: 0 }, i64::from(tasks));
        if self.limited {
            self.use_limits(now, leaf, u64::from(tasks));
            self.draw_for(entry, leaf, tasks, lifetime);
        }
        if self.grants.is_some() {
            let group = groups::find(&self.jobs, entry.group).expect("what started is there");
            let shape = group.roles[usize::from(entry.role)].shape;
            let class = usize::from(self.shares.leaf(leaf).class);
            let units = self.units_of(shape, self.price_of(shape)).max(1) * u64::from(tasks);
            self.grants.iter_mut().for_each(|grants| grants.left.spend(class, units));
        }
    }

    /// The newest attempts of a role draw from the budget of their queue.
    fn draw_for(&mut self, entry: Entry, leaf: LeafId, tasks: u32, lifetime: Option<Span>) {
        let group = groups::find(&self.jobs, entry.group).expect("what started is there");
        let cost = self.price(&group.roles[usize::from(entry.role)].spec.request).cost;
        let of_role = self.live.of_group(group.live).filter(|live| live.attempt.task.role == entry.role);
        let slots: Vec<Slot> = of_role.take(tasks as usize).map(|live| live.attempt.slot).collect();
        for slot in slots {
            self.draw(leaf, slot, cost, lifetime);
        }
    }

    /// So many more (or, below zero, fewer) tasks of a role run.
    pub(super) fn count_running(&mut self, now: Time, task: TaskId, tasks: i64) {
        let job = self.jobs.get_mut(task.job().0).expect("a task has a job");
        job.running = (i64::from(job.running) + tasks) as u32;
        let leaf = job.leaf;
        self.charge(now, leaf, task, tasks);
        if tasks < 0 {
            self.take_leave(now, leaf);
        }
        match self.settings.shares.job_key {
            JobKey::Priority => {}
            JobKey::LeastRunning => self.order_anew(now, task.job()),
            JobKey::RunTime => {
                self.charge_job(now, task, tasks);
                self.order_anew(now, task.job());
            }
        }
        if tasks < 0 && self.limited {
            self.release_limits(self.shares.leaf(leaf).queue, now);
        }
    }

    /// Something of a leaf does not wait or run any more.
    pub(super) fn take_leave(&mut self, now: Time, leaf: LeafId) {
        if !self.shares.is_plain() {
            self.shares.take_leave(now, leaf);
        }
    }

    pub(super) fn charge(&mut self, now: Time, leaf: LeafId, task: TaskId, tasks: i64) {
        if !self.shares.is_plain() {
            let firm = self.jobs.get(task.job().0).is_some_and(|job| job.lifetime().is_none());
            let request = self.request_of(task).clone();
            self.shares.charge(now, leaf, &request, tasks, firm, &self.settings);
        }
    }

    fn charge_job(&mut self, now: Time, task: TaskId, tasks: i64) {
        let cost = self.price(self.request_of(task)).cost * u128::from(tasks.unsigned_abs());
        let job = self.jobs.get_mut(task.job().0).expect("a task has a job");
        let Some(clock) = &mut job.clock else { return };
        clock.clock.charge(now, clock.cost);
        match tasks >= 0 {
            true => {
                // Whoever is served now is where newcomers begin.
                let value = clock.clock.value(now, clock.cost);
                clock.cost += cost;
                self.shares.leaves[job.leaf.index()].floor.raise(Some(value));
            }
            false => clock.cost -= cost,
        }
    }

    pub(super) fn price(&self, request: &Resources) -> Price {
        Price::of(request, &self.settings.shares, &self.settings.kinds)
    }

    /// Whether the job at the head of a shape has run on since it was queued. Then it takes its place anew.
    pub(super) fn has_run_on(&mut self, shape: ShapeId, now: Time) -> bool {
        let Some((before, entry)) = self.shapes.head(shape, &self.jobs) else { return false };
        self.order_anew(now, entry.group.job());
        self.shapes.head(shape, &self.jobs).is_none_or(|(after, _)| after != before)
    }

    /// Gives what waits of a job the place that it has by now.
    fn order_anew(&mut self, now: Time, id: JobId) {
        let job = self.jobs.get(id.0).expect("the caller has seen the job");
        let mut moved: Vec<(Entry, ShapeId, Order)> = Vec::new();
        for (index, group) in job.groups.iter().enumerate() {
            let Some(group) = group.as_ref().filter(|group| !group.withdrawn) else { continue };
            for (role, view) in group.roles.iter().enumerate() {
                let entry = Entry { group: GroupId::new(id, index as u16), role: role as u16 };
                let shape = if view.queued > 0 { Some(view.shape) } else { group.gang.filter(|_| role == 0) };
                let order = self.order_of(now, entry);
                moved.extend(shape.filter(|_| order != view.order).map(|shape| (entry, shape, order)));
            }
        }
        for (entry, shape, order) in moved {
            let group = groups::find_mut(&mut self.jobs, entry.group).expect("just seen");
            group.roles[usize::from(entry.role)].order = order;
            self.shapes.add_waiting(shape, (order, entry), 0);
            self.shapes.settle(shape, &self.jobs);
        }
    }

    /// The settings place jobs otherwise: every job finds its leaf anew, and everything is looked at. What
    /// shares of the same name have used is remembered.
    pub(super) fn share_anew(&mut self, now: Time, before: &ShareSettings) {
        let shares_before = std::mem::replace(&mut self.shares, Shares::new(&self.settings.shares));
        let limits_before = std::mem::take(&mut self.limits);
        self.grants = None;
        self.elastic.aside.clear();
        self.limited = Limits::any(&self.settings.shares);
        std::mem::replace(&mut self.shapes, Shapes::new()).dissolve(&mut self.nodes);
        let jobs: Vec<JobId> = self.jobs.iter().map(|(id, _)| JobId(id)).collect();
        for id in jobs {
            let job = self.jobs.get(id.0).expect("just seen");
            let (requestor, standing) = job.standing.as_deref().cloned().unwrap_or_default();
            let leaf = self.leaf_for(&requestor, &standing);
            let by_run_time = self.settings.shares.job_key == JobKey::RunTime;
            let clock = by_run_time.then(|| self.new_clock(now, leaf, &standing.band));
            let job = self.jobs.get_mut(id.0).expect("just seen");
            (job.leaf, job.clock) = (leaf, clock);
            self.stand_by_ages(now, id);
            self.place_anew(now, id);
        }
        let live: Vec<TaskId> = self.live.iter().map(|live| live.attempt.task).collect();
        for task in live {
            self.charge(now, self.leaf_of(task.job()), task, 1);
            self.charge_job(now, task, 1);
        }
        let renamed = self.shares.inherit(now, &shares_before, before, &self.settings.shares);
        self.inherit_limits(now, limits_before, &renamed);
    }

    /// Puts what waits of a job, which is listed nowhere any more, into the leaf that it belongs to by now,
    /// and has it tried at once.
    fn place_anew(&mut self, now: Time, id: JobId) {
        let groups = self.jobs.get(id.0).map_or(0, |job| job.groups.len());
        for index in 0..groups {
            let group = GroupId::new(id, index as u16);
            if self.group(group).is_none() {
                continue;
            }
            self.doubt(group);
            let is_gang = self.group_mut(group).expect("just seen").gang.take().is_some();
            for role in 0..self.group(group).map_or(0, |group| group.roles.len()) {
                self.place_role_anew(now, Entry { group, role: role as u16 });
            }
            if is_gang {
                let shape = self.enqueue_gang(group);
                self.open_unless_collecting(shape);
            }
        }
    }

    pub(super) fn place_role_anew(&mut self, now: Time, entry: Entry) {
        let role = usize::from(entry.role);
        let view = &self.group(entry.group).expect("the caller has seen the group").roles[role];
        let (queued, spec) = (view.queued, Arc::clone(&view.spec));
        let spec = self.asked_by(entry.group.job(), &spec);
        let place = self.place_of_role(entry);
        let shape = self.shapes.intern(place, ShapeKey::Task(Arc::clone(&spec)), &mut self.nodes);
        self.shapes.get_mut(shape).references += 1;
        let order = self.order_of(now, entry);
        let view = &mut self.group_mut(entry.group).expect("just seen").roles[role];
        (view.shape, view.spec, view.order) = (shape, spec, order);
        if queued > 0 {
            self.add_waiting(shape, (order, entry), u64::from(queued));
            self.shapes.settle(shape, &self.jobs);
            self.open_unless_collecting(shape);
        }
    }

    /// The place that a role of a known group has by now.
    pub(super) fn order_of(&self, now: Time, entry: Entry) -> Order {
        let job = self.jobs.get(entry.group.job().0).expect("a group has a job");
        let group = groups::find(&self.jobs, entry.group).expect("the caller has seen the group");
        let role = &group.roles[usize::from(entry.role)];
        let size = || match group.start {
            Start::Independent => Size::of([&role.spec.request]),
            Start::Atomic => Size::of(group.roles.iter().map(|role| &role.spec.request)),
        };
        let order = order(
            &self.settings.shares,
            (now, self.ahead()),
            (job, InLine { raised: group.raised(), last: self.is_last(job.leaf) }),
            entry,
            role.expected,
            size,
        );
        match group.phase() {
            Some(Phase::Running) => {
                // What the step itself costs must not put the dearer one last: among equals GPUs go first.
                let so_far = |clock: &JobClock| clock.clock.value(now, clock.cost).parts();
                let rank = job.clock.as_deref().map_or(order.rank(), so_far);
                surplus_order(rank, role, entry)
            }
            _ => order,
        }
    }

    /// Whether a leaf is of a class that gets what nobody else can use.
    pub(super) fn is_last(&self, leaf: LeafId) -> bool {
        self.shares.is_last(usize::from(self.shares.leaf(leaf).class))
    }

    /// Classes have become such that get what nobody else can use, or are not any more: where jobs take turns,
    /// their jobs stand otherwise from now on.
    pub(super) fn order_classes_anew(&mut self, now: Time, were_last: &[usize]) {
        if self.settings.shares.job_key != JobKey::LeastRunning {
            return;
        }
        let class_of = |leaf| usize::from(self.shares.leaf(leaf).class);
        let changed = |class: usize| self.shares.is_last(class) != were_last.contains(&class);
        let jobs = self.jobs.iter().filter(|(_, job)| changed(class_of(job.leaf)));
        let jobs: Vec<JobId> = jobs.map(|(id, _)| JobId(id)).collect();
        jobs.into_iter().for_each(|id| self.order_anew(now, id));
    }

    pub(super) fn open_unless_collecting(&mut self, shape: ShapeId) {
        if self.shapes.get(shape).window.is_none() {
            self.shapes.move_to(shape, Place::Open, &self.jobs);
        }
    }
}
