//! What a service holds: everything it can tell and ask the runtime.

mod assignments;
mod control;
mod explain;
mod known;
mod nodes;
mod shares;
mod sizes;
mod standing;
mod submit;

use std::sync::Arc;

use plimsoll_actors::{Command, JobStatus, Port, PushError, Subscription, TaskContext};
use plimsoll_core::document::Faults;
use plimsoll_core::id::{JobId, TaskId};
use plimsoll_core::messages::{Answer, Refusal, TaskHistory};
use plimsoll_core::settings::{RawSettings, Settings};
use plimsoll_core::share_report::ShareStatus;
use plimsoll_core::time::Time;
use tokio::sync::oneshot;

use crate::error::{RequestError, StoppedError};

pub use assignments::TaskOutcome;
pub use explain::Explained;
pub use standing::Reprioritise;
pub use submit::SubmitMany;

/// Batches that an event subscription holds for its reader before it counts gaps.
const EVENT_BATCHES: usize = 1_024;

/// Feeds and asks a [`Runtime`](crate::Runtime). Clones are cheap and may be used from any thread,
/// inside or outside any runtime.
#[derive(Clone, Debug)]
pub struct Handle {
    port: Port,
}

impl Handle {
    pub(crate) fn new(port: Port) -> Handle {
        Handle { port }
    }

    /// The runtime that runs this task, so that it can submit further jobs:
    /// `Handle::of(&task).submit(job.parent(task.job_id()))`.
    pub fn of(task: &TaskContext) -> Handle {
        Handle { port: task.port().clone() }
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

    /// How a job stands, without asking anybody.
    pub fn job(&self, job: JobId) -> Result<JobStatus, Refusal> {
        self.port.board().job(job)
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

    /// How classes and queues stand against what they should have, without asking anybody; nothing where
    /// there are none.
    pub fn shares(&self) -> Vec<ShareStatus> {
        self.port.board().shares()
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
        self.edit_settings(|raw| {
            raw.merge(patch);
            Ok(())
        })
    }

    /// Changes the settings as a file would give them. An edit with problems changes nothing.
    fn edit_settings(
        &self,
        edit: impl FnOnce(&mut RawSettings) -> Result<(), Faults>,
    ) -> Result<Arc<Settings>, RequestError> {
        let changed = self.port.change_settings(|current| current.edited(edit));
        Ok(changed.map_err(|error| self.push_error(&error))??)
    }

    fn push_error(&self, error: &PushError<Command>) -> RequestError {
        match error {
            PushError::Full(_) => RequestError::Full,
            PushError::Closed(_) => self.stopped().into(),
        }
    }
}
