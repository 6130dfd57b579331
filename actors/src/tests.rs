//! The engine from outside: what no single part can show.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use actix::System;
use plimsoll_core::id::{Attempt, GroupId, JobId, NodeId, Slot, TaskId};
use plimsoll_core::messages::{AgentMessage, Answer, Finding, JobEvent, JobMessage, Released};
use plimsoll_core::outcome::Outcome;
use plimsoll_core::plan::{self, Happening, Scenario, ScenarioEvent, ScenarioJob};
use plimsoll_core::resources::{KindId, Resources};
use plimsoll_core::settings::{MonitorSettings, Settings, WindowSettings};
use plimsoll_core::spec::{JobSpec, NodeSpec};
use plimsoll_core::time::{Span, Time};
use plimsoll_core::turn_log::MachineName;
use tokio::sync::{oneshot, watch};

use crate::agents::{AgentBatch, SabotageAgent};
use crate::fatal::Part;
use crate::vital::Sabotage;
use crate::wiring::wire_here;
use crate::{BoxFuture, Command, Engine, EngineOptions, Event, Executor, PushError, TaskContext, TaskError};

const SLOT: KindId = KindId(0);

struct Nothing;

impl Executor for Nothing {
    fn run(&self, _: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        Box::pin(async { Ok(()) })
    }
}

pub(crate) fn options(executor: Option<Arc<dyn Executor>>, settings: Settings) -> EngineOptions {
    EngineOptions {
        settings,
        executor,
        assignment_window: 100,
        lane_capacity: 64,
        agent_shards: 1,
        worker_threads: 1,
        stop_grace: Duration::from_millis(50),
        recorder: None,
        restore: None,
    }
}

pub(crate) fn node(name: &str, slots: i64) -> Box<NodeSpec> {
    Box::new(NodeSpec::new(name, Resources::of(SLOT, slots)))
}

pub(crate) fn bag(name: &str, tasks: u32) -> JobSpec {
    JobSpec::bag(name, tasks, Resources::of(SLOT, 1))
}

/// An end of something that never began.
pub(crate) fn impossible() -> JobMessage {
    let task = TaskId { group: GroupId::new(JobId(1), 0), role: 0, index: 0 };
    let attempt = Attempt { task, number: 1, slot: Slot(7) };
    JobMessage::Released(vec![Released { attempt, node: NodeId(0), outcome: Outcome::Completed }])
}

/// Goal: a panic in a machine's step stops the runtime, says which turn did it, and nobody hangs.
#[test]
fn a_panic_in_a_machine_stops_everything_and_explains_itself() {
    let engine = Engine::start(options(Some(Arc::new(Nothing)), Settings::default())).expect("it starts");
    let port = engine.port().clone();
    port.push(Command::Sabotage).expect("there is room");
    let (reply, answer) = oneshot::channel();
    // Either the lane is closed by now or the answer never comes; in neither case does it hang.
    if port.push(Command::Submit(Arc::new(bag("late", 1)), reply)).is_ok() {
        assert!(answer.blocking_recv().is_err());
    }
    while !port.is_stopped() {
        std::thread::yield_now();
    }
    let cause = port.stopped().cause.expect("the cause is known");
    assert_eq!(cause.part, Part::Machine(MachineName::JobState));
    assert!(cause.message.contains("what is released was committed"), "{}", cause.message);
    assert!(cause.turn.contains("Released"), "{}", cause.turn);
    let (reply, _) = oneshot::channel();
    assert!(matches!(port.push(Command::Cancel(JobId(1), reply)), Err(PushError::Closed(_))));
    let report = engine.stop(Duration::from_secs(5));
    assert!(report.threads_joined);
}

