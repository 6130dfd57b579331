//! Values that cannot be: nothing where something must be, names twice or unknown, amounts out of range.

use plimsoll::core::document::FaultKind;
use plimsoll::core::plan::PlanError;
use serde_json::{Value, json};

use super::kit::{command_messages, fault, faults, refusal, with};

/// Checks that spoiling one field gives one fault there, with the value, from library and command.
fn check(cases: &[(&str, Value, &str, FaultKind, &str)]) {
    for (pointer, value, field, kind, found) in cases {
        let file = with(pointer, value.clone());
        let expected = ((*field).to_owned(), *kind, Some((*found).to_owned()));
        assert_eq!(fault(&file), expected, "{pointer} = {value}");
        let messages = command_messages(file.to_string().as_bytes());
        let named = messages[0].starts_with(&format!("{field}: "))
            && messages[0].ends_with(&format!("found {found}"));
        assert!(named && messages.len() == 1, "{messages:?}");
    }
}

/// Goal: a job without tasks is refused where they are missing. Method: every way of asking for nothing.
#[test]
fn empty_jobs() {
    let refused = FaultKind::Refused;
    check(&[
        ("/jobs/-", json!({"name": "e", "groups": []}), "jobs[1].groups", refused, "[]"),
        (
            "/jobs/-",
            json!({"name": "e", "groups": [{"name": "g", "roles": []}]}),
            "jobs[1].groups[0].roles",
            refused,
            "[]",
        ),
        ("/jobs/-", json!({"name": "e", "tasks": 0}), "jobs[1].tasks", FaultKind::OutOfRange, "0"),
        (
            "/jobs/-",
            json!({"name": "e", "groups": [{"name": "g", "roles": [{"name": "r", "max": 0}]}]}),
            "jobs[1].groups[0].roles[0].max",
            FaultKind::OutOfRange,
            "0",
        ),
    ]);
    for pointer in ["/jobs/0/name", "/nodes/0/name"] {
        let all = faults(&with(pointer, json!("")));
        assert_eq!(
            (all[0].kind, all[0].found.as_deref()),
            (FaultKind::OutOfRange, Some("\"\"")),
            "{pointer}"
        );
    }
    let nothing = faults(&with("/jobs/-", json!({"name": "e"})));
    assert_eq!((nothing[0].field.as_str(), nothing[0].kind), ("jobs[1].groups", FaultKind::Missing));
}

/// Goal: how nodes are chosen is one of two words, and a snapshot is a text. Method: other words and other
/// types.
#[test]
fn choices_of_nodes() {
    let (range, role) = (FaultKind::OutOfRange, "jobs[0].groups[0].roles[0]");
    let place = |name: &str| (format!("/jobs/0/groups/0/roles/0/{name}"), format!("{role}.{name}"));
    let (placement, snapshot) = (place("placement"), place("snapshot"));
    check(&[
        (&placement.0, json!("packed"), &placement.1, range, "\"packed\""),
        (&placement.0, json!(true), &placement.1, FaultKind::WrongType, "true"),
        (&snapshot.0, json!(""), &snapshot.1, range, "\"\""),
        (&snapshot.0, json!(false), &snapshot.1, FaultKind::WrongType, "false"),
        ("/settings/placement", json!("tight"), "settings.placement", range, "\"tight\""),
    ]);
}

