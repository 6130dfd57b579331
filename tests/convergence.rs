//! On a cluster that is always full, shares come to what they should have within one turnover, by every key
//! and from any start; and no worker stays idle while something waits.

use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

const WORKERS: u64 = 40;
/// Every task runs this long, so after that time every worker has been handed out anew.
const TURNOVER: f64 = 10.0;

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

/// Two shares of 3 to 1 that both want more than there is. At first one of them, or nobody, has everything.
fn cluster(key: &str, by_class: bool, first: Option<&str>, turned: bool) -> Value {
    let settings = match by_class {
        true => json!({"share_key": key, "share_unit": "weighted", "classes": [
            {"name": "big", "percent": 75, "requestors": ["big"]},
            {"name": "small", "percent": 25, "requestors": ["small"]}]}),
        false => json!({"queue_key": key, "queues": [{"name": "big", "weight": 3}, {"name": "small"}]}),
    };
    let mut settings = settings;
    // What was used before is forgotten before the next worker is free: a longer memory makes up for it
    // first, and is at the weights only after that.
    (settings["window"], settings["half_time"]) = (json!(0), json!(0.01));
    let role = |tasks: u64| json!([{"name": "r", "max": tasks, "duration": TURNOVER, "request": {"cpu": 1}}]);
    let job = |name: &str| {
        let groups = json!([{"name": "g", "roles": role(10 * WORKERS)}]);
        let queue = if by_class { json!(null) } else { json!(name) };
        json!({"name": name, "requestor": name, "queue": queue, "groups": groups})
    };
    let mut jobs = vec![job("big"), job("small")];
    if turned {
        jobs.reverse();
    }
    // They began one after the other, so their workers become free one after the other.
    let running = |name: &str| -> Vec<Value> {
        let one = |at: u64| {
            let started = 100.0 - TURNOVER + TURNOVER * (at + 1) as f64 / (WORKERS + 1) as f64;
            json!({"job": name, "group": "g", "role": "r", "started": started, "node": format!("n-{at}")})
        };
        (0..WORKERS).map(one).collect()
    };
    json!({
        "now": 100.0, "until": 100.0 + 2.0 * TURNOVER, "settings": settings, "jobs": jobs,
        "nodes": [{"name": "n", "count": WORKERS, "capacity": {"cpu": 1}}],
        "running": first.map(running).unwrap_or_default(),
    })
}

/// How many of the tasks that started within these times are of the big share, and of all.
fn started(report: &Value, from: f64, to: f64) -> (u64, u64) {
    let decisions = report["decisions"].as_array().expect("a list").iter();
    let within = decisions.filter(|one| {
        let at = one["at"].as_f64().expect("a time");
        at > from && at <= to
    });
    within.fold((0, 0), |(big, all), one| (big + u64::from(one["job"] == json!("big")), all + 1))
}

/// Goal: within one turnover each share holds what it should, up to one task, whoever had everything
/// before and however the file is ordered; and whatever becomes free is handed out at once. Method: what
/// started within one turnover is what runs at its end.
#[test]
fn shares_converge_within_one_turnover_by_every_key() {
    let keys =
        [("entitlement", true), ("flow", true), ("flow", false), ("dominant", true), ("dominant", false)];
    for (key, by_class) in keys {
        for first in [None, Some("big"), Some("small")] {
            for turned in [false, true] {
                let report = report(&cluster(key, by_class, first, turned));
                let (from, to) = if first.is_none() { (99.0, 100.0) } else { (100.0, 100.0 + TURNOVER) };
                let (big, all) = started(&report, from, to);
                let case = format!("{key}, classes: {by_class}, first: {first:?}, turned: {turned}");
                assert_eq!(all, WORKERS, "{case}: no worker stays idle");
                assert!(big.abs_diff(30) <= 1, "{case}: {big} of {all}");
            }
        }
    }
}

