//! The dry-run format: what a file may say, and what it is told otherwise.

use proptest::prelude::*;

use super::*;
use crate::document::reader_tests::any_value;
use crate::plan::{Happening, RunningTasks};
use crate::resources::{KindId, Resources};
use crate::spec::{Availability, Condition, JobSpec, Liveness, NodePatch, Start};
use crate::time::Span;

fn read_text(text: &str) -> Result<Scenario, Faults> {
    let document: Value = serde_json::from_str(text).expect("well-formed");
    read(&document, &RawSettings::default())
}

fn scenario(text: &str) -> Scenario {
    read_text(text).unwrap_or_else(|faults| panic!("{faults}"))
}

fn messages(text: &str) -> Vec<String> {
    let faults = read_text(text).expect_err("the file is bad");
    faults.listed.iter().map(Fault::to_string).collect()
}

#[test]
fn an_empty_file_is_an_empty_cluster() {
    assert_eq!(scenario("{}"), Scenario::default());
}

#[test]
fn nodes_are_counted_out_and_their_kinds_declared() {
    let scenario = scenario(
        r#"{"nodes": [
            {"name": "n", "count": 3, "capacity": {"cpu": 0.5, "fpga": 2}},
            {"name": "m", "pool": "p", "capacity": {"memory": "1Gi"}, "labels": {"zone": "a"},
             "condition": "broken", "availability": "drain", "liveness": "down", "os": null, "plugins": []}]}"#,
    );
    let names: Vec<&str> = scenario.nodes.iter().map(|node| node.facts.name.as_str()).collect();
    assert_eq!(names, ["n-0", "n-1", "n-2", "m"]);
    assert_eq!(scenario.settings.kinds.id("fpga"), Some(KindId(4)));
    assert_eq!(scenario.nodes[2].capacity.get(KindId(4)), 2_000);
    let last = &scenario.nodes[3];
    assert_eq!(
        (last.condition, last.availability, last.liveness),
        (Condition::Broken, Availability::Drain, Liveness::Down)
    );
    assert_eq!((last.facts.pool.as_str(), last.facts.labels["zone"].as_str()), ("p", "a"));
}

#[test]
fn sizes_of_roles_have_sensible_defaults() {
    let scenario = scenario(
        r#"{"jobs": [{"name": "j", "groups": [
            {"name": "a", "start": "atomic", "pool": "any", "roles": [
                {"name": "x", "max": 4}, {"name": "y", "min": 3}, {"name": "z", "min": 2, "max": 2}]},
            {"name": "b", "roles": [{"name": "x", "max": 4, "duration": 1.5}, {"name": "y", "min": 3}]}]}]}"#,
    );
    let groups = &scenario.jobs[0].spec.groups;
    let sizes = |group: usize| -> Vec<(u32, u32)> {
        groups[group].roles.iter().map(|role| (role.min, role.max)).collect()
    };
    assert_eq!((groups[0].start, sizes(0)), (Start::Atomic, vec![(4, 4), (3, 3), (2, 2)]));
    assert_eq!((groups[1].start, sizes(1)), (Start::Independent, vec![(0, 4), (3, 3)]));
    assert_eq!(groups[1].roles[0].duration.get(), Some(Span::from_millis(1_500)));
}

#[test]
fn the_shorthand_is_one_independent_group() {
    let scenario = scenario(
        r#"{"now": 9, "jobs": [{"name": "j", "tasks": 10, "request": {"slot": 1}, "submitted": 2},
                               {"name": "k", "tasks": 1}]}"#,
    );
    let mut expected = JobSpec::bag("j", 10, Resources::of(KindId(0), 1_000));
    assert_eq!(scenario.jobs[0].spec, expected);
    expected = JobSpec::bag("k", 1, Resources::new());
    assert_eq!(scenario.jobs[1].spec, expected);
    assert_eq!(scenario.jobs[0].submitted, Time::from_seconds(2.0).expect("a time"));
    assert_eq!(scenario.jobs[1].submitted, scenario.now);
    assert_eq!(scenario.tasks(), 11);
}

