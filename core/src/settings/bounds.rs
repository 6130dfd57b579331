//! What each setting is when nobody gives it, and how far it may go: all in one place.

use std::ops::RangeInclusive;

use crate::id::{GROUPS_PER_JOB_MAX, ROLES_PER_GROUP_MAX};
use crate::time::Span;

/// The default of a setting and the values it may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds<T> {
    pub default: T,
    pub minimum: T,
    pub maximum: T,
}

impl<T: Copy> Bounds<T> {
    const fn new(default: T, minimum: T, maximum: T) -> Bounds<T> {
        Bounds { default, minimum, maximum }
    }

    pub fn range(&self) -> RangeInclusive<T> {
        self.minimum..=self.maximum
    }
}

/// No deadline and no memory reaches further than this: about thirty years.
const LONG: Span = Span::from_whole_seconds(1_000_000_000);
const HOUR: Span = Span::from_whole_seconds(3_600);
/// A deadline of nothing would end everything at once.
const SHORTEST_DEADLINE: Span = Span::from_millis(1);

pub const WINDOW: Bounds<Span> = Bounds::new(Span::from_millis(50), Span::ZERO, HOUR);
pub const WINDOW_CAP: Bounds<Span> = Bounds::new(Span::from_millis(1_000), Span::ZERO, HOUR);
pub const WINDOW_ADAPTIVE: bool = true;

pub const JOBS: Bounds<u64> = Bounds::new(1_000_000, 1, 100_000_000);
pub const TASKS_PER_JOB: Bounds<u64> = Bounds::new(10_000_000, 1, 1_000_000_000);
pub const GROUPS_PER_JOB: Bounds<u64> = Bounds::new(1_024, 1, GROUPS_PER_JOB_MAX as u64);
pub const ROLES_PER_GROUP: Bounds<u64> = Bounds::new(64, 1, ROLES_PER_GROUP_MAX as u64);
pub const NODES: Bounds<u64> = Bounds::new(1_000_000, 1, 10_000_000);
pub const NAME_LENGTH: Bounds<u64> = Bounds::new(256, 16, 4_096);
pub const LABELS_PER_NODE: Bounds<u64> = Bounds::new(128, 0, 10_000);
pub const LABEL_LENGTH: Bounds<u64> = Bounds::new(256, 1, 65_536);
pub const PLACEMENTS_PER_TURN: Bounds<u64> = Bounds::new(1_024, 1, 1_000_000);

pub const FINISHED_JOBS: Bounds<u64> = Bounds::new(10_000, 0, 100_000_000);
pub const USAGE_ENTRIES_PER_NODE: Bounds<u64> = Bounds::new(64, 1, 100_000);
pub const USAGE_ENTRIES: Bounds<u64> = Bounds::new(200_000, 0, 100_000_000);
pub const FINISHED_AGE: Bounds<Span> = Bounds::new(HOUR, Span::ZERO, LONG);

pub const DISPATCH: Bounds<Span> = Bounds::new(Span::from_whole_seconds(30), SHORTEST_DEADLINE, LONG);
pub const PREPARE: Bounds<Span> = Bounds::new(HOUR, SHORTEST_DEADLINE, LONG);
pub const RUN: Bounds<Span> = Bounds::new(Span::from_whole_seconds(86_400), SHORTEST_DEADLINE, LONG);
pub const OVERHEAD: Bounds<Span> = Bounds::new(Span::from_whole_seconds(15), Span::ZERO, LONG);
pub const STOP: Bounds<Span> = Bounds::new(Span::from_whole_seconds(30), SHORTEST_DEADLINE, LONG);
pub const HEARTBEAT: Bounds<Span> = Bounds::new(Span::ZERO, Span::ZERO, LONG);
pub const DOWN: Bounds<Span> = Bounds::new(Span::from_whole_seconds(60), SHORTEST_DEADLINE, LONG);

