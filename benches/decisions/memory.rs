//! Bytes per node, per running task and per waiting role, counted at the allocator.
//!
//! What a machine holds is what comes free when it is dropped, so messages on their way and shared
//! settings are not counted twice.

use std::sync::Arc;

use plimsoll_core::id::{NodeId, Ticket};
use plimsoll_core::job_state::JobState;
use plimsoll_core::machine::Machine;
use plimsoll_core::messages::{AgentMessage, ExecutorMessage, HostMessage, JobMessage, NodeEvent, Outbox};
use plimsoll_core::node_agent::NodeAgent;
use plimsoll_core::outcome::Phase;
use plimsoll_core::resources::Resources;
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::JobSpec;
use plimsoll_core::task_runner::TaskRunner;
use plimsoll_core::time::Time;

use crate::ALLOCATOR;
use crate::support::machines::{CPU, settings_without_window};
use crate::support::{Machines, Options, Table, Value};

const TASKS_PER_NODE: u32 = 10;
const TASKS_PER_WAITING_ROLE: u32 = 1_000_000;
const WAITING_ROLES: u32 = 1_000;

/// Bytes held now.
fn held() -> i64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

/// Bytes that come free with a value.
fn weigh<T>(value: T) -> i64 {
    let before = held();
    drop(value);
    before - held()
}

/// All machines, driven by real messages.
struct World {
    machines: Machines,
    jobs: JobState,
    runner: TaskRunner,
    agents: Vec<NodeAgent>,
}

/// Bytes by machine.
#[derive(Clone, Copy, Debug)]
struct Weights {
    scheduler: i64,
    cluster: i64,
    jobs: i64,
    runner: i64,
    agents: i64,
}

impl World {
    fn new(settings: &Arc<Settings>, nodes: u32) -> World {
        let capacity = Resources::of(CPU, i64::from(TASKS_PER_NODE) * 1_000);
        let (machines, out) = Machines::with_nodes(settings, nodes, &capacity);
        let mut runner = TaskRunner::new(Arc::clone(settings));
        runner.receive(Time::ZERO, out.runner, &mut Outbox::default());
        let agents = out.host.iter().filter_map(|message| match message {
            HostMessage::Node(NodeEvent::Added { node, session, .. }) => {
                Some(NodeAgent::new(*node, *session))
            }
            _ => None,
        });
        let agents = agents.collect();
        World { machines, jobs: JobState::new(Arc::clone(settings)), runner, agents }
    }

    fn submit(&mut self, job: impl Into<Arc<JobSpec>>) -> Outbox {
        let submit = JobMessage::Submit { ticket: Ticket(0), job: job.into(), adopted: Vec::new() };
        let mut out = Outbox::default();
        self.jobs.receive(Time::ZERO, vec![submit], &mut out);
        let mut decided = Outbox::default();
        self.machines.scheduler.receive(Time::ZERO, out.scheduler, &mut decided);
        decided
    }

    /// Takes what the Scheduler decided all the way to running executions and back.
    fn run(&mut self, decided: Outbox) {
        let mut booked = Outbox::default();
        self.machines.cluster.receive(Time::ZERO, decided.cluster, &mut booked);
        self.machines.scheduler.receive(Time::ZERO, booked.scheduler, &mut Outbox::default());
        self.jobs.receive(Time::ZERO, booked.jobs, &mut Outbox::default());
        let mut launched = Outbox::default();
        self.runner.receive(Time::ZERO, booked.runner, &mut launched);
        let mut started = Outbox::default();
        for (node, message) in launched.agents {
            self.tell_agent(node, message, &mut started);
        }
        let mut reached = Outbox::default();
        for (node, message) in started.executor {
            let ExecutorMessage::Run(attempt, _) = message else { unreachable!("nothing is stopped here") };
            self.tell_agent(node, AgentMessage::Reached(attempt, Phase::Running), &mut reached);
        }
        let mut reported = Outbox::default();
        self.runner.receive(Time::ZERO, reached.runner, &mut reported);
        let mut progress = Outbox::default();
        self.machines.cluster.receive(Time::ZERO, reported.cluster, &mut progress);
        self.jobs.receive(Time::ZERO, progress.jobs, &mut Outbox::default());
    }

    fn tell_agent(&mut self, node: NodeId, message: AgentMessage, out: &mut Outbox) {
        self.agents[node.index()].receive(Time::ZERO, vec![message], out);
    }

