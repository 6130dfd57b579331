//! Explanations that name the share, the limit and the band, and are true: what they say would let a task
//! run does so when it happens.

use fastrand::Rng;
use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

fn waiting<'a>(report: &'a Value, job: &str) -> &'a Value {
    let mut waiting = report["waiting"].as_array().expect("a list").iter();
    waiting.find(|group| group["job"] == json!(job)).unwrap_or_else(|| panic!("{job} waits: {report}"))
}

/// Classes that fill a cluster of one-slot workers: percent, running and waiting tasks of each.
fn full(classes: &[(String, u64, u64, u64)]) -> Value {
    let class = |(name, percent, ..): &(String, u64, u64, u64)| {
        let requestors = [format!("^{name}$")];
        json!({"name": name, "percent": percent, "requestors": requestors})
    };
    let settings: Vec<Value> = classes.iter().map(class).collect();
    let job = |(name, _, running, waiting): &(String, u64, u64, u64)| {
        let tasks = running + waiting;
        json!({"name": name, "requestor": name, "tasks": tasks, "request": {"slot": 1}})
    };
    let some = |(_, _, running, waiting): &&(String, u64, u64, u64)| running + waiting > 0;
    let runs = |class: &(String, u64, u64, u64)| {
        let (name, _, running, _) = class;
        json!({"job": name, "group": "tasks", "role": "task", "count": running})
    };
    let workers: u64 = classes.iter().map(|(_, _, running, _)| running).sum();
    json!({
        "config": "scoot",
        "settings": {"window": 0, "classes": settings, "default_class": classes[0].0},
        "nodes": [{"name": "w", "count": workers, "capacity": {"slot": 1}}],
        "jobs": classes.iter().filter(some).map(job).collect::<Vec<_>>(),
        "running": classes.iter().filter(|class| class.2 > 0).map(runs).collect::<Vec<_>>(),
    })
}

/// Goal: the sentence says how far a class is from its share and what it waits for.
#[test]
fn a_class_above_its_share_says_what_it_waits_for() {
    let class = |name: &str, percent, running, waiting| (name.to_owned(), percent, running, waiting);
    let report = report(&full(&[class("land", 70, 7, 0), class("batch", 30, 6, 2), class("idle", 0, 0, 1)]));
    let batch = waiting(&report, "batch");
    let sentence = batch["sentence"].as_str().expect("a text");
    let expected = "class batch is 3 above its share of 3; next in line after land finishes one";
    assert!(sentence.contains(expected), "{sentence}");
    assert_eq!(batch["explanation"]["share"]["next"], json!({"after": {"class": "land"}}));
    let idle = waiting(&report, "idle")["sentence"].as_str().expect("a text");
    assert!(idle.contains("class idle has 0 percent and gets only what nobody else can use"), "{idle}");
}

/// Goal: whoever is kept by a limit is told that, and not whose end would let it start, and is in nobody's way.
/// Method: a class at its cap, and one that waits beside it on a full cluster.
#[test]
fn a_class_at_its_cap_waits_for_nobody_and_keeps_nobody_waiting() {
    let class = |name: &str, percent, running, waiting| (name.to_owned(), percent, running, waiting);
    let mut scenario = full(&[class("capped", 70, 2, 3), class("other", 30, 6, 2)]);
    scenario["settings"]["classes"][0]["cap"] = json!({"slot": 2});
    let report = report(&scenario);
    let capped = waiting(&report, "capped");
    let sentence = capped["sentence"].as_str().expect("a text");
    assert!(sentence.contains("class capped would exceed its cap of 2 slot by 1"), "{sentence}");
    assert_eq!(capped["explanation"]["share"]["next"], json!(null), "{sentence}");
    let other = &waiting(&report, "other")["explanation"]["share"]["next"];
    assert_eq!(*other, json!({"after": {"class": "other"}}), "what ends of the other makes room for itself");
}

