//! The board: what the service can read without asking anybody. Written behind its back, in the
//! order of events; every answer is copied out, so no lock outlives a call.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use plimsoll_core::breakdown::Breakdown;
use plimsoll_core::cluster_state::ClusterState;
use plimsoll_core::cluster_state::ReservationStage;
use plimsoll_core::id::{Attempt, GroupId, JobId, NodeId};
use plimsoll_core::job_state::Spent;
use plimsoll_core::job_state::{Job, JobState};
use plimsoll_core::messages::{Audit, Finding, JobEvent, NodeAudit, NodeEvent, Refusal};
use plimsoll_core::outcome::{Outcome, StopCause, TaskState};
use plimsoll_core::roll_up::TaskResult;
use plimsoll_core::scheduler::Scheduler;
use plimsoll_core::share_report::{ShareBook, ShareNews, ShareStatus};
use plimsoll_core::spec::{JobSpec, NodeState, UnitNames};
use plimsoll_core::time::Time;
use rustc_hash::FxBuildHasher;
use tokio::sync::oneshot;

/// How a job stands.
#[derive(Clone, PartialEq, Debug)]
pub struct JobStatus {
    pub spec: Arc<JobSpec>,
    /// Tasks bound to a node and not ended.
    pub live: u64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub aborted: u64,
    /// Time that its attempts took from being bound until they ran, and from then until they ended, in sum
    /// over those that have ended.
    pub spent: Spent,
    /// Groups that wait and hold the claim of a pool, with its name.
    pub assigned: BTreeMap<GroupId, Arc<str>>,
    /// Why it was aborted, if it was.
    pub abort_reason: Option<Arc<str>>,
    /// What came of its tasks, the worst of them, once every task is final.
    pub result: TaskResult,
    /// How it ended, once every task is final.
    pub finished: Option<(TaskState, Time)>,
    /// What the last of its attempts that failed here said, oldest first.
    pub failures: VecDeque<TaskFailure>,
    /// How many of its attempts were stopped here for others or with the room they had, and the last of them.
    pub preempted: u64,
    pub last_preempted: Option<Preemption>,
}

/// An attempt that was stopped for others or with the room it had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preemption {
    pub attempt: Attempt,
    /// Why, and for whom if it was for somebody.
    pub cause: StopCause,
    pub at: Time,
}

/// What a failed attempt said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskFailure {
    pub attempt: Attempt,
    pub node: Arc<str>,
    pub text: Arc<str>,
}

/// So many failures of a job are kept in their own words.
const FAILURES_KEPT: usize = 16;

/// How a node stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeStatus {
    pub id: NodeId,
    pub name: Arc<str>,
    /// Attempts bound to the node and not ended.
    pub live: u64,
    /// Its condition, its availability, and whether it is heard.
    pub state: NodeState,
    /// Who has it for himself.
    pub reservation: Option<ReservationStatus>,
    /// Why the node is broken, if that is known.
    pub breakdown: Option<Arc<Breakdown>>,
    /// Which of its named units are in use, by the attempt that has them.
    pub units: BTreeMap<Attempt, Arc<UnitNames>>,
    /// The first session of its agent, which no other node of this id has had.
    pub(crate) session: u64,
}

/// Who has a node for himself, and how far that is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReservationStatus {
    pub who: Arc<str>,
    pub stage: ReservationStage,
}

#[derive(Debug, Default)]
pub struct Board {
    // Ids are small numbers that nobody outside chooses: a fast hash will do. Names are not.
    jobs: DashMap<JobId, JobStatus, FxBuildHasher>,
    nodes: DashMap<NodeId, NodeStatus, FxBuildHasher>,
    names: DashMap<Arc<str>, NodeId>,
    waiters: DashMap<JobId, Vec<oneshot::Sender<JobStatus>>, FxBuildHasher>,
    last_job: AtomicU64,
    shares: Mutex<ShareBook>,
    closed: AtomicBool,
}

impl JobStatus {
    fn new(spec: Arc<JobSpec>) -> JobStatus {
        JobStatus {
            spec,
            live: 0,
            completed: 0,
            failed: 0,
            cancelled: 0,
            aborted: 0,
            spent: Spent::default(),
            assigned: BTreeMap::new(),
            abort_reason: None,
            result: TaskResult::New,
            finished: None,
            failures: VecDeque::new(),
            preempted: 0,
            last_preempted: None,
        }
    }

