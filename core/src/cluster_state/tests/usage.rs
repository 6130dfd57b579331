//! The six states of usage, and every change that makes a node pending, or must not.

use super::*;
use crate::outcome::Phase;
use crate::spec::{Availability, Condition, PoolState, ReservationSpec};

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

#[test]
fn every_change_that_lets_a_node_take_work_makes_it_pending() {
    let steps: [Step; 12] = [
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
    ];
    for (name, step, usage) in steps {
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
    bench.condition(Condition::Broken);
    assert_eq!(bench.usage(), Usage::Idle, "a broken node is idle, whatever is left on it");
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
