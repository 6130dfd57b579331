//! How the nodes stand for tasks of one shape: every node counted under everything that rules it out.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::constraint::{Facts, Key};
use crate::explanation::{FilterCount, Nearest, NoRoom};
use crate::id::NodeId;
use crate::resources::{KindId, Resources};
use crate::spec::{Filter, ShapeSpec};

use super::Scheduler;
use super::nodes::NodeEntry;
use super::obstacles::{failures, on_node, wanted};
use super::sight::Sight;

/// The kind of which the largest part of the request is missing; ties go to the first.
fn most_lacking(request: &Resources, free: &Resources) -> Option<KindId> {
    let parts = request.lacking_in(free).map(|(kind, missing)| {
        let per_million = i128::from(missing) * 1_000_000 / i128::from(request.get(kind));
        (per_million, std::cmp::Reverse(kind))
    });
    parts.max().map(|(_, std::cmp::Reverse(kind))| kind)
}

fn count(counts: &mut Vec<(Filter, u64)>, filter: Filter, nodes: u64) {
    match counts.iter_mut().find(|(known, _)| *known == filter) {
        Some((_, count)) => *count += nodes,
        None => counts.push((filter, nodes)),
    }
}

#[derive(Default)]
struct FilterCounts {
    counts: BTreeMap<Filter, FilterCount>,
}

impl FilterCounts {
    fn note(&mut self, failures: &[Filter], nodes: u64) {
        for (position, filter) in failures.iter().enumerate() {
            let empty = || FilterCount { filter: filter.clone(), fails: 0, first: 0, only: 0 };
            let count = self.counts.entry(filter.clone()).or_insert_with(empty);
            count.fails += nodes;
            count.first += if position == 0 { nodes } else { 0 };
            count.only += if failures.len() == 1 { nodes } else { 0 };
        }
    }

    fn counts(self) -> Vec<FilterCount> {
        self.counts.into_values().collect()
    }
}

/// The nodes to which one change is enough, best first.
#[derive(Default)]
struct NearestNode {
    /// Lacks nothing but room: the smallest part of the request, in millionths, over all kinds.
    room: Option<(i128, NodeId)>,
    ready: Option<NodeId>,
    suitable: Option<(NodeId, Filter)>,
}

impl NearestNode {
    /// `node` as those see it who ask.
    fn note(&mut self, id: NodeId, node: &NodeEntry, request: &Resources, failures: &[Filter]) {
        let [only] = failures else { return };
        match only {
            Filter::Resources if node.free.has_negative() => {}
            Filter::Resources => {
                let part = |(kind, missing)| i128::from(missing) * 1_000_000 / i128::from(request.get(kind));
                let parts: i128 = request.lacking_in(&node.free).map(part).sum();
                let best = self.room.is_none_or(|best| (parts, id) < best);
                self.room = if best { Some((parts, id)) } else { self.room };
            }
            Filter::Ready => self.ready = self.ready.or(Some(id)),
            // No change makes another node the one that is wanted.
            Filter::Node | Filter::BoundPool => {}
            filter if self.suitable.is_none() => self.suitable = Some((id, filter.clone())),
            _ => {}
        }
    }
}

impl Scheduler {
    pub(super) fn no_room(&self, shape: &ShapeSpec, sight: &Sight) -> NoRoom {
        let mut room = NoRoom::default();
        let mut filters = FilterCounts::default();
        let mut nearest = NearestNode::default();
        let request = &shape.request;
        let mut unknown: Vec<&Key> = shape.spread.iter().collect();
        for (id, nodes) in self.nodes.alike(std::iter::once(shape), sight.apart()) {
            let node = self.nodes.get(id).expect("only nodes that are there stand somewhere");
            let seen = sight.of(id, node);
            let (node, failures) = (seen.bare, failures(shape, seen));
            room.nodes += nodes;
            unknown.retain(|fact| node.view.facts.fact(fact).is_none());
            let unsuitable = shape.rules.failures(&node.view.facts).next();
            let is_too_small = !request.fits_in(&node.view.capacity);
            let may_do = unsuitable.is_none() || shape.rules.may_allow(&node.view.facts);
            room.possible += if may_do && !is_too_small { nodes } else { 0 };
            if node.keeps_out(shape) || node.free.has_negative() {
                room.closed += nodes;
            } else if is_too_small {
                room.too_small += nodes;
            } else if let Some(kind) = most_lacking(request, &node.free) {
                room.count_lacking(&self.settings.kinds, kind, nodes);
            } else if let Some(filter) = unsuitable {
                count(&mut room.unsuitable, filter, nodes);
            } else if let Some(filter) = node.company.objections(shape).next() {
                count(&mut room.occupied, filter, nodes);
            } else if failures.contains(&Filter::Kept) {
                count(&mut room.occupied, Filter::Kept, nodes);
            }
            filters.note(&failures, nodes);
            nearest.note(id, seen.node, request, &failures);
        }
        room.unknown_spread = unknown.into_iter().map(ToString::to_string).collect();
        room.flagged = self.nodes.faults.flagged_for(shape).map_or(0, |flagged| flagged.len() as u64);
        for node in self.nodes.broken_down(shape) {
            room.broken += 1;
            let reason = node.view.breakdown.as_ref().expect("it broke down for a reason");
            room.breakdown.get_or_insert_with(|| (node.view.facts.name.clone(), Arc::clone(reason)));
        }
        room.lacking.sort_by(|left, right| (right.1, &left.0).cmp(&(left.1, &right.0)));
        room.unsuitable.sort_unstable();
        room.occupied.sort_unstable();
        room.filters = filters.counts();
        room.nearest = Some(self.nearest(nearest, shape, sight));
        let pinned = shape.rules.node.as_ref().and_then(|name| self.nodes.named(name));
        room.on_node = pinned.map(|(id, node)| on_node(shape, sight.of(id, node), &self.settings.kinds));
        room
    }

    fn nearest(&self, found: NearestNode, shape: &ShapeSpec, sight: &Sight) -> Nearest {
        let entry = |id: NodeId| self.nodes.get(id).expect("just seen");
        let name = |id: NodeId| entry(id).view.facts.name.clone();
        if let Some((_, id)) = found.room {
            let free = &sight.of(id, entry(id)).node.free;
            let missing = shape.request.lacking_in(free).map(|one| self.amount(one)).collect();
            return Nearest::Room { node: name(id), missing };
        }
        if let Some(id) = found.ready {
            return Nearest::Ready { node: name(id) };
        }
        if let Some(name) = &shape.rules.node {
            return match self.nodes.named(name) {
                None => Nearest::NamedNode { node: name.clone(), request: self.amounts(&shape.request) },
                Some((id, node)) => {
                    Nearest::Several { node: name.clone(), filters: failures(shape, sight.of(id, node)) }
                }
            };
        }
        if let Some((id, filter)) = found.suitable {
            let wanted = wanted(&filter, shape, sight.of(id, entry(id)).bare);
            return Nearest::Suitable { node: name(id), filter, wanted };
        }
        let pool = shape.rules.bound_pool.as_ref().map(ToString::to_string);
        Nearest::AnotherNode { request: self.amounts(&shape.request), pool }
    }

    /// A request by the names of its kinds, for people.
    pub(super) fn amounts(&self, request: &Resources) -> Vec<(String, String)> {
        request.iter().map(|one| self.amount(one)).collect()
    }

    pub(super) fn amount(&self, (kind, amount): (KindId, i64)) -> (String, String) {
        let kinds = &self.settings.kinds;
        (kinds.name(kind).to_owned(), kinds.unit(kind).format(amount))
    }
}
