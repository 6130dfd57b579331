//! The way of an attempt, one message at a time.

use super::*;
use crate::id::{GroupId, JobId, Slot, TaskId};
use crate::messages::{AgentReport, Audit, Finding, HostMessage, NodeAudit, NodeView};
use crate::outcome::Phase;
use crate::resources::Resources;
use crate::spec::{NodeFacts, NodeState};

const NODE: NodeId = NodeId(2);

fn attempt() -> Attempt {
    let task = TaskId { group: GroupId::new(JobId(1), 0), role: 0, index: 0 };
    Attempt { task, number: 1, slot: Slot(0) }
}

fn launch() -> Launch {
    Launch { attempt: attempt(), node: NODE, timeout: None, units: None }
}

struct Bench {
    runner: TaskRunner,
}

impl Bench {
    fn launched() -> Bench {
        let mut bench = Bench { runner: TaskRunner::new(Arc::new(Settings::default())) };
        let out = bench.hear(Time(0), RunnerMessage::Launch(vec![launch()]));
        assert_eq!(out.agents, [(NODE, AgentMessage::Start { session: 0, attempt: attempt(), units: None })]);
        bench
    }

    fn hear(&mut self, now: Time, message: RunnerMessage) -> Outbox {
        let mut out = Outbox::default();
        self.runner.receive(now, vec![message], &mut out);
        self.runner.check().expect("the runner's promises hold");
        out
    }

    fn report(&mut self, session: u64, report: AgentReport) -> Outbox {
        self.hear(Time(1), RunnerMessage::Report { node: NODE, session, report })
    }

    fn wake(&mut self) -> Outbox {
        let now = self.runner.wake_at().expect("a live attempt has a deadline");
        let mut out = Outbox::default();
        self.runner.wake(now, &mut out);
        out
    }
}

fn ended(exit: Exit) -> ClusterMessage {
    ClusterMessage::Ended(vec![EndReport { attempt: attempt(), exit }])
}

#[test]
fn an_attempt_that_is_never_begun_times_out() {
    let mut bench = Bench::launched();
    assert_eq!(bench.wake().agents, [(NODE, AgentMessage::Stop(attempt()))]);
    let out = bench.report(0, AgentReport::Finished(attempt(), Exit::Stopped));
    assert_eq!(out.cluster, [ended(Exit::TimedOut(Phase::Scheduled))]);
    assert_eq!(bench.runner.wake_at(), None);
}

#[test]
fn an_agent_that_does_not_answer_a_stop_makes_its_node_suspect() {
    let mut bench = Bench::launched();
    bench.hear(Time(5), RunnerMessage::Stop(vec![attempt()]));
    assert_eq!(bench.wake().cluster, [ClusterMessage::Unresponsive(NODE)]);
    assert!(bench.runner.wake_at().is_some(), "it is asked about again");
}

#[test]
fn a_new_session_loses_what_had_begun_and_is_told_again_what_had_not() {
    let mut bench = Bench::launched();
    let out = bench.report(1, AgentReport::Hello);
    assert_eq!(out.agents, [(NODE, AgentMessage::Start { session: 1, attempt: attempt(), units: None })]);
    bench.report(1, AgentReport::Reached(attempt(), Phase::Running));
    let out = bench.report(2, AgentReport::Hello);
    assert_eq!(out.cluster, [ended(Exit::Lost)]);
}

#[test]
fn reports_of_an_earlier_session_change_nothing() {
    let mut bench = Bench::launched();
    bench.report(1, AgentReport::Hello);
    assert!(bench.report(0, AgentReport::Finished(attempt(), Exit::Completed)).is_empty());
    assert_eq!(bench.runner.live().count(), 1);
}

#[test]
fn a_sweep_is_asked_again_of_a_new_session() {
    let mut bench = Bench::launched();
    bench.hear(Time(1), RunnerMessage::Abandon(vec![attempt()]));
    bench.hear(Time(1), RunnerMessage::Sweep { node: NODE, sweep: 4 });
    let out = bench.report(1, AgentReport::Hello);
    assert_eq!(out.agents, [(NODE, AgentMessage::Sweep { session: 1, sweep: 4 })]);
    assert!(bench.report(1, AgentReport::Swept(3)).is_empty(), "an older sweep");
    let out = bench.report(1, AgentReport::Swept(4));
    assert_eq!(out.cluster, [ClusterMessage::Swept { node: NODE, sweep: 4 }]);
}

#[test]
fn an_agent_that_began_anew_before_its_node_was_announced_is_heard() {
    let mut bench = Bench { runner: TaskRunner::new(Arc::new(Settings::default())) };
    bench.report(5, AgentReport::Hello);
    bench.hear(Time(0), RunnerMessage::NodeAdded { node: NODE, session: 4 });
    let out = bench.hear(Time(0), RunnerMessage::Launch(vec![launch()]));
    assert_eq!(out.agents, [(NODE, AgentMessage::Start { session: 5, attempt: attempt(), units: None })]);
}

