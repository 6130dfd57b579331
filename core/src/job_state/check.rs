//! JobState's promises: counts that add up, and atomic groups that run whole.

use std::collections::BTreeMap;

use crate::id::GroupId;
use crate::machine::{Broken, promise};
use crate::spec::Start;

use super::{Group, GroupStatus, JobState};

impl JobState {
    pub(super) fn check_jobs(&self) -> Result<(), Broken> {
        let mut live: BTreeMap<GroupId, u32> = BTreeMap::new();
        for task in self.live() {
            *live.entry(task.attempt.task.group).or_default() += 1;
            let state = self.job(task.attempt.task.job()).ok().and_then(|job| {
                job.groups.get(task.attempt.task.group.index())?.task_state(task.attempt.task)
            });
            promise!(4, state.is_some_and(|state| state.is_live()), "{} is live but {state:?}", task.attempt);
        }
        let mut unfinished = 0;
        for (id, job) in self.jobs() {
            unfinished += u64::from(job.finished.is_none());
            for (index, group) in job.groups.iter().enumerate() {
                let id = GroupId::new(id, index as u16);
                let live = live.get(&id).copied().unwrap_or(0);
                promise!(4, group.live == live, "{id} counts {} live attempts of {live}", group.live);
                check_group(id, group)?;
                check_cancelling(id, group)?;
            }
        }
        self.check_sets()?;
        promise!(4, unfinished == self.unfinished, "unfinished jobs are counted wrongly");
        Ok(())
    }
}

/// Only tasks that are live are being cancelled by themselves.
fn check_cancelling(id: GroupId, group: &Group) -> Result<(), Broken> {
    for (role, index) in group.cancelling.iter().copied() {
        let state = group.task_state(crate::id::TaskId { group: id, role, index });
        promise!(9, state.is_some_and(|state| state.is_live()), "{id} cancels a task that is {state:?}");
    }
    Ok(())
}

fn check_group(id: GroupId, group: &Group) -> Result<(), Broken> {
    for role in &group.roles {
        promise!(4, role.counts_hold(), "{id} counts its task states wrongly");
    }
    let live_states: u64 = crate::outcome::TaskState::ALL
        .into_iter()
        .filter(|state| state.is_live())
        .map(|state| group.count(state))
        .sum();
    promise!(4, live_states == u64::from(group.live), "{id} has live tasks without attempts");
    if group.start == Start::Atomic && group.status == GroupStatus::Active && group.live > 0 {
        let queued = group.waiting();
        let whole = queued == 0 || group.has_minima();
        promise!(2, whole, "{id} is atomic and runs with {queued} tasks missing");
    }
    let finished = group.status == GroupStatus::Finished;
    promise!(4, !finished || group.live == 0, "{id} is finished with live attempts");
    Ok(())
}
