//! Sets of hosts without end to what may happen: whatever can run at all runs in the end.

use fastrand::Rng;
use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

const HOSTS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const SETS: usize = 14;

/// Everything arrives, is cancelled or lost, and comes back before this.
const TROUBLE: f64 = 60.0;

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

/// For each member the hosts that will do, as bits.
fn draw_members(rng: &mut Rng) -> Vec<u8> {
    let members = rng.usize(1..=HOSTS.len());
    (0..members).map(|_| rng.u8(1..1 << HOSTS.len()) & rng.u8(1..1 << HOSTS.len())).collect()
}

/// Whether each member can have a host of its own, by trying every host for every member.
fn is_possible(members: &[u8], taken: u8) -> bool {
    let Some((hosts, rest)) = members.split_first() else { return true };
    (0..HOSTS.len())
        .map(|host| 1 << host)
        .any(|host| hosts & host != 0 && taken & host == 0 && is_possible(rest, taken | host))
}

fn set(name: &str, members: &[u8], rng: &mut Rng) -> Value {
    let duration = f64::from(rng.u32(1..12));
    let role = |(index, hosts): (usize, &u8)| {
        let named = HOSTS.iter().enumerate().filter(|(host, _)| hosts & (1 << host) != 0);
        let named: Vec<&str> = named.map(|(_, name)| *name).collect();
        let will_do = match named.is_empty() {
            true => "node.labels.host == none".to_owned(),
            false => format!("node.labels.host in ({})", named.join(", ")),
        };
        json!({"name": format!("r{index}"), "max": 1, "request": {"slot": 1}, "duration": duration,
               "constraints": [will_do]})
    };
    let roles: Vec<Value> = members.iter().enumerate().map(role).collect();
    let band = ["low", "medium", "normal", "high", "urgent"][rng.usize(0..5)];
    let pool = if rng.bool() { "same" } else { "any" };
    json!({"name": name, "band": band, "priority": rng.i32(0..3),
           "groups": [{"name": "g", "start": "atomic", "pool": pool, "roles": roles}]})
}

/// A dry run, and the jobs in it that can run on all hosts and those that cannot.
struct Drawn {
    scenario: Value,
    possible: Vec<String>,
    impossible: Vec<String>,
}

/// Hosts that go and come back, sets that come in any order and are cancelled now and then, and single tasks that
/// would always find a host before a set does.
fn draw(rng: &mut Rng) -> Drawn {
    let pools = if rng.bool() { 1 } else { 2 };
    let node = |(index, host): (usize, &&str)| {
        json!({"name": host, "capacity": {"slot": 1}, "labels": {"host": host},
               "pool": format!("lab-{}", index % pools)})
    };
    let nodes: Vec<Value> = HOSTS.iter().enumerate().map(node).collect();
    let mut events: Vec<(f64, Value)> = Vec::new();
    let (mut possible, mut impossible) = (Vec::new(), Vec::new());
    for index in 0..SETS {
        let (name, members) = (format!("set-{index}"), draw_members(rng));
        let at = f64::from(rng.u32(0..40));
        let set = set(&name, &members, rng);
        let in_one_pool = |pool: usize| {
            let hosts = (0..HOSTS.len()).filter(|host| host % pools == pool);
            let hosts = hosts.fold(0, |all, host| all | 1 << host);
            let there: Vec<u8> = members.iter().map(|member| member & hosts).collect();
            is_possible(&there, 0)
        };
        let can_run = match set["groups"][0]["pool"] == "same" {
            true => (0..pools).any(in_one_pool),
            false => is_possible(&members, 0),
        };
        events.push((at, json!({"submit": set})));
        let cancelled = rng.u8(0..6) == 0;
        if cancelled {
            events.push((at + f64::from(rng.u32(0..20)), json!({"cancel": {"job": name}})));
        }
        match can_run {
            true if cancelled => {}
            true => possible.push(name),
            false => impossible.push(name),
        }
    }
    for single in 0..30 {
        let role = json!({"name": "r", "max": 1, "request": {"slot": 1}, "duration": rng.u32(1..9)});
        let job = json!({"name": format!("single-{single}"), "band": "normal",
                         "groups": [{"name": "g", "roles": [role]}]});
        events.push((f64::from(rng.u32(0..50)), json!({"submit": job})));
        possible.push(format!("single-{single}"));
    }
    for _ in 0..rng.usize(0..5) {
        let (host, at) = (HOSTS[rng.usize(0..HOSTS.len())], f64::from(rng.u32(0..50)));
        let back = (at + f64::from(rng.u32(1..20))).min(TROUBLE);
        let state = ["down", "suspect"][rng.usize(0..2)];
        events.push((at, json!({"node": {"name": host, "liveness": state}})));
        events.push((back, json!({"node": {"name": host, "liveness": "ready"}})));
    }
    // Whoever went last may have come back before: everybody is there in the end.
    events.extend(HOSTS.map(|host| (TROUBLE, json!({"node": {"name": host, "liveness": "ready"}}))));
    events.sort_by(|one, other| one.0.total_cmp(&other.0));
    let events: Vec<Value> = events
        .into_iter()
        .map(|(at, mut event)| {
            event["at"] = json!(at);
            event
        })
        .collect();
    let claim_after = [0.0, 1.0, 10.0][rng.usize(0..3)];
    let scenario = json!({
        "config": "beaker", "until": 5_000, "nodes": nodes, "jobs": [], "events": events,
        "settings": {"claim_after": claim_after, "on_unsatisfiable": "wait", "window": 0},
    });
    Drawn { scenario, possible, impossible }
}

/// Goal: whatever can run on all hosts runs in the end, in whatever order sets come and go and hosts are lost, and
/// nothing else does. Method: drawn sets of up to six hosts; what can run is found by trying every host for every
/// member.
#[test]
fn every_set_that_can_run_runs_in_the_end() {
    let (mut ran, mut unable) = (0, 0);
    for seed in 0..150 {
        let Drawn { scenario, possible, impossible } = draw(&mut Rng::with_seed(seed));
        let report = report(&scenario);
        let waiting: Vec<&str> = report["waiting"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|group| group["job"].as_str().expect("a name"))
            .collect();
        for job in &possible {
            assert!(!waiting.contains(&job.as_str()), "seed {seed}: {job} waits for ever: {scenario:#}");
        }
        let started = report["summary"]["assigned_by_job"].as_object().expect("a table");
        assert!(possible.iter().all(|job| started.contains_key(job)), "seed {seed}: {scenario:#}");
        assert!(!impossible.iter().any(|job| started.contains_key(job)), "seed {seed}: {scenario:#}");
        (ran, unable) = (ran + possible.len(), unable + impossible.len());
    }
    assert!(ran > 5_000 && unable > 200, "{ran} ran, {unable} cannot");
}
