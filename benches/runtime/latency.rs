//! How soon something is decided without a window: on a quiet runtime, and at half of the load it must carry.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use plimsoll::core::messages::JobEvent;
use plimsoll::{Event, Handle, JobSpec, Subscription};

use crate::drive::runtime;
use crate::support::{Options, Table, Value};

const NODES: u32 = 1_000;
const BATCH: u32 = 64;
const TARGET_P50: u32 = 50;
const TARGET_P99: u32 = 1_000;

pub fn table(options: Options, half_load: u32) -> Table {
    let seconds = if options.quick { 1 } else { 10 };
    let columns = ["load, lives per s", "reached", "probes", "p50 us", "p99 us", "p99.9 us", "most us"];
    let mut table = Table::new("From submission until bound to a node, without a window", &columns);
    for rate in [0, half_load] {
        let (latency, reached) = measure(rate, seconds);
        let micros = |quantile| Value::count(latency.value_at_quantile(quantile));
        table.row(vec![
            Value::count(rate),
            Value::Number(reached, 0),
            Value::count(latency.len()),
            micros(0.5),
            micros(0.99),
            micros(0.999),
            Value::count(latency.max()),
        ]);
    }
    table.note(format!("target at half load: p50 under {TARGET_P50} us, p99 under {TARGET_P99} us"));
    table.note("the first row, on a quiet runtime, is the baseline: what threads need to wake each other");
    table
}

fn measure(rate: u32, seconds: u64) -> (Histogram<u64>, f64) {
    let runtime = runtime(NODES);
    let handle = runtime.handle();
    let over = AtomicBool::new(false);
    let begin = Instant::now();
    let (latency, fed) = std::thread::scope(|scope| {
        let feeder = scope.spawn(|| feed(&handle, rate, &over));
        let latency = probe(&handle, Duration::from_secs(seconds));
        over.store(true, Ordering::Relaxed);
        (latency, feeder.join().expect("the feeder ends"))
    });
    let reached = fed as f64 / begin.elapsed().as_secs_f64();
    let driver = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a thread waits");
    driver.block_on(runtime.shutdown(Duration::from_secs(30)));
    (latency, reached)
}

/// Submits so many jobs a second, in batches at even distances.
fn feed(handle: &Handle, rate: u32, over: &AtomicBool) -> u64 {
    let job = std::sync::Arc::new(JobSpec::bag("j", 1).request("slot", 1));
    let (mut fed, mut next) = (0, Instant::now());
    while !over.load(Ordering::Relaxed) {
        if rate == 0 {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        let now = Instant::now();
        if now < next {
            std::thread::sleep(next - now);
        }
        next += Duration::from_secs_f64(f64::from(BATCH) / f64::from(rate));
        let outcomes = pollster::block_on(handle.submit_many(vec![job.clone(); BATCH as usize]));
        fed += outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
    }
    fed
}

fn probe(handle: &Handle, span: Duration) -> Histogram<u64> {
    let mut latency = Histogram::new_with_max(60_000_000, 3).expect("the bounds are allowed");
    let mut events = handle.events().expect("there is room on the lane");
    let job = JobSpec::bag("probe", 1).request("slot", 1);
    let begin = Instant::now();
    while begin.elapsed() < span {
        let before = handle.now();
        let id = handle.submit_blocking(job.clone()).expect("accepted");
        if let Some(bound) = bound_at(&mut events, id) {
            latency.saturating_record(bound.saturating_sub(before.0));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    latency
}

/// When the job was bound, in the runtime's own time; nothing if that event was missed.
fn bound_at(events: &mut Subscription, job: plimsoll::JobId) -> Option<u64> {
    loop {
        let batch = events.next_blocking()?;
        let bound = batch.events.iter().find_map(|event| match event {
            Event::Job(JobEvent::Bound { attempt, at, .. }) if attempt.task.job() == job => Some(at.0),
            _ => None,
        });
        if bound.is_some() || batch.missed > 0 {
            return bound;
        }
    }
}
