//! The nearest thing that would let a group start, checked by planning anew with that change: groups that stay
//! near each other, in one pool or on named nodes, and those that wait because of a claim.

use std::collections::BTreeMap;

use fastrand::Rng;
use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    serde_json::to_value(plan::run(&scenario).expect("it can be played")).expect("a report can be written")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn waiting<'a>(report: &'a Value, job: &str) -> &'a Value {
    let found = list(&report["waiting"]).iter().find(|group| group["job"] == job);
    found.unwrap_or_else(|| panic!("{job} waits: {report}"))
}

/// How the nodes stand for what waits.
fn room<'a>(report: &'a Value, job: &str) -> &'a Value {
    let reason = &waiting(report, job)["explanation"]["reason"];
    let found = ["no_room", "never_fits"].into_iter().find_map(|reason_of| reason.get(reason_of));
    found.unwrap_or_else(|| panic!("it is about nodes: {reason}"))
}

fn placed(report: &Value, job: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let own = |decision: &&Value| decision["job"] == job && decision["kind"] == "assign";
    for decision in list(&report["decisions"]).iter().filter(own) {
        *counts.entry(decision["node"].as_str().expect("a name").to_owned()).or_default() += 1;
    }
    counts
}

/// A cluster of two pools and some racks with something running, and a group that starts as a whole.
fn draw(rng: &mut Rng) -> Value {
    let mut nodes = Vec::new();
    for index in 0..rng.usize(0..7) {
        let mut node = json!({"name": format!("n{index}"), "capacity": {"cpu": rng.u64(0..5)}});
        if rng.bool() {
            node["pool"] = json!("lab");
        }
        if rng.u8(0..4) > 0 {
            node["path"] = json!(format!("b{}/r{}/h{index}", rng.u8(0..2), rng.u8(0..2)));
        }
        if rng.u8(0..8) == 0 {
            node["availability"] = json!("pause");
        }
        nodes.push(node);
    }
    let role = |name: &str, rng: &mut Rng| {
        let mut role = json!({"name": name, "max": rng.u64(1..4), "request": {"cpu": rng.u64(1..4)}});
        match rng.u8(0..8) {
            0 => role["ports"] = json!(["80/tcp"]),
            1 => role["exclusive"] = json!(true),
            2 => (role["service"], role["max_per_node"]) = (json!("web"), json!(1)),
            _ => {}
        }
        role
    };
    let mut roles = vec![role("r", rng)];
    roles.extend(rng.bool().then(|| role("s", rng)));
    let mut group = json!({"name": "g", "start": "atomic"});
    match rng.u8(0..5) {
        0 => group["pool"] = json!("same"),
        1 => group["hops"] = json!(rng.u8(0..6)),
        2 => (group["pool"], group["hops"]) = (json!("same"), json!(2)),
        3 => roles[0]["node"] = json!(format!("n{}", rng.u8(0..4))),
        _ => {}
    }
    group["roles"] = json!(roles);
    let filler = json!({"name": "filler", "tasks": rng.u64(1..5), "request": {"cpu": 1}});
    json!({"settings": {"window": 0}, "nodes": nodes, "jobs": [filler, {"name": "group", "groups": [group]}]})
}

/// What runs of the filler stays where it is, and the rest of it, which is ahead, is left out.
fn settled(scenario: &Value, report: &Value) -> Value {
    let mut scenario = scenario.clone();
    let held = placed(report, "filler");
    let count: u64 = held.values().sum();
    let running = held.iter().map(|(node, count)| json!({"job": "filler", "node": node, "count": count}));
    scenario["running"] = running.collect();
    scenario["jobs"][0]["tasks"] = json!(count);
    if count == 0 {
        scenario["jobs"].as_array_mut().expect("a list").remove(0);
    }
    scenario
}

fn capacity(amounts: &Value) -> BTreeMap<String, u64> {
    let one = |amount: &Value| {
        let count = amount[1].as_str().expect("a text").parse().expect("a whole number");
        (amount[0].as_str().expect("a name").to_owned(), count)
    };
    list(amounts).iter().map(one).collect()
}

