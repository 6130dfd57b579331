//! The states of a task and the ways an attempt can end.

use serde::{Deserialize, Serialize};

use crate::id::GroupId;

/// Where a task is. The order is the order of its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TaskState {
    /// Accepted and waiting for a place.
    Queued,
    /// Waiting for a place, the pool fixed: its group holds the claim of that pool.
    Assigned,
    /// Bound to a node.
    Scheduled,
    /// Handed to the node's agent.
    Waiting,
    /// The node is being prepared.
    Installing,
    Running,
    Completed,
    Failed,
    /// Ended because somebody who submitted it wanted that.
    Cancelled,
    /// Ended by the system, or by whoever runs it.
    Aborted,
    /// Its elastic role was done without it: it was never needed.
    Unused,
}

impl TaskState {
    pub const ALL: [TaskState; 11] = [
        TaskState::Queued,
        TaskState::Assigned,
        TaskState::Scheduled,
        TaskState::Waiting,
        TaskState::Installing,
        TaskState::Running,
        TaskState::Completed,
        TaskState::Failed,
        TaskState::Cancelled,
        TaskState::Aborted,
        TaskState::Unused,
    ];

    pub fn is_final(self) -> bool {
        self >= TaskState::Completed
    }

    /// Bound to a node and not ended.
    pub fn is_live(self) -> bool {
        !self.is_final() && !self.is_waiting()
    }

    /// Not bound to a node yet, or not any more.
    pub fn is_waiting(self) -> bool {
        matches!(self, TaskState::Queued | TaskState::Assigned)
    }

    /// Whether a task may go from this state into another. One attempt only goes forward; whoever is not
    /// final may wait again for the next attempt, or end; what is final stays.
    pub fn may_become(self, next: TaskState) -> bool {
        match (self.is_final(), next.is_waiting() || next.is_final()) {
            (true, _) => false,
            (false, true) => self != next,
            (false, false) => self < next,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            TaskState::Queued => "queued",
            TaskState::Assigned => "assigned",
            TaskState::Scheduled => "scheduled",
            TaskState::Waiting => "waiting",
            TaskState::Installing => "installing",
            TaskState::Running => "running",
            TaskState::Completed => "completed",
            TaskState::Failed => "failed",
            TaskState::Cancelled => "cancelled",
            TaskState::Aborted => "aborted",
            TaskState::Unused => "unused",
        }
    }
}

/// How far a live attempt is on its node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Phase {
    /// Bound to the node, not yet handed over.
    Scheduled,
    Waiting,
    Installing,
    Running,
}

impl Phase {
    pub const COUNT: usize = 4;

    pub fn state(self) -> TaskState {
        match self {
            Phase::Scheduled => TaskState::Scheduled,
            Phase::Waiting => TaskState::Waiting,
            Phase::Installing => TaskState::Installing,
            Phase::Running => TaskState::Running,
        }
    }
}

/// How an execution failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FailureCause {
    /// It said so itself.
    Error,
    /// It never ran: its node could not be prepared, or it could not be started.
    NotStarted,
    Panic,
    /// It ended with this code, which is not the one of success.
    Code(i32),
    /// It was ended by this signal, which nobody here sent.
    Signal(i32),
}

/// What a node agent says about the end of an execution.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Exit {
    Completed,
    Failed(FailureCause),
    /// It was told to stop and did.
    Stopped,
    /// It is gone without an answer: the agent lost it.
    Lost,
    /// It stayed in this phase beyond its deadline and was stopped.
    TimedOut(Phase),
}

/// Why somebody wants an attempt to stop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StopCause {
    /// Its job was cancelled.
    Cancel,
    /// Its job was aborted.
    Abort,
    /// The task whose guest it is has ended.
    HostEnded,
    /// Everything that its group is for is done: it is not needed any more.
    GroupDone,
    /// A member of its atomic group ended early: the group starts again as a whole.
    GroupBroken,
    /// Its elastic group was made smaller by somebody who may.
    Resized,
    /// The node's capacity shrank below what runs there.
    CapacityLoss,
    /// Its node is drained or taken out of use.
    Drain,
    /// Its class was above its percent, and this group's class below.
    Imbalance(GroupId),
    /// It is older than its lifetime, and its place is for this group.
    Lifetime(GroupId),
    /// Its place is for this group, which is of a higher band.
    HigherWork(GroupId),
    /// Its queue was above its fair share, and this group's queue below.
    FairShare(GroupId),
    /// Its group was above its minimum, and this group could not start otherwise.
    Minimum(GroupId),
    /// Its group had had more than this group of its queue.
    Evenness(GroupId),
    /// It ran on what this group had claimed, until that could start.
    Backfill(GroupId),
}