/// Goal: whoever waits for something when a machine panics is told, whatever it is.
#[test]
fn nobody_waits_on_after_a_panic() {
    let engine = Engine::start(options(None, Settings::default())).expect("it starts");
    let port = engine.port().clone();
    let (reply, answer) = oneshot::channel();
    port.push(Command::Submit(Arc::new(bag("waits", 1)), reply)).expect("there is room");
    let Ok(Answer::Accepted(job)) = answer.blocking_recv() else { panic!("it is a good job") };
    let finished = port.board().wait(job).expect("it is known");
    let mut events = port.subscribe(10).expect("there is room");
    let mut assignments = port.assignments();
    let reader = std::thread::spawn(move || {
        let driver = tokio::runtime::Builder::new_current_thread().build().expect("one");
        driver.block_on(assignments.next())
    });
    let (reply, snapshot) = oneshot::channel();
    port.push(Command::Sabotage).expect("there is room");
    drop(port.push(Command::Snapshot(reply)));
    assert!(finished.blocking_recv().is_err(), "it will never finish");
    assert_eq!(reader.join().expect("no panic"), None, "no assignment will come");
    while events.next_blocking().is_some() {}
    assert!(snapshot.blocking_recv().is_err(), "what is not whole is not given out");
    assert!(engine.stop(Duration::from_secs(5)).threads_joined);
}

/// Goal: an actor that panics outside of a machine's step ends the runtime too, and nobody hangs. Method: each
/// of them in turn, while a caller waits for a job and another reads events.
#[test]
fn no_part_ends_alone() {
    let scheduler = Part::Machine(MachineName::Scheduler);
    for part in [Part::Front, Part::Herald, Part::Monitor, Part::Agents, scheduler] {
        let engine = Engine::start(options(Some(Arc::new(Nothing)), Settings::default())).expect("it starts");
        let port = engine.port().clone();
        let (reply, answer) = oneshot::channel();
        port.push(Command::Submit(Arc::new(bag("waits", 1)), reply)).expect("there is room");
        let Ok(Answer::Accepted(job)) = answer.blocking_recv() else { panic!("it is a good job") };
        let finished = port.board().wait(job).expect("it is known");
        let mut events = port.subscribe(10).expect("there is room");
        port.front.do_send(Sabotage::Panic(part));
        assert!(finished.blocking_recv().is_err(), "{part}: it will never finish");
        while events.next_blocking().is_some() {}
        while !port.is_stopped() {
            std::thread::yield_now();
        }
        let cause = port.stopped().cause.expect("the cause is known");
        assert_eq!(cause.part, part, "{cause}");
        assert!(engine.stop(Duration::from_secs(5)).threads_joined, "{part}");
    }
}

/// Goal: what the runtime says by itself, without any new command, is bounded too. Method: short tasks one after
/// the other, while the herald seems to be far behind.
#[test]
fn nothing_more_starts_while_the_herald_is_far_behind() {
    const MUCH: usize = 1_000_000;
    let settings = Settings {
        window: WindowSettings { gap: Span::ZERO, ..WindowSettings::default() },
        ..Settings::default()
    };
    let engine = Engine::start(options(Some(Arc::new(Nap)), settings)).expect("it starts");
    let port = engine.port().clone();
    let (reply, answer) = oneshot::channel();
    port.push(Command::AddNode(node("n", 1), reply)).expect("there is room");
    assert!(answer.blocking_recv().is_ok());
    let (reply, answer) = oneshot::channel();
    port.push(Command::Submit(Arc::new(bag("j", 20)), reply)).expect("there is room");
    let Ok(Answer::Accepted(job)) = answer.blocking_recv() else { panic!("it is a good job") };
    let completed = || port.board().job(job).expect("it is kept").completed;
    while completed() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    port.front.do_send(Sabotage::Delay(MUCH));
    std::thread::sleep(Duration::from_millis(300));
    let then = completed();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(completed(), then, "nothing more was placed");
    assert!(then < 20);
    port.front.do_send(Sabotage::CatchUp(MUCH));
    let finished = port.board().wait(job).expect("it is known");
    assert!(finished.blocking_recv().is_ok(), "it goes on");
    assert!(engine.stop(Duration::from_secs(5)).threads_joined);
}

struct UntilStopped;

impl Executor for UntilStopped {
    fn run(&self, mut task: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        Box::pin(async move {
            task.stop.stopped().await;
            Ok(())
        })
    }
}

