//! How jobs stand: in which leaf their work waits, and where in it.

use std::sync::Arc;

use crate::id::{GroupId, JobId, TaskId};
use crate::settings::{JobKey, ShareSettings};
use crate::spec::Standing;
use crate::time::{Span, Time};

use super::Scheduler;
use super::gangs::gang_size;
use super::groups::{self, JobView};
use super::leaf::LeafId;
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

/// The place of an entry among all that wait in its leaf.
pub(super) fn order(settings: &ShareSettings, job: &JobView, entry: Entry, expected: u32) -> Order {
    let urgency = u128::from(urgency(job.priority()));
    match settings.job_key {
        JobKey::Priority => {
            let standing = job.standing.as_deref().map(|(_, standing)| standing);
            let band = standing.map_or("", |standing| &standing.band);
            let band = settings.band(band).map_or(0, |band| band as u128);
            let finish_by = standing.and_then(|standing| standing.finish_by).unwrap_or(Time::NEVER);
            Order::by_arrival(band << 96 | urgency << 64 | u128::from(finish_by.0), entry)
        }
        JobKey::LeastRunning => Order {
            rank: urgency << 96 | u128::from(job.running) << 64 | u128::from(job.served),
            arrival: entry.group.job().0,
            // The longest task first.
            last: u64::from(!expected) << 32 | (entry.group.index() as u64) << 16 | u64::from(entry.role),
        },
        JobKey::RunTime => Order::by_arrival(0, entry),
    }
}

impl Scheduler {
    /// Enters a job with its first group, and says in which leaf it waits.
    pub(super) fn enter_job(&mut self, id: JobId, requestor: Arc<str>, standing: Standing) -> LeafId {
        if let Some(job) = self.jobs.get(id.0) {
            return job.leaf;
        }
        let leaf = self.leaf_for(&requestor, &standing);
        self.jobs.insert(id.0, JobView::new(leaf, requestor, standing));
        leaf
    }

    fn leaf_for(&mut self, requestor: &str, standing: &Standing) -> LeafId {
        let (leaf, is_new) = self.shares.leaf_for(requestor, standing, 0, &self.settings.shares);
        if is_new {
            self.shapes.add_leaf(self.settings.kinds.len());
        }
        leaf
    }

    fn leaf_of(&self, id: JobId) -> LeafId {
        self.jobs.get(id.0).expect("the caller has seen the job").leaf
    }

    /// So many tasks more wait with a shape; the caller sees to it that the shape is where it belongs.
    pub(super) fn add_waiting(&mut self, shape: ShapeId, queued: Queued, tasks: u64) {
        self.shapes.add_waiting(shape, queued, tasks);
        self.count_waiting(shape, tasks as i64);
    }

    /// So many tasks do not wait with a shape any longer; the caller settles the shape.
    pub(super) fn take_waiting(&mut self, shape: ShapeId, tasks: u64) {
        self.shapes.take_waiting(shape, tasks);
        self.count_waiting(shape, -(tasks as i64));
    }

    fn count_waiting(&mut self, id: ShapeId, tasks: i64) {
        let shape = self.shapes.get(id);
        if self.shares.is_plain() {
            return self.shares.count_plainly(shape.leaf, tasks);
        }
        // An atomic group waits as one: its size divides what is counted in tasks.
        let heads = tasks / gang_size(&shape.key) as i64;
        self.shares.count_waiting(shape.leaf, &shape.total_request(), self.price_of(id), heads, tasks);
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
        let job = self.jobs.get_mut(entry.group.job().0).expect("a group has a job");
        job.served = self.starts;
        self.count_running(now, TaskId { group: entry.group, role: entry.role, index: 0 }, i64::from(tasks));
        if self.grants.is_some() {
            let group = groups::find(&self.jobs, entry.group).expect("what started is there");
            let shape = group.roles[usize::from(entry.role)].shape;
            let class = usize::from(self.shares.leaf(self.shapes.get(shape).leaf).class);
            let units = self.units_of(shape, self.price_of(shape)).max(1) * u64::from(tasks);
            self.grants.iter_mut().for_each(|grants| grants.spend(class, units));
        }
    }

    /// So many more (or, below zero, fewer) tasks of a role run.
    pub(super) fn count_running(&mut self, now: Time, task: TaskId, tasks: i64) {
        let job = self.jobs.get_mut(task.job().0).expect("a task has a job");
        job.running = (i64::from(job.running) + tasks) as u32;
        let leaf = job.leaf;
        self.charge(now, leaf, task, tasks);
        if self.settings.shares.job_key == JobKey::LeastRunning {
            self.order_anew(task.job());
        }
    }

    fn charge(&mut self, now: Time, leaf: LeafId, task: TaskId, tasks: i64) {
        if !self.shares.is_plain() {
            let request = self.request_of(task).clone();
            self.shares.charge(now, leaf, &request, tasks, &self.settings);
        }
    }

