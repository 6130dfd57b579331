//! The machines alone, in virtual time: what they say to each other is carried at once, and executions end
//! when their time has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use plimsoll::core::id::{Attempt, NodeId, Ticket};
use plimsoll::core::machine::Machine;
use plimsoll::core::machines::Machines;
use plimsoll::core::messages::{
    AgentMessage, ClusterMessage, ExecutorMessage, HostMessage, JobMessage, NodeEvent, Outbox,
};
use plimsoll::core::node_agent::NodeAgent;
use plimsoll::core::outcome::{Exit, Phase};
use plimsoll::core::settings::Settings;
use plimsoll::core::spec::{JobSpec, NodeSpec};
use plimsoll::core::time::{Span, Time};

/// See the module documentation.
pub(super) struct VirtualCluster {
    pub(super) now: Time,
    pub(super) machines: Machines,
    agents: Vec<NodeAgent>,
    /// What the machines have not heard yet.
    unheard: Outbox,
    ends: BinaryHeap<Reverse<(Time, NodeId, Attempt)>>,
}

impl VirtualCluster {
    pub(super) fn new(settings: &Arc<Settings>) -> VirtualCluster {
        VirtualCluster {
            now: Time::ZERO,
            machines: Machines::new(settings),
            agents: Vec::new(),
            unheard: Outbox::default(),
            ends: BinaryHeap::new(),
        }
    }

    pub(super) fn add_node(&mut self, node: NodeSpec) {
        self.unheard.cluster.push(ClusterMessage::AddNode { ticket: Ticket(0), node: Box::new(node) });
    }

    pub(super) fn submit(&mut self, job: Arc<JobSpec>) {
        self.unheard.jobs.push(JobMessage::Submit { ticket: Ticket(0), job, adopted: Vec::new() });
    }

    /// Everything that is due by now happens, and everything that follows from it. `run` says how long an
    /// execution takes; `host` hears what is said to the service.
    pub(super) fn settle(
        &mut self,
        mut run: impl FnMut(&Machines, Attempt) -> Span,
        mut host: impl FnMut(&Machines, HostMessage),
    ) {
        while let Some(Reverse((due, node, attempt))) = self.ends.peek().copied() {
            if due > self.now {
                break;
            }
            self.ends.pop();
            self.unheard.agents.push((node, AgentMessage::Exited(attempt, Exit::Completed)));
        }
        loop {
            let mut out = Outbox::default();
            self.turn(&mut out);
            for (node, order) in std::mem::take(&mut out.executor) {
                // Whoever is told to end does so when its time has come.
                let ExecutorMessage::Run(attempt, _) = order else { continue };
                let ends = self.now + run(&self.machines, attempt);
                self.ends.push(Reverse((ends, node, attempt)));
                self.unheard.agents.push((node, AgentMessage::Reached(attempt, Phase::Running)));
            }
            for message in std::mem::take(&mut out.host) {
                if let HostMessage::Node(NodeEvent::Added { node, session, .. }) = &message {
                    assert_eq!(node.index(), self.agents.len(), "nodes are numbered as they come");
                    self.agents.push(NodeAgent::new(*node, *session));
                }
                host(&self.machines, message);
            }
            self.pass_on(out);
            if self.unheard.is_empty() && !self.is_due() {
                return;
            }
        }
    }

    /// Every party that has something to hear, or whose deadline has come, has a turn: the Scheduler last,
    /// so that what happens at one moment is planned together.
    fn turn(&mut self, out: &mut Outbox) {
        let heard = std::mem::take(&mut self.unheard);
        let (now, machines) = (self.now, &mut self.machines);
        tell(&mut machines.cluster, now, heard.cluster, out);
        tell(&mut machines.jobs, now, heard.jobs, out);
        tell(&mut machines.runner, now, heard.runner, out);
        let mut messages = heard.agents.into_iter().peekable();
        while let Some((node, first)) = messages.next() {
            let mut batch = vec![first];
            while let Some((_, message)) = messages.next_if(|(next, _)| *next == node) {
                batch.push(message);
            }
            self.agents[node.index()].receive(now, batch, out);
        }
        tell(&mut machines.rebalancer, now, heard.rebalancer, out);
        let others_speak = !out.scheduler.is_empty();
        if others_speak {
            let mut batch = heard.scheduler;
            batch.append(&mut out.scheduler);
            tell(&mut machines.scheduler, now, batch, out);
        } else {
            tell(&mut machines.scheduler, now, heard.scheduler, out);
        }
    }

    fn pass_on(&mut self, out: Outbox) {
        let unheard = &mut self.unheard;
        unheard.cluster.extend(out.cluster);
        unheard.jobs.extend(out.jobs);
        unheard.scheduler.extend(out.scheduler);
        unheard.runner.extend(out.runner);
        unheard.rebalancer.extend(out.rebalancer);
        unheard.agents.extend(out.agents);
    }

    fn is_due(&self) -> bool {
        let Machines { jobs, scheduler, cluster, runner, rebalancer } = &self.machines;
        let deadlines =
            [jobs.wake_at(), scheduler.wake_at(), cluster.wake_at(), runner.wake_at(), rebalancer.wake_at()];
        deadlines.into_iter().flatten().any(|at| at <= self.now)
    }
}

fn tell<M: Machine>(machine: &mut M, now: Time, batch: Vec<M::Message>, out: &mut Outbox) {
    if !batch.is_empty() || machine.wake_at().is_some_and(|at| at <= now) {
        machine.receive(now, batch, out);
    }
}
