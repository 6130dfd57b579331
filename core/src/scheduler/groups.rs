//! Groups as the Scheduler sees them: how many tasks of each role wait and which run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::collections::{Chain, Paged, Seldom};
use crate::id::{GroupId, NodeId};
use crate::messages::RoleArrival;
use crate::spec::{Hops, OnPreempt, ShapeSpec, Standing, Start, Tie};
use crate::time::{MaybeSpan, Span, Time};

use super::account::RunClock;
use super::ageing::Age;
use super::elastic::{ElasticGroup, ElasticRole};
use super::job_standing::milliseconds;
use super::leaf::LeafId;
use super::order::Order;
use super::shapes::ShapeId;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobView {
    /// Most jobs have one group, and most groups one role: these need no room of their own.
    pub(super) groups: SmallVec<[Option<GroupView>; 1]>,
    /// Who asks for it and how it stands, unless nobody in particular and like most.
    pub(super) standing: Option<Box<(Arc<str>, Standing)>>,
    /// Where its work waits.
    pub(super) leaf: LeafId,
    /// Tasks that run.
    pub(super) running: u32,
    /// Counts starts over all jobs: who was served last.
    pub(super) served: u64,
    /// Its run time, where jobs are compared by that.
    pub(super) clock: Option<Box<JobClock>>,
}

/// What a job has used of its weight.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct JobClock {
    pub(super) clock: RunClock,
    /// What its running tasks cost.
    pub(super) cost: u128,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GroupView {
    pub(super) start: Start,
    pub(super) hops: Option<Hops>,
    /// With whom it stays in one pool.
    pub(super) tie: Tie,
    /// The pool in which those run with whom it stays.
    pub(super) bound: Option<Arc<str>>,
    /// Since when something of it waits, or waited last.
    pub(super) since: Time,
    /// It is to be ended when it can never fit, and that was not said yet.
    pub(super) fails_if_unable: bool,
    pub(super) roles: SmallVec<[RoleView; 1]>,
    /// Attempts the Scheduler has not heard the end of.
    pub(super) live: Chain,
    pub(super) live_count: u32,
    /// Members of an atomic group that ended unfinished, minus those that were returned. The two
    /// come over different links: below zero the ends are still on their way.
    pub(super) returning: i32,
    /// Cancelled: nothing of it starts any more.
    pub(super) withdrawn: bool,
    /// Finished: it goes as soon as its last release has come in.
    pub(super) forgotten: bool,
    /// The shape under which the whole group is queued, if it is atomic and waits.
    pub(super) gang: Option<ShapeId>,
    /// Work was stopped that ran on what it had claimed, and it has not started since.
    pub(super) cleared: bool,
    /// If its size may vary.
    pub(super) elastic: Option<Box<ElasticGroup>>,
    /// How long it has waited, where that counts.
    pub(super) age: Option<Box<Age>>,
}

/// A role's waiting tasks: everything from `fresh` on, and those that came back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RoleView {
    pub(super) shape: ShapeId,
    /// The place of its waiting tasks among all others of their share.
    pub(super) order: Order,
    pub(super) spec: Arc<ShapeSpec>,
    tasks: u32,
    /// The first task that never started.
    fresh: u32,
    /// Tasks that wait once more, and the number of their next attempt.
    pub(super) returned: Seldom<BTreeMap<u32, u32>>,
    /// What befell some of its tasks, if anything did.
    setbacks: Option<Box<Setbacks>>,
    /// How many of the waiting tasks its shape's queue counts.
    pub(super) queued: u32,
    /// How long a task is expected to run, in milliseconds; 0 if nobody knows.
    pub(super) expected: u32,
    /// It says so itself.
    declared: bool,
    /// Under which name run times are remembered.
    pub(super) task_key: Option<Arc<str>>,
    /// How long each task may run, if the role says so.
    pub(super) timeout: MaybeSpan,
    /// What becomes of a task that is stopped for others, if the role says so.
    pub(super) on_preempt: Option<OnPreempt>,
    /// If its group may vary in size.
    pub(super) elastic: Option<Box<ElasticRole>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Setbacks {
    /// Nodes that tasks which wait once more go to only when nowhere else is room.
    avoided: BTreeMap<u32, Vec<NodeId>>,
    /// How often tasks were stopped for others.
    stopped: BTreeMap<u32, u32>,
}

pub(super) fn find(jobs: &Paged<JobView>, id: GroupId) -> Option<&GroupView> {
    jobs.get(id.job().0)?.groups.get(id.index())?.as_ref()
}

pub(super) fn find_mut(jobs: &mut Paged<JobView>, id: GroupId) -> Option<&mut GroupView> {
    jobs.get_mut(id.job().0)?.groups.get_mut(id.index())?.as_mut()
}

