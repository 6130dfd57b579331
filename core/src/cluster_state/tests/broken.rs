//! Nodes that break down because too much fails on them.

use proptest::prelude::*;

use super::*;
use crate::breakdown::Culprit;
use crate::messages::HostMessage;
use crate::outcome::{FailureCause, Phase};
use crate::settings::FaultySettings;
use crate::spec::Condition;
use crate::time::Span;

impl Bench {
    fn with_faulty(broken_after: u64, probe: Span) -> Bench {
        let mut bench = Bench::new();
        let faulty = FaultySettings { broken_after, probe, ..FaultySettings::default() };
        let settings = Settings { faulty, ..Settings::default() };
        bench.hear(ClusterMessage::Settings(Arc::new(settings)));
        bench
    }

    fn node(&self) -> &Node {
        self.cluster.node(NodeId(0)).expect("the node is there")
    }

    /// A task of this job and service runs on the node, whatever its condition, and ends like this.
    fn end(&mut self, now: Time, slot: u32, job: u64, service: Option<&str>, exit: Exit) -> Outbox {
        let service = service.map(|name| Box::new((name.to_owned(), u64::from(slot))));
        let shape = Arc::new(ShapeSpec { service, ..ShapeSpec::default() });
        let task = TaskId { group: GroupId::new(JobId(job), 0), role: 0, index: slot };
        let attempt = Attempt { task, number: 1, slot: Slot(slot) };
        let part =
            PlanPart { shape, count: 1, atomic: false, bound_to_next: false, adopted: true, timeout: None };
        let placements = vec![Placement { attempt, node: NodeId(0), version: self.version() }];
        let plan = Plan { number: 1, parts: vec![part], placements };
        self.hear_at(now, ClusterMessage::Commit(plan));
        self.hear_at(now, ClusterMessage::Ended(vec![EndReport { attempt, exit }])).clone()
    }

    fn set_condition(&mut self, now: Time, condition: Condition) -> Outbox {
        let patch = Box::new(NodePatch { condition: Some(condition), ..NodePatch::default() });
        let update = ClusterMessage::UpdateNode { ticket: Ticket(2), name: "n".into(), patch };
        self.hear_at(now, update).clone()
    }
}

/// What is said of nodes but how they stand, which follows every change.
fn node_events(out: &Outbox) -> Vec<&NodeEvent> {
    let events = out.host.iter().filter_map(|message| match message {
        HostMessage::Node(NodeEvent::State { .. }) => None,
        HostMessage::Node(event) => Some(event),
        _ => None,
    });
    events.collect()
}

/// Goal: the event, the node and the Scheduler's view carry the same reason, and what was planned
/// meanwhile is a conflict. Method: two services and a job of none fail in a row.
#[test]
fn a_node_that_breaks_down_says_why_and_takes_nothing_that_was_planned_for_it() {
    let mut bench = Bench::with_faulty(3, Span::from_whole_seconds(10));
    let planned = bench.version();
    bench.end(Time(1), 0, 1, Some("web"), Exit::Failed(FailureCause::Error));
    bench.end(Time(2), 1, 2, Some("web"), Exit::Failed(FailureCause::Error));
    bench.end(Time(3), 2, 3, Some("db"), Exit::TimedOut(Phase::Running));
    assert_eq!(bench.node().condition, Condition::Automated);
    let out = bench.end(Time(4), 3, 4, None, Exit::Failed(FailureCause::Error));
    let breakdown = bench.node().breakdown.clone().expect("it broke down");
    let failed = [Culprit::Service("web".into()), Culprit::Service("db".into()), Culprit::Job(JobId(4))];
    assert_eq!((breakdown.failed.as_slice(), breakdown.since), (failed.as_slice(), Time(4)));
    let event = NodeEvent::Broken { node: NodeId(0), breakdown: Arc::clone(&breakdown) };
    assert_eq!(node_events(&out), [&event]);
    let view = out.scheduler.iter().find_map(|message| match message {
        SchedulerMessage::Nodes(news) => news[0].view.clone(),
        _ => None,
    });
    let view = view.expect("the Scheduler is told");
    assert_eq!((view.open, view.breakdown.as_ref()), (false, Some(&breakdown)));
    assert_eq!(conflicts(bench.hear_at(Time(5), plan(&[9], planned, false))), 1);
    let version = bench.version();
    assert_eq!(conflicts(bench.hear_at(Time(5), plan(&[9], version, true))), 1, "not for a group either");
}