/// Goal: by run time shares have run for what they should in the long run: what one had too much is made up
/// for. Method: four turnovers on an empty cluster; of all that started the parts are those of the weights.
#[test]
fn run_time_converges_to_the_weights() {
    for by_class in [true, false] {
        for turned in [false, true] {
            let mut scenario = cluster("run_time", by_class, None, turned);
            scenario["until"] = json!(100.0 + 4.0 * TURNOVER - 1.0);
            let (big, all) = started(&report(&scenario), 99.0, 100.0 + 4.0 * TURNOVER);
            assert_eq!(all, 4 * WORKERS, "no worker stays idle");
            assert!(big.abs_diff(3 * WORKERS) <= WORKERS / 4, "classes: {by_class}: {big} of {all}");
        }
    }
}

/// Goal: by run time a newcomer has no claim on the time before it came, also when nobody wanted anything at
/// that moment. Method: one share has run alone for long and is done; then a new one comes, and after it more
/// work of the first. Both run in turn, however short the pause was.
#[test]
fn a_pause_gives_newcomers_nothing_to_make_up_for() {
    for (by_class, first, pause) in [(true, "big", 15.0_f64), (false, "big", 15.0), (false, "small", -25.0)] {
        let settings = match by_class {
            true => json!({"share_key": "run_time", "window": 0, "classes": [
                {"name": "big", "percent": 50, "requestors": ["big"]},
                {"name": "small", "percent": 50, "requestors": ["small"]}]}),
            false => {
                json!({"queue_key": "run_time", "window": 0, "queues": [{"name": "big"}, {"name": "small"}]})
            }
        };
        let job = |name: &str, share: &str| {
            let groups = json!([{"name": "g", "roles": [{"name": "r", "max": 50, "duration": TURNOVER,
                                                           "request": {"cpu": 1}}]}]);
            let queue = if by_class { json!(null) } else { json!(share) };
            json!({"name": name, "requestor": share, "queue": queue, "groups": groups})
        };
        let second = if first == "big" { "small" } else { "big" };
        let scenario = json!({
            "now": 0.0, "until": 900.0, "settings": settings,
            "nodes": [{"name": "n", "capacity": {"cpu": 1}}], "jobs": [job("before", first)],
            "events": [{"at": 500.0 + pause, "submit": job("newcomer", second)},
                       {"at": 501.0 + pause, "submit": job("again", first)}],
        });
        let report = report(&scenario);
        let decisions = report["decisions"].as_array().expect("a list").iter();
        let later = decisions.filter(|one| one["at"].as_f64().expect("a time") >= 500.0 + pause.max(0.0));
        let jobs: Vec<&str> = later.map(|one| one["job"].as_str().expect("a name")).collect();
        assert!(jobs.len() > 30, "the worker is never idle: {jobs:?}");
        let in_turn = jobs.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(in_turn + 4 > jobs.len(), "classes: {by_class}, pause {pause}: {jobs:?}");
    }
}

/// Goal: by run time what is free at one moment is shared, and does not go to one alone because nobody has run
/// yet. Method: an empty cluster and equal arrivals, as classes, as queues, and as jobs of two bands.
#[test]
fn run_time_shares_what_is_free_at_one_moment() {
    for by_class in [true, false] {
        for turned in [false, true] {
            let (big, all) = started(&report(&cluster("run_time", by_class, None, turned)), 99.0, 100.0);
            assert_eq!((big, all), (30, WORKERS), "classes: {by_class}, turned: {turned}");
        }
    }
    let job =
        |name: &str, band: &str| json!({"name": name, "band": band, "tasks": 40, "request": {"cpu": 1}});
    for (bands, parts) in [(["normal", "normal"], [20, 20]), (["heavy", "normal"], [30, 10])] {
        let report = report(&json!({
            "settings": {"window": 0, "job_key": "run_time", "bands": {"normal": 10, "heavy": 30}},
            "nodes": [{"name": "n", "count": WORKERS, "capacity": {"cpu": 1}}],
            "jobs": [job("one", bands[0]), job("other", bands[1])],
        }));
        let assigned = &report["summary"]["assigned_by_job"];
        assert_eq!(*assigned, json!({"one": parts[0], "other": parts[1]}), "{bands:?}");
    }
}

