//! Whether what starts together starts as near to each other as it asked for: judged from what was said
//! about the nodes and from the plans, without the Scheduler.

use std::collections::BTreeMap;

use crate::id::{GroupId, NodeId};
use crate::job_state::JobState;
use crate::machine::{Broken, promise};
use crate::messages::{ClusterMessage, Outbox, Placement, SchedulerMessage};
use crate::spec::{GroupSpec, Hops, NodePath};

/// The path of each node in each version that had one.
#[derive(Clone, Debug, Default)]
pub(super) struct Nearness {
    paths: BTreeMap<(NodeId, u64), NodePath>,
}

/// A node and its path, part by part.
pub(super) type Whereabouts<'a> = (NodeId, Option<Vec<&'a str>>);

pub(super) fn whereabouts(node: NodeId, path: Option<&NodePath>) -> Whereabouts<'_> {
    (node, path.map(|path| path.as_str().split('/').collect()))
}

/// The hops between two places, counted level by level.
fn hops(left: &Whereabouts<'_>, right: &Whereabouts<'_>) -> u8 {
    if left.0 == right.0 {
        return 0;
    }
    let (Some(left), Some(right)) = (&left.1, &right.1) else { return 16 };
    let deepest = left.len().max(right.len());
    let parted =
        (0..deepest).find(|level| left.get(*level).is_none() || left.get(*level) != right.get(*level));
    parted.map_or(0, |level| 2 * (deepest - level) as u8)
}

/// Whether a task of this role may run here beside another of the group.
pub(super) fn is_near(
    spec: &GroupSpec,
    (role, here): (u16, &Whereabouts<'_>),
    (other_role, there): (u16, &Whereabouts<'_>),
) -> bool {
    let within = |asked: Option<Hops>| match asked {
        Some(Hops::AtMost(most)) => hops(here, there) <= most,
        Some(Hops::Fewest) | None => true,
    };
    within(spec.hops) && (role != other_role || within(spec.roles[usize::from(role)].shape.hops))
}

impl Nearness {
    /// Takes in what a machine said: news of nodes, and plans, which are judged.
    pub(super) fn hear(&mut self, out: &Outbox, jobs: &JobState) -> Result<(), Broken> {
        for message in &out.scheduler {
            let SchedulerMessage::Nodes(news) = message else { continue };
            for news in news {
                let Some(view) = &news.view else { continue };
                if let Some(path) = &view.facts.path {
                    self.paths.insert((news.node, view.version), path.clone());
                }
            }
        }
        for message in &out.cluster {
            let ClusterMessage::Commit(plan) = message else { continue };
            let mut groups: BTreeMap<GroupId, Vec<&Placement>> = BTreeMap::new();
            for placement in &plan.placements {
                groups.entry(placement.attempt.task.group).or_default().push(placement);
            }
            for (id, placements) in groups {
                let Ok(job) = jobs.job(id.job()) else { continue };
                self.judge(id, &job.spec.groups[id.index()], &placements)?;
            }
        }
        Ok(())
    }

    fn judge(&self, id: GroupId, spec: &GroupSpec, placements: &[&Placement]) -> Result<(), Broken> {
        let place = |placement: &Placement| {
            let path = self.paths.get(&(placement.node, placement.version));
            (placement.attempt.task.role, whereabouts(placement.node, path))
        };
        let asks = spec.hops.is_some() || spec.roles.iter().any(|role| role.shape.hops.is_some());
        let places: Vec<_> =
            if asks { placements.iter().map(|one| place(one)).collect() } else { Vec::new() };
        for (position, (role, here)) in places.iter().enumerate() {
            for (other, there) in &places[..position] {
                let near = is_near(spec, (*role, here), (*other, there));
                promise!(2, near, "{id} starts on {} and {}, further apart than it asked", here.0, there.0);
            }
        }
        Ok(())
    }
}
