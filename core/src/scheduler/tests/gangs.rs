//! Atomic groups: placed whole or not at all, wherever there is a way.

use super::*;

fn members(amount: i64, tasks: u32) -> RoleArrival {
    role(Resources::of(SLOT, amount), tasks)
}

/// Goal: an atomic group starts whole or not at all, and holds nothing while it waits. Method: a gang
/// of three meets two places, small work behind it takes one of them, then a third place appears.
#[test]
fn a_gang_is_placed_whole_or_not_at_all() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 1]);
    assert_eq!(bench.hear(vec![gang(1, vec![members(1, 3)])]), []);
    assert_eq!(bench.hear(vec![bag(2, 1, SLOT, 1)]), [(2, 0, 0, 0)], "nothing is held for the gang");
    let running = bench.attempts();
    let third = SchedulerMessage::Nodes(vec![node(2, Resources::of(SLOT, 1))]);
    let pending = bench.pending(&[2]);
    assert_eq!(bench.hear(vec![third, pending]), [], "two places are not enough");
    let pending = bench.pending(&[0]);
    let placed = bench.hear(vec![released(&running, Outcome::Completed), pending]);
    assert_eq!(placed, [(1, 0, 0, 0), (1, 0, 1, 1), (1, 0, 2, 2)]);
}

/// Goal: the parts of one gang are bound together, so that the ledger books all or nothing. Method:
/// a gang of two roles is planned beside a bag; only the gang's parts are bound.
#[test]
fn the_roles_of_a_gang_are_one_unit_of_the_plan() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[4]);
    let roles = vec![role(Resources::of(CPU, 2), 1), role(Resources::of(CPU, 1), 1)];
    bench.hear(vec![gang(1, roles), bag(2, 1, CPU, 1)]);
    let [ClusterMessage::Commit(plan)] = bench.out.cluster.as_slice() else { panic!("one plan") };
    let parts: Vec<_> = plan.parts.iter().map(|part| (part.count, part.atomic, part.bound_to_next)).collect();
    assert_eq!(parts, [(1, true, true), (1, true, false), (1, false, false)]);
}

/// Goal: a role that fits anywhere leaves the only node of another role to it. Method: taking the
/// fewest tasks and smallest id first would put the light role on the one large node.
#[test]
fn a_role_that_fits_anywhere_leaves_the_only_node_of_another() {
    let mut bench = Bench::new();
    let news = vec![node(0, both((CPU, 4), (MEMORY, 1))), node(1, both((CPU, 1), (MEMORY, 1)))];
    bench.hear(vec![SchedulerMessage::Nodes(news)]);
    // The light role asks for memory, the scarcer kind, and so it looks for room first.
    let light = role(both((CPU, 1), (MEMORY, 1)), 1);
    let heavy = role(Resources::of(CPU, 4), 1);
    let mut placed = bench.hear(vec![gang(1, vec![light, heavy])]);
    placed.sort_unstable();
    assert_eq!(placed, [(1, 0, 0, 1), (1, 1, 0, 0)]);
}

/// Goal: identical tasks are distributed in the one way that leaves room for the rest. Method: two
/// tasks of one role must share a node, although spreading them looks better at first.
#[test]
fn tasks_share_a_node_where_that_is_the_only_way() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[4, 3]);
    // Looking for room one after the other puts the three on the first node, and then only one two
    // finds a place. The only way is both twos there and the three on the second node.
    let roles = vec![role(Resources::of(CPU, 2), 2), role(Resources::of(CPU, 3), 1)];
    let mut placed = bench.hear(vec![gang(1, roles)]);
    placed.sort_unstable();
    assert_eq!(placed, [(1, 0, 0, 0), (1, 0, 1, 0), (1, 1, 0, 1)]);
}

