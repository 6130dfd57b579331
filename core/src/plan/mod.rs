//! Dry runs: what would be decided for a cluster and a workload described in one file.

mod courses;
mod error;
pub mod format;
mod lay;
mod reasons;
mod report;
mod run;
mod scenario;
#[cfg(test)]
mod tests;
mod usage;

pub use error::PlanError;
pub use report::{Decision, DecisionKind, PlanReport, ShareSummary, Summary, WaitingGroup};
pub use run::{run, run_with_usage};
pub use scenario::{Happening, RunningTasks, Scenario, ScenarioEvent, ScenarioJob, Which, WhichJobs};
pub use usage::{JobTime, NodeTime, PoolTime, StateSeconds, UsageReport, UsageStep};
