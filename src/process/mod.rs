//! Runs tasks as processes of this machine.
//!
//! Each process leads a process group of its own. However an attempt ends, the group ends with it: a
//! leader that ends by itself takes its children along, a group that is to stop is asked to (`SIGTERM`) and
//! whoever is left of it after a grace time is ended (`SIGKILL`), and one whose future is dropped is ended
//! at once. Only what leaves its group on purpose, or the death of the service itself, leaves a process
//! behind.

mod census;
mod group;
mod output;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_actors::{BoxFuture, Executor, TaskContext, TaskError};
use plimsoll_core::outcome::FailureCause;
use plimsoll_core::spec::CommandSpec;

use census::Census;
use group::{Ended, ProcessGroup};
pub use output::{Output, OutputBook};

/// How long a process may go on after it was asked to end, unless it is said otherwise.
const GRACE: Duration = Duration::from_secs(5);

/// Once its process has ended, nothing more than what is on its way is read of its output.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// An executor that starts the command of each task's role as a process.
///
/// A process finds `PLIMSOLL_JOB`, `PLIMSOLL_JOB_NAME`, `PLIMSOLL_GROUP`, `PLIMSOLL_ROLE`,
/// `PLIMSOLL_TASK`, `PLIMSOLL_ATTEMPT` and `PLIMSOLL_NODE` in its environment, the named units it was given in
/// `PLIMSOLL_UNITS` (`gpu=g0,g1;disk=d3`), the `PATH` of the service, and what its command adds. Its standard
/// input is closed. It takes Linux 5.3 or newer.
#[derive(Clone, Debug, Default)]
pub struct ProcessExecutor {
    command: Option<Arc<CommandSpec>>,
    grace: Option<Duration>,
    inherit: bool,
    book: OutputBook,
    census: Census,
}

impl ProcessExecutor {
    /// Starts the command of each role; a role without one cannot be started.
    pub fn new() -> ProcessExecutor {
        ProcessExecutor::default()
    }

    /// Starts this command for tasks whose role has none.
    #[must_use]
    pub fn command(mut self, command: CommandSpec) -> ProcessExecutor {
        self.command = Some(Arc::new(command));
        self
    }

    /// How long a process may go on after it was asked to end, where its command does not say. It never
    /// gets longer than [`Builder::stop_grace`](crate::Builder::stop_grace).
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> ProcessExecutor {
        self.grace = Some(grace);
        self
    }

    /// Lets processes have the whole environment of the service.
    #[must_use]
    pub fn inherit_environment(mut self) -> ProcessExecutor {
        self.inherit = true;
        self
    }

    /// Where the output that goes to no file can be read.
    pub fn outputs(&self) -> OutputBook {
        self.book.clone()
    }

    fn command_of(&self, task: &TaskContext) -> Result<Arc<CommandSpec>, TaskError> {
        let command = task.role().command.as_ref().or(self.command.as_ref());
        command.cloned().ok_or_else(|| TaskError::not_started("its role has no command"))
    }
}

impl Executor for ProcessExecutor {
    fn run(&self, task: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        let executor = self.clone();
        Box::pin(async move { executor.run_process(task).await })
    }
}

impl ProcessExecutor {
    async fn run_process(&self, mut task: TaskContext) -> Result<(), TaskError> {
        let command = self.command_of(&task)?;
        let grace = command.grace.map(|grace| Duration::from_micros(grace.0));
        let grace = grace.or(self.grace).unwrap_or(GRACE);
        let (mut process, readers) = ProcessGroup::start(&command, &surroundings(&task), self.inherit)?;
        let page = self.book.open(task.attempt);
        let mut reading = pin!(page.read(readers, &command));
        let mut ending = pin!(async {
            tokio::select! {
                ended = process.ended() => ended,
                () = task.stop.stopped() => process.stop(grace, &self.census).await,
            }
        });
        let mut said_all = false;
        let ended = loop {
            tokio::select! {
                ended = &mut ending => break ended,
                // Whoever closed its output may go on for as long as it likes.
                () = &mut reading, if !said_all => said_all = true,
            }
        };
        if !said_all {
            // Somebody who left the group may hold the output open: that is not waited for.
            let _ = tokio::time::timeout(LAST_WORDS, reading).await;
        }
        verdict(ended)
    }
}

fn verdict(ended: std::io::Result<Ended>) -> Result<(), TaskError> {
    let (cause, text) = match ended {
        Ok(Ended::Code(0)) => return Ok(()),
        Ok(Ended::Code(code)) => (FailureCause::Code(code), format!("ended with code {code}")),
        Ok(Ended::Signal(signal)) => (FailureCause::Signal(signal), format!("ended by signal {signal}")),
        Err(error) => (FailureCause::Error, format!("its end cannot be told: {error}")),
    };
    Err(TaskError { cause, text })
}

/// What a process may know of its task, by the names that stand for it in paths.
fn surroundings(task: &TaskContext) -> BTreeMap<&'static str, String> {
    let units = task.units.iter().flat_map(|units| units.iter());
    let units = units.map(|(kind, names)| format!("{kind}={}", names.join(",")));
    BTreeMap::from([
        ("units", units.collect::<Vec<_>>().join(";")),
        ("job", task.job_id().0.to_string()),
        ("job_name", task.job.name.clone()),
        ("group", task.group().name.clone()),
        ("role", task.role().name.clone()),
        ("task", task.index().to_string()),
        ("attempt", task.attempt.number.to_string()),
        ("node", task.node.to_string()),
    ])
}