impl JobView {
    pub(super) fn new(leaf: LeafId, requestor: Arc<str>, standing: Standing) -> JobView {
        let is_plain = requestor.is_empty() && standing == Standing::default();
        let standing = (!is_plain).then(|| Box::new((requestor, standing)));
        JobView { groups: SmallVec::new(), standing, leaf, running: 0, served: 0, clock: None }
    }

    pub(super) fn stand(&mut self, requestor: Arc<str>, standing: Standing) {
        let is_plain = requestor.is_empty() && standing == Standing::default();
        self.standing = (!is_plain).then(|| Box::new((requestor, standing)));
    }

    pub(super) fn lifetime(&self) -> Option<Span> {
        let standing = self.standing.as_ref().filter(|standing| !standing.1.firm);
        standing.and_then(|standing| standing.1.lifetime.get())
    }

    /// It is never stopped for somebody else's sake.
    pub(super) fn is_firm(&self) -> bool {
        self.standing.as_ref().is_some_and(|standing| standing.1.firm)
    }

    pub(super) fn band(&self) -> &str {
        self.standing.as_ref().map_or("", |standing| &standing.1.band)
    }

    pub(super) fn priority(&self) -> i32 {
        self.standing.as_ref().map_or(0, |standing| standing.1.priority)
    }

    pub(super) fn insert(&mut self, index: usize, group: GroupView) {
        if self.groups.len() <= index {
            self.groups.resize_with(index + 1, || None);
        }
        assert!(self.groups[index].is_none(), "a group arrives once");
        self.groups[index] = Some(group);
    }
}

impl GroupView {
    pub(super) fn new(
        start: Start,
        hops: Option<Hops>,
        tie: Tie,
        roles: SmallVec<[RoleView; 1]>,
    ) -> GroupView {
        GroupView {
            start,
            hops,
            tie,
            bound: None,
            since: Time::ZERO,
            fails_if_unable: false,
            roles,
            live: Chain::default(),
            live_count: 0,
            returning: 0,
            withdrawn: false,
            forgotten: false,
            gang: None,
            cleared: false,
            elastic: None,
            age: None,
        }
    }

    pub(super) fn waiting(&self) -> u64 {
        self.roles.iter().map(|role| u64::from(role.waiting())).sum()
    }

    /// A member ended unfinished (1) or was returned (-1). Only atomic groups wait in between.
    pub(super) fn count_returning(&mut self, role: u16, change: i32) {
        if self.start == Start::Atomic && !self.withdrawn {
            self.returning += change;
            let elastic = self.roles[usize::from(role)].elastic.as_mut();
            elastic.into_iter().for_each(|elastic| elastic.count_away(change));
        }
    }

    /// Members that ended unfinished and wait for the others to end.
    pub(super) fn held_back(&self) -> u64 {
        u64::from(self.returning.max(0).unsigned_abs())
    }
}

impl RoleView {
    pub(super) fn new(shape: ShapeId, role: RoleArrival, adopted: u32) -> RoleView {
        let RoleArrival { shape: spec, tasks, timeout, on_preempt, duration, task_key, .. } = role;
        let (fresh, returned, order) = (adopted.min(tasks), Seldom::default(), Order::default());
        let expected = duration.map_or(0, milliseconds);
        let declared = duration.is_some();
        RoleView {
            shape,
            order,
            spec,
            tasks,
            fresh,
            returned,
            setbacks: None,
            queued: 0,
            expected,
            declared,
            task_key,
            timeout: timeout.into(),
            on_preempt,
            elastic: None,
        }
    }

    /// How long a task is expected to run.
    pub(super) fn expects(&self) -> Option<Span> {
        (self.expected > 0).then(|| Span::from_millis(u64::from(self.expected)))
    }

    /// How long a task runs as the role says itself.
    pub(super) fn declares(&self) -> Option<Span> {
        self.declared.then(|| Span::from_millis(u64::from(self.expected)))
    }

    /// How many tasks there are at the most.
    pub(super) fn tasks(&self) -> u32 {
        self.tasks
    }

    /// Its smallest and its largest size.
    pub(super) fn bounds(&self, start: Start) -> (u32, u32) {
        match (&self.elastic, start) {
            (Some(elastic), _) => (elastic.min, elastic.max),
            (None, Start::Atomic) => (self.tasks, self.tasks),
            (None, Start::Independent) => (0, self.tasks),
        }
    }

    /// An elastic role may vary between these sizes from now on.
    pub(super) fn set_bounds(&mut self, min: u32, max: u32) {
        if let Some(elastic) = &mut self.elastic {
            elastic.set_bounds(min, max);
            self.tasks = self.tasks.max(max);
        }
    }

