//! Requests to a running system about things that are not there, or not any more: the deterministic world
//! is told, and the typed refusal is read from what it answers to the host.

use std::sync::Arc;

use plimsoll::core::id::{Attempt, JobId, NodeId, Ticket};
use plimsoll::core::messages::{Answer, ClusterMessage, HostMessage, JobMessage, Refusal};
use plimsoll::core::resources::{KindId, Resources};
use plimsoll::core::settings::{Limits, Settings};
use plimsoll::core::sim::{Batch, Behaviour, Course, Party, World};
use plimsoll::core::spec::{JobSpec, NodePatch, NodeSpec};

const SLOT: KindId = KindId(0);

/// Everything runs until it is told to end.
struct Endless;

impl Behaviour for Endless {
    fn course(&mut self, _: Attempt) -> Course {
        Course::plain(None)
    }
}

fn world(limits: Limits) -> World {
    World::new(Arc::new(Settings { limits, ..Settings::default() }))
}

/// Tells the world one thing, lets it settle with all its promises checked, and reads the answer.
fn answer(world: &mut World, to: Party, batch: Batch) -> Answer {
    world.tell(to, batch);
    world.settle(&mut Endless).expect("every promise holds");
    world.check_quiescent().expect("every promise holds");
    let replies = world.take_host_messages().into_iter().filter_map(|message| match message {
        HostMessage::Reply { ticket: Ticket(7), answer } => Some(answer),
        _ => None,
    });
    let replies: Vec<Answer> = replies.collect();
    <[Answer; 1]>::try_from(replies).map(|[answer]| answer).expect("one answer to one request")
}

fn cluster(world: &mut World, message: ClusterMessage) -> Answer {
    answer(world, Party::Cluster, Batch::Cluster(vec![message]))
}

fn add(name: &str) -> ClusterMessage {
    let node = Box::new(NodeSpec::new(name, Resources::of(SLOT, 2)));
    ClusterMessage::AddNode { ticket: Ticket(7), node }
}

fn remove(name: &str) -> ClusterMessage {
    ClusterMessage::RemoveNode { ticket: Ticket(7), name: name.into() }
}

fn update(name: &str, slots: i64) -> ClusterMessage {
    let patch = NodePatch { capacity: Some(Resources::of(SLOT, slots)), ..NodePatch::default() };
    ClusterMessage::UpdateNode { ticket: Ticket(7), name: name.into(), patch: Box::new(patch) }
}

fn submit(world: &mut World, tasks: u32) -> Answer {
    let job = Arc::new(JobSpec::bag("j", tasks, Resources::of(SLOT, 1)));
    let submit = JobMessage::Submit { ticket: Ticket(7), job, adopted: Vec::new() };
    answer(world, Party::Jobs, Batch::Jobs(vec![submit]))
}

fn cancel(world: &mut World, job: u64) -> Answer {
    let cancel = JobMessage::Cancel { ticket: Ticket(7), job: JobId(job) };
    answer(world, Party::Jobs, Batch::Jobs(vec![cancel]))
}

/// Goal: a node that was removed cannot be changed or removed again, and the name in the refusal is the
/// one that was given. Method: remove a node with work on it, then ask for it twice more.
#[test]
fn a_removed_node_is_not_there_any_more() {
    let mut world = world(Limits::default());
    assert_eq!(cluster(&mut world, add("n")), Answer::Node(NodeId(0)));
    assert_eq!(submit(&mut world, 1), Answer::Accepted(JobId(1)));
    assert_eq!(cluster(&mut world, remove("n")), Answer::Done);
    let refused = || Answer::Refused(Refusal::UnknownNode("n".into()));
    assert_eq!(cluster(&mut world, update("n", 1)), refused());
    assert_eq!(cluster(&mut world, remove("n")), refused());
    assert_eq!(world.scheduler.waiting_tasks(), 1, "its task waits again");
    // News of the old node that were on their way change nothing either.
    world.tell(Party::Cluster, Batch::Cluster(vec![ClusterMessage::HeartbeatLost(NodeId(0))]));
    world.tell(Party::Cluster, Batch::Cluster(vec![ClusterMessage::NodeDown(NodeId(9))]));
    assert_eq!(cluster(&mut world, add("n")), Answer::Node(NodeId(0)), "the name may be used again");
    assert_eq!(world.cluster.live().count(), 1);
}

/// Goal: node names are unique and nodes limited, and both are told. Method: the same name twice, and one
/// node more than allowed, which is accepted once another was removed.
#[test]
fn nodes_that_cannot_be_added_are_refused() {
    let mut world = world(Limits { nodes: 2, ..Limits::default() });
    cluster(&mut world, add("a"));
    assert_eq!(cluster(&mut world, add("a")), Answer::Refused(Refusal::NodeExists("a".into())));
    cluster(&mut world, add("b"));
    let full = Refusal::TooManyNodes { limit: 2 };
    assert!(full.is_retryable());
    assert_eq!(full.to_string(), "there are 2 nodes already, the limit `limits.nodes`");
    assert_eq!(cluster(&mut world, add("c")), Answer::Refused(full));
    cluster(&mut world, remove("a"));
    assert!(matches!(cluster(&mut world, add("c")), Answer::Node(_)));
}

/// Goal: jobs that were never accepted are unknown, and unfinished jobs are limited. Method: a cancel of a
/// number nobody had, one job more than allowed, and a cancel that makes room.
#[test]
fn jobs_that_are_unknown_or_too_many_are_refused() {
    let mut world = world(Limits { jobs: 1, ..Limits::default() });
    assert_eq!(cancel(&mut world, 1), Answer::Refused(Refusal::UnknownJob(JobId(1))));
    assert_eq!(submit(&mut world, 3), Answer::Accepted(JobId(1)));
    assert_eq!(submit(&mut world, 1), Answer::Refused(Refusal::TooManyJobs { limit: 1 }));
    assert_eq!(cancel(&mut world, 1), Answer::Done);
    assert_eq!(cancel(&mut world, 1), Answer::Done, "a cancel may be repeated");
    assert_eq!(submit(&mut world, 1), Answer::Accepted(JobId(2)));
    assert_eq!(cancel(&mut world, 3), Answer::Refused(Refusal::UnknownJob(JobId(3))));
}

/// Goal: capacity may shrink below what runs: it is accepted, what is too much is stopped and waits, and
/// the node is sound again. Method: two tasks on a node that loses one of its places, then both.
#[test]
fn capacity_may_shrink_below_what_runs() {
    let mut world = world(Limits::default());
    cluster(&mut world, add("n"));
    submit(&mut world, 2);
    assert_eq!(world.cluster.live().count(), 2);
    for (slots, live, waiting) in [(1, 1, 1), (0, 0, 2), (2, 2, 0)] {
        assert_eq!(cluster(&mut world, update("n", slots)), Answer::Done);
        let found = (world.cluster.live().count(), world.scheduler.waiting_tasks());
        assert_eq!(found, (live, waiting), "with {slots} slots");
        assert!(!world.cluster.node(NodeId(0)).expect("it is there").deficit());
    }
}
