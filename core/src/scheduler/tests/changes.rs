//! What was decided and does not hold: refused plans, cancelled groups, shrunk nodes.

use super::*;

fn withdrawals(bench: &Bench) -> Vec<Withdrawal> {
    let lists = bench.out.cluster.iter().filter_map(|message| match message {
        ClusterMessage::Withdraw(list) => Some(list.clone()),
        _ => None,
    });
    lists.flatten().collect()
}

/// Goal: a conflict gives back what was charged and replans the refused group alone, in the same
/// turn. Method: two jobs run on two nodes; the first is refused because its node closed.
#[test]
fn a_conflict_is_refunded_and_replans_that_group_alone() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 1, 1]);
    bench.hear(vec![bag(1, 1, SLOT, 1), bag(2, 1, SLOT, 1)]);
    let (refused, on) = bench.attempts()[0];
    assert_eq!((refused.number, on), (1, NodeId(0)));
    let changed = SchedulerMessage::Nodes(vec![closed(0, Resources::of(SLOT, 1))]);
    assert_eq!(bench.hear(vec![changed, SchedulerMessage::Conflict(vec![refused])]), [(1, 0, 0, 2)]);
    assert_eq!(bench.attempts()[0].0.number, 2, "the number of a refused attempt is not used again");
    assert_eq!(bench.scheduler.free_by_node()[&NodeId(0)], Resources::of(SLOT, 1));
}

/// Goal: a refused task for which there is no other place waits, and what it gave back is offered to
/// others. Method: the refused task is too large for what is left, a smaller one behind it is not.
#[test]
fn what_a_conflict_gave_back_is_offered_to_others() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[2]);
    bench.hear(vec![bag(1, 1, CPU, 2), bag(2, 1, CPU, 1)]);
    let (refused, _) = bench.attempts()[0];
    let shrunk = SchedulerMessage::Nodes(vec![node(0, Resources::of(CPU, 1))]);
    assert_eq!(bench.hear(vec![SchedulerMessage::Conflict(vec![refused]), shrunk]), [(2, 0, 0, 0)]);
    assert_eq!(bench.scheduler.waiting_tasks(), 1);
}

/// Goal: a conflict that arrives after the cancel starts nothing. Method: the group is withdrawn while
/// its plan is on its way; the refusal comes in later and a place is free.
#[test]
fn a_conflict_of_a_withdrawn_group_is_not_replanned() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 1]);
    bench.hear(vec![bag(1, 1, SLOT, 1)]);
    let (refused, _) = bench.attempts()[0];
    bench.hear(vec![SchedulerMessage::Withdraw(vec![group(1)])]);
    assert_eq!(bench.hear(vec![SchedulerMessage::Conflict(vec![refused])]), []);
    assert_eq!((bench.scheduler.waiting_tasks(), bench.scheduler.live_tasks().len()), (0, 0));
}

/// Goal: a cancelled group waits for nothing any more, and ClusterState learns of everything that may
/// be live of it. Method: a bag of three with two places is cancelled; later room stays empty.
#[test]
fn a_withdrawn_group_leaves_nothing_waiting_and_names_its_live_attempts() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 1]);
    bench.hear(vec![bag(1, 3, SLOT, 1)]);
    let live = bench.attempts();
    assert_eq!(bench.hear(vec![SchedulerMessage::Withdraw(vec![group(1)])]), []);
    let answered = withdrawals(&bench);
    let mut named = answered[0].attempts.clone();
    named.sort_unstable();
    assert_eq!((answered.len(), answered[0].group), (1, group(1)));
    assert_eq!(named, live.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>());
    assert_eq!(bench.scheduler.waiting_tasks(), 0);
    let pending = bench.pending(&[0]);
    assert_eq!(bench.hear(vec![released(&live, Outcome::Cancelled), pending]), []);
}

/// Goal: cancelling what never ran is answered too, so that the job can end. Method: a waiting bag and
/// a waiting gang are cancelled together.
#[test]
fn a_withdrawal_of_waiting_groups_is_answered_without_attempts() {
    let mut bench = Bench::new();
    let roles = vec![role(Resources::of(SLOT, 1), 2)];
    bench.hear(vec![bag(1, 3, SLOT, 1), gang(2, roles)]);
    bench.hear(vec![SchedulerMessage::Withdraw(vec![group(1), group(2)])]);
    let nothing = |job| Withdrawal { group: group(job), attempts: Vec::new(), cause: StopCause::Cancel };
    assert_eq!(withdrawals(&bench), [nothing(1), nothing(2)]);
    assert_eq!(bench.add_nodes(SLOT, &[5]), []);
}

/// Goal: a group may be forgotten before its last release has come in; the room is given back all the
/// same, and the group is gone then. Method: forget first, release afterwards.
#[test]
fn forgetting_before_the_release_loses_nothing() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1]);
    bench.hear(vec![bag(1, 1, SLOT, 1)]);
    let running = bench.attempts();
    bench.hear(vec![SchedulerMessage::Forget(vec![group(1)])]);
    assert!(bench.scheduler.explain(group(1)).is_some(), "its attempt is still live");
    bench.hear(vec![released(&running, Outcome::Completed)]);
    assert_eq!(bench.scheduler.explain(group(1)), None);
    assert_eq!(bench.hear(vec![bag(2, 1, SLOT, 1)]), [(2, 0, 0, 0)]);
}

