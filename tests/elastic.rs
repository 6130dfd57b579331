//! Atomic groups that vary in size, through dry runs: how they grow, who goes first, what stays free, how
//! they rest, and how they give way.
//!
//! `tests/elastic/sizes.json` holds one machine each, what others hold of it or come to use, and for each job
//! what a task of it requests, its smallest and largest size and how many run, and by how many tasks its size
//! changes. What was not taken is listed in `tests/elastic/NOT_TAKEN.md`.

use std::time::Duration;

use plimsoll::core::messages::Refusal;
use plimsoll::core::plan;
use plimsoll::{
    Config, Format, GroupId, GroupSpec, Handle, JobId, JobSpec, NodePatch, NodeSpec, RequestError, RoleSpec,
    Runtime, scenario, tasks,
};
use serde_json::{Value, json};

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

fn job(name: &Value, request: &Value, sizes: (&Value, &Value)) -> Value {
    let role = json!({"name": "r", "min": sizes.0, "max": sizes.1, "request": request});
    json!({"name": name, "groups": [{"name": "g", "start": "atomic", "roles": [role]}]})
}

/// By how many tasks a job became larger; below zero it became smaller.
fn change(report: &Value, job: &str) -> i64 {
    let decisions = report["decisions"].as_array().expect("a list").iter();
    decisions
        .filter(|decision| decision["job"] == job)
        .map(|decision| match decision["kind"].as_str() {
            Some("assign" | "grow") => 1,
            _ => -1,
        })
        .sum()
}

fn kinds(report: &Value) -> Vec<(f64, &str)> {
    let decisions = report["decisions"].as_array().expect("a list").iter();
    let kind = |decision: &'_ Value| decision["at"].as_f64().expect("a time");
    decisions.map(|decision| (kind(decision), decision["kind"].as_str().expect("a kind"))).collect()
}

/// Goal: sizes change as known cases say. Method: one machine per case, with what runs on it already.
#[test]
fn sizes_change_as_they_should() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("elastic/sizes.json")).expect("the file can be read");
    for case in &cases {
        let list = case["jobs"].as_array().expect("a list");
        let mut jobs: Vec<Value> = list.iter().map(|one| job(&one[0], &one[1], (&one[2], &one[3]))).collect();
        let runs = list.iter().filter(|one| one[4] != 0);
        let mut running: Vec<Value> =
            runs.map(|one| json!({"job": one[0], "group": "g", "role": "r", "count": one[4]})).collect();
        if case["others"].is_object() {
            jobs.push(json!({"name": "others", "tasks": 1, "request": case["others"]}));
            running.push(json!({"job": "others", "group": "tasks", "role": "task", "count": 1}));
        }
        let headroom = if case["headroom"].is_null() { json!(0) } else { case["headroom"].clone() };
        let comes = json!([{"at": 1, "node": {"name": "n", "reserved": case["comes"]}}]);
        let events = if case["comes"].is_object() { comes } else { json!([]) };
        let report = report(&json!({
            "config": "paddle", "settings": {"headroom": headroom, "freeze": 0}, "events": events,
            "nodes": [{"name": "n", "capacity": case["capacity"]}], "jobs": jobs, "running": running,
        }));
        for one in list {
            let name = one[0].as_str().expect("a name");
            let expected = case["changes"][name].as_i64().unwrap_or(0);
            assert_eq!(change(&report, name), expected, "{name} of {}: {report:#}", case["name"]);
        }
    }
}

fn alone(max: u32, freeze: f64, events: Value, until: f64) -> Value {
    json!({
        "config": "paddle", "settings": {"headroom": 0, "freeze": freeze}, "until": until,
        "nodes": [{"name": "n", "capacity": {"cpu": 4}}],
        "jobs": [job(&json!("j"), &json!({"cpu": 1}), (&json!(2), &json!(max)))],
        "events": events,
    })
}

/// Goal: a group starts with its minimum, grows in one go, and rests after that for its time. Method: room
/// appears inside the time of rest, and at its end it is taken.
#[test]
fn a_group_rests_after_its_size_was_changed() {
    let events = json!([{"at": 120, "node": {"name": "n", "capacity": {"cpu": 6}}}]);
    let report = report(&alone(9, 300.0, events, 301.0));
    let expected =
        [(0.0, "assign"), (0.0, "assign"), (0.0, "grow"), (0.0, "grow"), (300.0, "grow"), (300.0, "grow")];
    assert_eq!(kinds(&report), expected);
    assert_eq!(report["waiting"][0]["explanation"]["waiting"], 3);
}

