//! How much of a group that starts as a whole would find room, and the nearest thing that would let it start.

use std::collections::BTreeSet;

use crate::explanation::{InOnePool, Nearest, NewPlace, NoRoom};
use crate::id::{GroupId, NodeId};
use crate::resources::Resources;
use crate::spec::{Filter, ShapeSpec, Tie};

use super::Scheduler;
use super::groups::{GroupView, RoleView};
use super::nodes::NodeEntry;
use super::obstacles::{self, failures};
use super::packing::Room;
use super::sight::Sight;

/// Some nodes that stand alike, as they are when some tasks were put there.
pub(super) type Rooms<'a> = Vec<(&'a NodeEntry, Room, u64)>;

/// What comes of putting as many tasks of a group as possible on some nodes, one role after the other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Filled {
    pub(super) placed: u64,
    /// Of each role those that find no room.
    pub(super) left: Vec<u64>,
}

/// Puts tasks on nodes: those first that are for one node alone, on nodes that stand alike one after the other.
pub(super) fn fill(roles: &[(&ShapeSpec, u32)], mut rooms: Rooms<'_>) -> Filled {
    let mut filled = Filled { placed: 0, left: vec![0; roles.len()] };
    let minds = roles.iter().any(|(shape, _)| shape.minds_company());
    let mut order: Vec<usize> = (0..roles.len()).collect();
    order.sort_by_key(|role| roles[*role].0.rules.node.is_none());
    for role in order {
        let (shape, tasks) = roles[role];
        let mut left = u64::from(tasks);
        let mut after = Vec::with_capacity(rooms.len() + 2);
        for (node, room, nodes) in rooms {
            let may = left > 0 && !node.keeps_out(shape) && shape.rules.allow(&node.view.facts);
            let each = if may { room.places_for(shape, left) } else { 0 };
            if each == 0 {
                after.push((node, room, nodes));
                continue;
            }
            // So many nodes take as many as they can, one may take the rest.
            let full = nodes.min(left / each);
            let rest = if full < nodes { left - full * each } else { 0 };
            for (nodes, tasks) in [(full, each), (u64::from(rest > 0), rest)] {
                after.push((node, room.with(shape, tasks, minds), nodes));
                left -= nodes * tasks;
                filled.placed += nodes * tasks;
            }
            after.push((node, room, nodes - full - u64::from(rest > 0)));
        }
        after.retain(|(_, _, nodes)| *nodes > 0);
        rooms = after;
        filled.left[role] = left;
    }
    filled
}

/// The roles of a group that look for room, with how many tasks of each are needed.
pub(super) fn wanted(group: &GroupView) -> Vec<(&ShapeSpec, u32)> {
    let roles = group.roles.iter().filter(|role| role.wants_room());
    roles.map(|role: &RoleView| (&*role.spec, role.needed())).collect()
}

impl Scheduler {
    /// Adds what can be said of a group as a whole.
    pub(super) fn explain_whole(&self, id: GroupId, group: &GroupView, sight: &Sight, room: &mut NoRoom) {
        let roles = wanted(group);
        let filled = fill(&roles, self.rooms(&roles, sight, |_| true));
        room.placeable = filled.placed;
        room.in_one_pool = self.in_one_pool(id, &roles, sight);
        room.within = self.within_hops(group, sight);
        room.nearest = self.nearest_start(group, &roles, &filled, room, sight);
    }

