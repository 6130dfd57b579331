//! The exact search for room: whether the tasks of several roles fit together on a few nodes.
//!
//! Placing roles one after the other can end in a corner: a role that fits anywhere takes the only
//! node on which another fits. This search tries every distribution, within a stated bound.

use std::collections::BTreeMap;

use crate::id::NodeId;
use crate::resources::Resources;
use crate::spec::ShapeSpec;

use super::scopes::ScopeId;

/// So many tasks with this request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand<'a> {
    pub(super) scope: ScopeId,
    pub(super) shape: &'a ShapeSpec,
    pub(super) tasks: u32,
}

/// Searches with more candidate nodes than this are not begun.
const CANDIDATES_MAX: usize = 64;

/// The search gives up after this many steps and the group waits for more room.
const STEPS_MAX: u32 = 20_000;

/// For each demand the nodes of its tasks, or `None` if there is no way within the bounds.
pub(super) fn pack(
    demands: &[(Demand<'_>, &[NodeId])],
    free_on: impl Fn(NodeId) -> Resources,
) -> Option<Vec<Vec<NodeId>>> {
    let mut free: BTreeMap<NodeId, Resources> = BTreeMap::new();
    for node in demands.iter().flat_map(|(_, candidates)| *candidates) {
        free.entry(*node).or_insert_with(|| free_on(*node));
    }
    if free.len() > CANDIDATES_MAX {
        return None;
    }
    let mut search = Search { demands, free, places: vec![Vec::new(); demands.len()], steps: 0 };
    let found = search.place(0, 0, demands.first().map_or(0, |(demand, _)| demand.tasks));
    let expand = |places: Vec<(NodeId, u32)>| {
        places.into_iter().flat_map(|(node, count)| std::iter::repeat_n(node, count as usize)).collect()
    };
    found.then(|| search.places.into_iter().map(expand).collect())
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
    free: BTreeMap<NodeId, Resources>,
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
        let room = candidates[candidate..].iter();
        let room: u64 =
            room.map(|node| demand.shape.request.copies_in(&self.free[node], u64::from(left))).sum();
        if room < u64::from(left) || self.steps > STEPS_MAX {
            return false;
        }
        let node = candidates[candidate];
        let most = demand.shape.request.copies_in(&self.free[&node], u64::from(left)) as u32;
        let before = self.free[&node].clone();
        let placed = self.places[role].len();
        for count in (0..=most).rev() {
            self.free.insert(node, without_copies(&before, &demand.shape.request, u64::from(count)));
            self.places[role].truncate(placed);
            self.places[role].push((node, count));
            if self.place(role, candidate + 1, left - count) {
                return true;
            }
            if self.steps > STEPS_MAX {
                break;
            }
        }
        self.free.insert(node, before);
        self.places[role].truncate(placed);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::KindId;
    use crate::scheduler::scopes::EVERYWHERE;

    #[test]
    fn a_role_that_fits_anywhere_leaves_the_only_node_of_another() {
        let (cpu, gpu) = (KindId(1), KindId(3));
        let mut both = Resources::of(cpu, 1);
        both.set(gpu, 1);
        let plain = Resources::of(cpu, 1);
        let shape = |request: &Resources| ShapeSpec { request: request.clone(), ..ShapeSpec::default() };
        let (plain_task, both_task) = (shape(&plain), shape(&both));
        let (any, only) = ([NodeId(0), NodeId(1)], [NodeId(0)]);
        let demands = [
            (Demand { scope: EVERYWHERE, shape: &plain_task, tasks: 1 }, any.as_slice()),
            (Demand { scope: EVERYWHERE, shape: &both_task, tasks: 1 }, only.as_slice()),
        ];
        let free_on = |node: NodeId| if node == NodeId(0) { both.clone() } else { plain.clone() };
        assert_eq!(pack(&demands, free_on), Some(vec![vec![NodeId(1)], vec![NodeId(0)]]));
        let twice =
            [demands[1], (Demand { scope: EVERYWHERE, shape: &both_task, tasks: 1 }, only.as_slice())];
        assert_eq!(pack(&twice, free_on), None);
    }

    #[test]
    fn the_search_is_bounded() {
        let request = Resources::of(KindId(1), 1);
        let nodes: Vec<NodeId> = (0..=CANDIDATES_MAX as u32).map(NodeId).collect();
        let shape = ShapeSpec { request: request.clone(), ..ShapeSpec::default() };
        let demand = Demand { scope: EVERYWHERE, shape: &shape, tasks: 1 };
        assert_eq!(pack(&[(demand, &nodes)], |_| request.clone()), None);
    }
}
