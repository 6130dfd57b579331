//! Where a machine's turn leaves what it says: one ordered batch per destination.
//!
//! Neighbouring items of one kind share a message, so a busy turn costs one allocation per kind
//! and a quiet one has no added latency. The order of emission is kept.

use serde::{Deserialize, Serialize};

use crate::id::{Attempt, GroupId, NodeId, TaskId, Ticket};
use crate::outcome::{Phase, StopCause};

use super::*;

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Outbox {
    pub jobs: Vec<JobMessage>,
    pub scheduler: Vec<SchedulerMessage>,
    pub cluster: Vec<ClusterMessage>,
    pub runner: Vec<RunnerMessage>,
    pub agents: Vec<(NodeId, AgentMessage)>,
    pub rebalancer: Vec<RebalancerMessage>,
    pub executor: Vec<(NodeId, ExecutorMessage)>,
    pub host: Vec<HostMessage>,
}

/// Appends to the last message if it is of this kind, else begins a new one.
macro_rules! append {
    ($list:expr, $kind:path, $item:expr) => {
        match $list.last_mut() {
            Some($kind(items)) => items.push($item),
            _ => $list.push($kind(vec![$item])),
        }
    };
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
            && self.scheduler.is_empty()
            && self.cluster.is_empty()
            && self.runner.is_empty()
            && self.agents.is_empty()
            && self.rebalancer.is_empty()
            && self.executor.is_empty()
            && self.host.is_empty()
    }

    pub fn reply(&mut self, ticket: Ticket, answer: Answer) {
        self.host.push(HostMessage::Reply { ticket, answer });
    }

    pub fn refuse(&mut self, ticket: Ticket, refusal: Refusal) {
        self.reply(ticket, Answer::Refused(refusal));
    }

    pub fn job_event(&mut self, event: JobEvent) {
        self.host.push(HostMessage::Job(event));
    }

    pub fn node_event(&mut self, event: NodeEvent) {
        self.host.push(HostMessage::Node(event));
    }

    pub fn new_group(&mut self, arrival: GroupArrival) {
        append!(self.scheduler, SchedulerMessage::NewGroups, arrival);
    }

    pub fn reprioritised(&mut self, job: Reprioritised) {
        append!(self.scheduler, SchedulerMessage::Reprioritise, job);
    }

    pub fn return_task(&mut self, task: ReturnedTask) {
        append!(self.scheduler, SchedulerMessage::Return, task);
    }

    pub fn withdraw_group(&mut self, group: GroupId, cause: StopCause) {
        match cause {
            StopCause::Abort => append!(self.scheduler, SchedulerMessage::Abort, group),
            StopCause::GroupDone => append!(self.scheduler, SchedulerMessage::Dismiss, group),
            _ => append!(self.scheduler, SchedulerMessage::Withdraw, group),
        }
    }

    pub fn stop_task(&mut self, task: TaskId, cause: StopCause) {
        append!(self.scheduler, SchedulerMessage::StopTasks, (task, cause));
    }

    pub fn break_group(&mut self, group: GroupId) {
        append!(self.scheduler, SchedulerMessage::Break, group);
    }

    pub fn forget_group(&mut self, group: GroupId) {
        append!(self.scheduler, SchedulerMessage::Forget, group);
    }

    pub fn node_news(&mut self, news: NodeNews) {
        append!(self.scheduler, SchedulerMessage::Nodes, news);
    }

    pub fn conflict(&mut self, attempt: Attempt) {
        append!(self.scheduler, SchedulerMessage::Conflict, attempt);
    }

    /// Tells JobState and the Scheduler in the same turn.
    pub fn released(&mut self, released: Released) {
        append!(self.jobs, JobMessage::Released, released);
        append!(self.scheduler, SchedulerMessage::Released, released);
    }

    pub fn committed(&mut self, started: Started) {
        append!(self.jobs, JobMessage::Committed, started);
    }

    pub fn job_progress(&mut self, attempt: Attempt, phase: Phase) {
        append!(self.jobs, JobMessage::Progress, (attempt, phase));
    }

    pub fn fence(&mut self, group: GroupId) {
        append!(self.cluster, ClusterMessage::Fence, group);
    }

    pub fn fenced(&mut self, group: GroupId) {
        append!(self.jobs, JobMessage::Fenced, group);
    }

    pub fn withdrawn(&mut self, group: GroupId) {
        append!(self.jobs, JobMessage::Withdrawn, group);
    }

    pub fn launch(&mut self, launch: Launch) {
        append!(self.runner, RunnerMessage::Launch, launch);
    }

    pub fn runner_stop(&mut self, attempt: Attempt) {
        append!(self.runner, RunnerMessage::Stop, attempt);
    }

    pub fn abandon(&mut self, attempt: Attempt) {
        append!(self.runner, RunnerMessage::Abandon, attempt);
    }

    pub fn stop(&mut self, order: StopOrder) {
        append!(self.cluster, ClusterMessage::Stop, order);
    }

    pub fn withdrawal(&mut self, withdrawal: Withdrawal) {
        append!(self.cluster, ClusterMessage::Withdraw, withdrawal);
    }

    pub fn ended(&mut self, report: EndReport) {
        append!(self.cluster, ClusterMessage::Ended, report);
    }

    pub fn cluster_progress(&mut self, attempt: Attempt, phase: Phase) {
        append!(self.cluster, ClusterMessage::Progress, (attempt, phase));
    }

    pub fn report(&mut self, node: NodeId, session: u64, report: AgentReport) {
        self.runner.push(RunnerMessage::Report { node, session, report });
    }
}
