//! A cluster of a million cores in virtual time: can the machines keep up with it?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fastrand::Rng;
use plimsoll::Config;
use plimsoll::core::id::Attempt;
use plimsoll::core::machines::Machines;
use plimsoll::core::messages::{HostMessage, JobEvent};
use plimsoll::core::resources::{KindId, Kinds, Resources};
use plimsoll::core::spec::{JobSpec, NodeSpec};
use plimsoll::core::time::Span;

use super::Arguments;
use super::drive::{Outcome, cpu_seconds};
use super::figures::{Figures, Named};
use super::follow::histogram;
use super::memory;
use super::progress::{Progress, Sample};
use super::promises::{Accepted, check_machines};
use super::virtual_cluster::VirtualCluster;

const GIBIBYTE: i64 = 1 << 30;
const CORES_PER_NODE: u64 = 32;
const MEMORY_PER_NODE: i64 = 128 * GIBIBYTE;
/// Jobs arrive, and executions end, in steps of so much virtual time.
const STEP: Span = Span::from_millis(10);
/// The executions of a job take about ten minutes, each between these.
const RUN_SECONDS: (u64, u64) = (540, 660);
/// Until the first jobs have ended the cluster only fills; what it is used after that counts.
const WARM_UP: Span = Span::from_whole_seconds(900);
/// A little more than a cluster of this size can serve, so that something always waits.
const JOBS_PER_CORE_SECOND: f64 = 1.0 / 776.0;
const LOOK_EVERY: Span = Span::from_whole_seconds(10);
/// More waiting jobs than a minute brings are not taken in: producers wait then.
const BACKLOG_SECONDS: f64 = 60.0;

/// Jobs in a hundred: how many, tasks, cores and gibibytes of each task, and whether they start together.
const JOBS: [(u32, u32, i64, i64, bool); 9] = [
    (30, 1, 1, 4, false),
    (30, 1, 1, 3, false),
    (28, 1, 1, 5, false),
    (3, 1, 2, 8, false),
    (3, 1, 4, 14, false),
    (2, 2, 1, 4, false),
    (2, 4, 1, 4, true),
    (1, 8, 1, 4, true),
    (1, 3, 2, 8, true),
];

/// What is counted while it goes on.
struct Counted {
    considered: hdrhistogram::Histogram<u64>,
    assigned: hdrhistogram::Histogram<u64>,
    lives: u64,
    held: Resources,
    /// Amounts times microseconds, of cores and memory.
    used: [f64; 2],
    measured: Span,
}

pub(super) fn run(arguments: &Arguments, config: &Config, quiet: bool) -> Outcome<Figures> {
    let mut settings = config.settings().clone();
    settings.window.gap = Span::ZERO;
    // Jobs of one core may hold every core, and others wait.
    settings.limits.jobs = settings.limits.jobs.max(2 * arguments.cores);
    let (cpu, ram) = kinds(&settings.kinds)?;
    let mut rng = Rng::with_seed(1);
    let specs = job_specs(cpu, ram);
    let mut cluster = VirtualCluster::new(&Arc::new(settings));
    let nodes = arguments.cores.div_ceil(CORES_PER_NODE);
    add_nodes(&mut cluster, nodes, cpu, ram);
    let rate = arguments.rate.map_or(arguments.cores as f64 * JOBS_PER_CORE_SECOND, |rate| rate as f64);
    let mut progress = Progress::new(arguments.seconds, quiet);
    let mut counted = Counted::new();
    let (cpu_before, began) = (cpu_seconds(), Instant::now());
    let (mut accepted, mut owed) = (Accepted { jobs: 0, tasks: 0 }, 0.0);
    let interrupted = interruption();
    let end = Span::from_whole_seconds(arguments.seconds);
    while cluster.now.0 < end.0 && !interrupted.load(Ordering::Relaxed) {
        cluster.now = cluster.now + STEP;
        let begin = Instant::now();
        owed += rate * STEP.as_seconds();
        let full = cluster.machines.scheduler.waiting_tasks() as f64 > rate * BACKLOG_SECONDS;
        let arrivals = if full { 0 } else { owed as u64 };
        owed = if full { 0.0 } else { owed - arrivals as f64 };
        for _ in 0..arrivals {
            let spec = draw(&specs, &mut rng);
            accepted.tasks += spec.tasks();
            cluster.submit(Arc::clone(spec));
        }
        accepted.jobs += arrivals;
        counted.step(&mut cluster, &mut rng);
        let micros = begin.elapsed().as_micros() as u64;
        counted.considered.saturating_record_n(micros, arrivals);
        counted.pass(cluster.now.0, [cpu, ram]);
        if cluster.now.0.is_multiple_of(LOOK_EVERY.0) {
            progress.note(counted.sample(cluster.now.as_seconds(), accepted.jobs));
        }
    }
    progress.clear();
    let seconds = cluster.now.as_seconds();
    let (cpu_used, wall) = (cpu_seconds() - cpu_before, began.elapsed().as_secs_f64());
    let capacity = [nodes as f64 * CORES_PER_NODE as f64 * 1_000.0, nodes as f64 * MEMORY_PER_NODE as f64];
    let (cores, preset) = (arguments.cores, config.name());
    Ok(Figures {
        title: format!(
            "{cores} simulated cores on {nodes} nodes, preset {preset}: {seconds:.0} virtual seconds in {wall:.1}"
        ),
        seconds,
        interrupted: interrupted.load(Ordering::Relaxed),
        simulated: true,
        jobs: accepted.jobs,
        refused: 0,
        events_in: accepted.jobs + counted.lives,
        lives: counted.lives,
        missed: 0,
        cpu_seconds: cpu_used,
        utilisation: counted.utilisation(capacity),
        latencies: vec![
            Named::new("submit to considered", counted.considered),
            Named::new("submit to assigned", counted.assigned),
        ],
        samples: progress.samples,
        promises: check_machines(&cluster.machines, accepted),
        threads_joined: true,
    })
}

