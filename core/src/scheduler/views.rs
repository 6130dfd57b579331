//! Views: the nodes of a realm in one order, interned, each with an index of its own.
//!
//! The view of all nodes by fewest tasks is kept by [`super::nodes::Nodes`] itself and costs nothing here.
//! The index of any other is not kept current with every change: it catches up from a shared log when
//! somebody asks, so a change costs the same however many views there are. Tasks that start from a
//! snapshot have two smaller indexes beside that of their view: the nodes that remember the snapshot, and
//! those that remember nothing.
//!
//! Whoever avoids nodes asks an index without them, so that the order of the others is as if those were not
//! there. It is built when somebody first avoids a node of the view.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::collections::Seldom;
use crate::constraint::Key;
use crate::id::NodeId;
use crate::resources::Resources;
use crate::spec::{Asker, NodeChoice, ShapeSpec, SharedRules};

use super::change_log::ChangeLog;
use super::glance::PASSED_MAX;
use super::memories::Memories;
use super::nodes::NodeEntry;
use super::realms::{ALL, RealmId, Realms};
use super::row::RowOrder;
use super::spread::SpreadTree;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct ViewId(u32);

/// All nodes, or the only one, by fewest tasks: no index is needed for it.
pub(super) const PLAIN: ViewId = ViewId(0);

/// Nodes in all indexes together. Beyond that those that were not asked for the longest time go, and are
/// built anew when somebody asks.
const INDEXED_MAX: usize = 4_000_000;

