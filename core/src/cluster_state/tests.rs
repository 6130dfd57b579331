//! The ledger's own rules, one message at a time.

mod broken;
mod usage;

use super::*;
use crate::id::{Attempt, JobId, Slot, TaskId};
use crate::messages::{
    EndReport, Finding, HostMessage, JobMessage, Placement, Plan, PlanPart, SchedulerMessage,
};
use crate::outcome::{Exit, FailureCause};
use crate::resources::{KindId, Resources};
use crate::spec::{Liveness, ShapeSpec};
use crate::time::Span;

const SLOT: KindId = KindId(0);

struct Bench {
    cluster: ClusterState,
    out: Outbox,
}

impl Bench {
    fn new() -> Bench {
        let mut bench =
            Bench { cluster: ClusterState::new(Arc::new(Settings::default())), out: Outbox::default() };
        let node = NodeSpec::new("n", Resources::of(SLOT, 2));
        bench.hear(ClusterMessage::AddNode { ticket: Ticket(1), node: Box::new(node) });
        bench
    }

    fn hear(&mut self, message: ClusterMessage) -> &Outbox {
        self.hear_at(Time(1), message)
    }

    fn hear_at(&mut self, now: Time, message: ClusterMessage) -> &Outbox {
        self.out = Outbox::default();
        self.cluster.receive(now, vec![message], &mut self.out);
        self.cluster.check().expect("the ledger holds");
        &self.out
    }

    fn version(&self) -> u64 {
        self.cluster.node(NodeId(0)).expect("the node is there").version
    }
}

fn attempt(slot: u32, number: u32) -> Attempt {
    let task = TaskId { group: GroupId::new(JobId(1), 0), role: 0, index: slot };
    Attempt { task, number, slot: Slot(slot) }
}

fn plan(slots: &[u32], version: u64, atomic: bool) -> ClusterMessage {
    let shape = Arc::new(ShapeSpec { request: Resources::of(SLOT, 1), ..ShapeSpec::default() });
    let place = |slot: &u32| Placement { attempt: attempt(*slot, 1), node: NodeId(0), version };
    let count = slots.len() as u32;
    let part = PlanPart { shape, count, atomic, bound_to_next: false, adopted: false, timeout: None };
    let placements = slots.iter().map(place).collect();
    ClusterMessage::Commit(Plan { number: 1, parts: vec![part], placements })
}

fn conflicts(out: &Outbox) -> usize {
    let lists = out.scheduler.iter().filter_map(|message| match message {
        SchedulerMessage::Conflict(attempts) => Some(attempts.len()),
        _ => None,
    });
    lists.sum()
}

#[test]
fn what_does_not_fit_is_a_conflict_and_the_rest_is_booked() {
    let mut bench = Bench::new();
    let version = bench.version();
    assert_eq!(conflicts(bench.hear(plan(&[0, 1, 2], version, false))), 1);
    assert_eq!(bench.cluster.live().count(), 2);
}

#[test]
fn an_atomic_group_is_booked_whole_or_not_at_all() {
    let mut bench = Bench::new();
    let version = bench.version();
    assert_eq!(conflicts(bench.hear(plan(&[0, 1, 2], version, true))), 3);
    assert_eq!(bench.cluster.live().count(), 0);
    assert_eq!(conflicts(bench.hear(plan(&[0, 1], version, true))), 0);
    assert_eq!(bench.cluster.live().count(), 2);
}

#[test]
fn a_decision_about_a_node_that_changed_is_a_conflict() {
    let mut bench = Bench::new();
    let before = bench.version();
    let patch = NodePatch { labels: Some([("a".into(), "b".into())].into()), ..NodePatch::default() };
    bench.hear(ClusterMessage::UpdateNode { ticket: Ticket(2), name: "n".into(), patch: Box::new(patch) });
    assert_eq!(conflicts(bench.hear(plan(&[0], before, false))), 1);
}

