//! Atomic groups: queued as one, placed whole or not at all. Nothing is held while one waits.

use std::sync::Arc;

use crate::id::{GroupId, NodeId};
use crate::mutation::{self, Mutation};
use crate::spec::{Hops, NodeChoice, ShapeSpec};

use super::credit;
use super::groups::{GroupView, RoleView};
use super::guests::Guests;
use super::nodes::Nodes;
use super::packing::{self, Demand, Room};
use super::plan::{Bind, Served, Turn, bind};
use super::queue::Entry;
use super::scopes::ScopeId;
use super::shapes::{ShapeId, ShapeKey, Shapes};
use super::{Scheduler, groups, hops};

/// In which order the roles of a gang look for room: those that mind replicas of their service first, the
/// smallest limit before the larger, so that no later role exceeds the limit of an earlier one; then the
/// hardest request first, compared from the last kind (the scarcest of the built-in ones) to the first.
pub(super) fn role_order(shapes: &[&ShapeSpec]) -> Vec<usize> {
    let kinds = shapes.iter().map(|shape| shape.request.amounts().len()).max().unwrap_or(0);
    let key = |index: &usize| {
        let shape = shapes[*index];
        let limit = if shape.max_per_node == 0 { u32::MAX } else { shape.max_per_node };
        let amounts = shape.request.amounts();
        let reversed: Vec<i64> =
            (0..kinds).rev().map(|kind| amounts.get(kind).copied().unwrap_or(0)).collect();
        (limit, std::cmp::Reverse(reversed), *index)
    };
    let mut order: Vec<usize> = (0..shapes.len()).collect();
    order.sort_by_cached_key(key);
    order
}

impl Scheduler {
    /// Queues everything that waits of an atomic group as one.
    pub(super) fn enqueue_gang(&mut self, id: GroupId) -> ShapeId {
        if self.group(id).is_some_and(|group| group.gang.is_some()) {
            self.dequeue_gang(id);
        }
        let group = groups::find(&self.jobs, id).expect("the caller has seen the group");
        let key = gang_key(group);
        let (tasks, queued) = (group.needed(), (group.roles[0].order, Entry { group: id, role: 0 }));
        let leaf = self.place_of(id);
        let shape = self.shapes.intern(leaf, ShapeKey::Gang(key, group.hops), &mut self.nodes);
        self.group_mut(id).expect("the caller has seen the group").gang = Some(shape);
        self.doubt(id);
        self.shapes.get_mut(shape).references += 1;
        self.add_waiting(shape, queued, tasks);
        self.shapes.settle(shape, &self.jobs);
        shape
    }

    pub(super) fn dequeue_gang(&mut self, id: GroupId) {
        self.touch_age(id);
        let group = groups::find_mut(&mut self.jobs, id).expect("the caller has seen the group");
        let shape = group.gang.take().expect("the caller has seen the gang");
        self.take_waiting(shape, gang_size(&self.shapes.get(shape).key));
        self.shapes.settle(shape, &self.jobs);
        self.shapes.release(shape, &mut self.nodes);
    }

    /// Whether an elastic group is queued with the sizes that it has by now.
    pub(super) fn gang_is_right(&self, group: &GroupView) -> bool {
        let key = group.gang.map(|gang| &self.shapes.get(gang).key);
        key.is_some_and(|key| matches!(key, ShapeKey::Gang(roles, _) if *roles == gang_key(group)))
    }

    /// Places every waiting task of an atomic group, or nothing.
    pub(super) fn place_gang(&mut self, id: GroupId, turn: &mut Turn) -> Served {
        let group = groups::find(&self.jobs, id).expect("a queued group is there");
        // An elastic group starts larger if there is room for that.
        let wishes = group.elastic.is_some().then(|| Sizes::of(group, RoleView::wished));
        let needs = Sizes::of(group, RoleView::needed);
        let wishes = wishes.filter(|wishes| wishes.tasks > needs.tasks && self.has_credit(wishes.tasks));
        let larger = wishes.and_then(|sizes| {
            let nodes = self.take_room_for(id, &sizes)?;
            Some((sizes, nodes))
        });
        let (sizes, nodes) = match larger {
            Some(larger) => larger,
            None => {
                let has_credit = self.has_credit(needs.tasks);
                let Some(nodes) = self.take_room_for(id, &needs) else { return Served::NoRoom };
                if !has_credit {
                    let group = groups::find(&self.jobs, id).expect("a queued group is there");
                    give_back(&mut self.nodes, &demands(group, &needs.roles, &self.shapes), &nodes);
                    return Served::NoCredit;
                }
                (needs, nodes)
            }
        };
        credit::spend(&mut self.credit, sizes.tasks);
        self.bind_gang(id, &sizes, nodes, turn);
        self.starts_with_plan(id);
        Served::All
    }

