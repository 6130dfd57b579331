//! The exact search for room: whether the tasks of several roles fit together on a few nodes.
//!
//! Placing roles one after the other can end in a corner: a role that fits anywhere takes the only
//! node on which another fits. A matching finds out where each task gets a node of its own. Where tasks
//! can share nodes every distribution is tried, within a stated bound.

use std::collections::BTreeMap;

use crate::id::NodeId;
use crate::resources::Resources;
use crate::spec::{Company, ShapeSpec};

use super::matching;
use super::nodes::NodeEntry;
use super::scopes::ScopeId;

/// So many tasks with this request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand<'a> {
    pub(super) scope: ScopeId,
    pub(super) shape: &'a ShapeSpec,
    pub(super) tasks: u32,
}

/// Searches over shared nodes with more candidates than this are not begun.
const CANDIDATES_MAX: usize = 64;

/// The search gives up after this many steps and the group waits for more room. Where tasks mind the
/// company each task that comes or goes is a step.
const STEPS_MAX: u32 = 20_000;

/// What is free on a node and who is there, while a distribution is tried.
#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    pub(super) free: Resources,
    pub(super) company: Company,
}

impl Room {
    pub(super) fn on(entry: &NodeEntry) -> Room {
        Room { free: entry.free.clone(), company: entry.company.clone() }
    }

    pub(super) fn admits(&self, shape: &ShapeSpec) -> bool {
        shape.request.fits_in(&self.free) && self.company.admits(shape)
    }

    pub(super) fn take(&mut self, shape: &ShapeSpec) {
        self.free -= &shape.request;
        self.company.join(shape);
    }

    pub(super) fn give_back(&mut self, shape: &ShapeSpec) {
        self.free += &shape.request;
        self.company.leave(shape);
    }

    /// Whether anything at all may be put here.
    pub(super) fn is_usable(&self) -> bool {
        !self.free.has_negative() && !self.company.is_closed()
    }

    /// How many tasks of this shape find room, up to `most`.
    pub(super) fn places_for(&self, shape: &ShapeSpec, most: u64) -> u64 {
        let most = self.places_at_most(shape, most);
        let service = shape.service.as_deref().filter(|_| shape.max_per_node > 0);
        let there = service.map(|(service, _)| self.company.of_service(service));
        there.map_or(most, |there| most.min(u64::from(shape.max_per_node.saturating_sub(there))))
    }

    /// The room when so many tasks that find room were put here. Who minds company wants to know of each.
    pub(super) fn with(&self, shape: &ShapeSpec, tasks: u64, minds: bool) -> Room {
        let free = without_copies(&self.free, &shape.request, tasks);
        let mut company = self.company.clone();
        (0..if minds { tasks } else { 0 }).for_each(|_| company.join(shape));
        Room { free, company }
    }

    /// No more tasks of this shape than these find room.
    fn places_at_most(&self, shape: &ShapeSpec, most: u64) -> u64 {
        if !self.admits(shape) {
            return 0;
        }
        let most = if shape.exclusive || !shape.ports.is_empty() { most.min(1) } else { most };
        shape.request.copies_in(&self.free, most)
    }
}

/// What came of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Packed {
    /// For each demand the nodes of its tasks.
    Found(Vec<Vec<NodeId>>),
    /// Every way was tried, in the order of the demands.
    NoWay,
    /// There were too many ways.
    GivenUp,
}

