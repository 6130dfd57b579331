//! That whoever can be met comes to hold a claim, however many others wait or hold one, through dry runs in which
//! small work never ceases.

use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

const CLAIM_AFTER: f64 = 20.0;

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

/// When the first task of a job starts, if it does.
fn start(report: &Value, job: &str) -> Option<f64> {
    let mut decisions = report["decisions"].as_array().expect("a list").iter();
    let first = decisions.find(|decision| decision["kind"] == "assign" && decision["job"] == job);
    first.map(|decision| decision["at"].as_f64().expect("a time"))
}

fn gang(name: &str, tasks: u32, cpus: u32, more: Value) -> Value {
    let role = json!({"name": "r", "max": tasks, "request": {"cpu": cpus}, "duration": 10});
    let mut job = json!({"name": name, "groups": [{"name": "g", "start": "atomic", "roles": [role]}]});
    let more = more.as_object().expect("a table").clone();
    job.as_object_mut().expect("a table").extend(more);
    job
}

/// Two tasks of one CPU each that take so long, in one pool.
fn small(name: &str, pool: &str, duration: f64) -> Value {
    let role = json!({"name": "t", "max": 2, "request": {"cpu": 1}, "duration": duration,
                      "constraints": [format!("node.pool == {pool}")]});
    json!({"name": name, "groups": [{"name": "g", "roles": [role]}]})
}

/// Two nodes of four CPUs that small work in the pool `a` keeps full from the first second on.
fn busy(mut scenario: Value, until: u32) -> Value {
    let jobs = scenario["jobs"].as_array_mut().expect("a list");
    for (index, duration) in [2.0, 4.0, 6.0, 8.0].into_iter().enumerate() {
        jobs.insert(index, small(&format!("before-{index}"), "a", duration));
    }
    let submit = |second: u32| {
        let job = small(&format!("small-{second}"), "a", 8.0);
        json!({"at": f64::from(second) + 0.5, "submit": job})
    };
    let more = scenario["events"].take();
    let mut events: Vec<Value> = (0..until).map(submit).collect();
    events.extend(more.as_array().into_iter().flatten().cloned());
    scenario["events"] = json!(events);
    scenario["until"] = json!(until);
    scenario
}

/// Goal: what can be met is not passed over because many groups are ahead of it that never can. Method: forty
/// groups of different sizes that fit nowhere, one that fits on what small work keeps full, and the same without
/// the forty.
#[test]
fn groups_that_can_never_be_met_keep_nobody_from_a_claim() {
    let starts = [0, 40].map(|hopeless| {
        let mut jobs: Vec<Value> =
            (0..hopeless).map(|index| gang(&format!("never-{index}"), 2, 50 + index, json!({}))).collect();
        jobs.push(gang("gang", 2, 4, json!({})));
        let report = report(&busy(
            json!({
                "settings": {"window": 0, "claim_after": CLAIM_AFTER}, "jobs": jobs, "events": [],
                "nodes": [{"name": "n", "count": 2, "pool": "a", "capacity": {"cpu": 4}}],
            }),
            100,
        ));
        start(&report, "gang").expect("it starts")
    });
    assert_eq!(starts[0], starts[1]);
    assert!((CLAIM_AFTER..CLAIM_AFTER + 10.0).contains(&starts[0]), "{starts:?}");
}

/// Goal: a group that waits in one pool for what never ends keeps nobody from a claim in another. Method: a gang
/// for the pool `b`, which services hold for good, and a task that may run anywhere and needs a whole node.
#[test]
fn a_claim_that_is_never_met_keeps_nobody_from_one_elsewhere() {
    let service = json!({"name": "t", "max": 2, "request": {"cpu": 3}, "constraints": ["node.pool == b"]});
    let service = json!({"name": "service", "groups": [{"name": "g", "roles": [service]}]});
    let large = json!({"name": "large", "tasks": 1, "request": {"cpu": 4}});
    let report = report(&busy(
        json!({
            "settings": {"window": 0, "claim_after": CLAIM_AFTER},
            "jobs": [service, gang("stuck", 2, 4, json!({"pool": ["b"]}))],
            "events": [{"at": 1, "submit": large}],
            "nodes": [{"name": "a", "count": 2, "pool": "a", "capacity": {"cpu": 4}},
                      {"name": "b", "count": 2, "pool": "b", "capacity": {"cpu": 4}}],
        }),
        100,
    ));
    assert_eq!(start(&report, "stuck"), None, "nothing ends in its pool");
    let starts = start(&report, "large").expect("it starts");
    assert!((CLAIM_AFTER..CLAIM_AFTER + 11.0).contains(&starts), "{starts}");
}