#[test]
fn a_node_that_broke_down_is_tried_again_when_its_time_has_come() {
    let mut bench = Bench::with_faulty(1, Span::from_whole_seconds(10));
    bench.end(Time(1), 0, 1, None, Exit::Failed(FailureCause::Error));
    let due = Time(1) + Span::from_whole_seconds(10);
    assert_eq!(bench.cluster.wake_at(), Some(due));
    let mut restored = bench.cluster.clone();
    restored.rebuild();
    assert_eq!(restored.wake_at(), Some(due), "also after a restore");
    let out = bench.hear_at(due, ClusterMessage::Seen { sequence: 0 }).clone();
    assert_eq!(node_events(&out), [&NodeEvent::BreakdownOver { node: NodeId(0) }]);
    assert!(bench.node().takes_work() && bench.node().breakdown.is_none());
    assert_eq!(bench.cluster.wake_at(), None);
}

#[test]
fn a_node_called_broken_by_hand_stays_broken() {
    let mut bench = Bench::with_faulty(1, Span::from_whole_seconds(10));
    bench.end(Time(1), 0, 1, None, Exit::Failed(FailureCause::Error));
    let out = bench.set_condition(Time(2), Condition::Broken);
    assert_eq!(node_events(&out), [&NodeEvent::BreakdownOver { node: NodeId(0) }]);
    assert_eq!((bench.cluster.wake_at(), bench.node().condition), (None, Condition::Broken));
    let removed = ClusterMessage::RemoveNode { ticket: Ticket(3), name: "n".into() };
    bench.set_condition(Time(3), Condition::Automated);
    bench.end(Time(4), 1, 1, None, Exit::Failed(FailureCause::Error));
    bench.hear_at(Time(5), removed);
    assert_eq!(bench.cluster.wake_at(), None, "a node that is gone is not tried again");
}

#[derive(Clone, Debug)]
enum Step {
    End { service: usize, exit: Exit },
    Hand(Condition),
    Pass(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let exits = [
        Exit::Completed,
        Exit::Failed(FailureCause::Error),
        Exit::Failed(FailureCause::NotStarted),
        Exit::TimedOut(Phase::Waiting),
        Exit::Stopped,
        Exit::Lost,
    ];
    let conditions = [Condition::Automated, Condition::Automated, Condition::Manual, Condition::Broken];
    prop_oneof![
        8 => (0usize..5, prop::sample::select(exits.to_vec()))
            .prop_map(|(service, exit)| Step::End { service, exit }),
        1 => prop::sample::select(conditions.to_vec()).prop_map(Step::Hand),
        1 => (1u64..30).prop_map(Step::Pass),
    ]
}

proptest! {
    /// Goal: a node is broken exactly when so many different services failed in a row. Method: the same
    /// history folded in the plainest way.
    #[test]
    fn a_node_breaks_down_exactly_when_so_many_failed_in_a_row(
        broken_after in 0u64..4,
        probe in 0u64..20,
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let mut bench = Bench::with_faulty(broken_after, Span(probe));
        let (mut now, mut condition) = (Time(1), Condition::Automated);
        let (mut row, mut until): (Vec<usize>, Option<Time>) = (Vec::new(), None);
        for (slot, step) in steps.into_iter().enumerate() {
            if let Step::Pass(micros) = step {
                now = now + Span(micros);
            }
            if until.is_some_and(|until| until <= now) {
                (condition, until) = (Condition::Automated, None);
                row.clear();
            }
            match step {
                Step::End { service, exit } => {
                    // Three services, and jobs that belong to none.
                    let name = ["a", "b", "c"].get(service).copied();
                    bench.end(now, slot as u32, service as u64 + 1, name, exit);
                    match exit {
                        Exit::Completed => row.clear(),
                        Exit::Failed(_) | Exit::TimedOut(_) if condition == Condition::Automated => {
                            row.retain(|known| *known != service);
                            row.push(service);
                        }
                        _ => {}
                    }
                    if broken_after > 0 && row.len() as u64 == broken_after {
                        row.clear();
                        condition = Condition::Broken;
                        until = (probe > 0).then(|| now + Span(probe));
                    }
                }
                Step::Hand(by_hand) => {
                    bench.set_condition(now, by_hand);
                    (condition, until) = (by_hand, None);
                    row.clear();
                }
                Step::Pass(_) => drop(bench.hear_at(now, ClusterMessage::Seen { sequence: 0 })),
            }
            prop_assert_eq!(bench.node().condition, condition);
            prop_assert_eq!(bench.node().breakdown.as_ref().and_then(|breakdown| breakdown.until), until);
        }
    }
}