/// What two shapes must share to look for nodes in the same way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
struct ViewKey {
    realm: RealmId,
    /// Tasks of this service are spread, over these facts first.
    spread: Option<(String, Vec<Key>)>,
    choice: NodeChoice,
    /// Whose nodes come first, where that counts.
    asker: Option<Arc<Asker>>,
    /// What packed tasks ask of the company on a node: nodes that do not admit them would come first.
    company: Option<Box<ShapeSpec>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Views {
    /// The view with id `n` stands at `n - 1`.
    entries: Vec<Option<View>>,
    vacant: Vec<ViewId>,
    #[serde(skip)]
    interned: BTreeMap<Arc<ViewKey>, ViewId>,
    /// Nodes in all indexes.
    #[serde(skip)]
    indexed: usize,
    /// Counts questions, to know which index was asked last.
    #[serde(skip)]
    asked: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct View {
    key: Arc<ViewKey>,
    references: u32,
    #[serde(skip)]
    index: Index,
    #[serde(skip)]
    avoiding: Index,
    /// For each snapshot that somebody starts from, and for none, the nodes that remember it.
    warm: BTreeMap<Option<Arc<str>>, Warm>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Warm {
    references: u32,
    #[serde(skip)]
    index: Index,
    #[serde(skip)]
    avoiding: Index,
}

#[derive(Clone, Debug, Default)]
struct Index {
    /// None yet if it was never built.
    tree: Option<Box<SpreadTree>>,
    /// Changes it has taken in.
    seen: u64,
    /// When it was last asked.
    asked: u64,
    /// The nodes it does without.
    flagged: Option<Arc<Vec<NodeId>>>,
    /// Nodes that others passed over instead of asking it, since it was asked last.
    passed: u64,
}

/// What indexes are made of.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) realms: &'a Realms,
    pub(super) log: &'a ChangeLog,
    pub(super) memories: &'a Memories,
    /// Nodes that are to be avoided.
    pub(super) flagged: Option<&'a Arc<Vec<NodeId>>>,
    pub(super) entries: &'a [Option<NodeEntry>],
    /// Resource kinds.
    pub(super) width: usize,
}

/// Which nodes of a view an index holds: all of them, or those that remember this.
type Memory<'a> = Option<&'a Option<Arc<str>>>;

impl ViewKey {
    fn of(realm: RealmId, shape: &ShapeSpec, choice: NodeChoice) -> ViewKey {
        let packs = choice == NodeChoice::Pack;
        let service = shape.service.as_deref().filter(|_| !packs || !shape.spread.is_empty());
        let spread = service.map(|(service, _)| (service.clone(), Vec::clone(&shape.spread)));
        // Everything that is not about the company on a node is left out, so that views are shared.
        let company = || {
            Box::new(ShapeSpec {
                request: Resources::new(),
                rules: SharedRules::default(),
                spread: Seldom::default(),
                placement: None,
                snapshot: None,
                hops: None,
                ..shape.clone()
            })
        };
        let company = (packs && shape.minds_company()).then(company);
        let asker = shape.rules.asker.clone().filter(|_| choice == NodeChoice::OwnFirst);
        ViewKey { realm, spread, choice, asker, company }
    }

    /// Whether it is the order in which all nodes are kept anyhow.
    fn is_plain(&self) -> bool {
        self.realm == ALL && self.spread.is_none() && self.choice == NodeChoice::Spread
    }

    /// Whether its nodes come by the fewest tasks of the service, if any, and then as all nodes are kept.
    fn is_level(&self) -> bool {
        let has_branches = self.spread.as_ref().is_some_and(|(_, levels)| !levels.is_empty());
        self.choice == NodeChoice::Spread && !has_branches
    }

    fn new_tree(&self, width: usize) -> SpreadTree {
        let (service, levels) = self.spread.clone().unzip();
        let order = match self.choice {
            NodeChoice::Spread => RowOrder::Fewest,
            NodeChoice::Pack => RowOrder::Fullest,
            NodeChoice::OwnFirst => RowOrder::Nearest(self.asker.clone()),
        };
        SpreadTree::new(service, levels.unwrap_or_default(), order, width)
    }
}

impl View {
    fn indexes_mut(&mut self) -> impl Iterator<Item = &mut Index> {
        let warm = self.warm.values_mut().flat_map(|warm| [&mut warm.index, &mut warm.avoiding]);
        warm.chain([&mut self.index, &mut self.avoiding])
    }
}

impl Index {
    /// The index as things stand now, and how many nodes more it has.
    fn catch_up(&mut self, key: &ViewKey, memory: Memory<'_>, from: Sources<'_>) -> (&SpreadTree, isize) {
        let before = self.len();
        let backlog = from.log.now() - self.seen;
        // The few nodes that remember a snapshot are gone through sooner than a long list of changes.
        let snapshot = memory.and_then(Option::as_ref);
        let few = snapshot.map(|snapshot| from.memories.count(snapshot) as u64);
        let changes = from.log.since(self.seen).filter(|_| self.tree.is_some());
        let changes = changes.filter(|_| few.is_none_or(|few| backlog <= 2 * few + 64));
        match changes {
            Some(changes) => {
                let tree = self.tree.as_mut().expect("just seen");
                // Other nodes are avoided now, or somebody else asks who avoids others.
                if self.flagged.as_ref().map(Arc::as_ptr) != from.flagged.map(Arc::as_ptr) {
                    let nodes = self.flagged.iter().chain(from.flagged).flat_map(|nodes| nodes.iter());
                    nodes.for_each(|node| refresh(tree, *node, key, memory, from));
                }
                changes.for_each(|node| refresh(tree, node, key, memory, from));
            }
            None => {
                let mut tree = key.new_tree(from.width);
                match snapshot {
                    Some(snapshot) => {
                        let nodes = from.memories.with(snapshot);
                        nodes.for_each(|node| refresh(&mut tree, node, key, memory, from));
                    }
                    None => (0..from.entries.len() as u32)
                        .for_each(|node| refresh(&mut tree, NodeId(node), key, memory, from)),
                }
                self.tree = Some(Box::new(tree));
            }
        }
        (self.seen, self.passed) = (from.log.now(), 0);
        self.flagged = from.flagged.cloned();
        let grown = self.len() as isize - before as isize;
        (self.tree.as_ref().expect("just made"), grown)
    }

    fn len(&self) -> usize {
        self.tree.as_ref().map_or(0, |tree| tree.len())
    }
}

fn refresh(tree: &mut SpreadTree, node: NodeId, key: &ViewKey, memory: Memory<'_>, from: Sources<'_>) {
    let entry = from.entries.get(node.index()).and_then(Option::as_ref);
    let entry = entry.filter(|entry| {
        let is_avoided = from.flagged.is_some_and(|flagged| flagged.binary_search(&node).is_ok());
        !is_avoided
            && from.realms.has(key.realm, node)
            && memory.is_none_or(|wanted| entry.snapshot == *wanted)
    });
    let offered = entry.is_some_and(|entry| {
        entry.takes_work() && key.company.as_ref().is_none_or(|company| entry.company.admits(company))
    });
    tree.set(node, entry, offered);
}

impl Views {
    /// The view of this shape; the caller holds one reference more.
    pub(super) fn intern(&mut self, realm: RealmId, shape: &ShapeSpec, choice: NodeChoice) -> ViewId {
        if shape.rules.node.is_some() {
            return PLAIN;
        }
        let key = ViewKey::of(realm, shape, choice);
        if key.is_plain() && shape.snapshot.is_none() {
            return PLAIN;
        }
        let id = match self.interned.get(&key) {
            Some(id) => *id,
            None => self.enter(key),
        };
        let view = self.get_mut(id);
        view.references += 1;
        for memory in memories_of(shape.snapshot.as_ref()) {
            view.warm.entry(memory).or_default().references += 1;
        }
        id
    }

    fn enter(&mut self, key: ViewKey) -> ViewId {
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            ViewId(self.entries.len() as u32)
        });
        let key = Arc::new(key);
        self.interned.insert(Arc::clone(&key), id);
        let view = View {
            key,
            references: 0,
            index: Index::default(),
            avoiding: Index::default(),
            warm: BTreeMap::new(),
        };
        self.entries[id.0 as usize - 1] = Some(view);
        id
    }

