//! The world: the machines, the links between them, and a clock that somebody else turns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster_state::ClusterState;
use crate::id::{Attempt, NodeId};
use crate::job_state::JobState;
use crate::machine::{Broken, Machine, promise};
use crate::machines::Machines;
use crate::messages::{ClusterMessage, HostMessage, MonitorMessage, NodeEvent, Outbox, RunnerMessage};
use crate::monitor::Monitor;
use crate::node_agent::NodeAgent;
use crate::outcome::Exit;
use crate::rebalancer::Rebalancer;
use crate::resources::Resources;
use crate::scheduler::Scheduler;
use crate::settings::Settings;
use crate::share_report::ShareBook;
use crate::spec::{Condition, Liveness};
use crate::task_runner::TaskRunner;
use crate::time::Time;

use super::ageing::Ages;
use super::executor::{Behaviour, Executors};
use super::history::History;
use super::links::{Batch, Link, Party, Queues};
use super::nearness::Nearness;
use super::stops::StopWatch;
use super::usage::UsageLog;

/// See the module documentation. Whoever drives it decides which party has the next turn and when
/// time passes; the world carries the messages and checks the promises.
#[derive(Clone, Debug)]
pub struct World {
    pub now: Time,
    pub jobs: JobState,
    pub scheduler: Scheduler,
    pub cluster: ClusterState,
    pub runner: TaskRunner,
    pub rebalancer: Rebalancer,
    /// Compares the others, where somebody wants that.
    pub(super) monitor: Option<Monitor>,
    pub(super) agents: BTreeMap<NodeId, NodeAgent>,
    pub(super) executors: Executors,
    pub(super) queues: Queues,
    /// Nodes whose links are cut: nothing passes until they are joined again.
    pub(super) cut: BTreeSet<NodeId>,
    nearness: Nearness,
    /// What the machines told the host and nobody has taken yet.
    host: Vec<HostMessage>,
    /// The outbox of the last turn, kept only for those who asked for it.
    last_outbox: Option<Outbox>,
    history: History,
    /// What the host was told of the shares.
    pub(super) shares: ShareBook,
    usage_log: UsageLog,
    pub(super) ages: Ages,
    pub(super) stop_watch: StopWatch,
    /// Machines that break a promise go on, so that somebody else can mend it.
    pub(super) lenient: bool,
}

/// One machine's turn: take the batches in, check the promises, pass on what it said.
macro_rules! machine_turn {
    ($world:ident, $machine:expr, $kind:path, $batches:ident, $out:ident) => {{
        let mut messages = Vec::new();
        for batch in $batches {
            match batch {
                $kind(more) => messages.extend(more),
                other => unreachable!("a link carries one kind of message, not {other:?}"),
            }
        }
        $machine.receive($world.now, messages, &mut $out);
        if !$world.lenient {
            $machine.check()?;
        }
    }};
}

impl World {
    pub fn new(settings: Arc<Settings>) -> World {
        let Machines { jobs, scheduler, cluster, runner, rebalancer } = Machines::new(&settings);
        World {
            now: Time::ZERO,
            jobs,
            scheduler,
            cluster,
            runner,
            rebalancer,
            monitor: None,
            agents: BTreeMap::new(),
            executors: Executors::default(),
            queues: Queues::default(),
            cut: BTreeSet::new(),
            nearness: Nearness::default(),
            host: Vec::new(),
            last_outbox: None,
            history: History::new(settings.faulty),
            shares: ShareBook::default(),
            usage_log: UsageLog::default(),
            ages: Ages::default(),
            stop_watch: StopWatch::default(),
            lenient: false,
        }
    }

    /// Sends something from the host; it arrives when the link is next served.
    pub fn tell(&mut self, to: Party, batch: Batch) {
        self.queues.push(Link { to, from: Party::Host }, batch);
    }

    /// What the machines told the host since the last call.
    pub fn take_host_messages(&mut self) -> Vec<HostMessage> {
        std::mem::take(&mut self.host)
    }

