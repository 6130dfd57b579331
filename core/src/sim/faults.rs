//! What can go wrong, and what people do at the worst moment.

use std::sync::Arc;

use fastrand::Rng;

use crate::cluster_state::Node;
use crate::explanation::Subject;
use crate::id::{GroupId, JobId, NodeId, Ticket};
use crate::messages::{ClusterMessage, JobMessage, Outbox, SchedulerMessage};
use crate::node_agent::NodeAgent;
use crate::settings::Settings;
use crate::spec::{Availability, Condition, NodePatch, NodeSpec, PoolState};

use super::control::Control;
use super::links::{Batch, Link, Party};
use super::mixes::{self, Mixer};
use super::standings;
use super::world::World;
use super::{doors, pools, units, workload};

/// One disturbance.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    Submit,
    AddNode,
    RemoveNode(NodeId),
    UpdateNode(NodeId),
    Cut(NodeId),
    Join(NodeId),
    CrashAgent(NodeId),
    RepeatReport,
    Cancel(JobId),
    Abort(JobId),
    Reprioritise,
    /// Somebody does something to work that is there.
    Control(Control),
    ChangeSettings,
    /// Somebody wants the node for himself.
    Reserve(NodeId),
    GiveBack(NodeId),
    AskUsage(NodeId),
    SetPool(PoolState),
    /// Somebody asks why a group waits, or what keeps it from a node.
    Ask(GroupId, Option<NodeId>),
}

impl Fault {
    pub(super) fn choose(rng: &mut Rng, world: &World) -> Option<Fault> {
        let pick_node = |rng: &mut Rng| {
            let ids: Vec<NodeId> = world.cluster.nodes().map(|(id, _)| id).collect();
            rng.choice(ids)
        };
        Some(match rng.u8(0..35) {
            0..=7 => Fault::Submit,
            8 => Fault::AddNode,
            9 => Fault::RemoveNode(pick_node(rng)?),
            10..=12 => Fault::UpdateNode(pick_node(rng)?),
            13..=14 => Fault::Cut(pick_node(rng)?),
            15..=16 => Fault::Join(rng.choice(world.cut.iter().copied().collect::<Vec<_>>())?),
            17..=18 => Fault::CrashAgent(pick_node(rng)?),
            19..=20 => Fault::RepeatReport,
            21 => Fault::Cancel(whom_to_cancel(rng, world)),
            30..=31 => Fault::Control(Control::choose(rng, world)?),
            22 => Fault::Abort(JobId(rng.u64(1..=20))),
            23..=24 => {
                let group = GroupId::new(JobId(rng.u64(1..=20)), 0);
                Fault::Ask(group, if rng.bool() { pick_node(rng) } else { None })
            }
            25 => Fault::Reserve(pick_node(rng)?),
            26 => Fault::GiveBack(pick_node(rng)?),
            27 => Fault::AskUsage(pick_node(rng)?),
            28..=29 => Fault::Reprioritise,
            32 => Fault::SetPool(pools::state(rng)),
            _ => Fault::ChangeSettings,
        })
    }
}

/// Anybody, or somebody for whom others have just gone.
fn whom_to_cancel(rng: &mut Rng, world: &World) -> JobId {
    let kept_for: Vec<JobId> = world.scheduler.earmarks().iter().map(|(_, group, ..)| group.job()).collect();
    let anybody = JobId(rng.u64(1..=20));
    rng.choice(kept_for).filter(|_| rng.u8(0..4) > 0).unwrap_or(anybody)
}

/// The hand that disturbs: it numbers what it makes and remembers reports to repeat them.
#[derive(Debug)]
pub(super) struct Troublemaker {
    pub(super) rng: Rng,
    /// Where settings are presets and mixes of them.
    mixer: Option<Mixer>,
    pub(super) jobs: u64,
    nodes: u64,
    tickets: u64,
    settings: u64,
    /// What everybody was told last, if it was changed.
    told: Option<Arc<Settings>>,
    old_reports: Vec<(Link, Batch)>,
}

const OLD_REPORTS_MAX: usize = 64;

