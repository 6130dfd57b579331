//! `plimsoll demo`: a live run with nodes, arriving jobs and tasks that take their time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use fastrand::Rng;
use plimsoll::core::settings::ShareUnit;
use plimsoll::{
    BoxFuture, Config, Executor, GroupSpec, Handle, JobSpec, NodeSpec, RoleSpec, Runtime, ShutdownReport,
    StateTime, StopSignal, TaskContext, TaskError, UsageAnswer, UsageOf,
};
use serde_json::json;

use super::class_table::{self, ClassTable};
use super::metrics::MetricsServer;
use super::output::Output;
use super::tally::Tally;
use super::{BAD_INPUT, FAILED};

/// Run a pretend cluster for a while and show what happens
///
/// Jobs arrive at about the rate that the nodes can serve; their tasks sleep for a moment. Nothing
/// outside this process is touched. Ctrl-C ends it in order.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// How long jobs arrive
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// How many nodes there are, with 8 cores each
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    nodes: u32,
    /// A preset or a configuration file
    #[arg(long, default_value = "default")]
    preset: String,
    /// Decides the jobs and how long their tasks take
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// All but the first class come first and borrow what that does not use; in the middle third only the first
    /// comes and takes it back
    #[arg(long)]
    burst: bool,
    /// Write a log of every turn here, for `plimsoll replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Serve what is measured as Prometheus text at http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

const EXAMPLES: &str = "Examples:
  plimsoll demo
  plimsoll demo --seconds 5 --nodes 100 --preset swarmkit --record turns.log
  plimsoll demo --preset scoot --burst
  plimsoll demo --seconds 600 --metrics 127.0.0.1:9090";

const CORES: u32 = 8;
const RECORD_BYTES_MAX: u64 = 1 << 30;
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Cores, or slots, times seconds that an average job of [`random_job`] and of [`random_bag`] takes.
const CORE_SECONDS_PER_JOB: f64 = 2.5;

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> io::Result<ExitCode> {
    let config = match Config::load(&arguments.preset) {
        Ok(config) => config.without_heartbeats(),
        Err(error) => return output.problems(&error),
    };
    let mut builder = Runtime::builder().config(config).executor(PretendWork);
    if let Some(path) = &arguments.record {
        match File::create(path) {
            Ok(file) => builder = builder.record(BufWriter::new(file), RECORD_BYTES_MAX),
            Err(error) => {
                let place = format!("{}: {error}", path.display());
                output.failure(&io::Error::other(place))?;
                return Ok(ExitCode::from(BAD_INPUT));
            }
        }
    }
    let driver = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = driver.block_on(async {
        if let Some(address) = arguments.metrics {
            let server = MetricsServer::bind(address).await.map_err(|error| {
                let advice = "choose another with --metrics, or port 0 for any that is free";
                io::Error::new(
                    error.kind(),
                    format!("figures cannot be served at {address}: {error}; {advice}"),
                )
            })?;
            anstream::eprintln!("figures at http://{}/metrics", server.address()?);
            tokio::spawn(server.serve());
        }
        let runtime = builder.start().map_err(|error| Box::new(error) as Box<dyn std::error::Error>)?;
        show(arguments, runtime, output.json).await
    });
    match outcome {
        Ok(figures) => figures.print(output),
        Err(error) => {
            output.failure(error.as_ref())?;
            Ok(ExitCode::from(FAILED))
        }
    }
}

/// Work that only takes its time, and so does what comes before it.
struct PretendWork;

impl Executor for PretendWork {
    fn prepare(&self, task: &TaskContext) -> BoxFuture<Result<(), TaskError>> {
        /// The same for the same task, so that a seed says everything.
        const LONGEST_MILLIS: u64 = 40;
        let task_number = task.job_id().0.wrapping_mul(7) + u64::from(task.index());
        let span = Duration::from_millis(1 + task_number % LONGEST_MILLIS);
        Box::pin(sleep(span, task.stop.clone()))
    }

    fn run(&self, task: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        let micros = task.role().duration.get().map_or(0, |duration| duration.0);
        Box::pin(sleep(Duration::from_micros(micros), task.stop.clone()))
    }
}

async fn sleep(span: Duration, mut stop: StopSignal) -> Result<(), TaskError> {
    tokio::select! {
        () = tokio::time::sleep(span) => Ok(()),
        () = stop.stopped() => Err(TaskError::new("stopped")),
    }
}

struct Figures {
    seconds: f64,
    submitted: u64,
    tally: Arc<Tally>,
    utilisation: f64,
    classes: ClassTable,
    /// How the nodes spent their time.
    usage: UsageAnswer,
    report: ShutdownReport,
    interrupted: bool,
}

