//! What becomes of jobs, one message at a time.

use super::*;
use crate::id::{Slot, TaskId};
use crate::messages::{Audit, Finding, HostMessage, NodeAudit, NodeView, SchedulerMessage};
use crate::outcome::{FailureCause, Outcome, StopCause};
use crate::resources::Resources;
use crate::spec::{NodeFacts, NodeState};
use crate::time::Span;

struct Bench {
    jobs: JobState,
    now: Time,
}

impl Bench {
    fn new() -> Bench {
        Bench { jobs: JobState::new(Arc::new(Settings::default())), now: Time(1) }
    }

    fn hear(&mut self, message: JobMessage) -> Outbox {
        let mut out = Outbox::default();
        self.jobs.receive(self.now, vec![message], &mut out);
        out
    }

    fn submit(&mut self, spec: JobSpec) -> Outbox {
        self.hear(JobMessage::Submit { ticket: Ticket(1), job: Arc::new(spec), adopted: Vec::new() })
    }

    fn commit(&mut self, indexes: &[u32]) {
        let started =
            indexes.iter().map(|index| Started { attempt: attempt(*index, 1), node: NodeId(0) }).collect();
        self.hear(JobMessage::Committed(started));
    }

    fn release(&mut self, index: u32, outcome: Outcome) -> Outbox {
        let released = Released { attempt: attempt(index, 1), node: NodeId(0), outcome };
        self.hear(JobMessage::Released(vec![released]))
    }

    fn state(&self) -> TaskState {
        self.jobs.job(JobId(1)).expect("the job is kept").state()
    }
}

fn group() -> GroupId {
    GroupId::new(JobId(1), 0)
}

fn attempt(index: u32, number: u32) -> Attempt {
    Attempt { task: TaskId { group: group(), role: 0, index }, number, slot: Slot(index) }
}

#[test]
fn a_job_is_finished_when_its_last_task_is_and_says_the_worst_end() {
    let mut bench = Bench::new();
    bench.submit(JobSpec::bag("j", 2, Resources::new()));
    assert_eq!(bench.state(), TaskState::Queued);
    bench.commit(&[0, 1]);
    bench.release(0, Outcome::Failed(FailureCause::Error));
    assert_eq!(bench.state(), TaskState::Scheduled);
    let out = bench.release(1, Outcome::Completed);
    let finished = JobEvent::Finished {
        job: JobId(1),
        state: TaskState::Failed,
        result: TaskResult::Fail,
        at: bench.now,
    };
    assert!(out.host.contains(&HostMessage::Job(finished)));
    assert_eq!(out.scheduler, [SchedulerMessage::Forget(vec![group()])]);
}

#[test]
fn a_lost_task_of_a_bag_waits_again_with_the_next_number() {
    let mut bench = Bench::new();
    bench.submit(JobSpec::bag("j", 2, Resources::new()));
    bench.commit(&[0, 1]);
    let out = bench.release(0, Outcome::Lost);
    let returned = ReturnedTask { task: attempt(0, 1).task, number: 2, avoid: Vec::new() };
    assert_eq!(out.scheduler, [SchedulerMessage::Return(vec![returned])]);
}

#[test]
fn a_gang_that_loses_a_member_starts_again_as_a_whole() {
    let mut bench = Bench::new();
    bench.submit(JobSpec::gang("g", 3, Resources::new()));
    bench.commit(&[0, 1, 2]);
    bench.release(2, Outcome::Completed);
    let out = bench.release(0, Outcome::Lost);
    assert_eq!(out.scheduler, [SchedulerMessage::Break(vec![group()])]);
    let out = bench.release(1, Outcome::Preempted(StopCause::GroupBroken));
    let again = |index| ReturnedTask { task: attempt(index, 1).task, number: 2, avoid: Vec::new() };
    assert_eq!(out.scheduler, [SchedulerMessage::Return(vec![again(0), again(1)])]);
}

