//! Nodes through the handle: drained, broken by hand, reserved and given back, and how they spent their time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll::core::messages::{JobEvent, NodeEvent, Refusal, Returned};
use plimsoll::core::outcome::Outcome;
use plimsoll::core::spec::{Availability, Condition, Liveness};
use plimsoll::{
    BoxFuture, Config, Event, Executor, GroupSpec, Handle, JobSpec, NodeContext, NodePatch, NodeSpec,
    RequestError, ReservationStage, RoleSpec, Runtime, TaskContext, TaskError, Usage, UsageAnswer, UsageOf,
};
use tokio::sync::Semaphore;

const DEADLINE: Duration = Duration::from_secs(20);

fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(DEADLINE, body).await.expect("within the deadline") })
}

/// Tasks end when they are told to; nodes are prepared when the test says so, `bad` ones never well.
struct OnDemand(Arc<Semaphore>);

impl Executor for OnDemand {
    fn prepare_node(&self, node: NodeContext) -> BoxFuture<Result<(), TaskError>> {
        let gate = Arc::clone(&self.0);
        Box::pin(async move {
            let mut stop = node.stop.clone();
            tokio::select! {
                permit = gate.acquire() => permit.expect("the gate stays").forget(),
                () = stop.stopped() => return Err(TaskError::new("ended")),
            }
            if &*node.what == "bad" { Err(TaskError::new("no such system")) } else { Ok(()) }
        })
    }

    fn run(&self, task: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        Box::pin(async move {
            task.stop.clone().stopped().await;
            Err(TaskError::new("stopped"))
        })
    }
}

async fn start(settings: &str) -> (Runtime, Handle, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let config = Config::from_toml(settings).expect("good settings");
    let builder = Runtime::builder().config(config).executor(OnDemand(Arc::clone(&gate)));
    let runtime = builder.start().expect("it starts");
    let handle = runtime.handle();
    for name in ["a", "b"] {
        handle.add_node(NodeSpec::new(name).capacity("slot", 1)).await.expect("the node is new");
    }
    (runtime, handle, gate)
}

fn condition(condition: Condition) -> NodePatch {
    NodePatch { condition: Some(condition), ..NodePatch::default() }
}

async fn usage(handle: &Handle, name: &str) -> UsageAnswer {
    handle.usage(UsageOf::Node(name.into()), None).await.expect("the node is there")
}

async fn current(handle: &Handle, name: &str) -> Usage {
    usage(handle, name).await.entries.last().expect("a node is in some state").usage
}

