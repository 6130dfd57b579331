//! Where tasks go: every file in `tests/placement` is a list of small dry runs of one topic, each with
//! what must come of it. What was left out, and why, is in `tests/placement/NOT_TAKEN.md`.
//!
//! A case has a `name`, one sentence `about` what it shows, a `scenario` and what to `expect` of it:
//! - `placed`: for a job, how many of its tasks each node was given in the dry run, complete;
//! - `spread`: for a service, or for a job that belongs to none, how many tasks each node has in the end
//!   with those that ran before, most first, a number for every node;
//! - `waiting`: for a job, how many `tasks` wait; how many nodes each of the `filters` rules out for
//!   itself, and how many it rules out `first`, both without those that rule out none; and what the
//!   sentence must contain.
//!
//! - `units`: for a job, the names of the units that its tasks were given, attempt by attempt;
//! - `failed`: for a job, what the sentence must contain with which a group of it was given up.
//!
//! A job that waits or fails without being expected to is a difference too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Map, Value, json};

/// The topics by name, in order, each with its cases.
fn topics() -> Vec<(String, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/placement");
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let read = |path: &Path| {
        let text = fs::read_to_string(path).expect("the file can be read");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let name = |path: &Path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    let mut topics: Vec<_> = files.map(|path| (name(&path), read(&path))).collect();
    topics.sort_by(|(left, _), (right, _)| left.cmp(right));
    topics
}

fn report(scenario: &Value) -> Result<Value, String> {
    let scenario =
        scenario::from_text(&scenario.to_string(), Format::Json).map_err(|error| error.to_string())?;
    let report = plan::run(&scenario).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(report).expect("a report can be written"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// All jobs of a scenario, also those that come later.
fn jobs(scenario: &Value) -> impl Iterator<Item = &Value> {
    let later = list(&scenario["events"]).iter().filter_map(|event| event.get("submit"));
    list(&scenario["jobs"]).iter().chain(later)
}

/// The service of a job, or its own name. All roles of a job in these files belong to one service.
fn service_of(job: &Value) -> &str {
    job["groups"][0]["roles"][0]["service"].as_str().unwrap_or(text(&job["name"]))
}

/// The names of all nodes, also of those that come by an event.
fn node_names(scenario: &Value) -> Vec<String> {
    let names = |node: &Value| match (text(&node["name"]), node["count"].as_u64().unwrap_or(1)) {
        (name, 1) => vec![name.to_owned()],
        (name, count) => (0..count).map(|index| format!("{name}-{index}")).collect(),
    };
    let mut all: Vec<String> = list(&scenario["nodes"]).iter().flat_map(names).collect();
    let spoken_of = list(&scenario["events"]).iter().map(|event| text(&event["node"]["name"]).to_owned());
    for name in spoken_of.filter(|name| !name.is_empty()) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// How many tasks of the job each node was given.
fn placed(job: &str, report: &Value) -> Value {
    let mut counts = BTreeMap::<&str, u64>::new();
    for decision in list(&report["decisions"]) {
        if decision["kind"] == "assign" && decision["job"] == job {
            *counts.entry(text(&decision["node"])).or_default() += 1;
        }
    }
    json!(counts)
}

/// The names of the units that each attempt of the job was given, in the order of the decisions.
fn units(job: &str, report: &Value) -> Value {
    let own = list(&report["decisions"]).iter().filter(|one| one["kind"] == "assign" && one["job"] == job);
    json!(own.map(|one| one["units"].clone()).collect::<Vec<_>>())
}

/// How many tasks of the service each node has in the end, most first. Tasks that end by themselves are not
/// in the report, so what it says of a service that they belong to would be wrong.
fn spread(service: &str, scenario: &Value, report: &Value) -> Result<Value, String> {
    let members: BTreeSet<&str> =
        jobs(scenario).filter(|job| service_of(job) == service).map(|job| text(&job["name"])).collect();
    if members.is_empty() {
        return Err("there is no such service or job".to_owned());
    }
    let ends = |event: &Value| members.contains(text(&event["finish"]["job"]));
    if list(&scenario["events"]).iter().any(ends) || scenario.get("until").is_some() {
        return Err("tasks of it may end, so the report does not say where it is".to_owned());
    }
    let mut counts: BTreeMap<String, i64> = node_names(scenario).into_iter().map(|name| (name, 0)).collect();
    let mut add = |node: &Value, change: i64| match counts.get_mut(text(node)) {
        Some(count) => *count += change,
        None => panic!("running tasks need a node that is there, not {node}"),
    };
    for running in list(&scenario["running"]) {
        if members.contains(text(&running["job"])) {
            add(&running["node"], running["count"].as_i64().unwrap_or(1));
        }
    }
    for decision in list(&report["decisions"]) {
        if members.contains(text(&decision["job"])) {
            match text(&decision["kind"]) {
                "assign" => add(&decision["node"], 1),
                "stop" => add(&decision["node"], -1),
                _ => {}
            }
        }
    }
    let mut counts: Vec<i64> = counts.into_values().collect();
    counts.sort_unstable_by(|left, right| right.cmp(left));
    Ok(json!(counts))
}

/// What the explanation counts under each filter in the given way, without those that count nothing.
fn counted(waiting: &Value, way: &str) -> Value {
    let reasons = waiting["explanation"]["reason"].as_object().into_iter().flat_map(Map::values);
    let filters = reasons.flat_map(|reason| list(&reason["filters"]));
    let found = filters.filter(|filter| filter[way] != 0);
    json!(found.map(|filter| (text(&filter["filter"]), &filter[way])).collect::<BTreeMap<_, _>>())
}

fn difference(place: &str, expected: &Value, found: &Value) -> Option<String> {
    (expected != found).then(|| format!("{place}: expected {expected}, found {found}"))
}

/// Where a group that waits differs from what is expected of it.
fn waiting_differences(job: &str, expected: &Value, report: &Value) -> Vec<String> {
    let Some(waiting) = list(&report["waiting"]).iter().find(|group| group["job"] == job) else {
        return vec![format!("waiting {job}: expected {expected}, but nothing of it waits")];
    };
    let compare = |(field, expected): (&String, &Value)| {
        let place = format!("waiting {job} {field}");
        match field.as_str() {
            "tasks" => difference(&place, expected, &waiting["tasks"]),
            "filters" => difference(&place, expected, &counted(waiting, "fails")),
            "first" => difference(&place, expected, &counted(waiting, "first")),
            "sentence_contains" => {
                let is_there =
                    expected.as_str().is_some_and(|part| text(&waiting["sentence"]).contains(part));
                (!is_there).then(|| format!("{place}: expected {expected}, found {}", waiting["sentence"]))
            }
            _ => Some(format!("{place}: nothing of this name can be expected")),
        }
    };
    entries(expected).filter_map(compare).collect()
}

/// Where a group that was given up differs from what is expected of it.
fn failed_difference(job: &str, expected: &Value, report: &Value) -> Option<String> {
    let mut failed = list(&report["decisions"]).iter().filter(|decision| decision["kind"] == "fail");
    let Some(decision) = failed.find(|decision| decision["job"] == job) else {
        return Some(format!("failed {job}: expected {expected}, but nothing of it failed"));
    };
    let is_there = expected.as_str().is_some_and(|part| text(&decision["why"]).contains(part));
    (!is_there).then(|| format!("failed {job}: expected {expected}, found {}", decision["why"]))
}

/// Every difference between what is expected and what the dry run gives, one line for each.
fn differences(scenario: &Value, expect: &Value) -> Vec<String> {
    let report = match report(scenario) {
        Ok(report) => report,
        Err(error) => return vec![error],
    };
    let mut differences = Vec::new();
    let known = |job: &str| jobs(scenario).any(|other| other["name"] == job);
    for (what, expected) in entries(expect) {
        for (name, expected) in entries(expected) {
            match what.as_str() {
                "placed" | "waiting" | "failed" | "units" if !known(name) => {
                    differences.push(format!("{what} {name}: there is no such job"));
                }
                "placed" => {
                    differences.extend(difference(
                        &format!("placed {name}"),
                        expected,
                        &placed(name, &report),
                    ));
                }
                "units" => {
                    let place = format!("units {name}");
                    differences.extend(difference(&place, expected, &units(name, &report)));
                }
                "spread" => differences.extend(match spread(name, scenario, &report) {
                    Ok(found) => difference(&format!("spread {name}"), expected, &found),
                    Err(error) => Some(format!("spread {name}: {error}")),
                }),
                "failed" => differences.extend(failed_difference(name, expected, &report)),
                "waiting" => differences.extend(waiting_differences(name, expected, &report)),
                _ => differences.push(format!("{what}: nothing of this name can be expected")),
            }
        }
    }
    let unexpected = list(&report["waiting"])
        .iter()
        .filter(|group| entries(&expect["waiting"]).all(|(job, _)| group["job"] != job.as_str()));
    differences
        .extend(unexpected.map(|group| format!("waiting {}: {}", text(&group["job"]), group["sentence"])));
    let failed = list(&report["decisions"]).iter().filter(|decision| decision["kind"] == "fail");
    let unexpected =
        failed.filter(|decision| entries(&expect["failed"]).all(|(job, _)| decision["job"] != job.as_str()));
    differences
        .extend(unexpected.map(|decision| format!("failed {}: {}", text(&decision["job"]), decision["why"])));
    differences
}

/// Goal: every task goes where it should, and what waits says why. Method: all cases of all topics, and
/// every difference of every case is listed at once.
#[test]
fn every_task_goes_where_it_should() {
    let mut failures = Vec::new();
    for (topic, cases) in topics() {
        for case in &cases {
            let found = differences(&case["scenario"], &case["expect"]);
            let name = text(&case["name"]);
            failures.extend(found.into_iter().map(|difference| format!("{topic}, {name}: {difference}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Goal: no case says nothing, and none hides another. Method: each has a name of its own, a sentence, a
/// scenario and an expectation that is not empty, and nothing else.
#[test]
fn every_case_says_something() {
    let mut names = BTreeSet::new();
    for (topic, cases) in topics() {
        assert!(!cases.is_empty(), "{topic} has no cases");
        for case in &cases {
            let name = text(&case["name"]);
            assert!(!name.is_empty() && names.insert(name.to_owned()), "{topic}: `{name}` is there twice");
            assert!(text(&case["about"]).ends_with('.'), "{topic}, {name}: no sentence says what it shows");
            let fields: Vec<&str> = entries(case).map(|(field, _)| field.as_str()).collect();
            assert_eq!(fields, ["about", "expect", "name", "scenario"], "{topic}, {name}");
            let says = entries(&case["expect"]).any(|(_, value)| entries(value).next().is_some());
            assert!(says, "{topic}, {name} expects nothing");
        }
    }
    assert!(names.len() >= 130, "the folder is read: {names:?}");
}

/// Goal: a wrong expectation is noticed. Method: a dry run whose outcome is plain, and for each thing that
/// can be expected of it a wrong wish.
#[test]
fn a_wrong_expectation_is_noticed() {
    let role = |name: &str, service: &str, max: u64| {
        let roles = json!([{"name": "r", "service": service, "max": max, "request": {"slot": 1}}]);
        json!({"name": name, "groups": [{"name": "g", "roles": roles}]})
    };
    let scenario = json!({
        "nodes": [{"name": "n", "count": 2, "capacity": {"slot": 2}}],
        "jobs": [role("old", "web", 1), role("new", "web", 4)],
        "running": [{"job": "old", "node": "n-1"}],
    });
    let right = json!({
        "placed": {"new": {"n-0": 2, "n-1": 1}, "old": {}},
        "spread": {"web": [2, 2]},
        "waiting": {"new": {"tasks": 1, "filters": {"resources": 2}, "first": {"resources": 2},
                            "sentence_contains": "2 lack slot"}},
    });
    let noticed = |pointer: &str, value: Value| {
        let mut wrong = right.clone();
        let (table, field) = pointer.rsplit_once('/').expect("a pointer has a slash");
        wrong.pointer_mut(table).expect("the table is there")[field] = value;
        differences(&scenario, &wrong)
    };
    assert_eq!(differences(&scenario, &right), [""; 0]);
    let wrong = [
        ("/placed/new", json!({"n-0": 1, "n-1": 2}), "placed new: expected"),
        ("/placed/new", json!({"n-0": 2}), "placed new: expected"),
        ("/placed/old", json!({"n-1": 1}), "placed old: expected"),
        ("/placed/other", json!({}), "placed other: there is no such job"),
        ("/spread/web", json!([3, 1]), "spread web: expected [3,1], found [2,2]"),
        ("/spread/web", json!([2]), "spread web: expected [2], found [2,2]"),
        ("/spread/new", json!([2, 1]), "spread new: there is no such service or job"),
        ("/waiting", json!({}), "waiting new: \"1 task waits"),
        ("/waiting/old", json!({"tasks": 1}), "waiting old: expected {\"tasks\":1}, but nothing of it waits"),
        ("/waiting/new/tasks", json!(2), "waiting new tasks: expected 2, found 1"),
        ("/waiting/new/filters", json!({"resources": 1}), "waiting new filters: expected"),
        ("/waiting/new/first", json!({}), "waiting new first: expected {}, found {\"resources\":2}"),
        ("/waiting/new/sentence_contains", json!("3 lack"), "waiting new sentence_contains: expected"),
        ("/waiting/new/sentence", json!("2 lack"), "waiting new sentence: nothing of this name"),
        ("/lost", json!({"new": 1}), "lost: nothing of this name can be expected"),
    ];
    for (pointer, value, start) in wrong {
        let found = noticed(pointer, value);
        assert!(found.len() == 1 && found[0].starts_with(start), "{pointer}: {found:?}");
    }
    assert_eq!(differences(&json!({"node": []}), &right).len(), 1, "a scenario that is refused is noticed");
}