impl Troublemaker {
    pub(super) fn new(rng: Rng, mixer: Option<Mixer>) -> Troublemaker {
        let (jobs, nodes, tickets, settings, told) = (0, 0, 0, 0, None);
        Troublemaker { rng, mixer, jobs, nodes, tickets, settings, told, old_reports: Vec::new() }
    }

    pub(super) fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    pub(super) fn apply(&mut self, fault: &Fault, world: &mut World) {
        match fault {
            Fault::Submit => {
                let jobs = self.mixer.as_mut().map_or(1, Mixer::crowd);
                (0..jobs).for_each(|_| self.submit(world));
            }
            Fault::AddNode => self.add_node(world),
            Fault::RemoveNode(node) => {
                if let Some(name) = node_name(world, *node) {
                    let ticket = self.ticket();
                    tell_cluster(world, ClusterMessage::RemoveNode { ticket, name });
                }
            }
            Fault::UpdateNode(node) => self.update_node(world, *node),
            Fault::Cut(node) => {
                // Its silence may be noticed at once, or only when it does not answer.
                match self.rng.bool() {
                    true => world.cut_off(*node),
                    false => drop(world.cut.insert(*node)),
                }
            }
            Fault::Join(node) => world.join(*node),
            Fault::CrashAgent(node) => world.crash_agent(*node),
            Fault::Reserve(node) => self.reserve(world, *node),
            Fault::GiveBack(node) => self.give_back(world, *node),
            Fault::AskUsage(node) => self.ask_usage(world, *node),
            Fault::RepeatReport => self.repeat_report(world),
            Fault::Cancel(job) => {
                let ticket = self.ticket();
                world.tell(Party::Jobs, Batch::Jobs(vec![JobMessage::Cancel { ticket, job: *job }]));
            }
            Fault::Control(control) => {
                let ticket = self.ticket();
                control.apply(ticket, world);
            }
            Fault::Abort(job) => {
                let (ticket, job, reason) = (self.ticket(), *job, "because".into());
                world.tell(Party::Jobs, Batch::Jobs(vec![JobMessage::Abort { ticket, job, reason }]));
            }
            Fault::Reprioritise => {
                let (jobs, mut change) = standings::change(&mut self.rng);
                if let Some(mixer) = &mut self.mixer {
                    mixer.restand(world.scheduler.settings(), &mut change);
                }
                let reprioritise = JobMessage::Reprioritise { ticket: self.ticket(), jobs, change };
                world.tell(Party::Jobs, Batch::Jobs(vec![reprioritise]));
            }
            Fault::Ask(group, node) => self.ask(world, *group, *node),
            Fault::SetPool(state) => {
                let (ticket, pool) = (self.ticket(), self.rng.choice(pools::POOLS).expect("not empty"));
                world.set_pool(ticket, pool, *state);
            }
            Fault::ChangeSettings => {
                self.settings += 1;
                let settings = match self.rng.bool() {
                    true => {
                        let drawn = workload::settings(&mut self.rng, self.settings);
                        self.with_presets(drawn)
                    }
                    // Everybody stays where he is.
                    false => {
                        let settings = world.scheduler.settings().clone();
                        let shares = standings::weigh(&mut self.rng, &settings.shares);
                        Settings { version: self.settings, shares, ..settings }
                    }
                };
                self.tell_settings(world, settings);
            }
        }
    }

    /// Settings as they are drawn, or with the policy of presets where the world is one of these.
    pub(super) fn with_presets(&mut self, drawn: Settings) -> Settings {
        match &mut self.mixer {
            Some(mixer) => mixer.settings(drawn),
            None => drawn,
        }
    }

    fn tell_settings(&mut self, world: &mut World, settings: Settings) {
        let settings = Arc::new(settings);
        world.tell_settings(&settings);
        self.told = Some(settings);
    }

    pub(super) fn submit(&mut self, world: &mut World) {
        self.jobs += 1;
        let mut job = workload::job(&mut self.rng, self.jobs);
        if let Some(mixer) = &mut self.mixer {
            mixer.settle(world.scheduler.settings(), &mut job);
        }
        let submit = JobMessage::Submit { ticket: self.ticket(), job: Arc::new(job), adopted: Vec::new() };
        world.tell(Party::Jobs, Batch::Jobs(vec![submit]));
    }

