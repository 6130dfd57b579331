//! Shapes: identical tasks are one thing to placement. Each shape with waiting tasks is in exactly
//! one place: indexed by what would let it run, open (to be tried in this turn), or parked (tried
//! in this turn, in vain).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::collections::{Deadlines, FitTree, Paged};
use crate::id::NodeId;
use crate::resources::Resources;
use crate::spec::ShapeSpec;
use crate::time::Time;

use super::groups::{self, JobView};
use super::nodes::{NodeEntry, Nodes};
use super::queue::{Entry, Queue};
use super::scopes::{EVERYWHERE, ScopeId, Scopes};
use super::windows::Window;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct ShapeId(pub(super) u32);

/// What makes two waiting things identical.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) enum ShapeKey {
    Task(Arc<ShapeSpec>),
    /// An atomic group: how many tasks of which shape must find room together.
    Gang(Vec<(Arc<ShapeSpec>, u32)>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shape {
    pub(super) key: ShapeKey,
    /// Roles of this shape, plus atomic groups queued under it.
    pub(super) references: u32,
    /// A node matters to this shape only if it belongs to one of these scopes and has at least this
    /// much room.
    pub(super) scopes: SmallVec<[ScopeId; 1]>,
    touch: Resources,
    pub(super) window: Option<Window>,
    pub(super) queue: Queue,
    pub(super) place: Place,
    /// How many tasks waited when the host was last told that a node is wanted.
    wanted: u64,
    /// The order of the queue's head, as the place it is in knows it.
    order: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Place {
    /// Nothing waits.
    Idle,
    Indexed,
    Open,
    Parked,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shapes {
    entries: Vec<Option<Shape>>,
    vacant: Vec<ShapeId>,
    #[serde(skip)]
    interned: BTreeMap<ShapeKey, ShapeId>,
    /// Waiting shapes by order of arrival, with the negative of the room that matters to them: so
    /// "fits into what is free" is the tree's question with both sides negated.
    #[serde(skip, default = "empty_index")]
    index: FitTree<u64>,
    /// Waiting shapes that not every node will do for, by scope and order of arrival.
    #[serde(skip)]
    scoped: BTreeMap<ScopeId, BTreeSet<(u64, ShapeId)>>,
    #[serde(skip)]
    windows: Deadlines,
    open: BTreeSet<(u64, ShapeId)>,
    parked: Vec<ShapeId>,
}

fn empty_index() -> FitTree<u64> {
    FitTree::new(u64::MAX, 0)
}

impl ShapeKey {
    /// The distinct tasks that are part of it.
    fn specs(&self) -> impl Iterator<Item = &Arc<ShapeSpec>> {
        let (task, gang) = match self {
            ShapeKey::Task(spec) => (Some(spec), [].as_slice()),
            ShapeKey::Gang(roles) => (None, roles.as_slice()),
        };
        task.into_iter().chain(gang.iter().map(|(spec, _)| spec))
    }

    fn touch(&self) -> Resources {
        match self {
            ShapeKey::Task(spec) => spec.request.clone(),
            ShapeKey::Gang(roles) => {
                let mut requests = roles.iter().map(|(spec, _)| &spec.request);
                let first = requests.next().expect("a gang has roles").clone();
                requests.fold(first, |smallest, request| smallest.componentwise_min(request))
            }
        }
    }
}

impl Shape {
    /// Whether the company on a node lets the shape in. A gang finds out when it is planned.
    fn is_admitted_on(&self, entry: &NodeEntry) -> bool {
        match &self.key {
            ShapeKey::Task(spec) => !spec.minds_company() || entry.company.admits(spec),
            ShapeKey::Gang(_) => true,
        }
    }

    fn finds_room_on(&self, entry: &NodeEntry) -> bool {
        self.touch.fits_in(&entry.free) && self.is_admitted_on(entry)
    }
}

impl Shapes {
    pub(super) fn new(width: usize) -> Shapes {
        Shapes {
            entries: Vec::new(),
            vacant: Vec::new(),
            interned: BTreeMap::new(),
            index: FitTree::new(u64::MAX, width),
            scoped: BTreeMap::new(),
            windows: Deadlines::default(),
            open: BTreeSet::new(),
            parked: Vec::new(),
        }
    }

    pub(super) fn rebuild(&mut self, width: usize, jobs: &Paged<JobView>) {
        self.index = FitTree::new(u64::MAX, width);
        self.scoped.clear();
        self.windows = Deadlines::default();
        self.interned.clear();
        for index in 0..self.entries.len() {
            let Some(shape) = &self.entries[index] else { continue };
            let id = ShapeId(index as u32);
            self.interned.insert(shape.key.clone(), id);
            if let Some(window) = shape.window {
                self.windows.set(index, window.closes);
            }
            if shape.place == Place::Indexed {
                self.enter(id);
            }
            self.settle(id, jobs);
        }
    }

    pub(super) fn get(&self, id: ShapeId) -> &Shape {
        self.entries[id.0 as usize].as_ref().expect("a referenced shape is there")
    }

    pub(super) fn get_mut(&mut self, id: ShapeId) -> &mut Shape {
        self.entries[id.0 as usize].as_mut().expect("a referenced shape is there")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ShapeId, &Shape)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(index, shape)| shape.as_ref().map(|shape| (ShapeId(index as u32), shape)))
    }

    /// The shape of this key; the caller counts its reference.
    pub(super) fn intern(&mut self, key: ShapeKey, nodes: &mut Nodes) -> ShapeId {
        if let Some(id) = self.interned.get(&key) {
            return *id;
        }
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            ShapeId(self.entries.len() as u32 - 1)
        });
        self.interned.insert(key.clone(), id);
        let touch = key.touch();
        let scopes = key.specs().map(|spec| nodes.intern_scope(spec)).collect();
        let (queue, place) = (Queue::default(), Place::Idle);
        let shape =
            Shape { key, references: 0, scopes, touch, window: None, queue, place, wanted: 0, order: 0 };
        self.entries[id.0 as usize] = Some(shape);
        id
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
            let shape = self.entries[id.0 as usize].take().expect("checked above");
            self.interned.remove(&shape.key);
            self.vacant.push(id);
            shape.scopes.into_iter().for_each(|scope| nodes.scopes.release(scope));
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
    pub(super) fn head(&mut self, id: ShapeId, jobs: &Paged<JobView>) -> Option<Entry> {
        let shape = self.entries[id.0 as usize].as_mut().expect("a referenced shape is there");
        let is_gang = matches!(shape.key, ShapeKey::Gang(_));
        shape.queue.head(|entry| waits(jobs, id, is_gang, entry))
    }

    /// Puts the shape where it belongs after its queue changed.
    pub(super) fn settle(&mut self, id: ShapeId, jobs: &Paged<JobView>) {
        let place = self.get(id).place;
        self.move_to(id, place, jobs);
        let shape = self.entries[id.0 as usize].as_mut().expect("a referenced shape is there");
        let is_gang = matches!(shape.key, ShapeKey::Gang(_));
        shape.queue.compact(|entry| waits(jobs, id, is_gang, entry));
    }

    /// Moves a shape to a place, or to idle if nothing of it waits; waiting shapes are never idle.
    pub(super) fn move_to(&mut self, id: ShapeId, place: Place, jobs: &Paged<JobView>) {
        let head = self.head(id, jobs);
        let order = head.map_or(0, |entry| entry.group.order());
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
        let (place, order) = (self.get(id).place, self.get(id).order);
        match place {
            Place::Idle => {}
            Place::Indexed => {
                let scopes = self.get(id).scopes.clone();
                for scope in scopes {
                    self.leave_scope(scope, order, id);
                }
            }
            Place::Open => assert!(self.open.remove(&(order, id)), "an open shape is listed"),
            Place::Parked => self.parked.retain(|parked| *parked != id),
        }
    }

    fn enter(&mut self, id: ShapeId) {
        let shape = self.entries[id.0 as usize].as_ref().expect("a referenced shape is there");
        match shape.place {
            Place::Idle => {}
            Place::Indexed => {
                for scope in &shape.scopes {
                    if *scope == EVERYWHERE {
                        let amounts = shape.touch.amounts().iter();
                        let room: SmallVec<[i64; 8]> = amounts.map(|amount| -amount).collect();
                        self.index.set(id.0 as usize, shape.order, &room);
                    } else {
                        self.scoped.entry(*scope).or_default().insert((shape.order, id));
                    }
                }
            }
            Place::Open => assert!(self.open.insert((shape.order, id)), "a shape is listed once"),
            Place::Parked => self.parked.push(id),
        }
    }

    /// The open shape whose head came first.
    pub(super) fn first_open(&self) -> Option<(u64, ShapeId)> {
        self.open.first().copied()
    }

    fn leave_scope(&mut self, scope: ScopeId, order: u64, id: ShapeId) {
        if scope == EVERYWHERE {
            return self.index.remove(id.0 as usize);
        }
        // A gang may have several roles of one scope; it is listed there once.
        if let Some(waiting) = self.scoped.get_mut(&scope) {
            waiting.remove(&(order, id));
            if waiting.is_empty() {
                self.scoped.remove(&scope);
            }
        }
    }

    /// The indexed shape whose head came first, among those to which this node matters.
    pub(super) fn first_touched_by(
        &self,
        node: NodeId,
        entry: &NodeEntry,
        scopes: &Scopes,
    ) -> Option<(u64, ShapeId)> {
        let mut first = self.first_anywhere(entry);
        if self.scoped.is_empty() {
            return first;
        }
        for waiting in scopes.of_node(node, entry).filter_map(|scope| self.scoped.get(&scope)) {
            let before = waiting.iter().take_while(|known| first.is_none_or(|first| **known < first));
            let found = before.copied().find(|(_, id)| self.get(*id).finds_room_on(entry));
            first = found.or(first);
        }
        first
    }

    fn first_anywhere(&self, entry: &NodeEntry) -> Option<(u64, ShapeId)> {
        let free = &entry.free;
        let mut wanted: SmallVec<[i64; 8]> = SmallVec::from_elem(0, self.index.width());
        for (wanted, amount) in wanted.iter_mut().zip(free.amounts()) {
            *wanted = -amount;
        }
        let admitted = |index| self.get(ShapeId(index as u32)).is_admitted_on(entry);
        let index = self.index.first_fit_where(&wanted, admitted)?;
        Some((self.index.key(index).expect("the tree named it"), ShapeId(index as u32)))
    }

    /// The order under which a shape is indexed, if it is.
    pub(super) fn index_order(&self, id: ShapeId) -> Option<u64> {
        let shape = self.entries.get(id.0 as usize).and_then(Option::as_ref);
        shape.filter(|shape| shape.place == Place::Indexed).map(|shape| shape.order)
    }

    /// Shapes that are open.
    pub(super) fn open(&self) -> Vec<ShapeId> {
        self.open.iter().map(|(_, id)| *id).collect()
    }

    /// Whether a shape of this id waits for room.
    pub(super) fn waits_for_room(&self, id: ShapeId) -> bool {
        let shape = self.entries.get(id.0 as usize).and_then(Option::as_ref);
        shape.is_some_and(|shape| shape.place == Place::Indexed && shape.window.is_none())
    }

    /// Of the shapes that were tried in vain those of which so many wait that it is news.
    pub(super) fn news_of_wants(&mut self) -> Vec<(Arc<ShapeSpec>, u64)> {
        let mut news = Vec::new();
        for id in self.parked.clone() {
            let shape = self.get_mut(id);
            let tasks = shape.queue.tasks;
            if shape.window.is_some() || tasks < (2 * shape.wanted).max(1) {
                continue;
            }
            shape.wanted = tasks;
            match &shape.key {
                ShapeKey::Task(spec) => news.push((Arc::clone(spec), tasks)),
                ShapeKey::Gang(roles) => {
                    let groups = tasks / roles.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
                    let role = |(spec, count): &(Arc<ShapeSpec>, u32)| {
                        (Arc::clone(spec), u64::from(*count) * groups)
                    };
                    news.extend(roles.iter().map(role));
                }
            }
        }
        news
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

fn waits(jobs: &Paged<JobView>, shape: ShapeId, is_gang: bool, entry: Entry) -> bool {
    groups::find(jobs, entry.group).is_some_and(|group| match is_gang {
        true => group.gang == Some(shape),
        false => {
            let role = &group.roles[usize::from(entry.role)];
            role.shape == shape && role.queued > 0
        }
    })
}
