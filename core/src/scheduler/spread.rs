//! The index of a view: its nodes under the values of the facts over which they are spread, level by
//! level. The next task goes to the branch with the fewest tasks of the service that has a node with
//! room, at every level; branches with equally many go by their values. Inside the last branch the order
//! of the row decides. So a batch is filled level, and a branch that cannot take anything does not skew
//! the others. Without levels there is one row.
//!
//! Each level keeps its branches in order, with the most that is free below each: choosing one of many
//! branches takes a few steps, also when most of them are full.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::collections::{Paged, RankTree};
use crate::constraint::{Facts, Key};
use crate::id::NodeId;

use super::nodes::NodeEntry;
use super::row::{Row, RowOrder};

#[derive(Clone, Debug)]
pub(super) struct SpreadTree {
    form: Form,
    root: Branch,
    /// Where each node hangs, by node id.
    places: Paged<Place>,
}

#[derive(Clone, Debug)]
struct Form {
    /// Whose tasks are counted.
    service: Option<String>,
    levels: Vec<Key>,
    order: RowOrder,
    width: usize,
}

/// The values that lead to a node, and what it has added to every branch above it.
#[derive(Clone, Debug)]
struct Place {
    path: Box<[Arc<str>]>,
    slot: usize,
    tasks: u32,
}

#[derive(Clone, Debug)]
struct Branch {
    /// Tasks of the service below here.
    tasks: u64,
    nodes: usize,
    below: Below,
}

#[derive(Clone, Debug)]
enum Below {
    Branches(Branches),
    /// The nodes themselves, at the last level.
    Row(Row),
}

#[derive(Clone, Debug)]
struct Branches {
    by_value: BTreeMap<Arc<str>, usize>,
    slots: Vec<Option<Branch>>,
    vacant: Vec<usize>,
    /// Branches in which a node may be chosen, by tasks and value.
    order: RankTree<(u64, Arc<str>)>,
}

/// How a node stands: not to be chosen, or with so much free.
type Offer<'a> = Option<&'a NodeEntry>;

impl SpreadTree {
    pub(super) fn new(
        service: Option<String>,
        levels: Vec<Key>,
        order: RowOrder,
        width: usize,
    ) -> SpreadTree {
        let form = Form { service, levels, order, width };
        SpreadTree { root: Branch::new(&form, 0), form, places: Paged::default() }
    }

    /// Nodes that hang here.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Takes in how a node stands; `None` if it does not belong here. One that does counts for its
    /// branches also when it is not `offered`.
    pub(super) fn set(&mut self, node: NodeId, entry: Option<&NodeEntry>, offered: bool) {
        let number = u64::from(node.0);
        let stays = entry.is_some_and(|entry| {
            let values = self.form.levels.iter().map(|fact| value(entry, fact));
            self.places.get(number).is_some_and(|place| values.eq(place.path.iter().map(|one| &**one)))
        });
        if !stays && let Some(place) = self.places.remove(number) {
            self.root.leave(&place.path, &place);
        }
        let Some(entry) = entry else { return };
        let tasks = self.form.service.as_ref().map_or(0, |service| entry.company.of_service(service));
        if !stays {
            let path: Box<[Arc<str>]> =
                self.form.levels.iter().map(|fact| Arc::from(value(entry, fact))).collect();
            let slot = self.root.enter(&path, node, &self.form, 0);
            self.places.insert(number, Place { path, slot, tasks: 0 });
        }
        let place = self.places.get_mut(number).expect("just entered");
        let change = i64::from(tasks) - i64::from(std::mem::replace(&mut place.tasks, tasks));
        self.root.take_in(&place.path, place, change, Some(entry).filter(|_| offered));
    }

    /// The node that comes next for this request among those that `accept` takes.
    pub(super) fn first_fit(&self, wanted: &[i64], accept: &impl Fn(NodeId) -> bool) -> Option<NodeId> {
        self.root.first_fit(wanted, accept)
    }

    /// Up to `most` nodes with room that `accept` takes: branch by branch those that come first, listed by id.
    pub(super) fn fits(&self, wanted: &[i64], most: usize, accept: &impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let mut found = Vec::new();
        if most > 0 {
            self.root.fits(wanted, most, accept, &mut found);
        }
        found.sort_unstable();
        found
    }
}

/// The value of a spread fact; where a node does not have it, that is a value of its own.
fn value<'a>(entry: &'a NodeEntry, fact: &Key) -> &'a str {
    entry.view.facts.fact(fact).unwrap_or_default()
}

