//! The life of tasks in virtual time, along the known cases of other schedulers: how often and when they are
//! tried again, and when their time is over. What was left out, and why, is in `tests/lifecycle/NOT_TAKEN.md`.

use std::sync::Arc;

use plimsoll::core::id::{Attempt, JobId, Ticket};
use plimsoll::core::messages::{Answer, ClusterMessage, HostMessage, JobEvent, JobMessage, Refusal};
use plimsoll::core::outcome::{Exit, FailureCause, Outcome, Phase, TaskState};
use plimsoll::core::resources::{KindId, Resources};
use plimsoll::core::settings::Settings;
use plimsoll::core::sim::{Batch, Behaviour, Course, Party, World};
use plimsoll::core::spec::{JobSpec, NodeSpec, Retries, Start};
use plimsoll::core::time::{Span, Time};

const SLOT: KindId = KindId(0);

/// Every execution goes the same way.
struct Same(Course);

impl Behaviour for Same {
    fn course(&mut self, _: Attempt) -> Course {
        self.0
    }
}

struct Bench {
    world: World,
    behaviour: Box<dyn Behaviour>,
    events: Vec<JobEvent>,
    answers: Vec<Answer>,
}

impl Bench {
    fn new(settings: Settings, nodes: u32, slots: i64, course: Course) -> Bench {
        let mut world = World::new(Arc::new(settings));
        let node = |number| NodeSpec::new(format!("n{number}"), Resources::of(SLOT, slots));
        let add = |number| ClusterMessage::AddNode { ticket: Ticket(0), node: Box::new(node(number)) };
        world.tell(Party::Cluster, Batch::Cluster((0..nodes).map(add).collect()));
        Bench { world, behaviour: Box::new(Same(course)), events: Vec::new(), answers: Vec::new() }
    }

    fn tell(&mut self, message: JobMessage) {
        self.world.tell(Party::Jobs, Batch::Jobs(vec![message]));
        self.settle();
    }

    fn submit(&mut self, job: JobSpec) {
        self.tell(JobMessage::Submit { ticket: Ticket(1), job: Arc::new(job), adopted: Vec::new() });
    }

    fn settle(&mut self) {
        self.world.settle(&mut *self.behaviour).expect("every promise holds");
        for message in self.world.take_host_messages() {
            match message {
                HostMessage::Job(event) => self.events.push(event),
                HostMessage::Reply { answer, .. } => self.answers.push(answer),
                _ => {}
            }
        }
    }

    /// Lets time pass until every job is finished.
    fn run(&mut self) {
        while self.world.jobs.unfinished() > 0 {
            self.world.now = self.world.next_event().expect("something is still to come").max(self.world.now);
            self.settle();
        }
    }

    /// When each attempt was bound, in seconds.
    fn bound(&self) -> Vec<f64> {
        let bound = self.events.iter().filter_map(|event| match event {
            JobEvent::Bound { at, .. } => Some(at.as_seconds()),
            _ => None,
        });
        bound.collect()
    }

    /// Where each attempt was bound.
    fn places(&self) -> Vec<(Attempt, u32)> {
        let bound = self.events.iter().filter_map(|event| match event {
            JobEvent::Bound { attempt, node, .. } => Some((*attempt, node.0)),
            _ => None,
        });
        bound.collect()
    }

    fn ended(&self) -> Vec<(f64, Outcome)> {
        let ended = self.events.iter().filter_map(|event| match event {
            JobEvent::Ended { at, outcome, .. } => Some((at.as_seconds(), *outcome)),
            _ => None,
        });
        ended.collect()
    }

    fn state(&self) -> TaskState {
        self.world.jobs.job(JobId(1)).expect("the job is kept").state()
    }
}

fn at_once() -> Settings {
    let mut settings = Settings::default();
    settings.window.gap = Span::ZERO;
    settings
}

fn retried(retries: Retries) -> JobSpec {
    let mut job = JobSpec::bag("j", 1, Resources::of(SLOT, 1));
    job.groups[0].roles[0].retries = Some(Box::new(retries));
    job
}

/// Goal: with three retries a task that never starts, or always fails, is tried four times and has failed.
#[test]
fn three_retries_are_four_attempts() {
    let never = Course { prepare: Some(Span::from_millis(1)), unprepared: true, ..Course::plain(None) };
    let fails = Course { exit: Exit::Failed(FailureCause::Error), ..Course::plain(Some(Span::ZERO)) };
    for (course, cause) in [(never, FailureCause::NotStarted), (fails, FailureCause::Error)] {
        let mut bench = Bench::new(at_once(), 5, 1, course);
        bench.submit(retried(Retries::new(3)));
        bench.run();
        let outcomes: Vec<Outcome> = bench.ended().into_iter().map(|(_, outcome)| outcome).collect();
        assert_eq!(outcomes, [Outcome::Failed(cause); 4]);
        assert_eq!(bench.state(), TaskState::Failed);
    }
}

