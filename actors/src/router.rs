//! Who is where: sends each batch of an outbox to the actor it is for.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use actix::{Addr, Message};
use metrics::Gauge;
use plimsoll_core::cluster_state::ClusterState;
use plimsoll_core::id::{Attempt, NodeId};
use plimsoll_core::job_state::JobState;
use plimsoll_core::messages::{
    AgentMessage, ClusterMessage, HostMessage, JobMessage, MonitorMessage, NodeEvent, Outbox,
    RebalancerMessage, RunnerMessage, SchedulerMessage,
};
use plimsoll_core::rebalancer::Rebalancer;
use plimsoll_core::scheduler::Scheduler;
use plimsoll_core::task_runner::TaskRunner;

use crate::agents::{AgentBatch, AgentChange, AgentShard};
use crate::backlog::Backlog;
use crate::board::Board;
use crate::credit::CreditCount;
use crate::herald::{Herald, HostBatch};
use crate::monitor::{ForMonitor, MonitorShell};
use crate::preparations::NodePreparation;
use crate::shell::{CatchUp, Seated, Shell, depth_gauge};

/// Everything one turn of one machine said to another, in order.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Batch<M: Send>(pub(crate) Vec<M>);

/// The addresses, cloned once at wiring time.
pub(crate) struct Router {
    pub(crate) jobs: Mailbox<JobState>,
    pub(crate) scheduler: Mailbox<Scheduler>,
    pub(crate) cluster: Mailbox<ClusterState>,
    pub(crate) runner: Mailbox<TaskRunner>,
    pub(crate) rebalancer: Mailbox<Rebalancer>,
    pub(crate) monitor: Addr<MonitorShell>,
    pub(crate) herald: Addr<Herald>,
    pub(crate) backlog: Backlog,
    pub(crate) shards: Vec<Addr<AgentShard>>,
    /// Batches that the shards have not heard yet.
    pub(crate) agents_depth: Gauge,
    pub(crate) board: Arc<Board>,
    /// Counts assignments, if the service carries them out itself.
    pub(crate) credit: Option<RefCell<CreditCount>>,
}

impl Router {
    pub(crate) fn send(&self, out: Outbox) {
        let Outbox { jobs, scheduler, cluster, runner, agents, rebalancer, executor, host } = out;
        debug_assert!(executor.is_empty(), "only agents speak to executors");
        // At once: agents are there, and jobs are known, before anything can be said about them.
        let host: Vec<HostMessage> =
            host.into_iter().filter_map(|message| self.prepare_for(message)).collect();
        if !host.is_empty() {
            self.backlog.add(host.len());
            self.herald.do_send(HostBatch(host));
        }
        self.watch_credit(&jobs);
        self.send_to_machines(cluster, jobs, scheduler, runner, rebalancer);
        self.send_to_agents(agents);
    }