/// For each demand the nodes of its tasks, or `None` if there is no way within the bounds. Every
/// candidate has room for one task of its demand as things are.
pub(super) fn pack(
    demands: &[(Demand<'_>, &[NodeId])],
    room_on: impl Fn(NodeId) -> Room,
) -> Option<Vec<Vec<NodeId>>> {
    match try_pack(demands, room_on) {
        Packed::Found(places) => Some(places),
        Packed::NoWay | Packed::GivenUp => None,
    }
}

/// The same, for those who must know whether there is no way or none was found.
pub(super) fn try_pack(demands: &[(Demand<'_>, &[NodeId])], room_on: impl Fn(NodeId) -> Room) -> Packed {
    let alone: Vec<(u32, &[NodeId])> = demands.iter().map(|(demand, nodes)| (demand.tasks, *nodes)).collect();
    let mut looks = 0;
    if let Some(found) = matching::one_node_each(&alone, &mut looks) {
        return Packed::Found(found);
    }
    let mut rooms: BTreeMap<NodeId, Room> = BTreeMap::new();
    for node in demands.iter().flat_map(|(_, candidates)| *candidates) {
        rooms.entry(*node).or_insert_with(|| room_on(*node));
        if rooms.len() > CANDIDATES_MAX {
            return Packed::GivenUp;
        }
    }
    if !can_share(demands, &rooms) {
        return if looks > matching::LOOKS_MAX { Packed::GivenUp } else { Packed::NoWay };
    }
    let minds = demands.iter().any(|(demand, _)| demand.shape.minds_company());
    let mut search = Search { demands, minds, rooms, places: vec![Vec::new(); demands.len()], steps: 0 };
    let found = search.place(0, 0, demands.first().map_or(0, |(demand, _)| demand.tasks));
    let expand = |places: Vec<(NodeId, u32)>| {
        places.into_iter().flat_map(|(node, count)| std::iter::repeat_n(node, count as usize)).collect()
    };
    match found {
        true => Packed::Found(search.places.into_iter().map(expand).collect()),
        false if search.steps > STEPS_MAX => Packed::GivenUp,
        false => Packed::NoWay,
    }
}

/// Whether two of these tasks find room together on some node. Where they never do, the matching has
/// given the answer.
fn can_share(demands: &[(Demand<'_>, &[NodeId])], rooms: &BTreeMap<NodeId, Room>) -> bool {
    let share = |first: &(Demand<'_>, &[NodeId]), node: &NodeId, others: &[(Demand<'_>, &[NodeId])]| {
        let mut room = rooms[node].clone();
        room.take(first.0.shape);
        let again = first.0.tasks > 1 && room.admits(first.0.shape);
        again || others.iter().any(|(demand, nodes)| room.admits(demand.shape) && nodes.contains(node))
    };
    let pairs = demands.iter().enumerate();
    pairs.into_iter().any(|(role, first)| {
        let others = &demands[role + 1..];
        first.1.iter().any(|node| share(first, node, others))
    })
}

/// What is left of `free` when it holds so many copies of a request, all of which fit.
pub(super) fn without_copies(free: &Resources, request: &Resources, count: u64) -> Resources {
    let mut left = free.clone();
    for (kind, amount) in request.iter() {
        left.set(kind, left.get(kind) - amount * count as i64);
    }
    left
}

struct Search<'a> {
    demands: &'a [(Demand<'a>, &'a [NodeId])],
    /// Whether it matters to anybody who else is there.
    minds: bool,
    rooms: BTreeMap<NodeId, Room>,
    /// By role: how many tasks on which node.
    places: Vec<Vec<(NodeId, u32)>>,
    steps: u32,
}

impl Search<'_> {
    /// Places `left` tasks of a role on its candidates from `candidate` on, then the other roles.
    fn place(&mut self, role: usize, candidate: usize, left: u32) -> bool {
        self.steps += 1;
        let Some((demand, candidates)) = self.demands.get(role).copied() else { return true };
        if left == 0 {
            let next = self.demands.get(role + 1).map_or(0, |(demand, _)| demand.tasks);
            return self.place(role + 1, 0, next);
        }
        let shape = demand.shape;
        let rooms = candidates[candidate..].iter().map(|node| &self.rooms[node]);
        let room: u64 = rooms.map(|room| room.places_at_most(shape, u64::from(left))).sum();
        if room < u64::from(left) || self.steps > STEPS_MAX {
            return false;
        }
        let node = candidates[candidate];
        let before = self.rooms[&node].free.clone();
        let most = self.fill(node, shape, left);
        let placed = self.places[role].len();
        for count in (0..=most).rev() {
            self.places[role].truncate(placed);
            self.places[role].push((node, count));
            if self.place(role, candidate + 1, left - count) {
                return true;
            }
            if self.steps > STEPS_MAX {
                return false;
            }
            if count > 0 {
                self.take_out(node, shape, &before, count - 1);
            }
        }
        self.places[role].truncate(placed);
        false
    }

    /// Puts as many tasks on a node as find room there, at most `left`, and says how many.
    fn fill(&mut self, node: NodeId, shape: &ShapeSpec, left: u32) -> u32 {
        let room = self.rooms.get_mut(&node).expect("a candidate has a room");
        if !self.minds {
            let count = shape.request.copies_in(&room.free, u64::from(left));
            room.free = without_copies(&room.free, &shape.request, count);
            return count as u32;
        }
        let mut count = 0;
        while count < left && room.admits(shape) {
            room.take(shape);
            count += 1;
        }
        self.steps += count;
        count
    }

    /// Takes one task off a node again, so that `left` of them stay.
    fn take_out(&mut self, node: NodeId, shape: &ShapeSpec, before: &Resources, left: u32) {
        let room = self.rooms.get_mut(&node).expect("a candidate has a room");
        if self.minds {
            room.give_back(shape);
        } else {
            room.free = without_copies(before, &shape.request, u64::from(left));
        }
    }
}

#[cfg(test)]
#[path = "tests/packing.rs"]
mod tests;