/// Goal: no attempt goes to a node the task has failed on while another has room. Method: as many nodes as
/// attempts, each of which fails; then fewer nodes than attempts.
#[test]
fn a_retry_goes_elsewhere_while_there_is_room() {
    let fails = Course { exit: Exit::Failed(FailureCause::Error), ..Course::plain(Some(Span::ZERO)) };
    for (nodes, retries, different) in [(4, 3, 4), (2, 3, 2), (12, 11, 12)] {
        for start in [Start::Independent, Start::Atomic] {
            let mut settings = at_once();
            settings.faulty.broken_after = 0;
            let mut bench = Bench::new(settings, nodes, 1, fails);
            let mut job = retried(Retries::new(retries));
            job.groups[0].start = start;
            job.groups[0].roles[0].min = 1;
            bench.submit(job);
            bench.run();
            let mut on: Vec<_> = bench.places().into_iter().map(|(_, node)| node).collect();
            assert_eq!(on.len() as u32, retries + 1);
            on.sort_unstable();
            on.dedup();
            assert_eq!(on.len(), different, "with {nodes} nodes, {start:?}");
        }
    }
}

/// The first attempt of the first task fails, everything else runs.
struct FirstFails;

impl Behaviour for FirstFails {
    fn course(&mut self, attempt: Attempt) -> Course {
        match (attempt.task.index, attempt.number) {
            (0, 1) => Course {
                exit: Exit::Failed(FailureCause::Error),
                ..Course::plain(Some(Span::from_millis(1)))
            },
            _ => Course::plain(Some(Span::from_millis(10))),
        }
    }
}

/// Goal: of a group that starts again as a whole only the member that failed minds where it did. Method: two
/// members on the only two nodes change places; with a third node the group leaves the one where it failed.
#[test]
fn a_member_that_failed_goes_elsewhere_with_its_group() {
    for (nodes, second) in [(2, [1, 0]), (3, [1, 2])] {
        let mut bench = Bench::new(at_once(), nodes, 1, Course::plain(None));
        bench.behaviour = Box::new(FirstFails);
        let mut job = JobSpec::bag("j", 2, Resources::of(SLOT, 1));
        job.groups[0].start = Start::Atomic;
        (job.groups[0].roles[0].min, job.groups[0].roles[0].max) = (2, 2);
        job.groups[0].roles[0].retries = Some(Box::new(Retries::new(1)));
        bench.submit(job);
        bench.run();
        assert_eq!(bench.state(), TaskState::Completed);
        let mut again: Vec<(u32, u32)> = bench
            .places()
            .into_iter()
            .filter(|(attempt, _)| attempt.number == 2)
            .map(|(attempt, node)| (attempt.task.index, node))
            .collect();
        again.sort_unstable();
        assert_eq!(again, [(0, second[0]), (1, second[1])], "with {nodes} nodes");
    }
}

/// Goal: waits of half a second that double add up to the known moments: 1.5, 7.5, 15.5 and 31.5 seconds
/// before the second, fourth, fifth and sixth retry.
#[test]
fn waits_double() {
    let fails = Course { exit: Exit::Failed(FailureCause::Code(1)), ..Course::plain(Some(Span::ZERO)) };
    let mut bench = Bench::new(at_once(), 9, 1, fails);
    bench.submit(retried(Retries { backoff: Span::from_millis(500), ..Retries::new(6) }));
    bench.run();
    let bound = bench.bound();
    assert_eq!([2, 4, 5, 6].map(|retry| bound[retry]), [1.5, 7.5, 15.5, 31.5]);
}

/// Goal: an attempt has the time its role gives and the overhead, and without a timeout the time of
/// `deadlines.run`. Method: the known sums of a watchdog with half an hour on top.
#[test]
fn time_is_over_when_the_timeout_and_the_overhead_are() {
    for (timeout, over) in [(Some(1_200), 3_000.0), (Some(600), 2_400.0), (None, 1_800.0)] {
        let mut settings = at_once();
        settings.deadlines.overhead = Span::from_whole_seconds(1_800);
        settings.deadlines.run = Span::from_whole_seconds(1_800);
        let mut bench = Bench::new(settings, 1, 1, Course::plain(None));
        let mut job = JobSpec::bag("j", 1, Resources::of(SLOT, 1));
        job.groups[0].roles[0].timeout = timeout.map(Span::from_whole_seconds).into();
        bench.submit(job);
        bench.run();
        assert_eq!(bench.ended(), [(over, Outcome::TimedOut(Phase::Running))]);
    }
}

/// Goal: cancelling a running job ends its tasks, cancelling it again changes nothing, and an unknown job is
/// refused.
#[test]
fn cancelling_a_job_ends_it_once() {
    let mut bench = Bench::new(at_once(), 1, 1, Course::plain(None));
    bench.submit(JobSpec::bag("j", 2, Resources::of(SLOT, 1)));
    for job in [1, 1, 7] {
        bench.tell(JobMessage::Cancel { ticket: Ticket(2), job: JobId(job) });
    }
    let unknown = Answer::Refused(Refusal::UnknownJob(JobId(7)));
    assert_eq!(bench.answers[bench.answers.len() - 3..], [Answer::Done, Answer::Done, unknown]);
    assert_eq!(bench.ended(), [(Time::ZERO.as_seconds(), Outcome::Cancelled)]);
    assert_eq!(bench.state(), TaskState::Cancelled);
}

/// Goal: a thousand tasks on five nodes: 200 each.
#[test]
fn tasks_are_spread_evenly() {
    let mut bench = Bench::new(at_once(), 5, 1_000, Course::plain(None));
    bench.submit(JobSpec::bag("j", 1_000, Resources::of(SLOT, 1)));
    let mut per_node = [0; 5];
    for live in bench.world.cluster.live() {
        per_node[live.node.index()] += 1;
    }
    assert_eq!(per_node, [200; 5]);
}
