//! A run on the real runtime, from its first node to the check of every promise.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll::{Config, Runtime, TaskContext, TaskError, tasks};

use super::Arguments;
use super::figures::{Figures, Named};
use super::follow::{Counts, follow};
use super::probe::Latencies;
use super::produce::{Producer, Producers, end_the_rest, take_assignments};
use super::progress::Progress;
use super::{promises, workload};

pub(super) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What was accepted may take this long to end once nothing more is submitted.
const DRAIN: Duration = Duration::from_secs(60);

pub(super) async fn drive(arguments: &Arguments, config: &Config, quiet: bool) -> Outcome<Figures> {
    let runtime = start(arguments, config)?;
    let handle = runtime.handle();
    let no_window = Config::from_toml("window = 0.0").expect("a window of zero is a good setting");
    handle.update_settings(no_window.raw())?;
    for number in 0..arguments.nodes {
        handle.add_node(workload::node(number)).await?;
    }
    let counts = Arc::new(Counts::default());
    let follower = follow(handle.events()?, Arc::clone(&counts));
    let (over, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::default()));
    let shared = Producers { handle: handle.clone(), counts: Arc::clone(&counts), over, begun };
    let reader = runtime.assignments().map(|reader| {
        let shared = shared.clone();
        std::thread::spawn(move || take_assignments(reader, &shared))
    });
    let mut progress = Progress::new(arguments.seconds, quiet);
    let cpu_before = cpu_seconds();
    let crew = Crew::start(&shared, arguments)?;
    let interrupted = tokio::select! {
        () = watch(&mut progress, &counts, arguments) => false,
        _ = tokio::signal::ctrl_c() => true,
    };
    shared.over.store(true, Ordering::Relaxed);
    let probe = crew.producers_end()?;
    progress.look(&counts);
    progress.clear();
    let seconds = progress.elapsed().as_secs_f64();
    let mut figures = Figures {
        title: title(arguments, config),
        seconds,
        interrupted,
        simulated: false,
        refused: Counts::get(&counts.refused_jobs),
        events_in: Counts::get(&counts.events_in),
        lives: Counts::get(&counts.ended),
        cpu_seconds: cpu_seconds() - cpu_before,
        utilisation: utilisation(arguments, counts.held_micros(handle.now()), seconds),
        samples: progress.samples,
        // Known when everything has ended.
        jobs: 0,
        missed: 0,
        latencies: Vec::new(),
        promises: Vec::new(),
        threads_joined: false,
    };
    let drained = drain(&shared, || probe.is_finished()).await;
    let Latencies { considered, assigned, finished } = probe.join().map_err(|_| "the probe panicked")?;
    figures.promises = promises::check(&runtime, &counts, drained).await;
    figures.threads_joined = runtime.shutdown(Duration::from_secs(10)).await.threads_joined;
    let pending = follower.join().map_err(|_| "the counter panicked")?;
    if let Some(reader) = reader {
        reader.join().map_err(|_| "the reader of assignments panicked")?;
    }
    (figures.jobs, figures.missed) = (Counts::get(&counts.accepted_jobs), Counts::get(&counts.missed));
    figures.latencies = vec![
        Named::new("submit to considered", considered),
        Named::new("submit to assigned", assigned),
        Named::new("pending to assigned", pending),
        Named::new("submit to finished", finished),
    ];
    Ok(figures)
}

/// The threads that feed the runtime.
struct Crew {
    producers: Vec<JoinHandle<()>>,
    probe: JoinHandle<Latencies>,
}

impl Crew {
    fn start(shared: &Producers, arguments: &Arguments) -> Outcome<Crew> {
        let mut producers = Vec::new();
        for _ in 0..arguments.producers {
            let producer = Producer::new(shared.clone(), arguments)?;
            producers.push(match arguments.mix {
                None => std::thread::spawn(move || producer.submit_all()),
                Some(mix) => std::thread::spawn(move || producer.feed(mix)),
            });
        }
        let (shared, job) = (shared.clone(), workload::probe(arguments));
        let measure = move || Latencies::measure(&shared.handle, &job, &shared.counts, &shared.over);
        Ok(Crew { producers, probe: std::thread::spawn(measure) })
    }

    fn producers_end(self) -> Outcome<JoinHandle<Latencies>> {
        for producer in self.producers {
            producer.join().map_err(|_| "a producer panicked")?;
        }
        Ok(self.probe)
    }
}

fn title(arguments: &Arguments, config: &Config) -> String {
    let Arguments { nodes, producers, .. } = arguments;
    let decides = if arguments.mix.is_some() { ", deciding only" } else { "" };
    format!("{nodes} nodes, {producers} producers, preset {}{decides}", config.name())
}

fn start(arguments: &Arguments, config: &Config) -> Outcome<Runtime> {
    let builder = Runtime::builder().config(config.clone());
    Ok(match (arguments.mix, arguments.run_millis) {
        (Some(_), _) => builder.start()?,
        (None, 0) => builder.executor(tasks(|_| async { Ok(()) }).inline()).start()?,
        (None, millis) => builder.executor(tasks(move |task| sleep(task, millis))).start()?,
    })
}

async fn sleep(task: TaskContext, millis: u64) -> Result<(), TaskError> {
    let mut stop = task.stop.clone();
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(millis)) => Ok(()),
        () = stop.stopped() => Err(TaskError::new("stopped")),
    }
}

/// Looks on until time is up, or all jobs that were asked for have ended.
async fn watch(progress: &mut Progress, counts: &Counts, arguments: &Arguments) {
    while !progress.is_over() {
        tokio::time::sleep(progress.pause()).await;
        progress.look(counts);
        let all = arguments.jobs.is_some_and(|jobs| Counts::get(&counts.produced_jobs) >= jobs);
        if all && counts.unfinished() == 0 {
            return;
        }
    }
}

/// Waits until everything that was accepted has ended; false if that takes too long.
async fn drain(shared: &Producers, others_done: impl Fn() -> bool) -> bool {
    let until = Instant::now() + DRAIN;
    while Instant::now() < until {
        end_the_rest(shared).await;
        let missed = Counts::get(&shared.counts.missed) > 0;
        let unfinished = match missed {
            false => shared.counts.unfinished() > 0,
            // Events that were missed cannot be counted: then the board is asked.
            true => shared.handle.jobs().iter().any(|(_, job)| job.finished.is_none()),
        };
        if others_done() && !unfinished {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

/// Of each kind, how much of what there was tasks held, on average.
fn utilisation(arguments: &Arguments, held_micros: i64, seconds: f64) -> Vec<(String, f64)> {
    let tasks = held_micros.max(0) as f64 / 1e6 / seconds / f64::from(arguments.nodes);
    let part = |(name, has, wants): (&str, u64, u64)| (name.to_owned(), tasks * wants as f64 / has as f64);
    workload::KINDS.into_iter().map(part).collect()
}

/// Seconds of processor time that this process has used.
pub(super) fn cpu_seconds() -> f64 {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }
    #[cfg(not(target_os = "linux"))]
    0.0
}