    /// Where what an atomic group needs to start would go now, by role, with nothing taken.
    pub(super) fn room_for_gang(&mut self, id: GroupId) -> Option<Vec<(u16, NodeId)>> {
        let group = groups::find(&self.jobs, id).expect("a queued group is there");
        let needs = Sizes::of(group, RoleView::needed);
        let nodes = self.take_room_for(id, &needs)?;
        let group = groups::find(&self.jobs, id).expect("a queued group is there");
        give_back(&mut self.nodes, &demands(group, &needs.roles, &self.shapes), &nodes);
        let tasks = |(role, tasks): &(usize, u32)| std::iter::repeat_n(*role as u16, *tasks as usize);
        Some(needs.roles.iter().flat_map(tasks).zip(nodes).collect())
    }

    /// Starts what an atomic group needs, at places that were taken for it in this order.
    pub(super) fn bind_gang_at(&mut self, id: GroupId, places: &[(u16, NodeId)], turn: &mut Turn) {
        let group = groups::find(&self.jobs, id).expect("a queued group is there");
        let needs = Sizes::of(group, RoleView::needed);
        let nodes = places.iter().map(|(_, node)| *node).collect();
        self.bind_gang(id, &needs, nodes, turn);
        self.starts_with_plan(id);
    }

    /// Takes room for so much of a group or for none of it: where none of it has failed before, if that is
    /// possible.
    fn take_room_for(&mut self, id: GroupId, sizes: &Sizes) -> Option<Vec<NodeId>> {
        let group = groups::find(&self.jobs, id).expect("a queued group is there");
        let mut avoided: Vec<NodeId> = group.roles.iter().flat_map(RoleView::avoided).collect();
        avoided.sort_unstable();
        avoided.dedup();
        if !avoided.is_empty() {
            let set_aside = self.nodes.set_aside(&avoided);
            let found = self.take_room_anywhere(id, sizes);
            for (node, free) in set_aside {
                self.nodes.release(node, &free);
            }
            if found.is_some() {
                return found;
            }
        }
        self.take_room_anywhere(id, sizes)
    }

    /// The same in one pool if the group stays in one, or if others are not to be used.
    fn take_room_anywhere(&mut self, id: GroupId, sizes: &Sizes) -> Option<Vec<NodeId>> {
        let decides_pool = self.decides_pool(id) || !self.claims.barred.is_empty();
        let group = groups::find(&self.jobs, id).expect("a queued group is there");
        let demands = demands(group, &sizes.roles, &self.shapes);
        if !decides_pool {
            return take_room(&mut self.nodes, &demands, group.hops);
        }
        let packs = self.settings.placement == NodeChoice::Pack;
        let shapes: Vec<ShapeId> = sizes.roles.iter().map(|(role, _)| group.roles[*role].shape).collect();
        let in_order = self.nodes.pools_in_order(&hops::wanted(&demands), packs);
        let allowed = in_order.into_iter().filter(|pool| !self.claims.barred.contains(pool));
        allowed.collect::<Vec<_>>().into_iter().find_map(|pool| {
            let shapes = shapes.iter().map(|shape| self.shapes.in_pool(*shape, &pool, &mut self.nodes));
            let bound: Vec<(Arc<ShapeSpec>, ScopeId)> = shapes.collect();
            let there = demands.iter().zip(&bound);
            let there = there.map(|(demand, (shape, scope))| Demand { scope: *scope, shape, ..*demand });
            take_room(&mut self.nodes, &there.collect::<Vec<_>>(), group.hops)
        })
    }

    /// Enters the tasks of a gang on the nodes that were taken for them.
    fn bind_gang(&mut self, id: GroupId, sizes: &Sizes, mut nodes: Vec<NodeId>, turn: &mut Turn) {
        let group = groups::find_mut(&mut self.jobs, id).expect("a queued group is there");
        let shape = group.gang.take().expect("a queued gang knows its shape");
        self.take_waiting(shape, gang_size(&self.shapes.get(shape).key));
        let group = groups::find_mut(&mut self.jobs, id).expect("a queued group is there");
        let mut rest = &mut nodes[..];
        for (role, tasks) in &sizes.roles {
            let (of_role, others) = rest.split_at_mut(*tasks as usize);
            group.roles[*role].swap_avoided(of_role);
            rest = others;
        }
        let mut nodes = nodes.into_iter();
        let mut started = Vec::with_capacity(sizes.roles.len());
        let mut guests = Guests::of(group);
        for (position, (role, tasks)) in sizes.roles.iter().enumerate() {
            turn.begin_part(&group.roles[*role], true, false);
            let entry = Entry { group: id, role: *role as u16 };
            started.push((entry, *tasks));
            for _ in 0..*tasks {
                let (index, number) = group.roles[*role].take();
                let node = nodes.next().expect("every task was given a node");
                bind(&mut self.live, &mut self.nodes, group, Bind { entry, index, number, node }, turn);
                guests.note_host(*role, index, node);
            }
            if position + 1 < sizes.roles.len() {
                turn.bind_last_to_next();
            }
        }
        started.extend(guests.bind_all(id, group, &mut self.live, &mut self.nodes, turn));
        for (entry, tasks) in started {
            self.count_started(turn.now, entry, tasks);
        }
    }
}

