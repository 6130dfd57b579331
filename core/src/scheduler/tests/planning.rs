//! Who is served first, and where: order of arrival, room, and the fewest tasks.

use super::*;
use crate::messages::HostMessage;
use crate::spec::Rules;

/// Goal: arrival alone decides who is served first, whatever the shape. Method: three jobs of two
/// shapes wait; a node comes in that has room for the first two of them only.
#[test]
fn first_come_is_first_served_across_shapes() {
    let mut bench = Bench::new();
    bench.hear(vec![bag(1, 1, CPU, 2), bag(2, 1, CPU, 1), bag(3, 1, CPU, 2)]);
    assert_eq!(bench.add_nodes(CPU, &[4]), [(1, 0, 0, 0), (2, 0, 0, 0)]);
    assert_eq!(bench.scheduler.waiting_tasks(), 1);
}

/// Goal: within one shape the older job goes first until it is served whole. Method: two jobs of one
/// shape compete for three places.
#[test]
fn first_come_is_first_served_within_a_shape() {
    let mut bench = Bench::new();
    bench.hear(vec![bag(1, 2, SLOT, 1), bag(2, 2, SLOT, 1)]);
    assert_eq!(bench.add_nodes(SLOT, &[1, 1, 1]), [(1, 0, 0, 0), (1, 0, 1, 1), (2, 0, 0, 2)]);
}

/// Goal: what does not fit holds up nobody. Method: the first job in the queue is too large for the
/// only node, the second fits.
#[test]
fn a_head_that_does_not_fit_is_skipped() {
    let mut bench = Bench::new();
    bench.hear(vec![bag(1, 1, CPU, 2), bag(2, 1, CPU, 1)]);
    assert_eq!(bench.add_nodes(CPU, &[1]), [(2, 0, 0, 0)]);
    let freed = bench.attempts();
    let pending = bench.pending(&[0]);
    let grown = SchedulerMessage::Nodes(vec![node(0, Resources::of(CPU, 2))]);
    let placed = bench.hear(vec![released(&freed, Outcome::Completed), grown, pending]);
    assert_eq!(placed, [(1, 0, 0, 0)], "it was skipped, not forgotten");
}

/// Goal: each task goes to the node with the fewest tasks, ties to the smaller id. Method: five tasks
/// on three equal nodes, then one end on the last node and one more task.
#[test]
fn the_node_with_the_fewest_tasks_is_taken_and_ties_go_by_id() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[3, 3, 3]);
    let placed = bench.hear(vec![bag(1, 5, SLOT, 1)]);
    assert_eq!(placed.iter().map(|one| one.3).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
    let on_last = bench.attempts()[2];
    bench.hear(vec![released(&[on_last], Outcome::Completed)]);
    assert_eq!(bench.hear(vec![bag(2, 1, SLOT, 1)]), [(2, 0, 0, 2)]);
}

/// Goal: the count of tasks decides, not the free amount. Method: one node is almost empty but runs
/// two small tasks, the other is almost full with one large task.
#[test]
fn few_tasks_count_more_than_much_room() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[100]);
    bench.hear(vec![bag(1, 2, CPU, 1)]);
    let second = SchedulerMessage::Nodes(vec![node(1, Resources::of(CPU, 10))]);
    bench.hear(vec![second, bag(2, 1, CPU, 8)]);
    assert_eq!(bench.hear(vec![bag(3, 1, CPU, 2)]), [(3, 0, 0, 1)]);
}

/// Goal: everything of one turn is planned together, by arrival. Method: the same messages in every
/// order, with one place for two jobs of different shapes; the older job gets it each time.
#[test]
fn the_order_of_messages_within_a_turn_does_not_matter() {
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]];
    for order in orders {
        let mut bench = Bench::new();
        let pending = bench.pending(&[0]);
        let nodes = SchedulerMessage::Nodes(vec![node(0, both((SLOT, 1), (CPU, 1)))]);
        let younger = independent(2, vec![role(both((SLOT, 1), (CPU, 1)), 1)]);
        let messages = [bag(1, 1, SLOT, 1), SchedulerMessage::NewGroups(vec![younger]), nodes, pending];
        let batch = order.map(|index: usize| messages[index].clone()).to_vec();
        assert_eq!(bench.hear(batch), [(1, 0, 0, 0)], "messages in the order {order:?}");
    }
}

