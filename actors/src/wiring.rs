//! Puts every machine into its shell and makes the actors known to each other.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, OnceLock, RwLock};

use actix::{Actor, Addr, Arbiter, AsyncContext, Context, System};
use metrics::Gauge;
use plimsoll_core::cluster_state::ClusterState;
use plimsoll_core::id::NodeId;
use plimsoll_core::job_state::JobState;
use plimsoll_core::messages::{ClusterMessage, Outbox, RunnerMessage, SchedulerMessage};
use plimsoll_core::monitor::Monitor;
use plimsoll_core::settings::Settings;
use plimsoll_core::task_runner::TaskRunner;
use plimsoll_core::time::Time;
use plimsoll_core::turn_log::Header;
use tokio::runtime::{Builder, Runtime};

use crate::agents::{AgentChange, AgentShard};
use crate::assignments::{Assignment, AssignmentQueue, Order};
use crate::backlog::Backlog;
use crate::board::Board;
use crate::clock::Clock;
use crate::commands::Command;
use crate::credit::CreditCount;
use crate::engine::EngineOptions;
use crate::executions::Executions;
use crate::executor::PortCell;
use crate::fatal::{Fatal, Part};
use crate::front::Front;
use crate::herald::Herald;
use crate::lane::Lane;
use crate::monitor::MonitorShell;
use crate::port::{Port, Wires};
use crate::preparations::Preparations;
use crate::router::{Mailbox, Router};
use crate::shell::{Common, Seated, Shell};
use crate::snapshot::{SeatedMachines, Seatful};
use crate::vital::{Emergency, Vital};
use crate::work::{Assigning, Work};

/// The actors of a runtime, ready to work.
pub(crate) struct Ready {
    pub(crate) port: Port,
    pub(crate) arbiters: Vec<Arbiter>,
    pub(crate) shards: Vec<Addr<AgentShard>>,
}

/// More commands than this never wait on the lane.
const LANE_MAX: usize = 1 << 20;

/// The actors that do not live on the deciding thread, and their threads.
pub(crate) struct Elsewhere {
    arbiters: Vec<Arbiter>,
    shards: Vec<Addr<AgentShard>>,
    herald: Addr<Herald>,
}

pub(crate) fn current_thread_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a thread can have a runtime of its own")
}

