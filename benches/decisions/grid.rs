//! Deciding, and deciding and booking, over a grid of nodes and tasks.

use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;

use plimsoll_core::constraint::Constraint;
use plimsoll_core::id::{GroupId, JobId};
use plimsoll_core::machine::Machine;
use plimsoll_core::messages::{
    ClusterMessage, EndReport, GroupArrival, Outbox, RoleArrival, SchedulerMessage,
};
use plimsoll_core::outcome::Exit;
use plimsoll_core::resources::Resources;
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::{NodeChoice, OnUnsatisfiable, Rules, ShapeSpec, Standing, Start, Tie};
use plimsoll_core::time::{Span, Time};

use crate::baseline::Baseline;
use crate::support::machines::{CPU, settings_with_window, settings_without_window};
use crate::support::{Machines, Options, Table, Value, nanos_each, per_second};

const GRID: [(u32, u32); 7] = [
    (1_000, 1_000),
    (1_000, 10_000),
    (1_000, 100_000),
    (10_000, 100_000),
    (100_000, 1_000),
    (100_000, 100_000),
    (100_000, 1_000_000),
];

const GRID_QUICK: [(u32, u32); 4] =
    [(1_000, 10_000), (10_000, 100_000), (100_000, 1_000), (100_000, 100_000)];

/// The row to which the growth of the cost is related, and the target of every row.
const SMALL: (u32, u32) = (1_000, 10_000);
const TARGET_PER_SECOND: f64 = 1_000_000.0;
const TARGET_GROWTH: f64 = 2.0;

/// Nanoseconds per assignment of one job, in each of its circumstances.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// Nobody has asked for this shape before.
    first: f64,
    /// A second job of the shape, into the room that is left.
    second: f64,
    /// A third one, after everything of the first two has ended.
    after_releases: f64,
    /// The third one, decided and entered into the ledger.
    booked: f64,
}

/// What one job of so many identical tasks took.
#[derive(Clone, Copy, Debug)]
struct Spent {
    deciding: Duration,
    booking: Duration,
}

struct Run {
    machines: Machines,
    now: Time,
    jobs: u64,
    tasks: u32,
    shape: Arc<ShapeSpec>,
    reports: Vec<EndReport>,
    /// What was said while the nodes came in. It is kept because the first turn after dropping so
    /// many small pieces would be charged with the allocator's tidying up.
    _spoken: Outbox,
}

impl Run {
    fn new(settings: &Arc<Settings>, (nodes, tasks): (u32, u32), rules: Rules) -> Run {
        // Room for two jobs and a little more.
        let each = i64::from(2 * tasks.div_ceil(nodes) + 1);
        let capacity = Resources::of(CPU, each * 1_000);
        let (machines, spoken) = Machines::with_nodes(settings, nodes, &capacity);
        let shape =
            ShapeSpec { request: Resources::of(CPU, 1_000), rules: rules.into(), ..ShapeSpec::default() };
        let (shape, reports) = (Arc::new(shape), Vec::new());
        Run { machines, now: Time::ZERO, jobs: 0, tasks, shape, reports, _spoken: spoken }
    }

    fn job(&mut self) -> Spent {
        self.jobs += 1;
        self.now = self.now + Span::from_millis(10);
        let role = RoleArrival {
            shape: Arc::clone(&self.shape),
            tasks: self.tasks,
            min: 0,
            initial: 0,
            duration: None,
            task_key: None,
            timeout: None,
            on_preempt: None,
            adopted: Vec::new(),
        };
        let group = GroupId::new(JobId(self.jobs), 0);
        let arrival = GroupArrival {
            group,
            start: Start::Independent,
            hops: None,
            freeze: None,
            tie: Tie::None,
            on_unsatisfiable: OnUnsatisfiable::Wait,
            requestor: Arc::default(),
            standing: Standing::default(),
            roles: [role].into_iter().collect(),
        };
        let batch = vec![SchedulerMessage::NewGroups(vec![arrival])];
        let (deciding, decided) = self.decide(batch);
        let count: usize = decided.cluster.iter().map(placements).sum();
        assert_eq!(count, self.tasks as usize, "there is room for every task");
        for message in &decided.cluster {
            self.note_reports(message);
        }
        let mut booked = Outbox::default();
        let begin = ThreadTime::now();
        self.machines.cluster.receive(self.now, decided.cluster, &mut booked);
        let booking = begin.elapsed();
        self.machines.scheduler.receive(self.now, booked.scheduler, &mut Outbox::default());
        Spent { deciding, booking }
    }

    /// Until every task has its place: with a window that may be two turns.
    fn decide(&mut self, batch: Vec<SchedulerMessage>) -> (Duration, Outbox) {
        let mut out = Outbox::default();
        let begin = ThreadTime::now();
        self.machines.scheduler.receive(self.now, batch, &mut out);
        while self.machines.scheduler.waiting_tasks() > 0 {
            self.now = self.machines.scheduler.wake_at().expect("what waits has an open window");
            self.machines.scheduler.wake(self.now, &mut out);
        }
        (begin.elapsed(), out)
    }

    fn note_reports(&mut self, message: &ClusterMessage) {
        let ClusterMessage::Commit(plan) = message else { return };
        let ended = |attempt| EndReport { attempt, exit: Exit::Completed };
        self.reports.extend(plan.placements.iter().map(|placement| ended(placement.attempt)));
    }