    /// An elastic role grows no more.
    pub(super) fn stop_growing(&mut self) {
        self.elastic.iter_mut().for_each(|elastic| elastic.closed = true);
    }

    pub(super) fn waiting(&self) -> u32 {
        self.tasks - self.fresh + self.returned.len() as u32
    }

    /// Whether tasks of it wait for room of their own.
    pub(super) fn wants_room(&self) -> bool {
        self.needed() > 0 && self.spec.guest_of.is_none()
    }

    /// Whether this task waits; `None` if the role has no such task.
    pub(super) fn waits(&self, index: u32) -> Option<bool> {
        let waits = || index >= self.fresh || self.returned.contains_key(&index);
        (index < self.tasks).then(waits)
    }

    /// The next queued task to start and the number of its attempt.
    pub(super) fn take_queued(&mut self) -> (u32, u32) {
        self.queued -= 1;
        self.take()
    }

    /// The next task to start and the number of its attempt: those that came back go first.
    pub(super) fn take(&mut self) -> (u32, u32) {
        match self.returned.there_mut().and_then(BTreeMap::pop_first) {
            Some((index, number)) => {
                if let Some(setbacks) = &mut self.setbacks {
                    setbacks.avoided.remove(&index);
                }
                (index, number)
            }
            None => {
                assert!(self.fresh < self.tasks, "only waiting tasks are taken");
                self.fresh += 1;
                (self.fresh - 1, 1)
            }
        }
    }

    /// This task waits once more.
    pub(super) fn take_back(&mut self, index: u32, number: u32, avoid: Vec<NodeId>) {
        self.returned.insert(index, number);
        if !avoid.is_empty() {
            self.setbacks.get_or_insert_default().avoided.insert(index, avoid);
        }
    }

    /// Whether some of the waiting tasks avoid a node.
    pub(super) fn avoids_some(&self) -> bool {
        self.setbacks.as_ref().is_some_and(|setbacks| !setbacks.avoided.is_empty())
    }

    /// The nodes that the next task to start goes to only when nowhere else is room.
    pub(super) fn next_avoids(&self) -> &[NodeId] {
        let Some(setbacks) = &self.setbacks else { return &[] };
        let next = self.returned.first_key_value().and_then(|(index, _)| setbacks.avoided.get(index));
        next.map_or(&[], Vec::as_slice)
    }

    /// Every node that some waiting task avoids.
    pub(super) fn avoided(&self) -> impl Iterator<Item = NodeId> {
        self.setbacks.iter().flat_map(|setbacks| setbacks.avoided.values().flatten().copied())
    }

    /// Lets tasks that were given nodes they avoid, in the order in which they are taken, change with others
    /// of the role for which either node will do.
    pub(super) fn swap_avoided(&self, nodes: &mut [NodeId]) {
        let Some(setbacks) = self.setbacks.as_ref().filter(|setbacks| !setbacks.avoided.is_empty()) else {
            return;
        };
        let avoids = |task: Option<&u32>, node: NodeId| {
            task.and_then(|task| setbacks.avoided.get(task)).is_some_and(|avoided| avoided.contains(&node))
        };
        // Those that never started come last and avoid nothing.
        let returned: Vec<u32> = self.returned.keys().copied().collect();
        for index in 0..returned.len().min(nodes.len()) {
            if !avoids(returned.get(index), nodes[index]) {
                continue;
            }
            let others = 0..nodes.len();
            let fits = |other: &usize| {
                !avoids(returned.get(index), nodes[*other]) && !avoids(returned.get(*other), nodes[index])
            };
            if let Some(other) = others.into_iter().find(fits) {
                nodes.swap(index, other);
            }
        }
    }

    /// How often a task was stopped for others.
    pub(super) fn stops(&self, index: u32) -> u32 {
        let stops = self.setbacks.as_ref().and_then(|setbacks| setbacks.stopped.get(&index));
        stops.copied().unwrap_or(0)
    }

    /// How many of the tasks that start next may be stopped for others once more: all of them, unless one that
    /// came back was stopped as often as may be.
    pub(super) fn next_stoppable(&self, stops_max: u64) -> u32 {
        let mut returned = self.returned.keys();
        let may_go = |index: &&u32| u64::from(self.stops(**index)) < stops_max;
        match returned.by_ref().take_while(may_go).count() {
            few if few < self.returned.len() => few as u32,
            _ => u32::MAX,
        }
    }

    pub(super) fn count_stop(&mut self, index: u32) {
        *self.setbacks.get_or_insert_default().stopped.entry(index).or_default() += 1;
    }

    pub(super) fn abandon_waiting(&mut self) {
        self.fresh = self.tasks;
        self.returned.take();
        if let Some(setbacks) = &mut self.setbacks {
            setbacks.avoided.clear();
        }
    }
}
