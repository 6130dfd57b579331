//! What people do to work that is there, and to which work belongs together: drawn at any moment, and checked
//! by plain loops whenever nothing is on its way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;

use crate::id::{JobId, NodeId, TaskId, Ticket};
use crate::job_state::Job;
use crate::machine::{Broken, promise};
use crate::messages::{
    Cancelled, ClusterMessage, Extended, HostMessage, JobMessage, Resize, SchedulerMessage,
};
use crate::spec::{JobSpec, Relations};
use crate::time::Span;

use super::elastic;
use super::links::{Batch, Party};
use super::world::World;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Control {
    CancelSet(String),
    CancelQueue(Arc<str>),
    CancelTree(JobId),
    CancelOnNode(NodeId),
    Extend(TaskId, Span),
    Resize(Resize),
}

/// Some jobs work on something of which there are versions, and some are parts of others.
pub(super) fn relate(rng: &mut Rng, number: u64, job: &mut JobSpec) {
    if rng.u8(0..5) == 0 {
        job.relations.basis = rng.choice(["main", "next"]).expect("not empty").into();
        job.relations.tag = rng.choice(["", "1", "2", "3"]).expect("not empty").into();
        // Versions of one thing come from one requestor: were they anybody's, few would ever meet.
        job.requestor = "maker".into();
    }
    if rng.u8(0..4) == 0 {
        job.relations.parent = Some(JobId(rng.u64(1..=number)));
    }
}

impl Control {
    pub(super) fn choose(rng: &mut Rng, world: &World) -> Option<Control> {
        let live = |rng: &mut Rng| {
            rng.choice(world.cluster.live().map(|live| live.attempt.task).collect::<Vec<_>>())
        };
        let (_, job) = rng.choice(world.jobs.jobs().collect::<Vec<_>>())?;
        if rng.bool()
            && let Some(resize) = elastic::resize(rng, world)
        {
            return Some(Control::Resize(resize));
        }
        Some(match rng.u8(0..8) {
            0 => Control::CancelSet(job.spec.relations.job_set.clone()),
            1 => Control::CancelQueue(Arc::clone(&job.spec.standing.queue)),
            2..=3 => Control::CancelTree(JobId(rng.u64(1..=20))),
            4..=5 => Control::CancelOnNode(
                rng.choice(world.cluster.nodes().map(|(id, _)| id).collect::<Vec<_>>())?,
            ),
            _ => Control::Extend(live(rng)?, Span::from_millis(rng.u64(1..3_000))),
        })
    }

    pub(super) fn apply(&self, ticket: Ticket, world: &mut World) {
        let all = |which| (Party::Jobs, Batch::Jobs(vec![JobMessage::CancelAll { ticket, which }]));
        let (party, batch) = match self {
            Control::CancelSet(set) => all(Cancelled::Set(set.clone())),
            Control::CancelQueue(queue) => all(Cancelled::Queue(Arc::clone(queue))),
            Control::CancelTree(job) => all(Cancelled::Tree(*job)),
            Control::CancelOnNode(node) => {
                let Some(name) = world.cluster.node(*node).map(|node| node.facts.name.clone()) else {
                    return;
                };
                (Party::Cluster, Batch::Cluster(vec![ClusterMessage::CancelOnNode { ticket, name }]))
            }
            Control::Resize(resize) => {
                let resize = JobMessage::Resize { ticket, resize: resize.clone() };
                (Party::Jobs, Batch::Jobs(vec![resize]))
            }
            Control::Extend(task, span) => {
                let extend = SchedulerMessage::Extend { ticket, what: Extended::Task(*task), span: *span };
                (Party::Scheduler, Batch::Scheduler(vec![extend]))
            }
        };
        world.tell(party, batch);
    }
}

/// A requestor and a basis of theirs.
type Basis = (Arc<str>, String);

/// The tags of each requestor and basis in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Tags {
    came: BTreeMap<Basis, Vec<String>>,
}

impl Tags {
    /// No tag comes back after another has replaced it.
    pub(super) fn watch(&mut self, messages: &[HostMessage]) -> Result<(), Broken> {
        for message in messages {
            let HostMessage::Accepted { job, spec } = message else { continue };
            let Relations { basis, tag, .. } = &*spec.relations;
            if basis.is_empty() {
                continue;
            }
            let tag = if tag.is_empty() { job.to_string() } else { tag.clone() };
            let tags = self.came.entry((Arc::clone(&spec.requestor), basis.clone())).or_default();
            if tags.last() == Some(&tag) {
                continue;
            }
            promise!(4, !tags.contains(&tag), "{job} is of the tag `{tag}`, which was replaced");
            tags.push(tag);
        }
        Ok(())
    }
}

impl World {
    /// What is listed as waiting is all that waits, and a shorter list is the beginning of it.
    pub(super) fn check_listing(&self) -> Result<(), Broken> {
        let all = self.scheduler.first_waiting(usize::MAX);
        let listed: u64 = all.iter().map(|entry| entry.tasks).sum();
        let waiting = self.scheduler.waiting_tasks();
        promise!(4, listed == waiting, "{listed} of {waiting} waiting tasks are listed");
        let some = self.scheduler.first_waiting(3);
        promise!(4, all.starts_with(&some), "a shorter list is not the beginning of a longer one");
        Ok(())
    }

    /// Of each requestor and basis only the jobs of one tag go on; the parts of a job are known to it.
    pub(super) fn check_relations(&self) -> Result<(), Broken> {
        let mut tags: BTreeMap<(&str, &str), (JobId, &str)> = BTreeMap::new();
        for (id, job) in self.jobs.jobs().filter(|(_, job)| job.goes_on()) {
            let Relations { basis, tag, .. } = &*job.spec.relations;
            if !basis.is_empty() {
                let (other, known) = *tags.entry((&job.spec.requestor, basis)).or_insert((id, tag));
                let same = other == id || (known == tag && !tag.is_empty());
                promise!(4, same, "{id} goes on although it and {other} work on versions of one thing");
            }
        }
        for (id, job) in self.jobs.jobs() {
            let unfinished = |(_, child): &(JobId, &Job)| {
                child.spec.relations.parent == Some(id) && child.finished.is_none()
            };
            let children: BTreeSet<JobId> = self.jobs.jobs().filter(unfinished).map(|(id, _)| id).collect();
            promise!(4, children == *job.children, "{id} has the parts {children:?}, not {:?}", job.children);
        }
        Ok(())
    }
}
