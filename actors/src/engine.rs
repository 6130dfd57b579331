//! Starting and stopping: threads, actors, and the port through which the service talks to them.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, RwLock, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use actix::{Actor, Addr, Arbiter, AsyncContext, Context, System};
use plimsoll_core::cluster_state::ClusterState;
use plimsoll_core::codec::CodecError;
use plimsoll_core::id::NodeId;
use plimsoll_core::job_state::JobState;
use plimsoll_core::messages::{ClusterMessage, RunnerMessage, SchedulerMessage};
use plimsoll_core::rebalancer::Rebalancer;
use plimsoll_core::scheduler::Scheduler;
use plimsoll_core::settings::Settings;
use plimsoll_core::task_runner::TaskRunner;
use plimsoll_core::time::Time;
use plimsoll_core::turn_log::Header;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};

use crate::agents::{AgentChange, AgentShard, CountExecutions, StopAll};
use crate::assignments::AssignmentQueue;
use crate::board::Board;
use crate::clock::Clock;
use crate::credit::CreditCount;
use crate::executions::Executions;
use crate::executor::Executor;
use crate::fatal::Fatal;
use crate::front::{DrainAll, Front, Leave};
use crate::lane::Lane;
use crate::port::Port;
use crate::recorder::Recorder;
use crate::router::{Batch, Router};
use crate::shell::{Common, Seated, Shell};
use crate::snapshot::{Machines, Seatful, Snapshot};
use crate::work::Work;

/// What an engine is started with.
pub struct EngineOptions {
    pub settings: Settings,
    /// What runs the tasks; without one the service carries out the assignments itself.
    pub executor: Option<Arc<dyn Executor>>,
    /// Assignments that the service may have before it acknowledges some.
    pub assignment_window: u64,
    /// Commands that fit on the lane.
    pub lane_capacity: usize,
    /// Actors that share the agents of all nodes.
    pub agent_shards: usize,
    /// Threads that run the executor's futures.
    pub worker_threads: usize,
    /// How long an execution may go on after it was told to stop.
    pub stop_grace: Duration,
    pub recorder: Option<Arc<Recorder>>,
    pub restore: Option<Snapshot>,
}

impl std::fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineOptions").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    #[error("a thread cannot be started")]
    Thread(#[source] std::io::Error),
    #[error("the snapshot cannot be read")]
    Snapshot(#[source] CodecError),
    #[error("the deciding thread ended before it was ready")]
    EndedEarly,
}

/// How a shutdown went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShutdownReport {
    /// Commands that were on the lane and were still handed on.
    pub drained: u64,
    /// Executions that were told to stop.
    pub stopped: u64,
    /// Of these, executions that had not ended at the deadline.
    pub abandoned: u64,
    /// Whether the deciding thread and the agents' thread have ended. Worker threads that a blocking
    /// task does not give back are left behind at the deadline.
    pub threads_joined: bool,
    /// Turns that did not fit into the turn log.
    pub turns_left_out: u64,
    /// Why the turn log could not be written, if it could not.
    pub record_error: Option<String>,
}

/// A running engine and its threads.
#[derive(Debug)]
pub struct Engine {
    port: Port,
    threads: Option<Threads>,
    recorder: Option<Arc<Recorder>>,
}

#[derive(Debug)]
struct Threads {
    deciding: JoinHandle<()>,
    agents: Vec<Arbiter>,
    shards: Vec<Addr<AgentShard>>,
    workers: Runtime,
}

/// What the deciding thread says when it is ready.
struct Ready {
    port: Port,
    agents: Vec<Arbiter>,
    shards: Vec<Addr<AgentShard>>,
}

impl Engine {
    pub fn start(options: EngineOptions) -> Result<Engine, EngineError> {
        let recorder = options.recorder.clone();
        let machines = options.restore.as_ref().map(Snapshot::machines).transpose();
        // Before any thread is there: a bad snapshot leaves nothing behind.
        let machines = machines.map_err(EngineError::Snapshot)?;
        let workers = Builder::new_multi_thread()
            .worker_threads(options.worker_threads.max(1))
            .thread_name("plimsoll-worker")
            .enable_all()
            .build()
            .map_err(EngineError::Thread)?;
        let (ready, wired) = mpsc::channel();
        let worker_handle = workers.handle().clone();
        let deciding = std::thread::Builder::new()
            .name("plimsoll-decide".into())
            .spawn(move || decide(options, machines, worker_handle, &ready))
            .map_err(EngineError::Thread)?;
        match wired.recv() {
            Ok(Ready { port, agents, shards }) => {
                let threads = Threads { deciding, agents, shards, workers };
                Ok(Engine { port, threads: Some(threads), recorder })
            }
            Err(_) => {
                let _ = deciding.join();
                workers.shutdown_background();
                Err(EngineError::EndedEarly)
            }
        }
    }

    pub fn port(&self) -> &Port {
        &self.port
    }

    /// Stops everything within the deadline. Blocks; to be called where blocking is allowed.
    pub fn stop(mut self, deadline: Duration) -> ShutdownReport {
        self.stop_threads(deadline)
    }

