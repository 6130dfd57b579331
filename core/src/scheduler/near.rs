//! Nodes that gained room in this turn, each filed under the waiting shape of one leaf that comes first
//! for it.
//!
//! Filed by shape and not by the head of its queue: while one shape is served group after group, the
//! nodes that wait for it stay where they are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::id::NodeId;

use super::leaf::LeafId;
use super::nodes::Nodes;
use super::order::Order;
use super::row::{self, Fullness};
use super::shapes::{ShapeId, Shapes};

/// A node with room, and the shape that is served on it next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    pub(super) order: Order,
    pub(super) shape: ShapeId,
    pub(super) node: NodeId,
}

/// What is filed for one leaf.
#[derive(Debug, Default)]
pub(super) enum Filing {
    /// It has not come up in this turn.
    #[default]
    NotYet,
    /// The turn has one node, as most do: it needs no files.
    One(Single),
    Many(Box<Near>),
}

/// The only node of a turn, and what is served on it next, if anything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Single {
    node: NodeId,
    /// And how many tasks the node had then.
    next: Option<(Candidate, u32)>,
}

impl Filing {
    pub(super) fn of(leaf: LeafId, touched: &[NodeId], nodes: &Nodes, shapes: &Shapes) -> Filing {
        if let [node] = *touched {
            return Filing::One(Single::look(leaf, node, nodes, shapes));
        }
        let mut near = Near::new(leaf);
        touched.iter().for_each(|node| near.file(*node, nodes, shapes));
        Filing::Many(Box::new(near))
    }

    /// The candidate that is served next. It stays filed.
    pub(super) fn first(&mut self, leaf: LeafId, nodes: &Nodes, shapes: &Shapes) -> Option<Candidate> {
        match self {
            Filing::NotYet => None,
            Filing::One(single) => {
                if !single.is_first(nodes, shapes) {
                    *single = single.again(leaf, nodes, shapes);
                }
                single.next.map(|(candidate, _)| candidate)
            }
            Filing::Many(near) => near.first(nodes, shapes),
        }
    }
}

impl Single {
    fn look(leaf: LeafId, node: NodeId, nodes: &Nodes, shapes: &Shapes) -> Single {
        let entry = nodes.get(node).filter(|entry| entry.takes_work());
        let next = entry.and_then(|entry| {
            let (order, shape) = shapes.first_touched_by(leaf, node, entry, &nodes.scopes)?;
            Some((Candidate { order, shape, node }, entry.company.tasks))
        });
        Single { node, next }
    }

    pub(super) fn again(self, leaf: LeafId, nodes: &Nodes, shapes: &Shapes) -> Single {
        Single::look(leaf, self.node, nodes, shapes)
    }

    /// Nothing begins to wait for room while a turn plans. So if neither the node nor the shape has moved on,
    /// no other shape can come before this one by now, nor one where there was none.
    fn is_first(self, nodes: &Nodes, shapes: &Shapes) -> bool {
        let Some((Candidate { order, shape, node }, tasks)) = self.next else { return true };
        let entry = nodes.get(node).filter(|entry| entry.takes_work());
        shapes.index_order(shape) == Some(order) && entry.is_some_and(|entry| entry.company.tasks == tasks)
    }
}

#[derive(Debug)]
pub(super) struct Near {
    leaf: LeafId,
    /// Nodes by the shape they are filed under: the fullest first where it packs, then as they come in a row.
    filed: BTreeMap<ShapeId, Filed>,
    /// The shapes of `filed`, by order.
    by_order: BTreeSet<(Order, ShapeId)>,
}

#[derive(Debug, Default)]
struct Filed {
    /// The order of the shape when it was last looked at.
    order: Order,
    nodes: BinaryHeap<Reverse<FiledNode>>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct FiledNode {
    /// How full it is, where that decides.
    fullness: Option<Box<Fullness>>,
    /// Its place among others: see [`row::key`].
    place: u64,
    tasks: u32,
    node: NodeId,
    /// The order of the shape when the node was filed.
    order: Order,
}

impl Near {
    pub(super) fn new(leaf: LeafId) -> Near {
        Near { leaf, filed: BTreeMap::new(), by_order: BTreeSet::new() }
    }

    /// Files a node under the first shape that it has room for; one without any is dropped.
    pub(super) fn file(&mut self, node: NodeId, nodes: &Nodes, shapes: &Shapes) {
        let Some(entry) = nodes.get(node).filter(|entry| entry.takes_work()) else { return };
        let Some((order, shape)) = shapes.first_touched_by(self.leaf, node, entry, &nodes.scopes) else {
            return;
        };
        let filed = self.filed.entry(shape).or_default();
        if filed.nodes.is_empty() {
            filed.order = order;
            self.by_order.insert((order, shape));
        }
        let fullness = shapes.packs(shape, &nodes.scopes).then(|| Box::new(nodes.fullness(node, entry)));
        let (place, tasks) = (row::key(node, entry), entry.company.tasks);
        filed.nodes.push(Reverse(FiledNode { fullness, place, tasks, node, order }));
    }

    /// The candidate that is served next: the shape whose head came first, on the first of its nodes. It
    /// stays filed.
    pub(super) fn first(&mut self, nodes: &Nodes, shapes: &Shapes) -> Option<Candidate> {
        loop {
            let (order, shape) = *self.by_order.first()?;
            let now = shapes.index_order(shape);
            if now != Some(order) {
                self.by_order.pop_first();
                let mut filed = self.filed.remove(&shape).expect("ordered shapes are filed");
                match now {
                    Some(order) => {
                        filed.order = order;
                        self.by_order.insert((order, shape));
                        self.filed.insert(shape, filed);
                    }
                    // Nothing of the shape waits here any more: its nodes are for others.
                    None => {
                        filed
                            .nodes
                            .into_iter()
                            .for_each(|Reverse(filed)| self.file(filed.node, nodes, shapes));
                    }
                }
                continue;
            }
            let first = self.filed[&shape].nodes.peek();
            let Reverse(FiledNode { tasks, node, order: order_then, .. }) =
                *first.expect("a shape without nodes is dropped");
            // Nothing begins to wait for room while a turn plans. So if neither the node nor the shape
            // has moved on, no other shape can come before this one by now.
            let entry = nodes.get(node).filter(|entry| entry.takes_work() && entry.company.tasks == tasks);
            let is_first = entry.is_some_and(|entry| {
                order == order_then
                    || shapes.first_touched_by(self.leaf, node, entry, &nodes.scopes) == Some((order, shape))
            });
            if is_first {
                return Some(Candidate { order, shape, node });
            }
            self.take(shape);
            self.file(node, nodes, shapes);
        }
    }

    /// Takes out the first node of a shape.
    pub(super) fn take(&mut self, shape: ShapeId) {
        let filed = self.filed.get_mut(&shape).expect("the caller has seen the shape");
        filed.nodes.pop();
        if filed.nodes.is_empty() {
            self.by_order.remove(&(filed.order, shape));
            self.filed.remove(&shape);
        }
    }
}