    /// `snapshot` is that of the shape that needed it.
    pub(super) fn release(&mut self, id: ViewId, snapshot: Option<&Arc<str>>) {
        if id == PLAIN {
            return;
        }
        let view = self.entries[id.0 as usize - 1].as_mut().expect("a referenced view is there");
        for memory in memories_of(snapshot) {
            let warm = view.warm.get_mut(&memory).expect("a referenced memory is there");
            warm.references -= 1;
            if warm.references == 0 {
                self.indexed -= warm.index.len() + warm.avoiding.len();
                view.warm.remove(&memory);
            }
        }
        view.references -= 1;
        if view.references == 0 {
            self.indexed -= view.index.len() + view.avoiding.len();
            self.interned.remove(&view.key);
            self.entries[id.0 as usize - 1] = None;
            self.vacant.push(id);
        }
    }

    /// Whether nobody needs an index.
    pub(super) fn is_empty(&self) -> bool {
        self.interned.is_empty()
    }

    /// Makes everything anew that is not stored.
    pub(super) fn rebuild(&mut self) {
        self.interned.clear();
        self.indexed = 0;
        for (position, view) in self.entries.iter_mut().enumerate() {
            let Some(view) = view else { continue };
            self.interned.insert(Arc::clone(&view.key), ViewId(position as u32 + 1));
            view.indexes_mut().for_each(|index| *index = Index::default());
        }
    }

    fn get(&self, id: ViewId) -> &View {
        self.entries[id.0 as usize - 1].as_ref().expect("a referenced view is there")
    }

    fn get_mut(&mut self, id: ViewId) -> &mut View {
        self.entries[id.0 as usize - 1].as_mut().expect("a referenced view is there")
    }

    /// Whether the nodes come in the order in which all of them are kept anyhow.
    pub(super) fn is_plain(&self, id: ViewId) -> bool {
        id == PLAIN || self.get(id).key.is_plain()
    }

