//! What the nodes did, as anybody could have written it down by looking at them after every turn: the
//! usage history must say the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster_state::{ClusterState, ReservationStage, Usage};
use crate::id::NodeId;
use crate::machine::{Broken, promise};
use crate::messages::{StateTime, UsageEntry};
use crate::outcome::Phase;
use crate::spec::Condition;
use crate::time::{Span, Time};

#[derive(Clone, Debug, Default)]
pub(super) struct UsageLog {
    /// By node and the first session of its agent, which no other node has.
    nodes: BTreeMap<(NodeId, u64), Vec<UsageEntry>>,
    /// How many nodes were in each state when somebody last looked, when that was, and what came before.
    counts: [u64; Usage::ALL.len()],
    looked: Time,
    totals: [Span; Usage::ALL.len()],
}

impl UsageLog {
    /// Writes down what has changed in a turn, and compares.
    pub(super) fn watch(&mut self, now: Time, cluster: &ClusterState) -> Result<(), Broken> {
        let there: BTreeSet<(NodeId, u64)> = cluster.nodes().map(|(id, node)| (id, node.session)).collect();
        self.nodes.retain(|key, _| cluster.keeps_usage() && there.contains(key));
        if !cluster.keeps_usage() {
            *self = UsageLog::default();
            return Ok(());
        }
        let passed = now.since(self.looked).0;
        for (total, nodes) in self.totals.iter_mut().zip(self.counts) {
            *total = Span(total.0 + nodes * passed);
        }
        let mut counts = [0; Usage::ALL.len()];
        let furthest = furthest_along(cluster);
        for (id, session) in there {
            let (condition, usage) = plain_usage(cluster, id, furthest.get(&id).copied());
            counts[usage as usize] += 1;
            let log = self.nodes.entry((id, session)).or_default();
            let same = |last: &UsageEntry| (last.condition, last.usage) == (condition, usage);
            if !log.last().is_some_and(same) {
                log.push(UsageEntry { from: now, condition, usage });
            }
            let kept = cluster.usage_entries(id);
            promise!(
                7,
                !kept.is_empty() && log.ends_with(&kept),
                "{id} was {log:?}, its history is {kept:?}"
            );
            let (spent, told) = (sum(log, now), cluster.time_by_usage(id, now));
            promise!(7, spent == told, "{id} spent {spent:?}, its history says {told:?}");
        }
        let told = cluster.nodes_by_usage();
        promise!(7, counts == told, "the nodes are in {counts:?}, the history says {told:?}");
        (self.counts, self.looked) = (counts, now);
        let (totals, told) = (self.totals, cluster.total_time_by_usage(now));
        promise!(7, totals == told, "all nodes spent {totals:?}, the history says {told:?}");
        Ok(())
    }
}

/// How far along the furthest task of each node is, from the ledger alone.
fn furthest_along(cluster: &ClusterState) -> BTreeMap<NodeId, Usage> {
    let mut furthest: BTreeMap<NodeId, Usage> = BTreeMap::new();
    for live in cluster.live() {
        let usage = match live.phase {
            Phase::Scheduled => Usage::Scheduled,
            Phase::Waiting => Usage::Waiting,
            Phase::Installing => Usage::Installing,
            Phase::Running => Usage::Running,
        };
        let known = furthest.entry(live.node).or_insert(usage);
        *known = usage.max(*known);
    }
    furthest
}

/// The state of a node as seed and people define it, from how far its furthest task is along.
fn plain_usage(cluster: &ClusterState, id: NodeId, furthest: Option<Usage>) -> (Condition, Usage) {
    let node = cluster.node(id).expect("the caller has seen it");
    let reserved = node.reservation.as_ref().map(|reservation| match reservation.stage {
        ReservationStage::Waiting => Usage::Waiting,
        ReservationStage::Installing | ReservationStage::Returning => Usage::Installing,
        ReservationStage::Running => Usage::Running,
    });
    let usage = match furthest.into_iter().chain(reserved).max() {
        _ if node.condition == Condition::Broken => Usage::Idle,
        _ if node.condition == Condition::Manual => reserved.unwrap_or(Usage::Idle),
        Some(usage) => usage,
        None if node.takes_work() && cluster.is_pending(id) => Usage::Pending,
        None => Usage::Idle,
    };
    (node.condition, usage)
}

fn sum(log: &[UsageEntry], now: Time) -> Vec<StateTime> {
    let mut times: BTreeMap<(Condition, Usage), u64> = BTreeMap::new();
    for (index, entry) in log.iter().enumerate() {
        let until = log.get(index + 1).map_or(now, |next| next.from);
        *times.entry((entry.condition, entry.usage)).or_default() += until.since(entry.from).0;
    }
    let time = |((condition, usage), span)| StateTime { condition, usage, span: Span(span) };
    times.into_iter().map(time).collect()
}
