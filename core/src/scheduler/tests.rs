//! Decisions, one turn at a time: each test tells the machine what happened, in messages, and reads
//! from its outbox what it decided. After every turn the machine's own promises are checked.

mod audit;
mod changes;
mod choice;
mod explanations;
mod faults;
mod fillers;
mod gangs;
mod hops;
mod planning;
mod standings;

use std::collections::BTreeMap;

use super::*;
use crate::id::{Attempt, JobId};
use crate::messages::{GroupArrival, NodeNews, NodeView, Released, ReturnedTask, RoleArrival, Withdrawal};
use crate::outcome::{Outcome, StopCause};
use crate::resources::KindId;
use crate::settings::WindowSettings;
use crate::spec::{
    Availability, Condition, Liveness, NodeState, OnUnsatisfiable, PoolState, ShapeSpec, Start, Tie,
};
use crate::time::Span;

const SLOT: KindId = KindId(0);
const CPU: KindId = KindId(1);
const MEMORY: KindId = KindId(2);

const PAUSED: NodeState = NodeState {
    condition: Condition::Automated,
    availability: Availability::Pause,
    liveness: Liveness::Ready,
    reserved: false,
    pool: PoolState::Enabled,
};

/// A Scheduler and everything that its last turn said.
struct Bench {
    scheduler: Scheduler,
    out: Outbox,
    last_sequence: u64,
}

/// A task and where it was put: job, role, index, node.
type Placed = (u64, u16, u32, u32);

impl Bench {
    /// A Scheduler that plans every arrival at once.
    fn new() -> Bench {
        Bench::with_window(WindowSettings { gap: Span::ZERO, cap: Span::ZERO, adaptive: false })
    }

    /// Windows of 50 milliseconds, at most a second; even the first arrival is collected.
    fn with_windows() -> Bench {
        Bench::with_window(WindowSettings { adaptive: false, ..WindowSettings::default() })
    }

    fn with_window(window: WindowSettings) -> Bench {
        let settings = Arc::new(Settings { window, ..Settings::default() });
        Bench { scheduler: Scheduler::new(settings), out: Outbox::default(), last_sequence: 0 }
    }

    /// One turn; what was placed in it, in the order of the plan.
    fn hear(&mut self, batch: Vec<SchedulerMessage>) -> Vec<Placed> {
        self.hear_at(Time::ZERO, batch)
    }

    fn hear_at(&mut self, now: Time, batch: Vec<SchedulerMessage>) -> Vec<Placed> {
        self.out = Outbox::default();
        self.scheduler.receive(now, batch, &mut self.out);
        self.scheduler.check().expect("the promises hold");
        let place = |(attempt, node): (Attempt, NodeId)| {
            (attempt.task.job().0, attempt.task.role, attempt.task.index, node.0)
        };
        self.attempts().into_iter().map(place).collect()
    }

    /// Nodes with so much of one kind come in, numbered from 0, and are pending.
    fn add_nodes(&mut self, kind: KindId, amounts: &[i64]) -> Vec<Placed> {
        let nodes = amounts.iter().enumerate();
        let news = nodes.map(|(id, amount)| node(id as u32, Resources::of(kind, *amount))).collect();
        let all = (0..amounts.len() as u32).collect::<Vec<_>>();
        let pending = self.pending(&all);
        self.hear(vec![SchedulerMessage::Nodes(news), pending])
    }

    fn pending(&mut self, nodes: &[u32]) -> SchedulerMessage {
        self.last_sequence += 1;
        let nodes = nodes.iter().copied().map(NodeId).collect();
        SchedulerMessage::Pending { sequence: self.last_sequence, nodes }
    }

    /// What the last turn planned.
    fn attempts(&self) -> Vec<(Attempt, NodeId)> {
        let plans = self.out.cluster.iter().filter_map(|message| match message {
            ClusterMessage::Commit(plan) => Some(plan),
            _ => None,
        });
        plans.flat_map(|plan| &plan.placements).map(|one| (one.attempt, one.node)).collect()
    }

