//! Groups and jobs that stay in one pool while something of them runs.
//!
//! As soon as the first task of such a group, or of such a job, has a node, everything that waits of it is
//! *bound* to the pool of that node: the rules of its shapes name the pool, so whatever finds nodes for
//! shapes finds them there. When nothing of it runs any more it is free to go anywhere. A group that starts
//! as a whole tries one pool after the other. As long as there is one pool, and that is not cordoned, none
//! of this happens.

use std::sync::Arc;

use crate::id::{GroupId, NodeId};
use crate::mutation::{self, Mutation};
use crate::spec::{ShapeSpec, Tie};

use super::Scheduler;
use super::groups;
use super::plan::Turn;
use super::queue::Entry;
use super::shapes::{Place, ShapeId, ShapeKey};

/// The same shape, bound to this pool or to none.
pub(super) fn bound_to(spec: &ShapeSpec, pool: Option<&Arc<str>>) -> Arc<ShapeSpec> {
    let mut spec = spec.clone();
    spec.rules.bound_pool = pool.cloned();
    Arc::new(spec)
}

impl Scheduler {
    /// Whether the next task of this group that starts decides in which pool the others run.
    pub(super) fn decides_pool(&self, id: GroupId) -> bool {
        let group = groups::find(&self.jobs, id).expect("the caller has seen the group");
        group.tie != Tie::None
            && group.bound.is_none()
            && self.nodes.pools.is_divided()
            && !mutation::active(Mutation::IgnorePools)
    }

    /// Something of this group has started: what stays with it is bound to the same pool.
    pub(super) fn bind_if_tied(&mut self, id: GroupId) {
        if !self.decides_pool(id) {
            return;
        }
        let group = groups::find(&self.jobs, id).expect("the caller has seen the group");
        let node = self.live.of_group(group.live).find_map(|live| live.node());
        let Some(entry) = node.and_then(|node| self.nodes.get(node)) else { return };
        let pool: Arc<str> = entry.view.facts.pool.as_str().into();
        for member in self.tied_to(id) {
            self.bind(member, Some(&pool));
        }
    }

    /// A group of a job that runs already comes to where the others are.
    pub(super) fn join_the_others(&mut self, id: GroupId) {
        if self.group(id).is_none_or(|group| group.tie != Tie::Job) {
            return;
        }
        let others = self.tied_to(id);
        let pool = others.iter().find_map(|other| self.group(*other)?.bound.clone());
        if let Some(pool) = pool {
            self.bind(id, Some(&pool));
        }
    }

    /// Nothing of what this group stays with may run any more: then all of it may go anywhere.
    pub(super) fn untie_if_idle(&mut self, id: GroupId) {
        if self.group(id).is_none_or(|group| group.bound.is_none()) {
            return;
        }
        let members = self.tied_to(id);
        let runs = |member: &GroupId| self.group(*member).is_some_and(|group| group.live_count > 0);
        if !members.iter().any(runs) {
            for member in members {
                self.bind(member, None);
            }
        }
    }

    /// There is more than one pool from now on, or one is cordoned: what runs stays where it is.
    pub(super) fn bind_all(&mut self) {
        let groups: Vec<GroupId> = self.live.iter().map(|live| live.attempt.task.group).collect();
        for group in groups {
            self.bind_if_tied(group);
        }
    }

    /// A node comes to another pool. It is empty, so what was placed there meanwhile is on its way to be
    /// refused: the rest of it is where the node was.
    pub(super) fn bind_before_move(&mut self, node: NodeId, to: &str) {
        let Some(entry) = self.nodes.get(node).filter(|entry| entry.view.facts.pool != to) else { return };
        let pool: Arc<str> = entry.view.facts.pool.as_str().into();
        let mut groups: Vec<GroupId> =
            self.live.on_node(entry.attempts).map(|live| live.attempt.task.group).collect();
        groups.dedup();
        for id in groups {
            let is_free = |group: &groups::GroupView| group.tie != Tie::None && group.bound.is_none();
            if !self.group(id).is_some_and(is_free) || mutation::active(Mutation::IgnorePools) {
                continue;
            }
            for member in self.tied_to(id) {
                self.bind(member, Some(&pool));
            }
        }
    }

