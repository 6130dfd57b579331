//! The spread tree of one service: the nodes of a scope under the values of its spread facts, level by
//! level. The next task goes to the branch with the fewest tasks of the service that has a node with
//! room, at every level; inside the last to the node with the fewest tasks of the service, then the
//! fewest tasks, then the smaller id. So a batch is filled level, and a branch that cannot take anything
//! does not skew the others.

use std::collections::BTreeMap;

use crate::collections::FitTree;
use crate::constraint::{Facts, Key};
use crate::id::NodeId;
use crate::spec::ShapeSpec;

use super::nodes::{NodeEntry, admits, key};

type Entries = [Option<NodeEntry>];

#[derive(Clone, Debug)]
pub(super) struct SpreadTree {
    service: String,
    levels: Vec<Key>,
    width: usize,
    root: Branch,
    /// Where each node hangs, by node id.
    places: Vec<Option<Place>>,
}

/// The values that lead to a node, and what it has added to every branch above it.
#[derive(Clone, Debug)]
struct Place {
    path: Vec<String>,
    slot: usize,
    tasks: u32,
}

#[derive(Clone, Debug, Default)]
struct Branch {
    /// Tasks of the service below here.
    tasks: u64,
    nodes: usize,
    below: BTreeMap<String, Branch>,
    /// The nodes themselves, at the last level.
    leaf: Option<Leaf>,
}

#[derive(Clone, Debug)]
struct Leaf {
    index: FitTree<(u32, u64)>,
    slots: Vec<Option<NodeId>>,
    vacant: Vec<usize>,
}

impl Leaf {
    fn new(width: usize) -> Leaf {
        Leaf { index: FitTree::new((u32::MAX, u64::MAX), width), slots: Vec::new(), vacant: Vec::new() }
    }

    fn enter(&mut self, node: NodeId) -> usize {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(node);
        slot
    }

    fn leave(&mut self, slot: usize) {
        self.index.remove(slot);
        self.slots[slot] = None;
        self.vacant.push(slot);
    }
}

impl SpreadTree {
    pub(super) fn new(service: &str, levels: &[Key], width: usize) -> SpreadTree {
        SpreadTree {
            service: service.to_owned(),
            levels: levels.to_vec(),
            width,
            root: Branch::default(),
            places: Vec::new(),
        }
    }

    /// Takes in how a node stands; `None` if it does not belong here.
    pub(super) fn set(&mut self, node: NodeId, entry: Option<&NodeEntry>) {
        if self.places.len() <= node.index() {
            self.places.resize_with(node.index() + 1, || None);
        }
        let path = entry.map(|entry| self.path_of(entry));
        if self.places[node.index()].as_ref().is_some_and(|place| path.as_ref() != Some(&place.path)) {
            let place = self.places[node.index()].take().expect("just seen");
            self.root.leave(&place.path, &place);
        }
        let (Some(entry), Some(path)) = (entry, path) else { return };
        let tasks = entry.company.of_service(&self.service);
        let place = self.places[node.index()].get_or_insert_with(|| {
            let slot = self.root.enter(&path, node, self.width);
            Place { path, slot, tasks: 0 }
        });
        let before = std::mem::replace(&mut place.tasks, tasks);
        let leaf = self.root.count(&place.path, i64::from(tasks) - i64::from(before));
        match entry.takes_work() {
            true => leaf.index.set(place.slot, (tasks, key(node, entry.company.tasks)), entry.free.amounts()),
            false => leaf.index.remove(place.slot),
        }
    }

    /// The values of the spread facts; one that a node does not have is a value of its own.
    fn path_of(&self, entry: &NodeEntry) -> Vec<String> {
        let value = |fact: &Key| entry.view.facts.fact(fact).unwrap_or_default().to_owned();
        self.levels.iter().map(value).collect()
    }

    /// The node that comes next for a task of this shape.
    pub(super) fn first_fit(&self, shape: &ShapeSpec, entries: &Entries) -> Option<NodeId> {
        self.root.first_fit(shape, entries)
    }

    /// Up to `most` nodes with room, by id.
    pub(super) fn fits(&self, shape: &ShapeSpec, most: usize, entries: &Entries) -> Vec<NodeId> {
        let here = |(index, place): (usize, &Option<Place>)| place.as_ref().map(|_| NodeId(index as u32));
        let nodes = self.places.iter().enumerate().filter_map(here);
        let has_room =
            |id: &NodeId| entries[id.index()].as_ref().is_some_and(|entry| entry.has_room_for(shape));
        nodes.filter(has_room).take(most).collect()
    }
}

impl Branch {
    fn enter(&mut self, path: &[String], node: NodeId, width: usize) -> usize {
        self.nodes += 1;
        match path.split_first() {
            Some((value, rest)) => self.below.entry(value.clone()).or_default().enter(rest, node, width),
            None => self.leaf.get_or_insert_with(|| Leaf::new(width)).enter(node),
        }
    }

    fn leave(&mut self, path: &[String], place: &Place) {
        self.nodes -= 1;
        self.tasks -= u64::from(place.tasks);
        match path.split_first() {
            Some((value, rest)) => {
                let branch = self.below.get_mut(value).expect("who leaves has entered");
                branch.leave(rest, place);
                if branch.nodes == 0 {
                    self.below.remove(value);
                }
            }
            None => self.leaf.as_mut().expect("who leaves has entered").leave(place.slot),
        }
    }

    /// Changes the counts on the way down, and gives the leaf there.
    fn count(&mut self, path: &[String], change: i64) -> &mut Leaf {
        self.tasks = self.tasks.checked_add_signed(change).expect("what is taken off was counted");
        match path.split_first() {
            Some((value, rest)) => {
                self.below.get_mut(value).expect("the node has entered").count(rest, change)
            }
            None => self.leaf.as_mut().expect("the node has entered"),
        }
    }

    fn first_fit(&self, shape: &ShapeSpec, entries: &Entries) -> Option<NodeId> {
        if let Some(leaf) = &self.leaf {
            let node = |slot: usize| leaf.slots[slot].expect("indexed slots are taken");
            let admits = |slot: usize| admits(entries, node(slot).index(), shape);
            return leaf.index.first_fit_where(shape.request.amounts(), admits).map(node);
        }
        let mut branches: Vec<(u64, &String, &Branch)> =
            self.below.iter().map(|(value, branch)| (branch.tasks, value, branch)).collect();
        branches.sort_unstable_by_key(|(tasks, value, _)| (*tasks, *value));
        branches.into_iter().find_map(|(_, _, branch)| branch.first_fit(shape, entries))
    }
}
