//! What several states or results are together: of tasks for their group, of groups for their job.

use serde::{Deserialize, Serialize};

use crate::outcome::{FailureCause, Outcome, TaskState};

/// The state that speaks for all of them. As long as nothing of them has reached its node the least that
/// is still to be done speaks; from then on whoever is furthest; once all are final the worst end.
pub fn state_of_all(states: impl IntoIterator<Item = TaskState>) -> Option<TaskState> {
    states.into_iter().max_by_key(|state| weight(*state))
}

fn weight(state: TaskState) -> u8 {
    match state {
        TaskState::Running => 10,
        TaskState::Installing => 9,
        TaskState::Waiting => 8,
        TaskState::Queued => 7,
        TaskState::Assigned => 6,
        TaskState::Scheduled => 5,
        TaskState::Aborted => 4,
        TaskState::Failed => 3,
        TaskState::Cancelled => 2,
        TaskState::Completed => 1,
        // What was not needed says nothing about the others.
        TaskState::Unused => 0,
    }
}

/// What came of tasks, best first: of several the last in this order speaks for all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TaskResult {
    /// Nothing yet.
    #[default]
    New,
    /// It ended without one: it was there for others, who did what was to be done.
    None,
    /// It was left out.
    Skip,
    Pass,
    /// It was ended before it could tell.
    Warn,
    Fail,
    /// It went to pieces.
    Panic,
}

impl TaskResult {
    /// The result of a task that has come to its end like this.
    pub fn of(outcome: Outcome) -> TaskResult {
        match outcome {
            Outcome::Completed => TaskResult::Pass,
            Outcome::Dismissed => TaskResult::None,
            Outcome::Failed(FailureCause::Panic) => TaskResult::Panic,
            Outcome::Failed(_) => TaskResult::Fail,
            Outcome::TimedOut(_) | Outcome::Cancelled | Outcome::Aborted => TaskResult::Warn,
            Outcome::Preempted(_) | Outcome::Lost => TaskResult::Warn,
        }
    }

    pub fn of_all(results: impl IntoIterator<Item = TaskResult>) -> TaskResult {
        results.into_iter().max().unwrap_or_default()
    }

    pub fn name(self) -> &'static str {
        match self {
            TaskResult::New => "new",
            TaskResult::None => "none",
            TaskResult::Skip => "skip",
            TaskResult::Pass => "pass",
            TaskResult::Warn => "warn",
            TaskResult::Fail => "fail",
            TaskResult::Panic => "panic",
        }
    }
}
