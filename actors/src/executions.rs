//! The executions of a shard: futures of the embedding service, each isolated from the others.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use actix::Addr;
use plimsoll_core::id::{Attempt, NodeId};
use plimsoll_core::outcome::{Exit, Phase};
use plimsoll_core::spec::{JobSpec, UnitNames};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::agents::{AgentShard, ExecutionNews, Progress};
use crate::executor::{Executor, PortCell, StopSignal, TaskContext, TaskError};
use crate::flag::{Flag, Raiser};
use crate::work::Started;

pub(crate) struct Executions {
    executor: Arc<dyn Executor>,
    /// Where futures that are not over at once go on.
    workers: Handle,
    /// How long a future may go on after it was told to stop.
    grace: Duration,
    port: PortCell,
    running: BTreeMap<(NodeId, Attempt), Execution>,
    last_serial: u64,
    /// The runtime is stopping: nothing more is started.
    closing: bool,
}

struct Execution {
    serial: u64,
    stop: Raiser,
    abort: AbortHandle,
}

type Run = Pin<Box<dyn Future<Output = Result<(), TaskError>> + Send>>;

impl Executions {
    pub(crate) fn new(
        executor: Arc<dyn Executor>,
        workers: Handle,
        grace: Duration,
        port: PortCell,
    ) -> Executions {
        let (running, last_serial, closing) = (BTreeMap::new(), 0, false);
        Executions { executor, workers, grace, port, running, last_serial, closing }
    }

    /// Starts an execution. A future that may be polled here and is over at once never leaves this thread.
    pub(crate) fn start(
        &mut self,
        node: NodeId,
        attempt: Attempt,
        job: Arc<JobSpec>,
        name: &Arc<str>,
        units: Option<Arc<UnitNames>>,
        shard: &Addr<AgentShard>,
    ) -> Started {
        if self.closing {
            return Started::Running(Phase::Waiting);
        }
        let (stop, signal) = StopSignal::new();
        let (node_name, port) = (Arc::clone(name), self.port.clone());
        let task = TaskContext { attempt, job, node: node_name, units, stop: signal, port };
        let _context = self.workers.enter();
        let mut work = match catch_unwind(AssertUnwindSafe(|| whole_work(&self.executor, task))) {
            Ok(work) => work,
            Err(panic) => return over(Err(TaskError::panicked(&*panic))),
        };
        let first = match self.executor.polls_inline() {
            true => catch_unwind(AssertUnwindSafe(|| {
                work.future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            })),
            false => Ok(Poll::Pending),
        };
        match first {
            Ok(Poll::Ready(result)) => return over(result),
            Err(panic) => return over(Err(TaskError::panicked(&*panic))),
            Ok(Poll::Pending) => {}
        }
        self.last_serial += 1;
        let serial = self.last_serial;
        let phase = if work.is_running() { Phase::Running } else { Phase::Installing };
        let abort = self.spawn(node, attempt, serial, work, shard.clone());
        self.running.insert((node, attempt), Execution { serial, stop, abort });
        Started::Running(phase)
    }

    fn spawn(
        &self,
        node: NodeId,
        attempt: Attempt,
        serial: u64,
        work: WholeWork,
        shard: Addr<AgentShard>,
    ) -> AbortHandle {
        let news = move |what| ExecutionNews { node, attempt, serial, what };
        let WholeWork { future, running } = work;
        let reporter = shard.clone();
        if !running.is_raised() {
            self.workers.spawn(async move {
                if running.raised().await {
                    reporter.do_send(news(Progress::Reached(Phase::Running)));
                }
            });
        }
        let task = self.workers.spawn(future);
        let abort = task.abort_handle();
        self.workers.spawn(async move {
            let (exit, text) = match task.await {
                Ok(result) => exit_of(result),
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => exit_of(Err(TaskError::panicked(&*panic))),
                    // It did not end in time after it was told to, and was dropped.
                    Err(_) => (Exit::Stopped, None),
                },
            };
            shard.do_send(news(Progress::Exited(exit, text)));
        });
        abort
    }

    /// Tells an execution to end, and drops it after the grace time if that ends it. One that does not end
    /// keeps its place: what it holds is not free.
    pub(crate) fn stop(&mut self, node: NodeId, attempt: Attempt) {
        let Some(execution) = self.running.get(&(node, attempt)) else { return };
        execution.stop.raise();
        if !self.executor.ends_when_dropped() {
            return;
        }
        let (abort, grace) = (execution.abort.clone(), self.grace);
        self.workers.spawn(async move {
            tokio::time::sleep(grace).await;
            abort.abort();
        });
    }

    /// Tells everything to end, for good.
    pub(crate) fn stop_all(&mut self) {
        self.closing = true;
        let all: Vec<(NodeId, Attempt)> = self.running.keys().copied().collect();
        for (node, attempt) in all {
            self.stop(node, attempt);
        }
    }

    /// Ends everything on a node without waiting for it; the answer tells when that is over.
    pub(crate) fn abandon(&mut self, node: NodeId) -> Vec<AbortHandle> {
        let mut ending = Vec::new();
        let ends_when_dropped = self.executor.ends_when_dropped();
        self.running.retain(|(on, _), execution| {
            if *on == node {
                execution.stop.raise();
                if ends_when_dropped {
                    execution.abort.abort();
                }
                ending.push(execution.abort.clone());
            }
            *on != node
        });
        ending
    }

    pub(crate) fn is_current(&self, node: NodeId, attempt: Attempt, serial: u64) -> bool {
        self.running.get(&(node, attempt)).is_some_and(|execution| execution.serial == serial)
    }

    /// Forgets an execution that has ended; true if it had been told to.
    pub(crate) fn end(&mut self, node: NodeId, attempt: Attempt) -> bool {
        self.running.remove(&(node, attempt)).is_some_and(|execution| execution.stop.is_raised())
    }

    pub(crate) fn count(&self) -> usize {
        self.running.len()
    }
}

/// Preparing and running as one future, and whether it has come to running.
struct WholeWork {
    future: Run,
    running: Flag,
}

impl WholeWork {
    fn is_running(&self) -> bool {
        self.running.is_raised()
    }
}

fn whole_work(executor: &Arc<dyn Executor>, task: TaskContext) -> WholeWork {
    let (begun, running) = Raiser::new();
    let executor = Arc::clone(executor);
    let future = Box::pin(async move {
        executor.prepare(&task).await.map_err(|error| TaskError::not_started(error.text))?;
        if task.stop.is_stopped() {
            return Err(TaskError::not_started("told to stop before it ran"));
        }
        begun.raise();
        executor.run(task).await
    });
    WholeWork { future, running }
}

fn over(result: Result<(), TaskError>) -> Started {
    let (exit, text) = exit_of(result);
    Started::Over(exit, text)
}

/// How it ended, and the words of a failure.
fn exit_of(result: Result<(), TaskError>) -> (Exit, Option<Arc<str>>) {
    match result {
        Ok(()) => (Exit::Completed, None),
        Err(error) => {
            tracing::debug!(%error, "a task failed");
            (Exit::Failed(error.cause), Some(error.kept_text()))
        }
    }
}
