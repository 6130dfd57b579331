//! What waits, in order: the first of every shape are looked at, so the work grows with the shapes that wait
//! and with what is asked for, not with the length of the queue; where jobs are compared by run time, with how
//! many jobs wait, up to a bound.

use std::collections::BTreeMap;

use crate::id::{GroupId, JobId};
use crate::messages::{RoleSize, WaitingEntry};
use crate::settings::JobKey;

use super::gangs::gang_size;
use super::groups::GroupView;
use super::leaf::LeafId;
use super::order::Order;
use super::queue::{Entry, Queued};
use super::rehearsal::Listed;
use super::shapes::{ShapeId, ShapeKey, waits};
use super::{Scheduler, groups};

/// No more entries than this are listed at a time.
const ENTRIES_MAX: usize = 10_000;

impl Scheduler {
    /// Up to so many entries that wait, in the order in which they would be served if there were room for
    /// them and no limit in their way; each is taken to start whole before the shares are compared again.
    pub fn first_waiting(&self, limit: usize) -> Vec<WaitingEntry> {
        let limit = limit.min(ENTRIES_MAX);
        // Whoever runs goes back in the line as time passes: by now others may be first than are kept so.
        let looked_at = if self.settings.shares.job_key == JobKey::RunTime { ENTRIES_MAX } else { limit };
        let mut lines: BTreeMap<LeafId, Vec<Listed>> = BTreeMap::new();
        for (id, shape) in self.shapes.iter().filter(|(id, _)| self.shapes.waiting(*id) > 0) {
            let is_gang = matches!(shape.key, ShapeKey::Gang(..));
            let line = lines.entry(shape.leaf).or_default();
            for entry in shape.queue.first(looked_at, |queued| waits(&self.jobs, id, is_gang, queued)) {
                let (order, entry) = self.order_and_size(entry, &shape.key);
                line.push(Listed { order, shape: id, heads: entry.tasks / gang_size(&shape.key), entry });
            }
        }
        for line in lines.values_mut() {
            line.sort_unstable_by_key(|listed| listed.order);
            line.truncate(limit);
        }
        self.rehearse(lines, limit)
    }

    /// The shapes of which something waits in this leaf.
    pub(super) fn shapes_waiting_in(&self, leaf: LeafId) -> impl Iterator<Item = ShapeId> + '_ {
        let here = self.shapes.iter().filter(move |(_, shape)| shape.leaf == leaf);
        here.map(|(id, _)| id).filter(|id| self.shapes.waiting(*id) > 0)
    }

    /// Tasks of this shape that wait before this place.
    pub(super) fn tasks_before(&self, id: ShapeId, order: Order) -> u64 {
        let shape = self.shapes.get(id);
        let is_gang = matches!(shape.key, ShapeKey::Gang(..));
        let size = |queued: Queued| {
            let (_, entry) = queued;
            let group =
                groups::find(&self.jobs, entry.group).filter(|_| waits(&self.jobs, id, is_gang, queued));
            let of_role = |group: &GroupView| u64::from(group.roles[usize::from(entry.role)].queued);
            group.map_or(0, |group| if is_gang { gang_size(&shape.key) } else { of_role(group) })
        };
        shape.queue.tasks_before(order, size)
    }

    /// How large the groups of a job are that have not ended.
    pub fn sizes(&self, job: JobId) -> Vec<RoleSize> {
        let Some(view) = self.jobs.get(job.0) else { return Vec::new() };
        let mut sizes = Vec::new();
        for (index, group) in view.groups.iter().enumerate() {
            let Some(group) = group.as_ref().filter(|group| !group.forgotten) else { continue };
            let id = GroupId::new(job, index as u16);
            let mut counts = vec![(0, 0); group.roles.len()];
            for live in self.live.of_group(group.live) {
                let (running, stopping) = &mut counts[usize::from(live.attempt.task.role)];
                *running += 1;
                *stopping += u32::from(live.stopping);
            }
            for ((role, view), (running, stopping)) in group.roles.iter().enumerate().zip(counts) {
                let (min, max) = view.bounds(group.start);
                let (role, expected) = (role as u16, running - stopping);
                sizes.push(RoleSize { group: id, role, min, max, expected, running });
            }
        }
        sizes
    }

    fn order_and_size(&self, entry: Entry, key: &ShapeKey) -> (Order, WaitingEntry) {
        let group = groups::find(&self.jobs, entry.group).expect("what waits is there");
        let role = &group.roles[usize::from(entry.role)];
        let (own, tasks) = match key {
            ShapeKey::Gang(..) => (None, gang_size(key)),
            ShapeKey::Task(_) => (Some(entry.role), u64::from(role.queued)),
        };
        // What runs goes on to use its share while the rest of it waits.
        let by_time = self.settings.shares.job_key == JobKey::RunTime;
        let order = if by_time { self.order_of(self.now, entry) } else { role.order };
        (order, WaitingEntry { group: entry.group, role: own, tasks })
    }
}