    /// Completes when every deciding machine has heard what was sent to it before.
    pub(crate) fn caught_up(&self) -> impl Future<Output = ()> + 'static {
        let heard = (
            self.jobs.send(CatchUp),
            self.scheduler.send(CatchUp),
            self.cluster.send(CatchUp),
            self.runner.send(CatchUp),
        );
        async move {
            // A machine that is gone hears nothing any more; then everything ends soon.
            let _ = tokio::join!(heard.0, heard.1, heard.2, heard.3);
        }
    }

    /// Passes credit on that came back because attempts ended.
    fn watch_credit(&self, messages: &[JobMessage]) {
        self.change_credit(|credit| credit.watch(messages));
    }

    /// The service has taken these assignments over.
    pub(crate) fn acknowledge(&self, attempts: &[Attempt]) {
        self.change_credit(|credit| credit.acknowledge(attempts));
    }

    fn change_credit(&self, change: impl FnOnce(&mut CreditCount) -> bool) {
        let Some(credit) = &self.credit else { return };
        let mut credit = credit.borrow_mut();
        if change(&mut credit) {
            self.scheduler.post(vec![credit.message()]);
        }
    }

    /// Passes on what was said to the machines, in one fixed order.
    pub(crate) fn send_to_machines(
        &self,
        cluster: Vec<ClusterMessage>,
        jobs: Vec<JobMessage>,
        scheduler: Vec<SchedulerMessage>,
        runner: Vec<RunnerMessage>,
        rebalancer: Vec<RebalancerMessage>,
    ) {
        self.cluster.post(cluster);
        self.jobs.post(jobs);
        self.scheduler.post(scheduler);
        self.runner.post(runner);
        self.rebalancer.post(rebalancer);
    }

    pub(crate) fn send_to_agents(&self, messages: Vec<(NodeId, AgentMessage)>) {
        if messages.is_empty() {
            return;
        }
        if let [only] = self.shards.as_slice() {
            self.agents_depth.increment(1.0);
            return only.do_send(AgentBatch(messages));
        }
        let mut by_shard: Vec<Vec<(NodeId, AgentMessage)>> = vec![Vec::new(); self.shards.len()];
        for (node, message) in messages {
            by_shard[node.index() % self.shards.len()].push((node, message));
        }
        for (shard, messages) in self.shards.iter().zip(by_shard) {
            if !messages.is_empty() {
                self.agents_depth.increment(1.0);
                shard.do_send(AgentBatch(messages));
            }
        }
    }

    /// Sees to what must be there first; the answer is what the herald is to pass on.
    fn prepare_for(&self, message: HostMessage) -> Option<HostMessage> {
        if let HostMessage::Accepted { job, spec } = message {
            self.board.accept(job, spec);
            return None;
        }
        match &message {
            HostMessage::Audited(audited) => {
                self.monitor.do_send(ForMonitor(MonitorMessage::Audited(audited.clone())));
            }
            HostMessage::Node(NodeEvent::Added { node, name, session }) => {
                let name: Arc<str> = name.as_str().into();
                self.shard(*node).do_send(AgentChange::Begin { node: *node, name, session: *session });
            }
            HostMessage::Node(NodeEvent::Removed { node, .. }) => {
                self.shard(*node).do_send(AgentChange::End { node: *node });
            }
            HostMessage::Node(NodeEvent::Prepare { node, reservation, what }) => {
                let (node, reservation, what) = (*node, *reservation, Arc::clone(what));
                self.shard(node).do_send(NodePreparation::Begin { node, reservation, what });
            }
            HostMessage::Node(NodeEvent::EndPreparation { node, reservation }) => {
                let (node, reservation) = (*node, *reservation);
                self.shard(node).do_send(NodePreparation::End { node, reservation });
            }
            _ => {}
        }
        Some(message)
    }

    pub(crate) fn shard(&self, node: NodeId) -> &Addr<AgentShard> {
        &self.shards[node.index() % self.shards.len()]
    }
}

/// Where batches for a machine are sent, and how many it has not heard yet.
pub(crate) struct Mailbox<M: Seated> {
    address: Addr<Shell<M>>,
    depth: Gauge,
}

impl<M: Seated> Mailbox<M> {
    pub(crate) fn new(address: Addr<Shell<M>>) -> Mailbox<M> {
        Mailbox { address, depth: depth_gauge::<M>() }
    }

    pub(crate) fn post(&self, messages: Vec<M::Message>) {
        if !messages.is_empty() {
            self.depth.increment(1.0);
            self.address.do_send(Batch(messages));
        }
    }
}

impl<M: Seated> Clone for Mailbox<M> {
    fn clone(&self) -> Mailbox<M> {
        Mailbox { address: self.address.clone(), depth: self.depth.clone() }
    }
}

impl<M: Seated> Deref for Mailbox<M> {
    type Target = Addr<Shell<M>>;

    fn deref(&self) -> &Addr<Shell<M>> {
        &self.address
    }
}