    /// So many tasks have ended in this state, or are to run again.
    fn count(&mut self, state: TaskState, tasks: u64) {
        match state {
            TaskState::Completed => self.completed += tasks,
            TaskState::Failed => self.failed += tasks,
            TaskState::Cancelled => self.cancelled += tasks,
            TaskState::Aborted => self.aborted += tasks,
            _ => {}
        }
    }

    /// Tasks that wait for a place.
    pub fn queued(&self) -> u64 {
        let others = self.live + self.completed + self.failed + self.cancelled + self.aborted;
        self.spec.tasks().saturating_sub(others)
    }
}

impl NodeStatus {
    fn new(id: NodeId, name: Arc<str>, session: u64) -> NodeStatus {
        let (state, units) = (NodeState::default(), BTreeMap::new());
        NodeStatus { id, name, live: 0, state, reservation: None, breakdown: None, units, session }
    }
}

impl Board {
    pub fn job(&self, id: JobId) -> Result<JobStatus, Refusal> {
        match self.jobs.get(&id).map(|status| status.clone()) {
            Some(status) => Ok(status),
            None if (1..=self.last_job.load(Ordering::Acquire)).contains(&id.0) => {
                Err(Refusal::ExpiredJob(id))
            }
            None => Err(Refusal::UnknownJob(id)),
        }
    }

    pub fn node(&self, name: &str) -> Result<NodeStatus, Refusal> {
        let id = self.node_id(name)?;
        let status = self.nodes.get(&id).map(|status| status.clone());
        status.ok_or_else(|| Refusal::UnknownNode(name.to_owned()))
    }

    pub fn node_id(&self, name: &str) -> Result<NodeId, Refusal> {
        let id = self.names.get(name).map(|id| *id);
        id.ok_or_else(|| Refusal::UnknownNode(name.to_owned()))
    }

    pub fn node_name(&self, id: NodeId) -> Option<Arc<str>> {
        self.nodes.get(&id).map(|status| Arc::clone(&status.name))
    }

    /// All nodes, by id.
    pub fn nodes(&self) -> Vec<NodeStatus> {
        let mut nodes: Vec<NodeStatus> = self.nodes.iter().map(|entry| entry.value().clone()).collect();
        nodes.sort_unstable_by_key(|node| node.id);
        nodes
    }

    /// All jobs that are kept, oldest first.
    pub fn jobs(&self) -> Vec<(JobId, JobStatus)> {
        let mut jobs: Vec<(JobId, JobStatus)> =
            self.jobs.iter().map(|entry| (*entry.key(), entry.value().clone())).collect();
        jobs.sort_unstable_by_key(|(id, _)| *id);
        jobs
    }

