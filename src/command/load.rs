//! `plimsoll load`: how many events and whole task lives a second go through the real runtime?

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use plimsoll::{Config, Handle, JobSpec, NodeSpec, RequestError, Runtime, ShutdownReport, tasks};
use serde_json::json;

use super::FAILED;
use super::output::Output;
use super::tally::Tally;

/// Drive the real runtime as fast as it goes and print what it did
///
/// Producer threads submit jobs of one task, many to a command; an executor that does nothing ends
/// each task at once, so every task lives a whole life: submitted, assigned, started, finished,
/// released. One more thread submits single jobs and measures how long each takes from submission
/// until it is finished. Ctrl-C ends it in order.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// How long to drive
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// How many nodes there are, with 8 slots each
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    nodes: u32,
    /// How many threads submit
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    producers: u32,
    /// Jobs in one command
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
}

const EXAMPLES: &str = "Examples:
  plimsoll load --seconds 10 --nodes 1000 --producers 4
  plimsoll load --seconds 5 --json";

const SLOTS: u32 = 8;
/// Producers pause while more jobs than this are unfinished, so that memory stays bounded.
const UNFINISHED_MAX: u64 = 50_000;

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> io::Result<ExitCode> {
    let config = Config::from_toml("window = 0.0").expect("a window of zero is a good setting");
    let builder = Runtime::builder().config(config).executor(tasks(|_| async { Ok(()) }).inline());
    let driver = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = driver.block_on(async {
        let runtime = builder.start().map_err(|error| Box::new(error) as Box<dyn std::error::Error>)?;
        drive(arguments, runtime, output.json).await
    });
    match outcome {
        Ok(figures) => figures.print(output),
        Err(error) => {
            output.failure(error.as_ref())?;
            Ok(ExitCode::from(FAILED))
        }
    }
}

struct Figures {
    seconds: f64,
    submitted: u64,
    tally: Arc<Tally>,
    life: Histogram<u64>,
    report: ShutdownReport,
}

async fn drive(
    arguments: &Arguments,
    runtime: Runtime,
    quiet: bool,
) -> Result<Figures, Box<dyn std::error::Error>> {
    let handle = runtime.handle();
    for number in 0..arguments.nodes {
        handle.add_node(NodeSpec::new(format!("node-{number}")).capacity("slot", SLOTS)).await?;
    }
    let tally = Tally::follow(handle.events()?);
    let over = Arc::new(AtomicBool::new(false));
    let submitted = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let producers: Vec<_> = (0..arguments.producers)
        .map(|_| {
            let (handle, tally) = (handle.clone(), Arc::clone(&tally));
            let (over, submitted) = (Arc::clone(&over), Arc::clone(&submitted));
            let batch = arguments.batch;
            std::thread::spawn(move || produce(&handle, &tally, &over, &submitted, batch))
        })
        .collect();
    let probe = {
        let (handle, over) = (handle.clone(), Arc::clone(&over));
        std::thread::spawn(move || measure(&handle, &over))
    };
    let visible = !quiet && io::stderr().is_terminal();
    tokio::select! {
        () = watch(arguments, began, &tally, visible) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    over.store(true, Ordering::Relaxed);
    for producer in producers {
        producer.join().map_err(|_| "a producer panicked")?;
    }
    let life = probe.join().map_err(|_| "the probe panicked")?;
    let seconds = began.elapsed().as_secs_f64();
    let report = runtime.shutdown(Duration::from_secs(10)).await;
    Ok(Figures { seconds, submitted: submitted.load(Ordering::Relaxed), tally, life, report })
}

async fn watch(arguments: &Arguments, began: Instant, tally: &Tally, visible: bool) {
    let end = Duration::from_secs(arguments.seconds);
    let mut before = 0;
    while began.elapsed() < end {
        tokio::time::sleep(Duration::from_millis(250).min(end.saturating_sub(began.elapsed()))).await;
        let lives = Tally::get(&tally.ended);
        if visible {
            let seconds = began.elapsed().as_secs();
            let rate = (lives - before) * 4;
            let _ = write!(io::stderr().lock(), "\r\x1b[K{seconds:>4} s  {lives} task lives, {rate}/s now");
        }
        before = lives;
    }
    if visible {
        let _ = write!(io::stderr().lock(), "\r\x1b[K");
    }
}

fn produce(handle: &Handle, tally: &Tally, over: &AtomicBool, submitted: &AtomicU64, batch: u32) {
    let job = JobSpec::bag("load", 1).request("slot", 1);
    let driver = tokio::runtime::Builder::new_current_thread().build().expect("a thread can wait");
    while !over.load(Ordering::Relaxed) {
        let finished = Tally::get(&tally.jobs_finished) + Tally::get(&tally.missed);
        if submitted.load(Ordering::Relaxed).saturating_sub(finished) > UNFINISHED_MAX {
            std::thread::yield_now();
            continue;
        }
        let jobs = vec![job.clone(); batch as usize];
        let Ok(outcomes) = driver.block_on(handle.submit_many(jobs)) else { return };
        let accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        submitted.fetch_add(accepted as u64, Ordering::Relaxed);
    }
}

/// Submits one job after the other and measures each from submission until it is finished.
fn measure(handle: &Handle, over: &AtomicBool) -> Histogram<u64> {
    let mut life = Histogram::new_with_max(60_000_000, 3).expect("three digits are a good precision");
    let driver = tokio::runtime::Builder::new_current_thread().build().expect("a thread can wait");
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        let whole = driver.block_on(async {
            let job = handle.submit(JobSpec::bag("probe", 1).request("slot", 1)).await.ok()?;
            match handle.wait(job).await {
                // It is over and forgotten already.
                Ok(_) | Err(RequestError::Refused(_)) => Some(()),
                Err(_) => None,
            }
        });
        if whole.is_none() {
            return life;
        }
        life.saturating_record(began.elapsed().as_micros() as u64);
        std::thread::sleep(Duration::from_millis(2));
    }
    life
}

impl Figures {
    fn print(&self, output: &mut Output) -> io::Result<ExitCode> {
        let lives = Tally::get(&self.tally.ended);
        let missed = Tally::get(&self.tally.missed);
        let rate = |count: u64| count as f64 / self.seconds;
        let micros = |quantile: f64| self.life.value_at_quantile(quantile);
        if output.json {
            output.document(&json!({
                "seconds": self.seconds,
                "jobs_submitted": self.submitted,
                "submissions_per_second": rate(self.submitted),
                "task_lives": lives,
                "task_lives_per_second": rate(lives),
                "events_missed_by_the_counter": missed,
                "life_microseconds": {"p50": micros(0.5), "p99": micros(0.99), "p999": micros(0.999)},
                "threads_joined": self.report.threads_joined,
            }))?;
        } else {
            let rows = [
                ("seconds", format!("{:.1}", self.seconds)),
                ("jobs submitted", self.submitted.to_string()),
                ("submissions per second", format!("{:.0}", rate(self.submitted))),
                ("task lives", lives.to_string()),
                ("task lives per second", format!("{:.0}", rate(lives))),
                ("submit to finished, p50", format!("{} µs", micros(0.5))),
                ("submit to finished, p99", format!("{} µs", micros(0.99))),
                ("events missed by the counter", missed.to_string()),
            ];
            output.table(&["load", ""], rows.map(|(name, value)| vec![name.to_owned(), value]))?;
        }
        Ok(if self.report.threads_joined { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
    }
}
