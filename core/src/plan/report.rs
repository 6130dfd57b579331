//! What a dry run decided, in the form that people and programs read.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::explanation::Explanation;
use crate::share_report::ShareStatus;
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
    /// How the classes and queues stand when the dry run ends; none where everything is one share.
    pub shares: Vec<ShareSummary>,
}

/// How a class, or a queue in it, stands, and how many of its tasks were assigned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShareSummary {
    #[serde(flatten)]
    pub status: ShareStatus,
    pub assigned: u64,
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
    /// Adds how the shares stand by now.
    pub(super) fn add_shares(&mut self, statuses: Vec<ShareStatus>) {
        let mut by_class: BTreeMap<&str, u64> = BTreeMap::new();
        let mut by_queue: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let assigned = |one: &&Decision| matches!(one.kind, DecisionKind::Assign | DecisionKind::Grow);
        for one in self.decisions.iter().filter(assigned) {
            let class = one.class.as_deref().unwrap_or_default();
            *by_class.entry(class).or_default() += 1;
            *by_queue.entry((class, one.queue.as_deref().unwrap_or_default())).or_default() += 1;
        }
        let summary = |status: ShareStatus| {
            let name = &status.name;
            let assigned = match &name.queue {
                None => by_class.get(&*name.class),
                Some(queue) => by_queue.get(&(&*name.class, &**queue)),
            };
            ShareSummary { assigned: assigned.copied().unwrap_or(0), status }
        };
        self.summary.shares = statuses.into_iter().map(summary).collect();
    }

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
