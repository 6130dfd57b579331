//! The gate through dry runs: who is stopped for whom, and that nobody is stopped for nothing.
//!
//! `tests/gate/classes.json` holds full clusters of one-slot workers: for each class its percent, how many of
//! its tasks run, how many wait, how many start once the gate has opened, and how many run above what the class
//! is entitled to. `tests/gate/idle.json` holds clusters with idle workers: percent, running, waiting, and the
//! percent of all percents. What was not taken is listed in `tests/gate/NOT_TAKEN.md`.

use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn cluster(case: &Value) -> Value {
    let list = case["classes"].as_array().expect("a list");
    let class = |class: &Value| json!({"name": class[0], "percent": class[1], "requestors": [class[0]]});
    let classes: Vec<Value> = list.iter().map(class).collect();
    let jobs = list.iter().filter(|class| number(&class[2]) + number(&class[3]) > 0).map(|class| {
        let tasks = number(&class[2]) + number(&class[3]);
        json!({"name": class[0], "requestor": class[0], "tasks": tasks, "request": {"slot": 1}})
    });
    let running = list.iter().filter(|class| number(&class[2]) > 0);
    let running =
        running.map(|class| json!({"job": class[0], "group": "tasks", "role": "task", "count": class[2]}));
    json!({
        "config": "scoot",
        "until": 10,
        "settings": {"window": 0, "classes": classes, "default_class": list[0][0],
                     "rebalance": {"threshold": case["threshold"], "duration": 2}},
        "nodes": [{"name": "w", "count": case["workers"], "capacity": {"slot": 1}}],
        "jobs": jobs.collect::<Vec<Value>>(),
        "running": running.collect::<Vec<Value>>(),
    })
}

/// Goal: once the spread has been too large for long enough, every class that is entitled to more gets it, and
/// exactly as many tasks of classes above their percents are stopped as start. Method: many full clusters with
/// known answers.
#[test]
fn what_is_stopped_is_what_starts() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("gate/classes.json")).expect("the file can be read");
    assert!(cases.len() >= 21, "the cases are there");
    for case in &cases {
        let report = report(&cluster(case));
        let (assigned, stopped) =
            (&report["summary"]["assigned_by_class"], &report["summary"]["stopped_by_class"]);
        let mut expected = 0;
        for class in case["classes"].as_array().expect("a list") {
            let name = class[0].as_str().expect("a name");
            let (start, above) = (number(&class[4]), number(&class[5]));
            assert_eq!(number(&assigned[name]), start, "{} {name}: {report}", case["name"]);
            assert!(number(&stopped[name]) <= above, "{} {name} loses too much", case["name"]);
            expected += start;
        }
        assert_eq!(number(&report["summary"]["stopped"]), expected, "{}", case["name"]);
        let decisions = report["decisions"].as_array().expect("a list");
        assert!(decisions.iter().all(|one| one["at"] == 2.0), "all of it when the gate opens");
    }
}

/// Goal: where workers are idle they are handed out first; then what is stopped is what starts, nobody is taken
/// below what its class is entitled to, and no class that waits stays below while another is above and they are
/// too far apart. Method: many clusters with idle workers, counted from the decisions.
#[test]
fn idle_workers_are_used_before_anybody_is_stopped() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("gate/idle.json")).expect("the file can be read");
    assert!(cases.len() >= 87, "the cases are there");
    for case in &cases {
        let report = report(&cluster(case));
        let decisions = report["decisions"].as_array().expect("a list");
        let later = |kind: &str| {
            let those = decisions.iter().filter(|one| one["kind"] == kind && one["at"] != 0.0);
            those.count()
        };
        assert_eq!(later("assign"), later("stop"), "{}: {report}", case["name"]);
        let early = decisions.iter().filter(|one| one["at"] == 0.0);
        assert!(early.clone().all(|one| one["kind"] == "assign"), "{}", case["name"]);
        check_classes(case, &report["summary"]);
    }
}

