//! Who gets the next free capacity, through dry runs: classes by entitlement and loan, queues by flow and
//! dominant share, jobs by what they are compared by, and limits.
//!
//! `tests/shares/classes.json` holds clusters of one-slot workers: for each class its percent, how many of
//! its tasks run and how many wait, and how many of each class above 0% start on what is idle. What was not
//! taken is listed in `tests/shares/NOT_TAKEN.md`.

use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

/// The names of the jobs in the order in which their tasks were placed.
fn order(report: &Value) -> Vec<&str> {
    let decisions = report["decisions"].as_array().expect("a list");
    decisions.iter().map(|decision| decision["job"].as_str().expect("a name")).collect()
}

fn cluster_of_classes(case: &Value) -> Value {
    let list = case["classes"].as_array().expect("a list");
    let classes: Vec<Value> = list
        .iter()
        .map(|class| json!({"name": class[0], "percent": class[1], "requestors": [class[0]]}))
        .collect();
    let tasks = |class: &Value| class[2].as_u64().expect("a number") + class[3].as_u64().expect("a number");
    let jobs: Vec<Value> = list
        .iter()
        .filter(|class| tasks(class) > 0)
        .map(|class| {
            let tasks = tasks(class);
            json!({"name": class[0], "requestor": class[0], "tasks": tasks, "request": {"slot": 1}})
        })
        .collect();
    let running: Vec<Value> = list
        .iter()
        .filter(|class| class[2].as_u64() > Some(0))
        .map(|class| json!({"job": class[0], "group": "tasks", "role": "task", "count": class[2]}))
        .collect();
    json!({
        "config": "scoot",
        "settings": {"window": 0, "classes": classes, "default_class": list[0][0]},
        "nodes": [{"name": "w", "count": case["workers"], "capacity": {"slot": 1}}],
        "jobs": jobs,
        "running": running,
    })
}

/// Goal: idle workers are divided as the percents say, whatever the classes have and want. Method: many
/// clusters with known answers; what is left over goes to the classes of 0%.
#[test]
fn classes_get_what_they_are_entitled_to_and_borrow_the_rest() {
    let cases = cases(include_str!("shares/classes.json"));
    assert!(cases.len() > 100, "the cases are there");
    cases.iter().for_each(|case| check_division(case, 1_024));
}

/// Goal: a batch of idle workers is divided once, also if it takes many turns to place what was granted, and the
/// gate is told meanwhile how the classes stand. Method: the smaller ones of the same clusters, seven tasks a turn.
#[test]
fn what_was_granted_holds_until_it_is_placed() {
    let cases = cases(include_str!("shares/classes.json"));
    let small = cases.iter().filter(|case| case["workers"].as_u64() <= Some(100));
    small.for_each(|case| check_division(case, 7));
}

fn cases(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("the file can be read")
}

fn check_division(case: &Value, placements_per_turn: u64) {
    let mut scenario = cluster_of_classes(case);
    scenario["settings"]["limits"] = json!({"placements_per_turn": placements_per_turn});
    let report = report(&scenario);
    let started = &report["summary"]["assigned_by_class"];
    let count = |class: &str| started[class].as_u64().unwrap_or(0);
    for (class, expected) in case["starts"].as_object().expect("counts by class") {
        assert_eq!(json!(count(class)), *expected, "{class} of {}: {started}", case["name"]);
    }
    let list = case["classes"].as_array().expect("a list");
    let sum = |at: usize| -> u64 { list.iter().map(|class| class[at].as_u64().expect("a number")).sum() };
    let idle = case["workers"].as_u64().expect("a number") - sum(2);
    let all: u64 = list.iter().map(|class| count(class[0].as_str().expect("a name"))).sum();
    assert_eq!(all, idle.min(sum(3)), "no worker stays idle in {}", case["name"]);
}

fn queues(settings: Value, jobs: Value, cpus: u64) -> Value {
    let mut settings = settings;
    settings["window"] = json!(0);
    json!({"settings": settings, "nodes": [{"name": "n", "capacity": {"cpu": cpus, "memory": "64Gi"}}], "jobs": jobs})
}