/// Goal: what others take of a machine is given up at once, also inside the time of rest, and never below the
/// minimum as long as that fits. Method: the machine becomes smaller, and then too small.
#[test]
fn capacity_that_is_gone_is_yielded_within_the_time_of_rest() {
    let events = json!([{"at": 10, "node": {"name": "n", "capacity": {"cpu": 3}}},
                        {"at": 20, "node": {"name": "n", "capacity": {"cpu": 1}}}]);
    let report = report(&alone(4, 300.0, events, 30.0));
    let ends = |(_, kind): &(f64, &str)| *kind == "stop" || *kind == "shrink";
    let stops: Vec<(f64, &str)> = kinds(&report).into_iter().filter(ends).collect();
    // One above the minimum goes first; then the group does not fit at all and ends as a whole.
    assert_eq!(stops, [(10.0, "shrink"), (20.0, "stop"), (20.0, "stop"), (20.0, "stop")]);
}

/// Goal: sizes that are set are absolute, stop the newest members above, and saying them again changes
/// nothing. Method: the same event three times.
#[test]
fn sizes_that_are_set_are_absolute() {
    let resize = json!({"job": "j", "group": "g", "role": "r", "min": 1, "max": 2});
    let events =
        json!([{"at": 5, "resize": resize}, {"at": 6, "resize": resize}, {"at": 7, "resize": resize}]);
    let report = report(&alone(4, 60.0, events, 10.0));
    assert_eq!(kinds(&report)[4..], [(5.0, "shrink"), (5.0, "shrink")]);
    let stopped = report["decisions"].as_array().expect("a list")[4..].iter();
    let tasks: Vec<&Value> = stopped.map(|decision| &decision["task"]).collect();
    assert_eq!(tasks, [2, 3], "the newest go");
}

/// Goal: a group may begin larger than its minimum if there is room, and else does not wait for that. Method:
/// the same job on two machines.
#[test]
fn a_group_begins_with_its_initial_size_if_that_fits() {
    for (cpus, expected) in [(5, 4), (3, 2)] {
        let mut scenario = alone(4, 60.0, json!([]), 1.0);
        scenario["nodes"][0]["capacity"]["cpu"] = json!(cpus);
        scenario["jobs"][0]["groups"][0]["roles"][0]["initial"] = json!(4);
        scenario["jobs"][0]["groups"][0]["roles"][0]["max"] = json!(4);
        let report = report(&scenario);
        let assigned = kinds(&report).iter().filter(|(_, kind)| *kind != "grow").count();
        assert_eq!(assigned, expected, "{report:#}");
        assert_eq!(change(&report, "j"), if expected == 4 { 4 } else { 3 });
    }
}

/// Goal: the largest size is a ceiling and no amount of work. Method: tasks that end by themselves; members
/// that never started are not started any more, and nothing waits.
#[test]
fn what_never_started_is_not_needed_once_members_complete() {
    let mut scenario = alone(9, 0.0, json!([]), 100.0);
    scenario["jobs"][0]["groups"][0]["roles"][0]["duration"] = json!(10);
    let report = report(&scenario);
    assert_eq!((change(&report, "j"), report["waiting"].as_array().map(Vec::len)), (4, Some(0)));
}

/// Goal: what keeps a group from growing is said. Method: a full machine, and one that is kept free in part.
#[test]
fn what_keeps_a_group_from_growing_is_explained() {
    let sentence = |headroom: f64| {
        let mut scenario = alone(9, 0.0, json!([]), 1.0);
        scenario["settings"]["headroom"] = json!(headroom);
        report(&scenario)["waiting"][0]["sentence"].as_str().expect("a sentence").to_owned()
    };
    let begin = "the group has its minimum; ";
    assert!(sentence(0.0).contains(&format!("{begin}5 more would be taken; nothing is free for it")));
    assert!(
        sentence(0.3).contains(&format!("{begin}7 more would be taken; nothing is free beyond the headroom"))
    );
}