/// Goal: the search for room ends, however many tasks there are. Method: two roles of 60,000 tasks,
/// each of which fits alone, meet one node that cannot hold both; the work behind them starts.
#[test]
fn a_large_gang_that_does_not_fit_is_given_up_soon() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[100_000]);
    let roles = vec![role(Resources::of(CPU, 1), 60_000), role(Resources::of(CPU, 1), 60_000)];
    assert_eq!(bench.hear(vec![gang(1, roles), bag(2, 1, CPU, 1)]), [(2, 0, 0, 0)]);
}

/// Goal: a refused gang is refunded and replanned whole in the same turn. Method: one of its nodes
/// closes while the plan is on its way, so the ledger refuses all members; another node is free.
#[test]
fn a_refused_gang_is_planned_anew_as_a_whole() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 1, 1]);
    assert_eq!(bench.hear(vec![gang(1, vec![members(1, 2)])]), [(1, 0, 0, 0), (1, 0, 1, 1)]);
    let refused = bench.attempts().into_iter().map(|(attempt, _)| attempt).collect();
    let changed = SchedulerMessage::Nodes(vec![closed(0, Resources::of(SLOT, 1))]);
    let placed = bench.hear(vec![changed, SchedulerMessage::Conflict(refused)]);
    assert_eq!(placed, [(1, 0, 0, 1), (1, 0, 1, 2)]);
    assert!(bench.attempts().iter().all(|(attempt, _)| attempt.number == 2));
}

/// Goal: when a member of a gang is lost the others are stopped once, and the gang starts again only
/// when all of it has come back. Method: one loss, the order to break, the ends, the return.
#[test]
fn a_broken_gang_stops_its_rest_and_starts_again_whole() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 1]);
    bench.hear(vec![gang(1, vec![members(1, 2)])]);
    let [lost, rest] = bench.attempts()[..] else { panic!("two members") };
    bench.hear(vec![released(&[lost], Outcome::Lost), SchedulerMessage::Break(vec![group(1)])]);
    assert_eq!(bench.stops(), [(rest.0, StopCause::GroupBroken)]);
    bench.hear(vec![SchedulerMessage::Break(vec![group(1)])]);
    assert_eq!(bench.stops(), [], "nothing is stopped twice");
    let back =
        [lost, rest].map(|(attempt, _)| ReturnedTask { task: attempt.task, number: 2, avoid: Vec::new() });
    let ended = released(&[rest], Outcome::Preempted(StopCause::GroupBroken));
    let pending = bench.pending(&[0, 1]);
    let placed = bench.hear(vec![ended, SchedulerMessage::Return(back.to_vec()), pending]);
    assert_eq!(placed, [(1, 0, 0, 0), (1, 0, 1, 1)]);
}

/// Goal: a gang whose window is open waits for it, also when a node becomes pending. Method: room for
/// the whole gang becomes pending inside the window; the gang starts when the window closes.
#[test]
fn a_gang_that_is_still_collected_waits_for_its_window() {
    let mut bench = Bench::with_windows();
    assert_eq!(bench.hear(vec![gang(1, vec![members(1, 2)])]), []);
    assert_eq!(bench.add_nodes(SLOT, &[2]), []);
    bench.scheduler.wake(Time(50_000), &mut bench.out);
    assert_eq!(bench.attempts().len(), 2);
}

/// Goal: a group that needs more credit than is left is not passed by smaller work, turn after turn. Method:
/// with two of five left a gang of three has its turn, then another task arrives.
#[test]
fn credit_that_a_gang_waits_for_is_used_by_nobody_else() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[10]);
    let credit = |granted| SchedulerMessage::Credit { granted, window: 5 };
    assert_eq!(bench.hear(vec![credit(5), bag(1, 3, SLOT, 1)]).len(), 3);
    assert_eq!(bench.hear(vec![gang(2, vec![members(1, 3)])]), []);
    assert_eq!(bench.hear(vec![bag(3, 1, SLOT, 1)]), [], "the gang is next");
    let placed = bench.hear(vec![credit(8)]);
    let jobs: Vec<u64> = placed.iter().map(|(job, ..)| *job).collect();
    assert_eq!(jobs, [2, 2, 2, 3]);
}
