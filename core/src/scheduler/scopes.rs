//! Scopes: the nodes that a set of rules allows, in the order a service wants them, interned, with an
//! index of their own.
//!
//! The scope of everything needs none of this and costs nothing. Whether a node belongs to a scope is
//! decided once, when one of the two is new or the node has changed. The index of a scope is not kept
//! current with every change: it catches up from a shared log when somebody asks, so a change costs the
//! same however many scopes there are. Tasks that are for one named node need no index at all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::collections::FitTree;
use crate::constraint::Key;
use crate::id::NodeId;
use crate::spec::{Rules, ShapeSpec};

use super::nodes::{NodeEntry, admits, key};
use super::spread::SpreadTree;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct ScopeId(pub(super) u32);

/// The scope of all nodes.
pub(super) const EVERYWHERE: ScopeId = ScopeId(0);

/// Nodes in all indexes together. Beyond that the index that was not asked for the longest time goes,
/// and is built anew when somebody asks.
const INDEXED_MAX: usize = 4_000_000;

/// What two shapes must share to look for nodes in the same way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
struct ScopeKey {
    rules: Rules,
    /// Tasks of this service are spread, over these facts first.
    spread: Option<(String, Vec<Key>)>,
}

type Entries = [Option<NodeEntry>];

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Scopes {
    /// The scope with id `n` stands at `n - 1`.
    entries: Vec<Option<Scope>>,
    vacant: Vec<ScopeId>,
    #[serde(skip)]
    interned: BTreeMap<Arc<ScopeKey>, ScopeId>,
    /// Scopes that may have several nodes.
    #[serde(skip)]
    wide: Vec<ScopeId>,
    /// Scopes for one node, by its name.
    #[serde(skip)]
    pinned: BTreeMap<String, Pinned>,
    /// Nodes that changed, oldest first, and how many changes came before the first of them.
    #[serde(skip)]
    log: VecDeque<NodeId>,
    #[serde(skip)]
    forgotten: u64,
    /// Counts questions, to know which index was asked last.
    #[serde(skip)]
    asked: u64,
}

#[derive(Clone, Debug, Default)]
struct Pinned {
    scopes: Vec<ScopeId>,
    /// The node of that name, if it is there.
    node: Option<NodeId>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Scope {
    key: Arc<ScopeKey>,
    references: u32,
    #[serde(skip)]
    members: Vec<bool>,
    #[serde(skip)]
    index: Index,
    /// When it was last asked for a node.
    #[serde(skip)]
    asked: u64,
    /// Changes the index has taken in; none yet if it was never built.
    #[serde(skip)]
    seen: Option<u64>,
}

#[derive(Clone, Debug, Default)]
enum Index {
    #[default]
    None,
    /// By (tasks, id).
    Fewest(FitTree<u64>),
    Spread(Box<SpreadTree>),
}

impl Index {
    fn new(key: &ScopeKey, width: usize) -> Index {
        match &key.spread {
            None => Index::Fewest(FitTree::new(u64::MAX, width)),
            Some((service, levels)) => Index::Spread(Box::new(SpreadTree::new(service, levels, width))),
        }
    }

    fn set(&mut self, node: NodeId, entry: Option<&NodeEntry>) {
        match (self, entry) {
            (Index::None, _) => {}
            (Index::Spread(tree), entry) => tree.set(node, entry),
            (Index::Fewest(tree), Some(entry)) if entry.takes_work() => {
                tree.set(node.index(), key(node, entry.company.tasks), entry.free.amounts());
            }
            (Index::Fewest(tree), _) => tree.remove(node.index()),
        }
    }

    fn first_fit(&self, shape: &ShapeSpec, entries: &Entries) -> Option<NodeId> {
        match self {
            Index::None => None,
            Index::Spread(tree) => tree.first_fit(shape, entries),
            Index::Fewest(tree) => {
                let admits = |index: usize| admits(entries, index, shape);
                let found = tree.first_fit_where(shape.request.amounts(), admits);
                found.map(|index| NodeId(index as u32))
            }
        }
    }

    fn fits(&self, shape: &ShapeSpec, most: usize, entries: &Entries) -> Vec<NodeId> {
        match self {
            Index::None => Vec::new(),
            Index::Spread(tree) => tree.fits(shape, most, entries),
            Index::Fewest(tree) => {
                let found = tree.fits(shape.request.amounts(), most);
                found.into_iter().map(|index| NodeId(index as u32)).collect()
            }
        }
    }
}

impl Scope {
    fn member(&self, node: NodeId) -> bool {
        self.members.get(node.index()).copied().unwrap_or(false)
    }

