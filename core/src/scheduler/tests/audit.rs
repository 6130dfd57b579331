//! What the Monitor has compared: ends and wake-ups that were lost are found and mended, and nothing is found
//! where all is well.

use super::*;
use crate::messages::{Audit, Finding, HostMessage, NodeAudit};

fn audit(free: i64, live: &[(Attempt, NodeId)]) -> SchedulerMessage {
    let live = live.iter().map(|(attempt, _)| *attempt).collect();
    let view = node(0, Resources::of(SLOT, 1)).view.expect("it is there");
    audit_of(vec![NodeAudit { node: NodeId(0), session: 0, view, free: Resources::of(SLOT, free), live }])
}

fn audit_of(nodes: Vec<NodeAudit>) -> SchedulerMessage {
    SchedulerMessage::Audit(Arc::new(Audit { first: NodeId(0), nodes, next: None }))
}

impl Bench {
    fn findings(&self) -> Vec<Finding> {
        let found = self.out.host.iter().filter_map(|message| match message {
            HostMessage::Finding(finding) => Some(finding.clone()),
            _ => None,
        });
        found.collect()
    }

    /// A node with one slot, on which the first of two tasks runs.
    fn with_one_of_two() -> (Bench, Vec<(Attempt, NodeId)>) {
        let mut bench = Bench::new();
        bench.add_nodes(SLOT, &[1]);
        bench.hear(vec![bag(1, 2, SLOT, 1)]);
        let live = bench.attempts();
        assert_eq!(live.len(), 1);
        (bench, live)
    }
}

#[test]
fn a_right_view_and_a_plan_on_its_way_give_no_finding() {
    let (mut bench, live) = Bench::with_one_of_two();
    bench.hear(vec![audit(1, &[])]);
    assert!(bench.findings().is_empty(), "the ledger is behind");
    bench.hear(vec![SchedulerMessage::Committed { plan: 1 }]);
    bench.hear(vec![audit(0, &live)]);
    assert!(bench.findings().is_empty());
}

#[test]
fn a_lost_wake_up_is_found_and_healed() {
    let (mut bench, live) = Bench::with_one_of_two();
    // The release comes without the word that the node has room: the check would say so at once.
    let (mut out, batch) = (Outbox::default(), vec![SchedulerMessage::Committed { plan: 1 }]);
    bench.scheduler.receive(Time::ZERO, batch, &mut out);
    bench.scheduler.receive(Time::ZERO, vec![released(&live, Outcome::Completed)], &mut out);
    assert_eq!(bench.hear(vec![audit(1, &[])]), [(1, 0, 1, 0)]);
    assert_eq!(bench.findings(), [Finding::LostWakeUp { group: group(1), turn: 5 }]);
}

#[test]
fn an_end_that_was_not_heard_is_found_and_made_good() {
    let (mut bench, live) = Bench::with_one_of_two();
    bench.hear(vec![SchedulerMessage::Committed { plan: 1 }]);
    assert_eq!(bench.hear(vec![audit(1, &[])]), [(1, 0, 1, 0)], "the second takes the place of the first");
    assert_eq!(bench.findings()[0], Finding::EndUnheard(live[0].0));
}

#[test]
fn a_sum_that_cannot_be_mended_is_reported() {
    let (mut bench, live) = Bench::with_one_of_two();
    bench.hear(vec![SchedulerMessage::Committed { plan: 1 }]);
    bench.hear(vec![audit(5, &live)]);
    assert_eq!(bench.findings(), [Finding::WrongSum(NodeId(0))]);
}

/// A node that was paused, or came, or went, in silence.
#[test]
fn a_wrong_view_is_replaced_by_the_right_one() {
    let (mut bench, live) = Bench::with_one_of_two();
    bench.hear(vec![SchedulerMessage::Committed { plan: 1 }]);
    let live = live.iter().map(|(attempt, _)| *attempt).collect();
    let paused = closed(0, Resources::of(SLOT, 1)).view.expect("it is there");
    let paused = NodeAudit { node: NodeId(0), session: 0, view: paused, free: Resources::of(SLOT, 0), live };
    let view = node(1, Resources::of(SLOT, 1)).view.expect("it is there");
    let new = NodeAudit { node: NodeId(1), session: 1, view, free: Resources::of(SLOT, 1), live: Vec::new() };
    assert_eq!(bench.hear(vec![audit_of(vec![paused, new.clone()])]), [(1, 0, 1, 1)], "there is room now");
    let wrong = |id| Finding::WrongView(NodeId(id));
    assert_eq!(bench.findings()[..2], [wrong(0), wrong(1)]);
    assert!(!bench.scheduler.open_nodes().contains(&NodeId(0)));
    let live = bench.attempts().iter().map(|(attempt, _)| *attempt).collect();
    bench.hear(vec![SchedulerMessage::Committed { plan: 2 }]);
    bench.hear(vec![audit_of(vec![NodeAudit { free: Resources::of(SLOT, 0), live, ..new }])]);
    assert_eq!(bench.findings(), [wrong(0)], "it is gone");
    assert_eq!(bench.scheduler.free_by_node().len(), 1);
}