/// Goal: a group that needs several pools comes to its turn although each of them always has somebody who waits for
/// it alone. Method: gangs for one pool each without end, of another queue, and one gang over both pools.
#[test]
fn claims_of_single_pools_do_not_keep_a_group_over_several_from_its_turn() {
    let stream = |index: u32| {
        let pool = if index.is_multiple_of(2) { "a" } else { "b" };
        gang(&format!("one-{index}"), 2, 4, json!({"queue": "many", "pool": [pool]}))
    };
    let jobs: Vec<Value> = (0..60).map(stream).collect();
    let wide = gang("wide", 3, 4, json!({"queue": "few"}));
    let report = report(&json!({
        "settings": {"window": 0, "claim_after": 1, "queue_key": "flow",
                     "queues": [{"name": "many"}, {"name": "few"}]},
        "now": 10, "until": 300, "jobs": jobs,
        "events": [{"at": 17, "submit": wide}],
        "running": [{"job": "one-0", "count": 2, "started": 10}, {"job": "one-1", "count": 2, "started": 5}],
        "nodes": [{"name": "a", "count": 2, "pool": "a", "capacity": {"cpu": 4}},
                  {"name": "b", "count": 2, "pool": "b", "capacity": {"cpu": 4}}],
    }));
    let starts = start(&report, "wide").expect("it starts");
    assert!(starts <= 50.0, "{starts}");
}

/// Goal: what says nothing of how long it takes is expected to end as others of its kind did, and whoever is gone by
/// then may run before the claimant. Method: a task of a kind runs for twenty seconds; while the next one runs a gang
/// waits, and of two tasks one fits into the time that is left.
#[test]
fn what_was_measured_says_when_a_claimant_starts() {
    let kind = |name: &str| {
        let role = json!({"name": "t", "max": 1, "request": {"cpu": 1}, "task_key": "kind"});
        json!({"name": name, "groups": [{"name": "g", "roles": [role]}]})
    };
    let other = |name: &str, duration: u32| {
        let role = json!({"name": "t", "max": 1, "request": {"cpu": 2}, "duration": duration});
        json!({"name": name, "groups": [{"name": "g", "roles": [role]}]})
    };
    let report = report(&json!({
        "settings": {"window": 0, "claim_after": 5}, "until": 100,
        "nodes": [{"name": "n", "count": 2, "capacity": {"cpu": 2}}], "jobs": [kind("measured")],
        "events": [{"at": 20, "finish": {"job": "measured", "count": 1}},
                   {"at": 21, "submit": kind("like-it")},
                   {"at": 22, "submit": gang("gang", 2, 2, json!({}))},
                   {"at": 29, "submit": other("in-time", 11)},
                   {"at": 30, "submit": other("too-long", 15)},
                   {"at": 41, "finish": {"job": "like-it", "count": 1}}],
    }));
    let mut decisions = report["decisions"].as_array().expect("a list").iter();
    let claim = decisions.find(|decision| decision["kind"] == "claim").expect("a claim");
    assert!(claim["why"].as_str().expect("a text").contains("expected to start at 41"), "{claim}");
    let starts = ["in-time", "gang", "too-long"].map(|job| start(&report, job));
    assert_eq!(starts, [Some(29.0), Some(41.0), Some(51.0)]);
}

/// Goal: whoever says by its timeout how long it may run is let in before a claimant only if it is stopped in time,
/// with what attempts get on top of their timeouts. Method: two tasks that never end by themselves and a gang that
/// waits for another; one of them would have ended in time without what it gets on top.
#[test]
fn whoever_is_stopped_in_time_may_run_before_a_claimant() {
    let task = |name: &str, cpus: u32, more: (&str, u32)| {
        let role = json!({"name": "t", "max": 1, "request": {"cpu": cpus}, (more.0): more.1});
        json!({"name": name, "groups": [{"name": "g", "roles": [role]}]})
    };
    let report = report(&json!({
        "settings": {"window": 0, "claim_after": 5, "deadlines": {"overhead": 15}}, "until": 100,
        "nodes": [{"name": "n", "count": 2, "capacity": {"cpu": 2}}],
        "jobs": [task("before", 2, ("duration", 40)), gang("gang", 2, 2, json!({}))],
        "events": [{"at": 8, "submit": task("in-time", 1, ("timeout", 10))},
                   {"at": 10, "submit": task("too-late", 1, ("timeout", 20))}],
    }));
    let starts = ["in-time", "gang", "too-late"].map(|job| start(&report, job));
    assert_eq!(starts, [Some(8.0), Some(40.0), Some(50.0)], "{report:#}");
}
