//! How a runtime is put together.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_actors::{Engine, EngineError, EngineOptions, Executor, Recorder, Snapshot};
use plimsoll_core::codec::CodecError;
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::{Filters, Invalid, NodeFilter};
use thiserror::Error;

use crate::config::Config;
use crate::runtime::Runtime;

/// Why a runtime did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Threads or actors could not be started.
    #[error("the runtime cannot be started")]
    Engine(#[from] EngineError),
    /// A turn log begins with the machines as new: a restored run cannot be replayed.
    #[error("a runtime that is restored from a snapshot cannot be recorded")]
    RecordRestored,
    /// A restored runtime goes on with the settings of its snapshot.
    #[error(
        "the configuration `{0}` is set beside a snapshot, which carries its own; change it with `update_settings`"
    )]
    ConfigRestored(String),
    /// The snapshot to restore from cannot be read.
    #[error("the snapshot cannot be read")]
    Snapshot(#[from] CodecError),
    /// Filters cannot be used: one has no name, or two share one.
    #[error("the filters cannot be used: {0}")]
    Filters(Invalid),
    /// The runtime that is to be restored judged nodes by a filter that it was not given this time.
    #[error("the runtime of the snapshot had a filter `{0}`, which it was not given this time")]
    FilterMissing(String),
}

/// Puts a runtime together; [`Builder::start`] brings it to life.
#[must_use]
pub struct Builder {
    config: Option<Config>,
    executor: Option<Arc<dyn Executor>>,
    assignment_window: u64,
    lane_capacity: usize,
    agent_shards: usize,
    worker_threads: usize,
    stop_grace: Duration,
    recorder: Option<Arc<Recorder>>,
    restore: Option<Vec<u8>>,
    filters: Vec<Arc<dyn NodeFilter>>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let config = self.config.as_ref().map(Config::name);
        f.debug_struct("Builder").field("config", &config).finish_non_exhaustive()
    }
}

