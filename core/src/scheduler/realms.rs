//! Realms: the nodes that a set of rules allows, interned.
//!
//! The realm of everything needs none of this and costs nothing. Whether a node belongs to a realm is
//! decided once, when one of the two is new or the node has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::mutation::{self, Mutation};
use crate::spec::{Filter, NodeFacts, Rules, ShapeSpec};

use super::nodes::NodeEntry;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct RealmId(u32);

/// The realm of all nodes.
pub(super) const ALL: RealmId = RealmId(0);

type Entries = [Option<NodeEntry>];

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Realms {
    /// The realm with id `n` stands at `n - 1`.
    entries: Vec<Option<Realm>>,
    vacant: Vec<RealmId>,
    #[serde(skip)]
    interned: BTreeMap<Arc<Rules>, RealmId>,
    /// Realms that may have several nodes.
    #[serde(skip)]
    wide: Vec<RealmId>,
    /// Realms of one node, by its name.
    #[serde(skip)]
    pinned: BTreeMap<String, Pinned>,
    /// The nodes by name, since somebody first asked for one.
    #[serde(skip)]
    names: Option<BTreeMap<String, NodeId>>,
}

#[derive(Clone, Debug, Default)]
struct Pinned {
    realms: Vec<RealmId>,
    /// The node of that name, if it is there.
    node: Option<NodeId>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Realm {
    rules: Arc<Rules>,
    references: u32,
    #[serde(skip)]
    members: Vec<bool>,
}

fn names_of(entries: &Entries) -> BTreeMap<String, NodeId> {
    let names = entries
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| Some((entry.as_ref()?.view.facts.name.clone(), NodeId(index as u32))));
    names.collect()
}

impl Realm {
    fn member(&self, node: NodeId) -> bool {
        self.members.get(node.index()).copied().unwrap_or(false)
    }

    fn allows(&self, facts: &NodeFacts) -> bool {
        let overlooked =
            |filter| mutation::active(Mutation::OverlookFilters) && matches!(filter, Filter::Custom(_));
        self.rules.failures(facts).all(overlooked)
    }

    fn judge(&mut self, node: NodeId, entry: Option<&NodeEntry>) {
        if let Some(entry) = entry.filter(|_| !self.rules.are_prepared()) {
            Arc::make_mut(&mut self.rules).prepare_filters(&entry.view.facts.judges.0);
        }
        let allowed = entry.is_some_and(|entry| self.allows(&entry.view.facts));
        if self.members.len() <= node.index() {
            self.members.resize(node.index() + 1, false);
        }
        self.members[node.index()] = allowed;
    }
}

impl Realms {
    /// The realm of these rules; the caller holds one reference more.
    pub(super) fn intern(&mut self, rules: &Rules, entries: &Entries) -> RealmId {
        if rules.is_empty() {
            return ALL;
        }
        if let Some(id) = self.interned.get(rules) {
            let id = *id;
            self.get_mut(id).references += 1;
            return id;
        }
        let realm = Realm { rules: Arc::new(rules.clone()), references: 1, members: Vec::new() };
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            RealmId(self.entries.len() as u32)
        });
        self.entries[id.0 as usize - 1] = Some(realm);
        self.enter(id, entries);
        id
    }

    pub(super) fn release(&mut self, id: RealmId) {
        if id == ALL {
            return;
        }
        let realm = self.get_mut(id);
        realm.references -= 1;
        if realm.references > 0 {
            return;
        }
        let rules = Arc::clone(&realm.rules);
        self.interned.remove(&rules);
        match &rules.node {
            None => self.wide.retain(|known| *known != id),
            Some(name) => {
                let pinned = self.pinned.get_mut(name).expect("a pinned realm is listed");
                pinned.realms.retain(|known| *known != id);
                if pinned.realms.is_empty() {
                    self.pinned.remove(name);
                }
            }
        }
        self.entries[id.0 as usize - 1] = None;
        self.vacant.push(id);
    }

    /// Makes everything anew that is not stored.
    pub(super) fn rebuild(&mut self, entries: &Entries) {
        self.interned.clear();
        self.wide.clear();
        self.pinned.clear();
        self.names = None;
        for position in 0..self.entries.len() {
            if let Some(realm) = &mut self.entries[position] {
                realm.members.clear();
                self.enter(RealmId(position as u32 + 1), entries);
            }
        }
    }

    fn enter(&mut self, id: RealmId, entries: &Entries) {
        let rules = Arc::clone(&self.get(id).rules);
        match &rules.node {
            Some(name) => {
                let names = self.names.get_or_insert_with(|| names_of(entries));
                let node = names.get(name).copied();
                let pinned = self.pinned.entry(name.clone());
                pinned.or_insert(Pinned { realms: Vec::new(), node }).realms.push(id);
            }
            None => {
                self.wide.push(id);
                let realm = self.get_mut(id);
                for (index, entry) in entries.iter().enumerate() {
                    realm.judge(NodeId(index as u32), entry.as_ref());
                }
            }
        }
        self.interned.insert(rules, id);
    }

    fn get(&self, id: RealmId) -> &Realm {
        self.entries[id.0 as usize - 1].as_ref().expect("a referenced realm is there")
    }

    fn get_mut(&mut self, id: RealmId) -> &mut Realm {
        self.entries[id.0 as usize - 1].as_mut().expect("a referenced realm is there")
    }

    /// Whether the node belongs to the realm, which is not one of a single node.
    pub(super) fn has(&self, id: RealmId, node: NodeId) -> bool {
        id == ALL || self.get(id).member(node)
    }

    /// The node is new, is gone, or other facts are known of it.
    pub(super) fn judge(&mut self, node: NodeId, entry: Option<&NodeEntry>) {
        for position in 0..self.wide.len() {
            self.get_mut(self.wide[position]).judge(node, entry);
        }
        let Some(name) = entry.map(|entry| &entry.view.facts.name) else { return };
        if let Some(names) = &mut self.names {
            names.insert(name.clone(), node);
        }
        if let Some(pinned) = self.pinned.get_mut(name) {
            pinned.node = Some(node);
        }
    }

    /// The node of this name is gone.
    pub(super) fn forget_name(&mut self, name: &str) {
        if let Some(names) = &mut self.names {
            names.remove(name);
        }
        self.pinned.get_mut(name).into_iter().for_each(|pinned| pinned.node = None);
    }

    /// Every realm the node belongs to, apart from that of all.
    pub(super) fn of_node<'a>(
        &'a self,
        node: NodeId,
        entry: &'a NodeEntry,
    ) -> impl Iterator<Item = RealmId> + 'a {
        let wide = self.wide.iter().copied().filter(move |id| self.get(*id).member(node));
        let pinned = self.pinned.get(&entry.view.facts.name).into_iter();
        let pinned = pinned.flat_map(|pinned| pinned.realms.iter().copied());
        wide.chain(pinned.filter(move |id| self.get(*id).rules.allow(&entry.view.facts)))
    }

    /// The node of this name, for which tasks of some shape are alone, if it is there.
    pub(super) fn pinned_to(&self, name: &str) -> Option<NodeId> {
        self.pinned.get(name)?.node
    }

    /// The one node that will do, if it will.
    pub(super) fn named(&self, name: &str, shape: &ShapeSpec, entries: &Entries) -> Option<NodeId> {
        let id = self.pinned.get(name)?.node?;
        let entry = entries[id.index()].as_ref()?;
        (shape.rules.allow(&entry.view.facts) && entry.has_room_for(shape)).then_some(id)
    }
}