    /// How classes and queues stand against what they should have; nothing where there are none.
    pub fn shares(&self) -> Vec<ShareStatus> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner).report()
    }

    pub(crate) fn note_shares(&self, news: &ShareNews) {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner).apply(news);
    }

    pub(crate) fn spec(&self, id: JobId) -> Option<Arc<JobSpec>> {
        self.jobs.get(&id).map(|status| Arc::clone(&status.spec))
    }

    /// Sends the job's status once it is finished: now, if it is already.
    pub fn wait(&self, id: JobId) -> Result<oneshot::Receiver<JobStatus>, Refusal> {
        let status = self.job(id)?;
        let (sender, receiver) = oneshot::channel();
        if status.finished.is_some() {
            let _ = sender.send(status);
            return Ok(receiver);
        }
        {
            let mut waiters = self.waiters.entry(id).or_default();
            // Whoever gave up waiting is not told, and not kept.
            waiters.retain(|waiter| !waiter.is_closed());
            waiters.push(sender);
        }
        // It may have finished between the look and the entry: then nobody else will tell.
        match self.job(id) {
            Ok(status) if status.finished.is_some() => self.tell_waiters(id),
            // It never will: the sender is dropped, which tells the caller.
            Ok(_) if self.closed.load(Ordering::SeqCst) => drop(self.waiters.remove(&id)),
            Ok(_) => {}
            Err(refusal) => {
                self.waiters.remove(&id);
                return Err(refusal);
            }
        }
        Ok(receiver)
    }

    pub(crate) fn accept(&self, id: JobId, spec: Arc<JobSpec>) {
        self.jobs.insert(id, JobStatus::new(spec));
        self.last_job.fetch_max(id.0, Ordering::AcqRel);
    }

    /// A job stands otherwise from now on.
    pub(crate) fn respecify(&self, id: JobId, spec: Arc<JobSpec>) {
        self.change_job(id, |job| job.spec = spec);
    }

    pub(crate) fn note_job(&self, event: &JobEvent) {
        match *event {
            JobEvent::Bound { attempt, node, .. } => {
                self.change_job(attempt.task.job(), |job| job.live += 1);
                self.change_node(node, |node| node.live += 1);
            }
            JobEvent::Ended { attempt, node, state, outcome, bound, began, at } => {
                self.change_job(attempt.task.job(), |job| {
                    job.spent.add(bound, began, at);
                    job.live -= 1;
                    if let Outcome::Preempted(cause) = outcome {
                        job.preempted += 1;
                        job.last_preempted = Some(Preemption { attempt, cause, at });
                    }
                    job.count(state, 1);
                });
                self.change_node(node, |node| {
                    node.live = node.live.saturating_sub(1);
                    node.units.remove(&attempt);
                });
            }
            JobEvent::NotRun { group, state, tasks, .. } => {
                self.change_job(group.job(), |job| job.count(state, tasks));
            }
            JobEvent::Finished { job, state, result, at } => self.finish(job, state, result, at),
            JobEvent::Expired { job } => {
                self.jobs.remove(&job);
                self.waiters.remove(&job);
            }
            _ => {}
        }
    }

    pub(crate) fn note_failure(&self, failure: TaskFailure) {
        self.change_job(failure.attempt.task.job(), |job| {
            if job.failures.len() == FAILURES_KEPT {
                job.failures.pop_front();
            }
            job.failures.push_back(failure);
        });
    }

    pub(crate) fn note_abort(&self, id: JobId, reason: &Arc<str>) {
        self.change_job(id, |job| job.abort_reason = Some(Arc::clone(reason)));
    }

    pub(crate) fn note_assigned(&self, group: GroupId, pool: Option<Arc<str>>) {
        self.change_job(group.job(), |job| match pool {
            Some(pool) => drop(job.assigned.insert(group, pool)),
            None => drop(job.assigned.remove(&group)),
        });
    }

    fn finish(&self, id: JobId, state: TaskState, result: TaskResult, at: Time) {
        self.change_job(id, |job| {
            job.result = result;
            job.finished = Some((state, at));
        });
        self.tell_waiters(id);
    }

    fn tell_waiters(&self, id: JobId) {
        // Most jobs are waited for by nobody: nothing is copied for them.
        let Some((_, waiters)) = self.waiters.remove(&id) else { return };
        for waiter in waiters {
            if let Ok(status) = self.job(id) {
                let _ = waiter.send(status);
            }
        }
    }

    pub(crate) fn note_node(&self, event: &NodeEvent) {
        match event {
            NodeEvent::Added { node, name, session } => {
                let name: Arc<str> = name.as_str().into();
                self.nodes.insert(*node, NodeStatus::new(*node, Arc::clone(&name), *session));
                self.names.insert(name, *node);
            }
            NodeEvent::Removed { node, name } => {
                self.nodes.remove_if(node, |_, status| *status.name == **name);
                self.names.remove(name.as_str());
            }
            NodeEvent::Broken { node, breakdown } => {
                self.change_node(*node, |status| status.breakdown = Some(Arc::clone(breakdown)));
            }
            NodeEvent::UnitsGiven { node, attempt, units } => {
                self.change_node(*node, |status| drop(status.units.insert(*attempt, Arc::clone(units))));
            }
            NodeEvent::State { node, state } => self.change_node(*node, |status| status.state = *state),
            NodeEvent::Reserved { node, who, stage } => {
                let reservation = ReservationStatus { who: Arc::clone(who), stage: *stage };
                self.change_node(*node, |status| status.reservation = Some(reservation));
            }
            NodeEvent::Returned { node, .. } => self.change_node(*node, |status| status.reservation = None),
            NodeEvent::BreakdownOver { node } => {
                self.change_node(*node, |status| status.breakdown = None);
            }
            _ => {}
        }
    }

    /// Compares how it says that some nodes stand with what ClusterState says, behind everything that said of
    /// them before, and mends what is wrong.
    pub(crate) fn compare_states(&self, audit: &Audit) -> Vec<Finding> {
        self.compare(audit, |status, node| {
            std::mem::replace(&mut status.state, node.view.state) != node.view.state
        })
    }

    /// Compares what it says runs on some nodes with the ledger, behind everything that JobState said before of
    /// attempts there, and mends what is wrong. By now the nodes may stand otherwise.
    pub(crate) fn compare_attempts(&self, audit: &Audit) -> Vec<Finding> {
        self.compare(audit, |status, node| {
            let live = node.live.len() as u64;
            std::mem::replace(&mut status.live, live) != live
        })
    }

    /// Nodes of which `mend` says that something was wrong. One that is gone meanwhile is not the one that came
    /// under its id.
    fn compare(&self, audit: &Audit, mend: impl Fn(&mut NodeStatus, &NodeAudit) -> bool) -> Vec<Finding> {
        let mut findings = Vec::new();
        for node in &audit.nodes {
            self.change_node(node.node, |status| {
                if status.session == node.session && mend(status, node) {
                    findings.push(Finding::WrongBoard(node.node));
                }
            });
        }
        findings
    }

    fn change_job(&self, id: JobId, change: impl FnOnce(&mut JobStatus)) {
        if let Some(mut job) = self.jobs.get_mut(&id) {
            change(&mut job);
        }
    }

    fn change_node(&self, id: NodeId, change: impl FnOnce(&mut NodeStatus)) {
        if let Some(mut node) = self.nodes.get_mut(&id) {
            change(&mut node);
        }
    }

    /// Nobody will finish any more: whoever waits is told by a dropped sender.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.waiters.clear();
    }

    /// Fills an empty board from restored machines.
    pub(crate) fn fill(&self, jobs: &JobState, cluster: &ClusterState, scheduler: &Scheduler) {
        self.note_shares(&scheduler.share_news());
        for (id, node) in cluster.nodes() {
            let name: Arc<str> = node.facts.name.as_str().into();
            let reservation = node.reservation.as_ref().map(|reservation| ReservationStatus {
                who: Arc::clone(&reservation.who),
                stage: reservation.stage,
            });
            let (breakdown, state) = (node.breakdown.clone(), node.state());
            let status = NodeStatus {
                breakdown,
                state,
                reservation,
                ..NodeStatus::new(id, Arc::clone(&name), node.session)
            };
            self.nodes.insert(id, status);
            self.names.insert(name, id);
        }
        for live in cluster.live() {
            if let Some(units) = cluster.units_of(live) {
                self.change_node(live.node, |node| drop(node.units.insert(live.attempt, Arc::new(units))));
            }
        }
        for task in jobs.live() {
            self.change_node(task.node, |node| node.live += 1);
        }
        for (id, job) in jobs.jobs() {
            let count = |state| job.groups.iter().map(|group| group.count(state)).sum();
            let status = JobStatus {
                spent: job.spent,
                live: job.groups.iter().map(|group| u64::from(group.live)).sum(),
                completed: count(TaskState::Completed),
                failed: count(TaskState::Failed),
                cancelled: count(TaskState::Cancelled),
                aborted: count(TaskState::Aborted),
                assigned: assigned(id, job),
                abort_reason: job.aborted.clone(),
                result: if job.finished.is_some() { job.result() } else { TaskResult::New },
                finished: job.finished.get().map(|at| (job.state(), at)),
                ..JobStatus::new(Arc::clone(&job.spec))
            };
            self.jobs.insert(id, status);
        }
        self.last_job.store(jobs.last_job().0, Ordering::Release);
    }
}

fn assigned(id: JobId, job: &Job) -> BTreeMap<GroupId, Arc<str>> {
    let pool = |(index, pool): (usize, Option<Arc<str>>)| Some((GroupId::new(id, index as u16), pool?));
    job.groups.iter().map(|group| group.assigned.clone()).enumerate().filter_map(pool).collect()
}