#[test]
fn cancelling_is_final_on_withdrawn_and_loses_against_an_end() {
    let mut bench = Bench::new();
    bench.submit(JobSpec::bag("j", 3, Resources::new()));
    bench.commit(&[0, 1]);
    let out = bench.hear(JobMessage::Cancel { ticket: Ticket(2), job: JobId(1) });
    assert_eq!(out.scheduler, [SchedulerMessage::Withdraw(vec![group()])]);
    let again = bench.hear(JobMessage::Cancel { ticket: Ticket(3), job: JobId(1) });
    assert!(again.scheduler.is_empty(), "cancelling twice does nothing more");
    bench.release(0, Outcome::Completed);
    bench.release(1, Outcome::Lost);
    assert_eq!(bench.state(), TaskState::Queued);
    bench.hear(JobMessage::Withdrawn(vec![group()]));
    let job = bench.jobs.job(JobId(1)).expect("kept");
    assert_eq!(
        (job.groups[0].count(TaskState::Completed), job.groups[0].count(TaskState::Cancelled)),
        (1, 2)
    );
    assert_eq!(job.state(), TaskState::Cancelled);
}

#[test]
fn forgotten_jobs_answer_expired_and_others_unknown() {
    let mut bench = Bench::new();
    bench.submit(JobSpec::bag("j", 1, Resources::new()));
    bench.commit(&[0]);
    bench.release(0, Outcome::Completed);
    let expiry = bench.jobs.wake_at().expect("finished jobs expire");
    assert_eq!(expiry, bench.now + Span::from_whole_seconds(3_600));
    bench.now = expiry;
    bench.jobs.wake(expiry, &mut Outbox::default());
    assert_eq!(bench.jobs.job(JobId(1)).err(), Some(Refusal::ExpiredJob(JobId(1))));
    assert_eq!(bench.jobs.job(JobId(2)).err(), Some(Refusal::UnknownJob(JobId(2))));
    assert_eq!(bench.jobs.summary().jobs_completed, 1);
}

fn retried(most: u32) -> JobSpec {
    let mut spec = JobSpec::bag("j", 1, Resources::new());
    spec.groups[0].roles[0].retries = Some(Box::new(crate::spec::Retries::new(most)));
    spec
}

/// Goal: a task is tried again after its wait and not before, avoids the nodes it failed on, and fails with
/// its history when nothing is left. Method: attempts that fail, on a node each.
#[test]
fn a_task_is_tried_again_after_its_wait_until_nothing_is_left() {
    let mut bench = Bench::new();
    bench.submit(retried(2));
    for number in 1..=3 {
        let (attempt, node) = (attempt(0, number), NodeId(number));
        bench.hear(JobMessage::Committed(vec![Started { attempt, node }]));
        let outcome = Outcome::Failed(FailureCause::Code(1));
        let out = bench.hear(JobMessage::Released(vec![Released { attempt, node, outcome }]));
        assert!(
            out.scheduler.iter().all(|said| !matches!(said, SchedulerMessage::Return(_))),
            "it waits first"
        );
        if number == 3 {
            break;
        }
        let wait = Span::from_whole_seconds(u64::from(number));
        assert_eq!(bench.jobs.wake_at(), Some(bench.now + wait));
        bench.now = bench.now + wait;
        let mut out = Outbox::default();
        bench.jobs.wake(bench.now, &mut out);
        let avoid = (1..=number).map(NodeId).collect();
        let again = ReturnedTask { task: attempt.task, number: number + 1, avoid };
        assert_eq!(out.scheduler, [SchedulerMessage::Return(vec![again])]);
    }
    assert_eq!(bench.state(), TaskState::Failed);
    let out = bench.hear(JobMessage::History { ticket: Ticket(2), task: attempt(0, 1).task });
    let HostMessage::Reply { answer: Answer::History(history), .. } = &out.host[0] else { panic!("{out:?}") };
    assert_eq!((history.ended, history.counted, history.not_before), (3, 2, None));
    let nodes: Vec<NodeId> = history.attempts.iter().map(|attempt| attempt.node).collect();
    assert_eq!(nodes, [NodeId(1), NodeId(2), NodeId(3)]);
}

#[test]
fn a_cancelled_job_waits_for_no_retry() {
    let mut bench = Bench::new();
    bench.submit(retried(2));
    bench.commit(&[0]);
    bench.release(0, Outcome::Failed(FailureCause::NotStarted));
    assert!(bench.jobs.wake_at().is_some());
    bench.hear(JobMessage::Cancel { ticket: Ticket(2), job: JobId(1) });
    assert_eq!(bench.jobs.wake_at(), None);
    bench.hear(JobMessage::Withdrawn(vec![group()]));
    assert_eq!(bench.state(), TaskState::Cancelled);
}

