//! Groups that start as a whole and groups that stay in one pool, through dry runs.
//!
//! Each file in `tests/groups/` is a list of cases: a goal, a dry-run file, and what must come of it.
//! `assigned` names for each job the nodes that its tasks were given, in order; `order` the jobs in the order
//! in which they started; `stopped` for each job why tasks of it were stopped; `waiting` for each job with
//! waiting tasks words that the explanation must have.
//! What was not taken is listed in `tests/groups/NOT_TAKEN.md`.

use std::collections::BTreeMap;

use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::Value;

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(report).expect("a report can be written")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn decisions<'a>(report: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let decisions = report["decisions"].as_array().expect("a list");
    decisions.iter().filter(move |decision| decision["kind"] == kind)
}

fn check(case: &Value) {
    let goal = text(&case["goal"]);
    let report = report(&case["file"]);
    let expect = case["expect"].as_object().unwrap_or_else(|| panic!("{goal}: nothing is expected"));
    for (what, expected) in expect {
        match what.as_str() {
            "assigned" => {
                let mut assigned: BTreeMap<String, Vec<String>> = BTreeMap::new();
                for decision in decisions(&report, "assign") {
                    assigned.entry(text(&decision["job"])).or_default().push(text(&decision["node"]));
                }
                assigned.values_mut().for_each(|nodes| nodes.sort());
                assert_eq!(serde_json::to_value(assigned).expect("plain"), *expected, "{goal}: {report:#}");
            }
            "order" => {
                let mut order: Vec<String> = Vec::new();
                for decision in decisions(&report, "assign") {
                    if order.last() != Some(&text(&decision["job"])) {
                        order.push(text(&decision["job"]));
                    }
                }
                assert_eq!(serde_json::to_value(order).expect("plain"), *expected, "{goal}: {report:#}");
            }
            "at" => {
                for (job, at) in expected.as_object().expect("a table") {
                    let start = decisions(&report, "assign").find(|decision| decision["job"] == **job);
                    let start = start.unwrap_or_else(|| panic!("{goal}: {job} never starts: {report:#}"));
                    assert_eq!(start["at"], *at, "{goal}: {job}: {report:#}");
                }
            }
            "claims" => {
                let claims: Vec<String> =
                    decisions(&report, "claim").map(|decision| text(&decision["job"])).collect();
                assert_eq!(serde_json::to_value(claims).expect("plain"), *expected, "{goal}: {report:#}");
            }
            "stopped" => {
                let mut stopped: BTreeMap<String, Vec<String>> = BTreeMap::new();
                for decision in decisions(&report, "stop") {
                    stopped.entry(text(&decision["job"])).or_default().push(text(&decision["why"]));
                }
                assert_eq!(serde_json::to_value(stopped).expect("plain"), *expected, "{goal}: {report:#}");
            }
            "waiting" => check_waiting(&goal, &report, expected),
            unknown => panic!("{goal}: `{unknown}` is not known"),
        }
    }
}

fn check_waiting(goal: &str, report: &Value, expected: &Value) {
    let waiting = report["waiting"].as_array().expect("a list");
    let expected = expected.as_object().expect("a table");
    let jobs: Vec<&Value> = waiting.iter().map(|group| &group["job"]).collect();
    assert_eq!(jobs.len(), expected.len(), "{goal}: {jobs:?} wait");
    for (job, words) in expected {
        let group = waiting.iter().find(|group| group["job"] == **job);
        let sentence = text(&group.unwrap_or_else(|| panic!("{goal}: {job} does not wait"))["sentence"]);
        for word in words.as_array().expect("a list") {
            assert!(sentence.contains(&text(word)), "{goal}: {word} is not in {sentence:?}");
        }
    }
}

fn check_all(cases: &str, least: usize) {
    let cases: Vec<Value> = serde_json::from_str(cases).expect("the file can be read");
    assert!(cases.len() >= least, "the cases are there");
    cases.iter().for_each(check);
}

/// Goal: what stays together runs in one pool, and pools take work as the operators say.
#[test]
fn groups_and_jobs_stay_in_one_pool() {
    check_all(include_str!("groups/pools.json"), 12);
}

/// Goal: no order of arrivals and ends keeps sets of hosts from running one after the other; a claim keeps
/// hosts for the first of them, and lets others use them only if they do not hold it up.
#[test]
fn sets_of_hosts_neither_block_each_other_nor_starve() {
    check_all(include_str!("groups/deadlock.json"), 18);
}

/// Goal: work that can be stopped at once uses what is claimed until the claimant can start, which is no later
/// for it; work that cannot be stopped at once does not.
#[test]
fn what_can_be_stopped_at_once_runs_on_what_is_claimed() {
    check_all(include_str!("groups/backfill.json"), 17);
}

/// Goal: hosts of labs serve the set of their lab before the queue, and labs come, go and are chosen by name.
#[test]
fn labs_and_their_hosts_serve_sets_and_queues() {
    check_all(include_str!("groups/labs.json"), 8);
}

/// Goal: a set runs if and only if every member can have a host of its own.
#[test]
fn a_set_runs_if_its_members_can_be_matched_with_hosts() {
    check_all(include_str!("groups/feasibility.json"), 6);
}

/// Goal: known groups of equal tasks start whole or not at all.
#[test]
fn known_groups_start_whole_or_not_at_all() {
    check_all(include_str!("groups/gangs.json"), 8);
}
