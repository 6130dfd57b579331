//! Starting and stopping: threads, actors, and the port through which the service talks to them.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use actix::System;
use plimsoll_core::settings::Settings;
use thiserror::Error;
use tokio::runtime::Builder;

use crate::executor::Executor;
use crate::port::Port;
use crate::recorder::Recorder;
use crate::shutdown::{ShutdownReport, Threads};
use crate::snapshot::{SeatedMachines, Snapshot, SnapshotError};
use crate::wiring::{Ready, current_thread_runtime, on_threads_of_their_own, wire};

/// More threads than this never run futures of the executor.
const WORKERS_MAX: usize = 1_024;

/// What an engine is started with.
pub struct EngineOptions {
    pub settings: Settings,
    /// What runs the tasks; without one the service carries out the assignments itself.
    pub executor: Option<Arc<dyn Executor>>,
    /// Assignments that the service may have before it acknowledges some.
    pub assignment_window: u64,
    /// Commands that fit on the lane.
    pub lane_capacity: usize,
    /// Actors that share the agents of all nodes.
    pub agent_shards: usize,
    /// Threads that run the executor's futures.
    pub worker_threads: usize,
    /// How long an execution may go on after it was told to stop.
    pub stop_grace: Duration,
    pub recorder: Option<Arc<Recorder>>,
    pub restore: Option<Snapshot>,
}

impl std::fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineOptions").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    #[error("a thread cannot be started")]
    Thread(#[source] std::io::Error),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("the deciding thread ended before it was ready")]
    EndedEarly,
}

/// A running engine and its threads.
#[derive(Debug)]
pub struct Engine {
    port: Port,
    threads: Option<Threads>,
    recorder: Option<Arc<Recorder>>,
}

impl Engine {
    pub fn start(options: EngineOptions) -> Result<Engine, EngineError> {
        let recorder = options.recorder.clone();
        // Before any thread is there: a bad snapshot leaves nothing behind.
        let machines = options.restore.as_ref().map(Snapshot::machines).transpose()?;
        let workers = Builder::new_multi_thread()
            .worker_threads(options.worker_threads.clamp(1, WORKERS_MAX))
            .thread_name("plimsoll-worker")
            .enable_all()
            .build()
            .map_err(EngineError::Thread)?;
        let (ready, wired) = mpsc::channel();
        let worker_handle = workers.handle().clone();
        let deciding = std::thread::Builder::new()
            .name("plimsoll-decide".into())
            .spawn(move || decide(options, machines, worker_handle, &ready))
            .map_err(EngineError::Thread)?;
        match wired.recv() {
            Ok(Ready { port, arbiters, shards }) => {
                let threads = Threads { deciding, arbiters, shards, workers };
                Ok(Engine { port, threads: Some(threads), recorder })
            }
            Err(_) => {
                let _ = deciding.join();
                workers.shutdown_background();
                Err(EngineError::EndedEarly)
            }
        }
    }

    /// Lets the agent of this node panic at once, to see what becomes of it.
    #[cfg(feature = "sabotage")]
    pub fn crash_agent(&self, node: plimsoll_core::id::NodeId) {
        let shards = &self.threads.as_ref().expect("it runs").shards;
        let shard = &shards[node.index() % shards.len()];
        shard.do_send(crate::agents::SabotageAgent(node));
        // The next thing it hears says nothing.
        let nothing =
            plimsoll_core::messages::AgentMessage::Wanted { session: u64::MAX, attempts: Vec::new() };
        metrics::gauge!("plimsoll_mailbox_depth", "machine" => "NodeAgents").increment(1.0);
        shard.do_send(crate::agents::AgentBatch(vec![(node, nothing)]));
    }

    #[cfg(test)]
    pub(crate) fn shards(&self) -> &[actix::Addr<crate::agents::AgentShard>] {
        &self.threads.as_ref().expect("it runs").shards
    }

    pub fn port(&self) -> &Port {
        &self.port
    }

    /// Stops everything within the deadline. Blocks; to be called where blocking is allowed.
    pub fn stop(mut self, deadline: Duration) -> ShutdownReport {
        self.stop_threads(deadline)
    }

    fn stop_threads(&mut self, deadline: Duration) -> ShutdownReport {
        let Some(threads) = self.threads.take() else { return ShutdownReport::default() };
        let port = self.port.clone();
        let recorder = self.recorder.take();
        // A thread of its own: a runtime must not be waited for inside another one.
        let reaper = std::thread::Builder::new()
            .name("plimsoll-stop".into())
            .spawn(move || threads.end(&port, deadline, recorder.as_deref()));
        match reaper {
            Ok(reaper) => reaper.join().unwrap_or_default(),
            Err(error) => {
                tracing::error!(%error, "the runtime cannot be stopped in order");
                ShutdownReport::default()
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        const DEADLINE: Duration = Duration::from_secs(5);
        self.stop_threads(DEADLINE);
    }
}

/// The life of the deciding thread.
fn decide(
    options: EngineOptions,
    machines: Option<SeatedMachines>,
    workers: tokio::runtime::Handle,
    ready: &mpsc::Sender<Ready>,
) {
    let runner = System::with_tokio_rt(current_thread_runtime);
    let wired = runner.block_on(async { wire(options, machines, workers, on_threads_of_their_own) });
    if ready.send(wired).is_err() {
        return;
    }
    if let Err(error) = runner.run() {
        tracing::error!(%error, "the deciding thread ended badly");
    }
}
