//! What a service holds: everything it can tell and ask the runtime.

use std::sync::Arc;

use plimsoll_actors::{Assignments, Command, JobStatus, NodeStatus, Port, PushError, Subscription};
use plimsoll_core::document::{Fault, FaultKind, Faults};
use plimsoll_core::explanation::{Explanation, NodeExplanation, Subject};
use plimsoll_core::id::{Attempt, GroupId, JobId, NodeId, TaskId};
use plimsoll_core::messages::{Answer, Refusal, TaskHistory};
use plimsoll_core::outcome::{Exit, FailureCause};
use plimsoll_core::settings::{RawSettings, Settings};
use plimsoll_core::time::Time;
use tokio::sync::oneshot;

use crate::error::{RequestError, StoppedError, SubmitError};
use crate::node_specs::{NodePatch, NodeSpec};
use crate::specs::JobSpec;

/// Batches that an event subscription holds for its reader before it counts gaps.
const EVENT_BATCHES: usize = 1_024;

/// More jobs than this become several commands, so that no single one holds up the others.
const JOBS_PER_COMMAND_MAX: usize = 1_024;

/// Feeds and asks a [`Runtime`](crate::Runtime). Clones are cheap and may be used from any thread,
/// inside or outside any runtime.
#[derive(Clone, Debug)]
pub struct Handle {
    port: Port,
}

/// How a task ended, as the service that ran it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TaskOutcome {
    /// It did what it should.
    Completed,
    /// It did not.
    Failed,
    /// It could not be started.
    NotStarted,
    /// It ended with this code, which is not the one of success.
    ExitCode(i32),
    /// It was ended by this signal.
    Signal(i32),
    /// It was told to stop and did.
    Stopped,
    /// It is gone without a word, and is to run again.
    Lost,
}

impl TaskOutcome {
    fn exit(self) -> Exit {
        match self {
            TaskOutcome::Completed => Exit::Completed,
            TaskOutcome::Failed => Exit::Failed(FailureCause::Error),
            TaskOutcome::NotStarted => Exit::Failed(FailureCause::NotStarted),
            TaskOutcome::ExitCode(code) => Exit::Failed(FailureCause::Code(code)),
            TaskOutcome::Signal(signal) => Exit::Failed(FailureCause::Signal(signal)),
            TaskOutcome::Stopped => Exit::Stopped,
            TaskOutcome::Lost => Exit::Lost,
        }
    }
}

/// What [`Handle::explain`] is asked about: a job or one of its tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Explained {
    /// Every group of the job that waits.
    Job(JobId),
    /// This task.
    Task(TaskId),
}

impl From<JobId> for Explained {
    fn from(job: JobId) -> Explained {
        Explained::Job(job)
    }
}

impl From<TaskId> for Explained {
    fn from(task: TaskId) -> Explained {
        Explained::Task(task)
    }
}

/// Where an answer comes in.
type Reply = oneshot::Receiver<Answer>;

/// What became of each job of [`Handle::submit_many`], in order.
pub type SubmitMany = Vec<Result<JobId, SubmitError>>;

impl Handle {
    pub(crate) fn new(port: Port) -> Handle {
        Handle { port }
    }

    pub(crate) fn stopped(&self) -> StoppedError {
        StoppedError(self.port.stopped())
    }

    /// Puts a command on the lane, waiting for room if need be.
    pub(crate) async fn push(&self, command: Command) -> Result<(), StoppedError> {
        Ok(self.port.push_when_room(command).await?)
    }

    /// Sends a command that is answered, and waits for the answer.
    async fn ask(
        &self,
        command: impl FnOnce(oneshot::Sender<Answer>) -> Command,
    ) -> Result<Answer, RequestError> {
        let (reply, answer) = oneshot::channel();
        self.push(command(reply)).await?;
        match answer.await {
            Ok(Answer::Refused(refusal)) => Err(refusal.into()),
            Ok(answer) => Ok(answer),
            Err(_) => Err(self.stopped().into()),
        }
    }

