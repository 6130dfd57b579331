//! Dry-run files: what is accepted, and what bad ones are told.

use plimsoll::core::plan::Scenario;
use plimsoll::{Format, InputError, scenario};
use proptest::prelude::*;

fn read(text: &str) -> Result<Scenario, InputError> {
    scenario::from_text(text, Format::Json)
}

fn messages(text: &str) -> Vec<String> {
    match read(text) {
        Ok(_) => Vec::new(),
        Err(InputError::Faulty { faults, .. }) => faults.listed.iter().map(ToString::to_string).collect(),
        Err(other) => panic!("expected faults, found {other}"),
    }
}

/// Puts a job's fields into a file that is otherwise good.
fn job(fields: &str) -> String {
    format!(
        r#"{{"nodes": [{{"name": "n", "capacity": {{"cpu": 4}}}}], "jobs": [{{"name": "j", {fields}}}]}}"#
    )
}

fn role(fields: &str) -> String {
    job(&format!(r#""groups": [{{"name": "g", "roles": [{{"name": "r", {fields}}}]}}]"#))
}

fn node(fields: &str) -> String {
    format!(r#"{{"nodes": [{{"name": "n", "capacity": {{"cpu": 4}}, {fields}}}]}}"#)
}

/// Puts fields beside one node `n`, a job `j` of two tasks and the time 10.
fn beside(fields: &str) -> String {
    format!(
        r#"{{"now": 10, "nodes": [{{"name": "n", "count": 2, "capacity": {{"slot": 1}}}}],
            "jobs": [{{"name": "j", "tasks": 2, "request": {{"slot": 1}}}}], {fields}}}"#
    )
}

fn check(cases: &[(String, &[&str])]) {
    for (text, expected) in cases {
        assert_eq!(messages(text), *expected, "{text}");
    }
}

#[test]
fn bad_nodes() {
    check(&[
        (r#"{"nodes": 3}"#.into(), &["nodes: expected a list, found 3"]),
        (r#"{"nodes": [7]}"#.into(), &["nodes[0]: expected a table, found 7"]),
        (
            r#"{"nodes": [{}]}"#.into(),
            &[
                "nodes[0].name: missing, expected the name of the node",
                "nodes[0].capacity: missing, expected what the node offers, such as {\"cpu\": 4}",
            ],
        ),
        (node(r#""count": 0"#), &["nodes[0].count: expected a whole number between 1 and 1000000, found 0"]),
        (node(r#""conditon": "manual""#), &["nodes[0].conditon: unknown field, expected `condition`"]),
        (
            node(r#""condition": "gone""#),
            &[
                "nodes[0].condition: expected one of `automated`, `manual`, `broken` or `removed`, found \"gone\"",
            ],
        ),
        (
            node(r#""availability": "off", "liveness": "dead""#),
            &[
                "nodes[0].availability: expected one of `active`, `pause` or `drain`, found \"off\"",
                "nodes[0].liveness: expected one of `ready`, `suspect` or `down`, found \"dead\"",
            ],
        ),
        (
            r#"{"nodes": [{"name": "n", "capacity": {"cpu": -1, "a b": 1, "memory": "4Q"}}]}"#.into(),
            &[
                "nodes[0].capacity.cpu: expected an amount of at least 0, found -1",
                "nodes[0].capacity.\"a b\": expected the name of a resource kind: 1 to 128 letters, digits, `-`, `_`, \
                 `.` or `/`, found \"a b\"",
                "nodes[0].capacity.memory: expected an amount such as 2, 0.5, \"500m\" or \"4Gi\", found \"4Q\"",
            ],
        ),
        (
            r#"{"nodes": [{"name": "n", "count": 2, "capacity": {}}, {"name": "n-1", "capacity": {}}]}"#
                .into(),
            &["nodes[1].name: there is another node named `n-1`, found \"n-1\""],
        ),
        (
            r#"{"settings": {"limits": {"nodes": 5}}, "nodes": [{"name": "a", "count": 3, "capacity": {}},
                {"name": "b", "count": 3, "capacity": {}}]}"#
                .into(),
            &[
                "nodes[1]: at most 5 nodes are allowed in all (`limits.nodes`), found {\"name\": \"b\", \"count\": 3, \
               \"capacity\": {}}",
            ],
        ),
        (
            node(r#""os": 7, "plugins": [1], "reserved": {"cpu": []}"#),
            &[
                "nodes[0].reserved.cpu: expected an amount such as 2, 0.5, \"500m\" or \"4Gi\", found []",
                "nodes[0].os: expected a text, found 7",
                "nodes[0].plugins[0]: expected a text, found 1",
            ],
        ),
    ]);
}

#[test]
fn bad_jobs() {
    check(&[
        (job(r#""tasks": 1, "groups": []"#), &[
            "jobs[0].tasks: a job has either `groups` or `tasks` and `request`, not both, found 1",
            "jobs[0].groups: must not be empty, found []",
        ]),
        (
            job(r#""requestor": "x""#),
            &["jobs[0].groups: missing, expected the groups of the job, or `tasks` and `request`"],
        ),
        (job(r#""tasks": 1.5"#), &["jobs[0].tasks: expected a whole number between 1 and 10000000, found 1.5"]),
        (
            job(r#""tasks": 1, "request": {"fpga": 1}"#),
            &["jobs[0].request.fpga: expected a resource kind that is declared in `resources` or offered by a node, \
               such as `slot`, `cpu`, `memory` or `gpu`, found 1"],
        ),
        (
            job(r#""tasks": 1, "submitted": 3"#),
            &["jobs[0].submitted: must not be after `now`, which is 0; what comes later belongs in `events`, found 3"],
        ),
        (
            job(r#""tasks": 1, "queue": "q", "band": "low", "priority": 5, "lifetime": 60"#),
            &[
                "jobs[0].queue: no queue of this name is known; declare it in `queues`, found q",
                "jobs[0].band: no band of this name is known; declare it in `bands`, found low",
            ],
        ),
        (
            job(r#""tasks": 1, "queue": 1, "band": 2, "priority": 0.5, "lifetime": -1, "finish_by": "soon""#),
            &[
                "jobs[0].queue: expected a text, found 1",
                "jobs[0].band: expected a text, found 2",
                "jobs[0].priority: expected a whole number between -2147483648 and 2147483647, found 0.5",
                "jobs[0].lifetime: expected seconds between 0 and 1000000000000, found -1",
                "jobs[0].finish_by: expected seconds between 0 and 1000000000000, found \"soon\"",
            ],
        ),
        (
            r#"{"jobs": [{"name": "j", "tasks": 1}, {"name": "j", "tasks": 1}]}"#.into(),
            &["jobs[1].name: there is another job named `j`, found \"j\""],
        ),
        (
            r#"{"jobs": [{"name": "a", "tasks": 1}, {"name": "b", "tasks": 1}], "settings": {"limits": {"jobs": 1}}}"#
                .into(),
            &["jobs: at most 1 jobs are allowed in all, found 2"],
        ),
    ]);
}

#[test]
fn bad_rules_and_company() {
    check(&[
        (
            role(r#""max": 1, "constraints": ["a == b", "node.labels.x in (", 7]"#),
            &[
                "jobs[0].groups[0].roles[0].constraints[0]: column 1: there is no key `a`, possible are node.id, \
                 node.hostname, node.ip, node.role, node.pool, node.platform.os, node.platform.arch, \
                 node.labels.NAME and engine.labels.NAME, found \"a == b\"",
                "jobs[0].groups[0].roles[0].constraints[1]: column 19: expected a value: letters, \
                 digits and any of :-_.*?+[]\\^$|/, \
                 or any text in double quotes, found the end, found \"node.labels.x in (\"",
                "jobs[0].groups[0].roles[0].constraints[2]: expected a text, found 7",
            ],
        ),
        (
            role(
                r#""max": 1, "ports": ["80/tcp", "0/tcp", "99999"], "spread": ["rack"], "platforms": ["linux"]"#,
            ),
            &[
                "jobs[0].groups[0].roles[0].platforms[0]: an operating system and an architecture such as \
                 `linux/amd64`, found \"linux\"",
                "jobs[0].groups[0].roles[0].spread[0]: a fact of a node, such as `node.labels.rack`, found \"rack\"",
                "jobs[0].groups[0].roles[0].ports[1]: a port between 1 and 65535 with its protocol, such as \
                 `80/tcp` or `53/udp`, found \"0/tcp\"",
                "jobs[0].groups[0].roles[0].ports[2]: a port between 1 and 65535 with its protocol, such as \
                 `80/tcp` or `53/udp`, found \"99999\"",
            ],
        ),
        (
            role(r#""max": 1, "max_per_node": 2, "spread": ["node.labels.rack"], "ports": ["80", "80/tcp"]"#),
            &[
                "jobs[0].groups[0].roles[0].spread: counts the tasks of a `service`, so one must be named, \
                 found no service",
                "jobs[0].groups[0].roles[0].max_per_node: counts the tasks of a `service`, so one must be named, \
                 found no service",
                "jobs[0].groups[0].roles[0].ports[1]: a name may be used only once here, found 80/tcp",
            ],
        ),
    ]);
}

#[test]
fn bad_groups_and_roles() {
    check(&[
        (
            role(r#""request": {}"#),
            &["jobs[0].groups[0].roles[0].max: missing, expected how many tasks there are"],
        ),
        (
            role(r#""min": 5, "max": 2"#),
            &["jobs[0].groups[0].roles[0].min: the smallest size must not be above the largest, found 5"],
        ),
        (
            role(r#""max": 2, "request": {"cpu": "x"}, "duration": -1"#),
            &[
                "jobs[0].groups[0].roles[0].request.cpu: expected an amount such as 2, 0.5, \"500m\" or \"4Gi\", \
                 found \"x\"",
                "jobs[0].groups[0].roles[0].duration: expected seconds between 0 and 1000000000000, found -1",
            ],
        ),
        (
            role(r#""max": 2, "version": 3"#),
            &[
                "jobs[0].groups[0].roles[0].version: a version needs a `service` that it is a version of, found 3",
            ],
        ),
        (
            role(r#""max": 1, "auxiliary": true, "task_key": 7"#),
            &[
                "jobs[0].groups[0].roles[0].task_key: expected a text, found 7",
                "jobs[0].groups[0].roles: at least one role must be there for its own sake, found auxiliary = true",
            ],
        ),
        (
            job(r#""groups": [{"name": "g", "start": "atomic", "pool": "one", "freeze": -1,
                               "roles": [{"name": "r", "min": 1, "max": 2, "initial": -1}]}]"#),
            &[
                "jobs[0].groups[0].roles[0].initial: expected a whole number between 0 and 4294967295, found -1",
                "jobs[0].groups[0].freeze: expected seconds between 0 and 1000000000, found -1",
                "jobs[0].groups[0].pool: expected one of `any` or `same`, found \"one\"",
            ],
        ),
        (
            job(r#""groups": [{"name": "g", "start": "now", "roles": []}, {"name": "g", "roles": [3]}]"#),
            &[
                "jobs[0].groups[0].start: expected one of `atomic` or `independent`, found \"now\"",
                "jobs[0].groups[1].roles[0]: expected a table, found 3",
            ],
        ),
        (
            job(
                r#""groups": [{"name": "g", "roles": []}, {"name": "g", "roles": [{"name": "r", "max": 1}]}]"#,
            ),
            &[
                "jobs[0].groups[0].roles: must not be empty, found []",
                "jobs[0].groups[1].name: a name may be used only once here, found g",
            ],
        ),
    ]);
}

#[test]
fn bad_references() {
    check(&[
        (
            beside(r#""running": [{"job": "x"}, {"job": "j", "node": "n"}, {"job": "j", "group": "g"}]"#),
            &[
                "running[0].job: expected the name of a known job: `j`, found \"x\"",
                "running[1].node: expected the name of a known node: `n-0`, found \"n\"",
                "running[2].group: expected the name of a group of this job: `tasks`, found \"g\"",
            ],
        ),
        (
            beside(r#""running": [{"job": "j", "count": 2}, {"job": "j", "started": 11}]"#),
            &[
                "running[1].started: must not be after `now`, which is 10, found 11",
                "running[1]: the role has 2 tasks, 3 of them would run, found {\"job\": \"j\", \"started\": 11}",
            ],
        ),
        (
            beside(
                r#""failures": [{"service": "s", "node": "m", "at": [9, 11, "x"]}, {"version": -1, "at": 3}],
                   "events": [{"at": 11, "fail": {"job": "k", "node": "m", "count": 0, "why": 1}}]"#,
            ),
            &[
                "failures[0].node: expected the name of a known node: `n-0` or `n-1`, found \"m\"",
                "failures[0].at[1]: must not be after `now`, which is 10, found 11",
                "failures[0].at[2]: expected seconds between 0 and 1000000000000, found \"x\"",
                "failures[1].service: missing, expected the name of a service",
                "failures[1].version: expected a whole number between 0 and 9223372036854775807, found -1",
                "failures[1].node: missing, expected the name of a node",
                "failures[1].at: expected a list, found 3",
                "events[0].fail.count: expected a whole number between 1 and 4294967295, found 0",
                "events[0].fail.node: expected the name of a known node: `n-0` or `n-1`, found \"m\"",
                "events[0].fail.why: unknown field, expected `job`, `count`, `group`, `role` or `node`",
                "events[0].fail.job: expected the name of a known job: `j`, found \"k\"",
            ],
        ),
        (
            beside(
                r#""events": [{"at": 12, "submit": {"name": "k", "tasks": 1}}, {"at": 11, "cancel": {"job": "k"}},
                                 {"at": 13, "cancel": {"job": "k"}}]"#,
            ),
            &["events[1].cancel.job: expected the name of a known job: `j`, found \"k\""],
        ),
        (
            beside(
                r#""events": [{"at": 9, "cancel": {"job": "j"}}, {"at": 11}, {"cancel": {"job": "j"}},
                                 {"at": 11, "cancel": {"job": "j"}, "finish": {"job": "j"}},
                                 {"at": 11, "resize": {"job": "j"}}, {"at": 11, "submit": {"name": "j", "tasks": 1}},
                                 {"at": 11, "node": {"name": "m", "availability": "gone", "pool": "p"}}]"#,
            ),
            &[
                "events[0].at: must not be before `now`, which is 10, found 9",
                "events[1]: missing, expected what happens, such as `finish`, `submit` or `cancel`",
                "events[2].at: missing, expected seconds",
                "events[3]: only one thing may happen in one event",
                "events[4].resize.min: missing, expected a number of tasks",
                "events[4].resize.max: missing, expected a number of tasks",
                "events[6].node.name: expected the name of a known node: `n-0` or `n-1`, found \"m\"",
                "events[6].node.availability: expected one of `active`, `pause` or `drain`, found \"gone\"",
                "events[5].submit.name: there is another job named `j`, found \"j\"",
            ],
        ),
    ]);
}

#[test]
fn bad_files_as_a_whole() {
    check(&[
        ("[1]".into(), &["expected a table, found [1]"]),
        (
            r#"{"now": -1, "untill": 3, "config": 7, "failures": [1], "nodes": null}"#.into(),
            &[
                "config: expected a text, found 7",
                "now: expected seconds between 0 and 1000000000000, found -1",
                "failures[0]: expected a table, found 1",
                "untill: unknown field, expected `until`",
            ],
        ),
        (r#"{"now": 5, "until": 4}"#.into(), &["until: must not be before `now`, which is 5, found 4"]),
        (
            r#"{"config": "no-such", "settings": {"window": -1, "classes": [1]}}"#.into(),
            &[
                "config: no-such: neither a file nor one of the presets default, scoot, armada, swarmkit, \
                 beaker, paddle",
                "settings.window: expected seconds between 0 and 3600, found -1",
                "settings.classes[0]: expected a table, found 1",
            ],
        ),
        (r#"{"now": 1, "now": 2}"#.into(), &["now: a field may be given only once, found 2"]),
    ]);
}

#[test]
fn a_complete_file_may_say_null_for_what_it_does_not_ask_for() {
    let text = r#"{"config": "scoot", "now": 3600.0, "until": null, "failures": [],
        "nodes": [{"name": "n1", "count": 1000, "pool": "default", "capacity": {"slot": 1}, "labels": {"zone": "a"},
                   "os": null, "arch": null, "plugins": [], "condition": "automated", "availability": "active",
                   "liveness": "ready"}],
        "jobs": [{"name": "j1", "requestor": "land-7", "queue": null, "job_set": "s", "band": "normal", "priority": 0,
                  "lifetime": null, "submitted": 0.0,
                  "groups": [{"name": "g", "start": "atomic", "pool": "any",
                    "roles": [{"name": "r", "min": 2, "max": 2, "request": {"cpu": 2, "memory": "4Gi"},
                               "constraints": [], "spread": [], "ports": [], "service": "web", "version": 3,
                               "node": null, "duration": 30.0}]}]}]}"#;
    let scenario = read(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((scenario.nodes.len(), scenario.tasks()), (1_000, 2));
    assert_eq!(scenario.jobs[0].spec.groups[0].roles[0].shape.service, Some(Box::new(("web".into(), 3))));
}

#[test]
fn toml_serves_as_well() {
    let text = r#"
        now = 1
        [[nodes]]
        name = "n"
        count = 2
        capacity = { cpu = 4, memory = "1Gi" }
        [[jobs]]
        name = "j"
        tasks = 3
        request = { cpu = 0.5 }
        [[events]]
        at = 2.5
        cancel = { job = "j" }
    "#;
    let scenario = scenario::from_text(text, Format::Toml).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((scenario.nodes.len(), scenario.tasks(), scenario.events.len()), (2, 3, 1));
}

#[test]
fn problems_are_listed_up_to_a_bound() {
    let nodes = vec!["7"; 5_000].join(",");
    match read(&format!(r#"{{"nodes": [{nodes}]}}"#)) {
        Err(InputError::Faulty { faults, .. }) => {
            assert_eq!((faults.listed.len(), faults.more), (100, 4_900))
        }
        other => panic!("expected faults, found {other:?}"),
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = scenario::from_text(&text, Format::Json).map_err(|error| error.to_string());
        let _ = scenario::from_text(&text, Format::Toml).map_err(|error| error.to_string());
    }

    /// A good file with a piece cut out or doubled is still no reason to panic.
    #[test]
    fn no_damage_makes_the_reader_panic(start in 0usize..600, length in 0usize..60, twice: bool) {
        let good = beside(r#""running": [{"job": "j", "node": "n-0"}], "until": 20,
            "events": [{"at": 11, "finish": {"job": "j", "count": 1}},
                       {"at": 12, "submit": {"name": "k", "tasks": 1, "request": {"cpu": "500m"}}}]"#);
        let start = start.min(good.len());
        let end = (start + length).min(good.len());
        let damaged = match twice {
            true => format!("{}{}", &good[..end], &good[start..]),
            false => format!("{}{}", &good[..start], &good[end..]),
        };
        let _ = read(&damaged).map_err(|error| error.to_string());
    }
}
