//! What people do to work that is there: cancelled by set, queue, node or with its parts, replaced by a newer
//! version, allowed to run for longer. Through dry runs, and through the handle of a runtime.
//!
//! The cases are in `tests/control/`; what was not taken is listed in `NOT_TAKEN.md` there.

use std::future::pending;
use std::time::Duration;

use plimsoll::core::messages::Refusal;
use plimsoll::core::outcome::TaskState;
use plimsoll::core::plan::{self, DecisionKind};
use plimsoll::{
    Format, Handle, JobId, JobSpec, NodeSpec, RequestError, Runtime, SubmitError, TaskContext, scenario,
    tasks,
};
use serde_json::{Value, json};

/// The file of a case: nodes of one slot each, and jobs whose tasks take one.
fn scenario_of(case: &Value) -> Value {
    let mut settings = if case["settings"].is_object() { case["settings"].clone() } else { json!({}) };
    settings["window"] = json!(0);
    let mut jobs = case["jobs"].as_array().expect("a list").clone();
    for job in jobs.iter_mut().filter(|job| job["tasks"].is_number()) {
        job["request"] = json!({"slot": 1});
    }
    json!({"settings": settings, "jobs": jobs, "events": case["events"], "until": case["until"],
           "nodes": [{"name": "n", "count": case["slots"].as_u64().unwrap_or(1).max(2),
                      "capacity": {"slot": 1}}]})
}

#[test]
fn work_ends_as_it_is_told_to() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("control/cases.json")).expect("readable");
    for case in &cases {
        let (name, mut file) = (&case["name"], scenario_of(case));
        if case["slots"] == json!(1) {
            file["nodes"] = json!([{"name": "n", "capacity": {"slot": 1}}]);
        }
        let scenario = scenario::from_text(&file.to_string(), Format::Json)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let report = match (plan::run(&scenario), case["refused"].as_str()) {
            (Ok(report), None) => report,
            (Err(error), Some(refused)) => {
                assert_eq!(error.to_string(), refused, "{name}");
                continue;
            }
            (result, refused) => panic!("{name}: {result:?} instead of {refused:?}"),
        };
        let stops: Vec<_> =
            report.decisions.iter().filter(|decision| decision.kind == DecisionKind::Stop).collect();
        let mut stopped: Vec<&str> = stops.iter().map(|stop| &*stop.job).collect();
        stopped.sort_unstable();
        assert_eq!(json!(stopped), case["stopped"], "{name}");
        for (stop, at) in stops.iter().zip(case["at"].as_array().into_iter().flatten()) {
            assert_eq!(json!(stop.at as u64), *at, "{name}");
        }
        let waiting: Vec<&str> = report.waiting.iter().map(|group| &*group.job).collect();
        assert_eq!(json!(waiting), case["waiting"], "{name}");
    }
}

#[test]
fn control_events_that_cannot_be_are_refused() {
    let cases = [
        (
            json!({"at": 1, "cancel": {"job": "j", "queue": "q"}}),
            "one of `job`, `job_set`, `queue` and `node` is cancelled, not several",
        ),
        (
            json!({"at": 1, "cancel": {"node": "m"}}),
            "events[0].cancel.node: expected the name of a known node",
        ),
        (json!({"at": 1, "cancel": {}}), "events[0].cancel.job: missing"),
        (json!({"at": 1, "extend": {"job": "j"}}), "events[0].extend.seconds: missing"),
        (json!({"at": 1, "extend": {"job": "j", "seconds": 0}}), "events[0].extend.seconds"),
        (
            json!({"at": 1, "submit": {"name": "k", "tag": "1", "tasks": 1}}),
            "tag: a tag tells versions of a `basis` apart, so one must be named",
        ),
    ];
    for (event, expected) in cases {
        let file = json!({"nodes": [{"name": "n", "capacity": {"slot": 1}}], "events": [event],
                          "jobs": [{"name": "j", "tasks": 1}]});
        let error = scenario::from_text(&file.to_string(), Format::Json).expect_err("it is refused");
        assert!(error.to_string().contains(expected), "{error}\nis not\n{expected}");
    }
}

const DEADLINE: Duration = Duration::from_secs(20);

fn refusal(submitted: Result<JobId, SubmitError>) -> Refusal {
    match submitted {
        Err(SubmitError::Refused { refusal, .. }) => refusal,
        other => panic!("{other:?} is not refused"),
    }
}

fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(DEADLINE, body).await.expect("within the deadline") })
}