/// Goal: the monitor of a running engine finds what does not agree, mends it and tells. Method: the board is told
/// of an attempt that never was, and an agent is told to start one that nobody wants.
#[test]
fn the_monitor_finds_mends_and_tells() {
    let monitor = MonitorSettings { interval: Span::from_millis(50) };
    let settings = Settings { monitor, ..Settings::default() };
    let engine = Engine::start(options(Some(Arc::new(UntilStopped)), settings)).expect("it starts");
    let port = engine.port().clone();
    let (reply, answer) = oneshot::channel();
    port.push(Command::AddNode(node("n", 1), reply)).expect("there is room");
    assert!(answer.blocking_recv().is_ok());
    let (reply, answer) = oneshot::channel();
    let waits = JobSpec::bag("waits", 1, Resources::of(SLOT, 2));
    port.push(Command::Submit(Arc::new(waits), reply)).expect("there is room");
    let Ok(Answer::Accepted(job)) = answer.blocking_recv() else { panic!("it is a good job") };
    let mut events = port.subscribe(1_000).expect("there is room");
    let task = TaskId { group: GroupId::new(job, 0), role: 0, index: 0 };
    let attempt = Attempt { task, number: 1, slot: Slot(0) };
    let session = 1 << u32::BITS;
    let start = AgentMessage::Start { session, attempt, units: None };
    engine.shards()[0].do_send(AgentBatch(vec![(NodeId(0), start)]));
    port.board().note_job(&JobEvent::Bound { attempt, node: NodeId(0), at: Time::ZERO });
    let (mut orphan, mut wrong_board) = (false, false);
    while !(orphan && wrong_board) {
        for event in events.next_blocking().expect("it runs").events.iter() {
            let Event::Finding(finding) = event else { continue };
            assert!(finding.is_mended(), "{finding}");
            orphan |= *finding == Finding::Orphan { attempt, node: NodeId(0) };
            wrong_board |= *finding == Finding::WrongBoard(NodeId(0));
        }
    }
    assert_eq!(port.board().node("n").expect("it is there").live, 0);
    assert_eq!(engine.stop(Duration::from_secs(5)).stopped, 0, "what nobody wanted was ended before");
}

struct Nap;

impl Executor for Nap {
    fn run(&self, _: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            Ok(())
        })
    }
}

/// Counts what has begun on node `bad`, and lets nothing end before it is told to.
struct Held {
    begun_on_bad: AtomicU32,
    released: watch::Sender<bool>,
}

impl Executor for Held {
    fn run(&self, task: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        if &*task.node == "bad" {
            self.begun_on_bad.fetch_add(1, Ordering::SeqCst);
        }
        let mut released = self.released.subscribe();
        Box::pin(async move {
            released.wait_for(|released| *released).await.expect("who releases it outlives it");
            Ok(())
        })
    }
}

/// Goal: a panic in an agent's step costs what ran on its node one attempt, and nobody else anything.
#[test]
fn a_panic_in_an_agent_restarts_that_agent_alone() {
    let held = Arc::new(Held { begun_on_bad: AtomicU32::new(0), released: watch::Sender::new(false) });
    let engine = Engine::start(options(Some(held.clone()), Settings::default())).expect("it starts");
    let port = engine.port().clone();
    let mut events = port.subscribe(1_000).expect("there is room");
    for name in ["bad", "good"] {
        let (reply, answer) = oneshot::channel();
        port.push(Command::AddNode(node(name, 2), reply)).expect("there is room");
        assert!(matches!(answer.blocking_recv(), Ok(Answer::Node(_))));
    }
    let (reply, answer) = oneshot::channel();
    port.push(Command::Submit(Arc::new(bag("j", 12)), reply)).expect("there is room");
    let Ok(Answer::Accepted(job)) = answer.blocking_recv() else { panic!("it is a good job") };
    while held.begun_on_bad.load(Ordering::SeqCst) < 2 {
        std::thread::yield_now();
    }
    // Whatever it hears next comes after both have begun: what was only sent would be sent again, and not lost.
    engine.shards()[0].do_send(SabotageAgent(NodeId(0)));
    held.released.send_replace(true);
    let status = port.board().wait(job).expect("it is known").blocking_recv().expect("it finishes");
    assert_eq!((status.completed, status.failed), (12, 0), "what was lost ran again");
    let mut lost = Vec::new();
    while let Some(batch) = events.try_next() {
        for event in batch.events.iter() {
            if let Event::Job(JobEvent::Ended { node, outcome: Outcome::Lost, .. }) = event {
                lost.push(*node);
            }
        }
    }
    assert_eq!(lost, [NodeId(0); 2], "both that ran there, and nobody else");
    assert!(!port.is_stopped(), "the runtime goes on");
    assert!(engine.stop(Duration::from_secs(5)).threads_joined);
}

