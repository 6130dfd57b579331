//! Roles that ask for what cannot be: refused in the same words whether a service submits them or a file
//! describes them, with the field and the value; and what is only useless is accepted and explained.

use std::time::Duration;

use plimsoll::{Config, Format, GroupSpec, JobSpec, NodeSpec, RoleSpec, Runtime, SubmitError, scenario};
use serde_json::{Value, json};

fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(30), body).await.expect("within the deadline")
    })
}

/// What is wrong with a role: as a file has it, as a service has it, the field, and what must be said of it.
type Case = (Value, fn(RoleSpec) -> RoleSpec, &'static str, &'static str);

fn case(
    in_file: Value,
    in_service: fn(RoleSpec) -> RoleSpec,
    field: &'static str,
    says: &'static str,
) -> Case {
    (in_file, in_service, field, says)
}

fn constraints() -> Vec<Case> {
    const FIELD: &str = "constraints[0]";
    vec![
        case(
            json!({"constraints": ["node.labels.zone = a"]}),
            |role| role.constraint("node.labels.zone = a"),
            FIELD,
            "column 18",
        ),
        case(json!({"constraints": [""]}), |role| role.constraint(""), FIELD, "column 1"),
        case(
            json!({"constraints": ["node.label.zone == a"]}),
            |role| role.constraint("node.label.zone == a"),
            FIELD,
            "node.label.zone",
        ),
        case(
            json!({"constraints": ["engine.zone == a"]}),
            |role| role.constraint("engine.zone == a"),
            FIELD,
            "engine.zone",
        ),
        case(
            json!({"constraints": ["node.labels.cores >= many"]}),
            |role| role.constraint("node.labels.cores >= many"),
            FIELD,
            "number",
        ),
        case(
            json!({"constraints": ["node.labels.zone in (a, b"]}),
            |role| role.constraint("node.labels.zone in (a, b"),
            FIELD,
            "column 26",
        ),
        case(
            json!({"constraints": ["node.ip == 10.0.0.0/99"]}),
            |role| role.constraint("node.ip == 10.0.0.0/99"),
            FIELD,
            "10.0.0.0/99",
        ),
        case(
            json!({"constraints": ["(not node.role == a"]}),
            |role| role.constraint("(not node.role == a"),
            FIELD,
            "column 20",
        ),
    ]
}

fn others() -> Vec<Case> {
    const PORT: &str = "a port between 1 and 65535";
    const FACT: &str = "a fact of a node";
    const PLATFORM: &str = "an operating system and an architecture";
    vec![
        case(json!({"ports": ["0/tcp"]}), |role| role.port("0/tcp"), "ports[0]", PORT),
        case(json!({"ports": ["65536/udp"]}), |role| role.port("65536/udp"), "ports[0]", PORT),
        case(json!({"ports": ["80/icmp"]}), |role| role.port("80/icmp"), "ports[0]", PORT),
        case(json!({"ports": ["-1"]}), |role| role.port("-1"), "ports[0]", PORT),
        case(
            json!({"ports": ["80", "80/tcp"]}),
            |role| role.port("80").port("80/tcp"),
            "ports[1]",
            "only once",
        ),
        case(
            json!({"service": "s", "spread": ["node.label.rack"]}),
            |role| role.service("s", 0).spread("node.label.rack"),
            "spread[0]",
            FACT,
        ),
        case(
            json!({"spread": ["node.labels.rack"]}),
            |role| role.spread("node.labels.rack"),
            "spread",
            "so one must be named",
        ),
        case(json!({"max_per_node": 2}), |role| role.max_per_node(2), "max_per_node", "so one must be named"),
        case(json!({"platforms": ["linux"]}), |role| role.platform("linux"), "platforms[0]", PLATFORM),
        case(
            json!({"platforms": ["linux/arm/v7"]}),
            |role| role.platform("linux/arm/v7"),
            "platforms[0]",
            PLATFORM,
        ),
        case(json!({"hops": 2}), |role| role.hops(plimsoll::Hops::AtMost(2)), "hops", "must start `atomic`"),
        case(
            json!({"filters": {"driver": "535"}}),
            |role| role.filter("driver", "535"),
            "filters.driver",
            "there are none",
        ),
    ]
}

/// Goal: what is wrong with a role is said at once, in the same words to services and to people with files, and
/// nothing is taken. Method: every case both ways.
#[test]
fn bad_roles_are_refused_by_field_and_value() {
    run(async {
        let config = Config::from_toml("window = 0.0").expect("a good setting");
        let runtime = Runtime::builder().config(config).start().expect("it starts");
        let handle = runtime.handle();
        for (in_file, in_service, field, says) in constraints().into_iter().chain(others()) {
            let shown = in_file.to_string();
            let role = in_service(RoleSpec::new("r", 1));
            let job = JobSpec::new("j").group(GroupSpec::new("g").role(role));
            let Err(SubmitError::Invalid { problem, .. }) = handle.submit(job).await else {
                panic!("{shown} is accepted")
            };
            assert_eq!(problem.field, format!("groups[0].roles[0].{field}"), "{shown}");
            assert!(problem.to_string().contains(says), "{shown}: {problem}");

            let mut role = in_file;
            (role["name"], role["max"]) = (json!("r"), json!(1));
            let text = json!({"jobs": [{"name": "j", "groups": [{"name": "g", "roles": [role]}]}]});
            let refused = scenario::from_text(&text.to_string(), Format::Json).expect_err(&shown).to_string();
            let place = format!("jobs[0].groups[0].roles[0].{field}");
            assert!(refused.contains(&place) && refused.contains(says), "{shown}: {refused}");
        }
        assert!(handle.jobs().is_empty(), "nothing was taken");
        runtime.shutdown(Duration::from_secs(5)).await;
    });
}

/// Goal: what cannot help but does no harm is accepted and explained: a fact that no node has, a node that
/// nobody knows, a request that is larger than any node.
#[test]
fn what_is_useless_is_accepted_and_explained() {
    run(async {
        let config = Config::from_toml("window = 0.0").expect("a good setting");
        let runtime = Runtime::builder().config(config).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(NodeSpec::new("n1").capacity("slot", 1)).await.expect("the node is new");
        let role = || RoleSpec::new("r", 2).request("slot", 1);
        let cases = [
            (
                role().service("web", 1).spread("node.labels.rack"),
                "no node has `node.labels.rack`, over which they are spread",
            ),
            (role().on_node("ghost"), "nearest: a node named ghost"),
            (role().request("cpu", 64), "1 are too small"),
        ];
        for (role, says) in cases {
            let job = JobSpec::new("j").group(GroupSpec::new("g").role(role));
            let job = handle.submit(job).await.expect("accepted");
            let explained = handle.explain(job).await.expect("it is known");
            let sentence = explained[0].sentence();
            assert!(sentence.contains(says), "{sentence}");
        }
        runtime.shutdown(Duration::from_secs(5)).await;
    });
}
