//! What can be measured of each machine: counted from what a turn said, or looked at now and then. The
//! handles are made once; without a recorder they do nothing.

use std::cell::Cell;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use plimsoll_core::cluster_state::{ClusterState, Usage};
use plimsoll_core::id::NodeId;
use plimsoll_core::job_state::{JobState, Spent};
use plimsoll_core::messages::{
    ClusterMessage, HostMessage, JobEvent, Outbox, RunnerMessage, SchedulerMessage,
};
use plimsoll_core::outcome::Outcome;
use plimsoll_core::rebalancer::Rebalancer;
use plimsoll_core::scheduler::Scheduler;
use plimsoll_core::task_runner::TaskRunner;
use plimsoll_core::time::{Span, Time};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampled {
    All,
    Part,
}

/// A machine of which something can be measured.
pub(crate) trait Measured: Sized {
    type Meter: Unpin + 'static;

    fn meter() -> Self::Meter;

    /// Counts what a turn said that took this long.
    fn count(meter: &Self::Meter, out: &Outbox, took: Span) {
        let _ = (meter, out, took);
    }

    /// Looks at the machine, some time after a turn. Whoever has more to look at than is good at one go
    /// says so, and is asked again soon.
    fn sample(&self, now: Time, meter: &mut Self::Meter) -> Sampled {
        let _ = (now, meter);
        Sampled::All
    }
}

pub(crate) struct SchedulerMeter {
    decisions: Counter,
    stops: Counter,
    decision_seconds: Histogram,
    window_tasks: Histogram,
    waiting: Gauge,
}

impl Measured for Scheduler {
    type Meter = SchedulerMeter;

    fn meter() -> SchedulerMeter {
        SchedulerMeter {
            decisions: counter!("plimsoll_decisions_total"),
            stops: counter!("plimsoll_stops_total"),
            decision_seconds: histogram!("plimsoll_decision_seconds"),
            window_tasks: histogram!("plimsoll_window_tasks"),
            waiting: gauge!("plimsoll_waiting_tasks"),
        }
    }

    fn count(meter: &SchedulerMeter, out: &Outbox, took: Span) {
        for message in &out.cluster {
            match message {
                ClusterMessage::Commit(plan) => {
                    meter.decisions.increment(plan.placements.len() as u64);
                    meter.decision_seconds.record(took.as_seconds());
                    plan.parts.iter().for_each(|part| meter.window_tasks.record(f64::from(part.count)));
                }
                ClusterMessage::Stop(orders) => meter.stops.increment(orders.len() as u64),
                _ => {}
            }
        }
    }

    fn sample(&self, _: Time, meter: &mut SchedulerMeter) -> Sampled {
        meter.waiting.set(self.waiting_tasks() as f64);
        Sampled::All
    }
}

pub(crate) struct ClusterMeter {
    conflicts: Counter,
    started: Counter,
    /// By [`Outcome::index`].
    ended: [Counter; Outcome::NAMES.len()],
    /// By [`Usage::ALL`].
    nodes: [Gauge; Usage::ALL.len()],
    node_seconds: [Counter; Usage::ALL.len()],
    live: Gauge,
    /// By resource kind, made when a kind is first seen.
    utilisation: Vec<Gauge>,
    walk: Walk,
}

/// The nodes are added up slice by slice.
#[derive(Default)]
struct Walk {
    next: u32,
    live: u64,
    capacity: Vec<f64>,
    used: Vec<f64>,
}

impl Measured for ClusterState {
    type Meter = ClusterMeter;

    fn meter() -> ClusterMeter {
        ClusterMeter {
            conflicts: counter!("plimsoll_conflicts_total"),
            started: counter!("plimsoll_tasks_started_total"),
            ended: Outcome::NAMES.map(|name| counter!("plimsoll_attempts_ended_total", "outcome" => name)),
            nodes: Usage::ALL.map(|usage| gauge!("plimsoll_nodes", "usage" => usage.name())),
            node_seconds: Usage::ALL
                .map(|usage| counter!("plimsoll_node_seconds_total", "usage" => usage.name())),
            live: gauge!("plimsoll_live_attempts"),
            utilisation: Vec::new(),
            walk: Walk::default(),
        }
    }

