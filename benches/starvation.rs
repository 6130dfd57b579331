//! Does work that cannot fit keep others waiting? The shape of kube-scheduler's StarvationIndependent: ten
//! thousand nodes, ten thousand waiting tasks of high priority that fit nowhere, attempts that end all the
//! time, and then tasks of low priority that fit and must be placed at once.
//!
//! Each is submitted alone and timed until it is bound; the baseline is the same without the ones in the way.
//! `--quick` is the short run, `--json` prints a document for programs.

mod support;

use std::sync::Arc;
use std::time::Instant;

use fastrand::Rng;
use hdrhistogram::Histogram;

use plimsoll_core::id::Attempt;
use plimsoll_core::messages::EndReport;
use plimsoll_core::outcome::Exit;
use plimsoll_core::resources::Resources;
use plimsoll_core::spec::JobSpec;

use support::machines::{CPU, settings_without_window};
use support::{Lives, Options, Report, Table, Value, nanos_each, per_second};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CORES_PER_NODE: i64 = 4;
const VICTIMS: u32 = 500;
/// Attempts that end before each victim comes.
const CHURN: usize = 4;

fn main() {
    let options = Options::from_environment();
    let (nodes, in_the_way) = if options.quick { (1_000, 1_000) } else { (10_000, 10_000) };
    let mut report = Report::new("starvation", options);
    let columns = [
        "nodes",
        "in the way",
        "their shapes",
        "placed",
        "per s",
        "p50 us",
        "p99 us",
        "most us",
        "of baseline",
        "churn ns each",
    ];
    let mut table = Table::new("Placing tasks that fit behind tasks that do not", &columns);
    let mut baseline = None;
    for (in_the_way, shapes) in [(0, 0), (in_the_way, 1), (in_the_way, 1_000)] {
        let measured = measure(nodes, in_the_way, shapes);
        let mean = measured.micros.mean();
        table.row(vec![
            Value::count(nodes),
            Value::count(in_the_way),
            Value::count(shapes),
            Value::count(measured.micros.len()),
            Value::Number(per_second(mean), 0),
            Value::Number(measured.micros.value_at_quantile(0.5) as f64 / 1e3, 2),
            Value::Number(measured.micros.value_at_quantile(0.99) as f64 / 1e3, 2),
            Value::Number(measured.micros.max() as f64 / 1e3, 2),
            Value::Number(mean / *baseline.get_or_insert(mean), 2),
            Value::Number(measured.churn, 0),
        ]);
    }
    table.note(
        "timed: one job from submission until it is bound, through JobState, Scheduler and ClusterState",
    );
    table.note("of baseline: cost against the same without anything in the way; less is better");
    report.add(table);
    report.finish();
}

struct Measured {
    /// Nanoseconds of each.
    micros: Histogram<u64>,
    churn: f64,
}

fn bag(tasks: u32, cores: i64, priority: i32) -> Arc<JobSpec> {
    let mut job = JobSpec::bag("bag", tasks, Resources::of(CPU, cores));
    job.standing.priority = priority;
    Arc::new(job)
}

fn measure(nodes: u32, in_the_way: u32, shapes: u32) -> Measured {
    let settings = settings_without_window();
    let mut lives = Lives::new(&settings, nodes, &Resources::of(CPU, CORES_PER_NODE * 1_000));
    // Every node is half full, so nothing of the high priority will ever fit.
    let filling = nodes * CORES_PER_NODE as u32 / 2;
    let mut running: Vec<Attempt> = Vec::new();
    lives.submit(vec![bag(filling, 1_000, 0)], |_| None);
    running.extend(lives.jobs.live().map(|task| task.attempt));
    let too_large =
        |number: u32| bag(1, (CORES_PER_NODE + 1) * 1_000 + i64::from(number % shapes.max(1)), 100);
    for begin in (0..in_the_way).step_by(100) {
        lives.submit((begin..in_the_way.min(begin + 100)).map(too_large).collect(), |_| None);
    }
    let mut rng = Rng::with_seed(1);
    let mut micros = Histogram::new_with_max(10_000_000_000, 3).expect("the bounds are allowed");
    let (mut churned, mut churn) = (0, std::time::Duration::ZERO);
    for _ in 0..VICTIMS {
        for _ in 0..CHURN {
            let attempt = running.swap_remove(rng.usize(..running.len()));
            let begin = Instant::now();
            lives.end(vec![EndReport { attempt, exit: Exit::Completed }], |_| None);
            churn += begin.elapsed();
            churned += 1;
        }
        let started = lives.started;
        let job = bag(1, 1_000, 0);
        let begin = Instant::now();
        lives.submit(vec![job], |_| None);
        micros.saturating_record(begin.elapsed().as_nanos() as u64);
        assert_eq!(lives.started, started + 1, "it fits and nothing keeps it");
    }
    assert_eq!(lives.waiting(), u64::from(in_the_way));
    Measured { micros, churn: nanos_each(churn, churned) }
}