/// Makes the change in a scenario that an explanation names.
fn apply(nearest: &Value, scenario: &mut Value) {
    let (kind, change) = nearest.as_object().and_then(|one| one.iter().next()).expect("a change");
    if kind == "all" {
        return list(change).iter().for_each(|change| apply(change, scenario));
    }
    let nodes = scenario["nodes"].as_array_mut().expect("a list");
    let position = nodes.iter().position(|node| node["name"] == change["node"]);
    match kind.as_str() {
        "named_node" => nodes.push(json!({"name": change["node"], "capacity": capacity(&change["request"])})),
        "room" => {
            let node = &mut nodes[position.expect("a node that is there")];
            for (kind, more) in capacity(&change["missing"]) {
                let has = node["capacity"][&kind].as_u64().unwrap_or(0);
                node["capacity"][kind] = json!(has + more);
            }
        }
        "ready" => nodes[position.expect("a node that is there")]["availability"] = json!("active"),
        "suitable" | "several" => {
            let node = &mut nodes[position.expect("a node that is there")];
            // Everything that can be in the way here is gone when it is idle, ready and large.
            node["availability"] = json!("active");
            node["capacity"]["cpu"] = json!(100);
            let name = node["name"].clone();
            let running = scenario["running"].as_array_mut().expect("a list");
            running.retain(|running| running["node"] != name);
            let left: u64 = running.iter().map(|running| running["count"].as_u64().expect("a number")).sum();
            if left == 0 && scenario["jobs"][0]["name"] == "filler" {
                scenario["jobs"].as_array_mut().expect("a list").remove(0);
            } else if left > 0 {
                scenario["jobs"][0]["tasks"] = json!(left);
            }
        }
        "other_nodes" => {
            let place = &change["place"];
            for (number, one) in list(&change["nodes"]).iter().enumerate() {
                for copy in 0..one[0].as_u64().expect("a number") {
                    let name = format!("new-{number}-{copy}");
                    let mut node = json!({"name": name, "capacity": capacity(&one[1])});
                    match (place.as_str(), place.as_object().and_then(|place| place.iter().next())) {
                        (Some("together"), _) => node["path"] = json!("z/z"),
                        (_, Some((at, value))) if at == "pool" || at == "path" => node[at] = value.clone(),
                        (_, Some((at, pool))) if at == "together_in" => {
                            (node["path"], node["pool"]) = (json!("z/z"), pool.clone());
                        }
                        _ => assert!(place.is_null(), "{place}"),
                    }
                    nodes.push(node);
                }
            }
        }
        other => panic!("{other} is not known here"),
    }
}

/// Goal: of a group that starts as a whole, whatever keeps it together, the nearest thing is true, and what is
/// said to find room does not contradict that it waits. Method: random clusters; the change is made and everything
/// planned anew. Nothing is named only where named nodes leave no way, or no choice of place.
#[test]
fn with_the_nearest_thing_a_group_starts() {
    let mut rng = Rng::with_seed(11);
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for round in 0..1_500 {
        let scenario = draw(&mut rng);
        let report_before = report(&scenario);
        if !placed(&report_before, "group").is_empty() {
            continue;
        }
        let group = &scenario["jobs"][1]["groups"][0];
        let (sentence, room) = (&waiting(&report_before, "group")["sentence"], room(&report_before, "group"));
        let is_named = list(&group["roles"]).iter().any(|role| role.get("node").is_some());
        let stays = group.get("hops").is_some() || group.get("pool").is_some();
        let wanted: u64 = list(&group["roles"]).iter().map(|role| role["max"].as_u64().unwrap_or(0)).sum();
        if !stays {
            assert!(room["placeable"].as_u64().expect("a number") < wanted, "round {round}: {sentence}");
        }
        let nearest = &room["nearest"];
        if nearest.is_null() {
            assert!(is_named, "round {round}: {sentence}, {scenario}");
            *kinds.entry("nothing".into()).or_default() += 1;
            continue;
        }
        let mut kind = nearest.as_object().and_then(|one| one.keys().next()).expect("a kind").clone();
        if let Some(place) = nearest["other_nodes"]["place"].as_object() {
            kind = place.keys().next().expect("a place").clone();
        } else if nearest["other_nodes"]["place"] == "together" {
            kind = "together".into();
        }
        *kinds.entry(kind).or_default() += 1;
        let mut changed = settled(&scenario, &report_before);
        apply(nearest, &mut changed);
        let after = report(&changed);
        let count: u64 = placed(&after, "group").values().sum();
        assert_eq!(count, wanted, "round {round}: {sentence}; {scenario} became {changed}");
    }
    for kind in ["other_nodes", "pool", "path", "together", "named_node", "room", "all"] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 4), "{kind} is met: {kinds:?}");
    }
}