/// Waits until the node is in this state.
async fn reach(handle: &Handle, name: &str, state: Usage) {
    while current(handle, name).await != state {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn refusal(result: Result<(), RequestError>) -> Refusal {
    match result.expect_err("it is refused") {
        RequestError::Refused(refusal) => refusal,
        other => panic!("refused for another reason: {other}"),
    }
}

/// Goal: a manual node goes through waiting, installing, running and idle in the hands of people, takes no
/// work meanwhile although it becomes automated, and is pending after that. Method: preparations that wait
/// for the test.
#[test]
fn people_reserve_a_node_and_give_it_back() {
    run(async {
        let (runtime, handle, gate) = start("").await;
        handle.update_node("b", condition(Condition::Removed)).await.expect("b is there");
        assert!(matches!(refusal(handle.reserve_node("a", "ann", None).await), Refusal::NotManual { .. }));
        handle.update_node("a", condition(Condition::Manual)).await.expect("a is there");
        handle.reserve_node("a", "ann", Some("system")).await.expect("a is free");
        let taken = refusal(handle.reserve_node("a", "bob", None).await);
        assert_eq!(taken, Refusal::NodeReserved { node: "a".into(), who: "ann".into() });
        reach(&handle, "a", Usage::Installing).await;
        gate.add_permits(1);
        reach(&handle, "a", Usage::Running).await;
        let status = handle.node("a").expect("a is there");
        let reservation = status.reservation.expect("ann has it");
        assert_eq!((&*reservation.who, reservation.stage), ("ann", ReservationStage::Running));
        handle.update_node("a", condition(Condition::Automated)).await.expect("a is there");
        let job = handle.submit(JobSpec::bag("work", 1).request("slot", 1)).await.expect("accepted");
        assert_eq!(handle.explain(job).await.expect("it is known").len(), 1, "nobody shares with ann");
        handle.return_node("a").await.expect("ann has it");
        reach(&handle, "a", Usage::Running).await;
        assert_eq!(handle.job(job).expect("it is kept").live, 1);
        let said: Vec<Usage> = usage(&handle, "a").await.entries.iter().map(|entry| entry.usage).collect();
        let reserved = [Usage::Idle, Usage::Waiting, Usage::Installing, Usage::Running];
        assert!(said.windows(4).any(|four| four == reserved), "{said:?}");
        assert_eq!(refusal(handle.return_node("a").await), Refusal::NotReserved("a".into()));
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: preparations that fail, take too long or are not wanted any more end the reservation.
#[test]
fn preparations_that_come_to_nothing_end_the_reservation() {
    run(async {
        let (runtime, handle, gate) = start("[deadlines]\nprepare = 0.2").await;
        let mut events = handle.events().expect("it runs");
        handle.update_node("a", condition(Condition::Manual)).await.expect("a is there");
        handle.reserve_node("a", "ann", Some("bad")).await.expect("a is free");
        gate.add_permits(1);
        let mut ends = Vec::new();
        while ends.len() < 3 {
            let batch = events.next().await.expect("it runs");
            for event in batch.events.iter() {
                let Event::Node(NodeEvent::Returned { why, .. }) = event else { continue };
                ends.push(*why);
                reach(&handle, "a", Usage::Idle).await;
                if ends.len() < 3 {
                    handle.reserve_node("a", "ann", Some("system")).await.expect("a is free again");
                }
                if ends.len() == 1 {
                    handle.return_node("a").await.expect("ann has it");
                }
            }
        }
        assert_eq!(ends, [Returned::NotPrepared, Returned::ByHand, Returned::TooLate]);
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: whoever reads events learns once for how many tasks a node is wanted, again when twice as many wait, and
/// nothing of tasks that another node would not help. Method: tasks for one node, then jobs of another shape one
/// after the other, until a node comes.
#[test]
fn it_is_told_once_that_a_node_is_wanted() {
    run(async {
        let (runtime, handle, _gate) = start("window = 0.0").await;
        let mut events = handle.events().expect("it runs");
        let pinned = RoleSpec::new("r", 3).request("slot", 1).on_node("a");
        let pinned = JobSpec::new("pinned").group(GroupSpec::new("g").role(pinned));
        handle.submit(pinned).await.expect("accepted");
        for tasks in [4, 1, 1, 1] {
            let job = handle.submit(JobSpec::bag("bag", tasks).request("slot", 1)).await.expect("accepted");
            assert_eq!(handle.explain(job).await.expect("it waits").len(), 1);
        }
        handle.add_node(NodeSpec::new("c").capacity("slot", 1)).await.expect("the node is new");
        let (mut wanted, mut is_there) = (Vec::new(), false);
        while !is_there {
            let batch = events.next().await.expect("it runs");
            for event in batch.events.iter() {
                match event {
                    Event::Node(NodeEvent::Wanted { tasks, shape }) => {
                        wanted.push((*tasks, shape.rules.node.clone()))
                    }
                    Event::Node(NodeEvent::Added { name, .. }) => is_there |= name == "c",
                    _ => {}
                }
            }
        }
        assert_eq!(wanted, [(3, None), (6, None)]);
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: what runs on a drained node goes elsewhere, and the time of its job is told apart.
#[test]
fn a_drained_node_is_empty_and_its_work_goes_on_elsewhere() {
    run(async {
        let (runtime, handle, _gate) = start("").await;
        handle.update_node("b", condition(Condition::Manual)).await.expect("b is there");
        let job = handle.submit(JobSpec::bag("work", 1).request("slot", 1)).await.expect("accepted");
        reach(&handle, "a", Usage::Running).await;
        let drain = NodePatch { availability: Some(Availability::Drain), ..NodePatch::default() };
        handle.update_node("a", drain).await.expect("a is there");
        reach(&handle, "a", Usage::Idle).await;
        assert_eq!(handle.explain(job).await.expect("it is known").len(), 1, "it waits again");
        let broken = NodePatch { reason: Some("no power".into()), ..condition(Condition::Broken) };
        handle.update_node("b", broken).await.expect("b is there");
        let said = loop {
            if let Some(breakdown) = handle.node("b").expect("b is there").breakdown {
                break breakdown.to_string();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        assert_eq!(said, "no power");
        handle.update_node("b", condition(Condition::Automated)).await.expect("b is there");
        reach(&handle, "b", Usage::Running).await;
        handle.cancel(job).await.expect("it runs");
        let status = handle.wait(job).await.expect("it ends");
        assert!(status.spent.running.0 > 0 && handle.node("b").expect("b is there").breakdown.is_none());
        let pool = handle.usage(UsageOf::Pool("default".into()), None).await.expect("answered");
        assert_eq!(pool.nodes, 2);
        let parts = usage(&handle, "a").await.time_in(Usage::Running).0
            + usage(&handle, "b").await.time_in(Usage::Running).0;
        assert_eq!(pool.time_in(Usage::Running).0, parts, "nothing runs any more");
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: every fact of a node can be changed while it is there, and what waited for the change starts. A node
/// comes into another pool only when nothing runs on it.
#[test]
fn facts_of_a_node_change_while_it_is_there() {
    run(async {
        let (runtime, handle, _gate) = start("window = 0.0").await;
        handle.remove_node("b").await.expect("b is there");
        let role = RoleSpec::new("r", 1).request("slot", 1).platform("linux/amd64").plugin("net");
        let role = role.constraint("engine.labels.ssd == yes").constraint("node.role == worker");
        let role = role.constraint("node.ip == 10.0.0.0/8");
        let job = handle.submit(JobSpec::new("j").pool("lab").group(GroupSpec::new("g").role(role)));
        let job = job.await.expect("accepted");
        let why = handle.explain_on(job, "a").await.expect("a is there");
        assert_eq!(why[0].on_node.reasons.len(), 4, "plugins, constraints, platform and pool: {}", why[0]);
        let patch = NodePatch {
            os: Some("linux".into()),
            arch: Some("x86_64".into()),
            plugins: Some(vec!["net".into()]),
            engine_labels: Some([("ssd".to_owned(), "yes".to_owned())].into()),
            role: Some("worker".into()),
            ip: Some("10.1.2.3".into()),
            pool: Some("lab".into()),
            ..NodePatch::default()
        };
        handle.update_node("a", patch).await.expect("a is there");
        reach(&handle, "a", Usage::Running).await;
        let pool = |pool: &str| NodePatch { pool: Some(pool.into()), ..NodePatch::default() };
        let refused = refusal(handle.update_node("a", pool("cellar")).await);
        assert_eq!(refused, Refusal::PoolInUse { node: "a".into(), pool: "cellar".into(), tasks: 1 });
        handle.update_node("a", pool("lab")).await.expect("it is there already");
        let nowhere = handle.update_node("a", pool("")).await;
        assert!(matches!(nowhere, Err(RequestError::Invalid(invalid)) if invalid.field == "pool"));
        let plugins = Some(vec!["x".repeat(1_000)]);
        let long = handle.update_node("a", NodePatch { plugins, ..NodePatch::default() }).await;
        assert!(matches!(long, Err(RequestError::Invalid(invalid)) if invalid.field == "plugins[0]"));
        handle.cancel(job).await.expect("it is known");
        handle.wait(job).await.expect("it is kept");
        handle.update_node("a", pool("cellar")).await.expect("nothing runs there");
        runtime.shutdown(DEADLINE).await;
    });
}

/// Tasks by their node: how many run, the most that ever did, and how many began.
type Runs = Arc<Mutex<BTreeMap<String, (u32, u32, u32)>>>;

/// Runs until it is told to stop, and takes its time to end then.
struct Counted(Runs);

/// Counts a task as over, however it comes to that.
struct Leave(Runs, String);

impl Drop for Leave {
    fn drop(&mut self) {
        let mut runs = self.0.lock().expect("nobody panics");
        runs.get_mut(&self.1).expect("it began").0 -= 1;
    }
}

impl Executor for Counted {
    fn run(&self, mut task: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        let runs = Arc::clone(&self.0);
        Box::pin(async move {
            let node = task.node.to_string();
            {
                let mut all = runs.lock().expect("nobody panics");
                let (now, most, began) = all.entry(node.clone()).or_default();
                (*now, *began) = (*now + 1, *began + 1);
                *most = (*most).max(*now);
            }
            let _leave = Leave(runs, node);
            task.stop.stopped().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            Err(TaskError::new("stopped"))
        })
    }
}

async fn liveness(handle: &Handle, name: &str, expected: Liveness) {
    while handle.node(name).expect("it is there").state.liveness != expected {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Goal: where heartbeats are expected, a node of which nobody hears loses its work by itself, and works again
/// when it is heard.
#[test]
fn a_node_that_is_not_heard_is_given_up_without_being_told_so() {
    run(async {
        let (runtime, handle, _gate) = start("[deadlines]\nheartbeat = 0.1\ndown = 0.1").await;
        liveness(&handle, "a", Liveness::Down).await;
        let job = handle.submit(JobSpec::bag("work", 1).request("slot", 1)).await.expect("accepted");
        let patience = Config::from_toml("[deadlines]\nheartbeat = 3600").expect("good settings");
        handle.update_settings(patience.raw()).expect("good settings");
        handle.heartbeat("a", true).await.expect("a is there");
        reach(&handle, "a", Usage::Running).await;
        assert_eq!(handle.job(job).expect("it is kept").live, 1);
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: a silent node keeps what runs there if it is heard again in time, and has lost it if not. Then its work
/// goes on elsewhere, and it takes new work only when what ran there has ended: never two at once.
#[test]
fn a_silent_node_keeps_its_work_for_a_while_and_returns_empty() {
    run(async {
        let runs = Runs::default();
        let config = Config::from_toml("[deadlines]\ndown = 0.4").expect("good settings");
        let builder = Runtime::builder().config(config).executor(Counted(Arc::clone(&runs)));
        let runtime = builder.start().expect("it starts");
        let handle = runtime.handle();
        let of = |node: &str| runs.lock().expect("nobody panics").get(node).copied().unwrap_or_default();
        handle.add_node(NodeSpec::new("a").capacity("slot", 1)).await.expect("the node is new");
        let bag = || JobSpec::bag("work", 1).request("slot", 1);
        let first = handle.submit(bag()).await.expect("accepted");
        reach(&handle, "a", Usage::Running).await;
        let mut events = handle.events().expect("it runs");
        handle.heartbeat("a", false).await.expect("a is there");
        liveness(&handle, "a", Liveness::Suspect).await;
        handle.heartbeat("a", true).await.expect("a is there");
        liveness(&handle, "a", Liveness::Ready).await;
        assert_eq!((of("a"), handle.job(first).expect("it is kept").live), ((1, 1, 1), 1), "it was kept");
        handle.heartbeat("a", false).await.expect("a is there");
        liveness(&handle, "a", Liveness::Down).await;
        let outcome = 'ended: loop {
            for event in events.next().await.expect("it runs").events.iter() {
                if let Event::Job(JobEvent::Ended { outcome, .. }) = event {
                    break 'ended *outcome;
                }
            }
        };
        assert_eq!(outcome, Outcome::Lost);
        handle.add_node(NodeSpec::new("b").capacity("slot", 1)).await.expect("the node is new");
        reach(&handle, "b", Usage::Running).await;
        let second = handle.submit(bag()).await.expect("accepted");
        assert_eq!(handle.explain(second).await.expect("it is known").len(), 1, "a is down, b is full");
        handle.heartbeat("a", true).await.expect("a is there");
        reach(&handle, "a", Usage::Running).await;
        assert_eq!((of("a"), of("b")), ((1, 1, 2), (1, 1, 1)), "one at a time");
        for job in [first, second] {
            assert_eq!(handle.job(job).expect("it is kept").live, 1);
        }
        runtime.shutdown(DEADLINE).await;
    });
}
