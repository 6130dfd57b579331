//! Prospects: whether a group could ever fit on the nodes that are there, each as if it were empty.
//!
//! Usage, pauses, silence, loans and the pool of what runs pass; the condition of a node, its capacity, its
//! facts and who else may use it are taken as they are. Groups that are to fail when they can never fit are
//! looked at when they come to wait. What is found then is an arrangement: as long as none of its nodes has
//! changed the group need not be looked at again, whatever else happens in the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::explanation::Explanation;
use crate::id::{GroupId, JobId, NodeId};
use crate::messages::{JobMessage, NodeView, Outbox};
use crate::mutation::{self, Mutation};
use crate::spec::{Company, Condition, ShapeSpec, Standing, Start};

use super::Scheduler;
use super::gangs::role_order;
use super::groups::{GroupView, RoleView};
use super::nodes::NodeEntry;
use super::packing::{self, Demand, Packed, Room};

/// What can be said about a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Prospect {
    /// It fits like this.
    Fits(Vec<NodeId>),
    /// There is no way.
    Never,
    /// There may be a way: the search has its bounds.
    Open,
}

/// What is known of groups that are to fail when they can never fit.
#[derive(Clone, Debug, Default)]
pub(super) struct Prospects {
    /// Groups to be looked at when the turn ends.
    unproven: BTreeSet<GroupId>,
    /// The nodes on which a group would fit.
    witnesses: BTreeMap<GroupId, Vec<NodeId>>,
    by_node: BTreeMap<NodeId, BTreeSet<GroupId>>,
    /// Groups of which nobody knows: they are looked at whenever a node changes.
    open: BTreeSet<GroupId>,
    /// Groups that were found unable in this turn.
    failed: Vec<GroupId>,
    /// The last group that was doubted although nothing had changed.
    sampled: Option<GroupId>,
}

impl Prospects {
    /// The group is to be looked at.
    pub(super) fn suspect(&mut self, group: GroupId) {
        self.forget(group);
        self.unproven.insert(group);
    }

    /// The node has changed or is gone.
    pub(super) fn node_changed(&mut self, node: NodeId) {
        self.unproven.append(&mut self.open);
        let affected = self.by_node.get(&node).cloned().unwrap_or_default();
        if mutation::active(Mutation::TrustOldProspect) {
            return;
        }
        affected.into_iter().for_each(|group| self.suspect(group));
    }

    /// Nobody asks about the group any more.
    pub(super) fn forget(&mut self, group: GroupId) {
        self.unproven.remove(&group);
        self.open.remove(&group);
        for node in self.witnesses.remove(&group).unwrap_or_default() {
            if let Some(groups) = self.by_node.get_mut(&node) {
                groups.remove(&group);
                if groups.is_empty() {
                    self.by_node.remove(&node);
                }
            }
        }
    }

    /// Doubts some of those of which everything seems to be known, in turn.
    pub(super) fn doubt_some(&mut self, most: usize) {
        let after = self.sampled.map_or(Bound::Unbounded, Bound::Excluded);
        let next: Vec<GroupId> =
            self.witnesses.range((after, Bound::Unbounded)).map(|(group, _)| *group).take(most).collect();
        self.sampled = next.last().copied();
        next.into_iter().for_each(|group| self.suspect(group));
    }