/// Goal: the queue whose use, with the job it would start, is smallest for its weight goes first. Method:
/// two queues, one with twice the weight.
#[test]
fn queues_share_by_weight() {
    for key in ["flow", "dominant"] {
        let settings = json!({"queue_key": key, "queues": [{"name": "a", "weight": 2.0}, {"name": "b"}]});
        let job = |queue: &str| json!({"name": queue, "queue": queue, "tasks": 12, "request": {"cpu": 1}});
        let report = report(&queues(settings, json!([job("b"), job("a")]), 12));
        assert_eq!(report["summary"]["assigned_by_queue"], json!({"a": 8, "b": 4}), "{key}");
        assert_eq!(order(&report)[..3], ["a", "b", "a"], "{key}");
    }
}

/// Goal: inside a queue the band counts first, then the priority, then when it should be finished, then
/// the arrival.
#[test]
fn jobs_of_a_queue_go_by_band_priority_deadline_and_arrival() {
    let settings = json!({"bands": {"normal": 10, "high": 20}});
    let job = |name: &str, more: Value| {
        let mut job = json!({"name": name, "tasks": 1, "request": {"cpu": 1}});
        more.as_object().expect("fields").iter().for_each(|(field, value)| job[field] = value.clone());
        job
    };
    let jobs = json!([
        job("first", json!({})),
        job("second", json!({})),
        job("soon", json!({"finish_by": 5.0})),
        job("later", json!({"finish_by": 9.0})),
        job("urgent", json!({"priority": 1})),
        job("idle", json!({"priority": -1})),
        job("high", json!({"band": "high", "priority": -5})),
    ]);
    let report = report(&queues(settings, jobs, 16));
    assert_eq!(order(&report), ["high", "urgent", "soon", "later", "first", "second", "idle"]);
}

/// Goal: a strict band goes before any share, also across classes. Method: a class of 99% and one of 1%
/// whose job is in the strict band.
#[test]
fn a_strict_band_goes_before_any_share() {
    let settings = json!({
        "classes": [{"name": "big", "percent": 99, "requestors": ["big"]},
                    {"name": "small", "percent": 1, "requestors": ["small"]}],
        "share_unit": "weighted", "bands": {"normal": 1, "production": 2}, "strict_bands": ["production"],
    });
    let jobs = json!([
        {"name": "big", "requestor": "big", "tasks": 4, "request": {"cpu": 1}},
        {"name": "small", "requestor": "small", "band": "production", "tasks": 3, "request": {"cpu": 1}},
    ]);
    let report = report(&queues(settings, jobs, 4));
    assert_eq!(order(&report), ["small", "small", "small", "big"]);
}

/// Goal: of the jobs of a class the one with the fewest running tasks goes first, in turn; of a job the
/// task that is expected to run longest.
#[test]
fn the_job_with_the_fewest_running_tasks_goes_first() {
    let role = |name: &str, duration: f64| json!({"name": name, "max": 1, "duration": duration});
    let jobs = json!([
        {"name": "has", "tasks": 3, "request": {"cpu": 1}},
        {"name": "new", "groups": [{"name": "g", "roles": [role("short", 1.0), role("long", 60.0)]}]},
    ]);
    let mut scenario = queues(json!({"job_key": "least_running"}), jobs, 4);
    scenario["running"] = json!([{"job": "has", "group": "tasks", "role": "task", "count": 1}]);
    let report = report(&scenario);
    assert_eq!(order(&report), ["new", "has", "new", "has"]);
    assert_eq!(report["decisions"][0]["role"], json!("long"));
}