async fn show(
    arguments: &Arguments,
    runtime: Runtime,
    quiet: bool,
) -> Result<Figures, Box<dyn std::error::Error>> {
    let handle = runtime.handle();
    let tally = Tally::follow(handle.events()?);
    for number in 0..arguments.nodes {
        let node = NodeSpec::new(format!("node-{number}")).capacity("cpu", CORES).capacity("memory", "32Gi");
        let node = node.capacity("slot", CORES);
        handle.add_node(node).await?;
    }
    let requestors = class_table::requestors(&handle);
    let mut classes = ClassTable::default();
    let began = Instant::now();
    let mut busy = Busy::default();
    let visible = !quiet && io::stderr().is_terminal();
    let arrivals = arrive(arguments, &handle, &requestors);
    let watch = async {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            busy.look(&handle);
            classes.look(&handle, began.elapsed());
            if visible {
                let line = progress(began, arguments, &tally, &busy);
                let _ = write!(io::stderr().lock(), "{}{line}", classes.redraw());
            } else if !quiet {
                let _ = write!(io::stderr().lock(), "{}", classes.line_of_a_second());
            }
        }
    };
    let mut interrupted = false;
    let submitted = tokio::select! {
        submitted = arrivals => submitted?,
        () = watch => unreachable!("watching has no end of its own"),
        _ = tokio::signal::ctrl_c() => { interrupted = true; 0 }
    };
    if visible {
        let _ = write!(io::stderr().lock(), "{}", classes.wipe());
    }
    let seconds = began.elapsed().as_secs_f64();
    let submitted = if interrupted { handle.jobs().len() as u64 } else { submitted };
    let usage = handle.usage(UsageOf::All, None).await?;
    let report = runtime.shutdown(Duration::from_secs(5)).await;
    let utilisation = busy.mean(arguments);
    Ok(Figures { seconds, submitted, tally, utilisation, classes, usage, report, interrupted })
}

/// Submits jobs until time is up; the answer is how many.
async fn arrive(
    arguments: &Arguments,
    handle: &Handle,
    requestors: &[String],
) -> Result<u64, plimsoll::SubmitError> {
    let mut rng = Rng::with_seed(arguments.seed);
    // Shares show where more is wanted than there is.
    let wanted = if requestors.is_empty() { 1.0 } else { 2.0 };
    let settings = handle.settings();
    let shares = &settings.shares;
    let by_slots = shares.classes.is_some() && shares.unit == ShareUnit::Slot;
    let rate = wanted * f64::from(arguments.nodes * CORES) / CORE_SECONDS_PER_JOB;
    let until = Instant::now() + Duration::from_secs(arguments.seconds);
    let mut next = tokio::time::Instant::now();
    let mut submitted = 0;
    while Instant::now() < until {
        let passed = 1.0 - (until - Instant::now()).as_secs_f64() / arguments.seconds as f64;
        let requestor = rng.choice(who_comes(arguments, requestors, passed)).map_or("demo", String::as_str);
        let job = match by_slots {
            true => random_bag(&mut rng, submitted),
            false => random_job(&mut rng, submitted),
        };
        handle.submit(job.requestor(requestor)).await?;
        submitted += 1;
        next += Duration::from_secs_f64(2.0 * rng.f64() / rate);
        tokio::time::sleep_until(next).await;
    }
    Ok(submitted)
}

/// Who submits when so much of the time has passed.
fn who_comes<'a>(arguments: &Arguments, requestors: &'a [String], passed: f64) -> &'a [String] {
    match requestors {
        [first, others @ ..] if arguments.burst && !others.is_empty() => match passed {
            ..=0.33 => others,
            ..=0.67 => std::slice::from_ref(first),
            _ => requestors,
        },
        _ => requestors,
    }
}

fn random_job(rng: &mut Rng, number: u64) -> JobSpec {
    let role = |rng: &mut Rng, name: &str, tasks: u32, cores: u32| {
        let span = Duration::from_millis(rng.u64(50..750));
        RoleSpec::new(name, tasks).request("cpu", cores).request("memory", "1Gi").duration(span)
    };
    let group = match rng.u8(0..5) {
        0 => {
            let leader = role(rng, "leader", 1, 2);
            GroupSpec::new("gang").atomic().role(leader).role(role(rng, "worker", 3, 1))
        }
        _ => {
            let (tasks, cores) = (rng.u32(1..8), rng.u32(1..3));
            GroupSpec::new("tasks").role(role(rng, "task", tasks, cores))
        }
    };
    JobSpec::new(format!("job-{number}")).group(group)
}

