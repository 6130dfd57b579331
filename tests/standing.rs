//! Jobs that come to stand elsewhere while they wait or run: through dry runs and through the handle.

use std::time::Duration;

use plimsoll::core::messages::Refusal;
use plimsoll::core::plan;
use plimsoll::core::spec::Problem;
use plimsoll::{
    Config, Format, JobId, JobSpec, NodeSpec, Reprioritise, RequestError, Runtime, StopSignal, scenario,
    tasks,
};
use serde_json::{Value, json};

const DEADLINE: Duration = Duration::from_secs(20);

fn report(scenario: &Value) -> Result<Value, String> {
    let scenario =
        scenario::from_text(&scenario.to_string(), Format::Json).map_err(|error| format!("{error:?}"))?;
    let report = plan::run(&scenario).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(report).expect("a report can be written"))
}

fn order(report: &Value) -> Vec<&str> {
    let decisions = report["decisions"].as_array().expect("a list");
    decisions.iter().map(|decision| decision["job"].as_str().expect("a name")).collect()
}

/// One worker, three jobs behind one that runs; the events are given.
fn line(events: Value) -> Value {
    let job = |name: &str, set: &str| {
        let request = json!({"slot": 1});
        json!({"name": name, "job_set": set, "queue": "a", "tasks": 1, "request": request})
    };
    json!({
        "settings": {"window": 0, "queues": [{"name": "a"}, {"name": "b"}], "queue_key": "flow",
                     "bands": {"normal": 1, "high": 2}, "strict_bands": ["high"]},
        "nodes": [{"name": "n", "capacity": {"slot": 1}}],
        "jobs": [job("runs", ""), job("one", "s"), job("two", "t"), job("three", "t")],
        "running": [{"job": "runs", "group": "tasks", "role": "task", "node": "n"}],
        "events": events,
    })
}

fn finish(at: f64, job: &str) -> Value {
    json!({"at": at, "finish": {"job": job}})
}

/// Goal: another priority, band or queue counts from the moment it is said. Method: the last in a line is
/// moved before the first is served.
#[test]
fn what_is_moved_is_served_where_it_stands_now() {
    for change in [json!({"priority": 1}), json!({"band": "high"}), json!({"queue": "b"})] {
        let mut event = json!({"at": 1.0, "reprioritise": {"job": "three"}});
        change.as_object().expect("fields").iter().for_each(|(field, value)| {
            event["reprioritise"][field] = value.clone();
        });
        let events = json!([event, finish(2.0, "runs"), finish(3.0, "three"), finish(4.0, "one")]);
        let report = report(&line(events)).expect("a good file");
        assert_eq!(order(&report), ["three", "one", "two"], "{change}");
    }
}

/// Goal: the jobs of a set move together, and a decision names the queue in which the job stands by then.
/// Method: the queue without use goes first, then the two take turns.
#[test]
fn a_set_moves_as_one() {
    let moved = json!({"at": 1.0, "reprioritise": {"job_set": "t", "queue": "b", "priority": 3}});
    let events = json!([moved, finish(2.0, "runs"), finish(3.0, "two"), finish(4.0, "one")]);
    let report = report(&line(events)).expect("a good file");
    assert_eq!(order(&report), ["two", "one", "three"]);
    assert_eq!(report["summary"]["assigned_by_queue"], json!({"a": 1, "b": 2}));
}

/// Goal: what runs takes its books along: a quota of its old queue is released by the move.
#[test]
fn running_work_counts_for_its_new_queue() {
    let scenario = json!({
        "settings": {"window": 0, "queues": [{"name": "a", "quota": {"slot": 1}}, {"name": "b"}]},
        "nodes": [{"name": "n", "capacity": {"slot": 2}}],
        "jobs": [{"name": "runs", "queue": "a", "tasks": 1, "request": {"slot": 1}},
                 {"name": "waits", "queue": "a", "tasks": 1, "request": {"slot": 1}}],
        "events": [{"at": 1.0, "reprioritise": {"job": "runs", "queue": "b"}}],
    });
    let report = report(&scenario).expect("a good file");
    assert_eq!(order(&report), ["runs", "waits"]);
    assert_eq!(report["decisions"][1]["at"], json!(1.0));
}

