//! The six states of usage, and every change that makes a node pending, or must not.

use super::*;
use crate::messages::{HostMessage, Preparation, Returned, UsageAnswer, UsageOf};
use crate::outcome::Phase;
use crate::settings::Retention;
use crate::spec::{Access, Availability, Condition, PoolState, ReservationSpec};

impl Bench {
    /// One node that the Scheduler has looked at.
    fn seen() -> Bench {
        let mut bench = Bench::new();
        assert_eq!(bench.usage(), Usage::Pending, "a new node is looked at before it is idle");
        bench.see();
        bench
    }

    fn see(&mut self) {
        let sequence = self.out.scheduler.iter().find_map(|message| match message {
            SchedulerMessage::Pending { sequence, .. } => Some(*sequence),
            _ => None,
        });
        if let Some(sequence) = sequence {
            self.hear(ClusterMessage::Seen { sequence });
        }
    }

    fn usage(&self) -> Usage {
        self.cluster.usage(NodeId(0)).expect("the node is there")
    }

    fn patch(&mut self, patch: NodePatch) {
        let (ticket, name, patch) = (Ticket(1), "n".to_owned(), Box::new(patch));
        self.hear(ClusterMessage::UpdateNode { ticket, name, patch });
    }

    /// Says something at a moment, and lets the Scheduler look at what that makes pending.
    fn at(&mut self, now: Time, message: ClusterMessage) {
        self.hear_at(now, message);
        let pending = self.out.scheduler.iter().find_map(|message| match message {
            SchedulerMessage::Pending { sequence, .. } => Some(*sequence),
            _ => None,
        });
        if let Some(sequence) = pending {
            self.hear_at(now, ClusterMessage::Seen { sequence });
        }
    }

    fn time_since(&mut self, now: Time, since: Time) -> UsageAnswer {
        let (ticket, of, since) = (Ticket(7), UsageOf::Node("n".into()), Some(since));
        let out = self.hear_at(now, ClusterMessage::AskUsage { ticket, of, since });
        match &out.host[..] {
            [HostMessage::Reply { answer: Answer::Usage(answer), .. }] => (**answer).clone(),
            other => panic!("usage is told, not {other:?}"),
        }
    }

    fn condition(&mut self, condition: Condition) {
        self.patch(NodePatch { condition: Some(condition), ..NodePatch::default() });
    }

    fn availability(&mut self, availability: Availability) {
        self.patch(NodePatch { availability: Some(availability), ..NodePatch::default() });
    }

    fn pool(&mut self, state: PoolState) {
        let pool = self.cluster.node(NodeId(0)).expect("it is there").facts.pool.clone();
        self.hear(ClusterMessage::SetPool { ticket: Ticket(1), pool, state });
    }

    fn occupy(&mut self) {
        let version = self.version();
        self.hear(plan(&[0], version, false));
    }

    fn end_of_it(&mut self, exit: Exit) {
        self.hear(ClusterMessage::Ended(vec![EndReport { attempt: attempt(0, 1), exit }]));
    }
}

