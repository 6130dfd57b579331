//! What runs the work: given by the embedding service, called by the agents.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use plimsoll_core::id::{Attempt, JobId};
use plimsoll_core::outcome::FailureCause;
use plimsoll_core::spec::{GroupSpec, JobSpec, RoleSpec, UnitNames};
use thiserror::Error;

use crate::flag::{Flag, Raiser};

use crate::port::Port;

/// A future that can move between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// Runs tasks. Futures run on the runtime's own worker threads; a panic in one fails its task only.
pub trait Executor: Send + Sync + 'static {
    /// Whether the first poll of its futures may happen on the agents' own thread, which saves a hop for
    /// tasks that are over at once. Only for futures that never block: one that does stops every agent.
    fn polls_inline(&self) -> bool {
        false
    }

    /// Whether dropping the future of a task ends its work. Work that goes on on a thread of its own does not
    /// end so: an executor of such work answers `false`, and its tasks keep their places until they have
    /// ended, however long that takes after they were told to stop.
    fn ends_when_dropped(&self) -> bool {
        true
    }

    /// Makes the node ready for the task, before it counts as running. It has a deadline of its own, and
    /// when it fails the task was not started. When [`TaskContext::stop`] fires it should end soon.
    fn prepare(&self, task: &TaskContext) -> BoxFuture<Result<(), TaskError>> {
        let _ = task;
        Box::pin(async { Ok(()) })
    }

    /// Makes a node ready for somebody who has reserved it. It has the same deadline as [`prepare`], and
    /// when it fails the reservation is over.
    ///
    /// [`prepare`]: Executor::prepare
    fn prepare_node(&self, node: NodeContext) -> BoxFuture<Result<(), TaskError>> {
        let _ = node;
        Box::pin(async { Ok(()) })
    }

    /// Runs the task to its end. When [`TaskContext::stop`] fires it should end soon; after the
    /// grace time the future is dropped, unless that would not end it.
    fn run(&self, task: TaskContext) -> BoxFuture<Result<(), TaskError>>;
}

/// Why a task failed: the cause, by which it may be tried again, and its own words.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{text}")]
pub struct TaskError {
    pub cause: FailureCause,
    /// At most [`FAILURE_TEXT_MAX`] bytes of it are kept.
    pub text: String,
}

/// More bytes of what a failed task or a panic says are not kept.
pub const FAILURE_TEXT_MAX: usize = 1_024;

impl TaskError {
    /// A failure that the task found out itself.
    pub fn new(text: impl Into<String>) -> TaskError {
        TaskError { cause: FailureCause::Error, text: text.into() }
    }

    /// The task could not be started at all.
    pub fn not_started(text: impl Into<String>) -> TaskError {
        TaskError { cause: FailureCause::NotStarted, text: text.into() }
    }

    /// What somebody said who panicked.
    pub fn panicked(panic: &(dyn Any + Send)) -> TaskError {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
        TaskError { cause: FailureCause::Panic, text: format!("panicked: {text}") }
    }

    /// Its words, as far as they are kept.
    pub(crate) fn kept_text(&self) -> Arc<str> {
        let end =
            (0..=self.text.len().min(FAILURE_TEXT_MAX)).rev().find(|end| self.text.is_char_boundary(*end));
        self.text[..end.unwrap_or(0)].into()
    }
}

/// The task at hand.
#[derive(Clone, Debug)]
pub struct TaskContext {
    pub attempt: Attempt,
    /// The job as it was submitted.
    pub job: Arc<JobSpec>,
    /// The name of the node it runs on.
    pub node: Arc<str>,
    /// The units of its node that are for this task alone, by kind, where they have names.
    pub units: Option<Arc<UnitNames>>,
    pub stop: StopSignal,
    pub(crate) port: PortCell,
}

/// A node that somebody has reserved.
#[derive(Clone, Debug)]
pub struct NodeContext {
    /// Its name.
    pub node: Arc<str>,
    /// What is to be installed, in the words of whoever reserved it.
    pub what: Arc<str>,
    pub stop: StopSignal,
}

/// Where tasks find the way to the runtime that runs them.
pub(crate) type PortCell = Arc<OnceLock<Port>>;

impl TaskContext {
    pub fn job_id(&self) -> JobId {
        self.attempt.task.job()
    }

    /// The way to the runtime that runs this task, for work that finds out what else is to be done.
    pub fn port(&self) -> &Port {
        self.port.get().expect("no task runs before everything is wired")
    }

    pub fn group(&self) -> &GroupSpec {
        &self.job.groups[self.attempt.task.group.index()]
    }

    pub fn role(&self) -> &RoleSpec {
        &self.group().roles[usize::from(self.attempt.task.role)]
    }

    /// The number of this task among the tasks of its role.
    pub fn index(&self) -> u32 {
        self.attempt.task.index
    }
}

/// Tells a task that it is to end.
#[derive(Clone, Debug)]
pub struct StopSignal {
    flag: Flag,
}

impl StopSignal {
    pub(crate) fn new() -> (Raiser, StopSignal) {
        let (raiser, flag) = Raiser::new();
        (raiser, StopSignal { flag })
    }

    /// Whether the task is to end.
    pub fn is_stopped(&self) -> bool {
        self.flag.is_raised()
    }

    /// Completes when the task is to end.
    pub async fn stopped(&mut self) {
        // A raiser that is gone means that nobody waits for this task any more.
        self.flag.raised().await;
    }
}