/// Goal: a task can submit jobs under its own and release them. Method: the task of a job submits two parts,
/// cancels one, and ends when the other has; the rest is cancelled together with a second job of the kind.
#[test]
fn a_task_submits_parts_of_its_job_and_releases_them() {
    let executor = tasks(|task: TaskContext| async move {
        if &*task.job.name != "driver" {
            return pending().await;
        }
        let handle = Handle::of(&task);
        let part = || JobSpec::bag("part", 1).request("slot", 1).parent(task.job_id());
        let (first, _second) = (handle.submit(part()).await, handle.submit(part()).await);
        let first = first.expect("its job goes on");
        handle.cancel(first).await.expect("it is known");
        handle.wait(first).await.expect("it ends");
        pending().await
    });
    run(async {
        let runtime =
            Runtime::builder().stop_grace(Duration::ZERO).executor(executor).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(NodeSpec::new("n").capacity("slot", 4)).await.expect("the node is new");
        let driver = handle.submit(JobSpec::bag("driver", 1).request("slot", 1)).await.expect("accepted");
        // Both parts were submitted before one of them can be missing.
        while handle.jobs().len() < 3 || handle.children(driver).await.expect("it is known").len() != 1 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let left = handle.children(driver).await.expect("it is known");
        assert_eq!(handle.cancel_with_children(driver).await.expect("it is known"), 2);
        for job in left.into_iter().chain([driver]) {
            let (state, _) = handle.wait(job).await.expect("it ends").finished.expect("it has ended");
            assert_eq!(state, TaskState::Cancelled, "{job}");
        }
        let late = handle.submit(JobSpec::bag("late", 1).parent(driver)).await;
        assert_eq!(refusal(late), Refusal::ParentEnded(driver));
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: what waits is listed, whoever comes next first. Method: one slot is taken, four jobs of two bands and
/// several priorities wait, and the list is compared with the order that they have to have.
#[test]
fn what_waits_is_listed_in_order() {
    run(async {
        let runtime = Runtime::builder()
            .stop_grace(Duration::ZERO)
            .executor(tasks(|_: TaskContext| pending()))
            .start()
            .expect("it starts");
        let handle = runtime.handle();
        handle.add_node(NodeSpec::new("n").capacity("slot", 1)).await.expect("the node is new");
        let bag = |tasks| JobSpec::bag("j", tasks).request("slot", 1);
        let first = handle.submit(bag(1)).await.expect("accepted");
        while handle.job(first).expect("it is known").live == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let mut jobs = Vec::new();
        for (tasks, priority) in [(3, 0), (2, 5), (1, 0)] {
            jobs.push(handle.submit(bag(tasks).priority(priority)).await.expect("accepted"));
        }
        jobs.push(handle.submit(JobSpec::gang("g", 2).request("slot", 1)).await.expect("accepted"));
        let waiting = handle.queue(10).await.expect("it is listed");
        let order: Vec<(JobId, u64)> = waiting.iter().map(|entry| (entry.group.job(), entry.tasks)).collect();
        assert_eq!(order, [(jobs[1], 2), (jobs[0], 3), (jobs[2], 1), (jobs[3], 2)]);
        assert_eq!(
            waiting.iter().map(|entry| entry.role).collect::<Vec<_>>(),
            [Some(0), Some(0), Some(0), None]
        );
        assert_eq!(handle.queue(2).await.expect("it is listed"), waiting[..2]);
        runtime.shutdown(DEADLINE).await;
    });
}

#[test]
fn work_is_cancelled_aborted_and_extended_through_the_handle() {
    let executor = tasks(|_: TaskContext| pending());
    run(async {
        let runtime =
            Runtime::builder().stop_grace(Duration::ZERO).executor(executor).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(NodeSpec::new("n").capacity("slot", 2)).await.expect("the node is new");
        let bag = |name: &str| JobSpec::bag(name, 1).request("slot", 1);
        let mut in_set = bag("a");
        in_set.job_set = "s".into();
        let first = handle.submit(in_set).await.expect("accepted");
        let second =
            handle.submit(bag("b").requestor("ann").supersedes("main", "1")).await.expect("accepted");
        while handle.extend(first, Duration::from_secs(60)).await.expect("it is known") == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let no_time = handle.extend(first, Duration::ZERO).await;
        assert!(matches!(no_time, Err(RequestError::Invalid(invalid)) if invalid.field == "by"));
        assert_eq!(handle.cancel_set("s").await.expect("there is such a set"), 1);
        assert_eq!(handle.cancel_set("s").await.expect("there is such a set"), 0, "once is enough");
        assert!(handle.cancel_set("t").await.is_err() && handle.cancel_on_node("m").await.is_err());
        let third = handle.submit(bag("c").requestor("ann").supersedes("main", "2")).await.expect("accepted");
        let old = handle.submit(bag("d").requestor("ann").supersedes("main", "1")).await;
        assert!(matches!(refusal(old), Refusal::Superseded { .. }));
        for job in [first, second] {
            let (state, _) = handle.wait(job).await.expect("it ends").finished.expect("it has ended");
            assert_eq!(state, TaskState::Cancelled);
        }
        handle.abort(third, "its time is over").await.expect("it is known");
        let status = handle.wait(third).await.expect("it ends");
        assert_eq!(status.abort_reason.as_deref(), Some("its time is over"));
        assert_eq!((status.aborted, status.result.name()), (1, "warn"));
        runtime.shutdown(DEADLINE).await;
    });
}