/// Goal: names that mean nothing are refused. Method: each in a file that is otherwise good.
#[test]
fn unknown_jobs_sets_bands_and_queues_are_refused() {
    for (event, expected) in [
        (json!({"job": "nobody", "priority": 1}), "events[0].reprioritise.job"),
        (json!({"job": "one", "queue": "c"}), "events[0].reprioritise.queue"),
        (json!({"job": "one", "band": "c"}), "events[0].reprioritise.band"),
        (json!({"job": "one", "job_set": "s"}), "either `job` or `job_set`"),
        (json!({"priority": 1}), "either `job` or `job_set`"),
        (json!({"job_set": "nobody"}), "belongs to the set `nobody`"),
    ] {
        let error = report(&line(json!([{"at": 1.0, "reprioritise": event}]))).expect_err("bad");
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

/// Goal: the handle does the same on a live runtime; status, sets and shares show it, and a restore keeps
/// it. Method: one worker that is held, two jobs that wait, one of which is moved.
#[test]
fn a_service_moves_jobs_and_sees_where_they_stand() {
    let driver = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    driver.block_on(async { tokio::time::timeout(DEADLINE, moves()).await.expect("in time") });
}

async fn moves() {
    let text = r#"
        window = 0
        queues = [{ name = "a" }, { name = "b" }]
        bands = { normal = 1, high = 2 }
        strict_bands = ["high"]
    "#;
    let config = Config::from_toml(text).expect("good");
    let hold = |stop: StopSignal| async move {
        let mut stop = stop;
        stop.stopped().await;
        Ok(())
    };
    let executor = tasks(move |task: plimsoll::TaskContext| hold(task.stop.clone()));
    let runtime = Runtime::builder().config(config).executor(executor).start().expect("it starts");
    let handle = runtime.handle();
    handle.add_node(NodeSpec::new("n").capacity("slot", 1)).await.expect("new");
    let job = |name: &str| JobSpec::bag(name, 1).request("slot", 1).queue("a").job_set("set");
    let first = handle.submit(job("first")).await.expect("accepted");
    let second = handle.submit(job("second")).await.expect("accepted");
    assert_eq!(handle.job_set("set").await, Ok(vec![first, second]));
    let change = Reprioritise::new().queue("b").band("high").priority(7);
    handle.reprioritise(second, &change).await.expect("moved");
    let standing = handle.job(second).expect("known").spec.standing.clone();
    assert_eq!((&*standing.queue, &*standing.band, standing.priority), ("b", "high", 7));
    assert_eq!(handle.reprioritise_set("set", &change).await, Ok(vec![first]), "the other stands there");
    let snapshot = runtime.snapshot().await.expect("a snapshot");
    let status = |handle: &plimsoll::Handle| -> Vec<(String, u64)> {
        let shares = handle.shares().into_iter().filter(|share| share.running + share.waiting > 0);
        shares.map(|share| (share.name.queue.unwrap_or_default().to_string(), share.running)).collect()
    };
    // What runs counts for its new queue; the board hears of it a moment later.
    while status(&handle).last() != Some(&("b".to_owned(), 1)) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    refusals(&handle, &change).await;
    runtime.shutdown(DEADLINE).await;
    let restored = Runtime::builder().executor(tasks(|_| async { Ok(()) }));
    let restored = restored.restore(snapshot).start().expect("it is whole");
    let handle = restored.handle();
    assert_eq!(&*handle.job(second).expect("known").spec.standing.queue, "b");
    assert_eq!(handle.job_set("set").await, Ok(vec![first, second]));
    restored.shutdown(DEADLINE).await;
}

async fn refusals(handle: &plimsoll::Handle, change: &Reprioritise) {
    let unknown = handle.reprioritise(JobId(99), change).await;
    assert_eq!(unknown, Err(RequestError::Refused(Refusal::UnknownJob(JobId(99)))));
    let unknown = handle.reprioritise_set("nobody", change).await;
    assert_eq!(unknown, Err(RequestError::Refused(Refusal::UnknownJobSet("nobody".into()))));
    for (change, problem) in [
        (Reprioritise::new().queue("c"), Problem::UnknownQueue),
        (Reprioritise::new().band("c"), Problem::UnknownBand),
    ] {
        let Err(RequestError::Invalid(invalid)) = handle.reprioritise(JobId(1), &change).await else {
            panic!("refused")
        };
        assert_eq!(invalid.problem, problem);
    }
}

/// Goal: percents, patterns, threshold and duration are read and changed while the runtime runs, and read
/// back as they count; what cannot be is refused and changes nothing.
#[test]
fn the_settings_of_classes_change_while_the_runtime_runs() {
    let driver = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    driver.block_on(async {
        let config = Config::preset("scoot").expect("a preset");
        let runtime = Runtime::builder().config(config).executor(tasks(|_| async { Ok(()) }));
        let runtime = runtime.start().expect("it starts");
        let handle = runtime.handle();
        assert_eq!(handle.class_percents()[0], ("land".to_owned(), 40));
        let read_back = handle.set_class_percents(&[("land", 30), ("diff", 30), ("new", 30)]).expect("good");
        let expected = [("land", 33), ("diff", 34), ("new", 33)].map(|(name, part)| (name.to_owned(), part));
        assert_eq!(read_back, expected, "the first by name of the largest takes the rest");
        assert_eq!(handle.requestor_map()[0], ("land".to_owned(), vec!["land.*".to_owned()]));
        handle.set_requestor_map(&[("new", &["^n"]), ("land", &["^l", "^x"])]).expect("good");
        assert_eq!(handle.requestor_map()[2].1, ["^n"]);
        assert_eq!(handle.requestor_map()[1].1, Vec::<String>::new());
        handle.set_rebalance_threshold(25).expect("good");
        handle.set_rebalance_duration(Duration::from_millis(1_500)).expect("good");
        assert_eq!((handle.rebalance_threshold(), handle.rebalance_duration().as_millis()), (25, 1_500));
        let before = handle.settings();
        for refused in [
            handle.set_class_percents(&[]).map(drop),
            handle.set_class_percents(&[("a", 0)]).map(drop),
            handle.set_class_percents(&[("a", -1), ("b", 2)]).map(drop),
            handle.set_requestor_map(&[("nobody", &["x"])]),
            handle.set_requestor_map(&[("land", &["("])]),
            handle.set_rebalance_threshold(1_000),
        ] {
            assert!(matches!(refused, Err(RequestError::Settings(_))), "{refused:?}");
        }
        assert_eq!(handle.settings(), before);
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: percents and patterns that are set while the runtime runs count for what waits and what runs. Method:
/// ten workers, 8 to 2; then it is 2 to 8, six tasks of the larger class end, and the other one has all of
/// their workers; then all requestors belong to one class, and so does what they have.
#[test]
fn percents_and_patterns_apply_to_what_waits_and_runs() {
    let driver = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    driver.block_on(async { tokio::time::timeout(DEADLINE, changes_hands()).await.expect("in time") });
}

async fn changes_hands() {
    let text = r#"
        window = 0
        share_key = "entitlement"
        classes = [{ name = "a", percent = 80, requestors = ["^a"] }, { name = "b", percent = 20, requestors = ["^b"] }]
    "#;
    let config = Config::from_toml(text).expect("good");
    let runtime = Runtime::builder().config(config).assignment_window(100).start().expect("it starts");
    let (handle, mut assignments) = (runtime.handle(), runtime.assignments().expect("nobody else reads"));
    let job = |name: &str| JobSpec::bag(name, 40).request("slot", 1).requestor(name);
    let large = handle.submit(job("a")).await.expect("accepted");
    handle.submit(job("b")).await.expect("accepted");
    for worker in 0..10 {
        handle.add_node(NodeSpec::new(format!("w{worker}")).capacity("slot", 1)).await.expect("new");
    }
    let mut nodes_of_large: Vec<String> = Vec::new();
    let (mut started, mut of_large) = (0, 0);
    while started < 10 {
        for one in assignments.next().await.expect("more comes") {
            started += 1;
            if one.attempt.task.job() == large {
                of_large += 1;
                nodes_of_large.push(one.node.to_string());
            }
        }
    }
    assert_eq!(of_large, 8);
    handle.set_class_percents(&[("a", 20), ("b", 80)]).expect("good");
    for node in &nodes_of_large[..6] {
        handle.node_idle(node).await.expect("known");
    }
    while started < 16 {
        for one in assignments.next().await.expect("more comes") {
            started += 1;
            assert_ne!(one.attempt.task.job(), large, "it has what it should");
        }
    }
    handle.set_requestor_map(&[("a", &["^a", "^b"])]).expect("good");
    let counts = |name: &str| {
        let share =
            handle.shares().into_iter().find(|one| one.name.queue.is_none() && *one.name.class == *name);
        share.map(|share| (share.running, share.waiting))
    };
    // The board hears of it a moment later.
    while (counts("a"), counts("b")) != (Some((10, 64)), Some((0, 0))) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    runtime.shutdown(DEADLINE).await;
}