/// Starts every actor and makes them known to each other. `start` says on which thread the agents
/// live.
pub(crate) fn wire(
    options: EngineOptions,
    machines: Option<SeatedMachines>,
    workers: tokio::runtime::Handle,
    start: impl FnOnce(Vec<AgentShard>, Herald) -> Elsewhere,
) -> Ready {
    let board = Arc::new(Board::default());
    let assignments = Arc::new(AssignmentQueue::default());
    let lane = Arc::new(Lane::new(options.lane_capacity.clamp(1, LANE_MAX)));
    let (common, settings) = common_of(&options, &board, &assignments, &lane);
    let restored = machines.is_some();
    let machines = machines.unwrap_or_else(|| SeatedMachines::new(&settings));
    board.fill(&machines.jobs.machine, &machines.cluster.machine, &machines.scheduler.machine);
    if common.decide_only {
        stop_what_ran(&machines.jobs.machine, &board, &assignments);
    }
    let runner_context = Context::<Shell<TaskRunner>>::new();
    let cluster_context = Context::<Shell<ClusterState>>::new();
    let machine_addresses = (Mailbox::new(runner_context.address()), Mailbox::new(cluster_context.address()));
    let port_for_tasks = PortCell::default();
    let shards =
        shards_of(&options, &common, &board, &workers, machine_addresses, (&assignments, &port_for_tasks));
    let backlog = Backlog::default();
    let front_context = Context::<Front>::new();
    let herald = Herald::new(Arc::clone(&board), backlog.clone(), front_context.address(), &common.emergency);
    let Elsewhere { arbiters, shards, herald } = start(shards, herald);
    let _ = common.emergency.herald.set(herald.clone());
    let runner_settings = common.runner_settings(&settings);
    let agents_to_begin = if restored { agents_anew(&machines) } else { Vec::new() };
    let shared_settings = Arc::new(RwLock::new(Arc::clone(&settings)));
    let last_ticket = options.restore.as_ref().map_or(0, |snapshot| snapshot.last_ticket);
    let monitor = MonitorShell::new(Monitor::new(Arc::clone(&settings)), &common);
    let front = Front::new(Arc::clone(&lane), common.clone(), herald.clone(), settings, last_ticket);
    let front = front_context.run(front);
    let router = Router {
        jobs: seat(machines.jobs, Context::new(), &common),
        scheduler: seat(machines.scheduler, Context::new(), &common),
        cluster: seat(machines.cluster, cluster_context, &common),
        runner: seat(machines.runner, runner_context, &common),
        rebalancer: seat(machines.rebalancer, Context::new(), &common),
        monitor: monitor.start(),
        herald: herald.clone(),
        backlog,
        shards: shards.clone(),
        agents_depth: agents_depth(),
        board: Arc::clone(&board),
        credit: common.decide_only.then(|| RefCell::new(CreditCount::new(options.assignment_window.max(1)))),
    };
    router.runner.post(vec![RunnerMessage::Settings(runner_settings)]);
    let window = common.decide_only.then_some(options.assignment_window.max(1));
    router.scheduler.post(vec![SchedulerMessage::NewCredit { window }]);
    go_on(&router, agents_to_begin, restored);
    assert!(common.router.set(router).is_ok(), "wiring is done once");
    let Common { clock, fatal, decide_only, .. } = common;
    let settings = shared_settings;
    let submission_seconds = metrics::histogram!("plimsoll_submission_seconds");
    let wires =
        Wires { lane, front, board, fatal, settings, clock, assignments, decide_only, submission_seconds };
    let port = Port::new(wires);
    let _ = port_for_tasks.set(port.clone());
    Ready { port, arbiters, shards }
}

/// What every shell shares, and the settings to begin with.
fn common_of(
    options: &EngineOptions,
    board: &Arc<Board>,
    assignments: &Arc<AssignmentQueue>,
    lane: &Arc<Lane<Command>>,
) -> (Common, Arc<Settings>) {
    let (offset, settings) = match &options.restore {
        Some(snapshot) => (snapshot.taken, snapshot.settings.clone()),
        None => (Time::ZERO, options.settings.clone()),
    };
    if let Some(recorder) = &options.recorder {
        recorder.record(&Header { settings: settings.clone() });
    }
    let (clock, fatal) = (Clock::starting_at(offset), Fatal::default());
    let emergency = Emergency {
        fatal: fatal.clone(),
        clock,
        lane: Arc::clone(lane),
        board: Arc::clone(board),
        assignments: Arc::clone(assignments),
        herald: OnceLock::new(),
        system: System::current(),
    };
    let common = Common {
        clock,
        router: Rc::new(OnceCell::new()),
        fatal,
        emergency: Arc::new(emergency),
        recorder: options.recorder.clone(),
        decide_only: options.executor.is_none(),
    };
    (common, Arc::new(settings))
}

/// Puts a machine into its shell. What was on its way to it comes first.
fn seat<M: Seated>(seatful: Seatful<M>, context: Context<Shell<M>>, common: &Common) -> Mailbox<M> {
    let mailbox = Mailbox::new(context.run(Shell::new(seatful.machine, common.clone())));
    for batch in seatful.held {
        mailbox.post(batch);
    }
    mailbox
}