    /// The nodes that count and take work, those that stand alike together.
    fn rooms(
        &self,
        roles: &[(&ShapeSpec, u32)],
        sight: &Sight,
        counts: impl Fn(&NodeEntry) -> bool,
    ) -> Rooms<'_> {
        let alike = self.nodes.alike(roles.iter().map(|(shape, _)| *shape), sight.apart()).into_iter();
        let entry = |id: NodeId| self.nodes.get(id).expect("only nodes that are there stand somewhere");
        let seen = alike.map(|(id, nodes)| (entry(id), Room::on(sight.of(id, entry(id)).node), nodes));
        seen.filter(|(node, room, _)| node.view.open && room.is_usable() && counts(node)).collect()
    }

    /// The pool in which most of a group that stays in one would find room.
    fn in_one_pool(&self, id: GroupId, roles: &[(&ShapeSpec, u32)], sight: &Sight) -> Option<InOnePool> {
        if !self.decides_pool(id) {
            return None;
        }
        let wanted = roles.iter().map(|(_, tasks)| u64::from(*tasks)).sum();
        let mut best = InOnePool { placeable: 0, wanted, best: None };
        for pool in self.nodes.pools.names() {
            let in_pool = |node: &NodeEntry| *node.view.facts.pool == **pool;
            let placeable = fill(roles, self.rooms(roles, sight, in_pool)).placed;
            if placeable > best.placeable {
                (best.placeable, best.best) = (placeable, Some(pool.to_string()));
            }
        }
        Some(best)
    }

    /// What would let the group start: room for those tasks that find none. Nothing if no change of nodes
    /// would, or none can be named.
    fn nearest_start(
        &self,
        group: &GroupView,
        roles: &[(&ShapeSpec, u32)],
        filled: &Filled,
        room: &NoRoom,
        sight: &Sight,
    ) -> Option<Nearest> {
        let is_bound_to_nodes = roles.iter().any(|(shape, _)| shape.rules.node.is_some());
        if room.within.is_some() || room.in_one_pool.is_some() {
            // Where one of them has to be nobody can choose, so the others would have to come there.
            return (!is_bound_to_nodes).then(|| self.nearest_together(group, roles, room, sight)).flatten();
        }
        let (mut others, mut named) = (Vec::new(), BTreeSet::new());
        for ((shape, _), left) in roles.iter().zip(&filled.left).filter(|(_, left)| **left > 0) {
            match &shape.rules.node {
                Some(name) => drop(named.insert(name.as_str())),
                None => others.push((*left, self.amounts(&shape.request))),
            }
        }
        let things = named.into_iter().map(|name| self.nearest_on(name, roles, sight));
        let mut things: Vec<Nearest> = things.collect::<Option<_>>()?;
        if !others.is_empty() {
            let place = match self.only_pool(group) {
                Some(pool) => Some(NewPlace::Pool(pool)),
                None => (group.tie != Tie::None).then_some(NewPlace::Together),
            };
            things.push(Nearest::OtherNodes { nodes: others, place });
        }
        match things.len() {
            0 | 1 => things.pop(),
            _ => Some(Nearest::All(things)),
        }
    }

    /// The pool in which all of a group has to be that stays in one, if there is no choice.
    fn only_pool(&self, group: &GroupView) -> Option<String> {
        if group.tie == Tie::None {
            return None;
        }
        let mut pools = self.nodes.pools.names();
        let only = pools.next().filter(|_| pools.next().is_none());
        group.bound.as_ref().or(only).map(ToString::to_string)
    }

    /// What would let those tasks of a group run that are for the node of this name. Nothing if they cannot
    /// be there together.
    fn nearest_on(&self, name: &str, roles: &[(&ShapeSpec, u32)], sight: &Sight) -> Option<Nearest> {
        let here = || roles.iter().filter(|(shape, _)| shape.rules.node.as_deref() == Some(name));
        let (mut need, mut alone) = (Resources::new(), Room::default());
        for (shape, tasks) in here() {
            for (kind, one) in shape.request.iter() {
                need.set(kind, need.get(kind).saturating_add(one.saturating_mul(i64::from(*tasks))));
            }
        }
        alone.free = need.clone();
        for (shape, tasks) in here() {
            if alone.places_for(shape, u64::from(*tasks)) < u64::from(*tasks) {
                return None;
            }
            alone = alone.with(shape, u64::from(*tasks), true);
        }
        let node = name.to_owned();
        let Some((id, entry)) = self.nodes.named(name) else {
            return Some(Nearest::NamedNode { node, request: self.amounts(&need) });
        };
        let seen = sight.of(id, entry);
        let mut filters: BTreeSet<Filter> = here().flat_map(|(shape, _)| failures(shape, seen)).collect();
        if !need.fits_in(&seen.node.free) {
            filters.insert(Filter::Resources);
        }
        let filters: Vec<Filter> = filters.into_iter().collect();
        Some(match filters.as_slice() {
            [] => return None,
            [Filter::Ready] => Nearest::Ready { node },
            [Filter::Resources] if !seen.node.free.has_negative() => {
                let missing = need.lacking_in(&seen.node.free).map(|one| self.amount(one)).collect();
                Nearest::Room { node, missing }
            }
            [only] if *only != Filter::Resources => {
                let kept_out = here().find(|(shape, _)| failures(shape, seen).contains(only));
                let wanted = kept_out.and_then(|(shape, _)| obstacles::wanted(only, shape, seen.bare));
                Nearest::Suitable { node, filter: only.clone(), wanted }
            }
            _ => Nearest::Several { node, filters },
        })
    }

    /// The other nodes with which a group could start whose tasks stay near each other, or in one pool.
    fn nearest_together(
        &self,
        group: &GroupView,
        roles: &[(&ShapeSpec, u32)],
        room: &NoRoom,
        sight: &Sight,
    ) -> Option<Nearest> {
        let nodes = |left: &[u64]| {
            let some = roles.iter().zip(left).filter(|(_, left)| **left > 0);
            some.map(|((shape, _), left)| (*left, self.amounts(&shape.request))).collect::<Vec<_>>()
        };
        let (left, place) = match (&room.within, room.in_one_pool.as_ref().map(|best| &best.best)) {
            (None, Some(Some(pool))) => {
                let in_pool = |node: &NodeEntry| node.view.facts.pool == *pool;
                let filled = fill(roles, self.rooms(roles, sight, in_pool));
                (filled.left, NewPlace::Pool(pool.clone()))
            }
            (Some(_), None) if group.tie == Tie::None => {
                match self.left_in_best_region(group, roles, sight) {
                    Some((path, left)) => (left, NewPlace::Path(path)),
                    None => (all(roles), NewPlace::Together),
                }
            }
            _ => (all(roles), self.only_pool(group).map_or(NewPlace::Together, NewPlace::TogetherIn)),
        };
        let nodes = nodes(&left);
        (!nodes.is_empty()).then_some(Nearest::OtherNodes { nodes, place: Some(place) })
    }
}

fn all(roles: &[(&ShapeSpec, u32)]) -> Vec<u64> {
    roles.iter().map(|(_, tasks)| u64::from(*tasks)).collect()
}