    /// Keeps the outbox of every turn from now on, for [`World::last_outbox`].
    pub fn keep_outboxes(&mut self) {
        self.last_outbox = Some(Outbox::default());
    }

    pub fn last_outbox(&self) -> Option<&Outbox> {
        self.last_outbox.as_ref()
    }

    /// Links on which something could be delivered now.
    pub fn open_links(&self) -> Vec<Link> {
        self.queues.waiting().filter(|link| self.is_open(*link)).collect()
    }

    fn is_open(&self, link: Link) -> bool {
        let passes = |party| match party {
            Party::Agent(node) => !self.cut.contains(&node) && self.agents.contains_key(&node),
            _ => true,
        };
        // An executor stands beside its agent: cutting the node off does not part them.
        let local = matches!((link.from, link.to), (Party::Executor(_), _) | (_, Party::Executor(_)));
        let agent_is_there = match link.to {
            Party::Agent(node) => self.agents.contains_key(&node),
            _ => true,
        };
        if local { agent_is_there } else { passes(link.from) && passes(link.to) }
    }

    /// All open links to one party.
    pub fn open_links_to(&self, to: Party) -> Vec<Link> {
        self.queues.waiting_for(to).into_iter().filter(|link| self.is_open(*link)).collect()
    }

    /// Parties whose own deadline has come.
    pub fn due(&self) -> Vec<Party> {
        let machines = [
            (Party::Cluster, self.cluster.wake_at()),
            (Party::Jobs, self.jobs.wake_at()),
            (Party::Runner, self.runner.wake_at()),
            (Party::Rebalancer, self.rebalancer.wake_at()),
            (Party::Scheduler, self.scheduler.wake_at()),
            (Party::Monitor, self.monitor_wakes_at()),
        ];
        let due = machines.into_iter().filter(|(_, at)| at.is_some_and(|at| at <= self.now));
        due.map(|(party, _)| party).collect()
    }

    /// When the Monitor looks at the next nodes: again and again, whether or not anything else happens.
    pub(super) fn monitor_wakes_at(&self) -> Option<Time> {
        self.monitor.as_ref().and_then(Machine::wake_at)
    }

    /// When something happens by itself next: a deadline or the end of an execution. That the Monitor looks
    /// around does not count.
    pub fn next_event(&self) -> Option<Time> {
        let machines = [
            self.cluster.wake_at(),
            self.jobs.wake_at(),
            self.runner.wake_at(),
            self.rebalancer.wake_at(),
            self.scheduler.wake_at(),
            self.executors.next_due(),
        ];
        machines.into_iter().flatten().min()
    }

    /// Nothing is on its way and nothing is due: what holds now holds until time passes.
    pub fn is_quiescent(&self) -> bool {
        let executor_due = self.executors.next_due().is_some_and(|due| due <= self.now);
        !executor_due && self.due().is_empty() && self.open_links().is_empty()
    }

    /// Lets executions that are due come to their next step.
    pub fn run_executors(&mut self) {
        while let Some((node, message)) = self.executors.pop_due(self.now) {
            let link = Link { to: Party::Agent(node), from: Party::Executor(node) };
            self.queues.push(link, Batch::Agent(vec![message]));
        }
    }

    /// Delivers everything that is on its way, in the order of the parties, and lets everything
    /// that is due happen, until nothing more happens at this moment. What reaches a party together
    /// is one turn.
    pub fn settle(&mut self, behaviour: &mut dyn Behaviour) -> Result<(), Broken> {
        loop {
            self.run_executors();
            // Links are in the order of those they lead to.
            let waiting = self.queues.waiting().find(|link| self.is_open(*link)).map(|link| link.to);
            let Some(to) = waiting.into_iter().chain(self.due()).min() else { return Ok(()) };
            let links = self.open_links_to(to);
            let batches = links.iter().flat_map(|link| std::iter::repeat_n(*link, self.queues.length(*link)));
            let batches: Vec<Link> = batches.collect();
            self.deliver(to, &batches, behaviour)?;
        }
    }

