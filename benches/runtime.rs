//! The real runtime through its public handle: events in, whole task lives, and how soon something is decided.
//!
//! Beside every figure stand what actix and crossbeam do alone, taken in the same run: what one message costs
//! is the unit in which everything else is counted. `--quick` is the short run, `--json` prints a document
//! for programs. All threads share the cores of the machine, so figures of wall time need a quiet one.

#[path = "runtime/baseline.rs"]
mod baseline;
#[path = "runtime/deciding.rs"]
mod deciding;
#[path = "runtime/drive.rs"]
mod drive;
#[path = "runtime/latency.rs"]
mod latency;
mod support;

use support::{Options, Report, Table, Value};

use baseline::Baseline;
use drive::{Driven, Feed};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TARGET_EVENTS: u32 = 1_000_000;
const TARGET_LIVES: u32 = 250_000;
const TARGET_MESSAGES: f64 = 4.0;

fn main() {
    let options = Options::from_environment();
    let mut report = Report::new("runtime", options);
    let baseline = Baseline::measure(options);
    report.add(baseline.table());
    report.add(throughput(options, &baseline));
    report.add(latency::table(options, TARGET_LIVES / 2));
    report.finish();
}

fn throughput(options: Options, baseline: &Baseline) -> Table {
    let columns = [
        "what",
        "producers",
        "count",
        "per s",
        "wall us each",
        "CPU us each",
        "CPU in messages",
        "of crossbeam",
    ];
    let mut table = Table::new("Through the real actors", &columns);
    let scale = if options.quick { 10 } else { 1 };
    for (what, feed, count) in [
        ("events in, 64 to a command (jobs that wait)", Feed::Waiting { batch: 64 }, 800_000),
        ("events in, one to a command (jobs that wait)", Feed::Waiting { batch: 1 }, 400_000),
        ("events in, 64 to a command (half jobs, half ends)", Feed::Deciding { batch: 64 }, 1_000_000),
        ("task lives, jobs of one task", Feed::Lives { tasks: 1 }, 1_000_000),
        ("task lives, jobs of 100 tasks", Feed::Lives { tasks: 100 }, 3_000_000),
    ] {
        for producers in [1, 2, 4] {
            let driven = drive::drive(feed, producers, count / scale);
            table.row(row(what, producers, driven, baseline));
        }
    }
    table
        .note(format!("target: {TARGET_EVENTS} events/s in from 4 producers; {TARGET_LIVES} lives/s from 4"));
    table.note(format!(
        "CPU in messages: against one unbatched message of actix to another thread; \
         at most {TARGET_MESSAGES} an event in"
    ));
    table.note("of crossbeam: rate against a bare channel with the same producers");
    table
}

fn row(what: &str, producers: u32, driven: Driven, baseline: &Baseline) -> Vec<Value> {
    let count = driven.count as f64;
    let (wall, cpu) = (driven.wall.as_secs_f64(), driven.cpu.as_secs_f64());
    vec![
        what.into(),
        Value::count(producers),
        Value::count(driven.count),
        Value::Number(count / wall, 0),
        Value::Number(wall * 1e6 / count, 3),
        Value::Number(cpu * 1e6 / count, 3),
        Value::Number(cpu * 1e9 / count / baseline.actix_cpu_nanos(), 1),
        Value::Number(count / wall / baseline.crossbeam_per_second(producers), 3),
    ]
}
