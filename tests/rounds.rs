//! Several rounds of work that comes and takes from what runs, through dry runs.
//!
//! `tests/gate/rounds.json` holds small clusters with queues that are compared by dominant share. Each round submits
//! work of some band to some queue, and says how many tasks of which queue start and how many of which queue and
//! round are stopped. What does not start in its round is cancelled, what is stopped does not come back. What was
//! not taken is listed in `tests/gate/NOT_TAKEN.md`.

use std::collections::BTreeMap;

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

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// A full cluster with its queues; nothing is submitted yet.
fn cluster(case: &Value) -> Value {
    let node = |(index, node): (usize, &Value)| {
        let memory = format!("{}Gi", node[2]);
        json!({"name": format!("n{index}"), "count": node[0], "capacity": {"cpu": node[1], "memory": memory}})
    };
    let nodes: Vec<Value> = list(&case["nodes"]).iter().enumerate().map(node).collect();
    let queues = list(&case["queues"]).iter().map(|queue| json!({"name": queue[0], "weight": queue[1]}));
    let mut scenario = json!({
        "settings": {
            "window": 0, "queue_key": "dominant", "placement": "pack",
            "queues": queues.collect::<Vec<Value>>(),
            "bands": {"normal": 1, "p1": 2, "p2": 3, "p3": 4},
            "strict_bands": ["p3", "p2", "p1"],
            "rebalance": {"higher": case.get("higher").unwrap_or(&json!(true)), "on_preempt": "drop"},
        },
        "nodes": nodes, "events": [],
    });
    if let Some(rate) = case["rate"].as_array() {
        scenario["settings"]["rates"] = json!({"scheduling": {"per_second": rate[0], "burst": rate[1]}});
    }
    if !case["protected"].is_null() {
        scenario["settings"]["protected_fraction"] = case["protected"].clone();
    }
    if let Some(times) = case.get("stops_per_task") {
        scenario["settings"]["rebalance"]["stops_per_task"] = times.clone();
    }
    if let Some(rate) = case["stop_rate"].as_array() {
        scenario["settings"]["rebalance"]["stops_per_second"] = rate[0].clone();
        scenario["settings"]["rebalance"]["stops_saved_up"] = rate[1].clone();
    }
    scenario
}

/// Whatever is submitted with one entry: one job for an atomic group, one for each task otherwise. Each is named
/// by its queue and round.
fn jobs(entry: &Value, round: usize, count: &mut usize) -> Vec<Value> {
    let lifetime = if entry["firm"] == json!(true) { Value::Null } else { json!(0) };
    let preemptible = entry["firm"] != json!(true);
    let request = json!({"cpu": entry["cpu"], "memory": format!("{}Gi", entry["memory"])});
    let tasks = number(&entry["tasks"]);
    let mut job = |body: Value| {
        *count += 1;
        let mut job = json!({"name": format!("{} {round} {count}", text(&entry["queue"])), "queue": entry["queue"],
                             "band": entry["band"], "lifetime": lifetime, "preemptible": preemptible});
        job.as_object_mut().expect("a table").extend(body.as_object().expect("a table").clone());
        job
    };
    if entry["atomic"] == json!(true) {
        let role = json!({"name": "task", "min": tasks, "max": tasks, "request": request});
        return vec![job(json!({"groups": [{"name": "tasks", "start": "atomic", "roles": [role]}]}))];
    }
    (0..tasks).map(|_| job(json!({"tasks": 1, "request": request}))).collect()
}

/// Who was submitted where: the first two words of the name of a job.
fn origin(decision: &Value) -> (String, u64) {
    let mut words = text(&decision["job"]).split(' ');
    let mut word = || words.next().expect("a name has three words");
    (word().to_owned(), word().parse().expect("the second is a number"))
}

fn counts(report: &Value, kind: &str, at: f64) -> BTreeMap<(String, u64), u64> {
    let mut counts = BTreeMap::new();
    let of_round = |one: &&Value| one["kind"] == kind && one["at"].as_f64().expect("a time") >= at;
    for decision in list(&report["decisions"]).iter().filter(of_round) {
        *counts.entry(origin(decision)).or_default() += 1;
    }
    counts
}

