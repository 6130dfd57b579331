//! Nodes in the order in which they are wanted: the smallest part of every index of a view.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::collections::{FitTree, RankTree};
use crate::id::NodeId;
use crate::spec::{Asker, remoteness};

use super::nodes::NodeEntry;

/// What decides between nodes of one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum RowOrder {
    /// The fewest tasks of the service, where there is one, then the fewest tasks, then those without GPUs, then
    /// the smaller id.
    Fewest,
    /// The one that has the least left: see [`Fullness`].
    Fullest,
    /// The nearest to who asks, then like the fewest: see [`remoteness`].
    Nearest(Option<Arc<Asker>>),
}

/// How much a node has left, from the scarcest kind on: `gpu`, `cpu`, `memory`, the declared kinds in
/// their order, `slot`; then its id. The smallest is the fullest.
///
/// What a task leaves behind is what is free minus the same request everywhere, so the node that comes
/// first also has the least left afterwards. Free GPUs are compared first: a task that asks for none
/// goes to a node that has none free as long as one has room, and a task that asks for some goes where
/// the fewest that are enough are free. Amounts are compared exactly.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Fullness {
    left: SmallVec<[i64; 4]>,
    node: NodeId,
}

const SLOT: usize = 0;
const CPU: usize = 1;
const MEMORY: usize = 2;
const GPU: usize = 3;

impl Fullness {
    pub(super) fn of(node: NodeId, amounts: &[i64], width: usize) -> Fullness {
        let scarce_first = [GPU, CPU, MEMORY].into_iter().chain(GPU + 1..width).chain([SLOT]);
        let amount = |kind: usize| amounts.get(kind).copied().unwrap_or(0);
        Fullness { left: scarce_first.map(amount).collect(), node }
    }
}

/// Below these bits of a key it says whether the node has GPUs, and its id.
const LEVEL_BITS: u32 = u32::BITS + 1;

/// The place of a node among those with room: the fewest tasks, then those without GPUs, so that these stay for
/// whoever asks for them, then the smaller id.
pub(super) fn key(id: NodeId, entry: &NodeEntry) -> u64 {
    let has_gpus = entry.view.capacity.amounts().get(GPU).is_some_and(|gpus| *gpus > 0);
    u64::from(entry.company.tasks) << LEVEL_BITS | u64::from(has_gpus) << u32::BITS | u64::from(id.0)
}

/// The smallest key of all that come after nodes that differ from this one by their id only.
pub(super) fn next_level(key: u64) -> u64 {
    ((key >> u32::BITS) + 1) << u32::BITS
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    index: RowIndex,
    slots: Vec<Option<NodeId>>,
    vacant: Vec<usize>,
}

#[derive(Clone, Debug)]
enum RowIndex {
    Fewest(FitTree<(u32, u64)>),
    Fullest(RankTree<Fullness>, usize),
    Nearest(FitTree<((u32, u32), u64)>, Option<Arc<Asker>>),
}

impl Row {
    pub(super) fn new(order: RowOrder, width: usize) -> Row {
        let index = match order {
            RowOrder::Fewest => RowIndex::Fewest(FitTree::new((u32::MAX, u64::MAX), width)),
            RowOrder::Fullest => RowIndex::Fullest(RankTree::new(width), width),
            RowOrder::Nearest(asker) => {
                RowIndex::Nearest(FitTree::new(((u32::MAX, u32::MAX), u64::MAX), width), asker)
            }
        };
        Row { index, slots: Vec::new(), vacant: Vec::new() }
    }

    pub(super) fn enter(&mut self, node: NodeId) -> usize {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(node);
        slot
    }

    pub(super) fn leave(&mut self, slot: usize) {
        self.withhold(slot);
        self.slots[slot] = None;
        self.vacant.push(slot);
    }

    /// Takes in how a node stands that may be chosen; `tasks` are those of the service.
    pub(super) fn offer(&mut self, slot: usize, tasks: u32, entry: &NodeEntry) {
        let node = self.node(slot);
        let free = entry.free.amounts();
        match &mut self.index {
            RowIndex::Fewest(tree) => tree.set(slot, (tasks, key(node, entry)), free),
            RowIndex::Fullest(tree, width) => tree.set(slot, Fullness::of(node, free, *width), free),
            RowIndex::Nearest(tree, asker) => {
                let far = remoteness(asker.as_deref(), &entry.view.facts);
                tree.set(slot, ((far, tasks), key(node, entry)), free);
            }
        }
    }

    /// The node stays here but is not to be chosen.
    pub(super) fn withhold(&mut self, slot: usize) {
        match &mut self.index {
            RowIndex::Fewest(tree) => tree.remove(slot),
            RowIndex::Fullest(tree, _) => tree.remove(slot),
            RowIndex::Nearest(tree, _) => tree.remove(slot),
        }
    }

    /// The largest free amount of each kind; `None` if no node may be chosen.
    pub(super) fn largest(&self) -> Option<&[i64]> {
        match &self.index {
            RowIndex::Fewest(tree) => tree.largest(),
            RowIndex::Fullest(tree, _) => tree.largest(),
            RowIndex::Nearest(tree, _) => tree.largest(),
        }
    }

    pub(super) fn first_fit(&self, wanted: &[i64], accept: &impl Fn(NodeId) -> bool) -> Option<NodeId> {
        match &self.index {
            RowIndex::Fewest(tree) => {
                let found = tree.first_fit_where(wanted, |slot| accept(self.node(slot)));
                found.map(|slot| self.node(slot))
            }
            RowIndex::Nearest(tree, _) => {
                let found = tree.first_fit_where(wanted, |slot| accept(self.node(slot)));
                found.map(|slot| self.node(slot))
            }
            RowIndex::Fullest(tree, _) => {
                tree.find_fit(wanted, |slot| Some(self.node(slot)).filter(|node| accept(*node)))
            }
        }
    }

    /// Adds nodes with room that `accept` takes until there are `most`, those first that come first.
    pub(super) fn fits(
        &self,
        wanted: &[i64],
        most: usize,
        accept: &impl Fn(NodeId) -> bool,
        found: &mut Vec<NodeId>,
    ) {
        match &self.index {
            RowIndex::Fewest(tree) => {
                let slots = tree.first_fits_where(wanted, most - found.len(), |slot| accept(self.node(slot)));
                found.extend(slots.into_iter().map(|slot| self.node(slot)));
            }
            RowIndex::Nearest(tree, _) => {
                let slots = tree.first_fits_where(wanted, most - found.len(), |slot| accept(self.node(slot)));
                found.extend(slots.into_iter().map(|slot| self.node(slot)));
            }
            RowIndex::Fullest(tree, _) => {
                tree.find_fit(wanted, |slot| {
                    found.extend(Some(self.node(slot)).filter(|node| accept(*node)));
                    (found.len() >= most).then_some(())
                });
            }
        }
    }

    fn node(&self, slot: usize) -> NodeId {
        self.slots[slot].expect("indexed slots are taken")
    }
}