/// Commands that fit on the lane unless said otherwise.
const LANE_CAPACITY: usize = 4_096;
/// Measured (`cargo bench --bench agents`): with 20,000 nodes one actor for all of them is as good as a
/// few, hundreds halve the throughput, and one for each costs forty times as much.
const AGENT_SHARDS: usize = 1;
const ASSIGNMENT_WINDOW: u64 = 10_000;
const WORKER_THREADS: usize = 2;
const STOP_GRACE: Duration = Duration::from_secs(10);

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            config: None,
            executor: None,
            assignment_window: ASSIGNMENT_WINDOW,
            lane_capacity: LANE_CAPACITY,
            agent_shards: AGENT_SHARDS,
            worker_threads: WORKER_THREADS,
            stop_grace: STOP_GRACE,
            recorder: None,
            restore: None,
            filters: Vec::new(),
        }
    }

    /// How to schedule; the default configuration unless said otherwise.
    pub fn config(mut self, config: Config) -> Builder {
        self.config = Some(config);
        self
    }

    /// What runs the tasks. Without one the service carries out the assignments itself: see
    /// [`Runtime::assignments`].
    pub fn executor(mut self, executor: impl Executor) -> Builder {
        self.executor = Some(Arc::new(executor));
        self
    }

    /// How many commands may wait in the lane before callers have to.
    pub fn lane_capacity(mut self, commands: usize) -> Builder {
        self.lane_capacity = commands;
        self
    }

    /// How many assignments a service that carries them out itself may have before it acknowledges
    /// some; no more are made until it does.
    pub fn assignment_window(mut self, assignments: u64) -> Builder {
        self.assignment_window = assignments;
        self
    }

    /// How many actors share the node agents.
    pub fn agent_shards(mut self, shards: usize) -> Builder {
        self.agent_shards = shards;
        self
    }

    /// How many threads run the executor's futures.
    pub fn worker_threads(mut self, threads: usize) -> Builder {
        self.worker_threads = threads;
        self
    }

    /// How long a task may go on after it was told to stop.
    pub fn stop_grace(mut self, grace: Duration) -> Builder {
        self.stop_grace = grace;
        self
    }

    /// Writes a log of every turn of every machine, at most so many bytes, from which the run can
    /// be replayed. Costs time: every message is written down.
    pub fn record(mut self, sink: impl std::io::Write + Send + 'static, bytes_max: u64) -> Builder {
        self.recorder = Some(Arc::new(Recorder::new(Box::new(sink), bytes_max)));
        self
    }

    /// Goes on from a snapshot taken with [`Runtime::snapshot`]: nothing that was accepted is lost,
    /// open windows keep their deadlines, every node with room is looked at anew, and the settings are
    /// those of the snapshot. What was running begins again; a service that runs the work itself is
    /// told to stop what it may still be at before anything else.
    pub fn restore(mut self, snapshot: Vec<u8>) -> Builder {
        self.restore = Some(snapshot);
        self
    }

    /// Adds a filter of the service: roles that name it run only on nodes of which it says that they will do,
    /// and what waits is told what it says of the others. Whoever restores the runtime brings the same filters.
    ///
    /// ```
    /// use plimsoll::{JobSpec, NodeFacts, NodeFilter, NodeSpec, NodeTest, GroupSpec, RoleSpec, Runtime};
    ///
    /// struct Driver;
    ///
    /// impl NodeFilter for Driver {
    ///     fn name(&self) -> &str {
    ///         "driver"
    ///     }
    ///
    ///     fn prepare(&self, wanted: &str) -> Result<Box<dyn NodeTest>, String> {
    ///         let wanted: u32 = wanted.parse().map_err(|_| "a version such as `535`".to_owned())?;
    ///         Ok(Box::new(move |node: &NodeFacts| {
    ///             let found = node.labels.get("driver").and_then(|driver| driver.parse::<u32>().ok());
    ///             match found {
    ///                 Some(found) if found >= wanted => Ok(()),
    ///                 Some(found) => Err(format!("has the driver {found}")),
    ///                 None => Err("has no driver".to_owned()),
    ///             }
    ///         }))
    ///     }
    /// }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let runtime = Runtime::builder().filter(Driver).start()?;
    /// let handle = runtime.handle();
    /// handle.add_node(NodeSpec::new("old").capacity("gpu", 8).label("driver", "470")).await?;
    /// let role = RoleSpec::new("train", 1).request("gpu", 1).filter("driver", "535");
    /// let job = handle.submit(JobSpec::new("j").group(GroupSpec::new("g").role(role))).await?;
    /// let why = handle.explain_on(job, "old").await?;
    /// assert_eq!(why[0].sentence(), "node old has the driver 470");
    /// # runtime.shutdown(std::time::Duration::from_secs(5)).await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn filter(mut self, filter: impl NodeFilter) -> Builder {
        self.filters.push(Arc::new(filter));
        self
    }

    /// Starts the runtime on threads of its own, from inside or outside any other runtime.
    pub fn start(self) -> Result<Runtime, StartError> {
        if self.recorder.is_some() && self.restore.is_some() {
            return Err(StartError::RecordRestored);
        }
        if let (Some(config), Some(_)) = (&self.config, &self.restore) {
            return Err(StartError::ConfigRestored(config.name().to_owned()));
        }
        let filters = Filters::new(self.filters).map_err(StartError::Filters)?;
        let mut restore = self.restore.as_deref().map(Snapshot::from_bytes).transpose()?;
        if let Some(snapshot) = &mut restore {
            if let Some(missing) = snapshot.settings.filters.missing_in(&filters) {
                return Err(StartError::FilterMissing(missing.to_string()));
            }
            snapshot.settings.filters = filters.clone();
        }
        let settings = Settings { filters, ..self.config.unwrap_or_default().settings().clone() };
        let engine = Engine::start(EngineOptions {
            settings,
            executor: self.executor,
            assignment_window: self.assignment_window,
            lane_capacity: self.lane_capacity,
            agent_shards: self.agent_shards,
            worker_threads: self.worker_threads,
            stop_grace: self.stop_grace,
            recorder: self.recorder,
            restore,
        })?;
        Ok(Runtime::new(engine))
    }
}
