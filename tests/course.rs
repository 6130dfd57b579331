//! What happens in the course of a dry run to all of it: settings that change, nodes that become idle.

use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

fn report(scenario: &Value) -> Result<Value, String> {
    let scenario =
        scenario::from_text(&scenario.to_string(), Format::Json).map_err(|error| error.to_string())?;
    let report = plan::run(&scenario).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(report).expect("a report can be written"))
}

/// When tasks of which job started, in this order.
fn starts(report: &Value) -> Vec<(f64, &str)> {
    let decisions = report["decisions"].as_array().expect("a list").iter();
    let starts = decisions.filter(|one| one["kind"] == json!("assign"));
    starts.map(|one| (one["at"].as_f64().expect("a time"), one["job"].as_str().expect("a name"))).collect()
}

fn two_classes(percents: (u64, u64), events: Value) -> Value {
    let class = |name: &str, percent: u64| json!({"name": name, "percent": percent, "requestors": [name]});
    let job = |name: &str| json!({"name": name, "requestor": name, "tasks": 40, "request": {"slot": 1}});
    json!({
        "config": "scoot",
        "settings": {"window": 0, "default_class": "a", "classes": [class("a", percents.0), class("b", percents.1)]},
        "nodes": [{"name": "n", "count": 10, "capacity": {"slot": 1}}],
        "jobs": [job("a"), job("b")],
        "events": events,
    })
}

/// Goal: percents that change in the course apply to what waits and runs already. Method: 8 workers to 2 at
/// first; then it is 2 to 8, and 6 of the larger class end: all of their workers go to the other one.
#[test]
fn percents_that_change_apply_to_what_waits_and_runs() {
    let classes = json!([{"name": "a", "percent": 20, "requestors": ["a"]},
                         {"name": "b", "percent": 80, "requestors": ["b"]}]);
    let finish = json!({"at": 2.0, "finish": {"job": "a", "count": 6}});
    let changed = json!([{"at": 1.0, "settings": {"classes": classes}}, finish]);
    let after = report(&two_classes((80, 20), changed)).expect("good");
    assert_eq!(after["summary"]["assigned_by_class"], json!({"a": 8, "b": 8}));
    let kept = report(&two_classes((80, 20), json!([finish]))).expect("good");
    assert_eq!(kept["summary"]["assigned_by_class"], json!({"a": 14, "b": 2}));
    // Whatever the order in the file: time counts.
    let turned = json!([finish, {"at": 1.0, "settings": {"classes": classes}}]);
    assert_eq!(report(&two_classes((80, 20), turned)).expect("good")["summary"], after["summary"]);
}

/// Goal: a limit that is lifted lets start what it kept, at once; one that comes keeps what is left.
#[test]
fn limits_come_and_go_with_the_settings() {
    let queues = |quota: u64| json!({"queues": [{"name": "q", "quota": {"cpu": quota}}]});
    let scenario = json!({
        "settings": queues(2), "nodes": [{"name": "n", "capacity": {"cpu": 8}}],
        "jobs": [{"name": "j", "queue": "q", "tasks": 6, "request": {"cpu": 1}}],
        "events": [{"at": 1.0, "settings": queues(5)}, {"at": 2.0, "settings": queues(1)},
                   {"at": 3.0, "finish": {"job": "j", "count": 5}}],
    });
    let report = report(&scenario).expect("good");
    let times: Vec<f64> = starts(&report).into_iter().map(|(at, _)| at).collect();
    assert_eq!(times, [0.0, 0.0, 1.0, 1.0, 1.0, 3.0]);
}

/// Goal: what is asked for is judged by the settings of its moment, and each change builds on those before.
/// Method: a queue that is there from the second change on.
#[test]
fn requests_are_judged_by_the_settings_of_their_moment() {
    let job = |at: f64| {
        let job = json!({"name": format!("j{at}"), "queue": "late", "tasks": 1, "request": {"cpu": 1}});
        json!({"at": at, "submit": job})
    };
    let scenario = |times: &[f64]| {
        let mut events = vec![
            json!({"at": 1.0, "settings": {"window": 0}}),
            json!({"at": 2.0, "settings": {"queues": [{"name": "late", "weight": 2.0}]}}),
            json!({"at": 3.0, "settings": {"queue_key": "flow"}}),
        ];
        events.extend(times.iter().map(|at| job(*at)));
        json!({"nodes": [{"name": "n", "capacity": {"cpu": 8}}], "events": events})
    };
    let good = report(&scenario(&[2.0, 4.0])).expect("it is there by then");
    assert_eq!(good["summary"]["assigned_by_queue"], json!({"late": 2}));
    assert_eq!(starts(&good), [(2.0, "j2"), (4.0, "j4")], "without a window from the first change on");
    let error = report(&scenario(&[1.5, 4.0])).expect_err("it is not there yet");
    assert!(error.contains("events[3].submit.queue") && !error.contains("events[4]"), "{error}");
}

/// Goal: a change with problems names the event, the field and the value, like any settings.
#[test]
fn bad_changes_name_what_is_wrong() {
    for (settings, expected) in [
        (json!({"window": -1}), "events[0].settings.window: expected seconds between 0 and 3600, found -1"),
        (json!({"windov": 1}), "events[0].settings.windov: unknown field"),
        (json!({"default_class": "x"}), "events[0].settings.default_class"),
        (json!({"window": 5, "window_cap": 1}), "events[0].settings.window_cap: must be at least"),
        (json!({"resources": ["fpga"]}), "events[0].settings.resources: kinds can be added at the end"),
        (json!(7), "events[0].settings: expected a table, found 7"),
    ] {
        let scenario = json!({
            "nodes": [{"name": "n", "capacity": {"tape": 1}}],
            "events": [{"at": 1.0, "settings": settings}],
        });
        let error = report(&scenario).expect_err("bad");
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(error.matches("events[").count(), 1, "{error}");
    }
    let many: Vec<Value> = (0..1_001).map(|at| json!({"at": at, "settings": {"window": 0}})).collect();
    let error = report(&json!({"events": many})).expect_err("too many");
    assert!(error.contains("events[1000]") && error.contains("at most 1000"), "{error}");
}

/// Goal: a node that is idle has ended everything well, and takes what waits. Method: two nodes with work of
/// two jobs; one becomes idle, twice in one moment, and one that has nothing to end.
#[test]
fn what_runs_on_an_idle_node_has_ended_well() {
    let job = |name: &str, tasks: u64| json!({"name": name, "tasks": tasks, "request": {"slot": 1}});
    let scenario = json!({
        "settings": {"window": 0},
        "nodes": [{"name": "one", "capacity": {"slot": 2}}, {"name": "two", "capacity": {"slot": 2}},
                  {"name": "empty", "capacity": {"cpu": 1}}],
        "jobs": [job("a", 3), job("b", 4)],
        "events": [{"at": 1.0, "idle": {"node": "one"}}, {"at": 1.0, "idle": {"node": "one"}},
                   {"at": 2.0, "idle": {"node": "empty"}}, {"at": 3.0, "idle": {"node": "two"}}],
    });
    let report = report(&scenario).expect("good");
    let at: Vec<f64> = starts(&report).into_iter().map(|(at, _)| at).collect();
    assert_eq!(at, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 3.0]);
    assert_eq!(report["waiting"], json!([]));
    let started_at = |time: f64| {
        let decisions = report["decisions"].as_array().expect("a list").iter();
        let then = decisions.filter(move |one| one["at"] == json!(time));
        then.map(|one| one["node"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!((started_at(1.0), started_at(3.0)), (vec![json!("one"); 2], vec![json!("two")]));
}