    fn note(&mut self, group: GroupId, prospect: Prospect) {
        match prospect {
            Prospect::Fits(mut nodes) => {
                nodes.sort_unstable();
                nodes.dedup();
                for node in &nodes {
                    self.by_node.entry(*node).or_default().insert(group);
                }
                self.witnesses.insert(group, nodes);
            }
            Prospect::Never => self.failed.push(group),
            Prospect::Open => drop(self.open.insert(group)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unproven.is_empty() && self.failed.is_empty()
    }
}

impl Scheduler {
    /// A group has come to wait: if it is to fail when it can never fit, it is looked at.
    pub(super) fn doubt(&mut self, id: GroupId) {
        if self.group(id).is_some_and(|group| group.fails_if_unable) {
            self.prospects.suspect(id);
        }
    }

    /// Looks at every group that may have become unable, and tells JobState of those that have. An empty
    /// cluster says nothing: nodes that belong to it may not have been announced yet.
    pub(super) fn fail_the_unable(&mut self, out: &mut Outbox) {
        self.prospects.failed.clear();
        if self.prospects.is_empty() || self.nodes.iter().next().is_none() {
            return;
        }
        for id in std::mem::take(&mut self.prospects.unproven) {
            let Some(group) = self.group(id).filter(|group| !group.withdrawn && waits(group)) else {
                continue;
            };
            let prospect = self.prospect(group);
            self.prospects.note(id, prospect);
        }
        for id in self.prospects.failed.clone() {
            let Some(explanation) = self.explain_failure(id) else { continue };
            // It is told once: what is withdrawn is not looked at again.
            self.group_mut(id).expect("just explained").fails_if_unable = false;
            out.jobs.push(JobMessage::Unsatisfiable { group: id, explanation: Arc::new(explanation) });
        }
    }

    /// Whether the group is to be ended when it can never fit, and that was not said yet.
    pub fn fails_if_unable(&self, id: GroupId) -> bool {
        self.group(id).is_some_and(|group| group.fails_if_unable)
    }

    /// How many tasks of which roles of a group wait, and whether they start as one.
    pub fn waiting_roles(&self, id: GroupId) -> Option<(Vec<(u16, u32)>, bool)> {
        let group = self.group(id)?;
        let is_atomic = group.start == Start::Atomic;
        let size = |role: &RoleView| if is_atomic { role.needed() } else { role.waiting() };
        let roles = wanted(group).map(|(index, role)| (index as u16, size(role))).collect();
        Some((roles, is_atomic))
    }

    /// How a job stands as far as the Scheduler has heard.
    pub fn standing_of(&self, job: JobId) -> Option<Standing> {
        let standing = self.jobs.get(job.0)?.standing.as_deref();
        Some(standing.map_or_else(Standing::default, |(_, standing)| standing.clone()))
    }

    /// What the Scheduler knows of each node.
    pub fn node_views(&self) -> impl Iterator<Item = (NodeId, &NodeView)> {
        self.nodes.iter().map(|(id, node)| (id, &node.view))
    }

    /// Groups that were told to be unable in the last turn.
    pub fn found_unable(&self) -> &[GroupId] {
        &self.prospects.failed
    }

    /// Everything that waits is doubted anew, when nothing is known of it.
    pub(super) fn doubt_everything(&mut self) {
        self.prospects = Prospects::default();
        for (job, view) in self.jobs.iter() {
            for (index, group) in view.groups.iter().enumerate() {
                if group.as_ref().is_some_and(|group| group.fails_if_unable) {
                    let id = GroupId::new(JobId(job), index as u16);
                    self.prospects.unproven.insert(id);
                }
            }
        }
    }

    fn explain_failure(&self, id: GroupId) -> Option<Explanation> {
        let group = self.group(id)?;
        let waiting = group.waiting();
        if group.start == Start::Atomic || wanted(group).count() < 2 {
            let reason = self.reason_of_nodes(id, group, &group.roles, true);
            return Some(self.explanation(id, None, waiting, reason));
        }
        // One role that can never run ends all of them.
        let unable = wanted(group).find(|(_, role)| self.prospect_of_each(&[role]) == Prospect::Never);
        let (index, role) = unable.or_else(|| wanted(group).next())?;
        let number = index as u16;
        let reason = self.reason_of_nodes(id, group, std::slice::from_ref(role), true);
        let explanation = self.explanation(id, Some(number), u64::from(role.waiting()), reason);
        Some(Explanation { role: Some(number), ..explanation })
    }

    /// Whether what waits of a group could run on the nodes that are there if all of them were empty.
    pub(super) fn prospect(&self, group: &GroupView) -> Prospect {
        let roles = wanted(group).map(|(_, role)| role).collect::<Vec<&RoleView>>();
        match group.start {
            Start::Independent => self.prospect_of_each(&roles),
            Start::Atomic => self.prospect_of_all(&roles),
        }
    }

    /// Tasks that start each on its own need a place for one task of each role.
    fn prospect_of_each(&self, roles: &[&RoleView]) -> Prospect {
        let place = |role: &&RoleView| self.places(&role.spec, 1).first().copied();
        let places: Option<Vec<NodeId>> = roles.iter().map(place).collect();
        places.map_or(Prospect::Never, Prospect::Fits)
    }

    /// Up to `most` nodes that would take a task of this shape if they were empty, by id.
    fn places(&self, shape: &ShapeSpec, most: usize) -> Vec<NodeId> {
        let would_do = |node: &NodeEntry| is_usable(node) && could_hold(shape, node);
        if let Some(name) = &shape.rules.node {
            return self
                .nodes
                .named(name)
                .filter(|(_, node)| would_do(node))
                .map(|(id, _)| id)
                .into_iter()
                .collect();
        }
        self.nodes.iter().filter(|(_, node)| would_do(node)).map(|(id, _)| id).take(most).collect()
    }

    /// A role for which as many nodes would do as the group has tasks always finds one for itself. The
    /// others are searched for like places for a group that starts.
    fn prospect_of_all(&self, roles: &[&RoleView]) -> Prospect {
        let shapes: Vec<&ShapeSpec> = roles.iter().map(|role| &*role.spec).collect();
        let order = role_order(&shapes);
        let tasks: usize = roles.iter().map(|role| role.needed() as usize).sum();
        let found: Vec<Vec<NodeId>> = order.iter().map(|role| self.places(shapes[*role], tasks)).collect();
        if found.iter().any(Vec::is_empty) {
            return Prospect::Never;
        }
        let demand = |role: usize| Demand {
            scope: self.shapes.get(roles[role].shape).scopes[0],
            shape: shapes[role],
            tasks: roles[role].needed(),
        };
        let (plenty, scarce): (Vec<usize>, Vec<usize>) =
            (0..order.len()).partition(|position| found[*position].len() >= tasks);
        let searched: Vec<(Demand<'_>, &[NodeId])> =
            scarce.iter().map(|position| (demand(order[*position]), found[*position].as_slice())).collect();
        let room_on = |id: NodeId| {
            let node = self.nodes.get(id).expect("just found");
            Room { free: node.view.capacity.clone(), company: Company::default() }
        };
        // Who comes first matters where several roles mind replicas. With the smallest limit first, whatever
        // holds in some order holds in this one.
        let mut nodes: Vec<NodeId> = match packing::try_pack(&searched, room_on) {
            Packed::Found(places) => places.concat(),
            Packed::NoWay => return Prospect::Never,
            Packed::GivenUp => return Prospect::Open,
        };
        let mut taken: BTreeSet<NodeId> = nodes.iter().copied().collect();
        for position in plenty {
            let left = roles[order[position]].needed() as usize;
            let free: Vec<NodeId> =
                found[position].iter().copied().filter(|node| !taken.contains(node)).take(left).collect();
            taken.extend(free.iter().copied());
            nodes.extend(free);
        }
        Prospect::Fits(nodes)
    }
}

/// Whether a group waits to start: what has started may grow, but needs no more.
fn waits(group: &GroupView) -> bool {
    match group.start {
        Start::Independent => group.waiting() > 0,
        Start::Atomic => group.gang.is_some(),
    }
}

/// The roles of a group that need places of their own.
fn wanted(group: &GroupView) -> impl Iterator<Item = (usize, &RoleView)> {
    let is_atomic = group.start == Start::Atomic;
    let needs = move |role: &RoleView| !is_atomic || role.needed() > 0;
    group.roles.iter().enumerate().filter(move |(_, role)| role.wants_room() && needs(role))
}

/// Whether the node counts as one that may take work at some time.
pub(super) fn is_usable(node: &NodeEntry) -> bool {
    let takes_pause_for_good = mutation::active(Mutation::GiveUpEarly);
    node.view.state.condition == Condition::Automated && (node.view.open || !takes_pause_for_good)
}

/// Whether a task would fit if nobody else were there.
fn could_hold(shape: &ShapeSpec, node: &NodeEntry) -> bool {
    shape.request.fits_in(&node.view.capacity) && shape.rules.may_allow(&node.view.facts)
}