/// How the classes stand at the end.
fn check_classes(case: &Value, summary: &Value) {
    let workers = number(&case["workers"]) as i64;
    let mut spread = (0, 0);
    let (mut short, mut above) = (Vec::new(), 0);
    for class in case["classes"].as_array().expect("a list") {
        let name = class[0].as_str().expect("a name");
        let of = |counts: &Value| number(&counts[name]) as i64;
        let (assigned, stopped) = (of(&summary["assigned_by_class"]), of(&summary["stopped_by_class"]));
        let held = number(&class[2]) as i64 + assigned - stopped;
        let waiting = number(&class[3]) as i64 - assigned + stopped;
        let percent = number(&class[4]) as i64;
        let target = workers * percent / 100;
        assert!(stopped == 0 || held >= target, "{} {name} is taken below its percent", case["name"]);
        let difference = percent - held * 100 / workers;
        if waiting > 0 && held < target {
            short.push(name);
            spread.0 = spread.0.max(difference);
        }
        above += (held - target - 1).max(0);
        spread.1 = spread.1.max(-difference);
    }
    let too_far = spread.0 + spread.1 > number(&case["threshold"]) as i64;
    let stuck = too_far && !short.is_empty() && above > case["classes"].as_array().map_or(0, Vec::len) as i64;
    assert!(!stuck, "{}: {short:?} wait below their percents: {summary}", case["name"]);
}

/// Two classes of 60 and 40 percent on ten workers that all run tasks of the second.
fn lent() -> Value {
    json!({
        "config": "scoot", "until": 30,
        "settings": {"window": 0, "default_class": "b",
                     "classes": [{"name": "a", "percent": 60, "requestors": ["a"]},
                                 {"name": "b", "percent": 40, "requestors": ["b"]}],
                     "rebalance": {"threshold": 20, "duration": 5}},
        "nodes": [{"name": "w", "count": 10, "capacity": {"slot": 1}}],
        "jobs": [{"name": "lender", "requestor": "a", "tasks": 3, "submitted": 0.0, "request": {"slot": 1}},
                 {"name": "borrower", "requestor": "b", "tasks": 10, "request": {"slot": 1}}],
        "running": [{"job": "borrower", "group": "tasks", "role": "task", "count": 10}],
    })
}

fn kinds(report: &Value, kind: &str) -> Vec<(f64, String, String)> {
    let decisions = report["decisions"].as_array().expect("a list");
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let those = decisions.iter().filter(|one| one["kind"] == kind);
    those.map(|one| (one["at"].as_f64().unwrap_or(-1.0), text(one, "job"), text(one, "why"))).collect()
}

/// Goal: a stop says for whom it was done, and a stopped task waits once more. Method: a loan comes back.
#[test]
fn a_stop_names_its_cause_and_its_beneficiary() {
    let report = report(&lent());
    let stops = kinds(&report, "stop");
    let why = "its class was above its percent, and below was that of job `lender`";
    assert_eq!(stops, vec![(5.0, "borrower".to_owned(), why.to_owned()); 3]);
    assert_eq!(kinds(&report, "assign").len(), 3);
    assert_eq!(report["waiting"][0]["tasks"], 3, "what was stopped waits: {report}");
}

/// Goal: `on_preempt` of the settings and of a role decide what becomes of a stopped task. Method: the same
/// loan, where nobody waits afterwards.
#[test]
fn roles_say_what_becomes_of_a_stopped_task() {
    for on_preempt in ["fail", "drop"] {
        let mut by_settings = lent();
        by_settings["settings"]["rebalance"]["on_preempt"] = json!(on_preempt);
        assert_eq!(report(&by_settings)["waiting"], json!([]), "{on_preempt}");
        let mut by_role = lent();
        by_role["jobs"][1] = json!({"name": "borrower", "requestor": "b", "groups": [
            {"name": "tasks", "start": "independent", "roles": [
                {"name": "task", "min": 0, "max": 10, "request": {"slot": 1}, "on_preempt": on_preempt}]}]});
        assert_eq!(report(&by_role)["waiting"], json!([]), "{on_preempt}");
    }
}

