//! The network tree: which nodes that take work are below which part of it, and what is free there in sum.
//!
//! A *region* is what lies below one vertex of the tree, down to so many levels: the nodes of a region of
//! height `h` are at most `2h` hops apart, and every set of nodes that near is inside one. A region that
//! lacks room in sum is passed over without a look at its nodes.
//!
//! All of this is built when somebody asks for it first. From then on changed nodes are only remembered
//! until somebody asks again; if nobody does for long, it is dropped.

use std::collections::{BTreeMap, BTreeSet};

use crate::collections::FitTree;
use crate::id::NodeId;
use crate::mutation::{self, Mutation};
use crate::resources::Resources;
use crate::spec::LEVELS_MAX;

use super::nodes::NodeEntry;

/// A region of this height is the whole cluster.
pub(super) const HEIGHT_MAX: u8 = LEVELS_MAX as u8;

const ROOT: usize = 0;

/// What lies below a vertex, down to so many levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Region {
    vertex: usize,
    height: u8,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Topology {
    index: Option<Box<Index>>,
}

#[derive(Clone, Debug)]
struct Index {
    width: usize,
    vertices: Vec<Vertex>,
    vacant: Vec<usize>,
    by_prefix: BTreeMap<Box<str>, usize>,
    /// By node: what it counts for. Nodes that take no work count for nothing.
    shares: Vec<Option<Share>>,
    /// Regions by height, with what is free in them in sum.
    heights: Vec<FitTree<Order>>,
    /// Nodes that changed since somebody asked last.
    changed: Vec<NodeId>,
    is_changed: Vec<bool>,
}

/// The busiest region first, so that quiet ones stay whole; then the one with the smallest node, then the
/// smaller. No two regions of one height are equal.
type Order = (u32, u32, u8);

const ABSENT: Order = (u32::MAX, u32::MAX, u8::MAX);

#[derive(Clone, Debug, Default)]
struct Vertex {
    prefix: Option<Box<str>>,
    depth: u8,
    parent: Option<usize>,
    /// Nodes at or below it, by their depth.
    below: BTreeMap<u8, Level>,
}

#[derive(Clone, Debug, Default)]
struct Level {
    nodes: BTreeSet<NodeId>,
    free: Vec<i128>,
    tasks: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Share {
    vertex: usize,
    depth: u8,
    free: Resources,
    tasks: u32,
}

impl Topology {
    /// Something about the node has changed.
    pub(super) fn note(&mut self, node: NodeId) {
        let Some(index) = self.index.as_mut().filter(|_| !mutation::active(Mutation::KeepOldTree)) else {
            return;
        };
        if index.is_changed.len() <= node.index() {
            index.is_changed.resize(node.index() + 1, false);
        }
        if std::mem::replace(&mut index.is_changed[node.index()], true) {
            return;
        }
        index.changed.push(node);
        // So much has changed that building it anew costs little more.
        if index.changed.len() > index.shares.len() / 2 + 1_024 {
            self.index = None;
        }
    }

    pub(super) fn catch_up(&mut self, entries: &[Option<NodeEntry>], width: usize) {
        match &mut self.index {
            Some(index) => {
                for node in std::mem::take(&mut index.changed) {
                    index.is_changed[node.index()] = false;
                    index.refresh(node, entries.get(node.index()).and_then(Option::as_ref));
                }
            }
            None => {
                let mut index = Index::new(width);
                index.fill(entries);
                self.index = Some(Box::new(index));
            }
        }
    }

    fn index(&self) -> &Index {
        self.index.as_ref().expect("whoever asks has let it catch up")
    }

    /// The first region of this height, in the order of regions, that has so much free in sum and was not
    /// tried yet.
    pub(super) fn first_region(&self, height: u8, wanted: &Resources, tried: &[Region]) -> Option<Region> {
        let regions = &self.index().heights[usize::from(height)];
        let region = |vertex| Region { vertex, height };
        let found = regions.first_fit_where(wanted.amounts(), |vertex| !tried.contains(&region(vertex)));
        found.map(region)
    }

    /// The nodes of a region that take work.
    pub(super) fn nodes(&self, region: Region) -> impl Iterator<Item = NodeId> {
        self.index().levels(region).flat_map(|level| level.nodes.iter().copied())
    }

    pub(super) fn contains(&self, region: Region, node: NodeId) -> bool {
        let index = self.index();
        let share = index.shares.get(node.index()).and_then(Option::as_ref);
        share.is_some_and(|share| {
            let is_near = share.depth <= index.vertices[region.vertex].depth + region.height;
            is_near && index.upwards(share.vertex).any(|vertex| vertex == region.vertex)
        })
    }
}

impl Index {
    fn new(width: usize) -> Index {
        Index {
            width,
            vertices: vec![Vertex::default()],
            vacant: Vec::new(),
            by_prefix: BTreeMap::new(),
            shares: Vec::new(),
            heights: vec![FitTree::new(ABSENT, width); usize::from(HEIGHT_MAX)],
            changed: Vec::new(),
            is_changed: Vec::new(),
        }
    }

    /// A vertex and everything above it.
    fn upwards(&self, vertex: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(vertex), |vertex| self.vertices[*vertex].parent)
    }

    fn levels(&self, region: Region) -> impl Iterator<Item = &Level> {
        let vertex = &self.vertices[region.vertex];
        vertex.below.range(..=vertex.depth + region.height).map(|(_, level)| level)
    }

