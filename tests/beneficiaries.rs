//! For whom running work goes where several come together, and who goes of many, through dry runs.

use std::collections::BTreeSet;

use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// The jobs of all decisions of one kind, in order.
fn jobs_of<'a>(report: &'a Value, kind: &str) -> Vec<&'a str> {
    list(&report["decisions"]).iter().filter(|one| one["kind"] == kind).map(|one| text(one, "job")).collect()
}

/// Two classes of 60 and 40 percent on ten workers that all run tasks of the second. Of the first two jobs wait that
/// together want more than it is entitled to.
fn two_lenders(until: u64) -> Value {
    json!({
        "config": "scoot", "until": until,
        "settings": {"window": 0, "default_class": "b",
                     "classes": [{"name": "a", "percent": 60, "requestors": ["a"]},
                                 {"name": "b", "percent": 40, "requestors": ["b"]}],
                     "rebalance": {"threshold": 20, "duration": 5}},
        "nodes": [{"name": "w", "count": 10, "capacity": {"slot": 1}}],
        "jobs": [{"name": "first", "requestor": "a", "tasks": 6, "request": {"slot": 1}},
                 {"name": "second", "requestor": "a", "tasks": 3, "request": {"slot": 1}},
                 {"name": "borrower", "requestor": "b", "tasks": 10, "request": {"slot": 1}}],
        "running": [{"job": "borrower", "count": 10}],
    })
}

/// Goal: what is kept for the tasks of a job is theirs, also when all of it becomes free at once. Method: six tasks go
/// for six of one job, while another job of its class would be served first by the number of its tasks.
#[test]
fn what_becomes_free_at_once_is_for_whom_it_was_freed() {
    let report = report(&two_lenders(30));
    assert_eq!(jobs_of(&report, "stop"), ["borrower"; 6]);
    assert_eq!(jobs_of(&report, "assign"), ["first"; 6], "{report}");
}

/// Goal: nobody goes twice for the same tasks. Method: three tasks of a heavy queue take three of four places of a
/// light
/// one, whose tasks came first and would take back whatever is free.
#[test]
fn nobody_goes_twice_for_the_same() {
    let job = |name: &str, queue: &str, tasks: u64| {
        json!({"name": name, "queue": queue, "lifetime": 0, "tasks": tasks,
        "request": {"cpu": 1}})
    };
    let report = report(&json!({
        "settings": {"window": 0, "queue_key": "fifo", "protected_fraction": 0.0,
                     "queues": [{"name": "a", "weight": 1}, {"name": "b", "weight": 9}]},
        "nodes": [{"name": "n", "count": 4, "capacity": {"cpu": 1}}],
        "jobs": [job("old", "a", 4)],
        "running": [{"job": "old", "count": 4}],
        "events": [{"at": 1.0, "submit": job("new", "b", 3)}],
    }));
    let stops = list(&report["decisions"]).iter().filter(|one| one["kind"] == "stop");
    let stops: Vec<u64> = stops.map(|one| one["task"].as_u64().expect("a number")).collect();
    let different: BTreeSet<u64> = stops.iter().copied().collect();
    assert_eq!(stops.len(), different.len(), "{report}");
    assert_eq!(jobs_of(&report, "assign"), ["new"; 3], "{report}");
}

/// Goal: it is said of who waits that somebody would go for it only if somebody does. Method: two jobs of a class that
/// is entitled to no more than the first wants, asked before the gate opens; then what happens.
#[test]
fn who_waits_behind_others_is_not_told_what_goes_for_them() {
    let before = report(&two_lenders(3));
    let gate = |report: &Value, job: &str| {
        let waiting = list(&report["waiting"]).iter().find(|one| one["job"] == job);
        waiting.expect("it waits")["explanation"]["gate"].clone()
    };
    assert_eq!(list(&gate(&before, "first")["would"]["victims"]).len(), 1, "{before}");
    assert!(gate(&before, "second")["nobody"].is_object(), "{before}");
    let mut fewer = two_lenders(3);
    fewer["jobs"][0]["tasks"] = json!(4);
    let before = report(&fewer);
    assert_eq!(list(&gate(&before, "second")["would"]["victims"]).len(), 1, "{before}");
    fewer["until"] = json!(30);
    let started = report(&fewer);
    assert_eq!(started["summary"]["assigned_by_job"], json!({"first": 4, "second": 2}), "{started}");
}

