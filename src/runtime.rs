//! A running scheduler and its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_actors::{Assignments, Command, Engine, ShutdownReport};
use plimsoll_core::codec::CodecError;
use thiserror::Error;
use tokio::sync::oneshot;

use crate::builder::Builder;
use crate::error::StoppedError;
use crate::handle::Handle;

/// Why there is no snapshot.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The runtime has stopped.
    #[error(transparent)]
    Stopped(#[from] StoppedError),
    /// The state cannot be written.
    #[error("the state cannot be written")]
    Codec(#[from] CodecError),
}

/// Owns the scheduler and its threads. Dropping it stops them in order; [`Handle`]s may outlive it
/// and get typed errors then.
#[derive(Debug)]
pub struct Runtime {
    engine: Engine,
    handle: Handle,
    assignments_taken: AtomicBool,
}

impl Runtime {
    /// How a runtime begins.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(engine: Engine) -> Runtime {
        let handle = Handle::new(engine.port().clone());
        Runtime { engine, handle, assignments_taken: AtomicBool::new(false) }
    }

    /// What feeds the runtime and asks it; cheap to clone, usable from any thread.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The assignments, for a service that carries them out itself. There is one reader: the second
    /// call answers `None`, and so does a runtime that has an executor.
    pub fn assignments(&self) -> Option<Assignments> {
        if !self.engine.port().assigns() {
            return None;
        }
        let first = !self.assignments_taken.swap(true, Ordering::AcqRel);
        first.then(|| self.engine.port().assignments())
    }

    /// Lets the agent of a node panic, for tests of what becomes of its work; false if there is no such node.
    #[cfg(feature = "test-util")]
    pub fn crash_agent(&self, node: &str) -> bool {
        let id = self.engine.port().board().node_id(node);
        id.map(|id| self.engine.crash_agent(id)).is_ok()
    }

    /// The whole state at one consistent moment, to be given to [`Builder::restore`]. The runtime
    /// goes on afterwards.
    pub async fn snapshot(&self) -> Result<Vec<u8>, SnapshotError> {
        let (reply, answer) = oneshot::channel();
        self.handle.push(Command::Snapshot(reply)).await?;
        let snapshot = answer.await.map_err(|_| self.handle.stopped())?;
        Ok(snapshot?.to_bytes()?)
    }

    /// Takes nothing more, hands on what was taken, stops what runs, and ends every thread. What has
    /// not ended at the deadline is dropped.
    pub async fn shutdown(self, deadline: Duration) -> ShutdownReport {
        let (done, report) = oneshot::channel();
        let Runtime { engine, .. } = self;
        let stopping = std::thread::Builder::new().name("plimsoll-shutdown".into()).spawn(move || {
            let _ = done.send(engine.stop(deadline));
        });
        match stopping {
            Ok(thread) => {
                let report = report.await.unwrap_or_default();
                // It has said its last word; this does not block.
                let _ = thread.join();
                report
            }
            // The engine was dropped with the closure, which stopped it.
            Err(_) => ShutdownReport::default(),
        }
    }
}
