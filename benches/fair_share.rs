//! Admissions under fair share and borrowing, in the shape of Kueue's generated workloads: a thousand queues
//! in ten classes, fifty thousand workloads of three sizes, and less room than all of them want.
//!
//! Upstream reports about 42 admissions a second for its large-scale test (50,000 workloads, 1,000 queues in
//! 10 cohorts). Here the same mix goes through JobState, Scheduler and ClusterState in virtual time; what is
//! counted is CPU time. The baseline is the same work without classes and queues, taken in the same run.
//! `--quick` is the short run, `--json` prints a document for programs.

mod support;

use std::fmt::Write;
use std::sync::Arc;

use plimsoll::Config;
use plimsoll_core::id::Attempt;
use plimsoll_core::resources::Resources;
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::JobSpec;
use plimsoll_core::time::Span;

use support::machines::CPU;
use support::{Lives, Options, Report, Table, Value, nanos_each, per_second};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CLASSES: usize = 10;
/// Of each queue's workloads: how many, cores, and milliseconds they run.
const SIZES: [(usize, i64, u64); 3] = [(35, 1, 200), (10, 5, 500), (5, 20, 1_000)];
/// What each queue brings to the cluster, in cores.
const CORES_PER_QUEUE: u32 = 20;
const CORES_PER_NODE: u32 = 100;
const KUEUE_PER_SECOND: f64 = 42.0;

fn main() {
    let options = Options::from_environment();
    let queues = if options.quick { 100 } else { 1_000 };
    let mut report = Report::new("fair_share", options);
    let columns = [
        "shares",
        "queues",
        "workloads",
        "admissions per CPU s",
        "deciding only",
        "of baseline",
        "times Kueue",
    ];
    let mut table = Table::new("Fair share with borrowing: every workload admitted and ended", &columns);
    let mut plain = None;
    for (name, settings) in [
        ("none (baseline)", settings(0, "fifo", "fifo")),
        ("entitlement, then dominant share", settings(queues, "entitlement", "dominant")),
        ("entitlement, then flow", settings(queues, "entitlement", "flow")),
        ("dominant share, both", settings(queues, "dominant", "dominant")),
    ] {
        let lives = run(&settings, queues);
        let all = per_second(nanos_each(lives.spent, lives.ended));
        let plain = *plain.get_or_insert(all);
        table.row(vec![
            name.into(),
            Value::count(queues as u64),
            Value::count(lives.ended),
            Value::Number(all, 0),
            Value::Number(per_second(nanos_each(lives.deciding, lives.ended)), 0),
            Value::Number(all / plain, 2),
            Value::Number(all / KUEUE_PER_SECOND, 0),
        ]);
    }
    table.note("Kueue: 42 admissions a second of wall time, its own large-scale test in its own CI");
    report.add(table);
    report.finish();
}

fn settings(queues: usize, class_key: &str, queue_key: &str) -> Arc<Settings> {
    let mut text = String::from("window = 0.0\n[limits]\nplacements_per_turn = 1000000\n");
    if queues > 0 {
        text.insert_str(
            0,
            &format!("share_key = \"{class_key}\"\nqueue_key = \"{queue_key}\"\nshare_unit = \"dominant\"\n"),
        );
    }
    for class in 0..CLASSES.min(queues) {
        write!(text, "[[classes]]\nname = \"c{class}\"\npercent = 10\n").expect("a string takes everything");
    }
    for queue in 0..queues {
        let class = queue % CLASSES;
        write!(text, "[[queues]]\nname = \"q{queue}\"\nclass = \"c{class}\"\n")
            .expect("a string takes everything");
    }
    Arc::new(Config::from_toml(&text).expect("good settings").settings().clone())
}

fn run(settings: &Arc<Settings>, queues: usize) -> Lives {
    let nodes = queues as u32 * CORES_PER_QUEUE / CORES_PER_NODE;
    let capacity = Resources::of(CPU, i64::from(CORES_PER_NODE) * 1_000);
    let mut lives = Lives::new(settings, nodes, &capacity);
    let named = !settings.shares.queues.is_empty();
    // The job with this number has this size.
    let mut runs = Vec::new();
    let mut batches: Vec<Vec<Arc<JobSpec>>> = Vec::new();
    for (count, cores, millis) in SIZES {
        for _ in 0..count {
            let mut batch = Vec::with_capacity(queues);
            for queue in 0..queues {
                let mut job = JobSpec::bag("w", 1, Resources::of(CPU, cores * 1_000));
                if named {
                    job.standing.queue = format!("q{queue}").into();
                }
                runs.push(Span::from_millis(millis));
                batch.push(Arc::new(job));
            }
            batches.push(batch);
        }
    }
    let run = |attempt: Attempt| Some(runs[attempt.task.job().0 as usize - 1]);
    for batch in batches {
        lives.submit(batch, run);
    }
    while lives.advance(run) {}
    assert_eq!((lives.waiting(), lives.ended as usize), (0, runs.len()), "everything ends");
    lives
}