/// Goal: nobody jumps the queue by arriving in the turn in which a node becomes free. Method: an old
/// job waits; its node is released in the same turn in which a younger one of another shape arrives.
#[test]
fn an_arrival_does_not_overtake_what_waits_for_a_pending_node() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[2]);
    bench.hear(vec![bag(1, 1, CPU, 2)]);
    let running = bench.attempts();
    assert_eq!(bench.hear(vec![bag(2, 1, CPU, 2)]), []);
    let pending = bench.pending(&[0]);
    let placed = bench.hear(vec![bag(3, 2, CPU, 1), released(&running, Outcome::Completed), pending]);
    assert_eq!(placed, [(2, 0, 0, 0)]);
}

/// Goal: a task that came back takes its old place in the queue. Method: a node of the oldest job is
/// lost while younger work waits; the next room goes to the task that was lost, as its second attempt.
#[test]
fn what_comes_back_stands_where_it_stood() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1]);
    bench.hear(vec![bag(1, 1, SLOT, 1)]);
    let (lost, on) = bench.attempts()[0];
    bench.hear(vec![bag(2, 1, SLOT, 1)]);
    let back = SchedulerMessage::Return(vec![ReturnedTask { task: lost.task, number: 2, avoid: Vec::new() }]);
    let gone = SchedulerMessage::Nodes(vec![closed(0, Resources::of(SLOT, 1))]);
    assert_eq!(bench.hear(vec![released(&[(lost, on)], Outcome::Lost), gone, back]), []);
    assert_eq!(bench.add_nodes(SLOT, &[1]), [(1, 0, 0, 0)]);
    assert_eq!(bench.attempts()[0].0.number, 2);
}

/// Goal: a pending node takes a task whose window is still open, but room that was there already does
/// not. Method: a task is collected beside an empty node; later in the window that node is pending.
#[test]
fn a_pending_node_takes_a_task_that_is_still_collected() {
    let mut bench = Bench::with_windows();
    bench.add_nodes(SLOT, &[1]);
    assert_eq!(bench.hear(vec![bag(1, 1, SLOT, 1)]), []);
    assert_eq!(bench.scheduler.wake_at(), Some(Time(50_000)));
    let pending = bench.pending(&[0]);
    assert_eq!(bench.hear_at(Time(10_000), vec![pending]), [(1, 0, 0, 0)]);
}

/// Goal: windows that close at the same moment are planned together, by arrival and not by shape.
/// Method: the older job's shape is seen second; both windows close in one turn on one place.
#[test]
fn windows_that_close_together_are_planned_by_arrival() {
    let mut bench = Bench::with_windows();
    bench.add_nodes(CPU, &[2]);
    assert_eq!(bench.hear(vec![bag(2, 1, CPU, 2), bag(1, 1, CPU, 1)]), []);
    bench.scheduler.wake(Time(50_000), &mut bench.out);
    let placed: Vec<u64> = bench.attempts().iter().map(|(attempt, _)| attempt.task.job().0).collect();
    assert_eq!(placed, [1]);
}

/// Goal: every turn that heard of pending nodes answers `seen`, after its plan if it made one. Method:
/// one turn with nothing to plan, one with work, one in which the node is not even known.
#[test]
fn seen_is_answered_whether_or_not_something_was_planned() {
    let seen = |sequence| ClusterMessage::Seen { sequence };
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1]);
    assert_eq!(bench.out.cluster, [seen(1)]);
    bench.hear(vec![bag(1, 2, SLOT, 1)]);
    assert_eq!(bench.out.cluster.len(), 1, "nobody spoke of pending nodes: {:?}", bench.out.cluster);
    let running = bench.attempts();
    let pending = bench.pending(&[0]);
    bench.hear(vec![released(&running, Outcome::Completed), pending]);
    assert!(matches!(bench.out.cluster.as_slice(), [ClusterMessage::Commit(_), last] if *last == seen(2)));
    let unknown = bench.pending(&[7]);
    bench.hear(vec![unknown]);
    assert_eq!(bench.out.cluster, [seen(3)]);
}

/// Goal: several reports of pending nodes in one turn are answered once, with the last number. Method:
/// two of them in one batch.
#[test]
fn the_last_pending_sequence_of_a_turn_is_the_one_seen() {
    let mut bench = Bench::new();
    let (first, second) = (bench.pending(&[0]), bench.pending(&[0]));
    bench.hear(vec![first, second]);
    assert_eq!(bench.out.cluster, [ClusterMessage::Seen { sequence: 2 }]);
}

