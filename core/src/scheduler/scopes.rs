//! Scopes: the nodes that a set of rules allows, interned, with an index of their own.
//!
//! The scope of everything needs none of this and costs nothing. Whether a node belongs to a scope is
//! decided once, when one of the two is new or the node has changed. The index of a scope is not kept
//! current with every change: it catches up from a shared log when somebody asks, so a change costs the
//! same however many scopes there are. Tasks that are for one named node need no index at all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::collections::FitTree;
use crate::id::NodeId;
use crate::resources::Resources;
use crate::spec::Rules;

use super::nodes::{NodeEntry, key};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct ScopeId(pub(super) u32);

/// The scope of all nodes.
pub(super) const EVERYWHERE: ScopeId = ScopeId(0);

type Entries = [Option<NodeEntry>];

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Scopes {
    /// The scope with id `n` stands at `n - 1`.
    entries: Vec<Option<Scope>>,
    vacant: Vec<ScopeId>,
    #[serde(skip)]
    interned: BTreeMap<Arc<Rules>, ScopeId>,
    /// Scopes that may have several nodes.
    #[serde(skip)]
    wide: Vec<ScopeId>,
    /// Scopes for one node, by its name.
    #[serde(skip)]
    pinned: BTreeMap<String, Vec<ScopeId>>,
    /// Nodes that changed, oldest first, and how many changes came before the first of them.
    #[serde(skip)]
    log: VecDeque<NodeId>,
    #[serde(skip)]
    forgotten: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Scope {
    rules: Arc<Rules>,
    references: u32,
    #[serde(skip)]
    members: Vec<bool>,
    #[serde(skip, default = "empty_index")]
    index: FitTree<u64>,
    /// Changes the index has taken in; none yet if it was never built.
    #[serde(skip)]
    seen: Option<u64>,
}

fn empty_index() -> FitTree<u64> {
    FitTree::new(u64::MAX, 0)
}

impl Scope {
    fn member(&self, node: NodeId) -> bool {
        self.members.get(node.index()).copied().unwrap_or(false)
    }

    fn judge(&mut self, node: NodeId, entry: Option<&NodeEntry>) {
        let allowed = entry.is_some_and(|entry| self.rules.allow(&entry.view.facts));
        if self.members.len() <= node.index() {
            self.members.resize(node.index() + 1, false);
        }
        self.members[node.index()] = allowed;
    }

    fn refresh(&mut self, node: NodeId, entries: &Entries) {
        let entry = entries.get(node.index()).and_then(Option::as_ref);
        match entry.filter(|entry| self.member(node) && entry.takes_work()) {
            Some(entry) => self.index.set(node.index(), key(node, entry.tasks), entry.free.amounts()),
            None => self.index.remove(node.index()),
        }
    }
}

impl Scopes {
    /// The scope of these rules; the caller holds one reference more.
    pub(super) fn intern(&mut self, rules: &Rules, entries: &Entries) -> ScopeId {
        if rules.is_empty() {
            return EVERYWHERE;
        }
        if let Some(id) = self.interned.get(rules) {
            let id = *id;
            self.get_mut(id).references += 1;
            return id;
        }
        let rules = Arc::new(rules.clone());
        let (members, index) = (Vec::new(), empty_index());
        let scope = Scope { rules: Arc::clone(&rules), references: 1, members, index, seen: None };
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
        let rules = Arc::clone(&scope.rules);
        self.interned.remove(&rules);
        match &rules.node {
            None => self.wide.retain(|known| *known != id),
            Some(name) => {
                let scopes = self.pinned.get_mut(name).expect("a pinned scope is listed");
                scopes.retain(|known| *known != id);
                if scopes.is_empty() {
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
                (scope.members, scope.seen) = (Vec::new(), None);
                self.enter(ScopeId(position as u32 + 1), entries);
            }
        }
    }

    fn enter(&mut self, id: ScopeId, entries: &Entries) {
        let rules = Arc::clone(&self.get(id).rules);
        match &rules.node {
            Some(name) => self.pinned.entry(name.clone()).or_default().push(id),
            None => {
                self.wide.push(id);
                let scope = self.get_mut(id);
                for (index, entry) in entries.iter().enumerate() {
                    scope.judge(NodeId(index as u32), entry.as_ref());
                }
            }
        }
        self.interned.insert(rules, id);
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
        let pinned = self.pinned.get(&entry.view.facts.name).into_iter().flatten().copied();
        wide.chain(pinned.filter(move |id| self.get(*id).rules.allow(&entry.view.facts)))
    }

    /// The node with the fewest tasks in the scope that has room for this; ties go to the smaller id.
    pub(super) fn first_fit(
        &mut self,
        id: ScopeId,
        request: &Resources,
        entries: &Entries,
        names: &BTreeMap<String, NodeId>,
        width: usize,
    ) -> Option<NodeId> {
        self.fits_by(id, entries, names, width, request, |index| {
            index.first_fit(request.amounts()).into_iter().collect()
        })
        .first()
        .copied()
    }

    /// Up to `most` nodes of the scope that have room for this, by id.
    pub(super) fn fits(
        &mut self,
        id: ScopeId,
        request: &Resources,
        most: usize,
        entries: &Entries,
        names: &BTreeMap<String, NodeId>,
        width: usize,
    ) -> Vec<NodeId> {
        self.fits_by(id, entries, names, width, request, |index| index.fits(request.amounts(), most))
    }

    fn fits_by(
        &mut self,
        id: ScopeId,
        entries: &Entries,
        names: &BTreeMap<String, NodeId>,
        width: usize,
        request: &Resources,
        ask: impl FnOnce(&FitTree<u64>) -> Vec<usize>,
    ) -> Vec<NodeId> {
        let rules = Arc::clone(&self.get(id).rules);
        if let Some(name) = &rules.node {
            let node = names.get(name).and_then(|id| Some((*id, entries[id.index()].as_ref()?)));
            let fits = |entry: &NodeEntry| {
                entry.takes_work() && rules.allow(&entry.view.facts) && request.fits_in(&entry.free)
            };
            return node.into_iter().filter(|(_, entry)| fits(entry)).map(|(id, _)| id).collect();
        }
        self.catch_up(id, entries, width);
        ask(&self.get(id).index).into_iter().map(|index| NodeId(index as u32)).collect()
    }

    fn catch_up(&mut self, id: ScopeId, entries: &Entries, width: usize) {
        let (forgotten, now) = (self.forgotten, self.forgotten + self.log.len() as u64);
        let scope = self.entries[id.0 as usize - 1].as_mut().expect("a referenced scope is there");
        match scope.seen.replace(now) {
            Some(seen) if seen >= forgotten => {
                for node in self.log.range((seen - forgotten) as usize..) {
                    scope.refresh(*node, entries);
                }
            }
            _ => {
                scope.index = FitTree::new(u64::MAX, width);
                for index in 0..entries.len() {
                    scope.refresh(NodeId(index as u32), entries);
                }
            }
        }
    }
}
