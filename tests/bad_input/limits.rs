//! More than the configured limits allow: each limit is met exactly, and refused one above.

use plimsoll::core::document::FaultKind;
use serde_json::{Value, json};

use super::kit::{command_messages, fault, faults, good};

fn limited(limit: &str, value: u64) -> Value {
    let mut file = good();
    file["settings"]["limits"] = json!({limit: value});
    file
}

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().expect("a list").push(item);
}

/// A file that needs `needed` of a limit is good with that limit and has one fault, at `field`, with one
/// less.
fn check(limit: &str, needed: u64, spoil: impl Fn(&mut Value), field: &str, found: &str) {
    let file = |value| {
        let mut file = limited(limit, value);
        spoil(&mut file);
        file
    };
    assert_eq!(faults(&file(needed)), [], "{limit} = {needed}");
    let above = file(needed - 1);
    let (place, kind, shown) = fault(&above);
    let kinds = [FaultKind::Refused, FaultKind::OutOfRange];
    assert!(kinds.contains(&kind) && place == field, "{limit}: {place} {kind:?}");
    assert_eq!(shown.as_deref(), Some(found), "{limit}");
    assert_eq!(command_messages(above.to_string().as_bytes()).len(), 1, "{limit}");
}

/// Goal: jobs, and tasks of one job, are limited exactly. Method: see `check`, in both ways to write a job.
#[test]
fn jobs_and_tasks() {
    let one_more = |file: &mut Value| push(&mut file["jobs"], json!({"name": "l", "tasks": 1}));
    check("jobs", 3, one_more, "jobs", "3");
    check(
        "tasks_per_job",
        3,
        |file| push(&mut file["jobs"], json!({"name": "l", "tasks": 3})),
        "jobs[1].tasks",
        "3",
    );
    let written_out = |file: &mut Value| file["jobs"][0]["groups"][0]["roles"][0]["max"] = json!(3);
    check("tasks_per_job", 3, written_out, "jobs[0].groups", "3 tasks");
}

/// Goal: groups of a job and roles of a group are limited exactly. Method: see `check`.
#[test]
fn groups_and_roles() {
    let role = || json!({"name": "s", "max": 1});
    let groups = move |file: &mut Value| {
        file["running"] = json!([]);
        push(&mut file["jobs"][0]["groups"], json!({"name": "h", "roles": [role()]}));
    };
    check("groups_per_job", 2, groups, "jobs[0].groups", "2");
    let roles = move |file: &mut Value| {
        file["running"] = json!([]);
        push(&mut file["jobs"][0]["groups"][0]["roles"], role());
    };
    check("roles_per_group", 2, roles, "jobs[0].groups[0].roles", "2");
}

/// Goal: nodes, labels and their sizes are limited exactly. Method: see `check`, also for events.
#[test]
fn nodes_and_labels() {
    let more = |file: &mut Value| push(&mut file["nodes"], json!({"name": "m", "count": 3, "capacity": {}}));
    check("nodes", 4, more, "nodes[1]", r#"{"capacity": {}, "count": 3, "name": "m"}"#);
    let labels = |file: &mut Value| file["nodes"][0]["labels"] = json!({"zone": "a", "rack": "b"});
    check("labels_per_node", 2, labels, "nodes[0].labels", "2");
    let value = |file: &mut Value| file["nodes"][0]["labels"] = json!({"z": "long"});
    check("label_length", 4, value, "nodes[0].labels.z", "long");
    let key = |file: &mut Value| file["nodes"][0]["labels"] = json!({"zone": "a"});
    check("label_length", 4, key, "nodes[0].labels", "zone");
    let event = |file: &mut Value| file["events"][1]["node"]["labels"] = json!({"z": "long"});
    check("label_length", 4, event, "events[1].node.labels.z", "long");
}

/// Goal: every name is limited in length, in bytes. Method: see `check`, for each thing that has a name.
#[test]
fn names() {
    let long = "x".repeat(17);
    let node = |file: &mut Value| push(&mut file["nodes"], json!({"name": "x".repeat(17), "capacity": {}}));
    check("name_length", 17, node, "nodes[1].name", &long);
    let job = |file: &mut Value| push(&mut file["jobs"], json!({"name": "x".repeat(17), "tasks": 1}));
    check("name_length", 17, job, "jobs[1].name", &long);
    let requestor = |file: &mut Value| file["jobs"][0]["requestor"] = json!("x".repeat(17));
    check("name_length", 17, requestor, "jobs[0].requestor", &long);
    let service = |file: &mut Value| {
        file["jobs"][0]["groups"][0]["roles"][0]["service"] = json!("x".repeat(17));
    };
    check("name_length", 17, service, "jobs[0].groups[0].roles[0].service", &long);
    // The name that counts is the longest of those that are counted out.
    let counted = |file: &mut Value| {
        push(&mut file["nodes"], json!({"name": "x".repeat(15), "count": 11, "capacity": {}}))
    };
    check("name_length", 18, counted, "nodes[1].name", &format!("{}-10", "x".repeat(15)));
}

/// Goal: the limits of the format itself hold without any setting. Method: more kinds, tasks and seconds
/// than there can be.
#[test]
fn limits_of_the_format() {
    let mut file = good();
    let kinds: serde_json::Map<String, Value> =
        (0..29).map(|kind| (format!("kind-{kind:02}"), json!(1))).collect();
    file["nodes"][0]["capacity"] = Value::Object(kinds);
    file["nodes"][0]["capacity"]["cpu"] = json!(4);
    let all = faults(&file);
    assert_eq!((all.len(), all[0].field.as_str()), (1, "nodes[0].capacity.kind-28"));
    let mut file = good();
    file["jobs"] = (0..11).map(|job| json!({"name": format!("job-{job}"), "tasks": 10_000_000})).collect();
    (file["running"], file["events"]) = (json!([]), json!([]));
    assert_eq!(fault(&file), ("jobs".into(), FaultKind::Refused, Some("110000000".into())));
    let mut file = good();
    file["events"][1]["at"] = json!(1e13);
    let (field, kind, _) = fault(&file);
    assert_eq!((field.as_str(), kind), ("events[1].at", FaultKind::OutOfRange));
}