fn shards_of(
    options: &EngineOptions,
    common: &Common,
    board: &Arc<Board>,
    workers: &tokio::runtime::Handle,
    (runner, cluster): (Mailbox<TaskRunner>, Mailbox<ClusterState>),
    (assignments, port): (&Arc<AssignmentQueue>, &PortCell),
) -> Vec<AgentShard> {
    let shard = |_| AgentShard {
        agents: Default::default(),
        ending: Default::default(),
        work: match &options.executor {
            Some(executor) => {
                let grace = options.stop_grace;
                Work::Run(Executions::new(Arc::clone(executor), workers.clone(), grace, port.clone()))
            }
            None => Work::Assign(Assigning::new(Arc::clone(assignments))),
        },
        preparations: Preparations::new(
            cluster.clone(),
            options.executor.as_ref().map(|executor| (Arc::clone(executor), workers.clone())),
            options.stop_grace,
        ),
        address: None,
        said: Outbox::default(),
        runner: runner.clone(),
        board: Arc::clone(board),
        clock: common.clock,
        recorder: common.recorder.clone(),
        depth: agents_depth(),
        _vital: Vital::new(Part::Agents, &common.emergency),
        #[cfg(any(test, feature = "sabotage"))]
        sabotaged: Default::default(),
    };
    (0..options.agent_shards.max(1)).map(shard).collect()
}

fn agents_depth() -> Gauge {
    metrics::gauge!("plimsoll_mailbox_depth", "machine" => "NodeAgents")
}

/// Agents share a thread, and the herald has one.
pub(crate) fn on_threads_of_their_own(shards: Vec<AgentShard>, herald: Herald) -> Elsewhere {
    let agents = Arbiter::with_tokio_rt(current_thread_runtime);
    let start = |shard| AgentShard::start_in_arbiter(&agents.handle(), move |_| shard);
    let shards = shards.into_iter().map(start).collect();
    let outward = Arbiter::with_tokio_rt(current_thread_runtime);
    let herald = Herald::start_in_arbiter(&outward.handle(), move |_| herald);
    Elsewhere { arbiters: vec![agents, outward], shards, herald }
}

/// Everything on the current thread, which runs a system of its own: for tests that turn the clock.
#[cfg(test)]
pub(crate) fn wire_here(options: EngineOptions, workers: tokio::runtime::Handle) -> Port {
    let here = |shards: Vec<AgentShard>, herald: Herald| {
        let shards = shards.into_iter().map(Actor::start).collect();
        Elsewhere { arbiters: Vec::new(), shards, herald: herald.start() }
    };
    wire(options, None, workers, here).port
}

/// After a restore everything that ran begins again. A service that runs the work itself may still be
/// at it: it is told to end that first.
fn stop_what_ran(jobs: &JobState, board: &Board, assignments: &AssignmentQueue) {
    let mut stops = Vec::new();
    for task in jobs.live() {
        let (job, node) = (board.spec(task.attempt.task.job()), board.node_name(task.node));
        if let (Some(job), Some(node)) = (job, node) {
            let (order, attempt, node_id) = (Order::Stop, task.attempt, task.node);
            stops.push(Assignment { sequence: 0, order, attempt, job, node, units: None, node_id });
        }
    }
    assignments.push(&mut stops);
}

/// Lets what is behind everything that was on its way when the snapshot was taken begin.
fn go_on(router: &Router, agents_to_begin: Vec<(NodeId, AgentChange)>, restored: bool) {
    for (node, change) in agents_to_begin {
        router.shard(node).do_send(change);
    }
    if restored {
        router.cluster.post(vec![ClusterMessage::LookAgain]);
    }
}

/// Agents of a restored runtime begin a new session: what had begun is gone and runs again.
fn agents_anew(machines: &SeatedMachines) -> Vec<(NodeId, AgentChange)> {
    let begin = |(node, spec): (NodeId, &plimsoll_core::cluster_state::Node)| {
        // The TaskRunner may not have heard of the node yet when the snapshot was taken.
        let last_session = machines.runner.machine.session(node).max(spec.session);
        (node, AgentChange::BeginAnew { node, name: spec.facts.name.as_str().into(), last_session })
    };
    machines.cluster.machine.nodes().map(begin).collect()
}
