//! That indexes name the node that a plain look at every node would: the choice, written once more, as
//! loops without an index.

use std::collections::BTreeMap;

use crate::constraint::{Facts, Key};
use crate::id::NodeId;
use crate::machine::{Broken, promise};
use crate::spec::{NodeChoice, ShapeSpec, remoteness};

use super::Scheduler;
use super::memories::Memories;
use super::nodes::NodeEntry;
use super::shapes::ShapeKey;

/// Larger clusters are not looked at node by node for every shape.
const NODES_MAX: usize = 64;

type Member<'a> = (NodeId, &'a NodeEntry);

impl Scheduler {
    pub(super) fn check_choices(&self) -> Result<(), Broken> {
        if self.nodes.iter().count() > NODES_MAX {
            return Ok(());
        }
        let memories = self.nodes.iter().fold(Memories::default(), |mut memories, (id, node)| {
            memories.change(id, None, node.snapshot.as_ref());
            memories
        });
        promise!(7, memories == *self.nodes.scopes.memories(), "what nodes remember is listed wrongly");
        // Asking lets indexes catch up, so a copy is asked.
        let mut nodes = self.nodes.clone();
        for (_, shape) in self.shapes.iter() {
            let ShapeKey::Task(spec) = &shape.key else { continue };
            let (found, plain) = (nodes.first_fit(shape.scopes[0], spec), self.plain_choice(spec));
            promise!(7, found == plain, "{spec:?} would go to {found:?}, which should be {plain:?}");
        }
        Ok(())
    }

    fn plain_choice(&self, spec: &ShapeSpec) -> Option<NodeId> {
        let mut members: Vec<Member<'_>> =
            self.nodes.iter().filter(|(_, node)| spec.rules.allow(&node.view.facts)).collect();
        // As long as others have room, flagged nodes are as if they were not there.
        let flagged = |node| self.nodes.faults.is_flagged_for(spec, node);
        if members.iter().any(|(id, node)| !flagged(*id) && node.has_room_for(spec)) {
            members.retain(|(id, _)| !flagged(*id));
        }
        let remembering = |snapshot: Option<&str>| -> Vec<Member<'_>> {
            members.iter().copied().filter(|(_, node)| node.snapshot.as_deref() == snapshot).collect()
        };
        let snapshot = spec.snapshot.as_deref().filter(|_| spec.rules.node.is_none());
        let warm = snapshot.and_then(|snapshot| {
            let warm = self.plain_choice_among(spec, remembering(Some(snapshot)));
            warm.or_else(|| self.plain_choice_among(spec, remembering(None)))
        });
        warm.or_else(|| self.plain_choice_among(spec, members))
    }

    fn plain_choice_among(&self, spec: &ShapeSpec, mut members: Vec<Member<'_>>) -> Option<NodeId> {
        let choice = spec.placement.unwrap_or(self.settings.placement);
        let service = spec.service.as_deref().map_or("", |(service, _)| service);
        for fact in &spec.spread {
            let branch = fewest_of_service(&members, fact, spec, service)?;
            members.retain(|(_, node)| node.view.facts.fact(fact).unwrap_or_default() == branch);
        }
        let with_room = members.into_iter().filter(|(_, node)| node.has_room_for(spec));
        let kinds = &self.settings.kinds;
        let scarce =
            ["gpu", "cpu", "memory"].map(|name| kinds.id(name).expect("a kind that is always there"));
        let asker = spec.rules.asker.as_deref();
        let stands = |node: &NodeEntry| (node.company.tasks, node.view.capacity.get(scarce[0]) > 0);
        let first = with_room.min_by_key(|(id, node)| match choice {
            NodeChoice::Pack => {
                let mut left: Vec<i64> = scarce.iter().map(|kind| node.free.get(*kind)).collect();
                let declared = node.free.amounts().iter().skip(scarce.len() + 1).copied();
                left.extend(declared.chain(std::iter::repeat(0)).take(kinds.len() - scarce.len() - 1));
                left.push(node.free.amounts().first().copied().unwrap_or(0));
                (left, 0, (0, false), *id)
            }
            NodeChoice::Spread => (Vec::new(), node.company.of_service(service), stands(node), *id),
            NodeChoice::OwnFirst => {
                let far = i64::from(remoteness(asker, &node.view.facts));
                (vec![far], node.company.of_service(service), stands(node), *id)
            }
        });
        first.map(|(id, _)| id)
    }
}

/// The branch with the fewest tasks of the service in which a node has room.
fn fewest_of_service(members: &[Member<'_>], fact: &Key, spec: &ShapeSpec, service: &str) -> Option<String> {
    let mut branches: BTreeMap<&str, (u64, bool)> = BTreeMap::new();
    for (_, node) in members {
        let branch = branches.entry(node.view.facts.fact(fact).unwrap_or_default()).or_default();
        branch.0 += u64::from(node.company.of_service(service));
        branch.1 |= node.has_room_for(spec);
    }
    let with_room = branches.into_iter().filter(|(_, (_, has_room))| *has_room);
    with_room.map(|(value, (tasks, _))| (tasks, value)).min().map(|(_, value)| value.to_owned())
}