    fn weigh(self) -> Weights {
        // The job's specification is shared; it is counted where it is dropped last.
        Weights {
            scheduler: weigh(self.machines.scheduler),
            cluster: weigh(self.machines.cluster),
            runner: weigh(self.runner),
            agents: weigh(self.agents),
            jobs: weigh(self.jobs),
        }
    }
}

impl Weights {
    fn minus(self, other: Weights) -> Weights {
        Weights {
            scheduler: self.scheduler - other.scheduler,
            cluster: self.cluster - other.cluster,
            jobs: self.jobs - other.jobs,
            runner: self.runner - other.runner,
            agents: self.agents - other.agents,
        }
    }

    /// A row of bytes each; the sum covers all machines, or only the two that look at nodes.
    fn row(self, what: String, count: u32, sum: i64, target: &str) -> Vec<Value> {
        let each = |bytes: i64| Value::Number(bytes as f64 / f64::from(count), 1);
        vec![
            what.as_str().into(),
            each(self.scheduler),
            each(self.cluster),
            each(self.jobs),
            each(self.runner),
            each(self.agents),
            each(sum),
            target.into(),
        ]
    }

    fn all(self) -> i64 {
        self.scheduler + self.cluster + self.jobs + self.runner + self.agents
    }
}

pub fn table(options: Options) -> Table {
    let columns =
        ["bytes per", "Scheduler", "ClusterState", "JobState", "TaskRunner", "NodeAgent", "sum", "target"];
    let mut table = Table::new("Memory", &columns);
    let settings = settings_without_window();
    let nodes: u32 = if options.quick { 10_000 } else { 100_000 };
    let tasks = nodes * TASKS_PER_NODE;

    let idle = World::new(&settings, nodes).weigh();
    let sum = idle.scheduler + idle.cluster;
    let what = format!("node ({nodes} nodes; sum of Scheduler and ClusterState)");
    table.row(idle.row(what, nodes, sum, "< 1024"));

    let mut world = World::new(&settings, nodes);
    let decided = world.submit(JobSpec::bag("bag", tasks, Resources::of(CPU, 1_000)));
    world.run(decided);
    let running = world.weigh().minus(idle);
    table.row(running.row(format!("running task ({tasks} tasks)"), tasks, running.all(), "< 300"));

    for (what, shapes, shared) in [
        ("jobs that share their specification", 1, true),
        ("one shape", 1, false),
        ("a shape each", WAITING_ROLES, false),
    ] {
        let waiting = waiting_roles(&settings, shapes, shared);
        let what = format!("waiting role of {TASKS_PER_WAITING_ROLE} tasks ({what})");
        table.row(waiting.row(what, WAITING_ROLES, waiting.all(), "< 1024"));
    }
    for (what, tasks) in [("alone in its job", 1), ("one of a thousand in its job", 1_000)] {
        let (weights, waiting) = waiting_tasks(&settings, tasks);
        table.row(weights.row(format!("waiting task ({what})"), waiting, weights.all(), ""));
    }
    table.note("vectors are counted with the room they grew into; a job's specification counts for JobState");
    table
}

/// Many jobs of so many tasks each that wait, and how many tasks that are.
fn waiting_tasks(settings: &Arc<Settings>, tasks: u32) -> (Weights, u32) {
    let empty = World::new(settings, 0).weigh();
    let mut world = World::new(settings, 0);
    for _ in 0..10 * WAITING_ROLES {
        world.submit(JobSpec::bag("bag", tasks, Resources::of(CPU, 1_000)));
    }
    (world.weigh().minus(empty), 10 * WAITING_ROLES * tasks)
}

/// Jobs of a role each that wait because there are no nodes.
fn waiting_roles(settings: &Arc<Settings>, shapes: u32, shared: bool) -> Weights {
    let empty = World::new(settings, 0).weigh();
    let mut world = World::new(settings, 0);
    let common = Arc::new(JobSpec::bag("bag", TASKS_PER_WAITING_ROLE, Resources::of(CPU, 1_000)));
    for number in 0..WAITING_ROLES {
        let request = Resources::of(CPU, 1_000 + i64::from(number % shapes));
        let own = || Arc::new(JobSpec::bag("bag", TASKS_PER_WAITING_ROLE, request));
        world.submit(if shared { Arc::clone(&common) } else { own() });
    }
    assert_eq!(
        world.machines.scheduler.waiting_tasks(),
        u64::from(WAITING_ROLES) * u64::from(TASKS_PER_WAITING_ROLE)
    );
    world.weigh().minus(empty)
}
