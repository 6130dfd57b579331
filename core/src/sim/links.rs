//! Who talks to whom in the world: one first-in-first-out queue of batches per pair.

use std::collections::{BTreeMap, VecDeque};

use crate::id::NodeId;
use crate::messages::{
    AgentMessage, ClusterMessage, ExecutorMessage, JobMessage, MonitorMessage, Outbox, RebalancerMessage,
    RunnerMessage, SchedulerMessage,
};

/// Everybody who can send or receive. The order is the order in which a quiet world serves them:
/// the Scheduler last, so that what happens at one moment is planned together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Party {
    Host,
    Monitor,
    Cluster,
    Jobs,
    Runner,
    Agent(NodeId),
    Executor(NodeId),
    Rebalancer,
    Scheduler,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Link {
    pub to: Party,
    pub from: Party,
}

/// What one turn of one party said to another.
#[derive(Clone, PartialEq, Debug)]
pub enum Batch {
    Jobs(Vec<JobMessage>),
    Scheduler(Vec<SchedulerMessage>),
    Cluster(Vec<ClusterMessage>),
    Runner(Vec<RunnerMessage>),
    Rebalancer(Vec<RebalancerMessage>),
    Monitor(Vec<MonitorMessage>),
    Agent(Vec<AgentMessage>),
    Executor(Vec<ExecutorMessage>),
}

/// All queues of the world.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    queues: BTreeMap<Link, VecDeque<Batch>>,
}

impl Queues {
    pub(super) fn push(&mut self, link: Link, batch: Batch) {
        self.queues.entry(link).or_default().push_back(batch);
    }

    /// Takes the oldest batch of a link.
    pub(super) fn pop(&mut self, link: Link) -> Option<Batch> {
        let queue = self.queues.get_mut(&link)?;
        let batch = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&link);
        }
        batch
    }

    /// How many batches are on a link.
    pub(super) fn length(&self, link: Link) -> usize {
        self.queues.get(&link).map_or(0, VecDeque::len)
    }

    /// The oldest batch of a link.
    pub(super) fn peek(&self, link: Link) -> Option<&Batch> {
        self.queues.get(&link)?.front()
    }

    /// Links with something on them, in the order of their parties.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Link> + '_ {
        self.queues.keys().copied()
    }

    /// Links to one party with something on them.
    pub(super) fn waiting_for(&self, to: Party) -> Vec<Link> {
        let first = Link { to, from: Party::Host };
        self.queues.range(first..).map(|(link, _)| *link).take_while(|link| link.to == to).collect()
    }

    /// Drops what is on its way between two parties.
    pub(super) fn clear(&mut self, link: Link) {
        self.queues.remove(&link);
    }

    /// Sends everything an outbox holds for other machines; what is for the host is returned.
    pub(super) fn send(&mut self, from: Party, out: Outbox) -> Vec<crate::messages::HostMessage> {
        let Outbox { jobs, scheduler, cluster, runner, agents, rebalancer, executor, host } = out;
        let mut send = |to, batch| self.push(Link { to, from }, batch);
        if !jobs.is_empty() {
            send(Party::Jobs, Batch::Jobs(jobs));
        }
        if !scheduler.is_empty() {
            send(Party::Scheduler, Batch::Scheduler(scheduler));
        }
        if !cluster.is_empty() {
            send(Party::Cluster, Batch::Cluster(cluster));
        }
        if !runner.is_empty() {
            send(Party::Runner, Batch::Runner(runner));
        }
        if !rebalancer.is_empty() {
            send(Party::Rebalancer, Batch::Rebalancer(rebalancer));
        }
        for (node, messages) in by_node(agents) {
            send(Party::Agent(node), Batch::Agent(messages));
        }
        for (node, messages) in by_node(executor) {
            send(Party::Executor(node), Batch::Executor(messages));
        }
        host
    }
}

/// One ordered batch per node.
fn by_node<M>(messages: Vec<(NodeId, M)>) -> BTreeMap<NodeId, Vec<M>> {
    let mut batches: BTreeMap<NodeId, Vec<M>> = BTreeMap::new();
    for (node, message) in messages {
        batches.entry(node).or_default().push(message);
    }
    batches
}