impl Branch {
    fn new(form: &Form, level: usize) -> Branch {
        let below = match level < form.levels.len() {
            true => Below::Branches(Branches::new(form.width)),
            false => Below::Row(Row::new(form.order.clone(), form.width)),
        };
        Branch { tasks: 0, nodes: 0, below }
    }

    fn enter(&mut self, path: &[Arc<str>], node: NodeId, form: &Form, level: usize) -> usize {
        self.nodes += 1;
        match &mut self.below {
            Below::Row(row) => row.enter(node),
            Below::Branches(branches) => {
                let slot = branches.enter(&path[level], || Branch::new(form, level + 1));
                branches.branch_mut(slot).enter(path, node, form, level + 1)
            }
        }
    }

    fn leave(&mut self, path: &[Arc<str>], place: &Place) {
        self.nodes -= 1;
        self.tasks -= u64::from(place.tasks);
        match &mut self.below {
            Below::Row(row) => row.leave(place.slot),
            Below::Branches(branches) => {
                let (value, rest) = path.split_first().expect("a path has a value for every level");
                let slot = branches.by_value[value];
                branches.branch_mut(slot).leave(rest, place);
                branches.settle(slot, value);
            }
        }
    }

    /// Changes the counts on the way down and the order on the way up.
    fn take_in(&mut self, path: &[Arc<str>], place: &Place, change: i64, offer: Offer<'_>) {
        self.tasks = self.tasks.checked_add_signed(change).expect("what is taken off was counted");
        match (&mut self.below, offer) {
            (Below::Row(row), Some(entry)) => row.offer(place.slot, place.tasks, entry),
            (Below::Row(row), None) => row.withhold(place.slot),
            (Below::Branches(branches), offer) => {
                let (value, rest) = path.split_first().expect("a path has a value for every level");
                let slot = branches.by_value[value];
                branches.branch_mut(slot).take_in(rest, place, change, offer);
                branches.settle(slot, value);
            }
        }
    }

    fn largest(&self) -> Option<&[i64]> {
        match &self.below {
            Below::Row(row) => row.largest(),
            Below::Branches(branches) => branches.order.largest(),
        }
    }

    fn first_fit(&self, wanted: &[i64], accept: &impl Fn(NodeId) -> bool) -> Option<NodeId> {
        match &self.below {
            Below::Row(row) => row.first_fit(wanted, accept),
            Below::Branches(branches) => {
                branches.order.find_fit(wanted, |slot| branches.branch(slot).first_fit(wanted, accept))
            }
        }
    }

    fn fits(&self, wanted: &[i64], most: usize, accept: &impl Fn(NodeId) -> bool, found: &mut Vec<NodeId>) {
        match &self.below {
            Below::Row(row) => row.fits(wanted, most, accept, found),
            Below::Branches(branches) => {
                branches.order.find_fit(wanted, |slot| {
                    branches.branch(slot).fits(wanted, most, accept, found);
                    (found.len() >= most).then_some(())
                });
            }
        }
    }
}

impl Branches {
    fn new(width: usize) -> Branches {
        Branches {
            by_value: BTreeMap::new(),
            slots: Vec::new(),
            vacant: Vec::new(),
            order: RankTree::new(width),
        }
    }

    fn enter(&mut self, value: &Arc<str>, new: impl FnOnce() -> Branch) -> usize {
        if let Some(slot) = self.by_value.get(value) {
            return *slot;
        }
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(new());
        self.by_value.insert(Arc::clone(value), slot);
        slot
    }

    fn branch(&self, slot: usize) -> &Branch {
        self.slots[slot].as_ref().expect("a branch that is ordered is there")
    }

    fn branch_mut(&mut self, slot: usize) -> &mut Branch {
        self.slots[slot].as_mut().expect("a branch with a value is there")
    }

    /// Puts a branch where it belongs after something in it has changed; an empty one goes.
    fn settle(&mut self, slot: usize, value: &Arc<str>) {
        let branch = self.slots[slot].as_ref().expect("a branch with a value is there");
        match branch.largest() {
            Some(largest) => self.order.set(slot, (branch.tasks, Arc::clone(value)), largest),
            None => self.order.remove(slot),
        }
        if branch.nodes == 0 {
            self.slots[slot] = None;
            self.by_value.remove(value);
            self.vacant.push(slot);
        }
    }
}
