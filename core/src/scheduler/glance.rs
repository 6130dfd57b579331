//! A short look at the nodes in the order in which all of them are kept anyhow, for those who differ from it in
//! little: they mind on which nodes others of their service are, or do not want every node. Mostly the first
//! nodes with room will do and have nobody of the service, and then the first of these is the best of all: no
//! index of their own is needed, which would be made from every node.
//!
//! Who has to pass over many nodes asks the own index after all. So that a look is never wasted for long, the
//! nodes that were passed over are counted: once they are as many as the index would have to take in, it is asked.

use std::cell::Cell;
use std::sync::Arc;

use crate::collections::FitTree;
use crate::id::NodeId;
use crate::spec::ShapeSpec;

use super::nodes::{NodeEntry, admits};
use super::row::key;
use super::scopes::{ScopeId, Scopes};

/// So many nodes are passed over before the own index is asked, and so many changes it takes in without this.
pub(super) const PASSED_MAX: u64 = 64;

/// The best of the nodes that were passed over because of the service: its tasks there, and the usual order.
type Passed = Option<((u32, u64), NodeId)>;

impl Scopes {
    /// The node of the scope that comes first for this shape among those with room, which may be none, if that
    /// can be said after a few looks. Nodes that are `flagged` are as if they were not there.
    pub(super) fn at_a_glance(
        &mut self,
        scope: ScopeId,
        shape: &ShapeSpec,
        flagged: Option<&Arc<Vec<NodeId>>>,
        entries: &[Option<NodeEntry>],
        index: &FitTree<u64>,
    ) -> Option<Option<NodeId>> {
        let most = self.patience(scope, flagged.is_some(), entries.len());
        if most == 0 {
            return None;
        }
        let service = shape.service.as_ref().map(|named| &named.0);
        let (passed, best): (Cell<u64>, Cell<Passed>) = Default::default();
        let accept = |position: usize| {
            let id = NodeId(position as u32);
            let entry = entries[position].as_ref().expect("the index named it");
            let is_flagged = flagged.is_some_and(|flagged| flagged.binary_search(&id).is_ok());
            let will_do = !is_flagged && self.has(scope, id) && admits(entries, position, shape);
            let tasks = service.map_or(0, |service| entry.company.of_service(service));
            // Beyond that the answer is of no use, and comes at once.
            if (will_do && tasks == 0) || passed.get() == most {
                return true;
            }
            passed.set(passed.get() + 1);
            let rank = ((tasks, key(id, entry)), id);
            if will_do && best.get().is_none_or(|best| rank < best) {
                best.set(Some(rank));
            }
            false
        };
        let found = index.first_fit_where(shape.request.amounts(), accept);
        self.note_passed(scope, flagged.is_some(), passed.get());
        let is_known = passed.get() < most;
        is_known.then(|| match found {
            Some(position) => Some(NodeId(position as u32)),
            None => best.get().map(|(_, id)| id),
        })
    }
}
