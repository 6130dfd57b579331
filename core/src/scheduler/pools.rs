//! Pools: which nodes belong to which, and in which order groups that stay in one try them.
//!
//! What is free in a pool in sum is counted when somebody asks first. From then on changed nodes are only
//! remembered until somebody asks again; if so many change that counting anew costs little more, it is
//! forgotten.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::NodeId;
use crate::resources::Resources;

use super::nodes::NodeEntry;

type Entries = [Option<NodeEntry>];

#[derive(Clone, Debug, Default)]
pub(super) struct Pools {
    members: BTreeMap<Arc<str>, BTreeSet<NodeId>>,
    /// Nodes of cordoned pools.
    cordoned: BTreeSet<NodeId>,
    sums: Option<Box<Sums>>,
}

#[derive(Clone, Debug, Default)]
struct Sums {
    /// What is free in each pool on nodes that take work.
    free: BTreeMap<Arc<str>, Vec<i128>>,
    /// By node: what it counts for, and where.
    counted: Vec<Option<(Arc<str>, Resources)>>,
    changed: Vec<NodeId>,
    is_changed: Vec<bool>,
}

impl Sums {
    fn count(&mut self, node: NodeId, entry: Option<&NodeEntry>, width: usize) {
        if self.counted.len() <= node.index() {
            self.counted.resize_with(node.index() + 1, || None);
        }
        let now = entry.filter(|entry| entry.takes_work());
        let now = now.map(|entry| (Arc::from(entry.view.facts.pool.as_str()), entry.free.clone()));
        let before = std::mem::replace(&mut self.counted[node.index()], now.clone());
        for ((pool, free), sign) in before.into_iter().map(|one| (one, -1)).chain(now.map(|one| (one, 1))) {
            let sums = self.free.entry(pool).or_insert_with(|| vec![0; width]);
            for (sum, amount) in sums.iter_mut().zip(free.amounts()) {
                *sum += sign * i128::from(*amount);
            }
        }
    }
}

/// How much is free, to be compared: GPUs, CPUs, memory, declared kinds, slots.
fn weight(free: &[i128]) -> Vec<i128> {
    let scarce = [3, 1, 2].into_iter().chain(4..free.len().max(4)).chain([0]);
    scarce.map(|kind| free.get(kind).copied().unwrap_or(0)).collect()
}

impl Pools {
    pub(super) fn of(entries: &Entries) -> Pools {
        let mut pools = Pools::default();
        for (index, entry) in entries.iter().enumerate() {
            entry.iter().for_each(|entry| pools.enter(NodeId(index as u32), entry));
        }
        pools
    }

    /// A node comes into its pool.
    pub(super) fn enter(&mut self, node: NodeId, entry: &NodeEntry) {
        let pool = entry.view.facts.pool.as_str();
        match self.members.get_mut(pool) {
            Some(members) => drop(members.insert(node)),
            None => drop(self.members.insert(pool.into(), BTreeSet::from([node]))),
        }
        if entry.is_cordoned() {
            self.cordoned.insert(node);
        }
    }

    pub(super) fn leave(&mut self, node: NodeId, entry: &NodeEntry) {
        let pool = entry.view.facts.pool.as_str();
        let members = self.members.get_mut(pool).expect("a node that is there is in its pool");
        members.remove(&node);
        if members.is_empty() {
            self.members.remove(pool);
        }
        self.cordoned.remove(&node);
    }

    /// Whether it makes a difference to stay in one pool.
    pub(super) fn is_divided(&self) -> bool {
        self.members.len() > 1 || !self.cordoned.is_empty()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.members.keys()
    }

    /// The nodes of a pool.
    pub(super) fn members(&self, pool: &str) -> impl Iterator<Item = NodeId> + '_ {
        self.members.get(pool).into_iter().flatten().copied()
    }

    /// The cordoned nodes of a pool.
    pub(super) fn cordoned(&self, pool: &str) -> Vec<NodeId> {
        if self.cordoned.is_empty() {
            return Vec::new();
        }
        self.members(pool).filter(|node| self.cordoned.contains(node)).collect()
    }

    pub(super) fn is_cordoned(&self, node: NodeId) -> bool {
        self.cordoned.contains(&node)
    }

    /// Something about the node has changed.
    pub(super) fn note(&mut self, node: NodeId) {
        let Some(sums) = &mut self.sums else { return };
        if sums.is_changed.len() <= node.index() {
            sums.is_changed.resize(node.index() + 1, false);
        }
        if std::mem::replace(&mut sums.is_changed[node.index()], true) {
            return;
        }
        sums.changed.push(node);
        if sums.changed.len() > sums.counted.len() / 2 + 1_024 {
            self.sums = None;
        }
    }

    /// The pools with room for this in sum: those with the most free first, or with the least where large
    /// places are to stay whole; then by name.
    pub(super) fn in_order(
        &mut self,
        wanted: &Resources,
        packs: bool,
        entries: &Entries,
        width: usize,
    ) -> Vec<Arc<str>> {
        let entry = |node: NodeId| entries.get(node.index()).and_then(Option::as_ref);
        match &mut self.sums {
            Some(sums) => {
                for node in std::mem::take(&mut sums.changed) {
                    sums.is_changed[node.index()] = false;
                    sums.count(node, entry(node), width);
                }
            }
            None => {
                let mut sums = Box::<Sums>::default();
                let all = (0..entries.len()).map(|index| NodeId(index as u32));
                all.for_each(|node| sums.count(node, entry(node), width));
                self.sums = Some(sums);
            }
        }
        let sums = self.sums.as_ref().expect("just counted");
        let free = |pool: &Arc<str>| sums.free.get(pool).map_or(&[] as &[i128], Vec::as_slice);
        let get = |free: &[i128], kind: u16| free.get(usize::from(kind)).copied().unwrap_or(0);
        let has_room = |pool: &&Arc<str>| {
            wanted.iter().all(|(kind, amount)| i128::from(amount) <= get(free(pool), kind.0))
        };
        let mut pools: Vec<Arc<str>> = self.names().filter(has_room).cloned().collect();
        match packs {
            true => pools.sort_by_cached_key(|pool| (weight(free(pool)), Arc::clone(pool))),
            false => pools.sort_by_cached_key(|pool| (Reverse(weight(free(pool))), Arc::clone(pool))),
        }
        pools
    }
}
