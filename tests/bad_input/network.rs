//! Places in the network tree and distances that cannot be.

use plimsoll::core::document::FaultKind;
use plimsoll::core::settings::Settings;
use plimsoll::core::spec::{GroupSpec, Hops, JobSpec, Problem, RoleSpec, Start};
use serde_json::{Value, json};

use super::kit::{fault, faults, with};

const DEEP: &str = "a/b/c/d/e/f/g/h/i";

/// Goal: a path has up to eight parts, none of them empty. Method: malformed ones where a node is added and
/// where it is changed.
#[test]
fn malformed_paths() {
    for (pointer, field) in
        [("/nodes/0/path", "nodes[0].path"), ("/events/1/node/path", "events[1].node.path")]
    {
        for text in ["", "/", "a//b", "/a", "a/", DEEP] {
            let found = Some(format!("\"{text}\""));
            assert_eq!(fault(&with(pointer, json!(text))), (field.to_owned(), FaultKind::Refused, found));
        }
        for value in [json!(7), json!(["a"]), json!({"a": 1}), json!(true)] {
            let (place, kind, _) = fault(&with(pointer, value.clone()));
            assert_eq!((place.as_str(), kind), (field, FaultKind::WrongType), "{value}");
        }
        let long = faults(&with(pointer, json!("x".repeat(300))));
        assert_eq!((long.len(), long[0].field.as_str(), long[0].kind), (1, field, FaultKind::Refused));
        assert_eq!(faults(&with(pointer, json!("block-1/rack-7/host-3"))), []);
    }
}

/// A file with an atomic group that asks for this, for the whole group or for its role.
fn asking(hops: &Value, of_role: bool, start: &str) -> Value {
    let mut file = with("/jobs/0/groups/0/start", json!(start));
    file["running"] = json!([]);
    let group = &mut file["jobs"][0]["groups"][0];
    if of_role {
        group["roles"][0]["hops"] = hops.clone();
    } else {
        group["hops"] = hops.clone();
    }
    file
}

/// Goal: hops are `"fewest"` or a number that can lie between two nodes, and only tasks that start together
/// can ask for them. Method: everything else, for groups and for roles.
#[test]
fn hops_that_cannot_be() {
    for (of_role, field) in [(false, "jobs[0].groups[0].hops"), (true, "jobs[0].groups[0].roles[0].hops")] {
        for (value, kind) in [
            (json!(-1), FaultKind::OutOfRange),
            (json!(17), FaultKind::OutOfRange),
            (json!(1.5), FaultKind::OutOfRange),
            (json!("most"), FaultKind::Refused),
            (json!([2]), FaultKind::Refused),
            (json!(true), FaultKind::Refused),
        ] {
            let (place, found, _) = fault(&asking(&value, of_role, "atomic"));
            assert_eq!((place.as_str(), found), (field, kind), "{value}");
        }
        for value in [json!("fewest"), json!(0), json!(16), Value::Null] {
            assert_eq!(faults(&asking(&value, of_role, "atomic")), [], "{value}");
        }
        let alone = faults(&asking(&json!(2), of_role, "independent"));
        let message = format!(
            "{field}: hops are between tasks that start together, so the group must start `atomic`, found 2"
        );
        assert_eq!(alone.iter().map(ToString::to_string).collect::<Vec<_>>(), [message]);
    }
}

/// Goal: what a service hands in is held to the same. Method: too many hops, and hops of independent tasks.
#[test]
fn hops_of_a_service() {
    let job = |start, hops| {
        let role = RoleSpec::new("r", u32::from(start == Start::Atomic), 1, Default::default());
        let group = GroupSpec {
            name: "g".into(),
            start,
            hops: Some(hops),
            roles: vec![role],
            ..GroupSpec::default()
        };
        JobSpec { name: "j".into(), groups: vec![group], ..JobSpec::default() }
    };
    let problem = |job: JobSpec| {
        let invalid = job.validate(&Settings::default()).expect_err("it is bad");
        (invalid.field, invalid.problem)
    };
    let field = "groups[0].hops".to_owned();
    let wide = problem(job(Start::Atomic, Hops::AtMost(17)));
    assert_eq!(wide, (field.clone(), Problem::TooManyHops { limit: 16 }));
    assert_eq!(problem(job(Start::Independent, Hops::Fewest)), (field, Problem::NeedsAtomic));
    assert_eq!(job(Start::Atomic, Hops::Fewest).validate(&Settings::default()), Ok(()));
}
