//! The actix shells around the machines of `plimsoll-core`: mailboxes, timers, threads and lanes.
//!
//! No decision is made in here. Each deciding machine lives in a `Shell` on one dedicated
//! thread; agents live in shards on another; the service feeds a bounded lane that the front
//! drains in slices, and reads a board that is written behind its back.

mod agents;
mod assignments;
mod backlog;
mod begun;
mod board;
#[cfg(test)]
mod board_tests;
mod clock;
mod commands;
mod credit;
mod doorbell;
mod engine;
mod executions;
mod executor;
mod fatal;
mod flag;
mod front;
mod herald;
mod lane;
mod meters;
mod monitor;
mod port;
mod preparations;
mod recorder;
mod replies;
mod router;
mod share_gauges;
mod shell;
mod shutdown;
mod slice;
mod snapshot;
mod subscriptions;
#[cfg(test)]
mod telling_tests;
#[cfg(test)]
mod tests;
mod vital;
mod wiring;
mod work;

pub use assignments::{Acknowledged, Assignment, Assignments, Order};
pub use board::{Board, JobStatus, NodeStatus, Preemption, ReservationStatus, TaskFailure};
pub use commands::{Command, ReplySender};
pub use engine::{Engine, EngineError, EngineOptions};
pub use executor::{BoxFuture, Executor, FAILURE_TEXT_MAX, NodeContext, StopSignal, TaskContext, TaskError};
pub use fatal::{Fatal, FatalError, Part};
pub use lane::PushError;
pub use port::{Port, Stopped, Wires};
pub use recorder::Recorder;
pub use shutdown::ShutdownReport;
pub use snapshot::{Snapshot, SnapshotError, SnapshotResult};
pub use subscriptions::{Event, EventBatch, Subscription};