    /// This group, or all groups of its job if that is what stays together.
    fn tied_to(&self, id: GroupId) -> Vec<GroupId> {
        let job = self.jobs.get(id.job().0).expect("a group has a job");
        if self.group(id).is_none_or(|group| group.tie != Tie::Job) {
            return vec![id];
        }
        let groups = job.groups.iter().enumerate();
        let tied = groups.filter(|(_, group)| group.as_ref().is_some_and(|group| group.tie == Tie::Job));
        tied.map(|(index, _)| GroupId::new(id.job(), index as u16)).collect()
    }

    fn bind(&mut self, id: GroupId, pool: Option<&Arc<str>>) {
        let group = groups::find_mut(&mut self.jobs, id).expect("the caller has seen the group");
        if group.bound.as_ref() == pool {
            return;
        }
        group.bound = pool.cloned();
        let (is_gang, roles) = (group.gang.is_some(), group.roles.len());
        if is_gang {
            self.dequeue_gang(id);
        }
        for role in 0..roles {
            self.reshape(Entry { group: id, role: role as u16 }, pool);
        }
        // An elastic group of which enough is done by now needs nothing any more.
        if is_gang && self.group(id).is_some_and(|group| group.waits_as_whole()) {
            let shape = self.enqueue_gang(id);
            self.open_unless_collecting(shape);
        }
    }

    /// Gives a role the shape that it has in this pool, and has it tried at once.
    fn reshape(&mut self, entry: Entry, pool: Option<&Arc<str>>) {
        let role = usize::from(entry.role);
        let view = &self.group(entry.group).expect("the caller has seen the group").roles[role];
        let (before, queued, order) = (view.shape, view.queued, view.order);
        let spec = bound_to(&view.spec, pool);
        let place = self.place_of_role(entry);
        let shape = self.shapes.intern(place, ShapeKey::Task(Arc::clone(&spec)), &mut self.nodes);
        self.shapes.get_mut(shape).references += 1;
        if queued > 0 {
            self.take_waiting(before, u64::from(queued));
        }
        let view = &mut self.group_mut(entry.group).expect("just seen").roles[role];
        (view.shape, view.spec) = (shape, spec);
        if queued > 0 {
            self.add_waiting(shape, (order, entry), u64::from(queued));
            self.shapes.settle(before, &self.jobs);
            self.shapes.settle(shape, &self.jobs);
            self.open_unless_collecting(shape);
        }
        self.shapes.release(before, &mut self.nodes);
    }

    /// Cordoned nodes that gained room are for what is bound to their pool: that is tried.
    pub(super) fn open_bound_shapes(&mut self, turn: &Turn) {
        let cordoned = turn.touched().iter().filter(|node| self.nodes.pools.is_cordoned(**node));
        let mut pools: Vec<&str> = cordoned.map(|node| self.pool_of(*node)).collect();
        pools.sort_unstable();
        pools.dedup();
        if pools.is_empty() {
            return;
        }
        let waits = |shape: &ShapeId| self.shapes.waits_for_room(*shape);
        let bound = self.shapes.iter().filter(|(_, shape)| {
            let pool = shape.key.bound_pool();
            pool.is_some_and(|pool| pools.binary_search(&&**pool).is_ok())
        });
        let shapes: Vec<ShapeId> = bound.map(|(id, _)| id).filter(waits).collect();
        for shape in shapes {
            self.shapes.move_to(shape, Place::Open, &self.jobs);
        }
    }

    pub(super) fn pool_of(&self, node: NodeId) -> &str {
        self.nodes.get(node).map_or("", |entry| &entry.view.facts.pool)
    }
}
