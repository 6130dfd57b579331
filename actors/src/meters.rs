//! What can be measured of each machine: counted from what a turn said, or looked at now and then. The
//! handles are made once; without a recorder they do nothing.

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use plimsoll_core::cluster_state::{ClusterState, Usage};
use plimsoll_core::job_state::JobState;
use plimsoll_core::messages::{
    ClusterMessage, HostMessage, JobEvent, Outbox, RunnerMessage, SchedulerMessage,
};
use plimsoll_core::outcome::Outcome;
use plimsoll_core::rebalancer::Rebalancer;
use plimsoll_core::scheduler::Scheduler;
use plimsoll_core::task_runner::TaskRunner;
use plimsoll_core::time::Span;

/// A machine of which something can be measured.
pub(crate) trait Measured: Sized {
    type Meter: Unpin + 'static;

    fn meter() -> Self::Meter;

    /// Counts what a turn said that took this long.
    fn count(meter: &Self::Meter, out: &Outbox, took: Span) {
        let _ = (meter, out, took);
    }

    /// Looks at the machine, some time after a turn.
    fn sample(&self, meter: &mut Self::Meter) {
        let _ = meter;
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

    fn sample(&self, meter: &mut SchedulerMeter) {
        meter.waiting.set(self.waiting_tasks() as f64);
    }
}

pub(crate) struct ClusterMeter {
    conflicts: Counter,
    started: Counter,
    /// By [`OUTCOMES`].
    ended: [Counter; OUTCOMES.len()],
    /// By [`Usage::ALL`].
    nodes: [Gauge; Usage::ALL.len()],
    live: Gauge,
    /// By resource kind, made when a kind is first seen.
    utilisation: Vec<Gauge>,
}

const OUTCOMES: [&str; 7] =
    ["completed", "failed", "not started", "timed out", "cancelled", "preempted", "lost"];

fn outcome_index(outcome: Outcome) -> usize {
    OUTCOMES.iter().position(|name| *name == outcome.name()).unwrap_or(1)
}

impl Measured for ClusterState {
    type Meter = ClusterMeter;

    fn meter() -> ClusterMeter {
        ClusterMeter {
            conflicts: counter!("plimsoll_conflicts_total"),
            started: counter!("plimsoll_tasks_started_total"),
            ended: OUTCOMES.map(|outcome| counter!("plimsoll_attempts_ended_total", "outcome" => outcome)),
            nodes: Usage::ALL.map(|usage| gauge!("plimsoll_nodes", "usage" => usage.name())),
            live: gauge!("plimsoll_live_attempts"),
            utilisation: Vec::new(),
        }
    }

    fn count(meter: &ClusterMeter, out: &Outbox, _: Span) {
        for message in &out.scheduler {
            match message {
                SchedulerMessage::Conflict(attempts) => meter.conflicts.increment(attempts.len() as u64),
                SchedulerMessage::Released(released) => {
                    let mut ended = [0; OUTCOMES.len()];
                    released.iter().for_each(|one| ended[outcome_index(one.outcome)] += 1);
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

    fn sample(&self, meter: &mut ClusterMeter) {
        for (gauge, nodes) in meter.nodes.iter().zip(self.nodes_by_usage()) {
            gauge.set(nodes as f64);
        }
        let (mut live, mut capacity, mut used) = (0, Vec::new(), Vec::new());
        for (_, node) in self.nodes() {
            live += node.tasks();
            add(&mut capacity, &node.capacity);
            add(&mut used, &node.used);
        }
        meter.live.set(f64::from(live));
        for (kind, capacity) in capacity.iter().enumerate().filter(|(_, capacity)| **capacity > 0.0) {
            while meter.utilisation.len() <= kind {
                let name = self.kind_name(meter.utilisation.len()).unwrap_or("?").to_owned();
                meter.utilisation.push(gauge!("plimsoll_utilisation", "resource" => name));
            }
            meter.utilisation[kind].set(used.get(kind).copied().unwrap_or(0.0) / capacity);
        }
    }
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
    finished: Counter,
    unfinished: Gauge,
}

impl Measured for JobState {
    type Meter = JobMeter;

    fn meter() -> JobMeter {
        JobMeter {
            accepted: counter!("plimsoll_jobs_accepted_total"),
            finished: counter!("plimsoll_jobs_finished_total"),
            unfinished: gauge!("plimsoll_unfinished_jobs"),
        }
    }

    fn count(meter: &JobMeter, out: &Outbox, _: Span) {
        let (mut accepted, mut finished) = (0, 0);
        for message in &out.host {
            match message {
                HostMessage::Accepted { .. } => accepted += 1,
                HostMessage::Job(JobEvent::Finished { .. }) => finished += 1,
                _ => {}
            }
        }
        meter.accepted.increment(accepted);
        meter.finished.increment(finished);
    }

    fn sample(&self, meter: &mut JobMeter) {
        meter.unfinished.set(self.unfinished() as f64);
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