/// Goal: a quota keeps work waiting although there is room, lets smaller work pass, and is released when
/// something of the queue ends.
#[test]
fn a_quota_holds_until_something_of_the_queue_ends() {
    let settings = json!({"queues": [{"name": "a", "quota": {"cpu": 2}}]});
    let jobs = json!([
        {"name": "two", "queue": "a", "tasks": 3, "request": {"cpu": 1}},
        {"name": "light", "queue": "a", "tasks": 1, "request": {"memory": "1Gi"}},
        {"name": "other", "tasks": 1, "request": {"cpu": 1}},
    ]);
    let mut scenario = queues(settings, jobs, 8);
    let before = report(&scenario);
    assert_eq!(before["summary"]["assigned_by_job"], json!({"two": 2, "light": 1, "other": 1}));
    scenario["events"] = json!([{"at": 1.0, "finish": {"job": "two", "count": 1}}]);
    assert_eq!(report(&scenario)["summary"]["assigned_by_job"]["two"], json!(3));
}

/// Goal: so many tasks a second and no more, and time alone lets the next one start.
#[test]
fn a_rate_lets_the_next_start_in_time() {
    let settings = json!({"rates": {"scheduling": {"per_second": 1.0, "burst": 2}}});
    let jobs = json!([{"name": "j", "tasks": 4, "request": {"cpu": 1}}]);
    let mut scenario = queues(settings, jobs, 8);
    scenario["until"] = json!(10.0);
    let report = report(&scenario);
    let times: Vec<f64> = report["decisions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|decision| decision["at"].as_f64().expect("a number"))
        .collect();
    assert_eq!(times, [0.0, 0.0, 1.0, 2.0]);
}

/// Goal: work without a lifetime goes no further beyond the fair share of its queue than the factor says,
/// work with one needs a budget, and a lifetime of 0 needs none.
#[test]
fn firm_work_and_long_lives_are_limited_beyond_the_fair_share() {
    let settings = json!({
        "queues": [{"name": "a"}, {"name": "b"}], "non_preemptible_factor": 1.5, "excess_budget": 10.0,
    });
    let job = |name: &str, queue: &str, tasks: u32, lifetime: Value| {
        let request = json!({"cpu": 1});
        json!({"name": name, "queue": queue, "tasks": tasks, "request": request, "lifetime": lifetime})
    };
    let waits = job("other", "b", 1, json!(null));
    let firm = report(&queues(settings.clone(), json!([waits, job("firm", "a", 8, json!(null))]), 8));
    assert_eq!(firm["summary"]["assigned_by_job"], json!({"firm": 6, "other": 1}));
    let long = report(&queues(settings.clone(), json!([waits, job("long", "a", 8, json!(5.0))]), 8));
    assert_eq!(long["summary"]["assigned_by_job"], json!({"long": 6, "other": 1}));
    let none = report(&queues(settings, json!([waits, job("none", "a", 8, json!(0.0))]), 8));
    assert_eq!(none["summary"]["assigned_by_job"], json!({"none": 7, "other": 1}));
}

/// Goal: what firm work used before counts against its queue until it has faded, and what takes its place needs no
/// more than that had. Method: one queue alone has everything and ends. Its next job starts at once while the
/// queue is alone; when another has come, so that its fair share is half, only after the flow has come down to
/// that, times the factor: by half a power of two, or half of the half-time.
#[test]
fn firm_work_is_limited_by_its_flow() {
    let job = |name: &str, queue: &str, cpus: u64| {
        let request = json!({"cpu": cpus});
        json!({"name": name, "queue": queue, "tasks": 1, "request": request})
    };
    let start = |other: bool| {
        let settings = json!({"window": 0, "queue_key": "flow", "half_time": 80.0,
                              "non_preemptible_factor": std::f64::consts::SQRT_2,
                              "queues": [{"name": "a"}, {"name": "b"}]});
        let mut scenario = json!({
            "now": 0.0, "until": 200.0, "settings": settings, "jobs": [job("first", "a", 10)],
            "nodes": [{"name": "n", "capacity": {"cpu": 10}}],
            "running": [{"job": "first", "group": "tasks", "role": "task"}],
            "events": [{"at": 10.0, "finish": {"job": "first"}}],
        });
        let events = scenario["events"].as_array_mut().expect("a list");
        if other {
            events.push(json!({"at": 10.0, "submit": job("other", "b", 1)}));
        }
        events.push(json!({"at": 10.0, "submit": job("next", "a", 5)}));
        let report = report(&scenario);
        let mut decisions = report["decisions"].as_array().expect("a list").iter();
        let next = decisions.find(|one| one["job"] == json!("next"));
        next.and_then(|one| one["at"].as_f64()).unwrap_or_else(|| panic!("it starts: {report}"))
    };
    assert_eq!(start(false), 10.0);
    let faded = 10.0 + 40.0;
    assert!((faded..=faded + 10.0).contains(&start(true)), "{}", start(true));
}

/// Goal: jobs that are compared by run time share by the weights of their bands. Method: two jobs of
/// bands of weight 3 and 1 keep a cluster of four full for a while; every task runs one second.
#[test]
fn run_time_is_shared_by_the_weights_of_the_bands() {
    let settings = json!({"job_key": "run_time", "bands": {"normal": 1, "heavy": 3}});
    let role =
        json!([{"name": "g", "roles": [{"name": "r", "max": 200, "duration": 1.0, "request": {"cpu": 1}}]}]);
    let jobs = json!([
        {"name": "light", "groups": role},
        {"name": "heavy", "band": "heavy", "groups": role},
    ]);
    let mut scenario = queues(settings, jobs, 4);
    scenario["until"] = json!(30.0);
    let report = report(&scenario);
    let count = |job: &str| report["summary"]["assigned_by_job"][job].as_u64().expect("a number");
    assert!(count("heavy") > 2 * count("light"), "{}", report["summary"]["assigned_by_job"]);
    assert!(count("light") > 20, "the light one is served too: {}", count("light"));
}

/// Classes of 100 and of 0 percent on one-slot workers.
fn with_a_class_of_nothing(key: &str, workers: u64, jobs: Value) -> Value {
    json!({
        "config": "scoot",
        "settings": {"window": 0, "share_key": key, "default_class": "main", "classes": [
            {"name": "main", "percent": 60, "requestors": ["^main"]},
            {"name": "more", "percent": 40, "requestors": ["^more"]},
            {"name": "rest", "percent": 0, "requestors": ["^rest"]}]},
        "nodes": [{"name": "w", "count": workers, "capacity": {"slot": 1}}], "jobs": jobs,
    })
}

/// Goal: a class of 0 percent gets what nobody else can use, and nothing of the rest, by whatever key classes
/// are compared; its explanation is true. Method: far more workers than one percent of them would be, and the
/// job of that class came first.
#[test]
fn a_class_of_nothing_gets_only_what_others_leave() {
    let job = |name: &str, tasks: u64| json!({"name": name, "requestor": name, "tasks": tasks, "request": {"slot": 1}});
    for key in ["entitlement", "flow", "dominant", "run_time", "fifo"] {
        let jobs = |main: u64| json!([job("rest", 400), job("main", main), job("more", 30)]);
        let some_left = report(&with_a_class_of_nothing(key, 200, jobs(50)));
        let assigned = &some_left["summary"]["assigned_by_class"];
        assert_eq!(*assigned, json!({"main": 50, "more": 30, "rest": 120}), "{key}");
        let nothing_left = report(&with_a_class_of_nothing(key, 200, jobs(400)));
        let assigned = &nothing_left["summary"]["assigned_by_class"];
        assert_eq!(*assigned, json!({"main": 170, "more": 30}), "{key}");
        let mut waiting = nothing_left["waiting"].as_array().expect("a list").iter();
        let rest = waiting.find(|group| group["job"] == json!("rest")).expect("it waits");
        assert_eq!(rest["explanation"]["share"]["last"], json!(true), "{key}");
    }
}

/// Goal: what nobody else can use goes to the oldest job of the classes of 0 percent, whole, although jobs of
/// other classes take turns; so it is when a class comes to have 0 percent, and not any more when it has some.
/// Method: three jobs of two such classes, and workers that become free one after the other.
#[test]
fn what_others_leave_goes_to_the_oldest_job() {
    let request = json!({"slot": 1});
    let job = |name: &str, who: &str| json!({"name": name, "requestor": who, "tasks": 3, "request": request});
    let jobs = json!([job("old", "rest-1"), job("middle", "more"), job("new", "rest-2")]);
    let percents = |rest: u64, more: u64| {
        json!([{"name": "main", "percent": 100 - rest - more, "requestors": ["^main"]},
               {"name": "more", "percent": more, "requestors": ["^more"]},
               {"name": "rest", "percent": rest, "requestors": ["^rest"]}])
    };
    let started = |before: Value, after: Value| -> Vec<String> {
        let mut scenario = with_a_class_of_nothing("entitlement", 0, jobs.clone());
        scenario["settings"]["classes"] = before;
        let mut events = vec![json!({"at": 1.0, "settings": {"classes": after}})];
        events.extend(
            (2..8).map(|at| json!({"at": at, "node": {"name": format!("w-{at}"), "capacity": {"slot": 1}}})),
        );
        scenario["nodes"] = json!([{"name": "none", "capacity": {"cpu": 1}}]);
        scenario["events"] = json!(events);
        order(&report(&scenario)).into_iter().map(str::to_owned).collect()
    };
    let oldest_first = ["old", "old", "old", "middle", "middle", "middle"];
    assert_eq!(started(percents(0, 0), percents(0, 0)), oldest_first);
    assert_eq!(started(percents(40, 40), percents(0, 0)), oldest_first);
    let in_turn = ["old", "new", "old", "new", "old", "new"];
    assert_eq!(started(percents(0, 0), percents(40, 0)), in_turn);
}

/// Goal: what a class of 0 percent has is the first to go, whoever else has borrowed more and whoever began
/// later.
#[test]
fn a_class_of_nothing_gives_back_first() {
    let job = |name: &str, tasks: u64| json!({"name": name, "requestor": name, "tasks": tasks, "request": {"slot": 1}});
    let run = |name: &str, count: u64, started: f64| {
        let mut running = json!({"job": name, "group": "tasks", "role": "task"});
        (running["count"], running["started"]) = (json!(count), json!(started));
        running
    };
    for (wanted, stopped) in
        [(2, json!({"rest": 2})), (3, json!({"rest": 3})), (5, json!({"rest": 3, "more": 2}))]
    {
        let jobs = json!([job("main", wanted), job("more", 17), job("rest", 3)]);
        let mut scenario = with_a_class_of_nothing("entitlement", 20, jobs);
        scenario["settings"]["rebalance"] = json!({"threshold": 5, "duration": 1.0});
        scenario["running"] = json!([run("rest", 3, 10.0), run("more", 17, 900.0)]);
        (scenario["now"], scenario["until"]) = (json!(1000.0), json!(1100.0));
        let report = report(&scenario);
        assert_eq!(report["summary"]["stopped_by_class"], stopped, "{wanted} wanted");
    }
}

/// Goal: inside a band whoever is to be finished first goes first, however jobs are compared beside that; where
/// bands share by weight it says nothing. Method: equal jobs, of which the ones that came first have more time.
#[test]
fn deadlines_order_jobs_inside_a_band_by_every_key() {
    let job = |name: &str, finish_by: Value| {
        json!({"name": name, "tasks": 2, "band": "production", "finish_by": finish_by,
               "request": {"cpu": 1, "slot": 1}})
    };
    for preset in ["default", "armada", "beaker", "paddle", "scoot"] {
        let production = json!({"bands": {"normal": 1, "production": 2}, "strict_bands": ["production"]});
        let jobs = [job("none", json!(null)), job("late", json!(900.4)), job("soon", json!(900.2))];
        let mut scenario = json!({
            "config": preset, "settings": production, "jobs": jobs,
            "nodes": [{"name": "n", "count": 3, "capacity": {"cpu": 1, "slot": 1}}],
        });
        assert_eq!(order(&report(&scenario)), ["soon", "soon", "late"], "{preset}");
        scenario["settings"]["strict_bands"] = json!([]);
        let expected = if preset == "paddle" { ["none", "late", "soon"] } else { ["soon", "soon", "late"] };
        assert_eq!(order(&report(&scenario)), expected, "{preset} with weights");
    }
}