/// Goal: protection holds. Method: the same loan with a minimum run time, without any stop allowed, and with
/// one stop in ten seconds.
#[test]
fn protected_work_stays() {
    let stops = |settings: Value| {
        let mut scenario = lent();
        for (name, value) in settings.as_object().expect("a table") {
            scenario["settings"]["rebalance"][name] = value.clone();
        }
        kinds(&report(&scenario), "stop").iter().map(|(at, ..)| *at).collect::<Vec<f64>>()
    };
    assert_eq!(stops(json!({"minimum_run": 12})), [12.0, 12.0, 12.0]);
    assert_eq!(stops(json!({"stops_per_task": 0})), Vec::<f64>::new());
    assert_eq!(stops(json!({"stops_per_second": 0.1, "stops_saved_up": 1})).first(), Some(&5.0));
    assert!(stops(json!({"stops_per_second": 0.1, "stops_saved_up": 1})).len() < 4);
}

/// Goal: work that is not preemptible is never stopped for others, whatever the cause, and says so. Method: the
/// loan, a higher band and a queue below its share, each against such work.
#[test]
fn firm_work_stays_for_every_cause() {
    let mut loan = lent();
    loan["jobs"][1]["preemptible"] = json!(false);
    assert_eq!(kinds(&report(&loan), "stop"), []);
    for preemptible in [true, false] {
        let report = report(&json!({
            "settings": {"window": 0, "queue_key": "dominant", "protected_fraction": 0.0,
                         "queues": [{"name": "a"}, {"name": "b"}],
                         "bands": {"normal": 10, "production": 100}, "strict_bands": ["production"],
                         "rebalance": {"higher": true}},
            "nodes": [{"name": "n", "capacity": {"cpu": 4}}],
            "jobs": [{"name": "first", "queue": "a", "lifetime": 0, "preemptible": preemptible, "tasks": 4,
                      "request": {"cpu": 1}},
                     {"name": "second", "queue": "b", "tasks": 2, "request": {"cpu": 1}},
                     {"name": "urgent", "band": "production", "tasks": 1, "request": {"cpu": 1}}],
            "running": [{"job": "first", "count": 4}],
        }));
        assert_eq!(kinds(&report, "stop").is_empty(), !preemptible, "{report}");
    }
}

/// Goal: a strict band takes from lower ones only when that is enabled, no more than it needs, the newest
/// first, and a task that could not start anyway costs nobody anything. Method: one node, three tasks.
#[test]
fn higher_work_takes_the_least_it_can() {
    let scenario = |higher: bool, cpu: u64| {
        json!({
            "settings": {"window": 0, "bands": {"normal": 10, "production": 100},
                         "strict_bands": ["production"], "rebalance": {"higher": higher}},
            "nodes": [{"name": "n", "capacity": {"cpu": 4}}],
            "jobs": [{"name": "small", "tasks": 2, "request": {"cpu": 1}},
                     {"name": "large", "tasks": 1, "request": {"cpu": 2}},
                     {"name": "urgent", "band": "production", "tasks": 1, "request": {"cpu": cpu}}],
            "running": [{"job": "small", "group": "tasks", "role": "task", "count": 2},
                        {"job": "large", "group": "tasks", "role": "task", "count": 1}],
        })
    };
    let stopped = |higher, cpu| {
        let report = report(&scenario(higher, cpu));
        let stops: Vec<String> = kinds(&report, "stop").into_iter().map(|(_, job, _)| job).collect();
        (stops, kinds(&report, "assign").len())
    };
    assert_eq!(stopped(false, 2), (vec![], 0));
    assert_eq!(stopped(true, 2), (vec!["large".to_owned()], 1));
    assert_eq!(stopped(true, 5), (vec![], 0), "it would not fit on an empty node either");
    assert_eq!(stopped(true, 4).0.len(), 3);
}