/// Goal: a job that comes later begins, by run time, where the least of those is that want to run, and makes up
/// for nothing. Method: one job has the cluster for long; then another comes, and at the end of the tasks that
/// run both share what becomes free.
#[test]
fn a_job_that_comes_later_makes_up_for_nothing() {
    let job = |name: &str| {
        let role = json!({"name": "r", "max": 200, "duration": 100.0, "request": {"cpu": 1}});
        json!({"name": name, "groups": [{"name": "g", "roles": [role]}]})
    };
    let report = report(&json!({
        "now": 0.0, "until": 250.0, "settings": {"window": 0, "job_key": "run_time"}, "jobs": [job("first")],
        "nodes": [{"name": "n", "count": WORKERS, "capacity": {"cpu": 1}}],
        "events": [{"at": 99.0, "submit": job("later")}],
    }));
    let decisions = report["decisions"].as_array().expect("a list").iter();
    let of_later = |at: f64| {
        let at_once = decisions.clone().filter(|one| one["at"] == json!(at) && one["job"] == json!("later"));
        at_once.count() as u64
    };
    assert!(of_later(100.0).abs_diff(WORKERS / 2) <= 2, "{} of {WORKERS}", of_later(100.0));
}

/// What the share of large tasks holds, over many turnovers, of a cluster that is always full with them and with small
/// ones; nodes are kept for whoever has waited for half a turnover.
fn held_by_large(key: &str, by_class: bool, large: u64, percents: [u64; 2]) -> f64 {
    let job = |(name, slots): (&str, u64), duration: f64| {
        let role = json!({"name": "r", "max": 2_000, "duration": duration, "request": {"slot": slots}});
        let queue = if by_class { json!(null) } else { json!(name) };
        let groups = json!([{"name": "g", "roles": [role]}]);
        json!({"name": format!("{name}{duration}"), "requestor": name, "queue": queue, "groups": groups})
    };
    let share = |(name, percent): (&str, u64)| match by_class {
        true => json!({"name": name, "percent": percent, "requestors": [name]}),
        false => json!({"name": name, "weight": percent}),
    };
    let shares: Vec<Value> = ["small", "large"].into_iter().zip(percents).map(share).collect();
    let mut settings = match by_class {
        true => json!({"share_key": key, "classes": shares}),
        false => json!({"queue_key": key, "queues": shares}),
    };
    settings["job_key"] = json!("least_running");
    (settings["window"], settings["half_time"], settings["claim_after"]) = (json!(0), json!(0.01), json!(5));
    let sizes = [("small", 1), ("large", large)];
    let jobs = sizes.into_iter().flat_map(|size| [5.0, 7.3, 9.1].map(|duration| job(size, duration)));
    let report = report(&json!({
        "settings": settings, "until": 160.0, "jobs": jobs.collect::<Vec<_>>(),
        "nodes": [{"name": "n", "count": 4, "capacity": {"slot": 8}}],
    }));
    let (mut of_large, mut of_all) = (0.0, 0.0);
    let decisions = report["decisions"].as_array().expect("a list").iter();
    for one in decisions.filter(|one| one["kind"] == json!("assign")) {
        let (job, at) = (one["job"].as_str().expect("a name"), one["at"].as_f64().expect("a time"));
        let (name, duration) = job.split_at("small".len());
        let ends = at + duration.parse::<f64>().expect("its duration");
        let time = (ends.min(150.0) - at.max(50.0)).max(0.0);
        let (slots, counts) = if name == "large" { (large, 1.0) } else { (1, 0.0) };
        of_all += time * slots as f64;
        of_large += counts * time * slots as f64;
    }
    of_large / of_all
}

/// Goal: nodes that are kept for large tasks bring their share what it should have and no more, although small ones
/// never need that. Method: shares of small and of large tasks, up to such as need a whole node.
#[test]
fn what_is_kept_for_large_tasks_brings_their_share_no_more_than_its_part() {
    let keys = [
        ("entitlement", true),
        ("flow", true),
        ("flow", false),
        ("dominant", false),
        ("run_time", true),
        ("run_time", false),
    ];
    for (key, by_class) in keys {
        for (large, percents) in [(3, [80, 20]), (3, [50, 50]), (8, [75, 25])] {
            let (held, part) = (held_by_large(key, by_class, large, percents), percents[1] as f64 / 100.0);
            let case = format!("{key}, classes: {by_class}, {large} slots, {percents:?}");
            assert!((held - part).abs() < 0.1, "{case}: {held} of all instead of {part}");
        }
    }
}