    /// What the last turn stopped.
    fn stops(&self) -> Vec<(Attempt, StopCause)> {
        let orders = self.out.cluster.iter().filter_map(|message| match message {
            ClusterMessage::Stop(orders) => Some(orders),
            _ => None,
        });
        orders.flatten().map(|order| (order.attempt, order.cause)).collect()
    }

    fn reason(&self, job: u64) -> crate::explanation::Reason {
        self.scheduler.explain(group(job)).expect("the group is known").reason
    }
}

fn group(job: u64) -> GroupId {
    GroupId::new(JobId(job), 0)
}

fn role_of(shape: ShapeSpec, tasks: u32) -> RoleArrival {
    let shape = Arc::new(shape);
    let (min, initial, duration, task_key, timeout) = (tasks, tasks, None, None, None);
    let (on_preempt, adopted) = (None, Vec::new());
    RoleArrival { shape, tasks, min, initial, duration, task_key, timeout, on_preempt, adopted }
}

fn role(request: Resources, tasks: u32) -> RoleArrival {
    role_of(ShapeSpec { request, ..ShapeSpec::default() }, tasks)
}

fn arrival(job: u64, start: Start, roles: Vec<RoleArrival>) -> GroupArrival {
    let (requestor, standing) = Default::default();
    let (hops, freeze, tie, on_unsatisfiable) = (None, None, Tie::None, OnUnsatisfiable::Wait);
    let roles = roles.into();
    GroupArrival { group: group(job), start, hops, freeze, tie, on_unsatisfiable, requestor, standing, roles }
}

fn independent(job: u64, roles: Vec<RoleArrival>) -> GroupArrival {
    arrival(job, Start::Independent, roles)
}

fn atomic(job: u64, roles: Vec<RoleArrival>) -> GroupArrival {
    arrival(job, Start::Atomic, roles)
}

/// A job of so many tasks that need this much of one kind.
fn bag(job: u64, tasks: u32, kind: KindId, amount: i64) -> SchedulerMessage {
    SchedulerMessage::NewGroups(vec![independent(job, vec![role(Resources::of(kind, amount), tasks)])])
}

fn gang(job: u64, roles: Vec<RoleArrival>) -> SchedulerMessage {
    SchedulerMessage::NewGroups(vec![atomic(job, roles)])
}

fn facts(id: u32) -> Arc<crate::spec::NodeFacts> {
    Arc::new(crate::spec::NodeFacts { name: format!("n{id}"), ..Default::default() })
}

fn node(id: u32, capacity: Resources) -> NodeNews {
    let view = NodeView {
        version: u64::from(id) + 1,
        facts: facts(id),
        capacity,
        reserved: Default::default(),
        open: true,
        state: NodeState::default(),
        breakdown: None,
    };
    NodeNews { node: NodeId(id), view: Some(view) }
}

/// The node as it was, but taking no new work.
fn closed(id: u32, capacity: Resources) -> NodeNews {
    let view = NodeView {
        version: u64::from(id) + 1_001,
        facts: facts(id),
        capacity,
        reserved: Default::default(),
        open: false,
        state: PAUSED,
        breakdown: None,
    };
    NodeNews { node: NodeId(id), view: Some(view) }
}

fn released(list: &[(Attempt, NodeId)], outcome: Outcome) -> SchedulerMessage {
    let one = |(attempt, node): &(Attempt, NodeId)| Released { attempt: *attempt, node: *node, outcome };
    SchedulerMessage::Released(list.iter().map(one).collect())
}

fn both(first: (KindId, i64), second: (KindId, i64)) -> Resources {
    let mut resources = Resources::of(first.0, first.1);
    resources.set(second.0, second.1);
    resources
}

/// Goal: what is there for every node, job and live attempt stays small.
#[test]
#[cfg(target_pointer_width = "64")]
fn what_is_there_often_is_small() {
    assert_eq!(size_of::<Option<live::LiveView>>(), 40);
    assert_eq!(size_of::<Option<nodes::NodeEntry>>(), 160);
    assert_eq!(size_of::<JobView>(), 232);
}
