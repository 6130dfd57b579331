//! How fast a node that gained room gets its next task while many wait.
//!
//! A full cluster and a long queue; each step ends one attempt, and its node is given the first
//! waiting task that fits. Nothing is asserted about time: each figure is printed beside its target
//! and beside a plain scan of the queue taken in the same run. `--quick` (or
//! `PLIMSOLL_BENCH_QUICK=1`) is the short run, `--json` prints a document for programs.

#[path = "pending_node/naive.rs"]
mod naive;
#[path = "pending_node/steps.rs"]
mod steps;
mod support;
#[path = "pending_node/workload.rs"]
mod workload;

use std::time::Instant;

use hdrhistogram::Histogram;

use steps::Measured;
use support::{Options, Report, Table, Value, nanos_each, per_second};
use workload::Size;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TARGET_PER_SECOND: u32 = 500_000;
const TARGET_P99_MICROS: u32 = 20;
const TARGET_GROWTH: f64 = 1.3;

fn main() {
    let options = Options::from_environment();
    let mut report = Report::new("pending_node", options);
    let (nodes, waiting, steps): (&[u32], &[u32], u32) = match options.quick {
        true => (&[1_000], &[10_000, 1_000_000], 20_000),
        false => (&[1_000, 10_000], &[10_000, 100_000, 1_000_000], 200_000),
    };
    report.add(table(nodes, waiting, steps, false));
    report.add(table(&nodes[..1], waiting, steps, true));
    report.finish();
}

fn table(nodes: &[u32], waiting: &[u32], steps: u32, shared: bool) -> Table {
    let columns = [
        "nodes",
        "waiting",
        "decisions",
        "deciding per s",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "round trips per s",
        "p50 us ",
        "p99 us ",
        "p99.9 us ",
        "scan per s",
        "times scan",
    ];
    let shares = if shared { "10 classes, 100 queues" } else { "first come, first served" };
    let title = format!("Pending node, {shares}: the Scheduler's turn alone, then the round trip");
    let mut table = Table::new(title, &columns);
    for nodes in nodes {
        let mut costs = Vec::new();
        for waiting in waiting {
            let size = Size { nodes: *nodes, waiting: *waiting, shared };
            let measured = steps::measure(size, steps);
            let scan = naive::measure(size, steps);
            costs.push(nanos_each(measured.deciding_total, measured.decisions));
            table.row(row(size, &measured, scan));
        }
        let growth = costs[costs.len() - 1] / costs[0];
        table.note(format!(
            "{nodes} nodes: cost growth from {} to {} waiting: {growth:.2} (target: at most {TARGET_GROWTH})",
            waiting[0],
            waiting[waiting.len() - 1],
        ));
    }
    table.note(format!(
        "target: at least {TARGET_PER_SECOND} decisions per second, p99 at most {TARGET_P99_MICROS} us"
    ));
    table.note(format!(
        "each turn is timed on its own; reading the clock costs {:.0} ns of that",
        clock_cost()
    ));
    table.note(
        "round trip: end report to ClusterState, release and pending node to the Scheduler, commit back",
    );
    table.note(
        "scan: the queue is looked through from its front for the first task that fits, over fewer steps",
    );
    table
}

fn row(size: Size, measured: &Measured, scan: f64) -> Vec<Value> {
    let deciding = nanos_each(measured.deciding_total, measured.decisions);
    let round_trip = nanos_each(measured.round_trip_total, measured.decisions);
    let mut row = vec![
        Value::count(size.nodes),
        Value::count(size.waiting),
        Value::count(measured.decisions),
        Value::Number(per_second(deciding), 0),
    ];
    row.extend(percentiles(&measured.deciding));
    row.push(Value::Number(per_second(round_trip), 0));
    row.extend(percentiles(&measured.round_trip));
    row.push(Value::Number(per_second(scan), 0));
    row.push(Value::Number(scan / deciding, 1));
    row
}

fn percentiles(histogram: &Histogram<u64>) -> impl Iterator<Item = Value> {
    [0.5, 0.99, 0.999]
        .map(|quantile| Value::Number(histogram.value_at_quantile(quantile) as f64 / 1e3, 2))
        .into_iter()
}

fn clock_cost() -> f64 {
    const READINGS: u32 = 100_000;
    let begin = Instant::now();
    for _ in 0..READINGS {
        std::hint::black_box(Instant::now());
    }
    nanos_each(begin.elapsed(), u64::from(READINGS))
}