/// Goal: what an explanation says would let a task start does so. Method: drawn clusters that are full; of
/// every class that names another, a task of that one ends, and the next to start is of the class that
/// waited. One that names who goes first is not served when a task of its own ends.
#[test]
fn what_a_class_waits_for_lets_it_start() {
    let mut rng = Rng::with_seed(7);
    let (mut after, mut behind) = (0, 0);
    for _ in 0..60 {
        let classes: Vec<(String, u64, u64, u64)> = (0..rng.usize(2..5))
            .map(|at| (format!("c{at}"), rng.u64(1..60), rng.u64(0..8), rng.u64(0..3)))
            .collect();
        if classes.iter().all(|class| class.2 == 0) {
            continue;
        }
        let scenario = full(&classes);
        let before = report(&scenario);
        assert_eq!(before["decisions"], json!([]), "the cluster is full");
        for group in before["waiting"].as_array().expect("a list") {
            let (own, next) = (&group["job"], &group["explanation"]["share"]["next"]);
            let ended = match (&next["after"]["class"], &next["behind"]["share"]) {
                (Value::String(class), _) => class.clone(),
                (_, Value::String(_)) => own.as_str().expect("a name").to_owned(),
                _ => panic!("a class above 0 percent knows whose turn it is: {group}"),
            };
            let mut scenario = scenario.clone();
            scenario["events"] = json!([{"at": 1.0, "finish": {"job": ended}}]);
            if !next["after"].is_null() {
                after += 1;
                assert_eq!(report(&scenario)["decisions"][0]["job"], *own, "{group}");
            } else if classes.iter().any(|class| json!(class.0) == *own && class.2 > 0) {
                behind += 1;
                assert_ne!(report(&scenario)["decisions"][0]["job"], *own, "{group}");
            }
        }
    }
    assert!(after > 40 && behind > 0, "{after} {behind}");
}

fn queues(settings: Value, jobs: Value, cpus: u64) -> Value {
    let mut settings = settings;
    settings["window"] = json!(0);
    json!({"settings": settings, "nodes": [{"name": "n", "capacity": {"cpu": cpus}}], "jobs": jobs})
}

/// Goal: every limit is named as what it is, also where there is room.
#[test]
fn limits_are_named() {
    let job =
        |name: &str, tasks: u64| json!({"name": name, "queue": "a", "tasks": tasks, "request": {"cpu": 1}});
    let over = |limit: &str, over: &str| {
        let asked = "1";
        json!({"kind": "cpu", "limit": limit, "over": over, "asked": asked, "ever": true})
    };
    let cases = [
        (
            json!({"queues": [{"name": "a", "quota": {"cpu": 1}}]}),
            json!({"quota": {"queue": "a", "by": over("1", "1")}}),
        ),
        (
            json!({"queues": [{"name": "a"}], "share_unit": "weighted",
                   "classes": [{"name": "c", "percent": 100, "cap": {"cpu": 1}}]}),
            json!({"cap": {"class": "c", "by": over("1", "1")}}),
        ),
        (
            json!({"queues": [{"name": "a"}], "rates": {"scheduling": {"per_second": 1.0, "burst": 1}}}),
            json!({"rate": {"until": 1_000_000}}),
        ),
    ];
    for (settings, limit) in cases {
        let mut scenario = queues(settings, json!([job("j", 2)]), 8);
        scenario["until"] = json!(0.5);
        let report = report(&scenario);
        assert_eq!(waiting(&report, "j")["explanation"]["reason"], json!({"limited": limit}));
    }
}

/// Goal: a queue says how it stands in what queues are compared by, also where no node has slots.
#[test]
fn a_queue_stands_against_its_fair_share_in_its_own_measure() {
    for (key, expected) in
        [("flow", "queue a is 2 above its share of 4"), ("dominant", "25% above its share of 50%")]
    {
        let settings = json!({"queue_key": key, "queues": [{"name": "a"}, {"name": "b"}]});
        let job = |queue: &str, tasks: u64| {
            let request = json!({"cpu": 1});
            json!({"name": queue, "queue": queue, "tasks": tasks, "request": request})
        };
        let report = report(&queues(settings, json!([job("a", 9), job("b", 2)]), 8));
        let sentence = waiting(&report, "a")["sentence"].as_str().expect("a text");
        assert!(sentence.contains(expected), "{sentence}");
    }
}

