//! Why something waits: each reason, when it is the true one, and what it counts.

use super::*;
use crate::explanation::{NoRoom, Reason, Subject};
use crate::id::Ticket;
use crate::messages::{Answer, HostMessage, Refusal};

fn no_room(bench: &Bench, job: u64) -> NoRoom {
    match bench.reason(job) {
        Reason::NoRoom(room) => room,
        other => panic!("expected a lack of room, found {other:?}"),
    }
}

fn never_fits(bench: &Bench, job: u64) -> NoRoom {
    match bench.reason(job) {
        Reason::NeverFits(room) => room,
        other => panic!("expected that there is no way, found {other:?}"),
    }
}

/// Goal: the window is the reason while it is open, and not a moment longer. Method: a task for which
/// there is no room is collected; the reason is asked before and after the window closes.
#[test]
fn an_open_window_is_a_reason_until_it_closes() {
    let mut bench = Bench::with_windows();
    bench.hear_at(Time(1_000), vec![bag(1, 1, SLOT, 1)]);
    assert_eq!(bench.reason(1), Reason::Window { closes: Time(51_000) });
    bench.hear_at(Time(31_000), vec![bag(2, 1, SLOT, 1)]);
    assert_eq!(bench.reason(1), Reason::Window { closes: Time(81_000) }, "an identical task came");
    bench.hear_at(Time(81_000), Vec::new());
    assert!(!matches!(bench.reason(1), Reason::Window { .. }));
}

/// Goal: a lack of room counts every node once, under what rules it out. Method: one node of each
/// sort: too small, closed, short of cpu, short of memory.
#[test]
fn a_lack_of_room_counts_each_node_once() {
    let mut bench = Bench::new();
    let large = || both((CPU, 4), (MEMORY, 4));
    let news = vec![
        node(0, both((CPU, 1), (MEMORY, 4))),
        closed(1, large()),
        node(2, large()),
        node(3, large()),
        node(4, large()),
    ];
    bench.hear(vec![SchedulerMessage::Nodes(news)]);
    // One fills the memory of node 0, which is too small anyway, and of node 2.
    bench.hear(vec![bag(1, 2, MEMORY, 4), bag(2, 2, CPU, 4)]);
    bench.hear(vec![SchedulerMessage::NewGroups(vec![independent(3, vec![role(large(), 2)])])]);
    let lacking = vec![("cpu".to_owned(), 2), ("memory".to_owned(), 1)];
    let room = no_room(&bench, 3);
    assert_eq!((room.nodes, room.closed, room.too_small, room.placeable), (5, 1, 1, 0));
    assert_eq!(room.lacking, lacking);
}

/// Goal: what fits on no node even if it were empty is told so, and what only has to wait is not.
/// Method: a request above every capacity, and one equal to the capacity of a full node.
#[test]
fn what_can_never_fit_is_told_so() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[4]);
    bench.hear(vec![bag(1, 2, CPU, 4), bag(2, 1, CPU, 5)]);
    assert_eq!(no_room(&bench, 1).lacking, [("cpu".to_owned(), 1)]);
    let Reason::NeverFits(room) = bench.reason(2) else { panic!("found {:?}", bench.reason(2)) };
    assert_eq!((room.nodes, room.too_small), (1, 1));
    let sentence = bench.scheduler.explain(group(2)).expect("it waits").sentence();
    let expected = "1 task waits: no node could take it even if empty (of 1 nodes 1 are too small); 1 task is ahead; \
                    nearest: 0.005 more cpu on node n0";
    assert_eq!(sentence, expected);
}

/// Goal: the hardest role speaks for a group of several. Method: of two waiting roles one only lacks
/// room now, the other fits nowhere.
#[test]
fn the_hardest_role_speaks_for_the_group() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[4]);
    let roles = vec![role(Resources::of(CPU, 4), 2), role(Resources::of(CPU, 9), 1)];
    bench.hear(vec![SchedulerMessage::NewGroups(vec![independent(1, roles)])]);
    assert!(matches!(bench.reason(1), Reason::NeverFits(_)));
}

/// Goal: a gang says how many of its members would find room together. Method: two roles that each
/// fit alone compete for one node; another gang finds room for two of three.
#[test]
fn a_gang_counts_the_members_that_find_room_together() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[1]);
    let roles = vec![role(Resources::of(CPU, 1), 1), role(Resources::of(CPU, 1), 1)];
    bench.hear(vec![gang(1, roles)]);
    assert_eq!(never_fits(&bench, 1).placeable, 1);
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 1]);
    bench.hear(vec![gang(1, vec![role(Resources::of(SLOT, 1), 3)])]);
    assert_eq!(never_fits(&bench, 1).placeable, 2);
}

