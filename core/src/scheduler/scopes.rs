//! Scopes: where a shape looks for nodes. Its realm says which of them will do, its view which comes first.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::mutation::{self, Mutation};
use crate::spec::{NodeChoice, ShapeSpec};

use super::change_log::ChangeLog;
use super::memories::Memories;
use super::nodes::{NodeEntry, admits};
use super::realms::{ALL, RealmId, Realms};
use super::views::{PLAIN, Sources, ViewId, Views};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct ScopeId {
    pub(super) realm: RealmId,
    view: ViewId,
}

/// The scope of all nodes, by fewest tasks.
pub(super) const EVERYWHERE: ScopeId = ScopeId { realm: ALL, view: PLAIN };

type Entries = [Option<NodeEntry>];

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Scopes {
    /// How nodes are chosen for tasks that do not say.
    choice: NodeChoice,
    realms: Realms,
    views: Views,
    /// The last scopes that nobody needs any more, the oldest first. The next job of the same shape often
    /// comes when the one before has just ended: it must not look at every node again.
    kept: VecDeque<Kept>,
    #[serde(skip)]
    log: ChangeLog,
    #[serde(skip)]
    memories: Memories,
}

/// A scope that nobody needs any more, and the snapshot from which tasks started who needed it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Kept {
    scope: ScopeId,
    snapshot: Option<Arc<str>>,
}

/// So many scopes are kept that nobody needs: each may cost a look with every change of a node.
const KEPT_MAX: usize = 16;

impl Scopes {
    pub(super) fn new(choice: NodeChoice) -> Scopes {
        Scopes { choice, ..Scopes::default() }
    }

    /// Says how nodes are chosen from now on for tasks that do not say. Who has a scope asks for it anew.
    pub(super) fn prefer(&mut self, choice: NodeChoice) {
        self.choice = choice;
    }

    /// The scope of this shape; it is to be released once, with the same shape.
    pub(super) fn intern(&mut self, shape: &ShapeSpec, entries: &Entries) -> ScopeId {
        let realm = self.realms.intern(&shape.rules, entries);
        let view = self.views.intern(realm, shape, shape.placement.unwrap_or(self.choice));
        ScopeId { realm, view }
    }

    pub(super) fn release(&mut self, scope: ScopeId, shape: &ShapeSpec) {
        let kept = Kept { scope, snapshot: shape.snapshot.clone() };
        if scope == EVERYWHERE || shape.rules.node.is_some() {
            return self.let_go(&kept);
        }
        let same = self.kept.iter().position(|other| *other == kept);
        self.kept.push_back(kept);
        let surplus = if self.kept.len() > KEPT_MAX { Some(0) } else { None };
        if let Some(kept) = same.or(surplus).and_then(|position| self.kept.remove(position)) {
            self.let_go(&kept);
        }
    }

    fn let_go(&mut self, kept: &Kept) {
        self.views.release(kept.scope.view, kept.snapshot.as_ref());
        self.realms.release(kept.scope.realm);
        if self.views.is_empty() {
            self.log.clear();
        }
    }

    /// Makes everything anew that is not stored.
    pub(super) fn rebuild(&mut self, entries: &Entries) {
        self.log = ChangeLog::default();
        self.memories = Memories::of(entries);
        self.realms.rebuild(entries);
        self.views.rebuild();
    }

    pub(super) fn memories(&self) -> &Memories {
        &self.memories
    }

    /// The node is new, is gone, or other facts are known of it.
    pub(super) fn judge(&mut self, node: NodeId, entry: Option<&NodeEntry>) {
        self.realms.judge(node, entry);
    }

    /// The node is gone, with its name and what it remembered.
    pub(super) fn forget(&mut self, node: NodeId, entry: &NodeEntry) {
        self.realms.forget_name(&entry.view.facts.name);
        self.memories.change(node, entry.snapshot.as_ref(), None);
    }

    /// A task of this shape was placed on the node, which remembers what that starts from.
    pub(super) fn remember(&mut self, node: NodeId, entry: &mut NodeEntry, shape: &ShapeSpec) -> bool {
        if entry.snapshot == shape.snapshot {
            return false;
        }
        self.memories.change(node, entry.snapshot.as_ref(), shape.snapshot.as_ref());
        entry.snapshot.clone_from(&shape.snapshot);
        true
    }

    /// Something about the node has changed that indexes know of.
    pub(super) fn note(&mut self, node: NodeId, nodes: usize) {
        if !self.views.is_empty() && !mutation::active(Mutation::MissChange) {
            self.log.note(node, nodes);
        }
    }