#[test]
fn a_report_of_an_old_attempt_changes_nothing() {
    let mut bench = Bench::new();
    let version = bench.version();
    bench.hear(plan(&[0], version, false));
    let old = EndReport { attempt: attempt(0, 0), exit: Exit::Completed };
    assert!(bench.hear(ClusterMessage::Ended(vec![old])).is_empty());
    let end = EndReport { attempt: attempt(0, 1), exit: Exit::Completed };
    assert!(!bench.hear(ClusterMessage::Ended(vec![end])).is_empty());
    assert!(bench.hear(ClusterMessage::Ended(vec![end])).is_empty(), "the second report comes too late");
}

#[test]
fn a_node_is_pending_until_its_last_release_was_seen() {
    let mut bench = Bench::new();
    let version = bench.version();
    assert_eq!(bench.cluster.usage(NodeId(0)), Some(Usage::Pending));
    bench.hear(ClusterMessage::Seen { sequence: 1 });
    assert_eq!(bench.cluster.usage(NodeId(0)), Some(Usage::Idle));
    bench.hear(plan(&[0], version, false));
    assert_eq!(bench.cluster.usage(NodeId(0)), Some(Usage::Scheduled));
    let end = EndReport { attempt: attempt(0, 1), exit: Exit::Failed(FailureCause::Error) };
    bench.hear(ClusterMessage::Ended(vec![end]));
    bench.hear(ClusterMessage::Seen { sequence: 1 });
    assert_eq!(bench.cluster.usage(NodeId(0)), Some(Usage::Pending), "the release is newer");
    bench.hear(ClusterMessage::Seen { sequence: 2 });
    assert!(bench.cluster.all_seen());
}

#[test]
fn a_node_given_up_loses_its_attempts_and_must_be_swept_before_it_works_again() {
    let mut bench = Bench::new();
    let version = bench.version();
    bench.hear(plan(&[0], version, false));
    bench.hear(ClusterMessage::HeartbeatLost(NodeId(0)));
    assert_eq!(bench.cluster.live().count(), 1, "a suspect node keeps its attempts");
    let late = bench.cluster.wake_at().expect("a suspect node has a deadline");
    let out = bench.hear_at(late, ClusterMessage::Seen { sequence: 0 }).clone();
    assert!(matches!(&out.jobs[0], JobMessage::Released(ended) if ended[0].outcome == Outcome::Lost));
    bench.hear(ClusterMessage::HeartbeatBack(NodeId(0)));
    assert_eq!(bench.cluster.node(NodeId(0)).expect("there").liveness, Liveness::Down);
    bench.hear(ClusterMessage::Swept { node: NodeId(0), sweep: 99 });
    assert_eq!(bench.cluster.node(NodeId(0)).expect("there").liveness, Liveness::Down, "an old sweep");
    bench.hear(ClusterMessage::Swept { node: NodeId(0), sweep: 1 });
    assert_eq!(bench.cluster.node(NodeId(0)).expect("there").liveness, Liveness::Ready);
}