/// Goal: a node that shrank stops its newest attempts, as many as needed and no more. Method: three
/// equal tasks, then the capacity falls by one and a half of them.
#[test]
fn a_deficit_stops_the_newest_attempts() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[6]);
    bench.hear(vec![bag(1, 3, CPU, 2)]);
    let live = bench.attempts();
    bench.hear(vec![SchedulerMessage::Nodes(vec![node(0, Resources::of(CPU, 3))])]);
    let newest_first = [(live[2].0, StopCause::CapacityLoss), (live[1].0, StopCause::CapacityLoss)];
    assert_eq!(bench.stops(), newest_first);
    bench.hear(vec![SchedulerMessage::Nodes(vec![node(0, Resources::of(CPU, 3))])]);
    assert_eq!(bench.stops(), [], "those on their way out are counted");
}

/// Goal: only what holds the lacking kind is stopped, however new the rest is. Method: memory shrinks
/// under an old task that holds memory and a newer one that holds only cpu.
#[test]
fn a_deficit_spares_attempts_that_hold_nothing_of_it() {
    let mut bench = Bench::new();
    bench.hear(vec![SchedulerMessage::Nodes(vec![node(0, both((CPU, 4), (MEMORY, 4)))])]);
    bench.hear(vec![bag(1, 1, MEMORY, 4)]);
    let holder = bench.attempts()[0].0;
    bench.hear(vec![bag(2, 1, CPU, 4)]);
    bench.hear(vec![SchedulerMessage::Nodes(vec![node(0, both((CPU, 4), (MEMORY, 3)))])]);
    assert_eq!(bench.stops(), [(holder, StopCause::CapacityLoss)]);
}

/// Goal: what a cancelled group is about to give back counts against a deficit, so that nobody else is
/// stopped for it. Method: the older of two tasks is cancelled, then the node loses that much room.
#[test]
fn a_deficit_that_a_cancelled_group_will_cover_stops_nobody() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[2]);
    bench.hear(vec![bag(1, 1, SLOT, 1), bag(2, 1, SLOT, 1)]);
    bench.hear(vec![SchedulerMessage::Withdraw(vec![group(1)])]);
    bench.hear(vec![SchedulerMessage::Nodes(vec![node(0, Resources::of(SLOT, 1))])]);
    assert_eq!(bench.stops(), []);
}

/// Goal: a node in deficit gets nothing new, not even of a kind that it has. Method: memory is short,
/// a task that needs only cpu arrives.
#[test]
fn a_node_in_deficit_takes_nothing_new() {
    let mut bench = Bench::new();
    bench.hear(vec![SchedulerMessage::Nodes(vec![node(0, both((CPU, 4), (MEMORY, 4)))])]);
    bench.hear(vec![bag(1, 1, MEMORY, 4)]);
    bench.hear(vec![SchedulerMessage::Nodes(vec![node(0, both((CPU, 4), (MEMORY, 3)))])]);
    assert_eq!(bench.hear(vec![bag(2, 1, CPU, 1)]), []);
}

/// Goal: what runs already is entered where it is, also on a closed node, and the rest of the role is
/// planned. Method: two of three tasks are adopted on a closed node beside an open one.
#[test]
fn adopted_tasks_are_entered_where_they_run() {
    let mut bench = Bench::new();
    let news = vec![closed(0, Resources::of(SLOT, 2)), node(1, Resources::of(SLOT, 2))];
    let mut tasks = role(Resources::of(SLOT, 1), 3);
    tasks.adopted = vec![(NodeId(0), 2, Time::ZERO)];
    let arrival = SchedulerMessage::NewGroups(vec![independent(1, vec![tasks])]);
    let placed = bench.hear(vec![SchedulerMessage::Nodes(news), arrival]);
    assert_eq!(placed, [(1, 0, 0, 0), (1, 0, 1, 0), (1, 0, 2, 1)]);
    let [ClusterMessage::Commit(plan)] = bench.out.cluster.as_slice() else { panic!("one plan") };
    let adopted: Vec<bool> = plan.parts.iter().map(|part| part.adopted).collect();
    assert_eq!(adopted, [true, false]);
}

/// Goal: a plan that is on its way to a node that goes is refunded to nobody, and its task runs
/// elsewhere. Method: the node is removed before the conflict comes back.
#[test]
fn a_plan_for_a_node_that_went_is_made_anew_elsewhere() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 1]);
    bench.hear(vec![bag(1, 1, SLOT, 1)]);
    let (refused, on) = bench.attempts()[0];
    let gone = SchedulerMessage::Nodes(vec![NodeNews { node: on, view: None }]);
    assert_eq!(bench.hear(vec![gone, SchedulerMessage::Conflict(vec![refused])]), [(1, 0, 0, 1)]);
}