    /// Whether the node that comes first still does when it has taken a task for which it has room.
    pub(super) fn packs(&self, id: ViewId) -> bool {
        id != PLAIN && self.get(id).key.choice == NodeChoice::Pack && self.get(id).key.spread.is_none()
    }

    /// Whether it matters more than how many tasks a node has.
    pub(super) fn is_choosy(&self, id: ViewId) -> bool {
        id != PLAIN && {
            let view = self.get(id);
            view.key.choice != NodeChoice::Spread || view.key.spread.is_some() || !view.warm.is_empty()
        }
    }

    /// How many nodes may be passed over before the index of a view is asked: none where that is up to date, or
    /// its order is another one; never more in sum than what it would have to take in.
    pub(super) fn patience(&self, id: ViewId, log: &ChangeLog, avoiding: bool, nodes: u64) -> u64 {
        if id == PLAIN || !self.get(id).key.is_level() {
            return 0;
        }
        let view = self.get(id);
        let index = if avoiding { &view.avoiding } else { &view.index };
        let is_kept = index.tree.is_some() && log.since(index.seen).is_some();
        let backlog = if is_kept { log.now() - index.seen } else { nodes };
        let is_near = is_kept && backlog <= PASSED_MAX;
        if is_near { 0 } else { backlog.saturating_sub(index.passed).min(PASSED_MAX) }
    }

    /// So many nodes were passed over instead of asking the index of a view.
    pub(super) fn note_passed(&mut self, id: ViewId, avoiding: bool, nodes: u64) {
        let view = self.get_mut(id);
        let index = if avoiding { &mut view.avoiding } else { &mut view.index };
        index.passed += nodes;
    }

    /// Asks an index of a view: that of all its nodes, or of those that remember this.
    pub(super) fn ask<T>(
        &mut self,
        id: ViewId,
        memory: Memory<'_>,
        from: Sources<'_>,
        question: impl FnOnce(&SpreadTree) -> T,
    ) -> T {
        self.asked += 1;
        let view = self.entries[id.0 as usize - 1].as_mut().expect("a referenced view is there");
        let (index, avoiding) = match memory {
            None => (&mut view.index, &mut view.avoiding),
            Some(memory) => {
                let warm = view.warm.get_mut(memory).expect("a referenced memory is there");
                (&mut warm.index, &mut warm.avoiding)
            }
        };
        let index = if from.flagged.is_some() { avoiding } else { index };
        index.asked = self.asked;
        let (tree, grown) = index.catch_up(&view.key, memory, from);
        let answer = question(tree);
        self.indexed = self.indexed.checked_add_signed(grown).expect("what is taken off was counted");
        if self.indexed > INDEXED_MAX {
            self.make_room();
        }
        answer
    }

    /// How many changes the index of a view has taken in, if it was built.
    #[cfg(test)]
    pub(super) fn seen(&self, id: ViewId) -> Option<u64> {
        let index = &self.get(id).index;
        index.tree.is_some().then_some(index.seen)
    }

    /// Lets go of the indexes that nobody has asked for the longest time, but never of the last one.
    fn make_room(&mut self) {
        let views = self.entries.iter_mut().flatten();
        let mut built: Vec<&mut Index> =
            views.flat_map(View::indexes_mut).filter(|index| index.tree.is_some()).collect();
        built.sort_unstable_by_key(|index| index.asked);
        built.pop();
        for index in built {
            if self.indexed <= INDEXED_MAX {
                break;
            }
            self.indexed -= index.len();
            *index = Index::default();
        }
    }
}

/// What nodes may remember that matters to tasks that start from this.
fn memories_of(snapshot: Option<&Arc<str>>) -> impl Iterator<Item = Option<Arc<str>>> + '_ {
    snapshot.into_iter().flat_map(|snapshot| [Some(Arc::clone(snapshot)), None])
}