    /// Submits a job, waiting for room on the lane and for the runtime's word.
    pub async fn submit(&self, job: JobSpec) -> Result<JobId, SubmitError> {
        let (command, answer, job) = self.submission(job)?;
        match self.push(command).await {
            Ok(()) => self.accepted(answer.await.ok(), job),
            Err(stopped) => Err(SubmitError::Stopped { stopped, job: Box::new(job) }),
        }
    }

    /// Submits a job without waiting for room: a full lane gives it back. What is returned completes
    /// with the runtime's word.
    pub fn try_submit(
        &self,
        job: JobSpec,
    ) -> Result<impl Future<Output = Result<JobId, SubmitError>> + Send + use<>, SubmitError> {
        let (command, answer, job) = self.submission(job)?;
        match self.port.push(command) {
            Ok(()) => {}
            Err(PushError::Full(_)) => return Err(SubmitError::Full(Box::new(job))),
            Err(PushError::Closed(_)) => {
                return Err(SubmitError::Stopped { stopped: self.stopped(), job: Box::new(job) });
            }
        }
        let handle = self.clone();
        Ok(async move { handle.accepted(answer.await.ok(), job) })
    }

    /// Submits a job from a thread that may wait. Must not be called from asynchronous code.
    pub fn submit_blocking(&self, job: JobSpec) -> Result<JobId, SubmitError> {
        pollster::block_on(self.submit(job))
    }

    /// Submits many jobs with few commands. Each is accepted or refused on its own.
    pub async fn submit_many(&self, mut jobs: Vec<JobSpec>) -> Result<SubmitMany, StoppedError> {
        let mut outcomes = Vec::with_capacity(jobs.len());
        while !jobs.is_empty() {
            let rest = jobs.split_off(jobs.len().min(JOBS_PER_COMMAND_MAX));
            outcomes.extend(self.submit_some(std::mem::replace(&mut jobs, rest)).await?);
        }
        Ok(outcomes)
    }

    async fn submit_some(&self, jobs: Vec<JobSpec>) -> Result<SubmitMany, StoppedError> {
        let settings = self.port.settings();
        let validated: Vec<_> = jobs.iter().map(|job| job.validated(&settings)).collect();
        let valid = validated.iter().filter_map(|job| job.as_ref().ok()).cloned().collect();
        let (reply, answers) = oneshot::channel();
        self.push(Command::SubmitMany(valid, reply)).await?;
        let mut answers = answers.await.map_err(|_| self.stopped())?.into_iter();
        let outcome = |(job, validated)| match validated {
            Ok(_) => self.accepted(answers.next(), job),
            Err(problem) => Err(SubmitError::Invalid { problem, job: Box::new(job) }),
        };
        Ok(jobs.into_iter().zip(validated).map(outcome).collect())
    }

    fn submission(&self, job: JobSpec) -> Result<(Command, Reply, JobSpec), SubmitError> {
        let spec = match job.validated(&self.port.settings()) {
            Ok(spec) => spec,
            Err(problem) => return Err(SubmitError::Invalid { problem, job: Box::new(job) }),
        };
        let (reply, answer) = oneshot::channel();
        Ok((Command::Submit(spec, reply), answer, job))
    }

    /// What the runtime said about a job; nothing at all if it has stopped.
    fn accepted(&self, answer: Option<Answer>, job: JobSpec) -> Result<JobId, SubmitError> {
        let job = Box::new(job);
        match answer {
            Some(Answer::Accepted(id)) => Ok(id),
            Some(Answer::Refused(refusal)) => Err(SubmitError::Refused { refusal, job }),
            Some(other) => unreachable!("a submission is accepted or refused, not {other:?}"),
            None => Err(SubmitError::Stopped { stopped: self.stopped(), job }),
        }
    }

    /// Cancels a job. Cancelling a finished job changes nothing.
    pub async fn cancel(&self, job: JobId) -> Result<(), RequestError> {
        self.ask(|reply| Command::Cancel(job, reply)).await.map(drop)
    }