    /// Ends an execution as if it had come to its end by itself.
    pub fn finish_execution(&mut self, node: NodeId, attempt: Attempt, exit: Exit) {
        self.executors.finish(self.now, node, attempt, exit);
    }

    /// Gives a party a turn with the oldest batch of each of these links, in this order.
    pub fn deliver(
        &mut self,
        to: Party,
        links: &[Link],
        behaviour: &mut dyn Behaviour,
    ) -> Result<(), Broken> {
        let batches: Vec<Batch> = links.iter().filter_map(|link| self.queues.pop(*link)).collect();
        let mut out = Outbox::default();
        match to {
            Party::Jobs => machine_turn!(self, self.jobs, Batch::Jobs, batches, out),
            Party::Scheduler => {
                self.listen(&batches);
                let before = (self.scheduler.earmarks(), self.scheduler.resting());
                let filled: BTreeSet<Attempt> =
                    self.scheduler.fillers().map(|(attempt, _)| attempt).collect();
                machine_turn!(self, self.scheduler, Batch::Scheduler, batches, out);
                let before = (before.0.as_slice(), &before.1);
                self.stop_watch.watch(self.now, before, &self.scheduler, &out)?;
                self.check_evidence()?;
                self.check_fillers(&filled)?;
                self.history.check(self.now, &self.scheduler)?;
                self.check_found_unable()?;
                self.ages.watch(self.now, &self.scheduler);
            }
            Party::Cluster => {
                let (broken, adopted) = (self.broken_nodes(), adopted(&batches));
                machine_turn!(self, self.cluster, Batch::Cluster, batches, out);
                self.check_broken_nodes(&broken, &adopted, &out)?;
                self.usage_log.watch(self.now, &self.cluster)?;
            }
            Party::Runner => machine_turn!(self, self.runner, Batch::Runner, batches, out),
            Party::Rebalancer => machine_turn!(self, self.rebalancer, Batch::Rebalancer, batches, out),
            Party::Monitor => {
                let monitor = self.monitor.as_mut().expect("only who is there is served");
                machine_turn!(self, monitor, Batch::Monitor, batches, out);
            }
            Party::Agent(node) => {
                let agent = self.agents.get_mut(&node).expect("only agents that are there are served");
                machine_turn!(self, agent, Batch::Agent, batches, out);
            }
            Party::Executor(node) => self.execute(node, batches, behaviour)?,
            Party::Host => unreachable!("nobody sends to the host over a link"),
        }
        self.nearness.hear(&out, &self.jobs)?;
        self.pass_on(to, out);
        match to {
            // Executions begin on one node at a time; what a node can hold, ClusterState says.
            Party::Executor(node) => self.check_executions_on(node),
            Party::Cluster => self.executors.nodes().try_for_each(|node| self.check_executions_on(node)),
            _ => Ok(()),
        }
    }

    /// Notes what the Scheduler is about to hear of failures.
    fn listen(&mut self, batches: &[Batch]) {
        for batch in batches {
            let Batch::Scheduler(messages) = batch else { continue };
            messages.iter().for_each(|message| self.history.hear(self.now, message));
            messages.iter().for_each(|message| self.stop_watch.hear(message));
        }
    }

    /// The broken nodes, each with its eligibility version.
    fn broken_nodes(&self) -> Vec<(NodeId, u64)> {
        let nodes = self.cluster.nodes().filter(|(_, node)| node.condition == Condition::Broken);
        nodes.map(|(id, node)| (id, node.version)).collect()
    }

    /// A node that was broken before the turn and after it got nothing, unless it ran there already.
    fn check_broken_nodes(
        &self,
        before: &[(NodeId, u64)],
        adopted: &BTreeSet<Attempt>,
        out: &Outbox,
    ) -> Result<(), Broken> {
        let after = self.broken_nodes();
        for message in &out.runner {
            let RunnerMessage::Launch(launches) = message else { continue };
            for launch in launches.iter().filter(|launch| !adopted.contains(&launch.attempt)) {
                let stayed =
                    |(id, version): &&(NodeId, u64)| *id == launch.node && after.contains(&(*id, *version));
                let broken = before.iter().find(stayed);
                promise!(3, broken.is_none(), "{} is put on a broken node", launch.attempt);
            }
        }
        Ok(())
    }

