//! Nodes by how they stand, so that a question looks at every way of standing once and not at every node.
//!
//! Nodes stand alike if no rule, request or company can tell them apart but by name: their facts without name,
//! address and place in the network (who asks for nearness looks at the network tree), their capacity, what is
//! free, whether they take work and whether somebody is there.
//! Ports in use and replicas are not part of it, or nearly every node of a busy cluster would stand alone:
//! nodes that have any are kept apart within their class, for those who ask about them.
//!
//! Nobody pays for this before the first question. From then on a change costs one entry in a list, and
//! the next question files those nodes anew. Where so many change between two questions that a look at every
//! node is cheaper, everything is forgotten until fewer do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::constraint::Key;
use crate::id::NodeId;
use crate::resources::Resources;
use crate::spec::{NodeFacts, Rules, ShapeSpec};

use super::nodes::NodeEntry;

type Entries = [Option<NodeEntry>];

/// More nodes than this are not filed anew for one question: to look at every node once is cheaper.
fn changes_max(nodes: usize) -> usize {
    const ALWAYS: usize = 1_024;
    nodes / 16 + ALWAYS
}

#[derive(Clone, Debug, Default)]
pub(super) struct Standings {
    built: Option<Box<Built>>,
    /// How many changes came since the last question, where they were too many to be filed.
    busy: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct Built {
    classes: BTreeMap<Arc<NodeFacts>, BTreeMap<Standing, Members>>,
    filed: Vec<Option<Filed>>,
    names: BTreeMap<String, NodeId>,
    /// Nodes that changed since they were filed, each once.
    changed: Vec<NodeId>,
    is_changed: Vec<bool>,
}

/// How a node stands, apart from its facts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Standing {
    capacity: Resources,
    free: Resources,
    open: bool,
    /// It is kept for some.
    withheld: bool,
    occupied: bool,
    /// Somebody has it for itself.
    closed: bool,
}

/// The nodes of one class.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Members {
    /// Nobody there has a port or belongs to a service.
    plain: BTreeSet<NodeId>,
    others: BTreeSet<NodeId>,
}

#[derive(Clone, Debug)]
struct Filed {
    version: u64,
    name: String,
    facts: Arc<NodeFacts>,
    standing: Standing,
    is_plain: bool,
}

/// Which nodes a question must look at one by one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Apart {
    /// All of them: it asks for names or addresses.
    everyone: bool,
    /// Those where somebody has a port or belongs to a service.
    company: bool,
    /// The ones that the tasks are for, and those on which something is kept.
    nodes: BTreeSet<NodeId>,
}

/// Nodes that stand alike: the first of them, and how many they are.
pub(super) type Alike = (NodeId, u64);

fn looks_at_names(rules: &Rules) -> bool {
    let by_name = |key: &Key| matches!(key, Key::Id | Key::Hostname | Key::Ip);
    rules.constraints.iter().any(|constraint| constraint.keys().any(by_name)) || rules.filter_by_name()
}

impl Standing {
    fn of(entry: &NodeEntry) -> Standing {
        Standing {
            capacity: entry.view.capacity.clone(),
            free: entry.free.clone(),
            open: entry.view.open,
            withheld: entry.is_withheld(),
            occupied: entry.company.tasks > 0,
            closed: entry.company.is_closed(),
        }
    }
}

impl Members {
    fn set(&mut self, is_plain: bool) -> &mut BTreeSet<NodeId> {
        if is_plain { &mut self.plain } else { &mut self.others }
    }

    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.others.is_empty()
    }

    /// Adds these nodes to the list: together, but for those that are looked at one by one. Of these
    /// `here` are among them.
    fn list(&self, company: bool, here: &BTreeSet<NodeId>, alike: &mut Vec<Alike>) {
        alike.extend(here.iter().map(|id| (*id, 1)));
        let first = |nodes: &BTreeSet<NodeId>| nodes.iter().copied().find(|id| !here.contains(id));
        let count = |nodes: &BTreeSet<NodeId>| {
            nodes.len() as u64 - here.iter().filter(|id| nodes.contains(id)).count() as u64
        };
        if company {
            alike.extend(first(&self.plain).map(|first| (first, count(&self.plain))));
            alike.extend(self.others.iter().filter(|id| !here.contains(id)).map(|id| (*id, 1)));
            return;
        }
        let first = first(&self.plain).into_iter().chain(first(&self.others)).min();
        alike.extend(first.map(|first| (first, count(&self.plain) + count(&self.others))));
    }
}

impl Built {
    fn file(&mut self, id: NodeId, entry: Option<&NodeEntry>) {
        if self.filed.len() <= id.index() {
            self.filed.resize_with(id.index() + 1, || None);
        }
        let before = self.filed[id.index()].take();
        if let Some(before) = &before {
            let alike = self.classes.get_mut(&before.facts).expect("a filed node has a class");
            let members = alike.get_mut(&before.standing).expect("a filed node has a class");
            members.set(before.is_plain).remove(&id);
            if members.is_empty() {
                alike.remove(&before.standing);
            }
            if alike.is_empty() {
                self.classes.remove(&before.facts);
            }
        }
        let same = before.filter(|before| entry.is_some_and(|entry| entry.view.version == before.version));
        let Some(entry) = entry else { return };
        let (facts, name) = match same {
            Some(before) => (before.facts, before.name),
            None => (self.nameless(&entry.view.facts), entry.view.facts.name.clone()),
        };
        let (standing, is_plain) = (Standing::of(entry), entry.company.is_plain());
        let alike = self.classes.entry(Arc::clone(&facts)).or_default();
        alike.entry(standing.clone()).or_default().set(is_plain).insert(id);
        self.filed[id.index()] = Some(Filed { version: entry.view.version, name, facts, standing, is_plain });
    }