/// Goal: a limit does not hide what is in the way besides, and what it never allows is told. Method: a queue that
/// has its quota on a node that is full, and one job that asks for more than the quota and than any node has.
#[test]
fn what_is_in_the_way_besides_a_limit_is_told_too() {
    let job = |name: &str, cpu: u64| json!({"name": name, "queue": "a", "tasks": 2, "request": {"cpu": cpu}});
    let settings = || json!({"queues": [{"name": "a", "quota": {"cpu": 1}}]});
    let jobs = || json!([job("small", 1), job("large", 9)]);
    let report = report(&queues(settings(), jobs(), 1));
    let sentence = |job: &str| waiting(&report, job)["sentence"].as_str().expect("a text").to_owned();
    let besides = "would exceed its quota of 1 cpu by 1 until so much of it ends; besides, no node has room now (of 1 \
                   nodes 1 lack cpu)";
    assert!(sentence("small").contains(besides), "{}", sentence("small"));
    let limit = "besides, it asks for 9 cpu, and queue a never has more than its quota of 1";
    assert!(sentence("large").contains(limit), "{}", sentence("large"));
    let nearest = "nearest: 9 more cpu on node n, once the limit allows it";
    assert!(sentence("large").ends_with(nearest), "{}", sentence("large"));
    let free = self::report(&queues(settings(), jobs(), 8));
    assert_eq!(waiting(&free, "small")["explanation"]["besides"], json!(null), "there is room for it");
    // Both changes together let it run, each alone does not.
    let runs = |quota: u64, cpus: u64| {
        let settings = json!({"queues": [{"name": "a", "quota": {"cpu": quota}}]});
        let report = self::report(&queues(settings, json!([job("small", 1), job("large", 9)]), cpus));
        let decisions = report["decisions"].as_array().expect("a list").iter();
        decisions.filter(|decision| decision["job"] == "large").count()
    };
    assert_eq!((runs(1, 11), runs(11, 2), runs(11, 11)), (0, 0, 1));
}

/// Goal: how many are ahead counts what is served before: higher bands, and in its own queue whoever is
/// before it. Method: a full node and jobs of several bands and priorities.
#[test]
fn tasks_ahead_are_those_that_are_served_before() {
    let settings = json!({"queues": [{"name": "a"}, {"name": "b"}], "queue_key": "flow",
                          "bands": {"normal": 1, "high": 2}, "strict_bands": ["high"]});
    let job = |name: &str, queue: &str, tasks: u64, more: Value| {
        let mut job = json!({"name": name, "queue": queue, "tasks": tasks, "request": {"cpu": 1}});
        more.as_object().expect("fields").iter().for_each(|(field, value)| job[field] = value.clone());
        job
    };
    let jobs = json!([
        job("runs", "a", 1, json!({})),
        job("late", "a", 1, json!({})),
        job("urgent", "a", 2, json!({"priority": 5})),
        job("other", "b", 4, json!({})),
        job("high", "b", 3, json!({"band": "high"})),
    ]);
    let mut scenario = queues(settings, jobs, 1);
    scenario["running"] = json!([{"job": "runs", "group": "tasks", "role": "task"}]);
    let report = report(&scenario);
    for (job, ahead) in [("late", 5), ("urgent", 3), ("other", 3), ("high", 0)] {
        assert_eq!(waiting(&report, job)["explanation"]["ahead"], json!(ahead), "{job}");
    }
    let next = |job: &str| waiting(&report, job)["explanation"]["share"]["next"].clone();
    assert_eq!((next("late"), next("high")), (json!({"bands": {"tasks": 3}}), json!("own")));
    assert_eq!(waiting(&report, "high")["explanation"]["share"]["band"], json!("high"));
}
