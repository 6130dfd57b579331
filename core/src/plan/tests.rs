//! Dry runs from typed scenarios: what the file format cannot get wrong any more.

use std::collections::BTreeMap;

use super::*;
use crate::resources::{KindId, Resources};
use crate::spec::{JobSpec, NodeSpec};
use crate::time::Time;

const SLOT: KindId = KindId(0);

fn scenario(nodes: usize, jobs: &[(&str, u32)]) -> Scenario {
    let node = |index| NodeSpec::new(format!("n{index}"), Resources::of(SLOT, 1_000));
    let job = |(name, tasks): &(&str, u32)| ScenarioJob {
        spec: JobSpec::bag(*name, *tasks, Resources::of(SLOT, 1_000)),
        submitted: Time::ZERO,
        parent: None,
        preparations: BTreeMap::new(),
    };
    Scenario {
        nodes: (0..nodes).map(node).collect(),
        jobs: jobs.iter().map(job).collect(),
        ..Scenario::default()
    }
}

fn running(count: u32, node: Option<usize>) -> RunningTasks {
    RunningTasks { job: 0, group: 0, role: 0, count, node, started: Time::ZERO }
}

#[test]
fn first_come_is_first_served_and_the_rest_is_explained() {
    let report = run(&scenario(3, &[("a", 2), ("b", 2)])).expect("a good scenario");
    assert_eq!(report.summary.assigned_by_job, [("a".into(), 2), ("b".into(), 1)].into());
    assert_eq!(report.waiting.len(), 1);
    assert_eq!(
        report.waiting[0].sentence,
        "1 task waits: no node has room now (of 3 nodes 3 lack slot); nearest: 1 more slot on node n0"
    );
}

#[test]
fn running_tasks_are_laid_and_are_no_decisions() {
    let mut scenario = scenario(3, &[("a", 4)]);
    scenario.running = vec![running(1, Some(2))];
    let report = run(&scenario).expect("a good scenario");
    assert_eq!(report.summary.assigned_by_node, [("n0".into(), 1), ("n1".into(), 1)].into());
    assert_eq!(report.decisions[0].task, 1);
}

#[test]
fn running_tasks_that_cannot_be_there_are_refused() {
    let mut scenario = scenario(1, &[("a", 4)]);
    scenario.running = vec![running(2, None)];
    let error = run(&scenario).expect_err("two do not fit");
    assert!(error.to_string().starts_with("running[0]: no node has room"), "{error}");
}

#[test]
fn more_tasks_than_run_cannot_finish() {
    let mut scenario = scenario(1, &[("a", 4)]);
    let what = Happening::Finish { job: "a".into(), count: 3 };
    scenario.events = vec![ScenarioEvent { at: Time(5), what }];
    let error = run(&scenario).expect_err("only one runs");
    assert!(error.to_string().contains("has only 1 running tasks"), "{error}");
}