fn play(case: &Value) -> Vec<String> {
    let mut scenario = cluster(case);
    let mut wrong = Vec::new();
    for (round, news) in list(&case["rounds"]).iter().enumerate() {
        let at = round as f64;
        let events = scenario["events"].as_array_mut().expect("a list");
        for node in news["paused"].as_array().into_iter().flatten() {
            events.push(json!({"at": at, "node": {"name": format!("n{node}"), "availability": "pause"}}));
        }
        let mut count = 0;
        for entry in list(&news["submit"]) {
            let jobs = jobs(entry, round, &mut count);
            events.extend(jobs.into_iter().map(|job| json!({"at": at, "submit": job})));
        }
        scenario["until"] = json!(at + 0.25);
        let report = report(&scenario);
        let starts: BTreeMap<(String, u64), u64> = news["starts"]
            .as_object()
            .expect("a table")
            .iter()
            .map(|(queue, tasks)| ((queue.clone(), round as u64), number(tasks)))
            .collect();
        let stops = list(&news["stops"]).iter();
        let stops: BTreeMap<(String, u64), u64> =
            stops.map(|stop| ((text(&stop[0]).to_owned(), number(&stop[1])), number(&stop[2]))).collect();
        let (started, stopped) = (counts(&report, "assign", at), counts(&report, "stop", at));
        if (&started, &stopped) != (&starts, &stops) {
            let name = &case["name"];
            wrong.push(format!(
                "{name} round {round}: {starts:?} start, {stops:?} stop, here {started:?} and {stopped:?}"
            ));
        }
        let events = scenario["events"].as_array_mut().expect("a list");
        for waiting in list(&report["waiting"]) {
            events.push(json!({"at": at + 0.5, "cancel": {"job": waiting["job"]}}));
        }
    }
    wrong
}

/// Goal: round by round the same work starts and the same work goes as is known of these clusters. Method: each
/// as a dry run, longer by one round each time.
#[test]
fn known_rounds_go_as_they_are_known() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("gate/rounds.json")).expect("the file can be read");
    assert!(cases.len() >= 30, "the cases are there");
    let wrong: Vec<String> = cases.iter().flat_map(play).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Goal: when a whole group goes for one task, the room of its other members serves the next who waits, and nobody
/// else has to go for that. Method: a group over two nodes beside another task, and two jobs that come.
#[test]
fn what_a_group_leaves_serves_the_next() {
    let job = |name: &str, queue: &str, cpu: u64| {
        let request = json!({"cpu": cpu});
        json!({"name": name, "queue": queue, "lifetime": 0, "tasks": 1, "request": request})
    };
    let role = json!({"name": "task", "min": 3, "max": 3, "request": {"cpu": 16}});
    let group = json!({"name": "tasks", "start": "atomic", "roles": [role]});
    let running = json!([{"job": "gang", "node": "m", "count": 1}, {"job": "filler", "node": "m"},
                         {"job": "gang", "node": "n", "count": 2}]);
    let events =
        [job("large", "b", 32), job("small", "b", 16)].map(|job| json!({"at": 1.0, "submit": job})).to_vec();
    let report = report(&json!({
        "settings": {"window": 0, "queue_key": "dominant", "protected_fraction": 0.0,
                     "queues": [{"name": "a"}, {"name": "b"}], "rebalance": {"on_preempt": "drop"}},
        "nodes": [{"name": "m", "capacity": {"cpu": 32}}, {"name": "n", "capacity": {"cpu": 32}}],
        "jobs": [{"name": "gang", "queue": "a", "lifetime": 0, "groups": [group]}, job("filler", "a", 16)],
        "running": running,
        "events": events,
    }));
    let of = |kind: &str| -> Vec<&str> {
        let those = list(&report["decisions"]).iter().filter(|one| one["kind"] == kind);
        those.map(|one| text(&one["job"])).collect()
    };
    assert_eq!(of("stop"), ["gang"; 3], "{report}");
    let mut started = of("assign");
    started.sort_unstable();
    assert_eq!(started, ["large", "small"], "{report}");
}