    /// How a task stands, and what is remembered of its attempts.
    pub async fn task(&self, task: TaskId) -> Result<TaskHistory, RequestError> {
        match self.ask(|reply| Command::History(task, reply)).await? {
            Answer::History(history) => Ok(*history),
            other => unreachable!("a history is told or refused, not {other:?}"),
        }
    }

    /// Adds a node; it takes work at once.
    pub async fn add_node(&self, node: NodeSpec) -> Result<(), RequestError> {
        let node = Box::new(node.validated(&self.port.settings())?);
        self.ask(|reply| Command::AddNode(node, reply)).await.map(drop)
    }

    /// Changes a node.
    pub async fn update_node(&self, name: &str, patch: NodePatch) -> Result<(), RequestError> {
        let patch = Box::new(patch.validated(&self.port.settings())?);
        self.ask(|reply| Command::UpdateNode(name.to_owned(), patch, reply)).await.map(drop)
    }

    /// Removes a node; what runs there is lost and runs again elsewhere.
    pub async fn remove_node(&self, name: &str) -> Result<(), RequestError> {
        self.ask(|reply| Command::RemoveNode(name.to_owned(), reply)).await.map(drop)
    }

    /// Tells that the service has taken over every assignment up to this sequence number: they are
    /// no longer kept, and as many new ones may be made.
    pub async fn acknowledge(&self, reader: &mut Assignments, sequence: u64) -> Result<(), StoppedError> {
        // First told, then done: a caller that gives up in between has changed nothing.
        let released = reader.up_to(sequence);
        if !released.is_empty() {
            self.push(Command::Acknowledge(released)).await?;
        }
        reader.let_go(sequence);
        Ok(())
    }

    /// Tells that an assignment has ended. What ended already, or was never begun, changes nothing.
    pub async fn task_finished(&self, attempt: Attempt, outcome: TaskOutcome) -> Result<(), StoppedError> {
        let Some(node) = self.port.node_of_begun(attempt) else { return Ok(()) };
        self.tell_ended(vec![(node, attempt)], outcome).await
    }

    /// Tells that a node has become idle: everything the service has read of its assignments there has
    /// ended well. Assignments it has not read yet stay.
    pub async fn node_idle(&self, name: &str) -> Result<(), RequestError> {
        let begun = self.port.begun_on(name);
        if begun.is_empty() {
            // Nothing to tell, but a name that no node has is a mistake.
            self.port.board().node(name)?;
            return Ok(());
        }
        Ok(self.tell_ended(begun, TaskOutcome::Completed).await?)
    }

    async fn tell_ended(
        &self,
        ended: Vec<(NodeId, Attempt)>,
        outcome: TaskOutcome,
    ) -> Result<(), StoppedError> {
        // First told, then done: a caller that gives up in between has changed nothing.
        self.push(Command::Finished(ended.clone(), outcome.exit())).await?;
        self.port.forget_begun(&ended);
        Ok(())
    }

    /// Tells whether a node's agent is heard. A node that is not heard for long loses its tasks.
    pub async fn heartbeat(&self, name: &str, heard: bool) -> Result<(), RequestError> {
        self.ask(|reply| Command::Heartbeat(name.to_owned(), heard, reply)).await.map(drop)
    }

    /// How a job stands, without asking anybody.
    pub fn job(&self, job: JobId) -> Result<JobStatus, Refusal> {
        self.port.board().job(job)
    }

    /// How a node stands, without asking anybody.
    pub fn node(&self, name: &str) -> Result<NodeStatus, Refusal> {
        self.port.board().node(name)
    }

    /// All nodes.
    pub fn nodes(&self) -> Vec<NodeStatus> {
        self.port.board().nodes()
    }

    /// All jobs that are kept.
    pub fn jobs(&self) -> Vec<(JobId, JobStatus)> {
        self.port.board().jobs()
    }

    /// Waits until every task of the job is final.
    pub async fn wait(&self, job: JobId) -> Result<JobStatus, RequestError> {
        let finished = self.port.board().wait(job)?;
        finished.await.map_err(|_| self.stopped().into())
    }