/// Goal: a name stands for one thing. Method: each kind of name twice, also across counted nodes and
/// submitted jobs.
#[test]
fn duplicate_names() {
    let twice = FaultKind::Duplicate;
    check(&[
        ("/nodes/-", json!({"name": "n", "capacity": {}}), "nodes[1].name", twice, "\"n\""),
        ("/jobs/-", json!({"name": "j", "tasks": 1}), "jobs[1].name", twice, "\"j\""),
        ("/events/0/submit/name", json!("j"), "events[0].submit.name", twice, "\"j\""),
    ]);
    // What runs must be named in full once there are several groups, so it is left out here.
    let nested = [
        (
            "/jobs/0/groups/-",
            json!({"name": "g", "roles": [{"name": "r", "max": 1}]}),
            "jobs[0].groups[1].name",
            "g",
        ),
        ("/jobs/0/groups/0/roles/-", json!({"name": "r", "max": 1}), "jobs[0].groups[0].roles[1].name", "r"),
    ];
    for (pointer, value, field, found) in nested {
        let mut file = with(pointer, value);
        file["running"] = json!([]);
        assert_eq!(fault(&file), (field.into(), twice, Some(found.into())));
    }
    let counted = with(
        "/nodes",
        json!([{"name": "n", "capacity": {"cpu": 4}}, {"name": "m", "count": 2, "capacity": {}},
                                        {"name": "m-1", "capacity": {}}]),
    );
    assert_eq!(fault(&counted), ("nodes[2].name".into(), twice, Some("\"m-1\"".into())));
}

/// Goal: an amount is a number of at least nothing that can be counted. Method: negative, overflowing,
/// too fine and not numeric amounts, in requests and capacities.
#[test]
fn amounts_out_of_range() {
    let out = FaultKind::OutOfRange;
    let bad = [
        (json!(-1), "-1"),
        (json!(-0.5), "-0.5"),
        (json!("-3"), "\"-3\""),
        (json!(1e300), "1e300"),
        (json!(9_223_372_036_854_775_807_i64), "9223372036854775807"),
        (json!("9999999Ei"), "\"9999999Ei\""),
        (json!(0.0001), "0.0001"),
        (json!("many"), "\"many\""),
    ];
    for (value, found) in bad {
        for (pointer, field) in [
            ("/jobs/0/groups/0/roles/0/request/cpu", "jobs[0].groups[0].roles[0].request.cpu"),
            (
                "/events/0/submit/groups/0/roles/0/request/cpu",
                "events[0].submit.groups[0].roles[0].request.cpu",
            ),
        ] {
            let (place, kind, shown) = fault(&with(pointer, value.clone()));
            assert_eq!((place.as_str(), kind), (field, out), "{value}");
            let shown = shown.expect("the value is shown");
            assert!(shown == found || value == json!(1e300), "{shown} for {value}");
        }
        let capacity = faults(&with("/nodes/0/capacity/cpu", value.clone()));
        assert_eq!((capacity[0].field.as_str(), capacity[0].kind), ("nodes[0].capacity.cpu", out), "{value}");
    }
    let messages =
        command_messages(with("/jobs/0/groups/0/roles/0/request/cpu", json!(-1)).to_string().as_bytes());
    assert_eq!(
        messages,
        ["jobs[0].groups[0].roles[0].request.cpu: expected an amount of at least 0, found -1"]
    );
}

/// Goal: a request for a kind that exists nowhere is a mistake. Method: an unknown kind in a role, in the
/// short form and in a submitted job; declared in the settings it is known.
#[test]
fn unknown_resource_kinds() {
    let unknown = FaultKind::UnknownName;
    check(&[
        (
            "/jobs/0/groups/0/roles/0/request",
            json!({"fpga": 2}),
            "jobs[0].groups[0].roles[0].request.fpga",
            unknown,
            "2",
        ),
        (
            "/jobs/-",
            json!({"name": "e", "tasks": 1, "request": {"cpus": 3}}),
            "jobs[1].request.cpus",
            unknown,
            "3",
        ),
    ]);
    let mut declared = with("/jobs/-", json!({"name": "e", "tasks": 1, "request": {"fpga": 1}}));
    declared["settings"]["resources"] = json!(["fpga"]);
    assert_eq!(faults(&declared), []);
}