/// Goal: a gang that lost a member says what it waits for until it may start again. Method: one
/// member is lost, the other has been told to stop and has not ended.
#[test]
fn a_broken_gang_waits_for_its_members_to_end() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 1, 1]);
    bench.hear(vec![gang(1, vec![role(Resources::of(SLOT, 1), 3)])]);
    assert_eq!(bench.reason(1), Reason::NotWaiting);
    let live = bench.attempts();
    bench.hear(vec![released(&live[..1], Outcome::Lost), SchedulerMessage::Break(vec![group(1)])]);
    let explanation = bench.scheduler.explain(group(1)).expect("it is known");
    assert_eq!((explanation.waiting, explanation.reason), (1, Reason::Stopping { live: 2 }));
    let sentence = bench.scheduler.explain(group(1)).expect("it is known").sentence();
    assert_eq!(sentence, "1 task waits: 2 members of the group must end before it starts again");
    let back = live
        .iter()
        .map(|(attempt, _)| ReturnedTask { task: attempt.task, number: 2, avoid: Vec::new() })
        .collect();
    bench.hear(vec![
        released(&live[1..], Outcome::Preempted(StopCause::GroupBroken)),
        SchedulerMessage::Return(back),
    ]);
    assert_eq!(bench.reason(1), Reason::NotWaiting, "it started again");
}

/// Goal: the order in which an end and its return come in does not matter, for they travel apart. Method:
/// both members are returned before the ends are heard of; nothing is left over afterwards.
#[test]
fn a_return_may_come_before_the_end() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 1]);
    bench.hear(vec![gang(1, vec![role(Resources::of(SLOT, 1), 2)])]);
    let live = bench.attempts();
    let back = live
        .iter()
        .map(|(attempt, _)| ReturnedTask { task: attempt.task, number: 2, avoid: Vec::new() })
        .collect();
    bench.hear(vec![SchedulerMessage::Return(back)]);
    let explained = bench.scheduler.explain(group(1)).expect("it is known");
    assert!(explained.waiting == 2 && matches!(explained.reason, Reason::NoRoom(_)), "{explained:?}");
    let pending = bench.pending(&[0, 1]);
    bench.hear(vec![released(&live, Outcome::Lost), pending]);
    let explained = bench.scheduler.explain(group(1)).expect("it is known");
    assert_eq!((explained.waiting, explained.reason), (0, Reason::NotWaiting));
}

/// Goal: what is ahead is counted by arrival over all shapes. Method: three waiting jobs; the last is
/// behind two, and a cancelled one does not count.
#[test]
fn tasks_ahead_are_those_that_came_before() {
    let mut bench = Bench::new();
    bench.hear(vec![bag(1, 2, SLOT, 1), bag(2, 3, CPU, 1), bag(3, 1, SLOT, 1)]);
    let ahead = |bench: &Bench, job| bench.scheduler.explain(group(job)).map(|one| one.ahead);
    assert_eq!([1, 2, 3].map(|job| ahead(&bench, job)), [Some(0), Some(2), Some(5)]);
    bench.hear(vec![SchedulerMessage::Withdraw(vec![group(2)])]);
    assert_eq!(ahead(&bench, 3), Some(2));
}

/// Goal: questions are answered one a turn, in order, for unknown groups by a refusal. Method: two
/// questions in one batch with an arrival; the second wakes the machine again at once.
#[test]
fn questions_are_answered_to_the_host() {
    let mut bench = Bench::new();
    let ask = |ticket, job| SchedulerMessage::Explain {
        ticket: Ticket(ticket),
        subject: Subject::Group(group(job)),
    };
    bench.hear(vec![bag(1, 1, SLOT, 1), ask(7, 1), ask(8, 9)]);
    let Some(HostMessage::Reply { ticket: Ticket(7), answer: Answer::Explained(known) }) =
        bench.out.host.last()
    else {
        panic!("found {:?}", bench.out.host)
    };
    assert_eq!((known.len(), known[0].waiting), (1, 1));
    assert_eq!(bench.scheduler.wake_at(), Some(Time::ZERO));
    bench.hear(Vec::new());
    let refusal = Answer::Refused(Refusal::UnknownGroup(JobId(9)));
    assert_eq!(bench.out.host, [HostMessage::Reply { ticket: Ticket(8), answer: refusal }]);
    assert_ne!(bench.scheduler.wake_at(), Some(Time::ZERO));
}

/// Goal: roles that do not start together wait each for its own reason: what keeps one is not said of another.
/// Method: a role that only lacks room beside one that no node could take; then one task of each is asked about.
#[test]
fn roles_that_wait_each_for_itself_are_explained_apart() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[2]);
    let roles = vec![role(Resources::of(CPU, 1), 5), role(Resources::of(CPU, 9), 2)];
    bench.hear(vec![SchedulerMessage::NewGroups(vec![independent(1, roles)])]);
    let apart = bench.scheduler.explain_with_gate(group(1)).expect("it is known");
    let said: Vec<_> = apart.iter().map(|one| (one.role, one.waiting, one.reason.clone())).collect();
    assert!(matches!(said[0], (Some(0), 3, Reason::NoRoom(_))), "{:?}", said[0]);
    assert!(matches!(said[1], (Some(1), 2, Reason::NeverFits(_))), "{:?}", said[1]);
    let sentence = apart[1].sentence();
    assert!(
        sentence.starts_with("2 tasks of roles[1] wait: no node could take it even if empty"),
        "{sentence}"
    );
    for (number, explained) in apart.iter().enumerate() {
        let task = TaskId { group: group(1), role: number as u16, index: 4 * (1 - number as u32) };
        let alone = bench.scheduler.explain_task(task).expect("it waits");
        assert_eq!((&alone.reason, alone.waiting), (&explained.reason, explained.waiting));
    }
}