    fn ask(&mut self, world: &mut World, group: GroupId, node: Option<NodeId>) {
        let (ticket, subject) = (self.ticket(), Subject::Group(group));
        let node = node.and_then(|node| node_name(world, node));
        let question = match node {
            Some(node) => SchedulerMessage::ExplainOn { ticket, subject, node },
            None => SchedulerMessage::Explain { ticket, subject },
        };
        world.tell(Party::Scheduler, Batch::Scheduler(vec![question]));
    }

    pub(super) fn add_node(&mut self, world: &mut World) {
        let node = self.new_node();
        self.add(world, node);
    }

    fn new_node(&mut self) -> NodeSpec {
        self.nodes += 1;
        let mut node = workload::node(&mut self.rng, self.nodes);
        if let Some(mixer) = &mut self.mixer {
            mixer.add_slots(&mut node.capacity);
        }
        node
    }

    fn add(&mut self, world: &mut World, node: NodeSpec) {
        let node = Box::new(node);
        let ticket = self.ticket();
        tell_cluster(world, ClusterMessage::AddNode { ticket, node });
    }

    fn update_node(&mut self, world: &mut World, node: NodeId) {
        let Some(name) = node_name(world, node) else { return };
        let rng = &mut self.rng;
        let mut patch = NodePatch::default();
        match rng.u8(0..13) {
            9 => patch.pool = rng.choice(pools::POOLS).map(str::to_owned),
            10 => patch.os = doors::system(rng),
            11 | 12 => patch.reserved = Some(workload::reserved(rng)),
            7 | 8 => patch = units::replace(rng, world.cluster.node(node)),
            6 => patch.access = Some(doors::access(rng)),
            5 => patch.path = workload::path(rng, &name),
            4 => patch.labels = Some(workload::labels(rng)),
            0 | 1 => {
                let mut capacity = workload::capacity(rng);
                if let Some(mixer) = &mut self.mixer {
                    mixer.add_slots(&mut capacity);
                }
                patch.units = units::name(rng, &capacity);
                patch.capacity = Some(capacity);
            }
            2 => {
                let choices = [Availability::Active, Availability::Pause, Availability::Drain];
                patch.availability = rng.choice(choices);
            }
            _ => patch.condition = rng.choice(Condition::NAMES).map(|(_, condition)| condition),
        }
        let ticket = self.ticket();
        tell_cluster(world, ClusterMessage::UpdateNode { ticket, name, patch: Box::new(patch) });
    }

    /// Remembers a report that is about to be delivered, so that it can come again later.
    pub(super) fn remember(&mut self, link: Link, batch: &Batch) {
        let repeatable = match (link.from, batch) {
            (Party::Agent(_), Batch::Runner(_)) => Some(batch.clone()),
            (Party::Runner, Batch::Cluster(messages)) => {
                let ends = messages.iter().filter(|message| matches!(message, ClusterMessage::Ended(_)));
                Some(Batch::Cluster(ends.cloned().collect()))
            }
            _ => None,
        };
        let Some(batch) = repeatable else { return };
        if self.old_reports.len() == OLD_REPORTS_MAX {
            self.old_reports.remove(self.rng.usize(0..OLD_REPORTS_MAX));
        }
        self.old_reports.push((link, batch));
    }

    fn repeat_report(&mut self, world: &mut World) {
        if let Some((link, batch)) = self.rng.choice(self.old_reports.iter().cloned()) {
            world.queues.push(link, batch);
        }
    }