#[test]
fn running_tasks_and_events_find_what_they_name() {
    let scenario = scenario(
        r#"{"now": 10, "until": 20, "nodes": [{"name": "n", "capacity": {"slot": 4}}],
            "jobs": [{"name": "j", "tasks": 5, "request": {"tpu": 1}}],
            "running": [{"job": "j", "count": 2, "node": "n", "started": 3},
                        {"job": "j", "group": "tasks", "role": "task", "count": 3}],
            "events": [{"at": 13, "cancel": {"job": "k"}}, {"at": 12, "finish": {"job": "j", "count": 2}},
                       {"at": 12, "submit": {"name": "k", "tasks": 1}},
                       {"at": 11, "node": {"name": "n", "availability": "pause", "liveness": "suspect",
                                           "capacity": {"tpu": 1}}}]}"#,
    );
    let started = Time::from_seconds(3.0).expect("a time");
    let first = RunningTasks { job: 0, group: 0, role: 0, count: 2, node: Some(0), started };
    let second = RunningTasks { count: 3, node: None, started: scenario.now, ..first.clone() };
    assert_eq!(scenario.running, [first, second]);
    let times: Vec<f64> = scenario.events.iter().map(|event| event.at.as_seconds()).collect();
    assert_eq!(times, [11.0, 12.0, 12.0, 13.0]);
    let patch = NodePatch {
        availability: Some(Availability::Pause),
        capacity: Some(Resources::of(KindId(4), 1_000)),
        ..NodePatch::default()
    };
    let node =
        Happening::Node { name: "n".into(), patch: Box::new(patch), liveness: Some(Liveness::Suspect) };
    assert_eq!(scenario.events[0].what, node);
    assert_eq!(scenario.events[1].what, Happening::Finish { job: "j".into(), count: 2 });
    assert!(
        matches!(&scenario.events[2].what, Happening::Submit(job) if job.submitted == scenario.events[2].at)
    );
    assert_eq!(scenario.events[3].what, Happening::Cancel { job: "k".into(), children: false });
}

#[test]
fn a_job_that_cannot_be_read_may_still_be_named() {
    let found = messages(
        r#"{"jobs": [{"name": "j", "tasks": 0}],
            "running": [{"job": "j", "group": "g"}], "events": [{"at": 1, "cancel": {"job": "j"}}]}"#,
    );
    assert_eq!(found, ["jobs[0].tasks: expected a whole number between 1 and 10000000, found 0"]);
}

#[test]
fn settings_of_the_file_lie_on_top_of_its_configuration() {
    let document: Value =
        serde_json::from_str(r#"{"config": "beaker", "settings": {"window": 0.5}}"#).expect("well-formed");
    assert_eq!(config_of(&document), Some("beaker"));
    let base = RawSettings { window_adaptive: Some(false), window: Some(0.0), ..RawSettings::default() };
    let settings = read(&document, &base).expect("good").settings;
    assert_eq!((settings.window.gap, settings.window.adaptive), (Span::from_millis(500), false));
    let found = messages(r#"{"settings": {"window": 5}}"#);
    assert_eq!(found, ["settings.window_cap: must be at least `window`, which is 5, found 1"]);
}

/// Documents that look like dry-run files: known names at the places of known fields.
fn any_document() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "name",
        "count",
        "pool",
        "capacity",
        "labels",
        "at",
        "job",
        "finish",
        "node",
        "submit",
        "cancel",
        "jobs",
        "tasks",
        "request",
        "groups",
        "roles",
        "min",
        "max",
        "start",
        "cpu",
        "service",
        "version",
        "submitted",
        "group",
        "role",
        "started",
        "condition",
        "duration",
    ]);
    let leaf = prop_oneof![
        (-2i64..9).prop_map(Value::Integer),
        any::<f64>().prop_map(Value::Float),
        prop::sample::select(vec!["a", "b", "a-0", "atomic", "removed", ""])
            .prop_map(|text| Value::Text(text.into())),
        Just(Value::Null),
    ];
    let tree = leaf.prop_recursive(6, 64, 6, move |inner| {
        let table = prop::collection::vec((names.clone().prop_map(str::to_owned), inner.clone()), 0..6);
        prop_oneof![3 => table.prop_map(Value::Table), 1 => prop::collection::vec(inner, 0..4).prop_map(Value::List)]
    });
    let section =
        prop::sample::select(vec!["nodes", "jobs", "running", "events", "settings", "now", "until"]);
    let list = prop::collection::vec(tree, 0..4).prop_map(Value::List);
    prop::collection::vec((section.prop_map(str::to_owned), list), 0..6).prop_map(Value::Table)
}

proptest! {
    #[test]
    fn no_document_makes_the_reader_panic(document in any_document(), any in any_value()) {
        let _ = read(&document, &RawSettings::default()).map_err(|faults| faults.to_string());
        let _ = read(&any, &RawSettings::default()).map_err(|faults| faults.to_string());
    }
}
