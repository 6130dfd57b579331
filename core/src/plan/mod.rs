//! Dry runs: what would be decided for a cluster and a workload described in one file.

pub mod format;
mod scenario;

pub use scenario::{Happening, RunningTasks, Scenario, ScenarioEvent, ScenarioJob};