/// What is decided about a job after the dry run has begun: when, what, and why.
fn later<'a>(report: &'a Value, job: &str) -> Vec<(f64, &'a str, &'a str)> {
    let decisions = report["decisions"].as_array().expect("a list").iter();
    let text = |decision: &'a Value, field| decision[field].as_str().expect("a text");
    decisions
        .filter(|decision| decision["job"] == job && decision["at"].as_f64() > Some(0.0))
        .map(|decision| {
            let at = decision["at"].as_f64().expect("a time");
            (at, text(decision, "kind"), text(decision, "why"))
        })
        .collect()
}

/// Goal: what others come to use of a machine is yielded in the same event, by what is above the minima first,
/// never more than they use, and taken again when they are gone. Method: others use more and more of a machine
/// with two groups, at last more than it has, and then nothing.
#[test]
fn what_others_use_of_a_machine_is_yielded_at_once() {
    let reserved = |at: u32, cpus: u32| json!({"at": at, "node": {"name": "n", "reserved": {"cpu": cpus}}});
    let report = report(&json!({
        "config": "paddle", "settings": {"headroom": 0, "freeze": 300}, "until": 50,
        "nodes": [{"name": "n", "capacity": {"cpu": 9}, "reserved": {"cpu": 1}}],
        "jobs": [job(&json!("a"), &json!({"cpu": 1}), (&json!(2), &json!(4))),
                 job(&json!("b"), &json!({"cpu": 1}), (&json!(1), &json!(4)))],
        "events": [reserved(10, 4), reserved(20, 6), reserved(30, 20), reserved(40, 0)],
    }));
    let ends = |at: f64, kind: &str| {
        let all = kinds(&report).into_iter().filter(|one| *one == (at, kind)).count();
        (kind.to_owned(), all)
    };
    assert_eq!(kinds(&report).iter().filter(|(at, _)| *at == 0.0).count(), 8, "{report:#}");
    // Nine less four leaves five of the eight, nine less six the minima, and nothing is left at last.
    assert_eq!([ends(10.0, "shrink"), ends(20.0, "shrink")], [("shrink".into(), 3), ("shrink".into(), 2)]);
    assert_eq!((ends(30.0, "stop").1, ends(30.0, "shrink").1), (3, 0), "{report:#}");
    assert_eq!((ends(40.0, "assign").1, ends(40.0, "grow").1), (3, 5), "{report:#}");
}