    /// Mends everything: nodes answer, take work and have room again, and nobody listens for heartbeats.
    pub(super) fn heal(&mut self, world: &mut World) {
        let told = self.told.clone().unwrap_or_else(|| Arc::new(world.scheduler.settings().clone()));
        if !told.deadlines.heartbeat.is_zero() {
            self.settings += 1;
            let settings = Settings { version: self.settings, ..Settings::clone(&told) };
            self.tell_settings(world, settings.without_heartbeats());
        }
        for node in world.cut.clone() {
            world.join(node);
        }
        if world.cluster.nodes().next().is_none() {
            // Like those that are there: for everybody.
            let mut node = self.new_node();
            node.facts.access = None;
            self.add(world, node);
        }
        for pool in pools::POOLS {
            let ticket = self.ticket();
            world.set_pool(ticket, pool, PoolState::Enabled);
        }
        let nodes: Vec<Node> = world.cluster.nodes().map(|(_, node)| node.clone()).collect();
        for node in nodes {
            let ticket = self.ticket();
            let name = node.facts.name.clone();
            tell_cluster(world, ClusterMessage::Return { ticket, name });
            let mut capacity = crate::resources::Resources::of(workload::CPU, workload::CAPACITY_MAX);
            capacity.set(workload::MEMORY, workload::CAPACITY_MAX);
            capacity.set(workload::GPU, workload::GPUS_MAX);
            if self.mixer.is_some() {
                capacity.set(workload::SLOT, mixes::SLOTS_MAX);
            }
            let mut patch = NodePatch {
                capacity: Some(capacity),
                reserved: Some(crate::resources::Resources::new()),
                condition: Some(Condition::Automated),
                availability: Some(Availability::Active),
                ..NodePatch::default()
            };
            doors::end_loan(&node, &mut patch);
            let (ticket, name) = (self.ticket(), node.facts.name.clone());
            tell_cluster(world, ClusterMessage::UpdateNode { ticket, name, patch: Box::new(patch) });
        }
    }

    /// Somebody looks after the nodes that have broken down since, or came lent; false if there are none.
    pub(super) fn mend(&mut self, world: &mut World) -> bool {
        let mend = |node: &Node| {
            let mut patch = NodePatch::default();
            doors::end_loan(node, &mut patch);
            patch.condition = (node.condition == Condition::Broken).then_some(Condition::Automated);
            (patch != NodePatch::default()).then(|| (node.facts.name.clone(), patch))
        };
        let mended: Vec<(String, NodePatch)> =
            world.cluster.nodes().filter_map(|(_, node)| mend(node)).collect();
        let found = !mended.is_empty();
        for (name, patch) in mended {
            let ticket = self.ticket();
            tell_cluster(world, ClusterMessage::UpdateNode { ticket, name, patch: Box::new(patch) });
        }
        found
    }

    pub(super) fn cancel(&mut self, world: &mut World, job: JobId) {
        self.apply(&Fault::Cancel(job), world);
    }
}

/// The heartbeat monitor's part: whoever is heard and not ready is reported as back, and where heartbeats are
/// expected, everybody who is heard.
pub(super) fn report_heartbeats(world: &mut World) {
    let expected = !world.scheduler.settings().deadlines.heartbeat.is_zero();
    let heard: Vec<NodeId> = world
        .cluster
        .nodes()
        .filter(|(id, node)| {
            (expected || node.liveness != crate::spec::Liveness::Ready) && !world.cut.contains(id)
        })
        .map(|(id, _)| id)
        .collect();
    for node in heard {
        tell_cluster(world, ClusterMessage::HeartbeatBack(node));
    }
}

pub(super) fn tell_cluster(world: &mut World, message: ClusterMessage) {
    world.tell(Party::Cluster, Batch::Cluster(vec![message]));
}

pub(super) fn node_name(world: &World, node: NodeId) -> Option<String> {
    world.cluster.node(node).map(|node| node.facts.name.clone())
}

impl World {
    /// Cuts a node off, and the host notices that it is silent.
    pub fn cut_off(&mut self, node: NodeId) {
        self.cut.insert(node);
        tell_cluster(self, ClusterMessage::HeartbeatLost(node));
    }

    /// A node that was cut off is heard again.
    pub fn join(&mut self, node: NodeId) {
        self.cut.remove(&node);
        tell_cluster(self, ClusterMessage::HeartbeatBack(node));
    }

    /// The agent dies with its executions and begins anew. What it had said is still on its way.
    pub fn crash_agent(&mut self, node: NodeId) {
        let Some(agent) = self.agents.get_mut(&node) else { return };
        let mut out = Outbox::default();
        *agent = NodeAgent::restarted(agent, &mut out);
        self.executors.crash(node);
        let (agent, executor) = (Party::Agent(node), Party::Executor(node));
        self.queues.clear(Link { to: executor, from: agent });
        self.queues.clear(Link { to: agent, from: executor });
        self.pass_on(agent, out);
    }
}
