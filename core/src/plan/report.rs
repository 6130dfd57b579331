//! What a dry run decided, in the form that people and programs read.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::explanation::Explanation;
use crate::spec::UnitNames;

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PlanReport {
    /// In the order in which they were made.
    pub decisions: Vec<Decision>,
    pub summary: Summary,
    pub waiting: Vec<WaitingGroup>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Decision {
    /// Seconds.
    pub at: f64,
    pub kind: DecisionKind,
    pub job: String,
    pub group: String,
    pub role: String,
    pub task: u32,
    pub node: String,
    /// The class that the job belongs to, if there are classes.
    pub class: Option<String>,
    /// The queue that the job waits in, if it names one.
    pub queue: Option<String>,
    /// The units that the task was given, by kind, where they have names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<UnitNames>,
    pub why: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecisionKind {
    Assign,
    Stop,
    /// A group that can never fit is ended.
    Fail,
    /// A member joins an elastic group that runs already.
    Grow,
    /// A member of an elastic group stops so that it becomes smaller.
    Shrink,
    /// Nodes are kept for a group as they become free.
    Claim,
    /// They are not any more, and it has not started.
    Revoke,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Summary {
    pub assigned: u64,
    pub stopped: u64,
    pub failed: u64,
    pub assigned_by_class: BTreeMap<String, u64>,
    pub stopped_by_class: BTreeMap<String, u64>,
    pub assigned_by_queue: BTreeMap<String, u64>,
    pub assigned_by_job: BTreeMap<String, u64>,
    pub assigned_by_node: BTreeMap<String, u64>,
}

/// A group of which something waits when the dry run ends.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WaitingGroup {
    pub job: String,
    pub group: String,
    pub tasks: u64,
    pub explanation: Explanation,
    pub sentence: String,
}

fn count(counts: &mut BTreeMap<String, u64>, name: Option<&String>) {
    if let Some(name) = name {
        *counts.entry(name.clone()).or_default() += 1;
    }
}

impl PlanReport {
    pub(super) fn record(&mut self, decision: Decision) {
        let summary = &mut self.summary;
        match decision.kind {
            DecisionKind::Assign | DecisionKind::Grow => {
                summary.assigned += 1;
                *summary.assigned_by_job.entry(decision.job.clone()).or_default() += 1;
                *summary.assigned_by_node.entry(decision.node.clone()).or_default() += 1;
                count(&mut summary.assigned_by_class, decision.class.as_ref());
                count(&mut summary.assigned_by_queue, decision.queue.as_ref());
            }
            DecisionKind::Fail => summary.failed += 1,
            DecisionKind::Claim | DecisionKind::Revoke => {}
            DecisionKind::Stop | DecisionKind::Shrink => {
                summary.stopped += 1;
                count(&mut summary.stopped_by_class, decision.class.as_ref());
            }
        }
        self.decisions.push(decision);
    }
}
