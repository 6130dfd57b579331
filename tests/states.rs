//! The states of tasks, groups and jobs: which may follow which, what several are together, and that cancel
//! and abort end everything that has not ended.
//!
//! The data in `tests/states/` is known cases in our words; what was not taken is in `NOT_TAKEN.md` there.

use plimsoll::core::outcome::{FailureCause, Outcome, Phase, TaskState};
use plimsoll::core::plan::{self, DecisionKind};
use plimsoll::core::roll_up::{TaskResult, state_of_all};
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

fn state(name: &Value) -> TaskState {
    let name = name.as_str().expect("a name");
    TaskState::ALL.into_iter().find(|state| state.name() == name).unwrap_or_else(|| panic!("no state {name}"))
}

fn result(name: &Value) -> TaskResult {
    use TaskResult::{Fail, New, None, Panic, Pass, Skip, Warn};
    let name = name.as_str().expect("a name");
    let all = [New, None, Skip, Pass, Warn, Fail, Panic];
    all.into_iter().find(|result| result.name() == name).unwrap_or_else(|| panic!("no result {name}"))
}

#[test]
fn a_task_goes_only_where_its_state_allows() {
    let moves: Vec<Value> = serde_json::from_str(include_str!("states/guard.json")).expect("readable");
    assert_eq!(moves.len(), 56, "every pair of the eight states that both have");
    for step in &moves {
        let (from, to) = (state(&step["from"]), state(&step["to"]));
        assert_eq!(json!(from.may_become(to)), step["ours"], "{step}");
        assert_eq!(step["ours"] != step["theirs"], step["why"].is_string(), "a difference has a reason");
    }
    for from in TaskState::ALL {
        for end in [TaskState::Cancelled, TaskState::Aborted, TaskState::Failed] {
            assert_eq!(from.may_become(end), !from.is_final(), "{from:?} to {end:?}");
        }
    }
}

#[test]
fn the_state_of_a_group_is_that_of_its_tasks() {
    let cases: Value = serde_json::from_str(include_str!("states/roll_up.json")).expect("readable");
    for case in cases["states"].as_array().expect("a list") {
        let tasks = case["tasks"].as_array().expect("a list");
        let forward = state_of_all(tasks.iter().map(state));
        let backward = state_of_all(tasks.iter().rev().map(state));
        assert_eq!((forward, backward), (Some(state(&case["group"])), forward), "{case}");
    }
    for case in cases["results"].as_array().expect("a list") {
        let tasks = case["tasks"].as_array().expect("a list");
        assert_eq!(TaskResult::of_all(tasks.iter().map(result)), result(&case["group"]), "{case}");
    }
}

#[test]
fn every_outcome_has_a_result_and_only_a_good_one_passes() {
    let outcomes = [
        (Outcome::Completed, TaskResult::Pass),
        (Outcome::Failed(FailureCause::Error), TaskResult::Fail),
        (Outcome::Failed(FailureCause::Panic), TaskResult::Panic),
        (Outcome::TimedOut(Phase::Running), TaskResult::Warn),
        (Outcome::Cancelled, TaskResult::Warn),
        (Outcome::Aborted, TaskResult::Warn),
        (Outcome::Lost, TaskResult::Warn),
    ];
    for (outcome, result) in outcomes {
        assert_eq!(TaskResult::of(outcome), result, "{outcome:?}");
    }
}

/// Runs a dry run and says what was stopped, and why.
fn stops(scenario: &Value) -> Vec<(String, String)> {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"));
    let stopped = report.decisions.iter().filter(|decision| decision.kind == DecisionKind::Stop);
    stopped.map(|decision| (decision.job.clone(), decision.why.clone())).collect()
}

#[test]
fn an_abort_ends_what_runs_and_what_waits() {
    let scenario = json!({
        "settings": {"window": 0},
        "nodes": [{"name": "n", "capacity": {"slot": 2}}],
        "jobs": [{"name": "a", "tasks": 3, "request": {"slot": 1}}, {"name": "b", "tasks": 2, "request": {"slot": 1}}],
        "events": [
            {"at": 1, "abort": {"job": "a", "reason": "its project is over"}},
            {"at": 2, "cancel": {"job": "b"}},
            {"at": 3, "abort": {"job": "b"}},
        ],
    });
    let expected = [("a", "its job was aborted"), ("a", "its job was aborted")];
    let expected = expected.into_iter().chain([("b", "its job was cancelled"); 2]);
    let expected: Vec<_> = expected.map(|(job, why)| (job.to_owned(), why.to_owned())).collect();
    assert_eq!(stops(&scenario), expected);
}
