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

/// Hands a request on under the ticket with which it is answered.
macro_rules! ask {
    ($list:expr, $kind:ident::$variant:ident { $($field:ident),* }, $tickets:ident, $reply:ident) => {{
        let ticket = $tickets.one($reply);
        $list.push($kind::$variant { ticket, $($field),* });
    }};
}

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
            Command::Cancel(job, reply) => ask!(self.jobs, JobMessage::Cancel { job }, tickets, reply),
            Command::Reprioritise(jobs, change, reply) => {
                ask!(self.jobs, JobMessage::Reprioritise { jobs, change }, tickets, reply)
            }
            Command::Resize(resize, reply) => ask!(self.jobs, JobMessage::Resize { resize }, tickets, reply),
            Command::ListSet(set, reply) => ask!(self.jobs, JobMessage::ListSet { set }, tickets, reply),
            Command::Abort(job, reason, reply) => {
                ask!(self.jobs, JobMessage::Abort { job, reason }, tickets, reply)
            }
            Command::History(task, reply) => ask!(self.jobs, JobMessage::History { task }, tickets, reply),
            Command::AddNode(node, reply) => {
                ask!(self.cluster, ClusterMessage::AddNode { node }, tickets, reply)
            }
            Command::UpdateNode(name, patch, reply) => {
                ask!(self.cluster, ClusterMessage::UpdateNode { name, patch }, tickets, reply)
            }
            Command::RemoveNode(name, reply) => {
                ask!(self.cluster, ClusterMessage::RemoveNode { name }, tickets, reply)
            }
            Command::SetPool(pool, state, reply) => {
                let ticket = tickets.one(reply);
                self.cluster.push(ClusterMessage::SetPool { ticket, pool, state });
            }
            Command::Heartbeat(name, heard, reply) => {
                ask!(self.cluster, ClusterMessage::Heartbeat { name, heard }, tickets, reply)
            }
            Command::Reserve(name, wish, reply) => {
                ask!(self.cluster, ClusterMessage::Reserve { name, wish }, tickets, reply)
            }
            Command::Return(name, reply) => {
                ask!(self.cluster, ClusterMessage::Return { name }, tickets, reply)
            }
            Command::Usage(of, since, reply) => {
                ask!(self.cluster, ClusterMessage::AskUsage { of, since }, tickets, reply)
            }
            Command::Explain(subject, reply) => {
                ask!(self.scheduler, SchedulerMessage::Explain { subject }, tickets, reply)
            }
            Command::ExplainDelay(subject, reply) => {
                ask!(self.jobs, JobMessage::ExplainDelay { subject }, tickets, reply)
            }
            Command::ExplainOn(subject, node, reply) => {
                ask!(self.scheduler, SchedulerMessage::ExplainOn { subject, node }, tickets, reply)
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
            control => self.take_control(control, tickets),
        }
    }

    /// What is done to work that is there, and asked about it.
    fn take_control(&mut self, command: Command, tickets: &mut Tickets) {
        match command {
            Command::CancelAll(which, reply) => {
                ask!(self.jobs, JobMessage::CancelAll { which }, tickets, reply)
            }
            Command::CancelOnNode(name, reply) => {
                ask!(self.cluster, ClusterMessage::CancelOnNode { name }, tickets, reply)
            }
            Command::ListSizes(job, reply) => {
                ask!(self.scheduler, SchedulerMessage::ListSizes { job }, tickets, reply)
            }
            Command::ListWaiting(limit, reply) => {
                ask!(self.scheduler, SchedulerMessage::ListWaiting { limit }, tickets, reply)
            }
            Command::ListChildren(job, reply) => {
                ask!(self.jobs, JobMessage::ListChildren { job }, tickets, reply)
            }
            Command::Extend(what, span, reply) => {
                ask!(self.scheduler, SchedulerMessage::Extend { what, span }, tickets, reply)
            }
            _ => unreachable!("every other command is taken elsewhere"),
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
