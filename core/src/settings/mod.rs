//! The validated settings: one shared value, switched at turn boundaries.

pub mod bounds;
mod elastic;
mod faulty;
mod monitor;
mod raw;
mod raw_sections;
mod raw_share_parts;
mod raw_shares;
#[cfg(test)]
mod raw_tests;
mod rebalance;
mod shares;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::document::{Fault, FaultKind, Faults};
use crate::resources::Kinds;
use crate::spec::{Filters, NodeChoice, OnUnsatisfiable, PoolDefault};
use crate::time::Span;

pub use elastic::{ElasticSettings, RawElastic};
pub use faulty::{FaultySettings, RawFaulty};
pub use monitor::{MonitorSettings, RawMonitor};
pub use raw::{RawSettings, declare_kind};
pub use raw_sections::{RawDeadlines, RawLimits, RawRetention};
pub use raw_shares::{RawClass, RawQueue, RawRate, RawRates, RawShares};
pub use rebalance::{RawRebalance, RebalanceSettings};
pub use shares::{
    BAND_DEFAULT, Band, COST_SCALE, Ceiling, ClassSettings, DOMINANT_PARTS, JobKey, QueueSettings, Rates,
    ShareKey, ShareSettings, ShareUnit,
};

/// Everything the machines need to know about policy and bounds. Built through
/// [`RawSettings::validate`], so a value of this type is always usable.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Counts the changes; machines and explanations name the version they used.
    pub version: u64,
    pub kinds: Kinds,
    pub window: WindowSettings,
    /// Which of several nodes with room is taken, where a role does not say.
    pub placement: NodeChoice,
    /// Who stays in one pool where a job does not say.
    pub pool: PoolDefault,
    /// What becomes of a group that can never fit, where it does not say.
    pub on_unsatisfiable: OnUnsatisfiable,
    pub limits: Limits,
    pub retention: Retention,
    pub deadlines: DeadlineSettings,
    pub shares: ShareSettings,
    /// How elastic groups change their size.
    pub elastic: ElasticSettings,
    /// How long something waits until nodes may be kept for it.
    pub claim_after: ClaimAfter,
    /// When a node is avoided, and when it is taken out of use.
    pub faulty: FaultySettings,
    /// How often the machines are compared.
    pub monitor: MonitorSettings,
    /// When running work may be taken away.
    pub rebalance: RebalanceSettings,
    /// So many thousandths of a CPU a task must bring for each of its GPUs; 0 for none.
    pub gpu_cpu_ratio: u32,
    /// The filters of the embedding service, which never change while a runtime goes on.
    pub filters: Filters,
}

/// A length of time that is a minute unless somebody says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClaimAfter(pub Span);

impl Default for ClaimAfter {
    fn default() -> ClaimAfter {
        ClaimAfter(bounds::CLAIM_AFTER.default)
    }
}

impl Settings {
    /// Puts other settings into the place of these, whose filters stay.
    pub fn replace(current: &mut Arc<Settings>, next: Arc<Settings>) -> Arc<Settings> {
        let before = std::mem::replace(current, next);
        if !current.filters.are(&before.filters) {
            Arc::make_mut(current).filters = before.filters.clone();
        }
        before
    }

    /// These settings with parts of them changed, as a file would give them, under the next version. An edit
    /// with problems answers all of them.
    pub fn edited(
        &self,
        edit: impl FnOnce(&mut RawSettings) -> Result<(), Faults>,
    ) -> Result<Settings, Faults> {
        let mut raw = RawSettings::from(self);
        edit(&mut raw)?;
        let settings = raw.validate()?;
        // Amounts are stored by the number of their kind.
        if !settings.kinds.continues(&self.kinds) {
            let expected = "kinds can be added at the end while work goes on, not taken away or moved";
            return Err(Faults::from(Fault::new("resources", FaultKind::Refused, None, expected)));
        }
        Ok(Settings { version: self.version + 1, filters: self.filters.clone(), ..settings })
    }

