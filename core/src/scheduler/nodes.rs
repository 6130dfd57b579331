//! The Scheduler's view of the nodes: what each offers, what the Scheduler has charged to it, and
//! the index that finds the node with the fewest tasks among those with room.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::collections::{Chain, FitTree, reach};
use crate::id::{NodeId, Slot};
use crate::messages::NodeView;
use crate::resources::{KindId, Resources};
use crate::settings::FaultySettings;
use crate::spec::{Company, Filters, KnownFacts, NodeChoice, NodeFacts, PoolState, ShapeSpec};

use super::faults::Faults;
use super::live::LiveTable;
use super::pools::Pools;
use super::row::{Fullness, key, next_level};
use super::scopes::{EVERYWHERE, ScopeId, Scopes};
use super::standings::{Alike, Standings};
use super::topology::Topology;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Nodes {
    entries: Vec<Option<NodeEntry>>,
    /// Nodes that take work, by their [`key`], with what is free on them.
    #[serde(skip, default = "empty_index")]
    index: FitTree<u64>,
    /// The sum of what is free on indexed nodes, by kind.
    #[serde(skip)]
    open_free: Vec<i128>,
    /// The sum of what the nodes offer that take work, full or not, by kind.
    #[serde(skip)]
    capacity: Vec<i128>,
    pub(super) scopes: Scopes,
    /// For those who ask how the nodes stand.
    #[serde(skip)]
    standings: Standings,
    pub(super) faults: Faults,
    /// Nodes on which too much failed.
    #[serde(skip)]
    broken_down: BTreeSet<NodeId>,
    /// For as long as somebody looks for places without them, flagged nodes are none.
    #[serde(skip)]
    pub(super) flagged_excluded: bool,
    #[serde(skip)]
    topology: Topology,
    #[serde(skip)]
    pub(super) pools: Pools,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct NodeEntry {
    pub(super) view: NodeView,
    /// Capacity minus everything charged, also what is still on its way to the ledger.
    pub(super) free: Resources,
    pub(super) company: Company,
    pub(super) attempts: Chain,
    /// What the last task that was placed here starts from, where it starts from a snapshot.
    pub(super) snapshot: Option<Arc<str>>,
    /// For as long as somebody looks for a place for whom it is kept, it is not kept.
    #[serde(skip)]
    lifted: bool,
}

fn empty_index() -> FitTree<u64> {
    FitTree::new(u64::MAX, 0)
}

impl NodeEntry {
    /// Whether new work may be put here, room permitting. A deficit of any kind closes the node.
    pub(super) fn takes_work(&self) -> bool {
        self.view.open
            && (!self.is_withheld() || self.lifted)
            && !self.free.has_negative()
            && !self.company.is_closed()
    }

    /// Whether its pool takes only more of what is bound to it.
    pub(super) fn is_cordoned(&self) -> bool {
        self.view.state.pool == PoolState::Cordoned
    }

    /// Whether it is kept for some, who look for it apart from all others.
    pub(super) fn is_withheld(&self) -> bool {
        self.is_cordoned()
    }

    /// Whether it takes no new work of this shape, room and rules apart.
    pub(super) fn keeps_out(&self, shape: &ShapeSpec) -> bool {
        let is_bound = shape.rules.bound_pool.as_deref() == Some(&*self.view.facts.pool);
        !self.view.open || (self.is_cordoned() && !is_bound)
    }

    /// Whether a task of this shape may be put here now, rules apart.
    pub(super) fn has_room_for(&self, shape: &ShapeSpec) -> bool {
        self.takes_work() && shape.request.fits_in(&self.free) && self.company.admits(shape)
    }
}

impl Nodes {
    pub(super) fn new(width: usize, choice: NodeChoice, faulty: FaultySettings) -> Nodes {
        Nodes {
            entries: Vec::new(),
            index: FitTree::new(u64::MAX, width),
            open_free: vec![0; width],
            capacity: vec![0; width],
            scopes: Scopes::new(choice),
            standings: Standings::default(),
            faults: Faults::new(faulty),
            broken_down: BTreeSet::new(),
            flagged_excluded: false,
            topology: Topology::default(),
            pools: Pools::default(),
        }
    }

    pub(super) fn rebuild(&mut self, width: usize) {
        self.index = FitTree::new(u64::MAX, width);
        self.open_free = vec![0; width];
        self.capacity = vec![0; width];
        let mut known = KnownFacts::default();
        for entry in self.entries.iter_mut().flatten() {
            known.enter(&mut entry.view.facts);
        }
        for index in 0..self.entries.len() {
            self.enter(NodeId(index as u32));
        }
        self.scopes.rebuild(&self.entries);
        self.standings.forget();
        self.faults.rebuild();
        let broken_down = self.iter().filter(|(_, entry)| entry.view.breakdown.is_some());
        self.broken_down = broken_down.map(|(id, _)| id).collect();
        self.topology = Topology::default();
        self.pools = Pools::of(&self.entries);
    }

    pub(super) fn equip(&mut self, filters: &Filters) {
        for entry in self.entries.iter_mut().flatten() {
            NodeFacts::be_judged_by(&mut entry.view.facts, filters);
        }
    }

    /// The scope of this shape; it is to be released once.
    pub(super) fn intern_scope(&mut self, shape: &ShapeSpec) -> ScopeId {
        self.scopes.intern(shape, &self.entries)
    }

    pub(super) fn get(&self, id: NodeId) -> Option<&NodeEntry> {
        self.entries.get(id.index())?.as_ref()
    }

    /// The nodes that broke down and that tasks of this shape might be for, by id.
    pub(super) fn broken_down(&self, shape: &ShapeSpec) -> impl Iterator<Item = &NodeEntry> {
        let entries = self.broken_down.iter().filter_map(|id| self.get(*id));
        entries.filter(|entry| shape.rules.node.as_ref().is_none_or(|name| *name == entry.view.facts.name))
    }

    /// No node has this id or a larger one.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, &NodeEntry)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(index, entry)| entry.as_ref().map(|entry| (NodeId(index as u32), entry)))
    }

    /// The same, beginning anywhere: behind the last comes the first.
    pub(super) fn iter_from(&self, start: usize) -> impl Iterator<Item = (NodeId, &NodeEntry)> {
        let (before, after) = self.entries.split_at(start % self.entries.len().max(1));
        let ids = (before.len()..self.entries.len()).chain(0..before.len());
        let entries = ids.zip(after.iter().chain(before));
        entries.filter_map(|(index, entry)| entry.as_ref().map(|entry| (NodeId(index as u32), entry)))
    }

    /// Takes in what ClusterState says of a node; what is charged to it stays charged.
    pub(super) fn update(&mut self, id: NodeId, view: NodeView) {
        reach(&mut self.entries, id.index(), || None);
        self.leave(id);
        match view.breakdown.is_some() {
            true => self.broken_down.insert(id),
            false => self.broken_down.remove(&id),
        };
        match &mut self.entries[id.index()] {
            Some(entry) => {
                entry.free -= &entry.view.offered();
                entry.free += &view.offered();
                self.pools.leave(id, entry);
                entry.view = view;
                self.pools.enter(id, entry);
            }
            vacant => {
                let free = view.offered();
                let (company, attempts) = (Company::default(), Chain::default());
                let entry = NodeEntry { view, free, company, attempts, snapshot: None, lifted: false };
                self.pools.enter(id, &entry);
                *vacant = Some(entry);
            }
        }
        self.enter(id);
        self.scopes.judge(id, self.entries[id.index()].as_ref());
        self.scopes.note(id, self.entries.len());
        self.standings.note(id, self.entries.len());
        self.topology.note(id);
        self.pools.note(id);
    }

    /// Drops a node and names the attempts whose placements on it are still on their way.
    pub(super) fn remove(&mut self, id: NodeId, live: &LiveTable) -> Vec<Slot> {
        if self.get(id).is_none() {
            return Vec::new();
        }
        self.leave(id);
        let entry = self.entries[id.index()].take().expect("checked above");
        self.scopes.judge(id, None);
        self.faults.forget_node(id);
        self.broken_down.remove(&id);
        self.scopes.forget(id, &entry);
        self.pools.leave(id, &entry);
        self.scopes.note(id, self.entries.len());
        self.standings.note(id, self.entries.len());
        self.topology.note(id);
        self.pools.note(id);
        live.on_node(entry.attempts).map(|live| live.attempt.slot).collect()
    }

    /// Takes room on a node for one task.
    pub(super) fn take(&mut self, id: NodeId, shape: &ShapeSpec) {
        self.change(id, |entry| {
            entry.free -= &shape.request;
            entry.company.join(shape);
        });
    }

    /// Gives back the room of one task.
    pub(super) fn give_back(&mut self, id: NodeId, shape: &ShapeSpec) {
        self.change(id, |entry| {
            entry.free += &shape.request;
            entry.company.leave(shape);
        });
    }

    /// Keeps an amount of a node back for somebody who is to come.
    pub(super) fn keep(&mut self, id: NodeId, amount: &Resources) {
        self.change(id, |entry| entry.free -= amount);
    }

    /// Gives back an amount that was kept.
    pub(super) fn release(&mut self, id: NodeId, amount: &Resources) {
        self.change(id, |entry| entry.free += amount);
    }

    /// Keeps everything that is free on these nodes back; the answer is what has to be released again.
    pub(super) fn set_aside(&mut self, nodes: &[NodeId]) -> Vec<(NodeId, Resources)> {
        let mut set_aside = Vec::with_capacity(nodes.len());
        for id in nodes {
            let Some(free) = self.get(*id).map(|entry| entry.free.clone()) else { continue };
            if free.has_negative() {
                continue;
            }
            self.keep(*id, &free);
            set_aside.push((*id, free));
        }
        set_aside
    }

    /// Takes room for up to `most` tasks, one on each node that has room and as few tasks as
    /// `first`, the first fit, by id, and shows each to `bind`. Says for how many.
    pub(super) fn take_level(
        &mut self,
        first: NodeId,
        shape: &ShapeSpec,
        most: u32,
        mut bind: impl FnMut(NodeId, &mut NodeEntry),
    ) -> u32 {
        let request = &shape.request;
        let level = next_level(key(first, self.get(first).expect("the index named it")));
        let (mut taken, nodes) = (0, self.entries.len());
        self.index.sweep(request.amounts(), level, |index, mut place| {
            let id = NodeId(index as u32);
            let entry = self.entries[index].as_mut().expect("the index named it");
            entry.free -= request;
            entry.company.join(shape);
            // What fits leaves nothing negative behind: the node stays in the index.
            place.set(key(id, entry), entry.free.amounts());
            self.scopes.remember(id, entry, shape);
            bind(id, entry);
            self.scopes.note(id, nodes);
            self.standings.note(id, nodes);
            self.topology.note(id);
            self.pools.note(id);
            taken += 1;
            if taken == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        add(&mut self.open_free, request, -i128::from(taken));
        taken
    }

    /// Takes room for up to `most` tasks on one node, as far as it goes, and says for how many.
    pub(super) fn take_several(&mut self, id: NodeId, shape: &ShapeSpec, most: u32) -> u32 {
        let mut taken = 0;
        self.change(id, |entry| {
            taken = shape.request.copies_in(&entry.free, u64::from(most)) as u32;
            for _ in 0..taken {
                entry.free -= &shape.request;
                entry.company.join(shape);
            }
        });
        taken
    }

    /// A task of this shape was placed on the node, whose room it has taken already.
    pub(super) fn remember(&mut self, id: NodeId, shape: &ShapeSpec) {
        if shape.guest_of.is_some() {
            return;
        }
        let entry = self.entries[id.index()].as_mut().expect("work is bound to a node that is there");
        if self.scopes.remember(id, entry, shape) {
            self.scopes.note(id, self.entries.len());
        }
    }

    /// A node to which an attempt is to be bound.
    pub(super) fn entry_mut(&mut self, id: NodeId) -> &mut NodeEntry {
        self.entries[id.index()].as_mut().expect("work is bound to a node that is there")
    }

    pub(super) fn unlink(&mut self, id: NodeId, slot: Slot, live: &mut LiveTable) {
        let entry = self.entries[id.index()].as_mut().expect("a node outlives its attempts");
        live.unlink_node(&mut entry.attempts, slot);
    }

    /// The node of the scope that comes first for this shape among those with room: one that is warm for
    /// it where that counts, then in the order of the scope. Flagged nodes come after all others.
    pub(super) fn first_fit(&mut self, scope: ScopeId, shape: &ShapeSpec) -> Option<NodeId> {
        let flagged = self.avoided_by(shape);
        if flagged.is_some() {
            let found = self.first_fit_without(scope, shape, flagged.as_ref());
            if found.is_some() || self.flagged_excluded {
                return found;
            }
        }
        self.first_fit_without(scope, shape, None)
    }

    fn first_fit_without(
        &mut self,
        scope: ScopeId,
        shape: &ShapeSpec,
        flagged: Option<&Arc<Vec<NodeId>>>,
    ) -> Option<NodeId> {
        let (entries, width) = (&self.entries, self.index.width());
        if let Some(warm) = self.scopes.warm_fit(scope, shape, flagged, entries, width) {
            return Some(warm);
        }
        if self.scopes.is_plain(scope) {
            let admits = |index: usize| admits(entries, index, shape);
            let found = self.index.first_fit_where(shape.request.amounts(), admits);
            return found.map(|index| NodeId(index as u32));
        }
        if let Some(found) = self.scopes.at_a_glance(scope, shape, flagged, entries, &self.index) {
            return found;
        }
        self.scopes.first_fit(scope, shape, flagged, entries, width)
    }

    /// How full a node is, to be compared with others.
    pub(super) fn fullness(&self, id: NodeId, entry: &NodeEntry) -> Fullness {
        Fullness::of(id, entry.free.amounts(), self.index.width())
    }

    /// Up to `most` nodes of the scope that have room for this: those that come first, listed by id.
    pub(super) fn fits(&mut self, scope: ScopeId, shape: &ShapeSpec, most: usize) -> Vec<NodeId> {
        let flagged = self.avoided_by(shape).filter(|_| self.flagged_excluded);
        if scope.realm == EVERYWHERE.realm && flagged.is_none() {
            let admits = |index: usize| admits(&self.entries, index, shape);
            let found = self.index.fits_where(shape.request.amounts(), most, admits);
            return found.into_iter().map(|index| NodeId(index as u32)).collect();
        }
        self.scopes.fits(scope, shape, most, flagged.as_ref(), &self.entries, self.index.width())
    }

    /// The node of this name.
    pub(super) fn named(&self, name: &str) -> Option<(NodeId, &NodeEntry)> {
        let id = self.standings.named(name, &self.entries)?;
        Some((id, self.get(id)?))
    }

    /// Gets ready for questions about how the nodes stand.
    pub(super) fn prepare_to_explain(&mut self) {
        self.standings.catch_up(&self.entries);
    }

    /// All nodes, by the first of those that stand alike for all of these shapes; those on which something
    /// is `kept` each for itself.
    pub(super) fn alike<'a>(
        &self,
        shapes: impl Iterator<Item = &'a ShapeSpec> + Clone,
        kept: BTreeSet<NodeId>,
    ) -> Vec<Alike> {
        self.standings.alike(shapes, kept, &self.entries)
    }

    /// Whether those who ask how the nodes stand hear the truth.
    pub(super) fn standings_are_true(&self) -> bool {
        self.standings.is_true(&self.entries)
    }

    /// The network tree, as things stand now.
    pub(super) fn topology(&mut self) -> &Topology {
        self.topology.catch_up(&self.entries, self.index.width());
        &self.topology
    }

    /// An upper bound on how many such requests fit on all nodes together.
    pub(super) fn places_at_most(&self, request: &Resources) -> u64 {
        if self.index.min_key().is_none() {
            return 0;
        }
        let by_kind = request.iter().map(|(kind, amount)| self.open_free(kind) / i128::from(amount));
        by_kind.min().map_or(u64::MAX, |places| places.clamp(0, i128::from(u64::MAX)) as u64)
    }

    pub(super) fn open_free(&self, kind: KindId) -> i128 {
        self.open_free.get(usize::from(kind.0)).copied().unwrap_or(0)
    }

    /// What the nodes offer that take work, full or not.
    pub(super) fn capacity(&self, kind: KindId) -> i128 {
        self.capacity.get(usize::from(kind.0)).copied().unwrap_or(0)
    }

    /// Lets these nodes be found, or keeps them again, for whom they are withheld.
    pub(super) fn lift(&mut self, nodes: &[NodeId], lifted: bool) {
        for node in nodes.iter().filter(|node| self.get(**node).is_some()).copied().collect::<Vec<_>>() {
            self.change(node, |entry| entry.lifted = lifted);
        }
    }

    /// The pools with room for all of this in sum, in the order in which they are tried.
    pub(super) fn pools_in_order(&mut self, wanted: &Resources, packs: bool) -> Vec<Arc<str>> {
        self.pools.in_order(wanted, packs, &self.entries, self.index.width())
    }

    pub(super) fn change(&mut self, id: NodeId, change: impl FnOnce(&mut NodeEntry)) {
        let entry = self.entries[id.index()].as_mut().expect("the caller has seen the node");
        let was_indexed = entry.takes_work();
        if was_indexed {
            add(&mut self.open_free, &entry.free, -1);
        }
        change(entry);
        if entry.takes_work() {
            add(&mut self.open_free, &entry.free, 1);
            self.index.set(id.index(), key(id, entry), entry.free.amounts());
        } else if was_indexed {
            self.index.remove(id.index());
        }
        self.scopes.note(id, self.entries.len());
        self.standings.note(id, self.entries.len());
        self.topology.note(id);
        self.pools.note(id);
    }

    fn enter(&mut self, id: NodeId) {
        let Some(entry) = self.entries[id.index()].as_ref() else { return };
        if entry.view.open {
            add(&mut self.capacity, &entry.view.offered(), 1);
        }
        if entry.takes_work() {
            add(&mut self.open_free, &entry.free, 1);
            self.index.set(id.index(), key(id, entry), entry.free.amounts());
        }
    }

    fn leave(&mut self, id: NodeId) {
        let Some(entry) = self.entries[id.index()].as_ref() else { return };
        if entry.view.open {
            add(&mut self.capacity, &entry.view.offered(), -1);
        }
        if entry.takes_work() {
            add(&mut self.open_free, &entry.free, -1);
            self.index.remove(id.index());
        }
    }
}

/// Whether the company on an indexed node lets a task of this shape in.
pub(super) fn admits(entries: &[Option<NodeEntry>], index: usize, shape: &ShapeSpec) -> bool {
    // Most tasks do not mind, and a node that somebody has for itself is in no index.
    !shape.minds_company() || entries[index].as_ref().is_some_and(|entry| entry.company.admits(shape))
}

fn add(sums: &mut [i128], amounts: &Resources, times: i128) {
    for (sum, amount) in sums.iter_mut().zip(amounts.amounts()) {
        *sum += times * i128::from(*amount);
    }
}
