//! Atomic groups: queued as one, placed whole or not at all. Nothing is held while one waits.

use std::sync::Arc;

use crate::id::{GroupId, NodeId};
use crate::resources::Resources;

use super::plan::{Bind, Turn, bind};
use super::queue::Entry;
use super::shapes::{ShapeId, ShapeKey};
use super::{Scheduler, groups};

/// In which order the roles of a gang look for room: the hardest request first, compared from the
/// last kind (the scarcest of the built-in ones) to the first.
pub fn role_order(requests: &[&Resources]) -> Vec<usize> {
    let kinds = requests.iter().map(|request| request.amounts().len()).max().unwrap_or(0);
    let reversed = |index: &usize| -> Vec<i64> {
        let amounts = requests[*index].amounts();
        (0..kinds).rev().map(|kind| amounts.get(kind).copied().unwrap_or(0)).collect()
    };
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|index| (std::cmp::Reverse(reversed(index)), *index));
    order
}

impl Scheduler {
    /// Queues everything that waits of an atomic group as one.
    pub(super) fn enqueue_gang(&mut self, id: GroupId) -> ShapeId {
        if self.group(id).is_some_and(|group| group.gang.is_some()) {
            self.dequeue_gang(id);
        }
        let group = groups::find_mut(&mut self.jobs, id).expect("the caller has seen the group");
        let waiting = group.roles.iter().filter(|role| role.waiting() > 0);
        let key = waiting.map(|role| (Arc::clone(&role.spec), role.waiting())).collect();
        let shape = self.shapes.intern(ShapeKey::Gang(key));
        group.gang = Some(shape);
        let tasks = group.waiting();
        let entry = self.shapes.get_mut(shape);
        entry.references += 1;
        entry.queue.add(Entry { group: id, role: 0 }, tasks);
        self.shapes.settle(shape, &self.jobs);
        shape
    }

    pub(super) fn dequeue_gang(&mut self, id: GroupId) {
        let group = groups::find_mut(&mut self.jobs, id).expect("the caller has seen the group");
        let shape = group.gang.take().expect("the caller has seen the gang");
        let entry = self.shapes.get_mut(shape);
        entry.queue.tasks -= gang_size(&entry.key);
        self.shapes.settle(shape, &self.jobs);
        self.shapes.release(shape);
    }

    /// Places every waiting task of an atomic group, or nothing.
    pub(super) fn place_gang(&mut self, id: GroupId, turn: &mut Turn) -> bool {
        let group = groups::find(&self.jobs, id).expect("a queued group is there");
        let waiting: Vec<usize> =
            (0..group.roles.len()).filter(|role| group.roles[*role].waiting() > 0).collect();
        let requests: Vec<&Resources> = waiting.iter().map(|role| &group.roles[*role].spec.request).collect();
        let order: Vec<usize> = role_order(&requests).into_iter().map(|index| waiting[index]).collect();
        let Some(nodes) = self.take_room(id, &order) else { return false };
        let group = groups::find_mut(&mut self.jobs, id).expect("a queued group is there");
        let shape = group.gang.take().expect("a queued gang knows its shape");
        self.shapes.get_mut(shape).queue.tasks -= group.waiting();
        let mut nodes = nodes.into_iter();
        for (position, role) in order.iter().enumerate() {
            turn.begin_part(&group.roles[*role].spec, true, false);
            let entry = Entry { group: id, role: *role as u16 };
            for _ in 0..group.roles[*role].waiting() {
                let (index, number) = group.roles[*role].take();
                let node = nodes.next().expect("every task was given a node");
                bind(&mut self.live, &mut self.nodes, group, Bind { entry, index, number, node }, turn);
            }
            if position + 1 < order.len() {
                turn.bind_last_to_next();
            }
        }
        true
    }

    /// Takes room for every waiting task of these roles, or for none of them.
    fn take_room(&mut self, id: GroupId, order: &[usize]) -> Option<Vec<NodeId>> {
        let group = groups::find(&self.jobs, id).expect("the caller has seen the group");
        let roles = || order.iter().map(|role| &group.roles[*role]);
        if roles().any(|role| self.nodes.places_at_most(&role.spec.request) < u64::from(role.waiting())) {
            return None;
        }
        let requests = || {
            roles().flat_map(|role| std::iter::repeat_n(&role.spec.request, role.waiting() as usize))
        };
        let mut taken: Vec<NodeId> = Vec::new();
        for request in requests() {
            match self.nodes.first_fit(request) {
                Some(node) => {
                    self.nodes.take(node, request);
                    taken.push(node);
                }
                None => {
                    for (node, request) in taken.into_iter().zip(requests()) {
                        self.nodes.give_back(node, request);
                    }
                    return None;
                }
            }
        }
        Some(taken)
    }
}

pub(super) fn gang_size(key: &ShapeKey) -> u64 {
    match key {
        ShapeKey::Task(_) => 1,
        ShapeKey::Gang(roles) => roles.iter().map(|(_, count)| u64::from(*count)).sum(),
    }
}