    fn judge(&mut self, node: NodeId, entry: Option<&NodeEntry>) {
        let allowed = entry.is_some_and(|entry| self.key.rules.allow(&entry.view.facts));
        if self.members.len() <= node.index() {
            self.members.resize(node.index() + 1, false);
        }
        self.members[node.index()] = allowed;
    }

    fn refresh(&mut self, node: NodeId, entries: &Entries) {
        let entry = entries.get(node.index()).and_then(Option::as_ref);
        let entry = entry.filter(|_| self.member(node));
        self.index.set(node, entry);
    }
}

impl Scopes {
    /// The scope of this shape; the caller holds one reference more.
    pub(super) fn intern(&mut self, shape: &ShapeSpec, entries: &Entries) -> ScopeId {
        let spread = shape.service.as_ref().map(|(service, _)| (service.clone(), shape.spread.clone()));
        if shape.rules.is_empty() && spread.is_none() {
            return EVERYWHERE;
        }
        let key = ScopeKey { rules: shape.rules.clone(), spread };
        if let Some(id) = self.interned.get(&key) {
            let id = *id;
            self.get_mut(id).references += 1;
            return id;
        }
        let key = Arc::new(key);
        let scope =
            Scope { key, references: 1, members: Vec::new(), index: Index::None, asked: 0, seen: None };
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            ScopeId(self.entries.len() as u32)
        });
        self.entries[id.0 as usize - 1] = Some(scope);
        self.enter(id, entries);
        id
    }

    pub(super) fn release(&mut self, id: ScopeId) {
        if id == EVERYWHERE {
            return;
        }
        let scope = self.get_mut(id);
        scope.references -= 1;
        if scope.references > 0 {
            return;
        }
        let key = Arc::clone(&scope.key);
        self.interned.remove(&key);
        match &key.rules.node {
            None => self.wide.retain(|known| *known != id),
            Some(name) => {
                let pinned = self.pinned.get_mut(name).expect("a pinned scope is listed");
                pinned.scopes.retain(|known| *known != id);
                if pinned.scopes.is_empty() {
                    self.pinned.remove(name);
                }
            }
        }
        self.entries[id.0 as usize - 1] = None;
        self.vacant.push(id);
        if self.wide.is_empty() {
            self.forgotten += self.log.len() as u64;
            self.log.clear();
        }
    }

    /// Makes everything anew that is not stored.
    pub(super) fn rebuild(&mut self, entries: &Entries) {
        self.interned.clear();
        self.wide.clear();
        self.pinned.clear();
        self.log.clear();
        for position in 0..self.entries.len() {
            if let Some(scope) = &mut self.entries[position] {
                (scope.members, scope.index, scope.seen) = (Vec::new(), Index::None, None);
                self.enter(ScopeId(position as u32 + 1), entries);
            }
        }
    }

    fn enter(&mut self, id: ScopeId, entries: &Entries) {
        let key = Arc::clone(&self.get(id).key);
        match &key.rules.node {
            Some(name) => {
                let find = || {
                    let is_it = |entry: &Option<NodeEntry>| {
                        entry.as_ref().is_some_and(|entry| entry.view.facts.name == *name)
                    };
                    entries.iter().position(is_it).map(|index| NodeId(index as u32))
                };
                let pinned = self.pinned.entry(name.clone());
                pinned.or_insert_with(|| Pinned { scopes: Vec::new(), node: find() }).scopes.push(id);
            }
            None => {
                self.wide.push(id);
                let scope = self.get_mut(id);
                for (index, entry) in entries.iter().enumerate() {
                    scope.judge(NodeId(index as u32), entry.as_ref());
                }
            }
        }
        self.interned.insert(key, id);
    }

    fn get(&self, id: ScopeId) -> &Scope {
        self.entries[id.0 as usize - 1].as_ref().expect("a referenced scope is there")
    }

    fn get_mut(&mut self, id: ScopeId) -> &mut Scope {
        self.entries[id.0 as usize - 1].as_mut().expect("a referenced scope is there")
    }

    /// The node is new, is gone, or other facts are known of it.
    pub(super) fn judge(&mut self, node: NodeId, entry: Option<&NodeEntry>) {
        for position in 0..self.wide.len() {
            self.get_mut(self.wide[position]).judge(node, entry);
        }
        let pinned = entry.and_then(|entry| self.pinned.get_mut(&entry.view.facts.name));
        pinned.into_iter().for_each(|pinned| pinned.node = Some(node));
    }

    /// The node of this name is gone.
    pub(super) fn forget_name(&mut self, name: &str) {
        self.pinned.get_mut(name).into_iter().for_each(|pinned| pinned.node = None);
    }

    /// Something about the node has changed that indexes know of.
    pub(super) fn note(&mut self, node: NodeId, nodes: usize) {
        if self.wide.is_empty() {
            return;
        }
        self.log.push_back(node);
        // An index that is this far behind is built anew at less cost.
        if self.log.len() > 2 * nodes + 1_024 {
            self.forgotten += 1;
            self.log.pop_front();
        }
    }

    /// Every scope the node belongs to, apart from everywhere.
    pub(super) fn of_node<'a>(
        &'a self,
        node: NodeId,
        entry: &'a NodeEntry,
    ) -> impl Iterator<Item = ScopeId> + 'a {
        let wide = self.wide.iter().copied().filter(move |id| self.get(*id).member(node));
        let pinned = self.pinned.get(&entry.view.facts.name).into_iter();
        let pinned = pinned.flat_map(|pinned| pinned.scopes.iter().copied());
        wide.chain(pinned.filter(move |id| self.get(*id).key.rules.allow(&entry.view.facts)))
    }

    /// The node of the scope that comes first for this shape among those with room.
    pub(super) fn first_fit(
        &mut self,
        id: ScopeId,
        shape: &ShapeSpec,
        entries: &Entries,
        width: usize,
    ) -> Option<NodeId> {
        if let Some(name) = &shape.rules.node {
            return self.named(name, shape, entries);
        }
        self.catch_up(id, entries, width).first_fit(shape, entries)
    }

    /// Up to `most` nodes of the scope that have room for this, by id.
    pub(super) fn fits(
        &mut self,
        id: ScopeId,
        shape: &ShapeSpec,
        most: usize,
        entries: &Entries,
        width: usize,
    ) -> Vec<NodeId> {
        if let Some(name) = &shape.rules.node {
            return self.named(name, shape, entries).into_iter().collect();
        }
        self.catch_up(id, entries, width).fits(shape, most, entries)
    }

    /// The index of a scope, as things stand now.
    fn catch_up(&mut self, id: ScopeId, entries: &Entries, width: usize) -> &Index {
        self.asked += 1;
        let (forgotten, now) = (self.forgotten, self.forgotten + self.log.len() as u64);
        let scope = self.entries[id.0 as usize - 1].as_mut().expect("a referenced scope is there");
        scope.asked = self.asked;
        match scope.seen.replace(now) {
            Some(seen) if seen >= forgotten => {
                for node in self.log.range((seen - forgotten) as usize..) {
                    scope.refresh(*node, entries);
                }
            }
            _ => {
                scope.index = Index::new(&scope.key, width);
                for index in 0..entries.len() {
                    scope.refresh(NodeId(index as u32), entries);
                }
                self.make_room_for(entries.len());
            }
        }
        &self.get(id).index
    }

    /// Lets go of indexes that nobody has asked for a long time.
    fn make_room_for(&mut self, nodes: usize) {
        let most = (INDEXED_MAX / nodes.max(1)).max(1);
        let mut built: Vec<(u64, ScopeId)> = self
            .wide
            .iter()
            .filter(|id| self.get(**id).seen.is_some())
            .map(|id| (self.get(*id).asked, *id))
            .collect();
        built.sort_unstable();
        let spare = built.len().saturating_sub(most);
        for (_, id) in built.into_iter().take(spare) {
            let scope = self.get_mut(id);
            (scope.index, scope.seen) = (Index::None, None);
        }
    }

    /// The one node that will do, if it will.
    fn named(&self, name: &str, shape: &ShapeSpec, entries: &Entries) -> Option<NodeId> {
        let id = self.pinned.get(name)?.node?;
        let entry = entries[id.index()].as_ref()?;
        (shape.rules.allow(&entry.view.facts) && entry.has_room_for(shape)).then_some(id)
    }
}
