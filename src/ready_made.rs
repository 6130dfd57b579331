//! Executors made of a closure.

use std::future::Future;

use plimsoll_actors::{BoxFuture, Executor, TaskContext, TaskError};

/// Runs every task with one asynchronous closure.
#[derive(Clone, Debug)]
pub struct Tasks<F> {
    run: F,
    inline: bool,
}

impl<F> Tasks<F> {
    /// Polls each task once on the agents' own thread, which saves a hop for tasks that are over at
    /// once. Only for closures that never block: one that does stops every agent.
    #[must_use]
    pub fn inline(mut self) -> Tasks<F> {
        self.inline = true;
        self
    }
}

/// Runs every task with one closure on a thread of its own.
#[derive(Clone, Debug)]
pub struct Blocking<F> {
    run: std::sync::Arc<F>,
}

/// An executor that runs every task with this asynchronous closure.
pub fn tasks<F, W>(run: F) -> Tasks<F>
where
    F: Fn(TaskContext) -> W + Send + Sync + 'static,
    W: Future<Output = Result<(), TaskError>> + Send + 'static,
{
    Tasks { run, inline: false }
}

/// An executor that runs every task with this closure, on a thread where blocking is allowed. Such a
/// task cannot be dropped: it should look at [`TaskContext::stop`] from time to time, and keeps its place
/// until it returns.
pub fn blocking_tasks<F>(run: F) -> Blocking<F>
where
    F: Fn(TaskContext) -> Result<(), TaskError> + Send + Sync + 'static,
{
    Blocking { run: std::sync::Arc::new(run) }
}

impl<F, W> Executor for Tasks<F>
where
    F: Fn(TaskContext) -> W + Send + Sync + 'static,
    W: Future<Output = Result<(), TaskError>> + Send + 'static,
{
    fn polls_inline(&self) -> bool {
        self.inline
    }

    fn run(&self, task: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        Box::pin((self.run)(task))
    }
}

impl<F> Executor for Blocking<F>
where
    F: Fn(TaskContext) -> Result<(), TaskError> + Send + Sync + 'static,
{
    fn ends_when_dropped(&self) -> bool {
        false
    }

    fn run(&self, task: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        let run = std::sync::Arc::clone(&self.run);
        Box::pin(async move {
            let outcome = tokio::task::spawn_blocking(move || run(task)).await;
            outcome.unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => Err(TaskError::panicked(&*panic)),
                Err(error) => Err(TaskError::not_started(error.to_string())),
            })
        })
    }
}
