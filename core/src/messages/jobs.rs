//! What JobState hears.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::explanation::{Explanation, Subject};
use crate::id::{Attempt, GroupId, JobId, NodeId, TaskId, Ticket};
use crate::outcome::Phase;
use crate::settings::Settings;
use crate::spec::{JobSpec, StandingChange};

use super::audit::Audit;
use super::scheduler::{Adopted, Released};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum JobMessage {
    /// A validated job. `adopted` are tasks of it that run already.
    Submit {
        ticket: Ticket,
        job: Arc<JobSpec>,
        adopted: Vec<Adopted>,
    },
    Cancel {
        ticket: Ticket,
        job: JobId,
    },
    /// From the host: which jobs belong to this set?
    ListSet {
        ticket: Ticket,
        set: String,
    },
    /// Changes where a job, or every job of a set, queues and how urgent it is; validated.
    Reprioritise {
        ticket: Ticket,
        jobs: Addressed,
        change: StandingChange,
    },
    /// A role of an elastic group may vary between other sizes.
    Resize {
        ticket: Ticket,
        resize: Resize,
    },
    /// Like a cancel, but its tasks end as aborted, for this reason.
    Abort {
        ticket: Ticket,
        job: JobId,
        reason: Arc<str>,
    },
    /// Cancels everything that this covers and has not ended.
    CancelAll {
        ticket: Ticket,
        which: Cancelled,
    },
    /// From ClusterState: these tasks run on the node whose work is to be cancelled.
    CancelTasks {
        ticket: Ticket,
        tasks: Vec<TaskId>,
    },
    /// From the host: which jobs are parts of this one?
    ListChildren {
        ticket: Ticket,
        job: JobId,
    },
    /// From the Scheduler: this group holds the claim of a pool and waits for room there.
    Assigned {
        group: GroupId,
        pool: Arc<str>,
    },
    /// From the Scheduler: the claim is over, whether it was revoked, used, or its group withdrawn. Each
    /// claim that was told of ends with this.
    Unassigned {
        group: GroupId,
    },
    /// From the host: what of this waits for the time at which it is tried again?
    ExplainDelay {
        ticket: Ticket,
        subject: Subject,
    },
    /// From the host: what is known of the attempts of this task?
    History {
        ticket: Ticket,
        task: TaskId,
    },
    Settings(Arc<Settings>),
    /// From ClusterState: these attempts hold their nodes.
    Committed(Vec<Started>),
    /// From ClusterState: these attempts came this far.
    Progress(Vec<(Attempt, Phase)>),
    /// From ClusterState: these attempts have ended and hold nothing any more.
    Released(Vec<Released>),
    /// From the Scheduler: this group can never fit, and is to be ended for that.
    Unsatisfiable {
        group: GroupId,
        explanation: Arc<Explanation>,
    },
    /// From ClusterState: what the ledger says of some nodes.
    Audit(Arc<Audit>),
    /// From ClusterState: nothing of these cancelled groups is live any more.
    Withdrawn(Vec<GroupId>),
    /// From ClusterState: everything that was planned for these elastic groups before they were broken or
    /// closed has been dealt with.
    Fenced(Vec<GroupId>),
}

/// Which jobs are meant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Addressed {
    Job(JobId),
    /// Every job of this set that is kept.
    Set(String),
}

/// More than one job that is to be cancelled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Cancelled {
    /// The jobs of a set.
    Set(String),
    /// The jobs of a queue.
    Queue(Arc<str>),
    /// A job, the jobs that are parts of it, and the parts of these.
    Tree(JobId),
}

/// Between which sizes a role may vary from now on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Resize {
    pub group: GroupId,
    /// The name of the role; nothing where there is only one.
    pub role: String,
    pub min: u32,
    pub max: u32,
}

/// An attempt and the node it is bound to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Started {
    pub attempt: Attempt,
    pub node: NodeId,
}