    fn release_all(&mut self) {
        self.now = self.now + Span::from_whole_seconds(10);
        let mut released = Outbox::default();
        let ended = ClusterMessage::Ended(std::mem::take(&mut self.reports));
        self.machines.cluster.receive(self.now, vec![ended], &mut released);
        let mut seen = Outbox::default();
        self.machines.scheduler.receive(self.now, released.scheduler, &mut seen);
        self.machines.cluster.receive(self.now, seen.cluster, &mut Outbox::default());
    }
}

fn placements(message: &ClusterMessage) -> usize {
    match message {
        ClusterMessage::Commit(plan) => plan.placements.len(),
        _ => 0,
    }
}

/// A rule that every node keeps, and that has to be asked of every node.
fn constraint() -> Rules {
    let constraint = Constraint::parse("node.labels.zone != b").expect("a good constraint");
    Rules { constraints: vec![constraint], ..Rules::default() }
}

fn measure_once(settings: &Arc<Settings>, size: (u32, u32), rules: Rules) -> Costs {
    let mut run = Run::new(settings, size, rules);
    let (first, second) = (run.job(), run.job());
    run.release_all();
    let third = run.job();
    let each = |spent: Duration| nanos_each(spent, u64::from(size.1));
    Costs {
        first: each(first.deciding),
        second: each(second.deciding),
        after_releases: each(third.deciding),
        booked: each(third.deciding + third.booking),
    }
}

fn measure(settings: &Arc<Settings>, size: (u32, u32), options: Options, rules: &Rules) -> Costs {
    let (fewest, most) = if options.quick { (1, 3) } else { (3, 9) };
    let repetitions = (1_000_000 / u64::from(size.0.max(size.1))).clamp(fewest, most);
    let costs: Vec<Costs> = (0..repetitions).map(|_| measure_once(settings, size, rules.clone())).collect();
    let middle = |figure: fn(&Costs) -> f64| median(costs.iter().map(figure).collect());
    Costs {
        first: middle(|costs| costs.first),
        second: middle(|costs| costs.second),
        after_releases: middle(|costs| costs.after_releases),
        booked: middle(|costs| costs.booked),
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

pub fn table(options: Options, baselines: &[Baseline]) -> Table {
    let columns = [
        "nodes",
        "tasks",
        "window",
        "first sight",
        "warm, room left",
        "warm, after releases",
        "packed, after releases",
        "constrained, first sight",
        "constrained, after releases",
        "deciding and booking",
        "scan",
        "times scan",
        "times heap",
    ];
    let mut table = Table::new("Assignments per CPU second, deciding only unless said", &columns);
    let grid: &[(u32, u32)] = if options.quick { &GRID_QUICK } else { &GRID };
    // Once for nothing: from here on the allocator keeps its memory, and the rows can be compared.
    measure_once(&settings_without_window(), grid[grid.len() - 1], Rules::default());
    for (window, settings) in
        [("0", settings_without_window()), ("default", Arc::new(settings_with_window()))]
    {
        let mut rows: Vec<((u32, u32), Costs)> = Vec::new();
        for size in grid {
            let anywhere = Rules::default();
            let costs = measure(&settings, *size, options, &anywhere);
            let packing = Settings { placement: NodeChoice::Pack, ..(*settings).clone() };
            let packed = measure(&Arc::new(packing), *size, options, &anywhere).after_releases;
            let constrained = measure(&settings, *size, options, &constraint());
            let baseline = baselines.iter().find(|one| one.nodes == size.0).expect("one for each size");
            table.row(row(*size, window, costs, (packed, constrained), baseline));
            rows.push((*size, costs));
        }
        table.note(growth(window, &rows));
    }
    table.note(format!("target: at least {TARGET_PER_SECOND:.0} in every row"));
    table.note("times scan: warm, after releases, against the plain scan; more is better");
    table.note("times heap: cost of a decision against one pop and push of a heap; less is better");
    table
}

fn row(
    (nodes, tasks): (u32, u32),
    window: &str,
    costs: Costs,
    (packed, constrained): (f64, Costs),
    baseline: &Baseline,
) -> Vec<Value> {
    vec![
        Value::count(nodes),
        Value::count(tasks),
        window.into(),
        Value::Number(per_second(costs.first), 0),
        Value::Number(per_second(costs.second), 0),
        Value::Number(per_second(costs.after_releases), 0),
        Value::Number(per_second(packed), 0),
        Value::Number(per_second(constrained.first), 0),
        Value::Number(per_second(constrained.after_releases), 0),
        Value::Number(per_second(costs.booked), 0),
        Value::Number(per_second(baseline.scan), 0),
        Value::Number(baseline.scan / costs.after_releases, 1),
        Value::Number(costs.after_releases / baseline.heap, 1),
    ]
}

fn growth(window: &str, rows: &[((u32, u32), Costs)]) -> String {
    let small = rows.iter().find(|(size, _)| *size == SMALL).expect("the small row is measured").1;
    let (large_size, large) = *rows.last().expect("rows were measured");
    format!(
        "window {window}: cost growth from {}/{} to {}/{}: first sight {:.2}, warm {:.2} and {:.2}, booked {:.2} \
         (target: at most {TARGET_GROWTH})",
        SMALL.0,
        SMALL.1,
        large_size.0,
        large_size.1,
        large.first / small.first,
        large.second / small.second,
        large.after_releases / small.after_releases,
        large.booked / small.booked,
    )
}
