//! Nodes on which a service keeps failing come last, and nothing else changes.

use proptest::prelude::*;

use super::*;
use crate::messages::PastFailure;
use crate::outcome::FailureCause;
use crate::scheduler::faults::Faults;
use crate::settings::FaultySettings;
use crate::spec::Rules;

fn service(version: u64) -> (String, u64) {
    ("web".into(), version)
}

fn replicas(job: u64, version: u64, tasks: u32) -> SchedulerMessage {
    let shape = ShapeSpec {
        service: Some(service(version).into()),
        request: Resources::of(SLOT, 1),
        ..ShapeSpec::default()
    };
    let arrival = RoleArrival { shape: Arc::new(shape), tasks, ..role(Resources::new(), 0) };
    SchedulerMessage::NewGroups(vec![independent(job, vec![arrival])])
}

/// So many failures of the first version on a node, all at this time.
fn failures(node: u32, count: usize, at: Time) -> SchedulerMessage {
    let one = PastFailure { service: service(1), node: NodeId(node), at };
    SchedulerMessage::PastFailures(vec![one; count])
}

fn nodes_of(placed: Vec<Placed>) -> Vec<u32> {
    placed.into_iter().map(|(_, _, _, node)| node).collect()
}

const MINUTE: Span = Span::from_whole_seconds(60);

#[test]
fn what_the_scheduler_hears_of_failing_puts_a_node_last_until_it_is_old() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[9, 9]);
    for job in 1..=5 {
        // The other node has a task of something else, so the first one is preferred.
        assert_eq!(nodes_of(bench.hear_at(Time(job), vec![replicas(job, 1, 1)])), [0]);
        let ended = bench.attempts();
        let pending = bench.pending(&[0]);
        bench.hear_at(Time(job), vec![released(&ended, Outcome::Failed(FailureCause::Error)), pending]);
    }
    assert_eq!(bench.scheduler.flags(), BTreeMap::from([(service(1), vec![NodeId(0)])]));
    assert_eq!(nodes_of(bench.hear_at(Time(6), vec![replicas(6, 1, 2)])), [1, 1]);
    assert_eq!(nodes_of(bench.hear_at(Time(7), vec![replicas(7, 2, 1)])), [0], "another version");
    let last = Time(1) + Settings::default().faulty.within;
    assert_eq!(nodes_of(bench.hear_at(last, vec![replicas(8, 1, 1)])), [1], "five minutes to the end");
    assert_eq!(nodes_of(bench.hear_at(last + Span(1), vec![replicas(9, 1, 1)])), [0]);
}

/// Goal: only what a task did by itself counts. Method: five of every other end.
#[test]
fn other_ends_are_no_failures() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[9]);
    let others =
        [Outcome::Completed, Outcome::Cancelled, Outcome::Lost, Outcome::Preempted(StopCause::CapacityLoss)];
    for (job, outcome) in others.into_iter().enumerate() {
        bench.hear(vec![replicas(job as u64 + 1, 1, 5)]);
        let ended = bench.attempts();
        bench.hear(vec![released(&ended, outcome)]);
        assert_eq!(bench.scheduler.flags(), BTreeMap::new(), "{outcome:?}");
    }
}

/// Goal: a flagged node that gains room takes what waits only if nobody else has room. Method: both nodes
/// gain room in one turn, then the flagged one alone.
#[test]
fn of_nodes_that_gain_room_together_the_flagged_one_comes_last() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[0, 0]);
    bench.hear(vec![failures(0, 5, Time::ZERO), replicas(1, 1, 3)]);
    let grown = |id: u32, slots: i64| SchedulerMessage::Nodes(vec![node(id, Resources::of(SLOT, slots))]);
    let pending = bench.pending(&[0, 1]);
    let placed = bench.hear(vec![grown(0, 1), grown(1, 2), pending]);
    assert_eq!(nodes_of(placed), [1, 1, 0], "everything that fits is placed, the flagged node last");
    let pending = bench.pending(&[0]);
    bench.hear(vec![replicas(2, 1, 1)]);
    assert_eq!(nodes_of(bench.hear(vec![grown(0, 2), pending])), [0], "nothing else has room");
}

/// Goal: a node that gains room does not take a task that still collects if it is flagged and another has
/// room. Method: the window is open when the node becomes pending.
#[test]
fn a_flagged_node_does_not_take_what_others_will_take() {
    let mut bench = Bench::with_windows();
    bench.add_nodes(SLOT, &[1, 1]);
    bench.hear(vec![failures(0, 5, Time::ZERO), replicas(1, 1, 1)]);
    let pending = bench.pending(&[0]);
    assert_eq!(nodes_of(bench.hear(vec![pending])), [1]);
}

