//! The life of an attempt on real threads: how it fails, what it says then, and how its deadlines end it.

#[path = "kit/outcomes.rs"]
mod outcomes;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use plimsoll::core::explanation::Reason;
use plimsoll::core::id::GroupId;
use plimsoll::core::messages::{JobEvent, NodeEvent};
use plimsoll::core::outcome::{FailureCause, Outcome, Phase, TaskState};
use plimsoll::core::spec::Retries;
use plimsoll::core::time::Span;
use plimsoll::{
    BoxFuture, Config, Event, Executor, GroupSpec, Handle, JobSpec, JobStatus, NodeSpec, RoleSpec, Runtime,
    TaskContext, TaskError, TaskId, blocking_tasks, tasks,
};

use outcomes::outcomes;

const DEADLINE: Duration = Duration::from_secs(20);

fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(DEADLINE, body).await.expect("within the deadline") })
}

async fn start(settings: &str, executor: impl Executor) -> (Runtime, Handle) {
    let config = Config::from_toml(settings).expect("good settings");
    let runtime = Runtime::builder().config(config).executor(executor).start().expect("it starts");
    let handle = runtime.handle();
    handle.add_node(NodeSpec::new("a").capacity("slot", 1)).await.expect("the node is new");
    (runtime, handle)
}

fn job(role: RoleSpec) -> JobSpec {
    JobSpec::new("j").group(GroupSpec::new("g").role(role.request("slot", 1)))
}

fn words(status: &JobStatus) -> Vec<&str> {
    status.failures.iter().map(|failure| &*failure.text).collect()
}

/// Goal: a panic fails its own task, and its words are kept, not more of them than fit. Method: panics in
/// an asynchronous and in a blocking closure, the second very long.
#[test]
fn a_panic_is_a_failure_with_its_words() {
    run(async {
        let (runtime, handle) = start("", tasks(|_| async { panic!("at the {}", "disco") })).await;
        let (ended, status) = outcomes(&handle, job(RoleSpec::new("r", 1))).await;
        assert_eq!(ended, [Outcome::Failed(FailureCause::Panic)]);
        assert_eq!(words(&status), ["panicked: at the disco"]);
        runtime.shutdown(DEADLINE).await;
        let (runtime, handle) = start("", blocking_tasks(|_| panic!("{}", "ü".repeat(10_000)))).await;
        let (ended, status) = outcomes(&handle, job(RoleSpec::new("r", 1))).await;
        assert_eq!(ended, [Outcome::Failed(FailureCause::Panic)]);
        let said = words(&status)[0];
        assert!(said.starts_with("panicked: üü") && (1_000..=1_024).contains(&said.len()), "{}", said.len());
        runtime.shutdown(DEADLINE).await;
    });
}

/// Prepares for as long as the name of the role says, in milliseconds, and fails to if it is no number.
struct Slow;

impl Executor for Slow {
    fn prepare(&self, task: &TaskContext) -> BoxFuture<Result<(), TaskError>> {
        let time = task.role().name.parse().map_err(|_| TaskError::new("no number"));
        let mut stop = task.stop.clone();
        Box::pin(async move {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(time?)) => Ok(()),
                // Whoever is told to stop may also just be done: it is not run any more.
                () = stop.stopped() => Ok(()),
            }
        })
    }

    fn run(&self, mut task: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        Box::pin(async move {
            if task.index() == 0 {
                task.stop.stopped().await;
                return Err(TaskError::new("told to stop"));
            }
            Ok(())
        })
    }
}