/// Goal: what is full because others use it is not called too small, and who may fit some day is not given up.
/// Method: a group that fails when it can never fit, on a machine that others use.
#[test]
fn what_others_use_does_not_make_a_group_fail() {
    let report = report(&json!({
        "settings": {"on_unsatisfiable": "fail"},
        "nodes": [{"name": "n", "capacity": {"cpu": 4}, "reserved": {"cpu": 3}}],
        "jobs": [job(&json!("j"), &json!({"cpu": 2}), (&json!(2), &json!(2)))],
    }));
    assert_eq!(report["decisions"].as_array().map(Vec::len), Some(0), "{report:#}");
    let sentence = report["waiting"][0]["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("lacks cpu") || sentence.contains("lack cpu"), "{sentence}");
}

/// One group that holds all of a machine, and another that comes at some time.
fn newcomer(freeze: f64, at: f64, band: &str, until: f64) -> Value {
    let mut newcomer = job(&json!("new"), &json!({"cpu": 1}), (&json!(2), &json!(10)));
    newcomer["band"] = json!(band);
    json!({
        "config": "paddle", "settings": {"headroom": 0, "freeze": freeze}, "until": until,
        "nodes": [{"name": "n", "capacity": {"cpu": 8}}],
        "jobs": [job(&json!("old"), &json!({"cpu": 1}), (&json!(2), &json!(10)))],
        "events": [{"at": at, "submit": newcomer}],
    })
}

/// Goal: minima come before what is above other minima, but not inside the time of rest unless a strict band
/// asks; nobody gives more than is needed. Method: one group has grown to the whole machine when another comes:
/// inside the time of rest, after it, and inside it in a strict band.
#[test]
fn a_newcomer_is_made_room_for_when_sizes_do_not_rest() {
    for (at, band, expected) in
        [(120.0, "normal", 300.0), (301.0, "normal", 301.0), (10.0, "production", 10.0)]
    {
        let report = report(&newcomer(300.0, at, band, 320.0));
        let given: Vec<f64> = later(&report, "old").iter().map(|(at, ..)| *at).collect();
        assert_eq!(given, [expected, expected], "{at}: {report:#}");
        let (_, kind, why) = later(&report, "old")[0];
        assert_eq!((kind, why.contains("above its minimum")), ("shrink", true), "{why}");
        let started = later(&report, "new").into_iter().filter(|(_, kind, _)| *kind == "assign");
        let started: Vec<(f64, &str)> = started.map(|(at, kind, _)| (at, kind)).collect();
        assert_eq!(started, [(expected, "assign"), (expected, "assign")], "{at}: {report:#}");
    }
}

/// Goal: of two groups of one queue the one that has had more gives to the one that has had less, one member
/// and one time of rest at a time, until what they had is not too far apart any more, and nothing goes to and
/// fro. Method: one group had a whole machine for long before the other came.
#[test]
fn who_has_had_more_gives_to_who_has_had_less() {
    let report = report(&newcomer(60.0, 600.0, "normal", 3_600.0));
    let evened: Vec<(f64, &str, &str)> =
        later(&report, "old").into_iter().filter(|(.., why)| why.contains("has had more")).collect();
    assert!(evened.len() >= 3, "{report:#}");
    assert!(evened.iter().all(|(_, kind, _)| *kind == "shrink"), "{evened:?}");
    for two in evened.windows(2) {
        assert!(two[1].0 - two[0].0 >= 60.0, "{evened:?}");
    }
    let grown = later(&report, "new").iter().filter(|(_, kind, _)| *kind == "grow").count();
    assert!(grown >= evened.len() - 1, "{report:#}");
    // Every change of the one is a change of the other at the same time.
    let times = |job: &str| -> Vec<f64> {
        let mut times: Vec<f64> = later(&report, job).into_iter().map(|(at, ..)| at).collect();
        times.dedup();
        times
    };
    assert_eq!(times("old"), times("new"), "{report:#}");
    let last = times("old").last().copied();
    assert!(last < Some(2_400.0), "it does not come to rest: {last:?}");
}

/// Goal: where growth may use what is to stay free in part only, nothing grows and shrinks in turn. Method:
/// nine of ten units are used, a part of them is to stay free, and groups are compared every five seconds.
#[test]
fn growth_does_not_flip_at_the_headroom() {
    let report = report(&json!({
        "config": "paddle", "settings": {"headroom": 0.03, "freeze": 0, "resize_interval": 5}, "until": 600,
        "nodes": [{"name": "n", "capacity": {"cpu": 100, "gpu": 10}}],
        "jobs": [job(&json!("n"), &json!({"cpu": 1, "gpu": 1}), (&json!(1), &json!(5))),
                 {"name": "others", "tasks": 7, "request": {"gpu": 1}}],
        "running": [{"job": "n", "group": "g", "role": "r", "count": 2},
                    {"job": "others", "count": 7}],
    }));
    assert_eq!(report["decisions"].as_array().map(Vec::len), Some(0), "{report:#}");
}

const DEADLINE: Duration = Duration::from_secs(20);

/// Goal: the handle sets sizes, refuses what cannot be with what is wrong, and shows how many run and how many
/// are expected to. Method: one machine for six tasks that never end by themselves.
#[test]
fn a_service_resizes_a_group() {
    let driver = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    driver.block_on(async { tokio::time::timeout(DEADLINE, resizes()).await.expect("in time") });
}

async fn sized(handle: &Handle, job: JobId, expected: (u32, u32)) {
    loop {
        let sizes = handle.sizes(job).await.expect("known");
        if (sizes[0].expected, sizes[0].running) == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn resizes() {
    let config = Config::from_toml("window = 0\nfreeze = 0").expect("good");
    let executor = tasks(|task: plimsoll::TaskContext| async move {
        let mut stop = task.stop.clone();
        stop.stopped().await;
        Err(plimsoll::TaskError::new("told to stop"))
    });
    let runtime = Runtime::builder().config(config).executor(executor).start().expect("it starts");
    let handle = runtime.handle();
    handle.add_node(NodeSpec::new("n").capacity("cpu", 6)).await.expect("new");
    let role = RoleSpec::new("trainer", 3).at_least(2).request("cpu", 1);
    let spec = JobSpec::new("train").group(GroupSpec::new("g").atomic().role(role));
    let job = handle.submit(spec).await.expect("accepted");
    let group = GroupId::new(job, 0);
    sized(&handle, job, (3, 3)).await;
    for _ in 0..2 {
        handle.resize(group, "trainer", 1..=5).await.expect("it grows");
        sized(&handle, job, (5, 5)).await;
    }
    handle.resize(group, "", 1..=2).await.expect("it shrinks");
    sized(&handle, job, (2, 2)).await;
    for (group, role, sizes, refusal) in [
        (group, "server", 1..=2, Refusal::UnknownRole { group, role: "server".into() }),
        (GroupId::new(job, 7), "", 1..=1, Refusal::UnknownGroup(job)),
        (GroupId::new(JobId(9), 0), "", 1..=1, Refusal::UnknownJob(JobId(9))),
        (group, "", 0..=2, Refusal::ImpossibleSize { min: 0, max: 2 }),
        (group, "", 4..=6, Refusal::BelowMinimum { running: 2, min: 4 }),
    ] {
        assert_eq!(handle.resize(group, role, sizes).await, Err(RequestError::Refused(refusal)));
    }
    let fixed = JobSpec::new("fixed")
        .group(GroupSpec::new("g").atomic().role(RoleSpec::new("r", 1).request("cpu", 1)));
    let fixed = GroupId::new(handle.submit(fixed).await.expect("accepted"), 0);
    let refused = handle.resize(fixed, "r", 1..=2).await;
    assert_eq!(refused, Err(RequestError::Refused(Refusal::NotElastic(fixed))));
    handle.cancel(job).await.expect("known");
    handle.wait(job).await.expect("it ends");
    let refused = handle.resize(group, "", 1..=3).await;
    assert_eq!(refused, Err(RequestError::Refused(Refusal::GroupOver(group))));
    runtime.shutdown(DEADLINE).await;
}

/// Goal: a service reports what others use of a node, and elastic work yields to it and comes back. Method: an
/// elastic group on one node of which others use all but one place, then nothing; and units with names, of
/// which nobody can say so.
#[test]
fn a_service_reports_what_others_use() {
    let driver = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    driver.block_on(async { tokio::time::timeout(DEADLINE, yields()).await.expect("in time") });
}

async fn yields() {
    let config = Config::from_toml("window = 0\nfreeze = 0").expect("good");
    let executor = tasks(|task: plimsoll::TaskContext| async move {
        let mut stop = task.stop.clone();
        stop.stopped().await;
        Err(plimsoll::TaskError::new("told to stop"))
    });
    let runtime = Runtime::builder().config(config).executor(executor).start().expect("it starts");
    let handle = runtime.handle();
    let node = NodeSpec::new("n").capacity("cpu", 5).reserved("cpu", 1).units("gpu", ["g0", "g1"]);
    handle.add_node(node).await.expect("new");
    let role = RoleSpec::new("trainer", 9).at_least(1).request("cpu", 1);
    let job = handle.submit(JobSpec::new("train").group(GroupSpec::new("g").atomic().role(role)));
    let job = job.await.expect("accepted");
    let reserved = |kind: &str, amount: u32| NodePatch {
        reserved: Some([(kind.to_owned(), amount.into())].into()),
        ..NodePatch::default()
    };
    sized(&handle, job, (4, 4)).await;
    handle.update_node("n", reserved("cpu", 4)).await.expect("known");
    sized(&handle, job, (1, 1)).await;
    handle.update_node("n", reserved("cpu", 0)).await.expect("known");
    sized(&handle, job, (5, 5)).await;
    let refused = handle.update_node("n", reserved("gpu", 1)).await;
    let named = Refusal::ReservedUnits { node: "n".into(), kind: "gpu".into() };
    assert_eq!(refused, Err(RequestError::Refused(named)));
    let unknown = handle.update_node("n", reserved("tpu", 1)).await;
    assert!(matches!(unknown, Err(RequestError::Invalid(_))), "{unknown:?}");
    runtime.shutdown(DEADLINE).await;
}
