//! Groups that are to fail when they can never fit: none that can is given up, none that cannot is left
//! waiting. Every way is tried, where that ends in reasonable time.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::id::{GroupId, NodeId};
use crate::machine::{Broken, promise};
use crate::messages::NodeView;
use crate::spec::{Condition, GroupSpec, JobSpec};

use super::doors::asked;
use super::oracle::{Room, can_be_tried, fits, gang_fits};
use super::world::World;

impl World {
    /// What waits although it is to fail when it can never fit could fit some day. `None` of the nodes
    /// says nothing.
    pub(super) fn check_nobody_is_unable(&self) -> Result<(), Broken> {
        if self.cluster.nodes().next().is_none() {
            return Ok(());
        }
        for startable in self.scheduler.startable() {
            let id = startable.group;
            // A group that has started may grow, but needs no more.
            let has_started = self.jobs.job(id.job()).is_ok_and(|job| {
                let group = &job.groups[id.index()];
                group.is_elastic() && group.live > 0
            });
            if self.scheduler.fails_if_unable(id) && !has_started {
                let possible = self.might_fit(id);
                promise!(4, possible != Some(false), "{id} waits although it can never fit and is to fail");
            }
        }
        Ok(())
    }

    /// What the Scheduler has just given up could not fit on the nodes it knows.
    pub(super) fn check_found_unable(&self) -> Result<(), Broken> {
        for id in self.scheduler.found_unable() {
            let possible = self.might_fit(*id);
            promise!(4, possible != Some(true), "{id} is given up although it would fit on empty nodes");
        }
        Ok(())
    }

    /// Whether a group would fit if nothing ran, nobody had borrowed a node and all of them took work but
    /// those that are manual or broken, wherever its tasks come to be; `None` if there are too many ways.
    fn might_fit(&self, id: GroupId) -> Option<bool> {
        let mut job = JobSpec::clone(&self.jobs.job(id.job()).ok()?.spec);
        // It may stand elsewhere since, and the Scheduler has not heard of it yet.
        job.standing = self.scheduler.standing_of(id.job())?;
        let spec = anywhere(asked(&job, id));
        let (roles, atomic) = self.scheduler.waiting_roles(id)?;
        let usable =
            self.scheduler.node_views().filter(|(_, view)| view.state.condition == Condition::Automated);
        let rooms: BTreeMap<NodeId, Room> = usable.map(|(id, view)| (id, room(view))).collect();
        if !atomic {
            let finds = |(role, _): &(u16, u32)| {
                rooms.values().any(|room| fits(&spec.roles[usize::from(*role)].shape, room))
            };
            return Some(roles.iter().all(finds));
        }
        can_be_tried(&roles, rooms.len()).then(|| gang_fits(&spec, &roles, rooms))
    }
}

fn room(view: &NodeView) -> Room {
    let (facts, free) = (Arc::clone(&view.facts), view.capacity.clone());
    Room { facts, cordoned: false, free, company: Default::default(), some_day: true }
}

/// The group, as if it did not mind how far apart its tasks run.
fn anywhere(mut group: GroupSpec) -> GroupSpec {
    group.hops = None;
    for role in group.roles.iter_mut().filter(|role| role.shape.hops.is_some()) {
        Arc::make_mut(&mut role.shape).hops = None;
    }
    group
}
