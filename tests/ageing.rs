//! With strict bands what has waited for long is raised, band by band, where the settings say so.

use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

/// One worker, urgent tasks of ten seconds for five minutes, and one job of a lower band that came first.
fn cluster(ageing: f64, band: &str, until: f64) -> Value {
    let role = |tasks: u32| json!([{"name": "r", "max": tasks, "duration": 10.0, "request": {"slot": 1}}]);
    json!({
        "config": "beaker", "settings": {"ageing": ageing}, "until": until,
        "nodes": [{"name": "n", "capacity": {"slot": 1}}],
        "jobs": [{"name": "waits", "band": band, "groups": [{"name": "g", "roles": role(2)}]},
                 {"name": "urgent", "band": "urgent", "groups": [{"name": "g", "roles": role(30)}]}],
    })
}

fn starts(report: &Value, job: &str) -> Vec<f64> {
    let decisions = report["decisions"].as_array().expect("a list").iter();
    decisions.filter(|one| one["job"] == json!(job)).map(|one| one["at"].as_f64().expect("a time")).collect()
}

/// Goal: without ageing a lower band waits until everything above is done; with it, each such time raises it
/// by one band, and among its new equals it goes by its arrival. Method: a job one and four bands below.
#[test]
fn what_has_waited_long_is_raised_band_by_band() {
    assert_eq!(starts(&report(&cluster(0.0, "high", 400.0)), "waits"), [300.0, 310.0]);
    assert_eq!(starts(&report(&cluster(25.0, "high", 400.0)), "waits"), [30.0, 40.0]);
    assert_eq!(starts(&report(&cluster(25.0, "low", 400.0)), "waits"), [100.0, 110.0]);
    assert_eq!(starts(&report(&cluster(1_000.0, "low", 400.0)), "waits"), [300.0, 310.0]);
}

/// Goal: the explanation says since when it waits, to which band it is raised, and when it is raised next.
#[test]
fn a_raise_is_explained() {
    let waits = |until: f64| {
        let report = report(&cluster(25.0, "low", until));
        let waiting = report["waiting"].as_array().expect("a list").clone();
        waiting.into_iter().find(|one| one["job"] == json!("waits")).expect("it waits")
    };
    let before = waits(20.0);
    assert_eq!(before["explanation"]["share"]["raise"]["to"], json!(null));
    let sentence = before["sentence"].as_str().expect("a text");
    assert!(sentence.contains("raised to band medium at"), "{sentence}");
    let after = waits(60.0);
    assert_eq!(after["explanation"]["share"]["raise"]["to"], json!("normal"));
    assert_eq!(after["explanation"]["share"]["raise"]["next"][0], json!("high"));
    let sentence = after["sentence"].as_str().expect("a text");
    assert!(sentence.contains("raised to band normal because it waits since"), "{sentence}");
}

/// Goal: a job that is moved to another band keeps its age.
#[test]
fn age_outlives_a_move() {
    let mut scenario = cluster(25.0, "low", 400.0);
    scenario["events"] = json!([{"at": 60.0, "reprioritise": {"job": "waits", "band": "medium"}}]);
    // Three bands below the first and two times raised: the third time is enough.
    assert_eq!(starts(&report(&scenario), "waits"), [80.0, 90.0]);
}
