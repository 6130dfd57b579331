//! What the Scheduler hears.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::breakdown::Breakdown;
use crate::collections::Seldom;
use crate::explanation::Subject;
use crate::id::{Attempt, GroupId, JobId, NodeId, TaskId, Ticket};
use crate::outcome::{Outcome, StopCause};
use crate::resources::Resources;
use crate::settings::Settings;
use crate::spec::{Hops, NodeFacts, NodeState, OnPreempt, OnUnsatisfiable, ShapeSpec, Standing, Start, Tie};
use crate::time::{Span, Time};

use super::audit::Audit;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum SchedulerMessage {
    /// From JobState: new jobs, by group.
    NewGroups(Vec<GroupArrival>),
    /// From JobState: tasks that wait once more. All tasks of one atomic group come together.
    Return(Vec<ReturnedTask>),
    /// From JobState: a member of this atomic group whose attempt has ended comes back, or does not, other
    /// than the end alone would tell.
    Member {
        group: GroupId,
        role: u16,
        comes_back: bool,
    },
    /// From JobState: these jobs stand otherwise from now on.
    Reprioritise(Vec<Reprioritised>),
    /// From JobState: an elastic role may vary between these sizes from now on.
    Resize {
        group: GroupId,
        role: u16,
        min: u32,
        max: u32,
    },
    /// From JobState: nothing of this broken elastic group is live any more; it waits as a whole again. Those
    /// of its members that did not complete are returned behind this.
    Mend(GroupId),
    /// From JobState: an elastic role grows no more; its tasks begin to complete.
    Close {
        group: GroupId,
        role: u16,
    },
    /// From JobState: an elastic role is over; what of it never ran is not needed.
    Discard {
        group: GroupId,
        role: u16,
    },
    /// From JobState: these groups are cancelled.
    Withdraw(Vec<GroupId>),
    /// From JobState: these groups are aborted.
    Abort(Vec<GroupId>),
    /// From JobState: everything that these groups are for is done; the rest of them is to end.
    Dismiss(Vec<GroupId>),
    /// From JobState: the live attempts of these tasks are to end, and only they.
    StopTasks(Vec<(TaskId, StopCause)>),
    /// From the host: what waits, in order, up to so many entries?
    ListSizes {
        ticket: Ticket,
        job: JobId,
    },
    ListWaiting {
        ticket: Ticket,
        limit: u32,
    },
    /// From the host: what runs of this may run for so much longer from now on.
    Extend {
        ticket: Ticket,
        what: Extended,
        span: Span,
    },
    /// From JobState: an atomic group lost a member; what still runs of it is to stop.
    Break(Vec<GroupId>),
    /// From JobState: these groups are finished and will not be heard of again.
    Forget(Vec<GroupId>),
    /// From ClusterState: nodes were added, changed or removed.
    Nodes(Vec<NodeNews>),
    /// From ClusterState: these attempts hold units that their nodes do not offer any more.
    Revoked(Vec<Attempt>),
    /// From ClusterState: what these attempts held is free.
    Released(Vec<Released>),
    /// From ClusterState: these nodes have room that nobody has looked at; the number is to be
    /// answered as seen.
    Pending {
        sequence: u64,
        nodes: Vec<NodeId>,
    },
    /// From ClusterState: plan number so-and-so was dealt with, apart from its conflicts.
    Committed {
        plan: u64,
    },
    /// From ClusterState: what the ledger says of some nodes.
    Audit(Arc<Audit>),
    /// From ClusterState: these placements were refused because their node had changed.
    Conflict(Vec<Attempt>),
    /// From the Rebalancer: whether running work may be taken away for balance.
    Gate {
        open: bool,
    },
    /// From the Rebalancer: when the gate opens if nothing changes. It matters to explanations only.
    GateClock {
        opens: Option<Time>,
    },
    /// From the host that carries out the assignments itself: so many placements may be made in all,
    /// `window` more than it has dealt with.
    Credit {
        granted: u64,
        window: u64,
    },
    /// From the host: it begins to count anew, or carries out no assignments itself.
    NewCredit {
        window: Option<u64>,
    },
    Settings(Arc<Settings>),
    /// From the host: why does this wait?
    Explain {
        ticket: Ticket,
        subject: Subject,
    },
    /// From the host: what keeps this from the node of that name?
    ExplainOn {
        ticket: Ticket,
        subject: Subject,
        node: String,
    },
    /// From the host: what failed before, to be remembered as if it had been heard then; oldest first.
    PastFailures(Vec<PastFailure>),
}