    fn fill(&mut self, entries: &[Option<NodeEntry>]) {
        for (position, entry) in entries.iter().enumerate() {
            let open = entry.as_ref().filter(|entry| entry.takes_work());
            let share = open.map(|entry| self.share(entry, None));
            if let Some(share) = &share {
                self.add(NodeId(position as u32), share, 1);
            }
            self.shares.push(share);
        }
        for vertex in 0..self.vertices.len() {
            self.reorder(vertex);
        }
    }

    fn refresh(&mut self, node: NodeId, entry: Option<&NodeEntry>) {
        if self.shares.len() <= node.index() {
            self.shares.resize(node.index() + 1, None);
        }
        let entry = entry.filter(|entry| entry.takes_work());
        let before = self.shares[node.index()].take();
        let share = entry.map(|entry| self.share(entry, before.as_ref()));
        if share != before {
            if let Some(before) = &before {
                self.add(node, before, -1);
            }
            if let Some(share) = &share {
                self.add(node, share, 1);
            }
            let vertices = before.iter().chain(&share).flat_map(|share| self.upwards(share.vertex));
            for vertex in vertices.collect::<BTreeSet<_>>() {
                self.reorder(vertex);
            }
        }
        if let Some(before) = before {
            self.drop_unused(before.vertex);
        }
        self.shares[node.index()] = share;
    }

    /// What a node counts for, and where.
    fn share(&mut self, entry: &NodeEntry, before: Option<&Share>) -> Share {
        let (free, tasks) = (entry.free.clone(), entry.company.tasks);
        let Some(path) = &entry.view.facts.path else {
            // Far from everybody: as deep as can be, in a branch of its own.
            let own = before.filter(|share| self.vertices[share.vertex].prefix.is_none());
            let vertex = own.map_or_else(|| self.new_vertex(None, HEIGHT_MAX, ROOT), |share| share.vertex);
            return Share { vertex, depth: HEIGHT_MAX, free, tasks };
        };
        let mut vertex = ROOT;
        for (depth, prefix) in path.prefixes().enumerate() {
            vertex = match self.by_prefix.get(prefix) {
                Some(known) => *known,
                None => self.new_vertex(Some(prefix), depth as u8 + 1, vertex),
            };
        }
        Share { vertex, depth: path.levels() as u8, free, tasks }
    }

    fn new_vertex(&mut self, prefix: Option<&str>, depth: u8, parent: usize) -> usize {
        let prefix: Option<Box<str>> = prefix.map(Into::into);
        let vertex = Vertex { prefix: prefix.clone(), depth, parent: Some(parent), below: BTreeMap::new() };
        let id = match self.vacant.pop() {
            Some(id) => {
                self.vertices[id] = vertex;
                id
            }
            None => {
                self.vertices.push(vertex);
                self.vertices.len() - 1
            }
        };
        if let Some(prefix) = prefix {
            self.by_prefix.insert(prefix, id);
        }
        id
    }

    /// Lets go of a vertex, and of those above it, that no node is below any more.
    fn drop_unused(&mut self, vertex: usize) {
        let mut next = Some(vertex);
        while let Some(id) = next.filter(|id| *id != ROOT && self.vertices[*id].below.is_empty()) {
            let vertex = std::mem::take(&mut self.vertices[id]);
            if let Some(prefix) = &vertex.prefix {
                self.by_prefix.remove(prefix);
            }
            self.vacant.push(id);
            next = vertex.parent;
        }
    }

    /// Counts a node (1), or counts it no more (-1), in everything above it.
    fn add(&mut self, node: NodeId, share: &Share, times: i128) {
        let mut next = Some(share.vertex);
        while let Some(id) = next {
            let vertex = &mut self.vertices[id];
            let level = vertex.below.entry(share.depth).or_default();
            level.free.resize(self.width, 0);
            for (sum, amount) in level.free.iter_mut().zip(share.free.amounts()) {
                *sum += times * i128::from(*amount);
            }
            if times > 0 {
                level.nodes.insert(node);
                level.tasks += u64::from(share.tasks);
            } else {
                level.nodes.remove(&node);
                level.tasks -= u64::from(share.tasks);
            }
            if level.nodes.is_empty() {
                vertex.below.remove(&share.depth);
            }
            next = vertex.parent;
        }
    }

    /// Enters the regions of a vertex anew.
    fn reorder(&mut self, vertex: usize) {
        for height in 0..HEIGHT_MAX {
            match self.order(Region { vertex, height }) {
                Some((order, free)) => self.heights[usize::from(height)].set(vertex, order, &free),
                None => self.heights[usize::from(height)].remove(vertex),
            }
        }
    }

    /// The place of a region in the order, with what is free in it; `None` for one that has no nodes, or
    /// none but those of the region around the next vertex above.
    fn order(&self, region: Region) -> Option<(Order, Vec<i64>)> {
        let vertex = &self.vertices[region.vertex];
        let is_alone = vertex.prefix.is_none();
        if !is_alone && !vertex.below.contains_key(&(vertex.depth + region.height)) {
            return None;
        }
        let mut free = vec![0i128; self.width];
        let (mut tasks, mut first) = (0, None);
        for level in self.levels(region) {
            free.iter_mut().zip(&level.free).for_each(|(sum, amount)| *sum += amount);
            tasks += level.tasks;
            first = first.into_iter().chain(level.nodes.first().copied()).min();
        }
        let free = free.into_iter().map(|sum| sum.min(i128::from(i64::MAX)) as i64).collect();
        let quiet = u32::MAX - tasks.min(u64::from(u32::MAX)) as u32;
        Some(((quiet, first?.0, vertex.depth), free))
    }
}
