//! The memory of failures: which nodes are to be taken last for which version of a service.
//!
//! Remembered are the last failures of each version of a service on each node, as many as it takes to
//! flag the node. Flags only change which node is preferred, so nothing waits for one to expire: whoever
//! asks has let the time pass first ([`Faults::advance`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::messages::{PastFailure, Released};
use crate::mutation::{self, Mutation};
use crate::settings::FaultySettings;
use crate::spec::ShapeSpec;
use crate::time::Time;

use super::nodes::Nodes;
use super::scopes::ScopeId;
use super::{Scheduler, groups};

/// So many pairs of a version and a node are remembered; beyond that, those that failed last the longest
/// time ago are forgotten.
const REMEMBERED_MAX: usize = 100_000;

/// The name and version of a service.
type Service = Arc<(String, u64)>;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Faults {
    settings: FaultySettings,
    failures: BTreeMap<(NodeId, Service), Failures>,
    last_sequence: u64,
    /// What is remembered, by the sequence of its last failure: the first is the oldest.
    #[serde(skip)]
    by_age: BTreeMap<u64, (NodeId, Service)>,
    /// Flagged pairs by the oldest failure that is part of the reason.
    #[serde(skip)]
    expiring: BTreeSet<(Time, NodeId, Service)>,
    /// By version, the flagged nodes in order of their ids; never an empty list.
    #[serde(skip)]
    flagged: BTreeMap<Service, Arc<Vec<NodeId>>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Failures {
    /// The last ones, oldest first, at most as many as flag a node.
    times: VecDeque<Time>,
    sequence: u64,
    flagged: bool,
}

impl Faults {
    pub(super) fn new(settings: FaultySettings) -> Faults {
        Faults { settings, ..Faults::default() }
    }

    /// Makes everything anew that is not stored.
    pub(super) fn rebuild(&mut self) {
        (self.by_age, self.expiring, self.flagged) = Default::default();
        for ((node, service), failures) in &self.failures {
            self.by_age.insert(failures.sequence, (*node, Arc::clone(service)));
            if failures.flagged {
                self.expiring.insert((failures.times[0], *node, Arc::clone(service)));
                // The nodes come in order.
                let nodes = self.flagged.entry(Arc::clone(service)).or_default();
                Arc::make_mut(nodes).push(*node);
            }
        }
    }

    /// Other rules: what is remembered is judged by them. Failures that were forgotten stay so.
    pub(super) fn change_settings(&mut self, settings: FaultySettings, now: Time) {
        if settings == self.settings {
            return;
        }
        self.settings = settings;
        if settings.failures == 0 {
            self.failures.clear();
        }
        for failures in self.failures.values_mut() {
            // What is too old by these rules is forgotten, so that it is not back when they are widened.
            let newest = *failures.times.back().expect("something is remembered");
            failures.times.retain(|time| *time + settings.within >= newest);
            while failures.times.len() as u64 > settings.failures {
                failures.times.pop_front();
            }
            failures.flagged = failures.times.len() as u64 == settings.failures;
        }
        self.rebuild();
        self.advance(now);
    }

    /// Time has passed: flags that have expired go, and so does what cannot matter any more.
    pub(super) fn advance(&mut self, now: Time) {
        while let Some((oldest, _, _)) = self.expiring.first()
            && *oldest + self.settings.within < now
        {
            let (_, node, service) = self.expiring.pop_first().expect("just seen");
            self.remove_flag(node, &service);
            self.failures.get_mut(&(node, service)).expect("a flag has a reason").flagged = false;
        }
        while let Some(entry) = self.by_age.first_entry() {
            let newest = *self.failures[entry.get()].times.back().expect("something is remembered");
            if newest + self.settings.within >= now {
                return;
            }
            self.failures.remove(&entry.remove());
        }
    }

    /// A task of this version failed on a node.
    pub(super) fn record(&mut self, service: &(String, u64), node: NodeId, at: Time) {
        let FaultySettings { failures: most, within, .. } = self.settings;
        if most == 0 {
            return;
        }
        let service = Arc::new(service.clone());
        let failures = self.failures.entry((node, Arc::clone(&service))).or_default();
        self.by_age.remove(&failures.sequence);
        if failures.flagged {
            self.expiring.remove(&(failures.times[0], node, Arc::clone(&service)));
        }
        while failures.times.front().is_some_and(|oldest| *oldest + within < at) {
            failures.times.pop_front();
        }
        if failures.times.len() as u64 == most {
            failures.times.pop_front();
        }
        failures.times.push_back(at);
        self.last_sequence += 1;
        failures.sequence = self.last_sequence;
        self.by_age.insert(self.last_sequence, (node, Arc::clone(&service)));
        let was_flagged = failures.flagged;
        failures.flagged = failures.times.len() as u64 == most;
        if failures.flagged {
            self.expiring.insert((failures.times[0], node, Arc::clone(&service)));
        }
        match (was_flagged, failures.flagged) {
            (false, true) => self.set_flag(node, service),
            (true, false) => self.remove_flag(node, &service),
            _ => {}
        }
        if self.failures.len() > REMEMBERED_MAX {
            let oldest = self.by_age.first_key_value().expect("something is remembered").1.clone();
            self.forget(oldest);
        }
    }

    /// The node is gone, and what failed there with it.
    pub(super) fn forget_node(&mut self, node: NodeId) {
        let from = (node, Arc::new((String::new(), 0)));
        let on_node = self.failures.range(from..).map(|(key, _)| key).take_while(|(other, _)| *other == node);
        let on_node: Vec<(NodeId, Service)> = on_node.cloned().collect();
        on_node.into_iter().for_each(|key| self.forget(key));
    }

    fn forget(&mut self, key: (NodeId, Service)) {
        let failures = self.failures.remove(&key).expect("it is remembered");
        self.by_age.remove(&failures.sequence);
        if failures.flagged {
            let (node, service) = key;
            self.remove_flag(node, &service);
            self.expiring.remove(&(failures.times[0], node, service));
        }
    }

    fn set_flag(&mut self, node: NodeId, service: Service) {
        let nodes = Arc::make_mut(self.flagged.entry(service).or_default());
        let place = nodes.binary_search(&node).expect_err("it was not flagged");
        nodes.insert(place, node);
    }

    fn remove_flag(&mut self, node: NodeId, service: &Service) {
        let nodes = self.flagged.get_mut(service).expect("a flagged node is listed");
        let nodes_left = Arc::make_mut(nodes);
        nodes_left.remove(nodes_left.binary_search(&node).expect("a flagged node is listed"));
        if nodes_left.is_empty() {
            self.flagged.remove(service);
        }
    }

    /// The nodes that are to be taken last for tasks of this shape; `None` if there are none. Tasks for one
    /// node have no choice.
    pub(super) fn flagged_for(&self, shape: &ShapeSpec) -> Option<&Arc<Vec<NodeId>>> {
        if self.flagged.is_empty() || shape.rules.node.is_some() {
            return None;
        }
        self.flagged.get(shape.service.as_deref()?)
    }

    pub(super) fn is_flagged_for(&self, shape: &ShapeSpec, node: NodeId) -> bool {
        self.flagged_for(shape).is_some_and(|nodes| nodes.binary_search(&node).is_ok())
    }

    /// All flags: versions of services, each with its nodes.
    pub(super) fn flags(&self) -> impl Iterator<Item = (&(String, u64), &[NodeId])> {
        self.flagged.iter().map(|(service, nodes)| (&**service, nodes.as_slice()))
    }
}

impl Nodes {
    /// The nodes that tasks of this shape are to avoid as long as others have room, if there are any.
    pub(super) fn avoided_by(&self, shape: &ShapeSpec) -> Option<Arc<Vec<NodeId>>> {
        let flagged = self.faults.flagged_for(shape)?;
        (!mutation::active(Mutation::TrustFlagged)).then(|| Arc::clone(flagged))
    }

    /// A search in which flagged nodes do not exist for those who avoid them.
    pub(super) fn without_flagged<T>(&mut self, search: impl FnOnce(&mut Nodes) -> T) -> T {
        self.flagged_excluded = true;
        let found = search(self);
        self.flagged_excluded = false;
        found
    }

    /// A node that has room for a task of this shape, or a better one if it is flagged.
    pub(super) fn unless_flagged(&mut self, node: NodeId, scope: ScopeId, shape: &ShapeSpec) -> NodeId {
        if !self.faults.is_flagged_for(shape, node) {
            return node;
        }
        let node = self.first_fit(scope, shape).expect("the node itself has room");
        debug_assert!(self.may_take(node, shape), "a flagged node is taken before others");
        node
    }

    /// Whether nobody is passed over if this node is taken: a plain look at every node, for checks.
    pub(super) fn may_take(&self, node: NodeId, shape: &ShapeSpec) -> bool {
        let flagged = |node| self.faults.is_flagged_for(shape, node);
        let mut others = self.iter().filter(|(id, _)| !flagged(*id));
        !flagged(node)
            || !others.any(|(_, entry)| shape.rules.allow(&entry.view.facts) && entry.has_room_for(shape))
    }
}

impl Scheduler {
    /// Remembers that a task failed. A task for one node says nothing about that node: it had no choice.
    pub(super) fn note_failure(&mut self, now: Time, released: Released) {
        let Released { attempt, node, .. } = released;
        let group = groups::find(&self.jobs, attempt.task.group).expect("a group outlives its attempts");
        let shape = &group.roles[usize::from(attempt.task.role)].spec;
        let Some(service) = shape.service.as_deref().filter(|_| shape.rules.node.is_none()) else { return };
        if mutation::active(Mutation::ForgetFailure) && attempt.slot.0.is_multiple_of(3) {
            return;
        }
        self.nodes.faults.record(service, node, now);
    }

    pub(super) fn remember(&mut self, now: Time, failures: Vec<PastFailure>) {
        for PastFailure { service, node, at } in failures {
            self.nodes.faults.record(&service, node, at);
        }
        self.nodes.faults.advance(now);
    }

    /// Versions of services, each with the nodes that come last for it.
    pub fn flags(&self) -> BTreeMap<(String, u64), Vec<NodeId>> {
        let flags = self.nodes.faults.flags();
        flags.map(|(service, nodes)| (service.clone(), nodes.to_vec())).collect()
    }
}