    fn nameless(&self, facts: &NodeFacts) -> Arc<NodeFacts> {
        let facts = NodeFacts { name: String::new(), ip: None, path: None, ..facts.clone() };
        let known = self.classes.get_key_value(&facts).map(|(known, _)| Arc::clone(known));
        known.unwrap_or_else(|| Arc::new(facts))
    }

    fn forget_name(&mut self, id: NodeId) {
        if let Some(filed) = self.filed.get(id.index()).and_then(Option::as_ref)
            && self.names.get(&filed.name) == Some(&id)
        {
            self.names.remove(&filed.name);
        }
    }
}

impl Standings {
    /// Something about the node has changed.
    pub(super) fn note(&mut self, id: NodeId, nodes: usize) {
        if let Some(changes) = &mut self.busy {
            *changes += 1;
        }
        let Some(built) = &mut self.built else { return };
        if built.is_changed.len() <= id.index() {
            built.is_changed.resize(nodes.max(id.index() + 1), false);
        }
        if std::mem::replace(&mut built.is_changed[id.index()], true) {
            return;
        }
        built.changed.push(id);
        if built.changed.len() > changes_max(nodes) {
            (self.built, self.busy) = (None, Some(0));
        }
    }

    /// Forgets everything; the next question begins anew.
    pub(super) fn forget(&mut self) {
        (self.built, self.busy) = (None, None);
    }

    /// Files every node that has changed; the first time, every node.
    pub(super) fn catch_up(&mut self, entries: &Entries) {
        if self.busy.is_some_and(|changes| changes > changes_max(entries.len())) {
            self.busy = Some(0);
            return;
        }
        self.busy = None;
        let entry = |id: NodeId| entries.get(id.index()).and_then(Option::as_ref);
        let changed = match &mut self.built {
            Some(built) => std::mem::take(&mut built.changed),
            None => (0..entries.len()).map(|index| NodeId(index as u32)).collect(),
        };
        let built = self.built.get_or_insert_default();
        // A name may have moved to another node: first all old ones go, then the new ones come.
        for id in &changed {
            built.forget_name(*id);
        }
        for id in changed {
            if let Some(flag) = built.is_changed.get_mut(id.index()) {
                *flag = false;
            }
            built.file(id, entry(id));
            if let Some(entry) = entry(id) {
                built.names.insert(entry.view.facts.name.clone(), id);
            }
        }
    }

    fn current(&self) -> Option<&Built> {
        self.built.as_deref().filter(|built| built.changed.is_empty())
    }

    /// The node of this name.
    pub(super) fn named(&self, name: &str, entries: &Entries) -> Option<NodeId> {
        if let Some(built) = self.current() {
            return built.names.get(name).copied();
        }
        let is_it = |entry: &NodeEntry| entry.view.facts.name == name;
        let position = entries.iter().position(|entry| entry.as_ref().is_some_and(is_it));
        position.map(|index| NodeId(index as u32))
    }

    /// All nodes, by the first of those that stand alike for all of these shapes. Nodes that are `kept` stand
    /// each for itself. Where nothing is filed, or what is filed is old, all of them do: slower and as true.
    pub(super) fn alike<'a>(
        &self,
        shapes: impl Iterator<Item = &'a ShapeSpec> + Clone,
        kept: BTreeSet<NodeId>,
        entries: &Entries,
    ) -> Vec<Alike> {
        let mut apart = Apart { nodes: kept, ..Apart::default() };
        let mut pinned = BTreeSet::new();
        for shape in shapes {
            apart.everyone |= looks_at_names(&shape.rules);
            apart.company |= shape.max_per_node > 0 || !shape.ports.is_empty();
            pinned.extend(shape.rules.node.as_ref());
        }
        let Some(built) = self.current().filter(|_| !apart.everyone) else {
            let there = entries.iter().enumerate().filter(|(_, entry)| entry.is_some());
            return there.map(|(index, _)| (NodeId(index as u32), 1)).collect();
        };
        apart.nodes.extend(pinned.into_iter().filter_map(|name| built.names.get(name)));
        let mut here: BTreeMap<(&Arc<NodeFacts>, &Standing), BTreeSet<NodeId>> = BTreeMap::new();
        for id in &apart.nodes {
            if let Some(filed) = built.filed.get(id.index()).and_then(Option::as_ref) {
                here.entry((&filed.facts, &filed.standing)).or_default().insert(*id);
            }
        }
        let (mut alike, nobody) = (Vec::new(), BTreeSet::new());
        for (facts, standings) in &built.classes {
            for (standing, members) in standings {
                // Most questions have nobody stand apart.
                let here = if here.is_empty() { None } else { here.get(&(facts, standing)) };
                members.list(apart.company, here.unwrap_or(&nobody), &mut alike);
            }
        }
        alike.sort_unstable();
        alike
    }

    /// Whether what is filed, once caught up, is what it would be if it were made anew.
    pub(super) fn is_true(&self, entries: &Entries) -> bool {
        if self.built.is_none() {
            return true;
        }
        let (mut kept, mut anew) = (self.clone(), Standings::default());
        kept.catch_up(entries);
        anew.catch_up(entries);
        let of = |standings: Standings| standings.built.map(|built| (built.classes, built.names));
        of(kept) == of(anew)
    }
}
