//! A scheduler for tests: the real machines in a world without threads, with a clock that the test
//! turns and nodes that fail when the test says so. Every promise is checked after every step.
//!
//! ```
//! use std::time::Duration;
//! use plimsoll::test_util::TestCluster;
//! use plimsoll::{Config, JobSpec, NodeSpec, RoleSpec, GroupSpec};
//!
//! let mut cluster = TestCluster::new(&Config::preset("beaker")?);
//! cluster.add_node(&NodeSpec::new("a").capacity("slot", 1))?;
//! cluster.add_node(&NodeSpec::new("b").capacity("slot", 1))?;
//! let role = RoleSpec::new("task", 3).request("slot", 1).duration(Duration::from_secs(10));
//! let job = cluster.submit(&JobSpec::new("j").group(GroupSpec::new("g").role(role)))?;
//! assert_eq!((cluster.running(job), cluster.waiting(job)), (2, 1));
//! assert!(cluster.why_waiting(job)[0].sentence().contains("no node has room now"));
//!
//! cluster.lose_node("a");
//! cluster.advance(Duration::from_secs(100));
//! assert!(cluster.is_finished(job), "b did everything");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::explanation::Explanation;
use plimsoll_core::id::{Attempt, GroupId, JobId, NodeId, Ticket};
use plimsoll_core::machine::Broken;
use plimsoll_core::messages::{Answer, ClusterMessage, HostMessage, JobEvent, JobMessage, Refusal};
use plimsoll_core::outcome::{Exit, TaskState};
use plimsoll_core::settings::Settings;
use plimsoll_core::sim::{Batch, Behaviour, Course, Party, World};
use plimsoll_core::spec::Filters;
use plimsoll_core::time::{Span, Time};

pub use plimsoll_core::sim::{Failure, RunReport, run as run_seed};

use crate::config::Config;
use crate::error::{RequestError, SubmitError};
use crate::node_specs::{NodePatch, NodeSpec};
use crate::specs::JobSpec;

/// See the module documentation. Methods panic when a promise is broken: that is a bug of Plimsoll.
#[derive(Debug)]
pub struct TestCluster {
    world: World,
    settings: Arc<Settings>,
    durations: Durations,
    events: Vec<JobEvent>,
}

/// Tasks run as long as their role says, or until they are finished by the test.
#[derive(Debug, Default)]
struct Durations {
    jobs: Vec<Arc<plimsoll_core::spec::JobSpec>>,
}

impl Behaviour for Durations {
    fn course(&mut self, attempt: Attempt) -> Course {
        let job = &self.jobs[attempt.task.job().0 as usize - 1];
        let role = &job.groups[attempt.task.group.index()].roles[usize::from(attempt.task.role)];
        Course::plain(role.duration.get())
    }
}

impl TestCluster {
    /// An empty cluster at time zero.
    pub fn new(config: &Config) -> TestCluster {
        TestCluster::with_filters(config, &Filters::default())
    }

    /// The same with filters, as a runtime has them.
    pub fn with_filters(config: &Config, filters: &Filters) -> TestCluster {
        let settings = config.settings().clone().without_heartbeats();
        let settings = Arc::new(Settings { filters: filters.clone(), ..settings });
        let world = World::new(Arc::clone(&settings));
        TestCluster { world, settings, durations: Durations::default(), events: Vec::new() }
    }

    /// Seconds since the beginning.
    pub fn now(&self) -> f64 {
        self.world.now.as_seconds()
    }

    /// Adds a node.
    pub fn add_node(&mut self, node: &NodeSpec) -> Result<(), RequestError> {
        let node = Box::new(node.validated(&self.settings)?);
        self.cluster(ClusterMessage::AddNode { ticket: Ticket(0), node })
    }

    /// Changes a node.
    pub fn update_node(&mut self, name: &str, patch: &NodePatch) -> Result<(), RequestError> {
        let patch = Box::new(patch.validated(&self.settings)?);
        self.cluster(ClusterMessage::UpdateNode { ticket: Ticket(0), name: name.into(), patch })
    }

    /// Removes a node.
    pub fn remove_node(&mut self, name: &str) -> Result<(), RequestError> {
        self.cluster(ClusterMessage::RemoveNode { ticket: Ticket(0), name: name.into() })
    }

