//! The Scheduler's promises: its view adds up, everything that waits is queued, and nothing that
//! waits with a closed window would fit anywhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{GroupId, JobId, NodeId, TaskId};
use crate::machine::{Broken, promise};
use crate::resources::{KindId, Resources};
use crate::shares::ratio::Weight;
use crate::spec::{Company, Start, Tie};

use super::groups::RoleView;
use super::leaf::LeafId;
use super::nodes::NodeEntry;
use super::shapes::{Place, ShapeId, ShapeKey};
use super::shares::{class_weight, weight_of};
use super::{Scheduler, gangs};

/// A group that would start if there were room.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Startable {
    pub group: GroupId,
    /// Waiting tasks by role.
    pub roles: Vec<(u16, u32)>,
    /// All of them start together or none.
    pub atomic: bool,
}

impl Scheduler {
    pub(super) fn check_view(&self) -> Result<(), Broken> {
        self.check_nodes()?;
        promise!(4, self.nodes.standings_are_true(), "nodes are filed under a standing they do not have");
        self.check_queues()?;
        self.check_shares()?;
        self.check_ages()?;
        self.check_choices()?;
        self.check_stops()?;
        self.check_earmarks()?;
        self.check_starts()?;
        self.check_nothing_fits()
    }

    fn check_nodes(&self) -> Result<(), Broken> {
        let mut chained = 0;
        for (id, node) in self.nodes.iter() {
            let (mut free, mut company) = (node.view.offered(), Company::default());
            for live in self.live.on_node(node.attempts) {
                promise!(1, live.node() == Some(id), "{} is chained to a wrong node", live.attempt);
                free -= self.request_of(live.attempt.task);
                company.join(self.shape_of(live.attempt.task));
            }
            chained += company.tasks;
            let (shapes, kept) = self.earmarks.on(id);
            shapes.iter().for_each(|shape| free -= &shape.request);
            shapes.iter().for_each(|shape| company.join(shape));
            free -= &kept;
            let (shapes, kept) = self.claims.on(id);
            shapes.iter().for_each(|shape| company.join(shape));
            free -= &kept;
            promise!(1, company == node.company, "{id} has {company:?}, the view says {:?}", node.company);
            promise!(1, free == node.free, "{id} has {free:?} free, the view says {:?}", node.free);
        }
        let on_nodes = self.live.iter().filter(|live| live.node().is_some()).count();
        promise!(1, chained as usize == on_nodes, "a charged attempt is on no node");
        for (kind, sum) in (0..self.settings.kinds.len()).map(|kind| {
            let kind = KindId(kind as u16);
            let open = self.nodes.iter().filter(|(_, node)| node.takes_work());
            (kind, open.map(|(_, node)| i128::from(node.free.get(kind))).sum::<i128>())
        }) {
            promise!(1, sum == self.nodes.open_free(kind), "free {kind:?} is summed up wrongly");
        }
        Ok(())
    }

    fn check_queues(&self) -> Result<(), Broken> {
        let mut expected: BTreeMap<ShapeId, u64> = BTreeMap::new();
        let mut references: BTreeMap<ShapeId, u32> = BTreeMap::new();
        let groups = self.jobs.iter().flat_map(|(_, job)| job.groups.iter().flatten());
        for group in groups {
            if let Some(gang) = group.gang {
                *expected.entry(gang).or_default() += gangs::gang_size(&self.shapes.get(gang).key);
                *references.entry(gang).or_default() += 1;
                let size = gangs::gang_size(&self.shapes.get(gang).key);
                promise!(2, group.needed() == size, "a gang is queued with a wrong size");
            }
            let is_queued = group.gang.is_some();
            let misplaced = group.elastic.is_some() && is_queued != group.waits_as_whole();
            promise!(4, !misplaced, "an elastic group is queued as a whole: {is_queued}");
            for role in &group.roles {
                *references.entry(role.shape).or_default() += 1;
                *expected.entry(role.shape).or_default() += u64::from(role.queued);
                let independent = group.start == Start::Independent && !group.withdrawn;
                let queued = if independent { role.waiting() } else { group.surplus_of(role) };
                let queued = u64::from(queued);
                promise!(4, u64::from(role.queued) == queued, "waiting tasks are not queued");
            }
        }
        for (id, shape) in self.shapes.iter() {
            let waiting = expected.get(&id).copied().unwrap_or(0);
            promise!(
                4,
                self.shapes.waiting(id) == waiting,
                "a shape counts {} of {waiting}",
                self.shapes.waiting(id)
            );
            let idle = shape.place == Place::Idle;
            promise!(4, idle == (waiting == 0), "a shape with {waiting} waiting tasks is {:?}", shape.place);
            let served = idle || matches!(shape.place, Place::Indexed | Place::Limited);
            let left = shape.place == Place::Open && self.has_more_to_plan();
            promise!(4, served || left, "a shape is left {:?}", shape.place);
            let counted = references.get(&id).copied().unwrap_or(0);
            promise!(4, shape.references == counted, "a shape counts its references wrongly");
            promise!(4, counted > 0 || shape.window.is_some(), "an unused shape is kept");
        }
        Ok(())
    }