    /// Every realm the node belongs to, apart from that of all.
    pub(super) fn of_node<'a>(
        &'a self,
        node: NodeId,
        entry: &'a NodeEntry,
    ) -> impl Iterator<Item = RealmId> + 'a {
        self.realms.of_node(node, entry)
    }

    /// The node of this name, for which tasks of some shape are alone, if it is there.
    pub(super) fn pinned_to(&self, name: &str) -> Option<NodeId> {
        self.realms.pinned_to(name)
    }

    /// Whether the scope is that of all nodes by fewest tasks, snapshots apart.
    pub(super) fn is_plain(&self, scope: ScopeId) -> bool {
        scope.realm == ALL && self.views.is_plain(scope.view)
    }

    /// Whether the node that comes first still does when it has taken a task for which it has room.
    pub(super) fn packs(&self, scope: ScopeId) -> bool {
        self.views.packs(scope.view)
    }

    /// Whether something matters more here than how many tasks a node has.
    pub(super) fn is_choosy(&self, scope: ScopeId) -> bool {
        self.views.is_choosy(scope.view)
    }

    /// Whether the node belongs to the scope.
    pub(super) fn has(&self, scope: ScopeId, node: NodeId) -> bool {
        self.realms.has(scope.realm, node)
    }

    /// How many nodes may be passed over before the index of the scope is asked.
    pub(super) fn patience(&self, scope: ScopeId, avoiding: bool, nodes: usize) -> u64 {
        self.views.patience(scope.view, &self.log, avoiding, nodes as u64)
    }

    /// So many nodes were passed over instead of asking the index of the scope.
    pub(super) fn note_passed(&mut self, scope: ScopeId, avoiding: bool, nodes: u64) {
        self.views.note_passed(scope.view, avoiding, nodes);
    }

    /// Of the nodes with room those that remember the snapshot of the shape, then those that remember
    /// nothing: the first of them that comes first in the scope. `None` also for a shape without. Here and
    /// below nodes that are `flagged` are as if they were not there.
    pub(super) fn warm_fit(
        &mut self,
        scope: ScopeId,
        shape: &ShapeSpec,
        flagged: Option<&Arc<Vec<NodeId>>>,
        entries: &Entries,
        width: usize,
    ) -> Option<NodeId> {
        if shape.snapshot.is_none() || scope.view == PLAIN {
            return None;
        }
        let Scopes { realms, views, log, memories, .. } = self;
        let from = Sources { realms, log, memories, flagged, entries, width };
        let accept = |node: NodeId| admits(entries, node.index(), shape);
        [&shape.snapshot, &None].into_iter().find_map(|memory| {
            views.ask(scope.view, Some(memory), from, |tree| tree.first_fit(shape.request.amounts(), &accept))
        })
    }

    /// The node of the scope that comes first for this shape among those with room.
    pub(super) fn first_fit(
        &mut self,
        scope: ScopeId,
        shape: &ShapeSpec,
        flagged: Option<&Arc<Vec<NodeId>>>,
        entries: &Entries,
        width: usize,
    ) -> Option<NodeId> {
        if let Some(name) = &shape.rules.node {
            return self.realms.named(name, shape, entries);
        }
        let Scopes { realms, views, log, memories, .. } = self;
        let from = Sources { realms, log, memories, flagged, entries, width };
        let accept = |node: NodeId| admits(entries, node.index(), shape);
        views.ask(scope.view, None, from, |tree| tree.first_fit(shape.request.amounts(), &accept))
    }

    /// Up to `most` nodes of the scope that have room for this: those that come first, listed by id.
    pub(super) fn fits(
        &mut self,
        scope: ScopeId,
        shape: &ShapeSpec,
        most: usize,
        flagged: Option<&Arc<Vec<NodeId>>>,
        entries: &Entries,
        width: usize,
    ) -> Vec<NodeId> {
        if let Some(name) = &shape.rules.node {
            return self.realms.named(name, shape, entries).into_iter().collect();
        }
        let Scopes { realms, views, log, memories, .. } = self;
        let from = Sources { realms, log, memories, flagged, entries, width };
        let accept = |node: NodeId| admits(entries, node.index(), shape);
        views.ask(scope.view, None, from, |tree| tree.fits(shape.request.amounts(), most, &accept))
    }
}

#[cfg(test)]
impl Scopes {
    /// Whether the shape has an index of its own.
    pub(super) fn is_built(&mut self, shape: &ShapeSpec) -> bool {
        let scope = self.intern(shape, &[]);
        let is_built = self.views.seen(scope.view).is_some();
        self.let_go(&Kept { scope, snapshot: shape.snapshot.clone() });
        is_built
    }

    /// How many nodes the index of this shape has to look at when it is asked next.
    pub(super) fn backlog(&mut self, shape: &ShapeSpec, entries: usize) -> u64 {
        let scope = self.intern(shape, &[]);
        let seen = self.views.seen(scope.view);
        let changes = seen.and_then(|seen| self.log.since(seen)).map(|changes| changes.count() as u64);
        self.let_go(&Kept { scope, snapshot: shape.snapshot.clone() });
        changes.unwrap_or(entries as u64)
    }
}
