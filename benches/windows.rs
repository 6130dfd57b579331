//! How late a 50 ms window closes in the real runtime: on a quiet one, and while four threads flood it.
//!
//!     cargo bench --bench windows [-- --quick]
//!
//! The quiet run is the baseline of the flooded one: both are taken in the same process. Two things are
//! shown: how long after its deadline a window closes, as the Scheduler's shell itself counts it, and
//! how long a caller waits beyond the window, which has the wait for room on the full lane in it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;
use metrics::{Counter, Gauge, Key, KeyName, Metadata, SharedString, Unit};
use plimsoll::core::id::JobId;
use plimsoll::core::messages::JobEvent;
use plimsoll::{Config, Event, Handle, JobSpec, NodeSpec, Runtime, Subscription, tasks};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WINDOW_MICROS: u64 = 50_000;
const PRODUCERS: usize = 4;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick")
        || std::env::var_os("PLIMSOLL_BENCH_QUICK").is_some();
    let probes = if quick { 10 } else { 100 };
    let deadlines = Deadlines::default();
    metrics::set_global_recorder(deadlines.clone()).expect("nobody else records");
    println!("lateness of a 50 ms window, microseconds ({probes} windows each)");
    println!("{:<38}{:>8}{:>8}{:>8}{:>10}{:>16}", "", "p50", "p99", "max", "counted", "jobs flooded in");
    for (name, producers) in [("quiet", 0), ("flooded by 4 threads", PRODUCERS)] {
        deadlines.clear();
        let (seen_by_caller, flooded) = measure(probes, producers);
        let closing = deadlines.take();
        for (what, lateness) in [("window closes", closing), ("caller waits", seen_by_caller)] {
            let at = |quantile: f64| lateness.value_at_quantile(quantile);
            let title = format!("{name}: {what}");
            let (max, counted) = (lateness.max(), lateness.len());
            println!("{title:<38}{:>8}{:>8}{max:>8}{counted:>10}{flooded:>16}", at(0.5), at(0.99));
        }
    }
    println!("target: a window closes at most 10000 late (p99) while flooded");
}

/// Counts how late the Scheduler sees to its deadlines, which are the ends of windows.
#[derive(Clone)]
struct Deadlines(Arc<Mutex<Histogram<u64>>>);

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines(Arc::new(Mutex::new(histogram())))
    }
}

impl Deadlines {
    fn clear(&self) {
        self.0.lock().expect("nobody panics here").reset();
    }

    fn take(&self) -> Histogram<u64> {
        self.0.lock().expect("nobody panics here").clone()
    }
}

impl metrics::HistogramFn for Deadlines {
    fn record(&self, seconds: f64) {
        self.0.lock().expect("nobody panics here").saturating_record((seconds * 1e6) as u64);
    }
}

impl metrics::Recorder for Deadlines {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> metrics::Histogram {
        let of_scheduler = key.labels().any(|label| label.value() == "Scheduler");
        match of_scheduler && key.name() == "plimsoll_deadline_lateness_seconds" {
            true => metrics::Histogram::from_arc(Arc::new(self.clone())),
            false => metrics::Histogram::noop(),
        }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(60_000_000, 3).expect("three digits are a good precision")
}

fn measure(probes: u32, producers: usize) -> (Histogram<u64>, u64) {
    let config = Config::from_toml("window = 0.05\nwindow_adaptive = false").expect("a good setting");
    let ended = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&ended);
    let executor = tasks(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        async { Ok(()) }
    });
    let runtime = Runtime::builder().config(config).executor(executor.inline()).start().expect("it starts");
    let handle = runtime.handle();
    let driver = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a thread waits");
    driver.block_on(async {
        for number in 0..100 {
            let node = NodeSpec::new(format!("n{number}")).capacity("slot", 1_000).capacity("cpu", 1_000);
            handle.add_node(node).await.expect("the node is new");
        }
    });
    let over = Arc::new(AtomicBool::new(false));
    let flooded = Arc::new(AtomicU64::new(0));
    let flood: Vec<_> = (0..producers)
        .map(|_| {
            let (handle, over) = (handle.clone(), Arc::clone(&over));
            let (flooded, ended) = (Arc::clone(&flooded), Arc::clone(&ended));
            std::thread::spawn(move || flood(&handle, &over, &flooded, &ended))
        })
        .collect();
    let lateness = probe(&handle, probes);
    over.store(true, Ordering::Relaxed);
    flood.into_iter().for_each(|thread| thread.join().expect("a producer ends"));
    driver.block_on(runtime.shutdown(Duration::from_secs(10)));
    (lateness, flooded.load(Ordering::Relaxed))
}

/// Submits as fast as the runtime takes it, with no more jobs unfinished than it accepts by far.
fn flood(handle: &Handle, over: &AtomicBool, flooded: &AtomicU64, ended: &AtomicU64) {
    const UNFINISHED_MAX: u64 = 200_000;
    let job = JobSpec::bag("flood", 1).request("slot", 1);
    while !over.load(Ordering::Relaxed) {
        if flooded.load(Ordering::Relaxed) > ended.load(Ordering::Relaxed) + UNFINISHED_MAX {
            std::thread::sleep(Duration::from_micros(100));
            continue;
        }
        match handle.try_submit(job.clone()) {
            Ok(answer) => {
                drop(answer);
                flooded.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => std::thread::sleep(Duration::from_micros(100)),
        }
    }
}

/// Submits jobs of a shape of their own and compares when they were bound with when they should be.
fn probe(handle: &Handle, probes: u32) -> Histogram<u64> {
    let mut lateness = histogram();
    for number in 0..probes {
        // The flood may leave no room on the lane at this very moment.
        let mut events = loop {
            match handle.events() {
                Ok(events) => break events,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            std::thread::yield_now();
        };
        let before = handle.now().0;
        let job = JobSpec::bag("probe", 1).request("cpu", i64::from(number % 50) + 1);
        let job = handle.submit_blocking(job).expect("accepted");
        if let Some(bound) = wait_until_bound(&mut events, job) {
            lateness.saturating_record(bound.saturating_sub(before + WINDOW_MICROS));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    lateness
}

/// When the job was bound; `None` if the news may be among what was missed.
fn wait_until_bound(events: &mut Subscription, job: JobId) -> Option<u64> {
    loop {
        let batch = events.next_blocking().expect("the runtime runs");
        for event in batch.events.iter() {
            if let Event::Job(JobEvent::Bound { attempt, at, .. }) = event
                && attempt.task.job() == job
            {
                return Some(at.0);
            }
        }
        if batch.missed > 0 {
            return None;
        }
    }
}
