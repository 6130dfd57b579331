//! Known orders of queues and jobs, as dry runs: who is served first by flow, dominant share, priority and
//! weighted run time, and what limits refuse.
//!
//! `tests/shares/jobs.json`: jobs of one class with what runs and waits of each, and the order in which so
//! many tasks start. `tests/shares/queues.json`: dry runs, and of each either the order in which jobs are
//! served from some moment on or how many tasks of each job start. What was not taken is listed in
//! `tests/shares/NOT_TAKEN.md`.

use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

/// The names of the jobs in the order in which their tasks were placed, from a moment on.
fn order(report: &Value, from: f64) -> Vec<&Value> {
    let decisions = report["decisions"].as_array().expect("a list").iter();
    let decisions = decisions.filter(|one| one["at"].as_f64().expect("a time") >= from);
    decisions.map(|one| &one["job"]).collect()
}

/// Goal: inside a class the job with the fewest running tasks goes first, in turn, and what starts counts at
/// once. Method: as many idle workers as tasks are to start, beside those that are taken.
#[test]
fn jobs_of_a_class_take_turns_from_the_fewest_running() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("shares/jobs.json")).expect("it can be read");
    assert!(cases.len() > 10, "the cases are there");
    for case in &cases {
        let jobs = case["jobs"].as_array().expect("a list");
        let count = |job: &Value, at: usize| job[at].as_u64().expect("a number");
        let running: u64 = jobs.iter().map(|job| count(job, 1)).sum();
        let workers = running + case["starts"].as_u64().expect("a number");
        let some = |at: usize| jobs.iter().filter(move |job| count(job, at) > 0);
        let known = jobs.iter().filter(|job| count(job, 1) + count(job, 2) > 0);
        let known = known.map(|job| {
            let tasks = count(job, 1) + count(job, 2);
            json!({"name": job[0], "requestor": "land", "tasks": tasks, "request": {"slot": 1}})
        });
        let running =
            some(1).map(|job| json!({"job": job[0], "group": "tasks", "role": "task", "count": job[1]}));
        let scenario = json!({
            "config": "scoot", "settings": {"window": 0},
            "nodes": [{"name": "w", "count": workers, "capacity": {"slot": 1}}],
            "jobs": known.collect::<Vec<_>>(), "running": running.collect::<Vec<_>>(),
        });
        let report = report(&scenario);
        assert_eq!(json!(order(&report, 0.0)), case["order"], "{case}");
    }
}

/// Goal: queues and jobs are served in the order of their keys, and limits hold to the unit. Method: known
/// situations, each as a dry run.
#[test]
fn queues_and_jobs_are_served_by_their_keys() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("shares/queues.json")).expect("it can be read");
    assert!(cases.len() > 20, "the cases are there");
    for case in &cases {
        let report = report(&case["run"]);
        if let Some(from) = case["from"].as_f64() {
            assert_eq!(json!(order(&report, from)), case["order"], "{}", case["name"]);
        }
        if let Some(starts) = case["starts"].as_object() {
            for (job, expected) in starts {
                let found = report["summary"]["assigned_by_job"][job].as_u64().unwrap_or(0);
                assert_eq!(json!(found), *expected, "{job} of {}", case["name"]);
            }
        }
    }
}

/// Goal: of shares that stand equal the one whose work came first goes first, whoever is first in the settings
/// or was there before, by every key. Method: two shares have had the same, long ago; then work of one comes
/// while another has all there is, and after it work of the other.
#[test]
fn of_equal_shares_whoever_came_first_goes_first() {
    let job = |name: &str, share: &str, by_class: bool| {
        let queue = if by_class { json!(null) } else { json!(share) };
        json!({"name": name, "requestor": share, "queue": queue, "tasks": 1, "request": {"cpu": 1}})
    };
    for (key, by_class) in
        ["flow", "dominant", "run_time"].into_iter().flat_map(|key| [(key, true), (key, false)])
    {
        for shares in [["one", "other", "third"], ["third", "other", "one"]] {
            let class =
                |name: &str, percent: u64| json!({"name": name, "percent": percent, "requestors": [name]});
            let mut settings = match by_class {
                true => json!({"share_key": key, "classes": [
                    class(shares[0], 30), class(shares[1], 30), class(shares[2], 30), class("rest", 10)]}),
                false => json!({"queue_key": key, "queues": shares.map(|name| json!({"name": name}))}),
            };
            (settings["window"], settings["half_time"]) = (json!(0), json!(0.001));
            let job = |name: &str, share: &str| job(name, share, by_class);
            let finish = |at: f64, name: &str| json!({"at": at, "finish": {"job": name}});
            let submit = |at: f64, job: Value| json!({"at": at, "submit": job});
            let report = report(&json!({
                "settings": settings, "nodes": [{"name": "n", "capacity": {"cpu": 1}}], "until": 300.0,
                "jobs": [job("a", "one")],
                "events": [finish(1.0, "a"), submit(1.0, job("b", "other")), finish(2.0, "b"),
                           submit(100.0, job("c", "third")), submit(101.0, job("first", "other")),
                           submit(102.0, job("second", "one")), finish(200.0, "c")],
            }));
            assert_eq!(order(&report, 200.0), ["first"], "{key}, classes: {by_class}, {shares:?}");
        }
    }
}

/// Goal: a short list of what waits begins like a long one, also where jobs are compared by run time, which goes on
/// while they wait. Method: four jobs that differ in band and in how long their tasks run; the dry run looks at
/// both lists after every turn, in builds with checks.
#[test]
fn lists_of_what_waits_agree_while_run_time_goes_on() {
    let job = |name: &str, band: &str, tasks: u64, duration: f64| {
        let role = json!({"name": "r", "max": tasks, "request": {"cpu": 1}, "duration": duration});
        json!({"name": name, "band": band, "groups": [{"name": "g", "roles": [role]}]})
    };
    let report = report(&json!({
        "settings": {"window": 0, "job_key": "run_time", "bands": {"normal": 1, "high": 5}}, "until": 12.0,
        "nodes": [{"name": "n", "capacity": {"cpu": 3}}],
        "jobs": [job("a", "high", 2, 4.0), job("b", "high", 3, 2.0), job("c", "normal", 2, 2.0),
                 job("d", "high", 3, 4.0)],
    }));
    assert_eq!(report["summary"]["assigned_by_job"], json!({"a": 2, "b": 3, "c": 2, "d": 3}));
}