/// Set when somebody wants it to end.
fn interruption() -> Arc<AtomicBool> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    std::thread::spawn(move || {
        let driver = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(driver) = driver else { return };
        if driver.block_on(tokio::signal::ctrl_c()).is_ok() {
            flag.store(true, Ordering::Relaxed);
        }
    });
    interrupted
}

fn add_nodes(cluster: &mut VirtualCluster, nodes: u64, cpu: KindId, ram: KindId) {
    let mut capacity = Resources::of(cpu, CORES_PER_NODE as i64 * 1_000);
    capacity.set(ram, MEMORY_PER_NODE);
    for number in 0..nodes {
        cluster.add_node(NodeSpec::new(format!("node-{number}"), capacity.clone()));
    }
    cluster.settle(|_, _| Span::ZERO, |_, _| {});
}

fn kinds(kinds: &Kinds) -> Outcome<(KindId, KindId)> {
    let kind = |name: &str| kinds.id(name).ok_or_else(|| format!("the settings have no kind `{name}`"));
    Ok((kind("cpu")?, kind("memory")?))
}

fn job_specs(cpu: KindId, ram: KindId) -> Vec<(u32, Arc<JobSpec>)> {
    let spec = |(weight, tasks, cores, gibibytes, together): (u32, u32, i64, i64, bool)| {
        let mut request = Resources::of(cpu, cores * 1_000);
        request.set(ram, gibibytes * GIBIBYTE);
        let job = match together {
            true => JobSpec::gang("gang", tasks, request),
            false => JobSpec::bag("tasks", tasks, request),
        };
        (weight, Arc::new(job))
    };
    JOBS.into_iter().map(spec).collect()
}

fn draw<'a>(specs: &'a [(u32, Arc<JobSpec>)], rng: &mut Rng) -> &'a Arc<JobSpec> {
    let mut drawn = rng.u32(..specs.iter().map(|(weight, _)| weight).sum::<u32>());
    for (weight, spec) in specs {
        if drawn < *weight {
            return spec;
        }
        drawn -= weight;
    }
    unreachable!("what is drawn is below the sum")
}

impl Counted {
    fn new() -> Counted {
        Counted {
            considered: histogram(),
            assigned: histogram(),
            lives: 0,
            held: Resources::new(),
            used: [0.0; 2],
            measured: Span::ZERO,
        }
    }

    fn sample(&self, seconds: f64, jobs: u64) -> Sample {
        let memory = memory::resident().unwrap_or(0);
        Sample { seconds, events_in: jobs + self.lives, lives: self.lives, memory }
    }

    fn step(&mut self, cluster: &mut VirtualCluster, rng: &mut Rng) {
        let run = |_: &Machines, _: Attempt| {
            let (least, most) = RUN_SECONDS;
            Span(rng.u64(least * 1_000_000..most * 1_000_000))
        };
        cluster.settle(run, |machines, message| self.hear(machines, &message));
    }

    fn hear(&mut self, machines: &Machines, message: &HostMessage) {
        let HostMessage::Job(event) = message else { return };
        let (attempt, bound) = match *event {
            JobEvent::Bound { attempt, at, .. } => (attempt, Some(at)),
            JobEvent::Ended { attempt, .. } => (attempt, None),
            _ => return,
        };
        let job = machines.jobs.job(attempt.task.job()).expect("a job is kept while something of it runs");
        let role = &job.spec.groups[attempt.task.group.index()].roles[usize::from(attempt.task.role)];
        match bound {
            Some(at) => {
                self.held += &role.shape.request;
                self.assigned.saturating_record(at.since(job.accepted).0);
            }
            None => {
                self.held -= &role.shape.request;
                self.lives += 1;
            }
        }
    }

    /// A step goes by with what is held now.
    fn pass(&mut self, now: u64, kinds: [KindId; 2]) {
        if now <= WARM_UP.0 {
            return;
        }
        self.measured = Span(self.measured.0 + STEP.0);
        for (used, kind) in self.used.iter_mut().zip(kinds) {
            *used += self.held.get(kind) as f64 * STEP.0 as f64;
        }
    }

    /// How much of what there is was held, once the cluster had filled.
    fn utilisation(&self, capacity: [f64; 2]) -> Vec<(String, f64)> {
        let part = |index: usize| self.used[index] / capacity[index] / (self.measured.0 as f64).max(1.0);
        vec![("cpu".to_owned(), part(0)), ("memory".to_owned(), part(1))]
    }
}