    /// Cuts a node off: nothing reaches it and it is not heard. After a while it is given up.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn lose_node(&mut self, name: &str) {
        let node = self.node_id(name);
        self.world.cut_off(node);
        self.settle();
    }

    /// A node that was cut off is heard again.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn return_node(&mut self, name: &str) {
        let node = self.node_id(name);
        self.world.join(node);
        self.settle();
    }

    /// A node's agent dies with everything it runs, and begins anew.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn crash_agent(&mut self, name: &str) {
        let node = self.node_id(name);
        self.world.crash_agent(node);
        self.settle();
    }

    /// Submits a job.
    pub fn submit(&mut self, job: &JobSpec) -> Result<JobId, SubmitError> {
        let spec = job.validated(&self.settings);
        let spec = spec.map_err(|problem| SubmitError::Invalid { problem, job: Box::new(job.clone()) })?;
        self.durations.jobs.push(Arc::clone(&spec));
        let submit = JobMessage::Submit { ticket: Ticket(0), job: spec, adopted: Vec::new() };
        self.world.tell(Party::Jobs, Batch::Jobs(vec![submit]));
        match self.settle() {
            Some(Answer::Accepted(job)) => Ok(job),
            Some(Answer::Refused(refusal)) => {
                self.durations.jobs.pop();
                Err(SubmitError::Refused { refusal, job: Box::new(job.clone()) })
            }
            other => unreachable!("a submission is accepted or refused, not {other:?}"),
        }
    }

    /// Cancels a job.
    pub fn cancel(&mut self, job: JobId) -> Result<(), Refusal> {
        let cancel = JobMessage::Cancel { ticket: Ticket(0), job };
        self.world.tell(Party::Jobs, Batch::Jobs(vec![cancel]));
        match self.settle() {
            Some(Answer::Refused(refusal)) => Err(refusal),
            _ => Ok(()),
        }
    }

    /// Ends the tasks of a job that have run longest; the answer is how many there were to end.
    pub fn finish(&mut self, job: JobId, count: usize) -> usize {
        let of_job = self.world.jobs.live().filter(|task| task.attempt.task.job() == job);
        let mut running: Vec<(Time, Attempt, NodeId)> =
            of_job.map(|task| (task.since, task.attempt, task.node)).collect();
        running.sort_unstable();
        running.truncate(count);
        for (_, attempt, node) in &running {
            self.world.finish_execution(*node, *attempt, Exit::Completed);
        }
        self.settle();
        running.len()
    }

    /// Lets time pass, with everything that happens meanwhile.
    pub fn advance(&mut self, duration: Duration) {
        let span = Span::from_seconds(duration.as_secs_f64()).expect("a duration a test can mean");
        let until = self.world.now + span;
        while let Some(next) = self.world.next_event().filter(|next| *next <= until) {
            self.world.now = next.max(self.world.now);
            self.settle();
        }
        self.world.now = until;
    }

    /// Tasks of a job that are bound to a node and have not ended.
    pub fn running(&self, job: JobId) -> u64 {
        self.world.jobs.live().filter(|task| task.attempt.task.job() == job).count() as u64
    }

    /// Tasks of a job that wait.
    pub fn waiting(&self, job: JobId) -> u64 {
        self.why_waiting(job).iter().map(|explanation| explanation.waiting).sum()
    }

    /// Why tasks of a job wait, group by group.
    pub fn why_waiting(&self, job: JobId) -> Vec<Explanation> {
        let Ok(known) = self.world.jobs.job(job) else { return Vec::new() };
        let groups = known.groups.iter().enumerate().flat_map(|(index, group)| {
            let queued =
                self.world.scheduler.explain_apart(GroupId::new(job, index as u16)).unwrap_or_default();
            let delayed = Explanation::of_delay(group.delay(self.world.now), self.settings.version);
            Explanation::with_delay(queued, Some(delayed))
        });
        groups.filter(|explanation| explanation.waiting > 0).collect()
    }

    /// Tasks of a job that ended in this state.
    pub fn ended(&self, job: JobId, state: TaskState) -> u64 {
        let known = self.world.jobs.job(job).ok();
        known.map_or(0, |job| job.groups.iter().map(|group| group.count(state)).sum())
    }

    /// Whether every task of a job is final.
    pub fn is_finished(&self, job: JobId) -> bool {
        !matches!(self.world.jobs.job(job), Ok(job) if job.finished.is_none())
    }

    /// The names of the nodes on which tasks of a job run, one per task.
    pub fn nodes_of(&self, job: JobId) -> Vec<String> {
        let of_job = self.world.jobs.live().filter(|task| task.attempt.task.job() == job);
        let nodes = of_job.filter_map(|task| self.world.cluster.node(task.node));
        let mut names: Vec<String> = nodes.map(|node| node.facts.name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Everything that happened to jobs so far.
    pub fn events(&self) -> &[JobEvent] {
        &self.events
    }

    fn cluster(&mut self, message: ClusterMessage) -> Result<(), RequestError> {
        self.world.tell(Party::Cluster, Batch::Cluster(vec![message]));
        match self.settle() {
            Some(Answer::Refused(refusal)) => Err(refusal.into()),
            _ => Ok(()),
        }
    }

    fn node_id(&self, name: &str) -> NodeId {
        self.world.cluster.node_id(name).unwrap_or_else(|| panic!("there is no node named `{name}`"))
    }

    /// Lets everything happen that happens now; the answer is the last reply.
    fn settle(&mut self) -> Option<Answer> {
        let held: Result<(), Broken> =
            self.world.settle(&mut self.durations).and_then(|()| self.world.check_quiescent());
        held.unwrap_or_else(|broken| panic!("{broken}"));
        let mut reply = None;
        for message in self.world.take_host_messages() {
            match message {
                HostMessage::Reply { answer, .. } => reply = Some(answer),
                HostMessage::Job(event) => self.events.push(event),
                _ => {}
            }
        }
        reply
    }
}