    fn check_nothing_fits(&self) -> Result<(), Broken> {
        if self.is_starved() || self.has_more_to_plan() {
            return Ok(());
        }
        let blocked = self.shapes.iter().filter(|(_, shape)| shape.place == Place::Indexed);
        for (_, shape) in blocked.filter(|(_, shape)| shape.window.is_none()) {
            if let ShapeKey::Task(spec) = &shape.key {
                let would_do =
                    |node: &NodeEntry| spec.rules.allow(&node.view.facts) && node.has_room_for(spec);
                let node = self.nodes.iter().find(|(_, node)| would_do(node)).map(|(id, _)| id);
                promise!(5, node.is_none(), "{spec:?} waits although it fits on {node:?}");
            }
        }
        for (id, shape) in self.shapes.iter().filter(|(_, shape)| shape.place == Place::Limited) {
            let limit = self.limit_on(shape.leaf, id, self.now).is_some();
            let limit = limit || self.headroom_limit(shape.leaf, id).is_some() || self.looks_soon(id);
            promise!(5, limit, "{:?} stands aside although no limit keeps it", shape.key);
        }
        Ok(())
    }

    /// The books of the shares add up to what is live and what waits.
    fn check_shares(&self) -> Result<(), Broken> {
        let mut tasks: BTreeMap<u32, u64> = BTreeMap::new();
        let mut costs: BTreeMap<u32, u128> = BTreeMap::new();
        for live in self.live.iter() {
            let queue = self.shares.leaf(self.leaf_of(live.attempt.task.job())).queue;
            *tasks.entry(queue).or_default() += 1;
            *costs.entry(queue).or_default() += self.price(self.request_of(live.attempt.task)).cost;
        }
        let mut waiting: BTreeMap<LeafId, u64> = BTreeMap::new();
        for (id, shape) in self.shapes.iter() {
            *waiting.entry(shape.leaf).or_default() += self.shapes.waiting(id);
        }
        for (index, leaf) in self.shares.leaves.iter().enumerate() {
            let counted = waiting.get(&LeafId(index as u32)).copied().unwrap_or(0);
            promise!(4, leaf.waiting == counted, "a leaf counts {} of {counted} tasks", leaf.waiting);
        }
        for (index, queue) in self.shares.queues.iter().enumerate().filter(|_| !self.shares.is_plain()) {
            let (held, index) = (&queue.account, index as u32);
            let (tasks, cost) = (tasks.remove(&index).unwrap_or(0), costs.remove(&index).unwrap_or(0));
            promise!(1, (held.tasks, held.cost) == (tasks, cost), "a queue's books are wrong: {held:?}");
            let leaves = self.shares.leaves.iter().filter(|leaf| leaf.queue == index);
            let waiting: u64 = leaves.map(|leaf| leaf.waiting).sum();
            let counted = queue.waiting.tasks;
            promise!(4, counted == waiting, "a queue counts {counted} of {waiting} tasks");
        }
        promise!(8, self.shares.knows_who_is_busy(), "it is not known which queues have or want something");
        self.check_weights()
    }

    /// Everybody weighs what the settings in force say.
    fn check_weights(&self) -> Result<(), Broken> {
        let settings = &self.settings.shares;
        for (class, account) in self.shares.classes.iter().enumerate() {
            let weight = class_weight(class, settings).unwrap_or(Weight::ONE);
            promise!(8, account.clock.weight() == weight, "class {class} does not weigh {weight:?}");
        }
        for queue in &self.shares.queues {
            let weight = weight_of(queue, settings);
            promise!(8, queue.account.clock.weight() == weight, "a queue does not weigh {weight:?}");
        }
        Ok(())
    }

    /// What the view says is free on each node, to be compared with the ledger.
    pub fn free_by_node(&self) -> BTreeMap<NodeId, Resources> {
        let with_earmarks = |id: NodeId, node: &NodeEntry| {
            let ((shapes, mut free), mut on) = (self.earmarks.on(id), node.free.clone());
            shapes.into_iter().for_each(|shape| free += &shape.request);
            on += &free;
            on += &self.claims.on(id).1;
            on
        };
        self.nodes.iter().map(|(id, node)| (id, with_earmarks(id, node))).collect()
    }

    /// The nodes that take work as far as the Scheduler knows, by id.
    pub fn open_nodes(&self) -> Vec<NodeId> {
        self.nodes.iter().filter(|(_, node)| node.view.open).map(|(id, _)| id).collect()
    }

    /// With whom a group stays in one pool.
    pub fn tie_of(&self, id: GroupId) -> Tie {
        self.group(id).map_or(Tie::None, |group| group.tie)
    }

    /// Groups of which something waits with a closed window.
    pub fn startable(&self) -> Vec<Startable> {
        let mut startable = Vec::new();
        for (job, view) in self.jobs.iter() {
            for (index, group) in view.groups.iter().enumerate() {
                let Some(group) = group.as_ref().filter(|group| !group.withdrawn && group.waiting() > 0)
                else {
                    continue;
                };
                let id = GroupId::new(JobId(job), index as u16);
                let atomic = group.start == Start::Atomic && group.gang.is_some();
                if group.start == Start::Atomic && !atomic && group.elastic.is_none() {
                    continue;
                }
                let closed = |shape: ShapeId| {
                    self.shapes.get(shape).window.is_none() && !self.shapes.is_limited(shape)
                };
                let size = |role: &RoleView| if atomic { role.needed() } else { role.queued };
                let is_ready = |role: &RoleView| {
                    role.spec.guest_of.is_none() && closed(group.gang.unwrap_or(role.shape))
                };
                let roles = group.roles.iter().enumerate().filter(|(_, role)| size(role) > 0);
                let ready: Vec<(u16, u32)> = roles
                    .filter(|(_, role)| is_ready(role))
                    .map(|(role, view)| (role as u16, size(view)))
                    .collect();
                if !ready.is_empty() {
                    startable.push(Startable { group: id, roles: ready, atomic });
                }
            }
        }
        startable
    }

    /// Tasks the Scheduler believes to be live.
    pub fn live_tasks(&self) -> BTreeSet<TaskId> {
        self.live.iter().map(|live| live.attempt.task).collect()
    }
}