/// Goal: a very large role waits as a count, and each release starts exactly the next task of it.
/// Method: a million tasks, three places, then two releases.
#[test]
fn a_million_tasks_of_one_role_wait_and_are_served_in_order() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[2, 1]);
    let placed = bench.hear(vec![bag(1, 1_000_000, SLOT, 1)]);
    assert_eq!(placed, [(1, 0, 0, 0), (1, 0, 1, 1), (1, 0, 2, 0)]);
    assert_eq!(bench.scheduler.waiting_tasks(), 999_997);
    let ended = [bench.attempts()[0], bench.attempts()[1]];
    let pending = bench.pending(&[0, 1]);
    let placed = bench.hear(vec![released(&ended, Outcome::Completed), pending]);
    assert_eq!(placed.iter().map(|one| one.2).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(bench.scheduler.explain(group(1)).map(|explanation| explanation.waiting), Some(999_995));
}

/// Hears a batch, and says of how many tasks of each shape the host was told that a node is wanted for them.
fn wanted(bench: &mut Bench, batch: Vec<SchedulerMessage>) -> Vec<u64> {
    bench.hear(batch);
    let tasks = |message: &HostMessage| match message {
        HostMessage::Node(NodeEvent::Wanted { tasks, .. }) => Some(*tasks),
        _ => None,
    };
    bench.out.host.iter().filter_map(tasks).collect()
}

/// Goal: the host learns once what it could add a node for, again when twice as many wait, and anew after
/// everything ran. Method: more tasks than room, then some more, then many more.
#[test]
fn a_node_is_wanted_once_and_again_when_twice_as_many_wait() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[2]);
    assert_eq!(wanted(&mut bench, vec![bag(1, 5, CPU, 1)]), [3], "two of five found room");
    assert_eq!(wanted(&mut bench, vec![bag(2, 2, CPU, 1)]), [0; 0], "five wait: no news");
    assert_eq!(wanted(&mut bench, vec![bag(3, 1, CPU, 1)]), [6], "twice as many as when it was told");
    bench.hear(vec![SchedulerMessage::Nodes(vec![node(1, Resources::of(CPU, 9))])]);
    bench.hear(vec![SchedulerMessage::Pending { sequence: 1, nodes: vec![NodeId(1)] }]);
    assert_eq!(bench.scheduler.waiting_tasks(), 0);
    assert_eq!(wanted(&mut bench, vec![bag(4, 4, CPU, 1)]), [1], "three of four found room");
}

/// Goal: what the host once heard does not hide what comes later. Method: most of what waited finds room, and
/// then twice as many wait as are left, which are fewer than at first.
#[test]
fn fewer_that_wait_anew_are_news_again() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[1]);
    assert_eq!(wanted(&mut bench, vec![bag(1, 11, CPU, 1)]), [10]);
    let more = SchedulerMessage::Nodes(vec![node(1, Resources::of(CPU, 8))]);
    let pending = SchedulerMessage::Pending { sequence: 1, nodes: vec![NodeId(1)] };
    assert_eq!(wanted(&mut bench, vec![more, pending]), [0; 0], "two are left");
    assert_eq!(wanted(&mut bench, vec![bag(2, 1, CPU, 1)]), [0; 0]);
    assert_eq!(wanted(&mut bench, vec![bag(3, 1, CPU, 1)]), [4]);
}

/// Goal: no node is wanted for tasks that another one would not help. Method: tasks for a full node, alone and
/// together with others that find no room; then that node goes, and one of its name would help.
#[test]
fn no_node_is_wanted_for_tasks_of_a_node_that_is_there() {
    let mut bench = Bench::new();
    bench.hear(vec![SchedulerMessage::Nodes(vec![closed(0, Resources::of(CPU, 1))])]);
    let rules = Rules { node: Some("n0".into()), ..Rules::default() };
    let shape = ShapeSpec { request: Resources::of(CPU, 1), rules: rules.into(), ..ShapeSpec::default() };
    let pinned = || role_of(shape.clone(), 1);
    let other = role(Resources::of(CPU, 2), 3);
    assert_eq!(
        wanted(&mut bench, vec![SchedulerMessage::NewGroups(vec![independent(1, vec![pinned()])])]),
        [0; 0]
    );
    assert_eq!(wanted(&mut bench, vec![gang(2, vec![pinned(), other])]), [0; 0]);
    let gone = SchedulerMessage::Nodes(vec![NodeNews { node: NodeId(0), view: None }]);
    bench.hear(vec![gone]);
    let again = SchedulerMessage::NewGroups(vec![independent(3, vec![pinned()])]);
    assert_eq!(wanted(&mut bench, vec![again]), [2]);
}
