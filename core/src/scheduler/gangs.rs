//! Atomic groups: queued as one, placed whole or not at all. Nothing is held while one waits.

use std::sync::Arc;

use crate::id::{GroupId, NodeId};
use crate::resources::Resources;
use crate::spec::ShapeSpec;

use super::credit;
use super::nodes::Nodes;
use super::packing::{self, Demand};
use super::plan::{Bind, Served, Turn, bind};
use super::queue::Entry;
use super::shapes::{ShapeId, ShapeKey};
use super::{Scheduler, groups};

/// In which order the roles of a gang look for room: the hardest request first, compared from the
/// last kind (the scarcest of the built-in ones) to the first.
fn role_order(requests: &[&Resources]) -> Vec<usize> {
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
        let group = groups::find(&self.jobs, id).expect("the caller has seen the group");
        let waiting = group.roles.iter().filter(|role| role.waiting() > 0);
        let key = waiting.map(|role| (Arc::clone(&role.spec), role.waiting())).collect();
        let (tasks, queued) = (group.waiting(), (group.roles[0].order, Entry { group: id, role: 0 }));
        let leaf = self.place_of(id.job());
        let shape = self.shapes.intern(leaf, ShapeKey::Gang(key), &mut self.nodes);
        self.group_mut(id).expect("the caller has seen the group").gang = Some(shape);
        self.shapes.get_mut(shape).references += 1;
        self.add_waiting(shape, queued, tasks);
        self.shapes.settle(shape, &self.jobs);
        shape
    }

    pub(super) fn dequeue_gang(&mut self, id: GroupId) {
        let group = groups::find_mut(&mut self.jobs, id).expect("the caller has seen the group");
        let shape = group.gang.take().expect("the caller has seen the gang");
        self.take_waiting(shape, gang_size(&self.shapes.get(shape).key));
        self.shapes.settle(shape, &self.jobs);
        self.shapes.release(shape, &mut self.nodes);
    }

    /// Places every waiting task of an atomic group, or nothing.
    pub(super) fn place_gang(&mut self, id: GroupId, turn: &mut Turn) -> Served {
        let group = groups::find(&self.jobs, id).expect("a queued group is there");
        let waiting: Vec<usize> =
            (0..group.roles.len()).filter(|role| group.roles[*role].waiting() > 0).collect();
        let requests: Vec<&Resources> = waiting.iter().map(|role| &group.roles[*role].spec.request).collect();
        let order: Vec<usize> = role_order(&requests).into_iter().map(|index| waiting[index]).collect();
        let (tasks, has_credit) = (group.waiting(), self.has_credit(group.waiting()));
        let Some(nodes) = self.take_room(id, &order) else { return Served::NoRoom };
        if !has_credit {
            self.give_room_back(id, &order, &nodes);
            return Served::NoCredit;
        }
        credit::spend(&mut self.credit, tasks);
        let group = groups::find_mut(&mut self.jobs, id).expect("a queued group is there");
        let shape = group.gang.take().expect("a queued gang knows its shape");
        self.take_waiting(shape, tasks);
        let group = groups::find_mut(&mut self.jobs, id).expect("a queued group is there");
        let mut nodes = nodes.into_iter();
        let mut started = Vec::with_capacity(order.len());
        for (position, role) in order.iter().enumerate() {
            turn.begin_part(&group.roles[*role], true, false);
            let entry = Entry { group: id, role: *role as u16 };
            started.push((entry, group.roles[*role].waiting()));
            for _ in 0..group.roles[*role].waiting() {
                let (index, number) = group.roles[*role].take();
                let node = nodes.next().expect("every task was given a node");
                bind(&mut self.live, &mut self.nodes, group, Bind { entry, index, number, node }, turn);
            }
            if position + 1 < order.len() {
                turn.bind_last_to_next();
            }
        }
        for (entry, tasks) in started {
            self.count_started(turn.now, entry, tasks);
        }
        Served::All
    }

    fn give_room_back(&mut self, id: GroupId, order: &[usize], nodes: &[NodeId]) {
        let group = groups::find(&self.jobs, id).expect("the caller has seen the group");
        let roles = order.iter().map(|role| &group.roles[*role]);
        let shapes = roles.flat_map(|role| std::iter::repeat_n(&role.spec, role.waiting() as usize));
        for (node, shape) in nodes.iter().zip(shapes) {
            self.nodes.give_back(*node, shape);
        }
    }

    /// Takes room for every waiting task of these roles, or for none of them: first each task on
    /// the node with the fewest tasks, and if that ends in a corner, by an exact search.
    fn take_room(&mut self, id: GroupId, order: &[usize]) -> Option<Vec<NodeId>> {
        let group = groups::find(&self.jobs, id).expect("the caller has seen the group");
        let demands: Vec<Demand<'_>> = order
            .iter()
            .map(|role| &group.roles[*role])
            .map(|role| Demand {
                scope: self.shapes.get(role.shape).scopes[0],
                shape: &role.spec,
                tasks: role.waiting(),
            })
            .collect();
        let nodes = &mut self.nodes;
        if demands.iter().any(|demand| nodes.places_at_most(&demand.shape.request) < u64::from(demand.tasks))
        {
            return None;
        }
        // Who minds the company is placed one after the other: the exact search knows of room only.
        let minds = demands.iter().any(|demand| demand.shape.minds_company());
        let take = |nodes: &mut Nodes| {
            take_greedily(nodes, &demands)
                .or_else(|| if minds { None } else { take_exactly(nodes, &demands) })
        };
        // A group that fits without the nodes that come last for it does without them.
        let avoids = demands.iter().any(|demand| nodes.faults.flagged_for(demand.shape).is_some());
        let found = if avoids { nodes.without_flagged(take) } else { None };
        found.or_else(|| take(nodes))
    }
}