/// How an attempt ended, as everybody learns it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Outcome {
    Completed,
    Failed(FailureCause),
    /// It stayed in this phase for too long.
    TimedOut(Phase),
    Cancelled,
    Aborted,
    /// It was not needed any more: the rest of its group was done.
    Dismissed,
    Preempted(StopCause),
    /// The node went down, was removed, or its agent lost the execution.
    Lost,
}

impl StopCause {
    /// For whom it was done, if it was for somebody.
    pub fn beneficiary(self) -> Option<GroupId> {
        match self {
            StopCause::Imbalance(group)
            | StopCause::Lifetime(group)
            | StopCause::HigherWork(group)
            | StopCause::FairShare(group)
            | StopCause::Minimum(group)
            | StopCause::Evenness(group)
            | StopCause::Backfill(group) => Some(group),
            _ => None,
        }
    }
}

impl Outcome {
    /// The state in which this outcome leaves the task; `None` if it is to run again.
    pub fn final_state(self) -> Option<TaskState> {
        match self {
            Outcome::Completed | Outcome::Dismissed => Some(TaskState::Completed),
            Outcome::Failed(_) | Outcome::TimedOut(_) => Some(TaskState::Failed),
            Outcome::Cancelled => Some(TaskState::Cancelled),
            Outcome::Aborted => Some(TaskState::Aborted),
            Outcome::Preempted(_) | Outcome::Lost => None,
        }
    }

    /// Whether it says how long tasks of its kind run: it ended by itself, or ran as long as it may.
    pub fn tells_duration(self) -> bool {
        matches!(self, Outcome::Completed | Outcome::TimedOut(Phase::Running))
    }

    /// Whether the attempt failed by itself or did not get going, and nobody else ended it.
    pub fn is_failure(self) -> bool {
        matches!(self, Outcome::Failed(_) | Outcome::TimedOut(_))
    }

    /// Of a stop and a finish the first terminal report wins; a stop that was carried out ends as
    /// its cause says.
    pub fn of(exit: Exit, stop: Option<StopCause>) -> Outcome {
        match (exit, stop) {
            (Exit::Completed, _) => Outcome::Completed,
            (Exit::Failed(cause), _) => Outcome::Failed(cause),
            (Exit::TimedOut(phase), None) => Outcome::TimedOut(phase),
            (Exit::Stopped | Exit::TimedOut(_), Some(StopCause::Cancel)) => Outcome::Cancelled,
            (Exit::Stopped | Exit::TimedOut(_), Some(StopCause::Abort | StopCause::HostEnded)) => {
                Outcome::Aborted
            }
            (Exit::Stopped | Exit::TimedOut(_), Some(StopCause::GroupDone)) => Outcome::Dismissed,
            (Exit::Stopped | Exit::TimedOut(_), Some(cause)) => Outcome::Preempted(cause),
            (Exit::Lost | Exit::Stopped, _) => Outcome::Lost,
        }
    }

    /// What outcomes are called, in the order of [`Outcome::index`].
    pub const NAMES: [&'static str; 9] = [
        "completed",
        "failed",
        "not started",
        "timed out",
        "cancelled",
        "aborted",
        "dismissed",
        "preempted",
        "lost",
    ];

    pub fn index(self) -> usize {
        match self {
            Outcome::Completed => 0,
            Outcome::Failed(FailureCause::NotStarted) => 2,
            Outcome::Failed(_) => 1,
            Outcome::TimedOut(_) => 3,
            Outcome::Cancelled => 4,
            Outcome::Aborted => 5,
            Outcome::Dismissed => 6,
            Outcome::Preempted(_) => 7,
            Outcome::Lost => 8,
        }
    }

    pub fn name(self) -> &'static str {
        Outcome::NAMES[self.index()]
    }
}
