//! Roles that are there for others, through dry runs: auxiliary ones end with what their group is for, guests
//! run inside the tasks of another role and end with them.
//!
//! The cases are in `tests/roles/`; what was not taken is listed in `NOT_TAKEN.md` there.

use std::collections::BTreeMap;

use plimsoll::core::plan::{self, DecisionKind};
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

fn scenario_of(case: &Value) -> Value {
    let mut jobs = vec![json!({"name": "j", "groups": case["groups"]})];
    jobs.extend(case["others"].as_array().into_iter().flatten().cloned());
    let events = if case["events"].is_array() { case["events"].clone() } else { json!([]) };
    json!({"settings": {"window": 0}, "nodes": case["nodes"], "jobs": jobs, "events": events,
           "until": case["until"]})
}

#[test]
fn tasks_that_are_there_for_others_end_with_them() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("roles/cases.json")).expect("readable");
    for case in &cases {
        let name = &case["name"];
        let text = scenario_of(case).to_string();
        let scenario =
            scenario::from_text(&text, Format::Json).unwrap_or_else(|error| panic!("{name}: {error}"));
        let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{name}: {error}"));
        let assigned: Vec<_> =
            report.decisions.iter().filter(|decision| decision.kind == DecisionKind::Assign).collect();
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for decision in &assigned {
            *counts.entry(&decision.role).or_default() += 1;
        }
        assert_eq!(json!(counts), case["assigned"], "{name}");
        let stops = report.decisions.iter().filter(|decision| decision.kind == DecisionKind::Stop);
        let mut stops: Vec<Value> = stops.map(|stop| json!([stop.role, stop.at as u64, stop.why])).collect();
        let mut expected = case["stops"].as_array().expect("a list").clone();
        stops.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
        assert_eq!(stops, expected, "{name}");
        for pair in case["together"].as_array().into_iter().flatten() {
            let of = |role: &Value| -> Vec<(u32, &str)> {
                let own = assigned.iter().filter(|decision| json!(decision.role) == *role);
                own.map(|decision| (decision.task, &*decision.node)).collect()
            };
            assert_eq!(of(&pair[0]), of(&pair[1]), "{name}: on the same nodes");
        }
        assert!(report.waiting.is_empty(), "{name}: {:?}", report.waiting);
    }
}

#[test]
fn roles_that_cannot_be_are_refused() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("roles/refused.json")).expect("readable");
    for case in &cases {
        let start = case["start"].as_str().unwrap_or("atomic");
        let group = json!({"name": "g", "start": start, "roles": case["roles"]});
        let file = json!({"nodes": [], "jobs": [{"name": "j", "groups": [group]}]});
        let error = scenario::from_text(&file.to_string(), Format::Json).expect_err("it is refused");
        let expected = case["fault"].as_str().expect("a text");
        assert!(error.to_string().contains(expected), "{error}\nis not\n{expected}");
    }
}

#[test]
fn tasks_bring_enough_cpu_for_their_gpus() {
    let file = |ratio: f64, cpus: f64| {
        json!({"settings": {"gpu_cpu_ratio": ratio}, "nodes": [{"name": "n", "capacity": {"cpu": 64, "gpu": 8}}],
               "jobs": [{"name": "j", "tasks": 1, "request": {"cpu": cpus, "gpu": 2}}]})
        .to_string()
    };
    for (ratio, cpus) in [(0.0, 0.0), (4.0, 8.0), (0.5, 1.0), (4.0, 9.0)] {
        assert!(scenario::from_text(&file(ratio, cpus), Format::Json).is_ok(), "{cpus} with {ratio}");
    }
    let error = scenario::from_text(&file(4.0, 7.5), Format::Json).expect_err("it is refused").to_string();
    let expected = "request.cpu: a task must bring 4 CPUs for each of its GPUs, as `gpu_cpu_ratio` says, \
                    found 7.5 CPUs for 2 GPUs";
    assert!(error.contains(expected), "{error}");
    let error = scenario::from_text(&file(-1.0, 1.0), Format::Json).expect_err("it is refused").to_string();
    assert!(error.contains("gpu_cpu_ratio: expected a number between 0 and 1000"), "{error}");
}