/// Goal: where heartbeats are expected, a node that misses one is suspect by itself, and given up if it goes on.
/// Method: the next deadline tells until when the node may be silent.
#[test]
fn a_node_that_is_not_heard_in_time_is_suspect_by_itself() {
    let seconds = |seconds| Time(1) + Span::from_whole_seconds(seconds);
    let heartbeat = |every| {
        let mut settings = Settings { version: every + 1, ..Settings::default() };
        settings.deadlines.heartbeat = Span::from_whole_seconds(every);
        ClusterMessage::Settings(Arc::new(settings))
    };
    let mut bench = Bench::new();
    assert_eq!(bench.cluster.wake_at(), None, "nobody said that nodes are heard");
    bench.hear(heartbeat(10));
    let version = bench.version();
    bench.hear(plan(&[0], version, false));
    assert_eq!(bench.cluster.wake_at(), Some(seconds(10)));
    let heard = |name: &str| ClusterMessage::Heartbeat { ticket: Ticket(3), name: name.into(), heard: true };
    bench.hear_at(seconds(6), heard("n"));
    assert_eq!(bench.cluster.wake_at(), Some(seconds(16)));
    let liveness = |bench: &Bench| bench.cluster.node(NodeId(0)).expect("there").liveness;
    bench.hear_at(seconds(16), ClusterMessage::Seen { sequence: 0 });
    assert_eq!((liveness(&bench), bench.cluster.live().count()), (Liveness::Suspect, 1));
    bench.hear_at(seconds(20), heard("n"));
    assert_eq!((liveness(&bench), bench.cluster.wake_at()), (Liveness::Ready, Some(seconds(30))));
    bench.hear_at(seconds(30), ClusterMessage::Seen { sequence: 0 });
    let down = bench.cluster.wake_at().expect("a suspect node is given up some day");
    assert_eq!(down, seconds(30) + Settings::default().deadlines.down);
    bench.hear_at(down, heartbeat(5));
    assert_eq!((liveness(&bench), bench.cluster.live().count()), (Liveness::Down, 0));
    assert_eq!(bench.cluster.wake_at(), None, "nothing more is expected of it");
    bench.hear_at(down, heard("n"));
    bench.hear_at(down, ClusterMessage::Swept { node: NodeId(0), sweep: 1 });
    assert_eq!(bench.cluster.wake_at(), Some(down + Span::from_whole_seconds(5)));
    bench.hear_at(down, heartbeat(0));
    assert_eq!(bench.cluster.wake_at(), None);
}

#[test]
fn a_shrunk_node_shows_its_deficit_and_takes_nothing_new() {
    let mut bench = Bench::new();
    let version = bench.version();
    bench.hear(plan(&[0, 1], version, false));
    let patch = NodePatch { capacity: Some(Resources::of(SLOT, 1)), ..NodePatch::default() };
    let update = ClusterMessage::UpdateNode { ticket: Ticket(2), name: "n".into(), patch: Box::new(patch) };
    bench.hear(update);
    assert!(bench.cluster.node(NodeId(0)).expect("there").deficit());
    let version = bench.version();
    let nothing = Arc::new(ShapeSpec::default());
    let (bound_to_next, adopted, timeout) = (false, false, None);
    let part = PlanPart { shape: nothing, count: 1, atomic: false, bound_to_next, adopted, timeout };
    let placements = vec![Placement { attempt: attempt(7, 1), node: NodeId(0), version }];
    let plan = Plan { number: 2, parts: vec![part], placements };
    assert_eq!(conflicts(bench.hear(ClusterMessage::Commit(plan))), 1);
}

#[test]
fn requests_about_nodes_that_are_not_there_are_refused_by_name() {
    let mut bench = Bench::new();
    let out = bench.hear(ClusterMessage::RemoveNode { ticket: Ticket(5), name: "ghost".into() }).clone();
    let refusal = Answer::Refused(Refusal::UnknownNode("ghost".into()));
    assert_eq!(out.host, [HostMessage::Reply { ticket: Ticket(5), answer: refusal }]);
    let again = NodeSpec::new("n", Resources::new());
    let out = bench.hear(ClusterMessage::AddNode { ticket: Ticket(6), node: Box::new(again) }).clone();
    let refusal = Answer::Refused(Refusal::NodeExists("n".into()));
    assert_eq!(out.host, [HostMessage::Reply { ticket: Ticket(6), answer: refusal }]);
}