/// Goal: an event or a running task may only name what is there at that time. Method: unknown jobs, nodes,
/// groups and roles, and a job before its submission.
#[test]
fn unknown_names() {
    let unknown = FaultKind::UnknownName;
    check(&[
        ("/events/-", json!({"at": 12, "finish": {"job": "x"}}), "events[3].finish.job", unknown, "\"x\""),
        ("/events/-", json!({"at": 12, "fail": {"job": "x"}}), "events[3].fail.job", unknown, "\"x\""),
        ("/events/-", json!({"at": 12, "cancel": {"job": "x"}}), "events[3].cancel.job", unknown, "\"x\""),
        ("/events/-", json!({"at": 10.5, "cancel": {"job": "k"}}), "events[3].cancel.job", unknown, "\"k\""),
        ("/events/-", json!({"at": 12, "node": {"name": "m"}}), "events[3].node.name", unknown, "\"m\""),
        ("/events/-", json!({"at": 12, "idle": {"node": "m"}}), "events[3].idle.node", unknown, "\"m\""),
        ("/running/-", json!({"job": "x"}), "running[1].job", unknown, "\"x\""),
        ("/running/-", json!({"job": "j", "node": "m"}), "running[1].node", unknown, "\"m\""),
        ("/running/-", json!({"job": "j", "group": "h"}), "running[1].group", unknown, "\"h\""),
        ("/running/-", json!({"job": "j", "role": "s"}), "running[1].role", unknown, "\"s\""),
    ]);
}

/// Goal: a well-formed file that contradicts itself is refused when it is carried out, with the field.
/// Method: more tasks end than run, or run than fit, or run where nothing can.
#[test]
fn what_cannot_happen_is_refused() {
    let finish = with("/events/-", json!({"at": 13, "finish": {"job": "j", "count": 9}}));
    let fail_of = |which: Value| with("/events/-", json!({"at": 13, "fail": which}));
    let fail = fail_of(json!({"job": "j", "count": 9, "group": "g", "role": "r", "node": "n"}));
    let no_group = fail_of(json!({"job": "j", "group": "h"}));
    let no_role = fail_of(json!({"job": "j", "role": "s"}));
    let mut crowded = with("/nodes/0/capacity", json!({"cpu": 1}));
    crowded["running"] = json!([{"job": "j", "count": 2, "node": "n"}]);
    let mut down = with("/nodes/0/liveness", json!("down"));
    down["running"] = json!([{"job": "j", "node": "n"}]);
    let mut partial = with("/jobs/0/groups/0/start", json!("atomic"));
    partial["running"] = json!([{"job": "j", "count": 1}]);
    let cases = [
        (finish, "events[3].finish.count", "job `j` has only 2 running tasks at that time, not 9"),
        (fail, "events[3].fail.count", "job `j` has only 2 running tasks at that time, not 9"),
        (no_group, "events[3].fail.group", "job `j` has no group named `h`"),
        (no_role, "events[3].fail.role", "job `j` has no role named `s`"),
        (crowded, "running[0]", "node `n` has no room for 2 running tasks of role `r`"),
        (down, "running[0]", "node `n` is down and has no place for 1 running tasks of role `r`"),
        (partial, "running", "group `g` of job `j` is atomic: all of it runs or nothing"),
    ];
    for (file, field, what) in cases {
        let expected = PlanError::Impossible { field: field.into(), what: what.into() };
        assert_eq!(refusal(&file), expected);
        assert_eq!(command_messages(file.to_string().as_bytes()), [format!("{field}: {what}")]);
    }
}

/// Goal: capacity that shrinks below what runs is no error: the node stops what it cannot hold. Method:
/// the node of a running job loses everything.
#[test]
fn capacity_below_what_runs_is_relieved() {
    let file = with("/events/1/node", json!({"name": "n", "capacity": {"cpu": 0}}));
    let scenario =
        plimsoll::scenario::from_text(&file.to_string(), plimsoll::Format::Json).expect("a good file");
    let report = plimsoll::core::plan::run(&scenario).expect("it can be carried out");
    assert_eq!((report.summary.assigned, report.summary.stopped), (3, 4));
    assert_eq!(report.waiting.iter().map(|group| group.tasks).sum::<u64>(), 4);
}
