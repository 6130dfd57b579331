//! The validated settings: one shared value, switched at turn boundaries.

use serde::{Deserialize, Serialize};

use crate::resources::Kinds;
use crate::time::Span;

/// Everything the machines need to know about policy and bounds. Built through
/// [`RawSettings::validate`](raw::RawSettings::validate), so a value of this type is always usable.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Counts the changes; machines and explanations name the version they used.
    pub version: u64,
    pub kinds: Kinds,
    pub window: WindowSettings,
    pub limits: Limits,
    pub retention: Retention,
    pub deadlines: DeadlineSettings,
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
}

/// How long finished jobs can be asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Retention {
    /// At most this many finished jobs are kept.
    pub finished_jobs: u64,
    /// A finished job is kept this long at most.
    pub finished_age: Span,
}

/// How long an attempt or a node may stay in a state before something is done about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeadlineSettings {
    /// From dispatch until the node agent says that the attempt has begun.
    pub dispatch: Span,
    /// From the beginning until the end of an attempt.
    pub run: Span,
    /// From a stop until the node agent confirms it; then the node counts as silent.
    pub stop: Span,
    /// From the first missed heartbeat until a suspect node is given up as down.
    pub down: Span,
}

impl Default for WindowSettings {
    fn default() -> WindowSettings {
        WindowSettings { gap: Span::from_millis(50), cap: Span::from_millis(1_000), adaptive: true }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            jobs: 1_000_000,
            tasks_per_job: 10_000_000,
            groups_per_job: 1_024,
            roles_per_group: 64,
            nodes: 1_000_000,
            name_length: 256,
            labels_per_node: 128,
            label_length: 256,
        }
    }
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { finished_jobs: 10_000, finished_age: Span::from_whole_seconds(3_600) }
    }
}

impl Default for DeadlineSettings {
    fn default() -> DeadlineSettings {
        DeadlineSettings {
            dispatch: Span::from_whole_seconds(30),
            run: Span::from_whole_seconds(86_400),
            stop: Span::from_whole_seconds(30),
            down: Span::from_whole_seconds(60),
        }
    }
}