/// Goal: an attempt that holds its node although nobody watches over it is found, and its room is free again; one
/// that has ended meanwhile is no finding.
#[test]
fn an_attempt_that_the_runner_does_not_know_of_is_lost() {
    let mut bench = Bench::new();
    let version = bench.version();
    bench.hear(plan(&[0], version, false));
    let unknown = ClusterMessage::Undispatched(vec![attempt(0, 1), attempt(1, 1)]);
    let out = bench.hear(unknown.clone()).clone();
    let found = HostMessage::Finding(Finding::Undispatched(attempt(0, 1)));
    assert_eq!(out.host, [found]);
    let lost = |message: &JobMessage| match message {
        JobMessage::Released(ended) => ended[0].attempt == attempt(0, 1) && ended[0].outcome == Outcome::Lost,
        _ => false,
    };
    assert!(out.jobs.iter().any(lost) && bench.cluster.live().count() == 0);
    assert!(bench.hear(unknown).host.is_empty(), "once is enough");
}

/// Goal: everybody is told what the ledger says, each part of the board by whoever speaks of it.
#[test]
fn an_audit_tells_everybody_the_same() {
    let mut bench = Bench::new();
    let version = bench.version();
    bench.hear(plan(&[0], version, false));
    let out = bench.hear(ClusterMessage::Audit { first: NodeId(0), most: 9 }).clone();
    let [HostMessage::Standing(audit)] = &out.host[..] else { panic!("{:?}", out.host) };
    let node = bench.cluster.node(NodeId(0)).expect("it is there");
    assert_eq!((audit.nodes[0].session, &audit.nodes[0].view), (node.session, &node.view()));
    assert_eq!((&audit.nodes[0].live[..], audit.next), (&[attempt(0, 1)][..], None));
    assert_eq!(out.jobs, [JobMessage::Audit(Arc::clone(audit))]);
    assert_eq!(out.runner, [RunnerMessage::Audit(Arc::clone(audit))]);
    assert!(out.scheduler.contains(&SchedulerMessage::Audit(Arc::clone(audit))));
}

/// Goal: what is there for every node and live attempt stays small.
#[test]
#[cfg(target_pointer_width = "64")]
fn what_is_there_often_is_small() {
    assert_eq!(size_of::<Option<LiveAttempt>>(), 56);
    assert_eq!(size_of::<Option<Node>>(), 208);
}

/// Goal: nodes share what they have in common, also after one of them has changed, and after a restore.
#[test]
fn what_nodes_have_in_common_is_kept_once() {
    let mut bench = Bench::new();
    for name in ["a", "b", "c"] {
        let mut node = NodeSpec::new(name, Resources::of(SLOT, 2));
        node.facts.labels.insert("zone".into(), "z".into());
        bench.hear(ClusterMessage::AddNode { ticket: Ticket(1), node: Box::new(node) });
    }
    let shared = |cluster: &ClusterState, one: u32, other: u32| {
        let common = |id: u32| &cluster.node(NodeId(id)).expect("there").facts.common;
        Arc::ptr_eq(common(one), common(other))
    };
    assert!(shared(&bench.cluster, 1, 2) && !shared(&bench.cluster, 0, 1));
    let update = |zone: &str| {
        let labels = Some([("zone".to_owned(), zone.to_owned())].into());
        let patch = Box::new(NodePatch { labels, ..NodePatch::default() });
        ClusterMessage::UpdateNode { ticket: Ticket(2), name: "b".into(), patch }
    };
    bench.hear(update("y"));
    assert!(!shared(&bench.cluster, 1, 2) && shared(&bench.cluster, 1, 3));
    bench.hear(update("z"));
    assert!(shared(&bench.cluster, 1, 2) && bench.cluster.known.len() == 2);
    let bytes = crate::codec::encode(&bench.cluster).expect("small");
    let restored: ClusterState = crate::codec::decode_machine(&bytes, &Filters::default()).expect("whole");
    assert!(shared(&restored, 1, 2) && shared(&restored, 1, 3));
    for name in ["n", "a", "b", "c"] {
        bench.hear(ClusterMessage::RemoveNode { ticket: Ticket(3), name: name.into() });
    }
    assert!(bench.cluster.known.is_empty());
}