/// Goal: the shells add nothing and lose nothing. Method: one scenario through the real shells on a
/// paused clock and through the world; the decisions, their order and their times are the same.
#[test]
fn the_shells_decide_what_the_world_decides() {
    let window =
        WindowSettings { gap: Span::from_millis(50), cap: Span::from_millis(1_000), adaptive: false };
    let settings = Settings { window, ..Settings::default() };
    let arrivals: Vec<(u64, &str, u32)> =
        vec![(0, "a", 3), (20, "b", 2), (45, "c", 1), (200, "d", 2), (230, "e", 4), (900, "f", 1)];
    let expected = decisions_of_the_world(&settings, &arrivals);
    let found = decisions_of_the_shells(settings, &arrivals);
    assert_eq!(found, expected);
    assert!(expected.len() >= 8, "the scenario decides something: {expected:?}");
}

/// Job number, task, node, and when, in microseconds.
type Decisions = Vec<(u64, u32, u32, u64)>;

const NODES: [(&str, i64); 3] = [("n0", 3), ("n1", 2), ("n2", 4)];

fn decisions_of_the_world(settings: &Settings, arrivals: &[(u64, &str, u32)]) -> Decisions {
    let event = |(at, name, tasks): &(u64, &str, u32)| {
        let job = ScenarioJob {
            spec: bag(name, *tasks),
            submitted: Time(at * 1_000),
            parent: None,
            preparations: BTreeMap::new(),
        };
        ScenarioEvent { at: Time(at * 1_000), what: Happening::Submit(Box::new(job)) }
    };
    let scenario = Scenario {
        settings: settings.clone(),
        nodes: NODES.iter().map(|(name, slots)| *node(name, *slots)).collect(),
        events: arrivals.iter().map(event).collect(),
        ..Scenario::default()
    };
    let report = plan::run(&scenario).expect("a good scenario");
    let number = |job: &str| arrivals.iter().position(|(_, name, _)| *name == job).expect("known") as u64 + 1;
    let node = |name: &str| NODES.iter().position(|(known, _)| *known == name).expect("known") as u32;
    let decisions = report.decisions.iter();
    decisions
        .map(|one| (number(&one.job), one.task, node(&one.node), (one.at * 1e6).round() as u64))
        .collect()
}

fn decisions_of_the_shells(settings: Settings, arrivals: &[(u64, &str, u32)]) -> Decisions {
    let paused = || {
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("one")
    };
    let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("one");
    let system = System::with_tokio_rt(paused);
    let decisions = system.block_on(async {
        let port = wire_here(options(None, settings), workers.handle().clone());
        let mut events = port.subscribe(1_000).expect("there is room");
        for (name, slots) in NODES {
            let (reply, answer) = oneshot::channel();
            port.push(Command::AddNode(node(name, slots), reply)).expect("there is room");
            assert!(matches!(answer.await, Ok(Answer::Node(_))));
        }
        let origin = tokio::time::Instant::now() - Duration::from_micros(port.now().0);
        for (at, name, tasks) in arrivals {
            tokio::time::sleep_until(origin + Duration::from_millis(*at)).await;
            let (reply, answer) = oneshot::channel();
            port.push(Command::Submit(Arc::new(bag(name, *tasks)), reply)).expect("there is room");
            assert!(matches!(answer.await, Ok(Answer::Accepted(_))));
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        let mut decisions = Vec::new();
        while let Some(batch) = events.try_next() {
            for event in batch.events.iter() {
                if let Event::Job(JobEvent::Bound { attempt, node, at }) = event {
                    decisions.push((attempt.task.job().0, attempt.task.index, node.0, at.0));
                }
            }
        }
        decisions
    });
    workers.shutdown_background();
    decisions
}