/// Goal: each phase ends at its own deadline, the end says in which phase it came, and the node is free
/// again. Method: preparations that fail, that take too long, and a run that never ends; behind each a
/// task that needs the same place.
#[test]
fn every_phase_ends_in_time_and_says_so() {
    const SETTINGS: &str = "[deadlines]\nprepare = 0.2\noverhead = 0.05\n[faulty]\nbroken_after = 0";
    run(async {
        let (runtime, handle) = start(SETTINGS, Slow).await;
        let failed = outcomes(&handle, job(RoleSpec::new("never", 1))).await;
        assert_eq!(failed.0, [Outcome::Failed(FailureCause::NotStarted)]);
        assert_eq!(words(&failed.1), ["no number"]);
        let stuck = outcomes(&handle, job(RoleSpec::new("5000", 1))).await.0;
        assert_eq!(stuck, [Outcome::TimedOut(Phase::Installing)]);
        let short = job(RoleSpec::new("1", 2).timeout(Duration::from_millis(50)));
        let endless = outcomes(&handle, short).await.0;
        assert_eq!(endless, [Outcome::TimedOut(Phase::Running), Outcome::Completed]);
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: the time it takes to prepare is told apart from the time it runs. Method: an end says since when
/// the attempt ran, which is at least the time of the preparations after it was bound.
#[test]
fn preparing_is_measured_apart_from_running() {
    run(async {
        let (runtime, handle) = start("[deadlines]\noverhead = 0.1", Slow).await;
        let mut events = handle.events().expect("the runtime runs");
        let short = job(RoleSpec::new("80", 1).timeout(Duration::from_millis(1)));
        handle.submit(short).await.expect("accepted");
        let mut bound = None;
        let (began, ended) = 'found: loop {
            for event in events.next().await.expect("the runtime runs").events.iter() {
                match *event {
                    Event::Job(JobEvent::Bound { at, .. }) => bound = Some(at),
                    Event::Job(JobEvent::Ended { began, at, .. }) => break 'found (began, at),
                    _ => {}
                }
            }
        };
        let began = began.expect("it ran");
        let prepared = began.since(bound.expect("it was bound")).as_seconds();
        assert!(prepared >= 0.08, "it was prepared for {prepared} s");
        let ran = ended.since(began).as_seconds();
        assert!(ran >= 0.1, "it ran for {ran} s");
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: a task that has used up its retries has failed, and how each attempt went is told. Method: three attempts
/// on three nodes, of which each fails, with a wait before the third.
#[test]
fn a_task_that_is_out_of_retries_tells_how_its_attempts_went() {
    run(async {
        let (runtime, handle) = start("", tasks(|_| async { Err(TaskError::new("no luck")) })).await;
        for name in ["b", "c"] {
            handle.add_node(NodeSpec::new(name).capacity("slot", 1)).await.expect("the node is new");
        }
        let wait = Span::from_millis(40);
        let retries = Retries { backoff: wait, factor: 2_000, ..Retries::new(2) };
        let (ended, status) = outcomes(&handle, job(RoleSpec::new("r", 1).retries(retries))).await;
        assert_eq!(ended, [Outcome::Failed(FailureCause::Error); 3]);
        assert_eq!((status.failed, words(&status)), (1, vec!["no luck"; 3]));
        let task = status.failures[0].attempt.task;
        let history = handle.task(task).await.expect("it is kept");
        assert_eq!((history.state, history.ended, history.counted), (TaskState::Failed, 3, 2));
        let numbers: Vec<u32> = history.attempts.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, [1, 2, 3]);
        let nodes: BTreeSet<_> = history.attempts.iter().map(|attempt| attempt.node).collect();
        assert_eq!(nodes.len(), 3, "each on another node");
        for (pair, least) in history.attempts.windows(2).zip([wait, Span(2 * wait.0)]) {
            assert!(pair[1].bound.since(pair[0].ended) >= least, "{pair:?}");
        }
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: a task that waits before it is tried again waits visibly, and why and until when is told. Method: one that
/// fails at once and waits for an hour, beside one that waits for room.
#[test]
fn what_waits_to_be_tried_again_says_so() {
    run(async {
        let (runtime, handle) = start("", tasks(|_| async { Err(TaskError::new("no luck")) })).await;
        let retries = Retries { backoff: Span::from_whole_seconds(60), ..Retries::new(2) };
        let id = handle.submit(job(RoleSpec::new("r", 2).retries(retries))).await.expect("accepted");
        let explained = loop {
            let explained = handle.explain(id).await.expect("it is known");
            if matches!(&explained[..], [one] if one.waiting == 2 && matches!(one.reason, Reason::Delayed { .. }))
            {
                break explained;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        let Reason::Delayed { until } = explained[0].reason else { unreachable!("it was looked at") };
        assert!(until > handle.now(), "{}", explained[0]);
        let of_task = |index| TaskId { group: GroupId::new(id, 0), role: 0, index };
        let mut times = Vec::new();
        for index in [0, 1] {
            let history = handle.task(of_task(index)).await.expect("it is kept");
            let explained = handle.explain(of_task(index)).await.expect("it is known");
            assert_eq!(explained.len(), 1, "it is not queued: {explained:?}");
            let not_before = history.not_before.expect("it waits");
            assert_eq!(
                (explained[0].waiting, &explained[0].reason),
                (1, &Reason::Delayed { until: not_before })
            );
            times.push(not_before);
        }
        assert_eq!(times.iter().min(), Some(&until), "the first of them");
        handle.cancel(id).await.expect("it is known");
        assert_eq!(handle.wait(id).await.expect("it ends").cancelled, 2);
        assert_eq!(handle.explain(id).await.expect("it is kept"), []);
        runtime.shutdown(DEADLINE).await;
    });
}

/// How many tasks run at this moment, and the most that ever did.
type Together = Arc<Mutex<(u32, u32)>>;

/// Tasks on threads of their own that do not look at their stop signals: the first attempt of each goes on
/// until the test lets it.
fn deaf(together: &Together, let_go: mpsc::Receiver<()>) -> impl Executor + use<> {
    let (together, let_go) = (Arc::clone(together), Mutex::new(let_go));
    blocking_tasks(move |task: TaskContext| {
        {
            let mut now = together.lock().expect("nobody panics");
            *now = (now.0 + 1, now.1.max(now.0 + 1));
        }
        if task.attempt.number == 1 && task.job.name == "deaf" {
            let _ = let_go.lock().expect("nobody panics").recv();
        }
        together.lock().expect("nobody panics").0 -= 1;
        Ok(())
    })
}

async fn start_deaf(settings: &str) -> (Runtime, Handle, Together, mpsc::Sender<()>) {
    let together = Together::default();
    let (go, let_go) = mpsc::channel();
    let config = Config::from_toml(settings).expect("good settings");
    let builder = Runtime::builder().config(config).executor(deaf(&together, let_go));
    let runtime = builder.stop_grace(Duration::ZERO).start().expect("it starts");
    let handle = runtime.handle();
    handle.add_node(NodeSpec::new("a").capacity("slot", 1)).await.expect("the node is new");
    handle.submit(JobSpec::bag("deaf", 1).request("slot", 1)).await.expect("accepted");
    while together.lock().expect("nobody panics").0 == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    (runtime, handle, together, go)
}

/// Goal: work that cannot be dropped holds its place until it has ended, also when its grace time is over.
/// Method: a task that does not listen is cancelled while another one waits for its place.
#[test]
fn work_that_cannot_be_dropped_keeps_its_place() {
    run(async {
        let (runtime, handle, together, go) = start_deaf("[deadlines]\nstop = 0.05").await;
        let mut events = handle.events().expect("it runs");
        let next = handle.submit(JobSpec::bag("next", 1).request("slot", 1)).await.expect("accepted");
        let (deaf, _) = handle.jobs()[0];
        handle.cancel(deaf).await.expect("it is known");
        let is_unconfirmed = |event: &Event| matches!(event, Event::Node(NodeEvent::Unresponsive { .. }));
        while !events.next().await.expect("it runs").events.iter().any(is_unconfirmed) {}
        assert_eq!(handle.job(deaf).expect("it is kept").live, 1, "its stop is not confirmed");
        go.send(()).expect("it waits");
        assert_eq!(handle.wait(next).await.expect("it ends").completed, 1);
        assert_eq!(*together.lock().expect("nobody panics"), (0, 1), "one at a time");
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: a node that is removed and added again begins nothing before what ran on it has ended. Method: a
/// task that does not listen, which is lost with its node and bound to the new one of the same name.
#[test]
fn a_node_that_comes_back_waits_for_what_ran_on_it() {
    run(async {
        let (runtime, handle, together, go) = start_deaf("").await;
        let mut events = handle.events().expect("it runs");
        handle.remove_node("a").await.expect("it is there");
        handle.add_node(NodeSpec::new("a").capacity("slot", 1)).await.expect("it is gone");
        let is_second = |event: &Event| match event {
            Event::Job(JobEvent::Bound { attempt, .. }) => attempt.number == 2,
            _ => false,
        };
        while !events.next().await.expect("it runs").events.iter().any(is_second) {}
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(*together.lock().expect("nobody panics"), (1, 1), "the first one goes on");
        go.send(()).expect("it waits");
        let (deaf, _) = handle.jobs()[0];
        assert_eq!(handle.wait(deaf).await.expect("it ends").completed, 1);
        assert_eq!(*together.lock().expect("nobody panics"), (0, 1), "one at a time");
        runtime.shutdown(DEADLINE).await;
    });
}