    fn stop_threads(&mut self, deadline: Duration) -> ShutdownReport {
        let Some(threads) = self.threads.take() else { return ShutdownReport::default() };
        let port = self.port.clone();
        let recorder = self.recorder.take();
        // A thread of its own: a runtime must not be waited for inside another one.
        let reaper = std::thread::Builder::new()
            .name("plimsoll-stop".into())
            .spawn(move || threads.end(&port, deadline, recorder.as_deref()));
        match reaper {
            Ok(reaper) => reaper.join().unwrap_or_default(),
            Err(error) => {
                tracing::error!(%error, "the runtime cannot be stopped in order");
                ShutdownReport::default()
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        const DEADLINE: Duration = Duration::from_secs(5);
        self.stop_threads(DEADLINE);
    }
}

impl Threads {
    fn end(self, port: &Port, deadline: Duration, recorder: Option<&Recorder>) -> ShutdownReport {
        const A_LONG_TIME: Duration = Duration::from_secs(365 * 24 * 3_600);
        let until = Instant::now() + deadline.min(A_LONG_TIME);
        let mut report = ShutdownReport::default();
        let wait = Builder::new_current_thread().enable_time().build();
        if let Ok(wait) = wait {
            wait.block_on(async {
                let soon = |left: Duration| left.max(Duration::from_millis(100));
                let left = || soon(until.saturating_duration_since(Instant::now()));
                let drained = tokio::time::timeout(left(), port.front.send(DrainAll)).await;
                report.drained = drained.ok().and_then(Result::ok).unwrap_or(0);
                for shard in &self.shards {
                    let stopped = tokio::time::timeout(left(), shard.send(StopAll)).await;
                    report.stopped += stopped.ok().and_then(Result::ok).unwrap_or(0) as u64;
                }
                report.abandoned = self.wait_for_executions(until).await;
            });
        }
        port.front.do_send(Leave);
        report.threads_joined = self.deciding.join().is_ok();
        for arbiter in self.agents {
            arbiter.stop();
            report.threads_joined &= arbiter.join().is_ok();
        }
        self.workers.shutdown_timeout(
            until.saturating_duration_since(Instant::now()).max(Duration::from_millis(100)),
        );
        port.board.close();
        port.assignments.close();
        match recorder.map(Recorder::finish) {
            Some(Ok(left_out)) => report.turns_left_out = left_out,
            Some(Err(error)) => report.record_error = Some(error.to_string()),
            None => {}
        }
        report
    }

    /// Waits until every execution has ended or time is up; the answer is how many are left.
    async fn wait_for_executions(&self, until: Instant) -> u64 {
        const LOOK_EVERY: Duration = Duration::from_millis(2);
        loop {
            let mut left = 0;
            for shard in &self.shards {
                left += shard.send(CountExecutions).await.unwrap_or(0) as u64;
            }
            if left == 0 || Instant::now() >= until {
                return left;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

fn current_thread_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a thread can have a runtime of its own")
}

/// The life of the deciding thread.
fn decide(
    options: EngineOptions,
    machines: Option<Machines>,
    workers: tokio::runtime::Handle,
    ready: &mpsc::Sender<Ready>,
) {
    let runner = System::with_tokio_rt(current_thread_runtime);
    let wired = runner.block_on(async { wire(options, machines, workers, on_their_own_thread) });
    if ready.send(wired).is_err() {
        return;
    }
    if let Err(error) = runner.run() {
        tracing::error!(%error, "the deciding thread ended badly");
    }
}

/// Starts every actor and makes them known to each other. `start` says on which thread the agents
/// live.
fn wire(
    options: EngineOptions,
    machines: Option<Machines>,
    workers: tokio::runtime::Handle,
    start: impl FnOnce(Vec<AgentShard>) -> (Vec<Arbiter>, Vec<Addr<AgentShard>>),
) -> Ready {
    let (offset, settings) = match &options.restore {
        Some(snapshot) => (snapshot.taken, snapshot.settings.clone()),
        None => (Time::ZERO, options.settings.clone()),
    };
    let settings = Arc::new(settings);
    if let Some(recorder) = &options.recorder {
        recorder.record(&Header { settings: Settings::clone(&settings) });
    }
    let common = Common {
        clock: Clock::starting_at(offset),
        router: Rc::new(OnceCell::new()),
        fatal: Fatal::default(),
        recorder: options.recorder.clone(),
        decide_only: options.executor.is_none(),
    };
    let board = Arc::new(Board::default());
    let restored = machines.is_some();
    let machines = machines.unwrap_or_else(|| fresh_machines(&settings));
    board.fill(&machines.jobs.machine, &machines.cluster.machine);
    let assignments = Arc::new(AssignmentQueue::default());
    let runner_context = Context::<Shell<TaskRunner>>::new();
    let shards = shards_of(&options, &common, &board, &workers, &runner_context, &assignments);
    let (agents, shards) = start(shards);
    let runner_settings = common.runner_settings(&settings);
    let agents_to_begin = if restored { agents_anew(&machines) } else { Vec::new() };
    let lane = Arc::new(Lane::new(options.lane_capacity.max(1)));
    let shared_settings = Arc::new(RwLock::new(Arc::clone(&settings)));
    let last_ticket = options.restore.as_ref().map_or(0, |snapshot| snapshot.last_ticket);
    let front = Front::new(Arc::clone(&lane), common.clone(), Arc::clone(&board), settings, last_ticket);
    let front = front.start();
    let router = Router {
        jobs: seat(machines.jobs, Context::new(), &common),
        scheduler: seat(machines.scheduler, Context::new(), &common),
        cluster: seat(machines.cluster, Context::new(), &common),
        runner: seat(machines.runner, runner_context, &common),
        rebalancer: seat(machines.rebalancer, Context::new(), &common),
        front: front.clone(),
        shards: shards.clone(),
        board: Arc::clone(&board),
        credit: common.decide_only.then(|| RefCell::new(CreditCount::new(options.assignment_window.max(1)))),
    };
    router.runner.do_send(Batch(vec![RunnerMessage::Settings(runner_settings)]));
    let window = common.decide_only.then_some(options.assignment_window.max(1));
    router.scheduler.do_send(Batch(vec![SchedulerMessage::NewCredit { window }]));
    // Behind everything that was on its way when the snapshot was taken.
    for (node, change) in agents_to_begin {
        router.shard(node).do_send(change);
    }
    if restored {
        router.cluster.do_send(Batch(vec![ClusterMessage::LookAgain]));
    }
    assert!(common.router.set(router).is_ok(), "wiring is done once");
    let Common { clock, fatal, .. } = common;
    let port = Port { lane, front, board, fatal, settings: shared_settings, clock, assignments };
    Ready { port, agents, shards }
}

fn fresh_machines(settings: &Arc<Settings>) -> Machines {
    let settings = || Arc::clone(settings);
    Machines {
        jobs: Seatful { machine: JobState::new(settings()), held: Vec::new() },
        scheduler: Seatful { machine: Scheduler::new(settings()), held: Vec::new() },
        cluster: Seatful { machine: ClusterState::new(settings()), held: Vec::new() },
        runner: Seatful { machine: TaskRunner::new(settings()), held: Vec::new() },
        rebalancer: Seatful { machine: Rebalancer::new(settings()), held: Vec::new() },
    }
}

/// Puts a machine into its shell. What was on its way to it comes first.
fn seat<M: Seated>(seatful: Seatful<M>, context: Context<Shell<M>>, common: &Common) -> Addr<Shell<M>> {
    let address = context.run(Shell::new(seatful.machine, common.clone()));
    for batch in seatful.held {
        address.do_send(Batch(batch));
    }
    address
}

fn shards_of(
    options: &EngineOptions,
    common: &Common,
    board: &Arc<Board>,
    workers: &tokio::runtime::Handle,
    runner: &Context<Shell<TaskRunner>>,
    assignments: &Arc<AssignmentQueue>,
) -> Vec<AgentShard> {
    let shard = |_| AgentShard {
        agents: Default::default(),
        work: match &options.executor {
            Some(executor) => {
                Work::Run(Executions::new(Arc::clone(executor), workers.clone(), options.stop_grace))
            }
            None => Work::Assign(Arc::clone(assignments)),
        },
        runner: runner.address(),
        board: Arc::clone(board),
        clock: common.clock,
        recorder: common.recorder.clone(),
    };
    (0..options.agent_shards.max(1)).map(shard).collect()
}

fn on_their_own_thread(shards: Vec<AgentShard>) -> (Vec<Arbiter>, Vec<Addr<AgentShard>>) {
    let arbiter = Arbiter::with_tokio_rt(current_thread_runtime);
    let start = |shard| AgentShard::start_in_arbiter(&arbiter.handle(), move |_| shard);
    let shards = shards.into_iter().map(start).collect();
    (vec![arbiter], shards)
}

/// Everything on the current thread, which runs a system of its own: for tests that turn the clock.
#[cfg(test)]
pub(crate) fn wire_here(options: EngineOptions, workers: tokio::runtime::Handle) -> Port {
    let here = |shards: Vec<AgentShard>| {
        let addresses = shards.into_iter().map(Actor::start).collect();
        (Vec::new(), addresses)
    };
    wire(options, None, workers, here).port
}

/// Agents of a restored runtime begin a new session: what had begun is gone and runs again.
fn agents_anew(machines: &Machines) -> Vec<(NodeId, AgentChange)> {
    let begin = |(node, spec): (NodeId, &plimsoll_core::cluster_state::Node)| {
        // The TaskRunner may not have heard of the node yet when the snapshot was taken.
        let last_session = machines.runner.machine.session(node).max(spec.session);
        (node, AgentChange::BeginAnew { node, name: spec.name.as_str().into(), last_session })
    };
    machines.cluster.machine.nodes().map(begin).collect()
}
