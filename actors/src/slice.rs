//! A slice of commands on its way to the machines: one batch for each.

use std::sync::Arc;

use plimsoll_core::id::{Attempt, NodeId};
use plimsoll_core::messages::{
    AgentMessage, ClusterMessage, JobMessage, RebalancerMessage, RunnerMessage, SchedulerMessage,
};
use plimsoll_core::settings::Settings;
use tokio::sync::oneshot;

use crate::commands::Command;
use crate::replies::Tickets;
use crate::router::Router;
use crate::snapshot::SnapshotResult;
use crate::subscriptions::Subscriber;

/// What a slice of commands becomes.
#[derive(Default)]
pub(crate) struct Slice {
    jobs: Vec<JobMessage>,
    cluster: Vec<ClusterMessage>,
    scheduler: Vec<SchedulerMessage>,
    runner: Vec<RunnerMessage>,
    rebalancer: Vec<RebalancerMessage>,
    agents: Vec<(NodeId, AgentMessage)>,
    acknowledged: Vec<Attempt>,
    /// For the front itself.
    pub(crate) settings: Option<Arc<Settings>>,
    pub(crate) subscribers: Vec<Subscriber>,
    pub(crate) snapshots: Vec<oneshot::Sender<SnapshotResult>>,
    /// Told when everything before them has been handed on.
    drained: Vec<oneshot::Sender<()>>,
}

impl Slice {
    pub(crate) fn take(&mut self, command: Command, tickets: &mut Tickets) {
        match command {
            Command::Submit(job, reply) => {
                let ticket = tickets.one(reply);
                self.jobs.push(JobMessage::Submit { ticket, job, adopted: Vec::new() });
            }
            Command::SubmitMany(jobs, reply) => {
                let numbers = tickets.many(jobs.len(), reply);
                let submit = |(ticket, job)| JobMessage::Submit { ticket, job, adopted: Vec::new() };
                self.jobs.extend(numbers.zip(jobs).map(submit));
            }
            Command::Cancel(job, reply) => {
                let ticket = tickets.one(reply);
                self.jobs.push(JobMessage::Cancel { ticket, job });
            }
            Command::ListSet(set, reply) => {
                let ticket = tickets.one(reply);
                self.jobs.push(JobMessage::ListSet { ticket, set });
            }
            Command::Abort(job, reason, reply) => {
                let ticket = tickets.one(reply);
                self.jobs.push(JobMessage::Abort { ticket, job, reason });
            }
            Command::History(task, reply) => {
                let ticket = tickets.one(reply);
                self.jobs.push(JobMessage::History { ticket, task });
            }
            Command::AddNode(node, reply) => {
                let ticket = tickets.one(reply);
                self.cluster.push(ClusterMessage::AddNode { ticket, node });
            }
            Command::UpdateNode(name, patch, reply) => {
                let ticket = tickets.one(reply);
                self.cluster.push(ClusterMessage::UpdateNode { ticket, name, patch });
            }
            Command::RemoveNode(name, reply) => {
                let ticket = tickets.one(reply);
                self.cluster.push(ClusterMessage::RemoveNode { ticket, name });
            }
            Command::Heartbeat(name, heard, reply) => {
                let ticket = tickets.one(reply);
                self.cluster.push(ClusterMessage::Heartbeat { ticket, name, heard });
            }
            Command::Reserve(name, wish, reply) => {
                let ticket = tickets.one(reply);
                self.cluster.push(ClusterMessage::Reserve { ticket, name, wish });
            }
            Command::Return(name, reply) => {
                let ticket = tickets.one(reply);
                self.cluster.push(ClusterMessage::Return { ticket, name });
            }
            Command::Usage(of, since, reply) => {
                let ticket = tickets.one(reply);
                self.cluster.push(ClusterMessage::AskUsage { ticket, of, since });
            }
            Command::Explain(subject, reply) => {
                let ticket = tickets.one(reply);
                self.scheduler.push(SchedulerMessage::Explain { ticket, subject });
            }
            Command::ExplainOn(subject, node, reply) => {
                let ticket = tickets.one(reply);
                self.scheduler.push(SchedulerMessage::ExplainOn { ticket, subject, node });
            }
            Command::Settings(settings) => self.settings = Some(settings),
            Command::Subscribe(subscriber) => self.subscribers.push(subscriber),
            Command::Snapshot(reply) => self.snapshots.push(reply),
            Command::Finished(ended, exit) => {
                let exited = |(node, attempt)| (node, AgentMessage::Exited(attempt, exit));
                self.agents.extend(ended.into_iter().map(exited));
            }
            Command::Acknowledge(attempts) => self.acknowledged.extend(attempts),
            Command::Drained(reply) => self.drained.push(reply),
            #[cfg(test)]
            Command::Sabotage => self.jobs.push(crate::tests::impossible()),
        }
    }

    /// Every machine switches to new settings with its next turn.
    pub(crate) fn change_settings(&mut self, settings: &Arc<Settings>, runner: Arc<Settings>) {
        self.jobs.push(JobMessage::Settings(Arc::clone(settings)));
        self.cluster.push(ClusterMessage::Settings(Arc::clone(settings)));
        self.scheduler.push(SchedulerMessage::Settings(Arc::clone(settings)));
        self.runner.push(RunnerMessage::Settings(runner));
        self.rebalancer.push(RebalancerMessage::Settings(Arc::clone(settings)));
    }

    pub(crate) fn hand_on(self, router: &Router) {
        router.send_to_machines(self.cluster, self.jobs, self.scheduler, self.runner, self.rebalancer);
        router.send_to_agents(self.agents);
        if !self.acknowledged.is_empty() {
            router.acknowledge(&self.acknowledged);
        }
        for reply in self.drained {
            let _ = reply.send(());
        }
    }
}