/// A gang that waits for two full nodes and has the third to itself.
fn claimed(later: &[Value]) -> Value {
    let mut events = vec![json!({"at": 105, "submit": {"name": "small", "tasks": 3, "request": {"cpu": 1}}})];
    events.extend(later.iter().cloned());
    json!({
        "now": 100, "settings": {"window": 0, "claim_after": 1},
        "nodes": [{"name": "n", "count": 3, "capacity": {"cpu": 4}}],
        "jobs": [
            {"name": "fill", "tasks": 2, "request": {"cpu": 4}},
            {"name": "gang", "submitted": 0, "groups": [{"name": "g", "start": "atomic", "roles": [
                {"name": "r", "max": 3, "request": {"cpu": 3}}]}]},
        ],
        "running": [{"job": "fill", "node": "n-0"}, {"job": "fill", "node": "n-1"}],
        "events": events,
    })
}

/// Goal: what a claim keeps is free in the eyes of its claimant and kept in those of others: nobody is told that
/// a node lacks what it has. Method: a gang with a claim and small work that finds one node kept.
#[test]
fn what_is_kept_is_told_apart_from_what_is_used() {
    let report = report(&claimed(&[]));
    let gang = room(&report, "gang");
    let fails = |room: &Value| {
        let one =
            |count: &Value| (count["filter"].as_str().expect("a name").to_owned(), count["fails"].clone());
        list(&room["filters"]).iter().map(one).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(fails(gang), [("resources".to_owned(), json!(2))].into());
    assert_eq!((&gang["placeable"], &gang["nearest"]["other_nodes"]["nodes"][0][0]), (&json!(1), &json!(2)));
    let small = room(&report, "small");
    assert_eq!(fails(small), [("kept".to_owned(), json!(1)), ("resources".to_owned(), json!(2))].into());
    let sentence = waiting(&report, "small")["sentence"].as_str().expect("a text");
    assert!(sentence.contains("of 3 nodes 2 lack cpu, 1 are kept for others"), "{sentence}");
    assert!(sentence.contains("node n-2 is kept for job"), "{sentence}");
}

/// Goal: both are true: other nodes let the claimant start, and more room on a node whose claim waits for others
/// lets small work run; so does the end of the claim. Method: each change is made by an event.
#[test]
fn beside_a_claim_the_nearest_thing_is_true() {
    let more = json!({"at": 110, "node": {"name": "new-1", "capacity": {"cpu": 3}}});
    let other = json!({"at": 110, "node": {"name": "new-2", "capacity": {"cpu": 3}}});
    let with_one = report(&claimed(std::slice::from_ref(&more)));
    assert!(placed(&with_one, "gang").is_empty(), "one other node is not enough");
    assert_eq!(placed(&report(&claimed(&[more, other])), "gang").values().sum::<u64>(), 3);
    let before = report(&claimed(&[]));
    let nearest = &room(&before, "small")["nearest"]["room"];
    assert_eq!((&nearest["node"], &nearest["missing"]), (&json!("n-0"), &json!([["cpu", "1"]])));
    let grown = json!({"at": 110, "node": {"name": "n-0", "capacity": {"cpu": 5}}});
    let after = report(&claimed(&[grown]));
    assert_eq!(placed(&after, "small"), [("n-0".to_owned(), 1), ("n-2".to_owned(), 1)].into());
    let gone = json!({"at": 110, "cancel": {"job": "gang"}});
    assert_eq!(placed(&report(&claimed(&[gone])), "small"), [("n-2".to_owned(), 3)].into());
}
