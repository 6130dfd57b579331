//! GPUs first: among equals work with GPUs comes before other work, and other work stays off nodes with GPUs.

use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

/// One task that starts as a whole.
fn job(name: &str, request: &Value) -> Value {
    let role = json!({"name": "r", "max": 1, "request": request});
    json!({"name": name, "groups": [{"name": "g", "start": "atomic", "roles": [role]}]})
}

/// Goal: of jobs that have had equally much the one starts first that requests more GPUs, then more CPUs, then more
/// memory, then the one that came first. Method: one machine,
/// on which one of two jobs has room, in both orders of the file.
#[test]
fn among_equals_gpus_start_first_then_cpus_then_memory() {
    let request = |gpus: u32, cpus: u32, memory: &str| json!({"gpu": gpus, "cpu": cpus, "memory": memory});
    let pairs = [
        (request(4, 5, "9Gi"), request(1, 8, "10Gi")),
        (request(1, 5, "9Gi"), request(0, 8, "10Gi")),
        (request(0, 8, "9Gi"), request(0, 7, "10Gi")),
        (request(0, 8, "10Gi"), request(0, 8, "9Gi")),
    ];
    for (larger, smaller) in &pairs {
        for turned in [false, true] {
            let mut jobs = vec![job("larger", larger), job("smaller", smaller)];
            if turned {
                jobs.reverse();
            }
            let report = report(&json!({
                "config": "paddle", "jobs": jobs,
                "nodes": [{"name": "n", "capacity": {"cpu": 9, "gpu": 4, "memory": "12Gi"}}],
            }));
            let assigned = &report["summary"]["assigned_by_job"];
            assert_eq!(*assigned, json!({"larger": 1}), "{larger} {smaller} {turned}");
        }
    }
    // A job with GPUs in its second role is one with GPUs.
    let roles = json!([{"name": "server", "max": 1, "request": {"cpu": 1}},
                       {"name": "trainer", "max": 1, "request": {"cpu": 4, "gpu": 1}}]);
    let with_server = json!({"name": "larger", "groups": [{"name": "g", "start": "atomic", "roles": roles}]});
    let report = report(&json!({
        "config": "paddle", "nodes": [{"name": "n", "capacity": {"cpu": 9, "gpu": 1}}],
        "jobs": [job("smaller", &json!({"cpu": 8})), with_server],
    }));
    assert_eq!(report["summary"]["assigned_by_job"], json!({"larger": 2}), "{report:#}");
}

/// Goal: of nodes that become free at one moment work without GPUs takes the one that has none, also while it is
/// collected. Method: two nodes with equal names in both orders, and the window of each way to collect.
#[test]
fn of_nodes_that_become_free_at_once_the_one_without_gpus_is_taken() {
    for (preset, until) in [("swarmkit", 0), ("default", 20), ("paddle", 20)] {
        for gpus in [[1, 0], [0, 1]] {
            let node = |index: usize| json!({"name": format!("n-{index}"), "capacity": {"cpu": 4, "gpu": gpus[index]}});
            let before = json!({"name": "r", "max": 2, "request": {"cpu": 3}, "duration": 10});
            let mut scenario = json!({
                "config": preset, "until": until, "nodes": [node(0), node(1)],
                "jobs": [{"name": "plain", "tasks": 1, "request": {"cpu": 4}}],
            });
            if until > 0 {
                scenario["jobs"] = json!([{"name": "before", "groups": [{"name": "g", "roles": [before]}]}]);
                scenario["events"] =
                    json!([{"at": 1, "submit": {"name": "plain", "tasks": 1, "request": {"cpu": 4}}}]);
            }
            let report = report(&scenario);
            let mut decisions = report["decisions"].as_array().expect("a list").iter();
            let plain = decisions.find(|decision| decision["job"] == "plain").expect("it starts");
            let expected = if gpus[0] == 0 { "n-0" } else { "n-1" };
            assert_eq!(plain["node"], expected, "{preset}: {report:#}");
        }
    }
}