/// Goal: an agent that begins anew before its node is heard of gets nothing that was meant for an earlier
/// node of the same id. Method: its greeting overtakes the news that one node is gone and the other there.
#[test]
fn an_agent_of_the_next_node_hears_nothing_that_was_for_the_last() {
    let mut bench = Bench::launched();
    let (added, begun_anew) = (1 << u32::BITS, (1 << u32::BITS) + 1);
    assert_eq!(bench.report(begun_anew, AgentReport::Hello).agents, []);
    bench.hear(Time(2), RunnerMessage::Abandon(vec![attempt()]));
    bench.hear(Time(2), RunnerMessage::NodeGone(NODE));
    bench.hear(Time(2), RunnerMessage::NodeAdded { node: NODE, session: added });
    let out = bench.hear(Time(3), RunnerMessage::Launch(vec![launch()]));
    let start = AgentMessage::Start { session: begun_anew, attempt: attempt(), units: None };
    assert_eq!(out.agents, [(NODE, start)], "the session it has begun is known by now");
}

/// Goal: every phase has its own deadline, and expiry says in which phase it came. Method: the time given
/// to each phase is read off the next deadline, and the last one is let pass.
#[test]
fn every_phase_has_its_own_deadline() {
    let settings = Settings::default();
    for timeout in [None, Some(Span::from_whole_seconds(7))] {
        let mut bench = Bench { runner: TaskRunner::new(Arc::new(settings.clone())) };
        bench.hear(Time(0), RunnerMessage::Launch(vec![Launch { timeout, ..launch() }]));
        assert_eq!(bench.runner.wake_at(), Some(Time(0) + settings.deadlines.dispatch));
        bench.report(0, AgentReport::Reached(attempt(), Phase::Installing));
        assert_eq!(bench.runner.wake_at(), Some(Time(1) + settings.deadlines.prepare));
        bench.report(0, AgentReport::Reached(attempt(), Phase::Running));
        let run = timeout.map_or(settings.deadlines.run, |_| Span::from_whole_seconds(7 + 15));
        assert_eq!(bench.runner.wake_at(), Some(Time(1) + run));
        let late = bench.report(0, AgentReport::Reached(attempt(), Phase::Installing));
        assert!(late.is_empty(), "nothing goes back to an earlier phase");
        assert_eq!(bench.wake().agents, [(NODE, AgentMessage::Stop(attempt()))]);
        let out = bench.report(0, AgentReport::Finished(attempt(), Exit::Stopped));
        assert_eq!(out.cluster, [ended(Exit::TimedOut(Phase::Running))]);
    }
}

fn audit(live: Vec<Attempt>) -> RunnerMessage {
    let facts = NodeFacts { name: "n".into(), ..NodeFacts::default() };
    let view = NodeView {
        version: 1,
        facts: Arc::new(facts),
        capacity: Resources::new(),
        reserved: Default::default(),
        open: true,
        state: NodeState::default(),
        breakdown: None,
    };
    let nodes = vec![NodeAudit { node: NODE, session: 0, view, free: Resources::new(), live }];
    RunnerMessage::Audit(Arc::new(Audit { first: NodeId(0), nodes, next: None }))
}

fn found(out: &Outbox) -> Vec<Finding> {
    let found = out.host.iter().map(|message| match message {
        HostMessage::Finding(finding) => finding.clone(),
        other => panic!("the runner says nothing else to the host, it said {other:?}"),
    });
    found.collect()
}

#[test]
fn attempts_that_only_one_side_knows_of_are_ended() {
    let mut bench = Bench::launched();
    let wanted = |attempts| [(NODE, AgentMessage::Wanted { session: 0, attempts })];
    let out = bench.hear(Time(1), audit(vec![attempt()]));
    assert!(found(&out).is_empty() && out.cluster.is_empty(), "all is well");
    assert_eq!(out.agents, wanted(vec![attempt()]));
    let lost = Attempt { slot: Slot(4), ..attempt() };
    let out = bench.hear(Time(1), audit(vec![attempt(), lost]));
    assert_eq!(out.cluster, [ClusterMessage::Undispatched(vec![lost])]);
    let out = bench.hear(Time(1), audit(Vec::new()));
    assert_eq!(found(&out), [Finding::Overdispatched(attempt())]);
    assert_eq!(out.agents[0], (NODE, AgentMessage::Stop(attempt())));
    assert_eq!(bench.runner.live().count(), 0);
}

#[test]
fn an_attempt_that_its_agent_does_not_know_of_is_lost() {
    let mut bench = Bench::launched();
    let out = bench.report(0, AgentReport::Unknown(attempt()));
    assert_eq!((found(&out), out.cluster), (vec![Finding::Unexecuted(attempt())], vec![ended(Exit::Lost)]));
    assert!(bench.report(0, AgentReport::Unknown(attempt())).is_empty(), "once is enough");
    let out = bench.report(0, AgentReport::Unwanted(attempt()));
    assert_eq!(found(&out), [Finding::Orphan { attempt: attempt(), node: NODE }]);
}

/// Goal: what is there for every attempt stays small.
#[test]
#[cfg(target_pointer_width = "64")]
fn what_is_there_often_is_small() {
    assert_eq!(size_of::<Option<Dispatch>>(), 56);
}