    /// Gives what waits of a job the place that it has by now.
    fn order_anew(&mut self, id: JobId) {
        let job = self.jobs.get(id.0).expect("the caller has seen the job");
        let mut moved: Vec<(Entry, ShapeId, Order)> = Vec::new();
        for (index, group) in job.groups.iter().enumerate() {
            let Some(group) = group.as_ref().filter(|group| !group.withdrawn) else { continue };
            for (role, view) in group.roles.iter().enumerate() {
                let entry = Entry { group: GroupId::new(id, index as u16), role: role as u16 };
                let shape = if view.queued > 0 { Some(view.shape) } else { group.gang.filter(|_| role == 0) };
                let order = order(&self.settings.shares, job, entry, view.expected);
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

    /// A job stands otherwise from now on: in another queue or band, or more or less urgent.
    pub(super) fn change_standing(&mut self, now: Time, id: JobId, standing: Standing) {
        let Some(job) = self.jobs.get(id.0) else { return };
        let requestor = job.standing.as_ref().map_or_else(Arc::default, |both| Arc::clone(&both.0));
        let (before, leaf) = (job.leaf, self.leaf_for(&requestor, &standing));
        let job = self.jobs.get_mut(id.0).expect("just seen");
        let known = JobView::new(leaf, requestor, standing);
        (job.leaf, job.standing) = (known.leaf, known.standing);
        if before != leaf {
            for task in self.live_of(id) {
                self.charge(now, before, task, -1);
                self.charge(now, leaf, task, 1);
            }
        }
        self.place_anew(id, true);
    }

    fn live_of(&self, id: JobId) -> Vec<TaskId> {
        let groups = self.jobs.get(id.0).into_iter().flat_map(|job| job.groups.iter().flatten());
        groups.flat_map(|group| self.live.of_group(group.live)).map(|live| live.attempt.task).collect()
    }

    /// The settings share otherwise: every job finds its leaf anew, and everything is looked at.
    pub(super) fn share_anew(&mut self, now: Time) {
        self.shares = Shares::new(&self.settings.shares);
        self.grants = None;
        std::mem::replace(&mut self.shapes, Shapes::new()).dissolve(&mut self.nodes);
        let jobs: Vec<JobId> = self.jobs.iter().map(|(id, _)| JobId(id)).collect();
        for id in jobs {
            let job = self.jobs.get(id.0).expect("just seen");
            let (requestor, standing) = job.standing.as_deref().cloned().unwrap_or_default();
            let leaf = self.leaf_for(&requestor, &standing);
            self.jobs.get_mut(id.0).expect("just seen").leaf = leaf;
            self.place_anew(id, false);
        }
        let live: Vec<TaskId> = self.live.iter().map(|live| live.attempt.task).collect();
        for task in live {
            self.charge(now, self.leaf_of(task.job()), task, 1);
        }
    }

    /// Puts what waits of a job into the leaf that it belongs to by now, and has it tried at once unless
    /// it still collects. `listed` says whether it is still listed where it was.
    fn place_anew(&mut self, id: JobId, listed: bool) {
        let groups = self.jobs.get(id.0).map_or(0, |job| job.groups.len());
        for index in 0..groups {
            let group = GroupId::new(id, index as u16);
            if self.group(group).is_none() {
                continue;
            }
            let is_gang = self.group(group).is_some_and(|group| group.gang.is_some());
            match is_gang && listed {
                true => self.dequeue_gang(group),
                false => self.group_mut(group).expect("just seen").gang = None,
            }
            for role in 0..self.group(group).map_or(0, |group| group.roles.len()) {
                self.place_role_anew(Entry { group, role: role as u16 }, listed);
            }
            if is_gang {
                let shape = self.enqueue_gang(group);
                self.open_unless_collecting(shape);
            }
        }
    }

    fn place_role_anew(&mut self, entry: Entry, listed: bool) {
        let role = usize::from(entry.role);
        let view = &self.group(entry.group).expect("the caller has seen the group").roles[role];
        let (old, queued, spec) = (view.shape, view.queued, Arc::clone(&view.spec));
        if listed && queued > 0 {
            self.take_waiting(old, u64::from(queued));
        }
        let leaf = self.leaf_of(entry.group.job());
        let shape = self.shapes.intern(leaf, ShapeKey::Task(spec), &mut self.nodes);
        self.shapes.get_mut(shape).references += 1;
        let job = self.jobs.get(entry.group.job().0).expect("a group has a job");
        let view = &groups::find(&self.jobs, entry.group).expect("just seen").roles[role];
        let order = order(&self.settings.shares, job, entry, view.expected);
        let view = &mut self.group_mut(entry.group).expect("just seen").roles[role];
        (view.shape, view.order) = (shape, order);
        if listed {
            self.shapes.settle(old, &self.jobs);
            self.shapes.release(old, &mut self.nodes);
        }
        if queued > 0 {
            self.add_waiting(shape, (order, entry), u64::from(queued));
            self.shapes.settle(shape, &self.jobs);
            self.open_unless_collecting(shape);
        }
    }

    fn open_unless_collecting(&mut self, shape: ShapeId) {
        if self.shapes.get(shape).window.is_none() {
            self.shapes.move_to(shape, Place::Open, &self.jobs);
        }
    }
}