pub const HALF_TIME: Bounds<Span> = Bounds::new(HOUR, Span::from_millis(1), LONG);

pub const AGEING: Bounds<Span> = Bounds::new(Span::ZERO, Span::ZERO, LONG);

/// At its maximum nobody ever claims anything.
pub const CLAIM_AFTER: Bounds<Span> = Bounds::new(Span::from_whole_seconds(60), Span::ZERO, LONG);

pub const RESIZE_INTERVAL: Bounds<Span> = Bounds::new(Span::ZERO, Span::ZERO, LONG);
pub const FREEZE: Bounds<Span> = Bounds::new(Span::from_whole_seconds(60), Span::ZERO, LONG);

pub const FAULTY_FAILURES: Bounds<u64> = Bounds::new(5, 0, 100);
pub const FAULTY_WITHIN: Bounds<Span> = Bounds::new(Span::from_whole_seconds(300), SHORTEST_DEADLINE, LONG);
pub const FAULTY_BROKEN_AFTER: Bounds<u64> = Bounds::new(3, 0, 100);
pub const MONITOR_INTERVAL: Bounds<Span> = Bounds::new(Span::from_whole_seconds(10), Span::ZERO, LONG);
pub const FAULTY_PROBE: Bounds<Span> = Bounds::new(Span::from_whole_seconds(600), Span::ZERO, LONG);

pub const REBALANCE_THRESHOLD: Bounds<u64> = Bounds::new(0, 0, 200);
pub const REBALANCE_DURATION: Bounds<Span> = Bounds::new(Span::from_whole_seconds(240), Span::ZERO, LONG);
pub const REBALANCE_MINIMUM_RUN: Bounds<Span> = Bounds::new(Span::ZERO, Span::ZERO, LONG);
pub const REBALANCE_EARMARK: Bounds<Span> =
    Bounds::new(Span::from_whole_seconds(120), SHORTEST_DEADLINE, LONG);
pub const REBALANCE_STOPS_PER_TASK: Bounds<u64> = Bounds::new(5, 0, 1_000_000);
pub const REBALANCE_STOPS_SAVED_UP: Bounds<u64> = Bounds::new(100, 1, 1_000_000_000);

