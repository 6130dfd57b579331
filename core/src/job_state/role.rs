//! A role's tasks: a count per state, and a state byte only for tasks that ever started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::collections::Seldom;
use crate::outcome::TaskState;
use crate::roll_up::TaskResult;
use crate::spec::RoleSpec;

use super::Tried;
use super::elastic::Bounds;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Role {
    tasks: u32,
    /// Its tasks are there for those of other roles.
    pub auxiliary: bool,
    /// The role whose tasks its own are guests of.
    pub host: Option<u16>,
    /// The states of the tasks that ever started, by index; the others wait, or were cancelled
    /// before they could.
    states: SmallVec<[TaskState; 16]>,
    counts: [u32; TaskState::ALL.len()],
    /// Nothing more happens here, and what had not ended is in this state: the group was withdrawn, or the
    /// role was done without it.
    closed: Option<TaskState>,
    /// Between which sizes an elastic role may vary.
    pub bounds: Option<Bounds>,
    /// What came of the tasks that are final.
    pub result: TaskResult,
    /// Tasks of which an attempt did not end well.
    pub tried: Seldom<BTreeMap<u32, Tried>>,
}

impl Role {
    pub(super) fn new(spec: &RoleSpec) -> Role {
        let (tasks, auxiliary, host) = (spec.max, spec.auxiliary, spec.shape.guest_of);
        let mut counts = [0; TaskState::ALL.len()];
        counts[TaskState::Queued as usize] = tasks;
        Role {
            tasks,
            auxiliary,
            host,
            states: SmallVec::new(),
            counts,
            closed: None,
            bounds: None,
            result: TaskResult::New,
            tried: Seldom::default(),
        }
    }

    pub fn tasks(&self) -> u32 {
        self.tasks
    }

    /// It may have so many tasks from now on.
    pub(super) fn make_room_for(&mut self, tasks: u32) {
        let more = tasks.saturating_sub(self.tasks);
        self.tasks += more;
        self.counts[TaskState::Queued as usize] += more;
    }

    pub fn count(&self, state: TaskState) -> u32 {
        self.counts[state as usize]
    }

    pub fn state(&self, index: u32) -> Option<TaskState> {
        if index >= self.tasks {
            return None;
        }
        Some(self.states.get(index as usize).copied().unwrap_or(self.untouched()))
    }

    /// The state of the tasks that never started.
    fn untouched(&self) -> TaskState {
        self.closed.unwrap_or(TaskState::Queued)
    }

    /// Tasks that have an attempt.
    pub fn live(&self) -> u32 {
        TaskState::ALL.into_iter().filter(|state| state.is_live()).map(|state| self.count(state)).sum()
    }

    /// Tasks that have ended for good.
    pub fn done(&self) -> u32 {
        TaskState::ALL.into_iter().filter(|state| state.is_final()).map(|state| self.count(state)).sum()
    }

    pub(super) fn set_state(&mut self, index: u32, state: TaskState) {
        assert!(index < self.tasks && self.closed.is_none(), "only tasks of an open role change");
        let index = index as usize;
        if self.states.len() <= index {
            self.states.resize(index + 1, TaskState::Queued);
        }
        let before = std::mem::replace(&mut self.states[index], state);
        assert!(before.may_become(state), "a task that is {before:?} cannot become {state:?}");
        self.counts[before as usize] -= 1;
        self.counts[state as usize] += 1;
    }

    pub(super) fn is_final(&self) -> bool {
        self.unfinished() == 0
    }

    pub(super) fn unfinished(&self) -> u32 {
        self.tasks - self.done()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Ends every task that is not final as unused.
    pub(super) fn discard_rest(&mut self) {
        self.end_rest(TaskState::Unused);
    }

    /// Ends every task that is not final like this.
    pub(super) fn end_rest(&mut self, end: TaskState) {
        if self.closed.is_some() {
            return;
        }
        if end != TaskState::Unused && !self.is_final() {
            let result = if end == TaskState::Completed { TaskResult::None } else { TaskResult::Warn };
            self.result = self.result.max(result);
        }
        for state in &mut self.states {
            if !state.is_final() {
                self.counts[*state as usize] -= 1;
                self.counts[end as usize] += 1;
                *state = end;
            }
        }
        let untouched = self.tasks - self.states.len() as u32;
        self.counts[TaskState::Queued as usize] -= untouched;
        self.counts[end as usize] += untouched;
        self.closed = Some(end);
    }

    /// The counts as the states say they should be.
    pub(super) fn counts_hold(&self) -> bool {
        let mut counts = [0; TaskState::ALL.len()];
        for state in &self.states {
            counts[*state as usize] += 1;
        }
        counts[self.untouched() as usize] += self.tasks - self.states.len() as u32;
        counts == self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(tasks: u32) -> Role {
        Role::new(&RoleSpec::new("r", 0, tasks, crate::resources::Resources::new()))
    }

    #[test]
    fn a_million_waiting_tasks_cost_nothing() {
        let role = role(1_000_000);
        assert!(!role.states.spilled());
        assert_eq!(role.state(999_999), Some(TaskState::Queued));
        assert_eq!(role.state(1_000_000), None);
    }

    #[test]
    fn cancelling_keeps_what_was_final() {
        let mut role = role(4);
        role.set_state(0, TaskState::Completed);
        role.set_state(1, TaskState::Running);
        role.end_rest(TaskState::Cancelled);
        assert_eq!((role.count(TaskState::Completed), role.count(TaskState::Cancelled)), (1, 3));
        assert!(role.is_final() && role.counts_hold());
        assert_eq!(role.state(3), Some(TaskState::Cancelled));
        assert_eq!(role.result, TaskResult::Warn);
    }
}
