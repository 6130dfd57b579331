//! Tasks that are there for others, by plain loops: guests are where their hosts are and end with them,
//! auxiliary tasks end when everything their group is for is done.

use std::collections::BTreeMap;

use crate::cluster_state::LiveAttempt;
use crate::id::{GroupId, TaskId};
use crate::job_state::{Group, GroupStatus};
use crate::machine::{Broken, promise};
use crate::outcome::TaskState;

use super::world::World;

impl World {
    pub(super) fn check_company(&self) -> Result<(), Broken> {
        let live: BTreeMap<TaskId, &LiveAttempt> =
            self.cluster.live().map(|live| (live.attempt.task, live)).collect();
        for (id, job) in self.jobs.jobs() {
            for (index, group) in job.groups.iter().enumerate() {
                if matches!(group.status, GroupStatus::Active | GroupStatus::Breaking) {
                    check_auxiliary(GroupId::new(id, index as u16), group)?;
                    check_guests(GroupId::new(id, index as u16), group, &live)?;
                }
            }
        }
        Ok(())
    }
}

fn states(id: GroupId, group: &Group, role: usize) -> impl Iterator<Item = (TaskId, TaskState)> + '_ {
    let task = move |index| TaskId { group: id, role: role as u16, index };
    let state = move |task| (task, group.task_state(task).expect("the role has this task"));
    (0..group.roles[role].tasks()).map(task).map(state)
}

fn check_auxiliary(id: GroupId, group: &Group) -> Result<(), Broken> {
    let (mut is_done, mut is_left) = (true, false);
    for (role, view) in group.roles.iter().enumerate() {
        for (_, state) in states(id, group, role) {
            is_done &= view.auxiliary || state.is_final();
            is_left |= view.auxiliary && !state.is_final();
        }
    }
    promise!(4, !(is_done && is_left), "{id} is done, but its auxiliary tasks are kept");
    Ok(())
}

fn check_guests(id: GroupId, group: &Group, live: &BTreeMap<TaskId, &LiveAttempt>) -> Result<(), Broken> {
    for (role, view) in group.roles.iter().enumerate() {
        let Some(host) = view.host else { continue };
        for (guest, state) in states(id, group, role) {
            let host = TaskId { role: host, ..guest };
            let host_state = group.task_state(host).expect("a guest has a host");
            match (live.get(&guest), live.get(&host)) {
                (Some(guest), Some(host)) => {
                    promise!(1, guest.node == host.node, "{} is not where its host is", guest.attempt);
                }
                (Some(guest), None) => {
                    promise!(2, guest.stop.is_some(), "{} outlives its host", guest.attempt);
                }
                (None, Some(host)) => {
                    let missing = !state.is_final() && host.stop.is_none();
                    promise!(2, !missing, "{} runs without its guest", host.attempt);
                }
                (None, None) => {
                    let left = host_state.is_final() && !state.is_final();
                    promise!(2, !left, "{guest} is {state:?} although its host is {host_state:?}");
                }
            }
        }
    }
    Ok(())
}