    fn execute(
        &mut self,
        node: NodeId,
        batches: Vec<Batch>,
        behaviour: &mut dyn Behaviour,
    ) -> Result<(), Broken> {
        for batch in batches {
            let Batch::Executor(messages) = batch else { unreachable!("executors hear their own kind") };
            for message in messages {
                self.executors.handle(self.now, node, message, behaviour)?;
            }
        }
        Ok(())
    }

    pub(super) fn pass_on(&mut self, from: Party, out: Outbox) {
        if let Some(last) = &mut self.last_outbox {
            *last = out.clone();
        }
        for message in self.queues.send(from, out) {
            match &message {
                HostMessage::Node(NodeEvent::Added { node, session, .. }) => self.add_agent(*node, *session),
                HostMessage::Node(NodeEvent::Removed { node, .. }) => self.remove_agent(*node),
                HostMessage::Shares(news) => self.shares.apply(news),
                HostMessage::Audited(audited) if self.monitor.is_some() => {
                    let batch = Batch::Monitor(vec![MonitorMessage::Audited(audited.clone())]);
                    self.queues.push(Link { to: Party::Monitor, from }, batch);
                }
                _ => {}
            }
            self.host.push(message);
        }
    }

    fn add_agent(&mut self, node: NodeId, session: u64) {
        self.agents.insert(node, NodeAgent::new(node, session));
    }

    /// A removed node takes its agent, its executions and everything on their links with it.
    fn remove_agent(&mut self, node: NodeId) {
        self.agents.remove(&node);
        self.executors.crash(node);
        self.cut.remove(&node);
        let (agent, executor) = (Party::Agent(node), Party::Executor(node));
        for (to, from) in
            [(agent, Party::Runner), (Party::Runner, agent), (agent, executor), (executor, agent)]
        {
            self.queues.clear(Link { to, from });
        }
    }

    /// What really runs on a node fits there, whatever the ledger says, unless the node shrank.
    fn check_executions_on(&self, id: NodeId) -> Result<(), Broken> {
        // A node that was given up may still run what it lost; it gets nothing new until swept.
        let Some(node) = self.cluster.node(id).filter(|node| node.liveness == Liveness::Ready) else {
            return Ok(());
        };
        let mut held = Resources::new();
        let mut units: BTreeMap<(&str, &str), Attempt> = BTreeMap::new();
        for (attempt, given) in self.executors.running_on(id) {
            if let Some(request) = self.request_of(attempt) {
                held += &request;
            }
            for (kind, names) in given.into_iter().flat_map(|given| given.iter()) {
                for name in names {
                    let before = units.insert((kind, name), attempt);
                    promise!(1, before.is_none(), "{attempt} uses {kind} {name} on {id}, and another does");
                }
            }
        }
        let mut free = node.offered();
        free -= &held;
        promise!(1, !free.has_negative() || node.deficit(), "more runs on {id} than it can hold");
        Ok(())
    }

    pub(super) fn request_of(&self, attempt: Attempt) -> Option<Resources> {
        let job = self.jobs.job(attempt.task.job()).ok()?;
        let role = &job.spec.groups[attempt.task.group.index()].roles[usize::from(attempt.task.role)];
        Some(role.shape.request.clone())
    }
}

/// Attempts of these commits that run already.
fn adopted(batches: &[Batch]) -> BTreeSet<Attempt> {
    let mut adopted = BTreeSet::new();
    for batch in batches {
        let Batch::Cluster(messages) = batch else { continue };
        for message in messages {
            let ClusterMessage::Commit(plan) = message else { continue };
            let mut placements = plan.placements.iter();
            for part in &plan.parts {
                let own = placements.by_ref().take(part.count as usize);
                adopted.extend(own.filter(|_| part.adopted).map(|placement| placement.attempt));
            }
        }
    }
    adopted
}
