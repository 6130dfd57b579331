//! What those who ask see of nodes on which something is kept. What is kept for them is free in their eyes;
//! what is kept for others is taken, and they are told that it is this, and not the load of the node, that
//! is in the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::{GroupId, NodeId};
use crate::resources::Resources;
use crate::spec::ShapeSpec;

use super::Scheduler;
use super::nodes::NodeEntry;
use super::shapes::ShapeId;

/// One node as somebody sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) node: &'a NodeEntry,
    /// The same if nothing were kept there for others.
    pub(super) bare: &'a NodeEntry,
}

/// The nodes on which something is kept, as somebody sees them.
#[derive(Debug, Default)]
pub(super) struct Sight(BTreeMap<NodeId, (NodeEntry, NodeEntry)>);

impl Sight {
    /// Nodes that are not to be taken for others that stand alike.
    pub(super) fn apart(&self) -> BTreeSet<NodeId> {
        self.0.keys().copied().collect()
    }

    pub(super) fn of<'a>(&'a self, id: NodeId, entry: &'a NodeEntry) -> Seen<'a> {
        match self.0.get(&id) {
            Some((node, bare)) => Seen { node, bare },
            None => Seen { node: entry, bare: entry },
        }
    }
}

impl Seen<'_> {
    pub(super) fn is_bare(&self) -> bool {
        std::ptr::eq(self.node, self.bare)
    }
}

fn free(entry: &mut NodeEntry, amount: &Resources, company: &[Arc<ShapeSpec>]) {
    entry.free += amount;
    company.iter().for_each(|shape| entry.company.leave(shape));
}

impl Scheduler {
    /// What a group sees that starts as a whole, or those of its tasks that have this shape.
    pub(super) fn sight(&self, group: GroupId, shape: Option<ShapeId>) -> Sight {
        let mut sight = Sight::default();
        if self.claims.is_empty() && self.earmarks.is_empty() {
            return sight;
        }
        let mut add = |id: NodeId, is_own: bool, amount: &Resources, company: &[Arc<ShapeSpec>]| {
            let Some(entry) = self.nodes.get(id) else { return };
            let (node, bare) = sight.0.entry(id).or_insert_with(|| (entry.clone(), entry.clone()));
            free(bare, amount, company);
            if is_own {
                free(node, amount, company);
            }
        };
        for claim in &self.claims.entries {
            let is_own = claim.entry.group == group && (claim.atomic || Some(claim.shape) == shape);
            for (id, held) in &claim.nodes {
                if let Some(kept) = held.kept() {
                    add(*id, is_own, kept, &held.shapes);
                }
            }
        }
        for (_, earmark) in self.earmarks.iter() {
            let is_of_shape = || {
                let role = |(role, _): &(u16, NodeId)| {
                    self.group(group).map(|group| group.roles[usize::from(*role)].shape)
                };
                earmark.places.first().and_then(role) == shape
            };
            let is_own = earmark.group == group && (earmark.atomic || is_of_shape());
            for (id, left) in &earmark.left {
                add(*id, is_own, &left.request, std::slice::from_ref(left));
            }
            for (id, kept) in &earmark.kept {
                add(*id, is_own, kept, &[]);
            }
        }
        sight
    }
}