    /// Events from now on, as a stream and for blocking readers. Whoever reads too slowly is told
    /// how many events it missed.
    pub fn events(&self) -> Result<Subscription, RequestError> {
        self.port.subscribe(EVENT_BATCHES).map_err(|error| self.push_error(&error))
    }

    /// Why a job waits, group by group, or why one task of it waits. Groups and tasks that do not wait
    /// are left out.
    pub async fn explain(&self, what: impl Into<Explained>) -> Result<Vec<Explanation>, RequestError> {
        let mut explanations = Vec::new();
        for subject in self.subjects(what.into())? {
            match self.ask(|reply| Command::Explain(subject, reply)).await {
                Ok(Answer::Explained(explanation)) if explanation.waiting > 0 => {
                    explanations.push(*explanation);
                }
                Ok(_) | Err(RequestError::Refused(Refusal::UnknownGroup(_))) => {}
                Err(RequestError::Refused(Refusal::UnknownTask(task))) => self.known_task(task)?,
                Err(error) => return Err(error),
            }
        }
        Ok(explanations)
    }

    /// Everything that keeps the waiting tasks of a job, or one task of it, from the node of this name,
    /// role by role. Roles and tasks that do not wait are left out.
    pub async fn explain_on(
        &self,
        what: impl Into<Explained>,
        node: &str,
    ) -> Result<Vec<NodeExplanation>, RequestError> {
        // Also when nothing waits, a name that no node has is a mistake.
        self.port.board().node(node)?;
        let mut explanations = Vec::new();
        for subject in self.subjects(what.into())? {
            match self.ask(|reply| Command::ExplainOn(subject, node.to_owned(), reply)).await {
                Ok(Answer::ExplainedOn(explained)) => explanations.extend(explained),
                Ok(_) | Err(RequestError::Refused(Refusal::UnknownGroup(_))) => {}
                Err(RequestError::Refused(Refusal::UnknownTask(task))) => self.known_task(task)?,
                Err(error) => return Err(error),
            }
        }
        Ok(explanations)
    }

    /// What has to be asked about a job, group by group, or about one task.
    fn subjects(&self, what: Explained) -> Result<Vec<Subject>, Refusal> {
        match what {
            Explained::Task(task) => Ok(vec![Subject::Task(task)]),
            Explained::Job(job) => {
                let groups = self.port.board().job(job)?.spec.groups.len() as u16;
                Ok((0..groups).map(|index| Subject::Group(GroupId::new(job, index))).collect())
            }
        }
    }

    /// Whether there is or was such a task; one of a finished group is fine.
    fn known_task(&self, task: TaskId) -> Result<(), Refusal> {
        let job = self.port.board().job(task.job())?;
        let role =
            job.spec.groups.get(task.group.index()).and_then(|group| group.roles.get(usize::from(task.role)));
        let known = role.is_some_and(|role| task.index < role.max);
        if known { Ok(()) } else { Err(Refusal::UnknownTask(task)) }
    }

    /// The runtime's own clock, in which events are stamped.
    pub fn now(&self) -> Time {
        self.port.now()
    }

    /// The settings in effect.
    pub fn settings(&self) -> Arc<Settings> {
        self.port.settings()
    }

    /// Changes parts of the settings. A patch with problems changes nothing.
    pub fn update_settings(&self, patch: &RawSettings) -> Result<Arc<Settings>, RequestError> {
        let changed = self.port.change_settings(|current| {
            let mut raw = RawSettings::from(current);
            raw.merge(patch);
            let settings = raw.validate()?;
            // Amounts are stored by the number of their kind.
            match settings.kinds.continues(&current.kinds) {
                true => Ok(settings),
                false => Err(Faults::from(Fault::new(
                    "resources",
                    FaultKind::Refused,
                    None,
                    "kinds can be added at the end while the runtime runs, not taken away or moved"
                        .to_owned(),
                ))),
            }
        });
        Ok(changed.map_err(|error| self.push_error(&error))??)
    }

    fn push_error(&self, error: &PushError<Command>) -> RequestError {
        match error {
            PushError::Full(_) => RequestError::Full,
            PushError::Closed(_) => self.stopped().into(),
        }
    }
}
