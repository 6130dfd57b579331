//! How the nodes and the jobs of a dry run spent their time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cluster_state::{ClusterState, Usage};
use crate::job_state::Spent;
use crate::messages::StateTime;
use crate::spec::Condition;
use crate::time::{Span, Time};

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct UsageReport {
    /// When the dry run began and ended, in seconds.
    pub from: f64,
    pub until: f64,
    /// In the order of the file.
    pub nodes: Vec<NodeTime>,
    /// By name.
    pub pools: Vec<PoolTime>,
    /// In the order of their submission.
    pub jobs: Vec<JobTime>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NodeTime {
    pub node: String,
    pub pool: String,
    pub states: Vec<StateSeconds>,
    /// An entry whenever its usage or its condition changed, as many as are kept, oldest first.
    pub history: Vec<UsageStep>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PoolTime {
    pub pool: String,
    pub nodes: u64,
    /// In sum over its nodes.
    pub states: Vec<StateSeconds>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StateSeconds {
    pub condition: &'static str,
    pub usage: &'static str,
    pub seconds: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UsageStep {
    pub from: f64,
    pub condition: &'static str,
    pub usage: &'static str,
}

/// Seconds that the attempts of a job took, in sum; those that still go on are counted up to the end.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct JobTime {
    pub job: String,
    /// From being bound to a node until they ran.
    pub provisioning: f64,
    pub running: f64,
}

type Sums = BTreeMap<(Condition, Usage), Span>;

fn add(sums: &mut Sums, times: &[StateTime]) {
    for time in times {
        let sum = sums.entry((time.condition, time.usage)).or_default();
        *sum = Span(sum.0.saturating_add(time.span.0));
    }
}

fn seconds(sums: Sums) -> Vec<StateSeconds> {
    let seconds = |((condition, usage), span): ((Condition, Usage), Span)| StateSeconds {
        condition: condition.name(),
        usage: usage.name(),
        seconds: span.as_seconds(),
    };
    sums.into_iter().map(seconds).collect()
}

impl JobTime {
    pub(super) fn new(job: &str, spent: Spent) -> JobTime {
        let (provisioning, running) = (spent.provisioning.as_seconds(), spent.running.as_seconds());
        JobTime { job: job.to_owned(), provisioning, running }
    }
}

impl UsageReport {
    pub(super) fn new(from: Time, until: Time, cluster: &ClusterState, jobs: Vec<JobTime>) -> UsageReport {
        let (from, end) = (from.as_seconds(), until.as_seconds());
        let mut report = UsageReport { from, until: end, jobs, ..UsageReport::default() };
        report.count_nodes(until, cluster);
        report
    }

    fn count_nodes(&mut self, until: Time, cluster: &ClusterState) {
        let mut pools: BTreeMap<&str, (u64, Sums)> = BTreeMap::new();
        for (id, node) in cluster.nodes() {
            let (times, mut sums) = (cluster.time_by_usage(id, until), Sums::new());
            let (nodes, of_pool) = pools.entry(&node.facts.pool).or_default();
            *nodes += 1;
            add(of_pool, &times);
            add(&mut sums, &times);
            let history = cluster.usage_entries(id).into_iter().map(|entry| UsageStep {
                from: entry.from.as_seconds(),
                condition: entry.condition.name(),
                usage: entry.usage.name(),
            });
            self.nodes.push(NodeTime {
                node: node.facts.name.clone(),
                pool: node.facts.pool.clone(),
                states: seconds(sums),
                history: history.collect(),
            });
        }
        let of_pool = |(pool, (nodes, sums)): (&str, (u64, Sums))| PoolTime {
            pool: pool.to_owned(),
            nodes,
            states: seconds(sums),
        };
        self.pools = pools.into_iter().map(of_pool).collect();
    }
}