/// How many tasks of which roles start together, in the order in which they look for room.
struct Sizes {
    roles: Vec<(usize, u32)>,
    tasks: u64,
}

impl Sizes {
    fn of(group: &GroupView, size: impl Fn(&RoleView) -> u32) -> Sizes {
        let tasks = group.roles.iter().map(|role| u64::from(size(role))).sum();
        // Guests look for no room of their own.
        let hosts = group.roles.iter().enumerate().filter(|(_, role)| role.spec.guest_of.is_none());
        let roles: Vec<(usize, u32)> =
            hosts.map(|(index, role)| (index, size(role))).filter(|(_, tasks)| *tasks > 0).collect();
        let shapes: Vec<&ShapeSpec> = roles.iter().map(|(role, _)| &*group.roles[*role].spec).collect();
        Sizes { roles: role_order(&shapes).into_iter().map(|index| roles[index]).collect(), tasks }
    }
}

/// What a group is queued as: so many tasks of which shapes are needed together.
fn gang_key(group: &GroupView) -> Vec<(Arc<ShapeSpec>, u32)> {
    let needed = group.roles.iter().map(|role| (role, role.needed())).filter(|(_, needed)| *needed > 0);
    needed.map(|(role, needed)| (Arc::clone(&role.spec), needed)).collect()
}

fn demands<'a>(group: &'a GroupView, sizes: &[(usize, u32)], shapes: &Shapes) -> Vec<Demand<'a>> {
    let demand = |(role, tasks): &(usize, u32)| {
        let role: &'a RoleView = &group.roles[*role];
        Demand { scope: shapes.get(role.shape).scopes[0], shape: &role.spec, tasks: *tasks }
    };
    sizes.iter().map(demand).collect()
}

/// Takes room for all of these tasks, or for none of them.
fn take_room(nodes: &mut Nodes, demands: &[Demand<'_>], hops: Option<Hops>) -> Option<Vec<NodeId>> {
    if demands.iter().any(|demand| nodes.places_at_most(&demand.shape.request) < u64::from(demand.tasks)) {
        return None;
    }
    let is_near = hops.is_some() || demands.iter().any(|demand| demand.shape.hops.is_some());
    let is_near = is_near && !mutation::active(Mutation::IgnoreHops);
    let take = |nodes: &mut Nodes| match is_near {
        true => hops::take_near(nodes, demands, hops),
        false => take_anywhere(nodes, demands),
    };
    // A group that fits without the nodes that come last for it does without them.
    let avoids = demands.iter().any(|demand| nodes.faults.flagged_for(demand.shape).is_some());
    let found = if avoids { nodes.without_flagged(take) } else { None };
    found.or_else(|| take(nodes))
}

/// Takes room for all of these tasks wherever it is, or for none of them: first each task on the node with
/// the fewest tasks, and if that ends in a corner, by an exact search.
pub(super) fn take_anywhere(nodes: &mut Nodes, demands: &[Demand<'_>]) -> Option<Vec<NodeId>> {
    take_greedily(nodes, demands).or_else(|| take_exactly(nodes, demands))
}

/// Gives back what was taken for these tasks, role by role.
pub(super) fn give_back(nodes: &mut Nodes, demands: &[Demand<'_>], places: &[NodeId]) {
    let shapes = demands.iter().flat_map(|demand| std::iter::repeat_n(demand.shape, demand.tasks as usize));
    for (node, shape) in places.iter().zip(shapes) {
        nodes.give_back(*node, shape);
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
    let room_on = |node: NodeId| Room::on(nodes.get(node).expect("the index named it"));
    let mut found = packing::pack(&searched, room_on)?.into_iter();
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
        ShapeKey::Gang(roles, _) => roles.iter().map(|(_, count)| u64::from(*count)).sum(),
    }
}
