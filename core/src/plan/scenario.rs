//! A cluster, its workload and what happens to them, as a dry run needs it: complete and checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::messages::{Cancelled, PastFailure};
use crate::settings::Settings;
use crate::spec::{JobSpec, Liveness, NodePatch, NodeSpec, PoolState, StandingChange};
use crate::time::{Span, Time};

/// Everything a dry run starts from.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Scenario {
    /// In effect: the configuration, what the file overrides of it, and every resource kind that a
    /// node of the file offers.
    pub settings: Settings,
    pub now: Time,
    /// Where to stop; `None` stops when nothing more is decided.
    pub until: Option<Time>,
    /// One entry per node: counts are expanded.
    pub nodes: Vec<NodeSpec>,
    pub jobs: Vec<ScenarioJob>,
    pub running: Vec<RunningTasks>,
    /// What failed before, oldest first. A node is known by its position in `nodes`.
    pub failures: Vec<PastFailure>,
    /// In order of time, and of the file where times are equal.
    pub events: Vec<ScenarioEvent>,
}

/// A job and when it was submitted.
#[derive(Clone, PartialEq, Debug)]
pub struct ScenarioJob {
    pub spec: JobSpec,
    pub submitted: Time,
    /// The name of the job that it is a part of.
    pub parent: Option<String>,
    /// How long a node takes to prepare for one task, by the positions of group and role.
    pub preparations: BTreeMap<(u16, u16), Span>,
}

/// Tasks of one role that run when the dry run begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningTasks {
    /// The position in [`Scenario::jobs`].
    pub job: usize,
    pub group: u16,
    pub role: u16,
    pub count: u32,
    /// The position in [`Scenario::nodes`]; `None` leaves the choice to the dry run.
    pub node: Option<usize>,
    pub started: Time,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ScenarioEvent {
    pub at: Time,
    pub what: Happening,
}

/// What happens in the course of a dry run. Jobs and nodes are known by name.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Happening {
    /// So many running tasks of the job end well.
    Finish {
        job: String,
        count: u32,
    },
    /// So many running tasks of the job fail.
    Fail {
        job: String,
        count: u32,
        which: Which,
    },
    /// Everything that runs on a node has ended well.
    Idle {
        node: String,
    },
    /// The settings are these from then on.
    Settings(Arc<Settings>),
    /// A node changes.
    Node {
        name: String,
        patch: Box<NodePatch>,
        liveness: Option<Liveness>,
    },
    /// A node that was not there before.
    AddNode(Box<NodeSpec>),
    /// The nodes of a pool take work otherwise.
    Pool {
        name: String,
        state: PoolState,
    },
    Submit(Box<ScenarioJob>),
    Abort {
        job: String,
        reason: String,
    },
    Cancel {
        job: String,
        /// The jobs that are parts of it too.
        children: bool,
    },
    /// Everything of a job set or a queue is cancelled.
    CancelAll(Cancelled),
    /// Everything that runs on a node is cancelled.
    CancelOnNode {
        node: String,
    },
    /// What runs of the job may run for so much longer from then on.
    Extend {
        job: String,
        span: Span,
    },
    /// A role of the job of this name may vary between other sizes.
    Resize {
        job: String,
        which: Which,
        sizes: (u32, u32),
    },
    /// A job, or every job of a set, comes to stand elsewhere.
    Reprioritise {
        jobs: WhichJobs,
        change: StandingChange,
    },
}

/// One job, or all of a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhichJobs {
    Job(String),
    Set(String),
}

/// Which of the running tasks of a job; whatever is not given may be anything.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Which {
    pub group: Option<String>,
    pub role: Option<String>,
    pub node: Option<String>,
}

impl Scenario {
    /// Tasks of all jobs, also of those that events submit.
    pub fn tasks(&self) -> u64 {
        let submitted = self.events.iter().filter_map(|event| match &event.what {
            Happening::Submit(job) => Some(job.as_ref()),
            _ => None,
        });
        self.jobs.iter().chain(submitted).map(|job| job.spec.tasks()).sum()
    }
}