fn take_greedily(nodes: &mut Nodes, demands: &[Demand<'_>]) -> Option<Vec<NodeId>> {
    let mut taken: Vec<(NodeId, &ShapeSpec)> = Vec::new();
    for demand in demands {
        for _ in 0..demand.tasks {
            match nodes.first_fit(demand.scope, demand.shape) {
                Some(node) => {
                    nodes.take(node, demand.shape);
                    taken.push((node, demand.shape));
                }
                None => {
                    taken.into_iter().for_each(|(node, shape)| nodes.give_back(node, shape));
                    return None;
                }
            }
        }
    }
    Some(taken.into_iter().map(|(node, _)| node).collect())
}

/// A role for which as many nodes have room as the gang has tasks always finds one that no other
/// task has touched. So only the scarcer roles are searched for, and the others follow.
fn take_exactly(nodes: &mut Nodes, demands: &[Demand<'_>]) -> Option<Vec<NodeId>> {
    let tasks: usize = demands.iter().map(|demand| demand.tasks as usize).sum();
    let candidates: Vec<Vec<NodeId>> =
        demands.iter().map(|demand| nodes.fits(demand.scope, demand.shape, tasks)).collect();
    let scarce: Vec<usize> = (0..demands.len()).filter(|role| candidates[*role].len() < tasks).collect();
    let searched: Vec<(Demand<'_>, &[NodeId])> =
        scarce.iter().map(|role| (demands[*role], candidates[*role].as_slice())).collect();
    let free_on = |node: NodeId| nodes.get(node).expect("the index named it").free.clone();
    let mut found = packing::pack(&searched, free_on)?.into_iter();
    let mut places: Vec<Vec<NodeId>> = vec![Vec::new(); demands.len()];
    for role in &scarce {
        places[*role] = found.next().expect("every searched role has its places");
        places[*role].iter().for_each(|node| nodes.take(*node, demands[*role].shape));
    }
    for (role, demand) in demands.iter().enumerate().filter(|(role, _)| !scarce.contains(role)) {
        for _ in 0..demand.tasks {
            let node = nodes.first_fit(demand.scope, demand.shape).expect("an untouched node has room");
            nodes.take(node, demand.shape);
            places[role].push(node);
        }
    }
    Some(places.concat())
}

pub(super) fn gang_size(key: &ShapeKey) -> u64 {
    match key {
        ShapeKey::Task(_) => 1,
        ShapeKey::Gang(roles) => roles.iter().map(|(_, count)| u64::from(*count)).sum(),
    }
}
