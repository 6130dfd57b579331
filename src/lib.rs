//! Plimsoll: an embeddable cluster scheduler.
//!
//! A service starts a [`Runtime`], feeds its [`Handle`] with nodes and jobs, and the runtime decides
//! within microseconds what runs where, runs it through the service's [`Executor`], and explains
//! what waits.
//!
//! ```
//! use plimsoll::{JobSpec, NodeSpec, Runtime, TaskContext, tasks};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let executor = tasks(|task: TaskContext| async move {
//!     println!("task {} of {} on {}", task.index(), task.job.name, task.node);
//!     Ok(())
//! });
//! let runtime = Runtime::builder().executor(executor).start()?;
//! let handle = runtime.handle();
//! handle.add_node(NodeSpec::new("n1").capacity("cpu", 4)).await?;
//! let job = handle.submit(JobSpec::bag("hello", 10).request("cpu", 1)).await?;
//! let status = handle.wait(job).await?;
//! assert_eq!(status.completed, 10);
//! runtime.shutdown(std::time::Duration::from_secs(5)).await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Config`] says how to schedule; a [`Scenario`](core::plan::Scenario), read from a dry-run
//! file with [`scenario::load`], says what would be scheduled.

#![warn(missing_docs)]

/// The examples of the README compile and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod builder;
mod config;
mod error;
mod handle;
mod input;
mod node_specs;
#[cfg(target_os = "linux")]
mod process;
mod ready_made;
mod replay;
mod runtime;
pub mod scenario;
mod specs;
#[cfg(feature = "test-util")]
pub mod test_util;

pub use builder::{Builder, StartError};
pub use config::Config;
pub use error::{RequestError, StoppedError, SubmitError};
pub use handle::{Explained, Handle, Reprioritise, SubmitMany, TaskOutcome};
pub use input::{Format, InputError};
pub use node_specs::{NodePatch, NodeSpec};
pub use plimsoll_actors::{
    Acknowledged, Assignment, Assignments, BoxFuture, EngineError, Event, EventBatch, Executor, FatalError,
    JobStatus, NodeContext, NodeStatus, Order, Part, Preemption, ReservationStatus, ShutdownReport,
    StopSignal, Stopped, Subscription, TaskContext, TaskError, TaskFailure,
};
pub use plimsoll_core as core;
pub use plimsoll_core::cluster_state::{ReservationStage, Usage};
pub use plimsoll_core::explanation::{Explanation, NodeExplanation};
pub use plimsoll_core::id::{GroupId, JobId, TaskId};
pub use plimsoll_core::messages::{
    AttemptRecord, RoleSize, StateTime, TaskHistory, UsageAnswer, UsageEntry, UsageOf,
};
pub use plimsoll_core::outcome::{FailureCause, Outcome};
pub use plimsoll_core::share_report::{ShareName, ShareStatus};
pub use plimsoll_core::spec::{
    Access, CommandSpec, CommonFacts, Filters, Hops, NodeFacts, NodeFilter, NodeTest, OnPreempt,
    OnUnsatisfiable, OutputTo, PoolRule, PoolState, Retries, RetryOn,
};
#[cfg(target_os = "linux")]
pub use process::{Output, OutputBook, ProcessExecutor};
pub use ready_made::{Blocking, Tasks, blocking_tasks, tasks};
pub use replay::{ReplayError, replay, replay_with};
pub use runtime::{Runtime, SnapshotError};
pub use specs::{Amount, GroupSpec, JobSpec, RoleSpec};