/// What is done to a node that was idle, and the usage that follows at once.
type Step = (&'static str, fn(&mut Bench), Usage);

/// Everything that may keep a node from work, or let it take some.
fn steps() -> [Step; 16] {
    [
        ("set automated", |bench| bench.condition(Condition::Automated), Usage::Pending),
        ("set manual", |bench| bench.condition(Condition::Manual), Usage::Idle),
        ("set broken", |bench| bench.condition(Condition::Broken), Usage::Idle),
        ("set removed", |bench| bench.condition(Condition::Removed), Usage::Idle),
        ("paused", |bench| bench.availability(Availability::Pause), Usage::Idle),
        ("drained", |bench| bench.availability(Availability::Drain), Usage::Idle),
        ("silent", |bench| drop(bench.hear(ClusterMessage::HeartbeatLost(NodeId(0))).clone()), Usage::Idle),
        ("its pool is disabled", |bench| bench.pool(PoolState::Disabled), Usage::Idle),
        (
            "more room",
            |bench| {
                let capacity = Some(Resources::of(SLOT, 3));
                bench.patch(NodePatch { capacity, ..NodePatch::default() });
            },
            Usage::Pending,
        ),
        (
            "others use less of it",
            |bench| bench.patch(NodePatch { reserved: Some(Resources::new()), ..NodePatch::default() }),
            Usage::Pending,
        ),
        (
            "it is known better",
            |bench| {
                let labels = Some([("disk".to_owned(), "ssd".to_owned())].into());
                bench.patch(NodePatch { labels, plugins: Some(vec!["net".into()]), ..NodePatch::default() });
            },
            Usage::Pending,
        ),
        (
            "it is for others too",
            |bench| {
                let access = Access { requestors: vec!["*".into()], ..Access::owned_by("ann") };
                bench.patch(NodePatch { access: Some(Some(Arc::new(access))), ..NodePatch::default() });
            },
            Usage::Pending,
        ),
        (
            "it comes into another pool",
            |bench| bench.patch(NodePatch { pool: Some("lab".into()), ..NodePatch::default() }),
            Usage::Pending,
        ),
        (
            "a task completed",
            |bench| {
                bench.occupy();
                bench.end_of_it(Exit::Completed);
            },
            Usage::Pending,
        ),
        (
            "a task failed",
            |bench| {
                bench.occupy();
                bench.end_of_it(Exit::Failed(FailureCause::Error));
            },
            Usage::Pending,
        ),
        (
            "a task was stopped",
            |bench| {
                bench.occupy();
                bench.end_of_it(Exit::Stopped);
            },
            Usage::Pending,
        ),
    ]
}

#[test]
fn every_change_that_lets_a_node_take_work_makes_it_pending() {
    for (name, step, usage) in steps() {
        let mut bench = Bench::seen();
        assert_eq!(bench.usage(), Usage::Idle, "{name}");
        step(&mut bench);
        assert_eq!(bench.usage(), usage, "{name}");
        bench.see();
        assert_eq!(bench.usage(), Usage::Idle, "{name}: nothing was found for it");
        // Whatever kept it from work is undone: it is looked at again.
        bench.hear(ClusterMessage::HeartbeatBack(NodeId(0)));
        bench.pool(PoolState::Enabled);
        bench.availability(Availability::Active);
        bench.condition(Condition::Automated);
        assert_eq!(bench.usage(), Usage::Pending, "{name}: back in use");
    }
}

#[test]
fn a_node_goes_through_the_states_of_its_furthest_attempt() {
    let mut bench = Bench::seen();
    let version = bench.version();
    bench.hear(plan(&[0, 1], version, false));
    assert_eq!(bench.usage(), Usage::Scheduled);
    let steps = [
        (Phase::Waiting, Usage::Waiting),
        (Phase::Installing, Usage::Installing),
        (Phase::Running, Usage::Running),
    ];
    for (phase, usage) in steps {
        bench.hear(ClusterMessage::Progress(vec![(attempt(0, 1), phase)]));
        assert_eq!(bench.usage(), usage);
    }
    bench.end_of_it(Exit::Completed);
    assert_eq!(bench.usage(), Usage::Scheduled, "the other speaks");
    for condition in [Condition::Broken, Condition::Manual] {
        bench.condition(condition);
        assert_eq!(bench.usage(), Usage::Idle, "nobody has it, whatever is left on it");
    }
    bench.condition(Condition::Automated);
    assert_eq!(bench.usage(), Usage::Scheduled);
}

#[test]
fn a_reserved_node_is_not_pending_until_it_is_given_back() {
    let mut bench = Bench::seen();
    bench.condition(Condition::Manual);
    let wish = Box::new(ReservationSpec { who: "ann".into(), prepare: None });
    bench.hear(ClusterMessage::Reserve { ticket: Ticket(1), name: "n".into(), wish });
    assert_eq!(bench.usage(), Usage::Running);
    bench.condition(Condition::Automated);
    assert_eq!(bench.usage(), Usage::Running, "it is still hers");
    bench.hear(ClusterMessage::Return { ticket: Ticket(1), name: "n".into() });
    assert_eq!(bench.usage(), Usage::Pending);
}

fn day(days: f64) -> Time {
    Time::ZERO + Span::from_seconds(days * 86_400.0).expect("not too long")
}

fn conditioned(condition: Condition) -> ClusterMessage {
    let patch = NodePatch { condition: Some(condition), ..NodePatch::default() };
    ClusterMessage::UpdateNode { ticket: Ticket(1), name: "n".into(), patch: Box::new(patch) }
}

fn seconds(answer: &UsageAnswer) -> Vec<(Condition, Usage, u64)> {
    let spent = answer.times.iter().filter(|time| !time.span.is_zero());
    spent.map(|time| (time.condition, time.usage, time.span.0 / 1_000_000)).collect()
}

/// Goal: four days of a node add up. Method: the first of them broken, half of the third in the hands of
/// somebody, half of the fourth at work, and idle else.
#[test]
fn the_days_of_a_node_are_told_by_condition_and_usage() {
    let mut bench = Bench::seen();
    bench.at(day(0.0), conditioned(Condition::Broken));
    bench.at(day(2.0), conditioned(Condition::Automated));
    bench.at(day(3.0), conditioned(Condition::Manual));
    let (ticket, name) = (Ticket(1), "n".to_owned());
    let wish = Box::new(ReservationSpec { who: "ann".into(), prepare: None });
    bench.at(day(3.0), ClusterMessage::Reserve { ticket, name: name.clone(), wish });
    bench.at(day(3.5), ClusterMessage::Return { ticket, name });
    bench.at(day(3.5), conditioned(Condition::Automated));
    let version = bench.version();
    bench.at(day(4.5), plan(&[0], version, false));
    bench.at(day(4.5), ClusterMessage::Progress(vec![(attempt(0, 1), Phase::Running)]));
    let mut told = seconds(&bench.time_since(day(5.0), day(1.0)));
    told.sort_unstable_by_key(|(_, _, seconds)| *seconds);
    let half = 43_200;
    assert_eq!(told.iter().map(|(.., seconds)| seconds).sum::<u64>(), 8 * half, "nothing is left out");
    for expected in [
        (Condition::Broken, Usage::Idle, 2 * half),
        (Condition::Automated, Usage::Idle, 4 * half),
        (Condition::Manual, Usage::Running, half),
        (Condition::Automated, Usage::Running, half),
    ] {
        assert!(told.contains(&expected), "{expected:?} is not in {told:?}");
    }
}

/// Goal: time that nothing interrupts is told whole, however long ago it began.
#[test]
fn a_node_that_nobody_needs_is_idle_the_whole_time() {
    let mut bench = Bench::seen();
    let told = bench.time_since(day(5.0), day(1.0));
    assert_eq!(seconds(&told), [(Condition::Automated, Usage::Idle, 345_600)]);
    assert_eq!(told.complete_since, day(1.0));
}

fn retained(usage_entries: u64, usage_entries_per_node: u64) -> ClusterMessage {
    let retention = Retention { usage_entries, usage_entries_per_node, ..Retention::default() };
    let version = 100 * usage_entries + usage_entries_per_node;
    ClusterMessage::Settings(Arc::new(Settings { version, retention, ..Settings::default() }))
}

/// Goal: no more entries are kept than there may be in all, also of nodes that nothing happens to any more. Method:
/// a node with a long history, then others, then settings that allow fewer.
#[test]
fn what_is_kept_in_all_is_bounded_also_when_nodes_come() {
    let mut bench = Bench::seen();
    bench.hear(retained(8, 6));
    for condition in [Condition::Broken, Condition::Manual, Condition::Broken, Condition::Manual] {
        bench.condition(condition);
    }
    let kept = |bench: &Bench, node| bench.cluster.usage_entries(NodeId(node)).len();
    let before = kept(&bench, 0);
    assert!(before > 4, "{before}");
    for number in 1..4 {
        let node = Box::new(NodeSpec::new(format!("m{number}"), Resources::of(SLOT, 1)));
        bench.hear(ClusterMessage::AddNode { ticket: Ticket(1), node });
        bench.see();
    }
    assert!((0..4).all(|node| kept(&bench, node) <= 2), "eight entries of four nodes");
    let last = bench.cluster.usage_entries(NodeId(0))[1];
    assert_eq!((last.condition, last.usage), (Condition::Manual, Usage::Idle), "the newest are kept");
    bench.hear(retained(8, 1));
    assert!((0..4).all(|node| kept(&bench, node) == 1));
    bench.hear(retained(0, 1));
    assert_eq!(kept(&bench, 0), 0);
}

/// Goal: preparations that take too long are ended before anybody else has the node. Method: they end a while after
/// they were told to, and another time not at all.
#[test]
fn late_preparations_end_before_the_node_is_free() {
    let mut bench = Bench::seen();
    bench.condition(Condition::Manual);
    let deadlines = Settings::default().deadlines;
    let wish = || Box::new(ReservationSpec { who: "ann".into(), prepare: Some("system".into()) });
    let reserve = |ticket| ClusterMessage::Reserve { ticket: Ticket(ticket), name: "n".into(), wish: wish() };
    let nothing = || ClusterMessage::Seen { sequence: 0 };
    let said = |how, reservation| ClusterMessage::Prepared { node: NodeId(0), reservation, how };
    let returned = |out: &Outbox| {
        out.host.contains(&HostMessage::Node(NodeEvent::Returned { node: NodeId(0), why: Returned::TooLate }))
    };
    let mut now = Time(1);
    // One that is refused has a number too.
    for (reservation, ends) in [(1, true), (3, false)] {
        bench.hear_at(now, reserve(1));
        bench.hear_at(now, said(Preparation::Begun, reservation));
        now = now + deadlines.prepare;
        let out = bench.hear_at(now, nothing()).clone();
        let end = NodeEvent::EndPreparation { node: NodeId(0), reservation };
        assert!(out.host.contains(&HostMessage::Node(end)) && !returned(&out));
        assert_eq!(bench.usage(), Usage::Installing);
        let out = bench.hear_at(now, reserve(9));
        let taken = Refusal::NodeReserved { node: "n".into(), who: "ann".into() };
        assert_eq!(out.host, [HostMessage::Reply { ticket: Ticket(9), answer: Answer::Refused(taken) }]);
        now = now + if ends { Span::from_millis(5) } else { deadlines.stop };
        let last = if ends { said(Preparation::Failed, reservation) } else { nothing() };
        assert!(returned(bench.hear_at(now, last)), "it is over for being late, not for having failed");
        assert_eq!((bench.usage(), bench.cluster.wake_at()), (Usage::Idle, None));
    }
}
