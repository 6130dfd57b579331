//! Jobs that come to stand elsewhere while they wait or run: what waits of them is queued anew at once, and
//! what runs counts for their new share from now on.

use crate::id::{GroupId, JobId, Slot, TaskId};
use crate::mutation::{self, Mutation};
use crate::settings::JobKey;
use crate::spec::Standing;
use crate::time::Time;

use super::leaf::LeafId;
use super::queue::Entry;
use super::{Scheduler, groups};

/// What waits of a group that is listed nowhere for the moment.
pub(super) struct Unlisted {
    group: GroupId,
    /// It waits as one.
    is_gang: bool,
    /// How many tasks of each role are queued.
    queued: Vec<u32>,
}

impl Scheduler {
    /// A job stands otherwise from now on.
    pub(super) fn reprioritise(&mut self, now: Time, id: JobId, standing: Standing) {
        let Some(job) = self.jobs.get(id.0) else { return };
        let (requestor, before) = job.standing.as_deref().cloned().unwrap_or_default();
        if before == standing || mutation::active(Mutation::KeepOldStanding) {
            return;
        }
        self.claims.unsettled = true;
        let leaf_before = job.leaf;
        let unlisted = self.unlist(id);
        let leaf = self.leaf_for(&requestor, &standing);
        let band_changed = standing.band != before.band;
        let job = self.jobs.get_mut(id.0).expect("just seen");
        job.stand(requestor, standing);
        job.leaf = leaf;
        self.move_starts(id, leaf_before, leaf);
        if self.shares.leaf(leaf).queue != self.shares.leaf(leaf_before).queue {
            self.move_books(now, id, leaf_before, leaf);
        }
        if self.settings.shares.job_key == JobKey::RunTime && (band_changed || leaf != leaf_before) {
            self.move_clock(now, id, leaf != leaf_before);
        }
        self.stand_by_ages(now, id);
        self.list_again(now, unlisted);
        // Both shares have and want something else, and with them everybody.
        self.limits.stale |= self.limited;
    }

    /// Takes everything that waits of a job out of its queues.
    fn unlist(&mut self, id: JobId) -> Vec<Unlisted> {
        let groups = self.jobs.get(id.0).map_or(0, |job| job.groups.len());
        let mut unlisted = Vec::with_capacity(groups);
        for index in 0..groups {
            unlisted.extend(self.unlist_group(GroupId::new(id, index as u16)));
        }
        unlisted
    }

    pub(super) fn unlist_group(&mut self, group: GroupId) -> Option<Unlisted> {
        let view = self.group(group)?;
        let is_gang = view.gang.is_some();
        if is_gang {
            self.dequeue_gang(group);
        }
        let view = groups::find_mut(&mut self.jobs, group).expect("just seen");
        let queued: Vec<u32> = view.roles.iter_mut().map(|role| std::mem::take(&mut role.queued)).collect();
        let shapes: Vec<_> = view.roles.iter().map(|role| role.shape).collect();
        for (shape, tasks) in shapes.into_iter().zip(&queued).filter(|(_, tasks)| **tasks > 0) {
            self.take_waiting(shape, u64::from(*tasks));
            self.shapes.settle(shape, &self.jobs);
        }
        Some(Unlisted { group, is_gang, queued })
    }

    /// Queues it where its job stands by now, to be tried at once.
    pub(super) fn list_again(&mut self, now: Time, unlisted: impl IntoIterator<Item = Unlisted>) {
        for Unlisted { group, is_gang, queued } in unlisted {
            // Others may ask for it by now, for whom other nodes are.
            self.doubt(group);
            for (role, tasks) in queued.into_iter().enumerate() {
                let view = &mut self.group_mut(group).expect("it was unlisted").roles[role];
                view.queued = tasks;
                let before = view.shape;
                self.place_role_anew(now, Entry { group, role: role as u16 });
                self.shapes.release(before, &mut self.nodes);
            }
            if is_gang {
                let shape = self.enqueue_gang(group);
                self.open_unless_collecting(shape);
            }
        }
    }

    /// What runs of a job counts for another class or queue.
    fn move_books(&mut self, now: Time, id: JobId, from: LeafId, to: LeafId) {
        let job = self.jobs.get(id.0).expect("the caller has seen the job");
        let lifetime = job.lifetime();
        let groups = job.groups.iter().flatten();
        let live = groups.flat_map(|group| self.live.of_group(group.live));
        let live: Vec<(TaskId, Slot)> = live.map(|live| (live.attempt.task, live.attempt.slot)).collect();
        if live.is_empty() || self.shares.is_plain() {
            return;
        }
        self.shares.welcome(now, to);
        for (task, slot) in live {
            self.charge(now, from, task, -1);
            self.take_leave(now, from);
            self.charge(now, to, task, 1);
            if self.limits.has_drawn(slot) {
                let cost = self.price(self.request_of(task)).cost;
                self.give_back_draw(from, slot);
                self.draw(to, slot, cost, lifetime);
            }
        }
    }

    /// The run time of a job goes on by the weight of its new band; elsewhere it begins where those are that
    /// are served there.
    fn move_clock(&mut self, now: Time, id: JobId, elsewhere: bool) {
        let job = self.jobs.get(id.0).expect("the caller has seen the job");
        let (leaf, band) = (job.leaf, job.band().to_owned());
        let weight = self.band_weight(&band);
        let newcomer = elsewhere.then(|| self.new_clock(now, leaf, &band));
        let job = self.jobs.get_mut(id.0).expect("just seen");
        let Some(clock) = &mut job.clock else { return };
        match newcomer {
            Some(newcomer) => clock.clock = newcomer.clock,
            None => clock.clock.set_weight(now, clock.cost, weight),
        }
    }
}