/// A job and how it stands from now on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reprioritised {
    pub job: JobId,
    pub standing: Standing,
}

/// Whose attempts may run longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Extended {
    Job(JobId),
    Task(TaskId),
}

/// A group that wants places.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GroupArrival {
    pub group: GroupId,
    pub start: Start,
    /// How far apart tasks that start together may run.
    pub hops: Option<Hops>,
    /// How long the size of an elastic group rests after it was changed; as the settings say unless given.
    pub freeze: Option<Span>,
    /// With whom its tasks stay in one pool.
    pub tie: Tie,
    /// What becomes of it if it can never fit.
    pub on_unsatisfiable: OnUnsatisfiable,
    pub requestor: Arc<str>,
    pub standing: Standing,
    pub roles: SmallVec<[RoleArrival; 1]>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RoleArrival {
    pub shape: Arc<ShapeSpec>,
    pub tasks: u32,
    /// How many start together in an atomic group; with fewer than `tasks` the role is elastic.
    pub min: u32,
    /// With how many an elastic role starts if there is room for them all.
    pub initial: u32,
    /// How long one task is expected to run, if the caller knows.
    pub duration: Option<Span>,
    /// Under which name run times are remembered.
    pub task_key: Option<Arc<str>>,
    /// Nodes on which so many of its tasks run already, and since when, to be entered where they are.
    pub adopted: Vec<(NodeId, u32, Time)>,
    /// How long each of its tasks may run, if the role says so: passed on with every placement.
    pub timeout: Option<Span>,
    /// What becomes of a task that is stopped for others, if the role says so.
    pub on_preempt: Option<OnPreempt>,
}

/// So many tasks of a role that run already on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Adopted {
    /// The index of the group in its job, and of the role in its group.
    pub group: u16,
    pub role: u16,
    pub node: NodeId,
    pub tasks: u32,
    /// When they started.
    pub started: Time,
}

/// A task that ended without being finished, with the number of its next attempt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReturnedTask {
    pub task: TaskId,
    pub number: u32,
    /// Nodes on which it failed: it goes there only when nowhere else is room.
    pub avoid: Vec<NodeId>,
}

/// An attempt that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Released {
    pub attempt: Attempt,
    pub node: NodeId,
    pub outcome: Outcome,
}

/// A task of this version of a service failed on a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PastFailure {
    pub service: (String, u64),
    pub node: NodeId,
    pub at: Time,
}

/// What changed about a node; `view` is `None` when it was removed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeNews {
    pub node: NodeId,
    pub view: Option<NodeView>,
}

/// What the Scheduler may know of a node besides who holds what on it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeView {
    /// The eligibility version: raised with every change of what is in here.
    pub version: u64,
    pub facts: Arc<NodeFacts>,
    pub capacity: Resources,
    /// So much of that is used by others.
    pub reserved: Seldom<Resources>,
    /// Whether the node takes new work.
    pub open: bool,
    /// Why, if it does not.
    pub state: NodeState,
    /// Why it does not, if too much failed there.
    pub breakdown: Option<Arc<Breakdown>>,
}

impl NodeView {
    /// What others leave of its capacity.
    pub fn offered(&self) -> Resources {
        self.capacity.beside(&self.reserved)
    }
}
