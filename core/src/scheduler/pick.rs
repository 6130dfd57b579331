//! Who is served next: the leaf whose turn it is, and in it the first shape that can be served now.

use std::collections::BTreeMap;

use crate::id::NodeId;

use super::Scheduler;
use super::leaf::LeafId;
use super::near::{Candidate, Near};
use super::nodes::Nodes;
use super::order::Order;
use super::shapes::{ShapeId, Shapes};

/// What a leaf can have served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Offer {
    /// The head of an open shape, anywhere.
    Open(ShapeId),
    /// The head of a shape, on a node that gained room.
    Near(Candidate),
}

/// One turn of picking: the nodes that gained room, filed leaf by leaf as the leaves come up.
#[derive(Debug)]
pub(super) struct Round {
    touched: Vec<NodeId>,
    near: BTreeMap<LeafId, Near>,
}

impl Round {
    pub(super) fn new(mut touched: Vec<NodeId>) -> Round {
        touched.sort_unstable();
        touched.dedup();
        Round { touched, near: BTreeMap::new() }
    }

    fn near(&mut self, leaf: LeafId, nodes: &Nodes, shapes: &Shapes) -> &mut Near {
        self.near.entry(leaf).or_insert_with(|| {
            let mut near = Near::new(leaf);
            self.touched.iter().for_each(|node| near.file(*node, nodes, shapes));
            near
        })
    }

    /// A candidate was dealt with: its node is filed anew.
    pub(super) fn served(&mut self, leaf: LeafId, candidate: Candidate, nodes: &Nodes, shapes: &Shapes) {
        let near = self.near.get_mut(&leaf).expect("the candidate was filed");
        near.take(candidate.shape);
        near.file(candidate.node, nodes, shapes);
    }

    /// The nodes that may still have room for something.
    pub(super) fn into_nodes(self, nodes: &Nodes) -> Vec<NodeId> {
        let takes_work = |node: &NodeId| nodes.get(*node).is_some_and(|entry| entry.takes_work());
        self.touched.into_iter().filter(takes_work).collect()
    }
}

impl Scheduler {
    /// What is served next; `None` when nothing more can be.
    pub(super) fn pick(&mut self, round: &mut Round) -> Option<(LeafId, Offer)> {
        let leaf = LeafId(0);
        self.offer(leaf, round).map(|(_, offer)| (leaf, offer))
    }

    /// The first shape of a leaf that can be served now.
    fn offer(&mut self, leaf: LeafId, round: &mut Round) -> Option<(Order, Offer)> {
        let near = round.near(leaf, &self.nodes, &self.shapes).first(&self.nodes, &self.shapes);
        match (self.shapes.leaf(leaf).first_open(), near) {
            (Some((order, shape)), near) if near.is_none_or(|near| order <= near.order) => {
                Some((order, Offer::Open(shape)))
            }
            (_, near) => near.map(|near| (near.order, Offer::Near(near))),
        }
    }
}
