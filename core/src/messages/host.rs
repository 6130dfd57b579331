//! What the runtime says to the service it is embedded in.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::breakdown::Breakdown;
use crate::cluster_state::ReservationStage;
use crate::explanation::{Explanation, NodeExplanation};
use crate::id::{Attempt, GroupId, JobId, NodeId, TaskId, Ticket};
use crate::outcome::{Outcome, TaskState};
use crate::roll_up::TaskResult;
use crate::share_report::ShareNews;
use crate::spec::{Condition, JobSpec, NodeState, ShapeSpec, UnitNames};
use crate::time::Time;

use super::audit::{Audit, Audited, Finding};
use super::claims::ClaimNews;
use super::usage::UsageAnswer;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum HostMessage {
    /// The answer to a request.
    Reply {
        ticket: Ticket,
        answer: Answer,
    },
    /// A job was accepted under this number. It is said before anything of it can run.
    Accepted {
        job: JobId,
        spec: Arc<JobSpec>,
    },
    /// A job is being aborted, for this reason.
    Aborted {
        job: JobId,
        reason: Arc<str>,
    },
    /// A group that waits holds the claim of this pool now, or of none any more.
    Assigned {
        group: GroupId,
        pool: Option<Arc<str>>,
    },
    /// A claim was made or is over.
    Claim(ClaimNews),
    /// A job stands otherwise from now on.
    Respecified {
        job: JobId,
        spec: Arc<JobSpec>,
    },
    /// A group can never fit and is ended for that, as it was to be.
    Unsatisfiable {
        group: GroupId,
        at: Time,
        explanation: Arc<Explanation>,
    },
    /// A slice of the nodes has been compared.
    Audited(Audited),
    /// From ClusterState, behind everything it has said of these nodes: how they stand.
    Standing(Arc<Audit>),
    /// From JobState, behind everything it has said of these nodes: what the ledger says of them.
    Ledger(Arc<Audit>),
    /// Something is not as it should be.
    Finding(Finding),
    Job(JobEvent),
    Node(NodeEvent),
    /// Shares that changed in a turn of the Scheduler.
    Shares(Box<ShareNews>),
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Answer {
    Accepted(JobId),
    Done,
    Node(NodeId),
    /// Of a group that does not start as a whole, one for each role that waits.
    Explained(Vec<Explanation>),
    History(Box<TaskHistory>),
    /// The jobs of a set that are kept, oldest first.
    Jobs(Vec<JobId>),
    /// So many of what was asked for.
    Count(u64),
    /// What waits, whoever comes next first.
    Waiting(Vec<WaitingEntry>),
    /// How large the groups of a job are.
    Sizes(Vec<RoleSize>),
    /// How one node stands, for each role that was asked about.
    ExplainedOn(Vec<NodeExplanation>),
    Usage(Box<UsageAnswer>),
    Refused(Refusal),
}

/// Something that waits as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WaitingEntry {
    pub group: GroupId,
    /// The role whose tasks wait each on its own; `None` for an atomic group, which waits as a whole.
    pub role: Option<u16>,
    pub tasks: u64,
}

/// How large a role is, and how large it may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RoleSize {
    pub group: GroupId,
    /// The position of the role in its group.
    pub role: u16,
    pub min: u32,
    pub max: u32,
    /// Tasks that run or are about to, without those that were told to stop.
    pub expected: u32,
    /// Tasks that have a node.
    pub running: u32,
}

/// What is remembered of the attempts of a task. Nothing is of one whose first attempt ended well, or is
/// not tried again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskHistory {
    pub state: TaskState,
    /// Attempts that have ended.
    pub ended: u32,
    /// Those of them that counted against the retries of the role.
    pub counted: u32,
    /// When it is tried again, if it waits for that.
    pub not_before: Option<Time>,
    /// The last of the attempts that have ended, oldest first.
    pub attempts: Vec<AttemptRecord>,
}

/// An attempt that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AttemptRecord {
    pub number: u32,
    pub node: NodeId,
    pub bound: Time,
    /// Since when it ran, the preparations over.
    pub began: Option<Time>,
    pub ended: Time,
    pub outcome: Outcome,
}

impl Default for TaskHistory {
    fn default() -> TaskHistory {
        let (ended, counted, not_before, attempts) = (0, 0, None, Vec::new());
        TaskHistory { state: TaskState::Queued, ended, counted, not_before, attempts }
    }
}