/// Where classes have percents of the slots, every task takes one: a class then has what it can be given.
fn random_bag(rng: &mut Rng, number: u64) -> JobSpec {
    let span = Duration::from_millis(rng.u64(50..750));
    let role = RoleSpec::new("task", rng.u32(1..12)).request("slot", 1).duration(span);
    JobSpec::new(format!("job-{number}")).group(GroupSpec::new("tasks").role(role))
}

/// How busy the nodes were whenever somebody looked.
#[derive(Default)]
struct Busy {
    looks: u64,
    tasks: u64,
    now: u64,
}

impl Busy {
    fn look(&mut self, handle: &Handle) {
        self.now = handle.nodes().iter().map(|node| node.live).sum();
        self.tasks += self.now;
        self.looks += 1;
    }

    /// Mean number of running tasks per node.
    fn mean(&self, arguments: &Arguments) -> f64 {
        self.tasks as f64 / self.looks.max(1) as f64 / f64::from(arguments.nodes)
    }
}

fn progress(began: Instant, arguments: &Arguments, tally: &Tally, busy: &Busy) -> String {
    let elapsed = began.elapsed().as_secs().min(arguments.seconds);
    let width = 20;
    let filled = (width * elapsed / arguments.seconds.max(1)) as usize;
    let bar: String = (0..width as usize).map(|place| if place < filled { '█' } else { '░' }).collect();
    format!(
        "{bar} {elapsed:>3} s  {} jobs done, {} tasks done, {} running on {} nodes",
        Tally::get(&tally.jobs_finished),
        Tally::get(&tally.completed),
        busy.now,
        arguments.nodes,
    )
}

/// Seconds that the nodes spent in each state, in sum.
fn node_seconds(usage: &UsageAnswer) -> BTreeMap<String, f64> {
    let name = |time: &StateTime| format!("{} {}", time.condition.name(), time.usage.name());
    usage.times.iter().map(|time| (name(time), time.span.as_seconds())).collect()
}

impl Figures {
    fn print(&self, output: &mut Output) -> io::Result<ExitCode> {
        let finished = Tally::get(&self.tally.jobs_finished);
        let completed = Tally::get(&self.tally.completed);
        let (provisioning, running) = self.tally.attempt_seconds();
        if output.json {
            output.document(&json!({
                "seconds": self.seconds,
                "jobs_submitted": self.submitted,
                "jobs_finished": finished,
                "tasks_completed": completed,
                "tasks_per_second": completed as f64 / self.seconds,
                "running_per_node": self.utilisation,
                "classes": self.classes.document(),
                "node_seconds": node_seconds(&self.usage),
                "provisioning_seconds": provisioning,
                "running_seconds": running,
                "executions_stopped": self.report.stopped,
                "executions_abandoned": self.report.abandoned,
                "threads_joined": self.report.threads_joined,
                "interrupted": self.interrupted,
            }))?;
        } else {
            let rows = [
                ("seconds", format!("{:.1}", self.seconds)),
                ("jobs submitted", self.submitted.to_string()),
                ("jobs finished", finished.to_string()),
                ("tasks completed", completed.to_string()),
                ("tasks per second", format!("{:.0}", completed as f64 / self.seconds)),
                ("running per node, mean", format!("{:.1}", self.utilisation)),
                ("seconds provisioning", format!("{provisioning:.1}")),
                ("seconds running", format!("{running:.1}")),
                ("stopped at the end", self.report.stopped.to_string()),
            ];
            output.table(&["demo", ""], rows.map(|(name, value)| vec![name.to_owned(), value]))?;
            if !self.classes.is_empty() {
                output.table(&class_table::HEADER, self.classes.rows())?;
            }
            let spent = node_seconds(&self.usage);
            let spent = spent.iter().map(|(state, seconds)| vec![state.clone(), format!("{seconds:.1}")]);
            output.table(&["nodes were", "seconds"], spent)?;
        }
        if let Some(error) = &self.report.record_error {
            output.failure(&io::Error::other(format!("the turn log cannot be written: {error}")))?;
        }
        if self.report.turns_left_out > 0 {
            let left_out = self.report.turns_left_out;
            output.failure(&io::Error::other(format!("{left_out} turns did not fit into the turn log")))?;
        }
        let recorded = self.report.record_error.is_none() && self.report.turns_left_out == 0;
        let clean = recorded && self.report.threads_joined && self.report.abandoned == 0;
        Ok(if clean { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
    }
}