/// Goal: the rate of stops is shared with those who come first. Method: one stop in ten seconds, one saved up.
#[test]
fn who_waits_behind_others_waits_for_the_rate_as_well() {
    let mut scenario = two_lenders(3);
    scenario["jobs"][0]["tasks"] = json!(2);
    scenario["settings"]["rebalance"]["stops_per_second"] = json!(0.1);
    scenario["settings"]["rebalance"]["stops_saved_up"] = json!(1);
    let report = report(&scenario);
    let second = list(&report["waiting"]).iter().find(|one| one["job"] == "second").expect("it waits");
    assert_eq!(second["explanation"]["gate"]["would"]["from"], json!(25_000_000), "{report}");
}

/// Goal: a node that shrinks loses work of classes of 0 percent first, then what is borrowed, from each class no more
/// than it has borrowed while another still has; it does not matter who came last. Method: one node, one shrinks after
/// the other, and one that shrinks by half at once.
#[test]
fn a_node_that_shrinks_loses_what_is_borrowed_as_long_as_it_is() {
    let job = |class: &str, tasks: u64| {
        json!({"name": class, "requestor": class, "tasks": tasks,
        "request": {"slot": 1}})
    };
    let class = |name: &str, percent: u64| json!({"name": name, "percent": percent, "requestors": [name]});
    let scenario = |classes: Vec<Value>, jobs: Vec<Value>, running: Value, slots: &[u64]| {
        let shrink = |(index, slots): (usize, &u64)| {
            json!({"at": 110 + index,
            "node": {"name": "n", "capacity": {"slot": slots}}})
        };
        json!({
            "config": "scoot", "now": 100, "until": 120,
            "settings": {"window": 0, "default_class": "b", "classes": classes},
            "nodes": [{"name": "n", "capacity": {"slot": 10}}], "jobs": jobs, "running": running,
            "events": slots.iter().enumerate().map(shrink).collect::<Vec<Value>>(),
        })
    };
    let started = |job: &str, count: u64, at: u64| json!({"job": job, "count": count, "started": at});
    let three = scenario(
        vec![class("a", 60), class("b", 40), class("z", 0)],
        vec![job("a", 3), job("b", 6), job("z", 1)],
        json!([started("z", 1, 10), started("a", 3, 20), started("b", 6, 90)]),
        &[9, 8],
    );
    assert_eq!(jobs_of(&report(&three), "stop"), ["z", "b"]);
    let half = scenario(
        vec![class("a", 60), class("b", 20), class("c", 20)],
        vec![job("b", 5), job("c", 5)],
        json!([started("b", 5, 90), started("c", 5, 20)]),
        &[5],
    );
    let stopped = &report(&half)["summary"]["stopped_by_class"];
    assert_eq!(stopped, &json!({"b": 4, "c": 1}), "b has nothing borrowed any more when it has 1 of 5");
}

/// Goal: however much has begun since that may not go, who may go is found. Method: one old task, and more new ones
/// than are looked at in one turn: of a higher band, or too young to go.
#[test]
fn what_is_new_and_stays_does_not_hide_what_may_go() {
    const MANY: u64 = 17_000;
    for (band, minimum_run) in [("production", 0), ("normal", 60)] {
        let job = |name: &str, band: &str, tasks: u64| {
            json!({"name": name, "band": band, "tasks": tasks,
            "request": {"cpu": 1}})
        };
        let report = report(&json!({
            "now": 100.0,
            "settings": {"window": 0, "bands": {"normal": 10, "production": 100}, "strict_bands": ["production"],
                         "rebalance": {"higher": true, "minimum_run": minimum_run}},
            "nodes": [{"name": "n", "capacity": {"cpu": MANY + 1}}],
            "jobs": [job("old", "normal", 1), job("new", band, MANY), job("urgent", "production", 1)],
            "running": [{"job": "old", "started": 10.0}, {"job": "new", "count": MANY, "started": 50.0}],
        }));
        assert_eq!(jobs_of(&report, "stop"), ["old"], "{band}");
        assert_eq!(jobs_of(&report, "assign"), ["urgent"], "{band}");
    }
}
