//! Shapes: identical tasks are one thing to placement. Each shape with waiting tasks is in exactly
//! one place: indexed by what would let it run, open (to be tried in this turn), or parked (tried
//! in this turn, in vain).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::collections::{Deadlines, Paged, Seldom};
use crate::id::NodeId;
use crate::resources::Resources;
use crate::spec::ShapeSpec;
use crate::time::{MaybeSpan, Span, Time};

use super::groups::JobView;
use super::leaf::{Leaf, LeafId};
use super::nodes::{NodeEntry, Nodes};
use super::order::Order;
pub(super) use super::queue::waits;
use super::queue::{Queue, Queued};
use super::scopes::{ScopeId, Scopes};
pub(super) use super::shape_key::ShapeKey;
use super::ties::bound_to;
use super::windows::Window;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct ShapeId(pub(super) u32);

/// Tasks inside one pool and where they look for nodes, by pool.
type InPools = BTreeMap<Arc<str>, (Arc<ShapeSpec>, ScopeId)>;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shape {
    pub(super) key: ShapeKey,
    /// The share in which its tasks wait.
    pub(super) leaf: LeafId,
    /// The lifetime of its tasks, where limits tell them apart by it.
    lifetime: MaybeSpan,
    /// Its place in the index of the leaf.
    slot: u32,
    /// Roles of this shape, plus atomic groups queued under it.
    pub(super) references: u32,
    /// Where its tasks look for nodes, in the order of [`ShapeKey::specs`]. A node matters to this shape
    /// only if it belongs to the realm of one of these and has at least this much room.
    pub(super) scopes: SmallVec<[ScopeId; 1]>,
    /// The same inside one pool, for atomic groups that stay in one, by pool as they are asked for.
    in_pools: Seldom<InPools>,
    touch: Resources,
    pub(super) window: Option<Window>,
    pub(super) queue: Queue,
    pub(super) place: Place,
    /// How many tasks waited when the host was last told that a node is wanted, or since then if fewer did.
    pub(super) wanted: u64,
    /// The order of the queue's head, as the place it is in knows it.
    pub(super) order: Order,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Place {
    /// Nothing waits.
    Idle,
    Indexed,
    Open,
    Parked,
    /// Kept by a limit, whatever room there is.
    Limited,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shapes {
    entries: Vec<Option<Shape>>,
    vacant: Vec<ShapeId>,
    #[serde(skip)]
    interned: BTreeMap<(LeafId, Option<Span>, ShapeKey), ShapeId>,
    #[serde(skip)]
    leaves: Vec<Leaf>,
    #[serde(skip)]
    windows: Deadlines,
    /// How many shapes are open.
    #[serde(skip)]
    open: usize,
    parked: Vec<ShapeId>,
}

impl Shape {
    pub(super) fn lifetime(&self) -> Option<Span> {
        self.lifetime.get()
    }

    /// What the head requests: one task, or a whole atomic group.
    pub(super) fn total_request(&self) -> Cow<'_, Resources> {
        match &self.key {
            ShapeKey::Task(spec) => Cow::Borrowed(&spec.request),
            ShapeKey::Gang(roles, _) => {
                let mut total = Resources::new();
                for (spec, count) in roles {
                    for (kind, amount) in spec.request.iter() {
                        let more = amount.saturating_mul(i64::from(*count));
                        total.set(kind, total.get(kind).saturating_add(more));
                    }
                }
                Cow::Owned(total)
            }
        }
    }

    /// Whether the company on a node lets the shape in. A gang finds out when it is planned.
    fn is_admitted_on(&self, entry: &NodeEntry) -> bool {
        match &self.key {
            ShapeKey::Task(spec) => !spec.minds_company() || entry.company.admits(spec),
            ShapeKey::Gang(..) => true,
        }
    }

    fn release_pools(&mut self, nodes: &mut Nodes) {
        for (spec, scope) in self.in_pools.take().into_values() {
            nodes.scopes.release(scope, &spec);
        }
    }

    fn finds_room_on(&self, entry: &NodeEntry) -> bool {
        self.touch.fits_in(&entry.free) && self.is_admitted_on(entry)
    }
}

impl Shapes {
    pub(super) fn new() -> Shapes {
        Shapes {
            entries: Vec::new(),
            vacant: Vec::new(),
            interned: BTreeMap::new(),
            leaves: Vec::new(),
            windows: Deadlines::default(),
            open: 0,
            parked: Vec::new(),
        }
    }

    /// Makes everything anew that is not stored.
    pub(super) fn rebuild(&mut self, width: usize, leaves: usize, jobs: &Paged<JobView>) {
        self.leaves = vec![Leaf::new(width); leaves];
        self.windows = Deadlines::default();
        self.interned.clear();
        self.open = 0;
        for index in 0..self.entries.len() {
            let Some(shape) = &mut self.entries[index] else { continue };
            let id = ShapeId(index as u32);
            shape.slot = self.leaves[shape.leaf.index()].admit(id);
            self.interned.insert((shape.leaf, shape.lifetime.get(), shape.key.clone()), id);
            if let Some(window) = shape.window {
                self.windows.set(index, window.closes);
            }
            if matches!(shape.place, Place::Indexed | Place::Open) {
                self.enter(id);
            }
            self.settle(id, jobs);
        }
    }

    /// Makes room for one leaf more.
    pub(super) fn add_leaf(&mut self, width: usize) {
        self.leaves.push(Leaf::new(width));
    }

    /// Lets go of every shape and of the scopes they hold.
    pub(super) fn dissolve(self, nodes: &mut Nodes) {
        for mut shape in self.entries.into_iter().flatten() {
            shape.release_pools(nodes);
            release_scopes(&shape.key, shape.scopes, nodes);
        }
    }

    pub(super) fn leaf(&self, id: LeafId) -> &Leaf {
        &self.leaves[id.index()]
    }

    pub(super) fn get(&self, id: ShapeId) -> &Shape {
        self.entries[id.0 as usize].as_ref().expect("a referenced shape is there")
    }

    pub(super) fn find(&self, id: ShapeId) -> Option<&Shape> {
        self.entries.get(id.0 as usize)?.as_ref()
    }

    /// Shapes that were tried in this turn, in vain.
    pub(super) fn parked(&self) -> &[ShapeId] {
        &self.parked
    }

    pub(super) fn get_mut(&mut self, id: ShapeId) -> &mut Shape {
        self.entries[id.0 as usize].as_mut().expect("a referenced shape is there")
    }

    /// No shape has a larger id than this.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ShapeId, &Shape)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(index, shape)| shape.as_ref().map(|shape| (ShapeId(index as u32), shape)))
    }

    /// The shape of this key in this leaf; the caller counts its reference.
    pub(super) fn intern(
        &mut self,
        (leaf, lifetime): (LeafId, Option<Span>),
        key: ShapeKey,
        nodes: &mut Nodes,
    ) -> ShapeId {
        let key = (leaf, lifetime, key);
        if let Some(id) = self.interned.get(&key) {
            return *id;
        }
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            ShapeId(self.entries.len() as u32 - 1)
        });
        self.interned.insert(key.clone(), id);
        let (leaf, lifetime, key) = key;
        let shape = Shape {
            leaf,
            lifetime: lifetime.into(),
            slot: self.leaves[leaf.index()].admit(id),
            references: 0,
            scopes: intern_scopes(&key, nodes),
            in_pools: Seldom::default(),
            touch: key.touch(),
            key,
            window: None,
            queue: Queue::default(),
            place: Place::Idle,
            wanted: 0,
            order: Order::default(),
        };
        self.entries[id.0 as usize] = Some(shape);
        id
    }

    /// Tasks of this shape in one pool, and where they look for nodes there.
    pub(super) fn in_pool(
        &mut self,
        id: ShapeId,
        pool: &Arc<str>,
        nodes: &mut Nodes,
    ) -> (Arc<ShapeSpec>, ScopeId) {
        let shape = self.get_mut(id);
        let ShapeKey::Task(spec) = &shape.key else { unreachable!("roles have shapes of tasks") };
        let known = shape.in_pools.entry(Arc::clone(pool)).or_insert_with(|| {
            let spec = bound_to(spec, Some(pool));
            let scope = nodes.intern_scope(&spec);
            (spec, scope)
        });
        known.clone()
    }

    /// Tasks that wait with this shape.
    pub(super) fn waiting(&self, id: ShapeId) -> u64 {
        self.get(id).queue.tasks
    }

    /// So many tasks more wait; the caller sees to it that the shape is where it belongs.
    pub(super) fn add_waiting(&mut self, id: ShapeId, queued: Queued, tasks: u64) {
        self.get_mut(id).queue.add(queued, tasks);
    }

    /// So many tasks do not wait any longer; the caller settles the shape.
    pub(super) fn take_waiting(&mut self, id: ShapeId, tasks: u64) {
        let shape = self.get_mut(id);
        shape.queue.tasks -= tasks;
        // Of those that come anew the host is to hear, although it once heard of more.
        shape.wanted = shape.wanted.min(shape.queue.tasks);
    }

    /// Gives back one reference.
    pub(super) fn release(&mut self, id: ShapeId, nodes: &mut Nodes) {
        self.get_mut(id).references -= 1;
        self.drop_if_unused(id, nodes);
    }

    fn drop_if_unused(&mut self, id: ShapeId, nodes: &mut Nodes) {
        let shape = self.get(id);
        // An open window outlives its tasks: what follows soon is still part of the same burst.
        if shape.references == 0 && shape.window.is_none() {
            assert_eq!(shape.place, Place::Idle, "nothing waits with an unused shape");
            let mut shape = self.entries[id.0 as usize].take().expect("checked above");
            shape.release_pools(nodes);
            self.leaves[shape.leaf.index()].dismiss(shape.slot);
            self.vacant.push(id);
            release_scopes(&shape.key, shape.scopes, nodes);
            self.interned.remove(&(shape.leaf, shape.lifetime.get(), shape.key));
        }
    }

    /// Asks for every scope anew: nodes are chosen otherwise from now on. Realms stay what they are, so
    /// whoever waits is found where it was.
    pub(super) fn rescope(&mut self, nodes: &mut Nodes) {
        for shape in self.entries.iter_mut().flatten() {
            let scopes = intern_scopes(&shape.key, nodes);
            let before = std::mem::replace(&mut shape.scopes, scopes);
            shape.release_pools(nodes);
            release_scopes(&shape.key, before, nodes);
        }
    }

    pub(super) fn open_window(&mut self, id: ShapeId, window: Window) {
        self.get_mut(id).window = Some(window);
        self.windows.set(id.0 as usize, window.closes);
    }

    pub(super) fn close_window(&mut self, id: ShapeId) {
        self.get_mut(id).window = None;
        self.windows.clear(id.0 as usize);
    }

    /// Closes every window, and lets go of shapes that only a window kept.
    pub(super) fn close_all_windows(&mut self, nodes: &mut Nodes) {
        let ids: Vec<ShapeId> = self.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.close_window(id);
            self.drop_if_unused(id, nodes);
        }
    }

    pub(super) fn next_window_close(&self) -> Option<Time> {
        self.windows.earliest()
    }

    /// Closes the first window that is due and says whose it was, unless nobody needs that shape.
    pub(super) fn pop_due_window(&mut self, now: Time, nodes: &mut Nodes) -> Option<ShapeId> {
        loop {
            let id = ShapeId(self.windows.pop_due(now)? as u32);
            self.get_mut(id).window = None;
            if self.get(id).references > 0 {
                return Some(id);
            }
            self.drop_if_unused(id, nodes);
        }
    }

    /// The entry that is served next with this shape.
    pub(super) fn head(&mut self, id: ShapeId, jobs: &Paged<JobView>) -> Option<Queued> {
        let shape = self.entries[id.0 as usize].as_mut().expect("a referenced shape is there");
        let is_gang = matches!(shape.key, ShapeKey::Gang(..));
        shape.queue.head(|queued| waits(jobs, id, is_gang, queued))
    }

    /// Puts the shape where it belongs after its queue changed.
    pub(super) fn settle(&mut self, id: ShapeId, jobs: &Paged<JobView>) {
        let place = self.get(id).place;
        self.move_to(id, place, jobs);
        let shape = self.entries[id.0 as usize].as_mut().expect("a referenced shape is there");
        let is_gang = matches!(shape.key, ShapeKey::Gang(..));
        shape.queue.compact(|queued| waits(jobs, id, is_gang, queued));
    }

    /// Moves a shape to a place, or to idle if nothing of it waits; waiting shapes are never idle.
    pub(super) fn move_to(&mut self, id: ShapeId, place: Place, jobs: &Paged<JobView>) {
        let head = self.head(id, jobs);
        let order = head.map_or(Order::default(), |(order, _)| order);
        let wanted = match (head, place) {
            (None, _) => Place::Idle,
            (Some(_), Place::Idle) => Place::Indexed,
            (Some(_), place) => place,
        };
        let shape = self.get_mut(id);
        if shape.place == wanted && shape.order == order {
            return;
        }
        self.leave(id);
        let shape = self.get_mut(id);
        (shape.place, shape.order) = (wanted, order);
        if wanted == Place::Idle {
            shape.wanted = 0;
        }
        self.enter(id);
    }

    fn leave(&mut self, id: ShapeId) {
        let shape = self.entries[id.0 as usize].as_ref().expect("a referenced shape is there");
        let leaf = &mut self.leaves[shape.leaf.index()];
        match shape.place {
            Place::Idle | Place::Limited => {}
            Place::Indexed => leaf.leave(&shape.scopes, shape.order, shape.slot),
            Place::Open => {
                leaf.close(shape.order, id);
                self.open -= 1;
            }
            Place::Parked => self.parked.retain(|parked| *parked != id),
        }
    }

    fn enter(&mut self, id: ShapeId) {
        let shape = self.entries[id.0 as usize].as_ref().expect("a referenced shape is there");
        let leaf = &mut self.leaves[shape.leaf.index()];
        match shape.place {
            Place::Idle | Place::Limited => {}
            Place::Indexed => leaf.enter(&shape.scopes, shape.order, shape.slot, shape.touch.amounts()),
            Place::Open => {
                leaf.open(shape.order, id);
                self.open += 1;
            }
            Place::Parked => self.parked.push(id),
        }
    }

    /// Whether anything is to be tried in this turn or the next.
    pub(super) fn any_open(&self) -> bool {
        self.open > 0
    }

    /// The indexed shape of a leaf whose head comes first, among those to which this node matters.
    pub(super) fn first_touched_by(
        &self,
        leaf: LeafId,
        node: NodeId,
        entry: &NodeEntry,
        scopes: &Scopes,
    ) -> Option<(Order, ShapeId)> {
        let leaf = self.leaf(leaf);
        let mut first = leaf.first_anywhere(entry, |id| self.get(id).is_admitted_on(entry));
        if !leaf.has_scoped() {
            return first;
        }
        for waiting in scopes.of_node(node, entry).filter_map(|realm| leaf.of_realm(realm)) {
            let before = waiting.iter().take_while(|known| first.is_none_or(|first| **known < first));
            let found = before.copied().find(|(_, id)| self.get(*id).finds_room_on(entry));
            first = found.or(first);
        }
        first
    }

    /// How many leaves there are.
    pub(super) fn leaves(&self) -> usize {
        self.leaves.len()
    }

    /// Notes for each leaf if a node may matter to something that is indexed there: what is left as it is
    /// plainly does not care for the node.
    pub(super) fn note_hopes(&self, entry: &NodeEntry, hopes: &mut [bool]) {
        for (leaf, hope) in self.leaves.iter().zip(hopes) {
            *hope |= leaf.has_scoped() || leaf.may_fit(entry);
        }
    }

    /// The order under which a shape is indexed, if it is.
    pub(super) fn index_order(&self, id: ShapeId) -> Option<Order> {
        let shape = self.entries.get(id.0 as usize).and_then(Option::as_ref);
        shape.filter(|shape| shape.place == Place::Indexed).map(|shape| shape.order)
    }

    /// Whether its tasks, one by one, go to the fullest node.
    pub(super) fn packs(&self, id: ShapeId, scopes: &Scopes) -> bool {
        let shape = self.get(id);
        matches!(shape.key, ShapeKey::Task(_)) && scopes.packs(shape.scopes[0])
    }

    /// Shapes that are open.
    pub(super) fn open(&self) -> Vec<ShapeId> {
        self.leaves.iter().flat_map(Leaf::open_shapes).collect()
    }

    /// Whether a shape of this id is kept by a limit.
    pub(super) fn is_limited(&self, id: ShapeId) -> bool {
        let shape = self.entries.get(id.0 as usize).and_then(Option::as_ref);
        shape.is_some_and(|shape| shape.place == Place::Limited)
    }

    /// Whether a shape of this id waits for room.
    pub(super) fn waits_for_room(&self, id: ShapeId) -> bool {
        let shape = self.entries.get(id.0 as usize).and_then(Option::as_ref);
        shape.is_some_and(|shape| shape.place == Place::Indexed && shape.window.is_none())
    }

    /// Ends a turn: what was tried in vain waits for room again.
    pub(super) fn unpark(&mut self, jobs: &Paged<JobView>) {
        for id in std::mem::take(&mut self.parked) {
            // The list is taken: what is left is the shape's own idea of its place.
            self.get_mut(id).place = Place::Idle;
            self.move_to(id, Place::Indexed, jobs);
        }
    }
}

fn intern_scopes(key: &ShapeKey, nodes: &mut Nodes) -> SmallVec<[ScopeId; 1]> {
    key.specs().map(|spec| nodes.intern_scope(spec)).collect()
}

fn release_scopes(key: &ShapeKey, scopes: SmallVec<[ScopeId; 1]>, nodes: &mut Nodes) {
    key.specs().zip(scopes).for_each(|(spec, scope)| nodes.scopes.release(scope, spec));
}
