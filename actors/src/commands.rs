//! What the service tells the runtime over the lane.

use std::sync::Arc;

use plimsoll_core::explanation::Subject;
use plimsoll_core::id::{Attempt, JobId, NodeId, TaskId};
use plimsoll_core::messages::{Addressed, Answer, Cancelled, Extended, Resize, UsageOf};
use plimsoll_core::outcome::Exit;
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::{JobSpec, NodePatch, NodeSpec, PoolState, ReservationSpec, StandingChange};
use plimsoll_core::time::{Span, Time};
use tokio::sync::oneshot;

use crate::snapshot::SnapshotResult;
use crate::subscriptions::Subscriber;

/// Where an answer goes. Dropping the other end is fine: the answer is then for nobody.
pub type ReplySender = oneshot::Sender<Answer>;

/// One thing a service tells the runtime. Everything in here was validated.
#[derive(Debug)]
pub enum Command {
    Submit(Arc<JobSpec>, ReplySender),
    /// Many at once; the answers come in the same order.
    SubmitMany(Vec<Arc<JobSpec>>, oneshot::Sender<Vec<Answer>>),
    Cancel(JobId, ReplySender),
    /// Where these jobs queue and how urgent they are from now on.
    Reprioritise(Addressed, StandingChange, ReplySender),
    /// A role of an elastic group may vary between other sizes.
    Resize(Resize, ReplySender),
    /// Which jobs belong to the set of this name.
    ListSet(String, ReplySender),
    Abort(JobId, Arc<str>, ReplySender),
    /// Cancels everything that this covers.
    CancelAll(Cancelled, ReplySender),
    /// Cancels everything that runs on the node of this name.
    CancelOnNode(String, ReplySender),
    /// What waits, in order, up to so many entries.
    ListWaiting(u32, ReplySender),
    /// How large the groups of a job are.
    ListSizes(JobId, ReplySender),
    /// Which jobs are parts of this one.
    ListChildren(JobId, ReplySender),
    /// Lets attempts run for so much longer.
    Extend(Extended, Span, ReplySender),
    History(TaskId, ReplySender),
    AddNode(Box<NodeSpec>, ReplySender),
    UpdateNode(String, Box<NodePatch>, ReplySender),
    RemoveNode(String, ReplySender),
    /// Whether the nodes of a pool take work.
    SetPool(String, PoolState, ReplySender),
    /// A node's agent is silent, or is heard again, as far as the service knows.
    Heartbeat(String, bool, ReplySender),
    Reserve(String, Box<ReservationSpec>, ReplySender),
    Return(String, ReplySender),
    /// How nodes spent their time, since the beginning or a moment.
    Usage(UsageOf, Option<Time>, ReplySender),
    Explain(Subject, ReplySender),
    /// What of this waits for the time at which it is tried again.
    ExplainDelay(Subject, ReplySender),
    /// What keeps it from the node of this name.
    ExplainOn(Subject, String, ReplySender),
    Settings(Arc<Settings>),
    Subscribe(Subscriber),
    Snapshot(oneshot::Sender<SnapshotResult>),
    /// The service that runs the work itself: these attempts have ended.
    Finished(Vec<(NodeId, Attempt)>, Exit),
    /// The service that runs the work itself has taken these over.
    Acknowledge(Vec<Attempt>),
    /// Makes JobState hear what cannot be, to see what a panic does.
    #[cfg(test)]
    Sabotage,
    /// Everything on the lane before this has been handed on.
    Drained(oneshot::Sender<()>),
}

impl Command {
    /// How much of a slice it is.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Command::SubmitMany(jobs, _) => jobs.len().max(1),
            Command::Finished(ended, _) => ended.len().max(1),
            _ => 1,
        }
    }
}