#[test]
fn aborting_is_like_cancelling_and_the_first_of_the_two_says_which() {
    let mut bench = Bench::new();
    bench.submit(JobSpec::bag("j", 3, Resources::new()));
    bench.commit(&[0, 1]);
    let abort = |ticket| JobMessage::Abort { ticket: Ticket(ticket), job: JobId(1), reason: "why".into() };
    assert_eq!(bench.hear(abort(2)).scheduler, [SchedulerMessage::Abort(vec![group()])]);
    let again = [abort(3), JobMessage::Cancel { ticket: Ticket(4), job: JobId(1) }];
    for message in again {
        assert!(bench.hear(message).scheduler.is_empty(), "it is under way");
    }
    bench.release(0, Outcome::Completed);
    bench.release(1, Outcome::Aborted);
    bench.hear(JobMessage::Withdrawn(vec![group()]));
    let job = bench.jobs.job(JobId(1)).expect("kept");
    let count = |state| job.groups[0].count(state);
    assert_eq!((count(TaskState::Completed), count(TaskState::Aborted)), (1, 2));
    assert_eq!((job.state(), job.result()), (TaskState::Aborted, TaskResult::Warn));
    assert_eq!(job.aborted.as_deref(), Some("why"));
}

#[test]
fn a_group_that_holds_a_claim_is_assigned_as_long_as_it_does() {
    let mut bench = Bench::new();
    bench.submit(JobSpec::gang("g", 2, Resources::new()));
    let assigned = || JobMessage::Assigned { group: group(), pool: "lab".into() };
    bench.hear(assigned());
    assert_eq!(bench.state(), TaskState::Assigned);
    let said = bench.hear(assigned());
    assert!(said.host.is_empty(), "nothing changed");
    bench.hear(JobMessage::Unassigned { group: group() });
    assert_eq!(bench.state(), TaskState::Queued);
    bench.hear(assigned());
    bench.commit(&[0, 1]);
    assert_eq!(bench.state(), TaskState::Scheduled, "none of it waits any more");
    bench.hear(JobMessage::Unassigned { group: group() });
    bench.release(0, Outcome::Lost);
    bench.release(1, Outcome::Preempted(StopCause::GroupBroken));
    assert_eq!(bench.state(), TaskState::Queued);
    bench.hear(JobMessage::Assigned { group: GroupId::new(JobId(9), 0), pool: "lab".into() });
}

/// Goal: an attempt that the ledger does not have any more counts as lost, and one that JobState never heard of is
/// reported. Method: ledgers that have both, the one, and the other.
#[test]
fn attempts_of_which_only_the_ledger_or_only_jobs_know_are_found() {
    let mut bench = Bench::new();
    bench.submit(JobSpec::bag("j", 2, Resources::new()));
    bench.commit(&[0, 1]);
    let audit = |live| {
        let view = NodeView {
            version: 1,
            facts: Arc::new(NodeFacts::default()),
            capacity: Resources::new(),
            reserved: Resources::new().into(),
            open: true,
            state: NodeState::default(),
            breakdown: None,
        };
        let node = NodeAudit { node: NodeId(0), session: 0, view, free: Resources::new(), live };
        Arc::new(Audit { first: NodeId(0), nodes: vec![node], next: None })
    };
    let (known, never) = (vec![attempt(0, 1), attempt(1, 1)], attempt(7, 1));
    for (live, finding) in [
        (known.clone(), None),
        ([&known[..], &[never]].concat(), Some(Finding::UnknownToJobs(never))),
        (vec![attempt(1, 1)], Some(Finding::EndMissed(attempt(0, 1)))),
        (vec![attempt(1, 1)], None),
    ] {
        let audit = audit(live);
        let out = bench.hear(JobMessage::Audit(Arc::clone(&audit)));
        let found: Vec<_> = out.host.iter().filter(|said| matches!(said, HostMessage::Finding(_))).collect();
        let expected = finding.clone().map(HostMessage::Finding);
        assert_eq!(found, expected.iter().collect::<Vec<_>>());
        assert_eq!(out.host.last(), Some(&HostMessage::Ledger(audit)), "behind everything else");
        if matches!(finding, Some(Finding::EndMissed(_))) {
            let again = ReturnedTask { task: attempt(0, 1).task, number: 2, avoid: Vec::new() };
            assert_eq!(out.scheduler, [SchedulerMessage::Return(vec![again])]);
        }
    }
}

/// Goal: what is there for every job and live attempt stays small.
#[test]
#[cfg(target_pointer_width = "64")]
fn what_is_there_often_is_small() {
    assert_eq!(size_of::<Option<LiveTask>>(), 48);
    assert_eq!(size_of::<Job>(), 264);
}
