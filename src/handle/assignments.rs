//! What a service says that runs the work itself.

use plimsoll_actors::{Assignments, Command};
use plimsoll_core::id::{Attempt, NodeId};
use plimsoll_core::outcome::{Exit, FailureCause};

use super::Handle;
use crate::error::{RequestError, StoppedError};

/// More ends than this become several commands, so that no single one holds up the others.
const ENDS_PER_COMMAND_MAX: usize = 1_024;

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

impl Handle {
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
        self.tasks_finished(&[attempt], outcome).await
    }

    /// Tells that assignments have ended, all in this way, with few commands. Those that had ended already,
    /// or were never begun, change nothing.
    pub async fn tasks_finished(
        &self,
        attempts: &[Attempt],
        outcome: TaskOutcome,
    ) -> Result<(), StoppedError> {
        for some in attempts.chunks(ENDS_PER_COMMAND_MAX) {
            let ended = self.port.begun(some);
            if !ended.is_empty() {
                self.tell_ended(ended, outcome).await?;
            }
        }
        Ok(())
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
}