    /// For nodes that nobody listens to: they are heard unless somebody says that they are not.
    #[must_use]
    pub fn without_heartbeats(mut self) -> Settings {
        self.deadlines.heartbeat = Span::ZERO;
        self
    }

    /// How long something waits until nodes may be kept for it; nothing if they never are.
    pub fn claims_after(&self) -> Option<Span> {
        Some(self.claim_after.0).filter(|after| *after < bounds::CLAIM_AFTER.maximum)
    }
}

/// When identical tasks that arrive one by one are planned together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WindowSettings {
    /// A window closes this long after the last identical arrival; zero means at once.
    pub gap: Span,
    /// A window closes this long after its first arrival at the latest.
    pub cap: Span,
    /// The first arrival after quiet is planned at once and the window opens behind it.
    pub adaptive: bool,
}

/// Bounds on what callers may ask for, so that nobody can make memory or time unbounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Jobs that are not finished yet.
    pub jobs: u64,
    pub tasks_per_job: u64,
    pub groups_per_job: u64,
    pub roles_per_group: u64,
    pub nodes: u64,
    /// Bytes of any one name.
    pub name_length: u64,
    pub labels_per_node: u64,
    /// Bytes of a label's key or value.
    pub label_length: u64,
    /// Tasks placed in one turn of the Scheduler; an atomic group counts as it is.
    pub placements_per_turn: u64,
}

/// How long finished jobs can be asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Retention {
    /// At most this many finished jobs are kept.
    pub finished_jobs: u64,
    /// A finished job is kept this long at most.
    pub finished_age: Span,
    /// So many entries of the usage history are kept of one node.
    pub usage_entries_per_node: u64,
    /// And of all nodes together; 0 keeps no history at all.
    pub usage_entries: u64,
}

/// How long an attempt or a node may stay in a state before something is done about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeadlineSettings {
    /// From dispatch until the node agent says that the attempt has begun.
    pub dispatch: Span,
    /// From the beginning of the preparations on the node until the attempt runs.
    pub prepare: Span,
    /// From then until its end, for attempts whose role gives no timeout.
    pub run: Span,
    /// What an attempt gets on top of the timeout of its role.
    pub overhead: Span,
    /// From a stop until the node agent confirms it; then the node counts as silent.
    pub stop: Span,
    /// From one heartbeat of a node until it is suspect unless there was another; zero lets only the host say
    /// that a node is silent.
    pub heartbeat: Span,
    /// From the first missed heartbeat until a suspect node is given up as down.
    pub down: Span,
}

impl Default for WindowSettings {
    fn default() -> WindowSettings {
        WindowSettings {
            gap: bounds::WINDOW.default,
            cap: bounds::WINDOW_CAP.default,
            adaptive: bounds::WINDOW_ADAPTIVE,
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            jobs: bounds::JOBS.default,
            tasks_per_job: bounds::TASKS_PER_JOB.default,
            groups_per_job: bounds::GROUPS_PER_JOB.default,
            roles_per_group: bounds::ROLES_PER_GROUP.default,
            nodes: bounds::NODES.default,
            name_length: bounds::NAME_LENGTH.default,
            labels_per_node: bounds::LABELS_PER_NODE.default,
            label_length: bounds::LABEL_LENGTH.default,
            placements_per_turn: bounds::PLACEMENTS_PER_TURN.default,
        }
    }
}

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            finished_jobs: bounds::FINISHED_JOBS.default,
            finished_age: bounds::FINISHED_AGE.default,
            usage_entries_per_node: bounds::USAGE_ENTRIES_PER_NODE.default,
            usage_entries: bounds::USAGE_ENTRIES.default,
        }
    }
}

impl Default for DeadlineSettings {
    fn default() -> DeadlineSettings {
        DeadlineSettings {
            dispatch: bounds::DISPATCH.default,
            prepare: bounds::PREPARE.default,
            run: bounds::RUN.default,
            overhead: bounds::OVERHEAD.default,
            stop: bounds::STOP.default,
            heartbeat: bounds::HEARTBEAT.default,
            down: bounds::DOWN.default,
        }
    }
}
