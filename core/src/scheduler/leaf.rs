//! The waiting shapes of one leaf of the share tree, indexed by what blocks them.
//!
//! A shape belongs to one leaf. It is *open* while this turn looks for a place for it anywhere, and
//! otherwise *indexed*: found by a node that has room for it, the one with the first head before others.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use crate::collections::FitTree;

use super::nodes::NodeEntry;
use super::order::Order;
use super::realms::{ALL, RealmId};
use super::scopes::ScopeId;
use super::shapes::ShapeId;

/// A share that holds waiting work itself: a queue of a class, at one level of strict bands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct LeafId(pub(super) u32);

impl LeafId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Which shape stands at which place of the index.
    slots: Vec<Option<ShapeId>>,
    vacant: Vec<usize>,
    /// Waiting shapes by order, with the negative of the room that matters to them: so "fits into what
    /// is free" is the tree's question with both sides negated.
    index: FitTree<Order>,
    /// Waiting shapes that not every node will do for, by realm and order.
    scoped: BTreeMap<RealmId, BTreeSet<(Order, ShapeId)>>,
    open: BTreeSet<(Order, ShapeId)>,
}

impl Leaf {
    pub(super) fn new(width: usize) -> Leaf {
        Leaf {
            slots: Vec::new(),
            vacant: Vec::new(),
            index: FitTree::new(Order::LAST, width),
            scoped: BTreeMap::new(),
            open: BTreeSet::new(),
        }
    }

    /// Gives a shape a place of its own in the index.
    pub(super) fn admit(&mut self, shape: ShapeId) -> u32 {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(shape);
        slot as u32
    }

    pub(super) fn dismiss(&mut self, slot: u32) {
        self.slots[slot as usize] = None;
        self.vacant.push(slot as usize);
    }

    /// Enters a shape under the realm of each of its scopes.
    pub(super) fn enter(&mut self, scopes: &[ScopeId], order: Order, slot: u32, touch: &[i64]) {
        let shape = self.slots[slot as usize].expect("who enters was admitted");
        for scope in scopes {
            if scope.realm == ALL {
                let room: SmallVec<[i64; 8]> = touch.iter().map(|amount| -amount).collect();
                self.index.set(slot as usize, order, &room);
            } else {
                self.scoped.entry(scope.realm).or_default().insert((order, shape));
            }
        }
    }

    pub(super) fn leave(&mut self, scopes: &[ScopeId], order: Order, slot: u32) {
        let shape = self.slots[slot as usize].expect("who leaves was admitted");
        for scope in scopes {
            if scope.realm == ALL {
                self.index.remove(slot as usize);
                continue;
            }
            // A gang may have several roles of one realm; it is listed there once.
            if let Some(waiting) = self.scoped.get_mut(&scope.realm) {
                waiting.remove(&(order, shape));
                if waiting.is_empty() {
                    self.scoped.remove(&scope.realm);
                }
            }
        }
    }

    pub(super) fn open(&mut self, order: Order, shape: ShapeId) {
        assert!(self.open.insert((order, shape)), "a shape is listed once");
    }

    pub(super) fn close(&mut self, order: Order, shape: ShapeId) {
        assert!(self.open.remove(&(order, shape)), "an open shape is listed");
    }

    /// The shape whose head comes first, whether there is room for it or not.
    pub(super) fn first(&self) -> Option<ShapeId> {
        let indexed =
            self.index.min_index().and_then(|slot| Some((self.index.key(slot)?, self.slots[slot]?)));
        let scoped = self.scoped.values().filter_map(|waiting| waiting.first().copied());
        indexed.into_iter().chain(scoped).chain(self.first_open()).min().map(|(_, shape)| shape)
    }

    /// The open shape whose head comes first.
    pub(super) fn first_open(&self) -> Option<(Order, ShapeId)> {
        self.open.first().copied()
    }

    pub(super) fn open_shapes(&self) -> impl Iterator<Item = ShapeId> + '_ {
        self.open.iter().map(|(_, id)| *id)
    }

    pub(super) fn has_scoped(&self) -> bool {
        !self.scoped.is_empty()
    }

    /// Shapes of this realm that wait for room, in order.
    pub(super) fn of_realm(&self, realm: RealmId) -> Option<&BTreeSet<(Order, ShapeId)>> {
        self.scoped.get(&realm)
    }

    /// Whether a node has at least the least of every kind that anything here needs.
    pub(super) fn may_fit(&self, entry: &NodeEntry) -> bool {
        let free = entry.free.amounts();
        self.index.largest().is_some_and(|least| {
            let has = |(kind, least): (usize, &i64)| free.get(kind).copied().unwrap_or(0) >= -least;
            least.iter().enumerate().all(has)
        })
    }

    /// The first shape that any node will do for, among those that `admitted` takes and for which the
    /// node has room.
    pub(super) fn first_anywhere(
        &self,
        entry: &NodeEntry,
        admitted: impl Fn(ShapeId) -> bool,
    ) -> Option<(Order, ShapeId)> {
        let mut wanted: SmallVec<[i64; 8]> = SmallVec::from_elem(0, self.index.width());
        for (wanted, amount) in wanted.iter_mut().zip(entry.free.amounts()) {
            *wanted = -amount;
        }
        let shape = |slot: usize| self.slots[slot].expect("indexed slots are taken");
        let slot = self.index.first_fit_where(&wanted, |slot| admitted(shape(slot)))?;
        Some((self.index.key(slot).expect("the tree named it"), shape(slot)))
    }
}