/// Goal: a gang does without flagged nodes if any way without them exists. Method: one after the other
/// ends in a corner, only the exact search finds the way.
#[test]
fn a_gang_is_searched_for_without_flagged_nodes_first() {
    let mut bench = Bench::new();
    let news = vec![
        node(0, both((CPU, 4), (MEMORY, 1))),
        node(1, both((CPU, 4), (MEMORY, 1))),
        node(2, both((CPU, 1), (MEMORY, 1))),
    ];
    bench.hear(vec![SchedulerMessage::Nodes(news), failures(0, 5, Time::ZERO)]);
    let of_service = |request: Resources| {
        let shape = ShapeSpec { service: Some(service(1).into()), request, ..ShapeSpec::default() };
        RoleArrival { shape: Arc::new(shape), tasks: 1, ..role(Resources::new(), 0) }
    };
    let roles = vec![of_service(both((CPU, 1), (MEMORY, 1))), of_service(Resources::of(CPU, 4))];
    let mut placed = bench.hear(vec![gang(1, roles.clone())]);
    placed.sort_unstable();
    assert_eq!(placed, [(1, 0, 0, 2), (1, 1, 0, 1)]);
    let mut placed = bench.hear(vec![gang(2, vec![roles[1].clone()])]);
    placed.sort_unstable();
    assert_eq!(placed, [(2, 0, 0, 0)], "the next one needs the flagged node");
}

#[test]
fn a_task_for_one_node_has_no_choice_and_its_failures_do_not_count() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[9, 9]);
    let pinned = || {
        let rules = Rules { node: Some("n0".into()), ..Rules::default() };
        let (service, request) = (Some(service(1).into()), Resources::of(SLOT, 1));
        Arc::new(ShapeSpec { service, request, rules: rules.into(), ..ShapeSpec::default() })
    };
    let agent = |job: u64| {
        let arrival = RoleArrival { shape: pinned(), tasks: 5, ..role(Resources::new(), 0) };
        SchedulerMessage::NewGroups(vec![independent(job, vec![arrival])])
    };
    assert_eq!(nodes_of(bench.hear(vec![failures(0, 5, Time::ZERO), agent(1)])), [0; 5]);
    let ended = bench.attempts();
    let later = Time::ZERO + Settings::default().faulty.within + Span(1);
    bench.hear_at(later, vec![released(&ended, Outcome::Failed(FailureCause::Error))]);
    assert_eq!(bench.scheduler.flags(), BTreeMap::new());
}

#[test]
fn a_node_that_is_gone_takes_its_failures_with_it() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 1]);
    bench.hear(vec![failures(0, 5, Time::ZERO), failures(1, 5, Time::ZERO)]);
    bench.hear(vec![SchedulerMessage::Nodes(vec![NodeNews { node: NodeId(0), view: None }])]);
    assert_eq!(bench.scheduler.flags(), BTreeMap::from([(service(1), vec![NodeId(1)])]));
}

#[test]
fn what_is_remembered_is_bounded_and_the_oldest_is_forgotten() {
    let mut faults = Faults::new(FaultySettings { failures: 1, ..FaultySettings::default() });
    for node in 0..100_010 {
        faults.record(&service(1), NodeId(node), Time(u64::from(node)));
    }
    let (_, flagged) = faults.flags().next().expect("all are flagged");
    assert_eq!((flagged.len(), flagged[0]), (100_000, NodeId(10)));
}

proptest! {
    /// Goal: flags are what a plain count of the failures says, whatever happens in which order, and a
    /// memory that was rebuilt knows the same.
    #[test]
    fn flags_are_what_a_plain_count_says(
        needed in 1u64..4,
        steps in prop::collection::vec((0u64..40, 0u32..3, 1u64..3, 0u8..12), 1..80),
    ) {
        let settings = FaultySettings { failures: needed, within: MINUTE, ..FaultySettings::default() };
        let mut faults = Faults::new(settings);
        let mut plain: Vec<(NodeId, (String, u64), Time)> = Vec::new();
        let mut now = Time::ZERO;
        for (seconds, node, version, what) in steps {
            now = now + Span::from_whole_seconds(seconds);
            faults.advance(now);
            match what {
                0 => {
                    faults.forget_node(NodeId(node));
                    plain.retain(|(other, _, _)| *other != NodeId(node));
                }
                1 => faults.rebuild(),
                _ => {
                    faults.record(&service(version), NodeId(node), now);
                    plain.push((NodeId(node), service(version), now));
                }
            }
            for version in 1..3 {
                let failures = |node: &NodeId| {
                    let counts = |(other, of, at): &&(NodeId, (String, u64), Time)| {
                        other == node && *of == service(version) && *at + MINUTE >= now
                    };
                    plain.iter().filter(counts).count() as u64
                };
                let expected: Vec<NodeId> = (0..3).map(NodeId).filter(|node| failures(node) >= needed).collect();
                let shape = ShapeSpec { service: Some(service(version).into()), ..ShapeSpec::default() };
                let found = faults.flagged_for(&shape).map(|nodes| nodes.to_vec()).unwrap_or_default();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