/// What each setting does, in the words of the settings table.
pub const DESCRIPTIONS: &[(&str, &str)] = &[
    ("window", "seconds a window stays open after the last identical arrival; 0 plans at once"),
    ("window_cap", "seconds after its first arrival at which a window closes at the latest"),
    ("window_adaptive", "plan the first arrival after quiet at once and open the window behind it"),
    ("placement", "which node with room a task gets where its role does not say: spread, pack or own_first"),
    ("pool", "who stays in one pool where a job does not say: any (nobody), group or job"),
    ("on_unsatisfiable", "what becomes of a group that can never fit where it does not say: wait or fail"),
    ("resources", "resource kinds besides slot, cpu, memory and gpu"),
    ("classes", "classes of requestors, each with its percent of all there is, patterns and cap"),
    ("default_class", "the class of requestors that no pattern matches"),
    ("queues", "queues with weight, class and quota"),
    ("share_key", "how classes are compared: entitlement, flow, dominant, run_time or fifo"),
    ("queue_key", "how the queues of a class are compared: flow, dominant, run_time or fifo"),
    ("job_key", "how the jobs of a queue are compared: priority, least_running or run_time"),
    ("share_unit", "what classes have percents of, and shares are told in: slot, weighted or dominant"),
    ("resource_weights", "what one unit of a resource costs"),
    ("half_time", "seconds in which the memory of past use loses half its weight"),
    ("non_preemptible_factor", "how far work without a lifetime may exceed its queue's fair share"),
    ("excess_budget", "cost times seconds that a queue above its fair share may have outstanding"),
    ("bands", "priority levels and their weights"),
    ("strict_bands", "bands that go before any share"),
    ("ageing", "seconds after which what waits is raised by one strict band; 0 for never"),
    ("rates", "tasks placed a second and how many can be saved up, over all and by queue"),
    (
        "protected_fraction",
        "part of its fair share that a queue keeps; unset: queues take nothing from others",
    ),
    ("limits.jobs", "unfinished jobs at one time"),
    ("limits.tasks_per_job", "tasks of one job"),
    ("limits.groups_per_job", "groups of one job"),
    ("limits.roles_per_group", "roles of one group"),
    ("limits.nodes", "nodes of the cluster"),
    ("limits.name_length", "bytes of any one name"),
    ("limits.labels_per_node", "labels of one node"),
    ("limits.label_length", "bytes of a label's key or value"),
    ("limits.placements_per_turn", "tasks placed before others have their turn"),
    ("retention.finished_jobs", "finished jobs that can still be asked about"),
    ("retention.finished_age", "seconds a finished job can still be asked about"),
    ("retention.usage_entries_per_node", "entries of the usage history kept of one node"),
    ("retention.usage_entries", "entries of the usage history kept in all; 0 keeps none and counts no time"),
    ("deadlines.dispatch", "seconds until a node must say that an attempt has begun"),
    ("deadlines.prepare", "seconds a node may take to prepare for an attempt"),
    ("deadlines.run", "seconds an attempt may run unless its role gives a `timeout`"),
    ("deadlines.overhead", "seconds an attempt gets on top of the `timeout` of its role"),
    ("deadlines.stop", "seconds until a node must confirm a stop"),
    ("deadlines.heartbeat", "seconds without a heartbeat that make a node suspect; 0 waits to be told so"),
    ("deadlines.down", "seconds of silence until a suspect node is given up"),
    (
        "claim_after",
        "seconds after which what does not fit may have nodes kept for it as they become free; \
         1000000000 for never",
    ),
    (
        "resize_interval",
        "seconds after which elastic groups that had more and less are compared once more, beside whenever \
         something happens; 0 for never",
    ),
    ("freeze", "seconds for which the size of an elastic group rests after it was changed"),
    (
        "headroom",
        "the part of every resource, between 0 and 1, that the growth of elastic groups leaves free",
    ),
    ("gpu_cpu_ratio", "CPUs that a task must bring for each of its GPUs, or it is refused; 0 for none"),
    ("faulty.failures", "failures of one version of a service that put a node last for it; 0 for never"),
    ("faulty.within", "seconds during which these failures count"),
    ("faulty.broken_after", "services that fail on a node in a row until it is broken; 0 for never"),
    ("faulty.probe", "seconds until such a node is tried again; 0 waits for somebody to say so"),
    ("monitor.interval", "seconds from one slice of nodes to the next whose views are compared; 0 for never"),
    ("rebalance.threshold", "percent points between classes above which the gate opens; 0 for never"),
    ("rebalance.duration", "seconds the spread must stay above without a break"),
    ("rebalance.on_preempt", "what becomes of a stopped task: requeue, fail or drop"),
    ("rebalance.minimum_run", "seconds a task keeps its node before it may be stopped for others"),
    ("rebalance.earmark", "seconds that what a stop frees is kept for whom it was done"),
    (
        "rebalance.lifetime",
        "work older than its lifetime gives way to queues below their fair share, and to strict bands that cannot \
         start otherwise",
    ),
    (
        "rebalance.elastic",
        "what elastic groups have above their minima gives way to what cannot start otherwise, and, where \
         `job_key` is run_time, to groups of their queue that have had less",
    ),
    ("rebalance.higher", "work of lower bands gives way to strict bands that cannot start otherwise"),
    (
        "rebalance.backfill",
        "work that can be stopped at once may run on what is claimed until the claimant can start",
    ),
    ("rebalance.stops_per_task", "how often one task is stopped for others at most"),
    ("rebalance.stops_per_second", "tasks stopped for others a second; 0 for no limit"),
    ("rebalance.stops_saved_up", "how many such stops can be saved up"),
];