    fn count(meter: &ClusterMeter, out: &Outbox, _: Span) {
        for message in &out.scheduler {
            match message {
                SchedulerMessage::Conflict(attempts) => meter.conflicts.increment(attempts.len() as u64),
                SchedulerMessage::Released(released) => {
                    let mut ended = [0; Outcome::NAMES.len()];
                    released.iter().for_each(|one| ended[one.outcome.index()] += 1);
                    let counted = meter.ended.iter().zip(ended).filter(|(_, count)| *count > 0);
                    counted.for_each(|(counter, count)| counter.increment(count));
                }
                _ => {}
            }
        }
        for message in &out.runner {
            if let RunnerMessage::Launch(launches) = message {
                meter.started.increment(launches.len() as u64);
            }
        }
    }

    fn sample(&self, now: Time, meter: &mut ClusterMeter) -> Sampled {
        if meter.walk.next == 0 {
            for (gauge, nodes) in meter.nodes.iter().zip(self.nodes_by_usage()) {
                gauge.set(nodes as f64);
            }
            for (counter, spent) in meter.node_seconds.iter().zip(self.total_time_by_usage(now)) {
                counter.absolute(whole_seconds(spent));
            }
        }
        let (end, all) = (meter.walk.next.saturating_add(NODES_AT_ONCE), self.node_numbers());
        for node in (meter.walk.next..end.min(all)).filter_map(|number| self.node(NodeId(number))) {
            meter.walk.live += u64::from(node.tasks());
            add(&mut meter.walk.capacity, &node.capacity);
            add(&mut meter.walk.used, &node.used);
        }
        meter.walk.next = end;
        if end < all {
            return Sampled::Part;
        }
        let Walk { live, capacity, used, .. } = std::mem::take(&mut meter.walk);
        meter.live.set(live as f64);
        for (kind, capacity) in capacity.iter().enumerate().filter(|(_, capacity)| **capacity > 0.0) {
            while meter.utilisation.len() <= kind {
                let name = self.kind_name(meter.utilisation.len()).unwrap_or("?").to_owned();
                meter.utilisation.push(gauge!("plimsoll_utilisation", "resource" => name));
            }
            meter.utilisation[kind].set(used.get(kind).copied().unwrap_or(0.0) / capacity);
        }
        Sampled::All
    }
}

/// Nodes that are added up before others have their turn.
const NODES_AT_ONCE: u32 = 4_096;

fn whole_seconds(span: Span) -> u64 {
    span.as_seconds() as u64
}

fn add(sums: &mut Vec<f64>, resources: &plimsoll_core::resources::Resources) {
    for (kind, amount) in resources.iter() {
        let kind = usize::from(kind.0);
        if sums.len() <= kind {
            sums.resize(kind + 1, 0.0);
        }
        sums[kind] += amount as f64;
    }
}

pub(crate) struct JobMeter {
    accepted: Counter,
    scheduled: Counter,
    finished: Counter,
    unfinished: Gauge,
    provisioning_seconds: Counter,
    running_seconds: Counter,
    /// What ended attempts took.
    spent: Cell<Spent>,
}

impl Measured for JobState {
    type Meter = JobMeter;

    fn meter() -> JobMeter {
        let seconds = |part| counter!("plimsoll_attempt_seconds_total", "part" => part);
        JobMeter {
            accepted: counter!("plimsoll_jobs_accepted_total"),
            scheduled: counter!("plimsoll_jobs_scheduled_total"),
            finished: counter!("plimsoll_jobs_finished_total"),
            unfinished: gauge!("plimsoll_unfinished_jobs"),
            provisioning_seconds: seconds("provisioning"),
            running_seconds: seconds("running"),
            spent: Cell::default(),
        }
    }

    fn count(meter: &JobMeter, out: &Outbox, _: Span) {
        let (mut accepted, mut finished, mut spent) = (0, 0, meter.spent.get());
        for message in &out.host {
            match message {
                HostMessage::Accepted { .. } => accepted += 1,
                HostMessage::Job(JobEvent::Finished { .. }) => finished += 1,
                HostMessage::Job(JobEvent::Ended { bound, began, at, .. }) => spent.add(*bound, *began, *at),
                _ => {}
            }
        }
        meter.accepted.increment(accepted);
        meter.finished.increment(finished);
        meter.spent.set(spent);
    }

    fn sample(&self, _: Time, meter: &mut JobMeter) -> Sampled {
        meter.unfinished.set(self.unfinished() as f64);
        meter.scheduled.absolute(self.scheduled());
        let Spent { provisioning, running } = meter.spent.get();
        meter.provisioning_seconds.absolute(whole_seconds(provisioning));
        meter.running_seconds.absolute(whole_seconds(running));
        Sampled::All
    }
}

impl Measured for TaskRunner {
    type Meter = ();

    fn meter() {}
}

impl Measured for Rebalancer {
    type Meter = ();

    fn meter() {}
}