/// Goal: lower work is not placed only to be stopped in the same breath. Method: of two nodes one is free, lower work
/// waits for it, and urgent work needs both at once.
#[test]
fn nothing_is_placed_only_to_be_stopped() {
    let scenario = json!({
        "settings": {"window": 0, "bands": {"normal": 10, "production": 100},
                     "strict_bands": ["production"], "rebalance": {"higher": true}},
        "nodes": [{"name": "n", "count": 2, "capacity": {"slot": 1}}],
        "jobs": [{"name": "old", "tasks": 1, "request": {"slot": 1}},
                 {"name": "low", "tasks": 1, "request": {"slot": 1}},
                 {"name": "urgent", "band": "production", "groups": [{"name": "g", "start": "atomic",
                  "roles": [{"name": "r", "min": 2, "max": 2, "request": {"slot": 1}}]}]}],
        "running": [{"job": "old", "group": "tasks", "role": "task", "count": 1}],
    });
    let report = report(&scenario);
    let jobs = |kind| kinds(&report, kind).into_iter().map(|(_, job, _)| job).collect::<Vec<String>>();
    assert_eq!((jobs("stop"), jobs("assign")), (vec!["old".to_owned()], vec!["urgent".to_owned(); 2]));
}

/// Goal: a queue below its fair share takes what is older than its lifetime from a queue above, down to what is
/// fair and not further; what has no lifetime stays. Method: one node of 32 cores, full of one queue.
#[test]
fn queues_take_back_their_fair_share() {
    let scenario = |lifetime: Value| {
        json!({
            "settings": {"window": 0, "queue_key": "dominant", "protected_fraction": 1.0,
                         "queues": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]},
            "nodes": [{"name": "n", "capacity": {"cpu": 32}}],
            "jobs": [{"name": "first", "queue": "a", "lifetime": lifetime, "tasks": 32, "request": {"cpu": 1}},
                     {"name": "second", "queue": "b", "tasks": 32, "request": {"cpu": 1}}],
            "running": [{"job": "first", "group": "tasks", "role": "task", "count": 32}],
        })
    };
    let fair = report(&scenario(json!(0)));
    assert_eq!((kinds(&fair, "stop").len(), kinds(&fair, "assign").len()), (16, 16), "{fair}");
    let firm = report(&scenario(Value::Null));
    assert_eq!((kinds(&firm, "stop").len(), kinds(&firm, "assign").len()), (0, 0), "{firm}");
}

/// Goal: work is not taken if that would not improve fairness. Method: a job that needs the whole node is
/// more than the fair share of its queue.
#[test]
fn a_job_larger_than_the_fair_share_takes_nothing() {
    let report = report(&json!({
        "settings": {"window": 0, "queue_key": "dominant", "protected_fraction": 0.0,
                     "queues": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]},
        "nodes": [{"name": "n", "capacity": {"cpu": 32}}],
        "jobs": [{"name": "first", "queue": "a", "lifetime": 0, "tasks": 32, "request": {"cpu": 1}},
                 {"name": "second", "queue": "b", "tasks": 1, "request": {"cpu": 32}}],
        "running": [{"job": "first", "group": "tasks", "role": "task", "count": 32}],
    }));
    assert_eq!(kinds(&report, "stop"), []);
}