/// Why a request was refused. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Refusal {
    #[error("{0} is not known: no job has had this number yet")]
    UnknownJob(JobId),
    #[error("{0} has expired: it finished and is no longer kept")]
    ExpiredJob(JobId),
    #[error("there are {limit} unfinished jobs already, the limit `limits.jobs`")]
    TooManyJobs { limit: u64 },
    #[error("no job that is kept belongs to the set `{0}`")]
    UnknownJobSet(String),
    #[error("{0} has ended or is about to: nothing can become a part of it any more")]
    ParentEnded(JobId),
    #[error("jobs are parts of jobs at most {limit} deep")]
    TooDeep { limit: u64 },
    #[error("{job} has {limit} unfinished parts already")]
    TooManyChildren { job: JobId, limit: u64 },
    #[error("the tag `{tag}` of the basis `{basis}` was replaced by `{by}` already")]
    Superseded { basis: Arc<str>, tag: Arc<str>, by: Arc<str> },
    #[error("{0} has no group with this number")]
    UnknownGroup(JobId),
    #[error("{group} has no role named `{role}`")]
    UnknownRole { group: GroupId, role: String },
    #[error("{0} does not vary in size")]
    NotElastic(GroupId),
    #[error("{0} has ended or is about to: its size stays as it is")]
    GroupOver(GroupId),
    #[error("a job has at most {limit} tasks")]
    TooManyTasks { limit: u64 },
    #[error("{min} to {max} tasks is no size that the role can have")]
    ImpossibleSize { min: u32, max: u32 },
    #[error("{running} tasks run, fewer than the smallest size {min} would be: let the group grow first")]
    BelowMinimum { running: u32, min: u32 },
    #[error("{0} is not known: its job has no such task")]
    UnknownTask(TaskId),
    #[error("{limit} questions wait for an answer already")]
    TooManyQuestions { limit: u64 },
    #[error("no node is named `{0}`")]
    UnknownNode(String),
    #[error("a node named `{0}` is there already")]
    NodeExists(String),
    #[error("node `{node}` is {}, and only manual nodes can be reserved", .condition.name())]
    NotManual { node: String, condition: Condition },
    #[error("node `{node}` is reserved by `{who}`")]
    NodeReserved { node: String, who: String },
    #[error("node `{node}` still has {tasks} tasks")]
    NodeBusy { node: String, tasks: u32 },
    #[error("node `{node}` has {tasks} tasks, and comes to pool `{pool}` only when nothing runs there")]
    PoolInUse { node: String, pool: String, tasks: u32 },
    #[error("node `{node}` {why}")]
    NodeClosed { node: String, why: String },
    #[error("the units of `{kind}` on node `{node}` have names: nobody says which of them others use")]
    ReservedUnits { node: String, kind: String },
    #[error("nobody has reserved node `{0}`")]
    NotReserved(String),
    #[error("{limit} pools are cordoned or disabled already")]
    TooManyPools { limit: u64 },
    #[error("there are {limit} nodes already, the limit `limits.nodes`")]
    TooManyNodes { limit: u64 },
}

impl Refusal {
    /// Whether the same request may succeed later without being changed.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Refusal::TooManyJobs { .. } | Refusal::TooManyNodes { .. } | Refusal::TooManyQuestions { .. }
        )
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum JobEvent {
    /// An attempt was bound to a node.
    Bound { attempt: Attempt, node: NodeId, at: Time },
    /// An attempt ended, and left its task in this state: queued if it is to run again.
    Ended {
        attempt: Attempt,
        node: NodeId,
        outcome: Outcome,
        /// Since when it had its node.
        bound: Time,
        /// Since when it ran, the preparations over; `None` if it never did.
        began: Option<Time>,
        at: Time,
        state: TaskState,
    },
    /// So many tasks of a group ended without another attempt, all in this state.
    NotRun { group: GroupId, state: TaskState, tasks: u64, at: Time },
    /// Every task of the job is final; the worst of their states, and of what came of them.
    Finished { job: JobId, state: TaskState, result: TaskResult, at: Time },
    /// A finished job is no longer kept.
    Expired { job: JobId },
}

/// Why a reservation is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Returned {
    ByHand,
    /// The node could not be prepared.
    NotPrepared,
    /// The preparations took too long.
    TooLate,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum NodeEvent {
    /// The node's agent is to begin with this session.
    Added {
        node: NodeId,
        name: String,
        session: u64,
    },
    Removed {
        node: NodeId,
        name: String,
    },
    /// The node's agent did not confirm a stop in time; the node is suspect until it is heard.
    Unresponsive {
        node: NodeId,
    },
    /// More runs on the node than it can hold since its capacity shrank.
    Deficit {
        node: NodeId,
    },
    /// An attempt was given these units, and nobody else has them until it has ended.
    UnitsGiven {
        node: NodeId,
        attempt: Attempt,
        units: Arc<UnitNames>,
    },
    /// Tasks of this shape wait and would run if there were another node that suits. Said once, and again
    /// when twice as many wait as then, or as the fewest that have waited since. Of a group that starts as a
    /// whole all tasks that wait are told, shape by shape. Never said of tasks for one node that is there.
    Wanted {
        shape: Arc<ShapeSpec>,
        tasks: u64,
    },
    /// The node takes no new work: tasks of several services failed there in a row.
    Broken {
        node: NodeId,
        breakdown: Arc<Breakdown>,
    },
    /// The node's condition, availability or liveness has changed.
    State {
        node: NodeId,
        state: NodeState,
    },
    /// Somebody has the node for himself, and has come so far with it.
    Reserved {
        node: NodeId,
        who: Arc<str>,
        stage: ReservationStage,
    },
    /// Nobody has the node for himself any more.
    Returned {
        node: NodeId,
        why: Returned,
    },
    /// The node is to be prepared for a reservation. Every preparation is answered.
    Prepare {
        node: NodeId,
        reservation: u64,
        what: Arc<str>,
    },
    /// The preparations for a reservation are to end; that they have is answered.
    EndPreparation {
        node: NodeId,
        reservation: u64,
    },
    /// A breakdown is over: the node is tried again, or somebody has set its condition by hand.
    BreakdownOver {
        node: NodeId,
    },
}