/// Goal: what waits says who would go for it and when, and that nobody may while they are protected. Method: the
/// loan before the gate has opened, with and without a minimum run time, and a task that no band helps.
#[test]
fn what_waits_says_who_would_go_for_it() {
    let outlook = |change: &dyn Fn(&mut Value)| {
        let mut scenario = lent();
        scenario["until"] = json!(3);
        change(&mut scenario);
        let report = report(&scenario);
        let waiting = report["waiting"][0].clone();
        (waiting["explanation"]["gate"].clone(), waiting["sentence"].as_str().unwrap_or_default().to_owned())
    };
    let (gate, sentence) = outlook(&|_| {});
    assert_eq!(gate["would"]["victims"].as_array().map(Vec::len), Some(1), "{gate}");
    assert_eq!((&gate["would"]["at_once"], &gate["would"]["from"]), (&json!(false), &json!(5_000_000)));
    assert!(sentence.contains("1 running task would go for it at 5.000"), "{sentence}");
    let (gate, _) = outlook(&|all| {
        all["settings"]["classes"][0]["percent"] = json!(1);
        all["settings"]["classes"][1]["percent"] = json!(99);
    });
    assert!(gate["nobody"].is_object(), "its class is entitled to nothing: {gate}");
    let (gate, sentence) = outlook(&|all| {
        all["until"] = json!(7);
        all["settings"]["rebalance"]["stops_per_second"] = json!(0.1);
        all["settings"]["rebalance"]["stops_saved_up"] = json!(1);
    });
    assert_eq!(gate["would"]["at_once"], json!(false), "the rate is used up: {gate}");
    assert!(sentence.contains("would go for it at 15.000"), "{sentence}");
    let (gate, sentence) = outlook(&|all| all["settings"]["rebalance"]["minimum_run"] = json!(60));
    assert!(gate["nobody"]["until"].is_number(), "{gate}");
    assert!(sentence.contains("nobody who runs may go for it before"), "{sentence}");
    let (gate, _) = outlook(&|all| all["settings"]["rebalance"]["threshold"] = json!(0));
    assert_eq!(gate, Value::Null, "nothing is ever taken away");
}

/// Goal: the newest start goes first, as the file says when each started. Method: two tasks on two nodes.
#[test]
fn the_newest_start_goes_first() {
    for (old, new) in [("a", "b"), ("b", "a")] {
        let task = |node: &str, started: f64| json!({"job": "low", "node": node, "started": started});
        let report = report(&json!({
            "now": 100.0,
            "settings": {"window": 0, "bands": {"normal": 10, "production": 100},
                         "strict_bands": ["production"], "rebalance": {"higher": true, "minimum_run": 20}},
            "nodes": [{"name": "a", "capacity": {"cpu": 1}}, {"name": "b", "capacity": {"cpu": 1}}],
            "jobs": [{"name": "low", "tasks": 2, "request": {"cpu": 1}},
                     {"name": "urgent", "band": "production", "tasks": 1, "request": {"cpu": 1}}],
            "running": [task(old, 10.0), task(new, 70.0)],
        }));
        let stops =
            report["decisions"].as_array().expect("a list").iter().filter(|one| one["kind"] == "stop");
        let nodes: Vec<&Value> = stops.map(|one| &one["node"]).collect();
        assert_eq!(nodes, [new], "{report}");
    }
}

/// Goal: a node that shrinks loses work in the same order: lower bands first, then the newest, and no more than
/// has to go. Method: three tasks, of which the oldest is of the lowest band and the newest of the highest.
#[test]
fn a_node_that_shrinks_loses_the_lower_band_first() {
    let report = report(&json!({
        "now": 100.0, "until": 120,
        "settings": {"window": 0, "bands": {"normal": 10, "production": 100}, "strict_bands": ["production"],
                     "rebalance": {"minimum_run": 1000}},
        "nodes": [{"name": "n", "capacity": {"cpu": 3}}],
        "jobs": [{"name": "low", "tasks": 2, "request": {"cpu": 1}},
                 {"name": "high", "band": "production", "tasks": 1, "request": {"cpu": 1}}],
        "running": [{"job": "low", "started": 10.0}, {"job": "low", "started": 20.0},
                    {"job": "high", "started": 90.0}],
        "events": [{"at": 110.0, "node": {"name": "n", "capacity": {"cpu": 2}}},
                   {"at": 111.0, "node": {"name": "n", "capacity": {"cpu": 1}}}],
    }));
    let decisions = report["decisions"].as_array().expect("a list").iter();
    let stops: Vec<(&Value, &Value)> =
        decisions.filter(|one| one["kind"] == "stop").map(|one| (&one["job"], &one["task"])).collect();
    assert_eq!(stops, [(&json!("low"), &json!(1)), (&json!("low"), &json!(0))], "{report}");
}
