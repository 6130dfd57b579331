//! ClusterState: the nodes, the ledger of who holds what, and the only writer of allocations.
//!
//! It decides nothing about who should run where. It checks each plan against the nodes as they
//! are, books what still holds, refuses what does not, and releases what has ended before anybody
//! else hears of it.

mod audit;
mod broken;
mod check;
mod commit;
mod ledger;
mod liveness;
mod node;
mod pending;
mod pools;
mod reservation;
mod units;
mod usage_history;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::collections::{Blocks, Deadlines, Links};
use crate::id::{GroupId, NodeId, Ticket};
use crate::machine::{Broken, Machine};
use crate::messages::{Answer, ClusterMessage, NodeEvent, NodeNews, Outbox, Refusal, RunnerMessage};
use crate::outcome::Outcome;
use crate::resources::KindId;
use crate::settings::Settings;
use crate::spec::{
    CommonFacts, Filters, KnownFacts, Liveness, NodeFacts, NodePatch, NodeSpec, PoolState,
    both_reserved_and_named,
};
use crate::time::Time;

pub use ledger::LiveAttempt;
pub use node::{Node, Usage};
pub use reservation::{Reservation, ReservationStage};
pub use units::NodeUnits;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClusterState {
    settings: Arc<Settings>,
    nodes: Blocks<Option<Node>>,
    names: BTreeMap<String, NodeId>,
    /// What nodes have in common is kept once.
    #[serde(skip)]
    known: KnownFacts,
    /// Ids of removed nodes, used again last in first out.
    vacant: Vec<NodeId>,
    /// Pools that do not take work like others.
    pools: BTreeMap<String, PoolState>,
    /// The ledger: live attempts by slot, chained by node.
    live: Blocks<Option<LiveAttempt>>,
    on_node: Links,
    /// Cancelled groups with live attempts, and how many.
    withdrawing: BTreeMap<GroupId, u32>,
    pending: pending::PendingNodes,
    usage_history: usage_history::UsageHistory,
    /// The last eligibility version given out; versions are unique across nodes.
    last_version: u64,
    last_sweep: u64,
    /// Nodes ever added; an agent's sessions begin with its node's number, shifted.
    last_incarnation: u64,
    last_reservation: u64,
    /// When silent nodes become suspect, and suspect ones are given up.
    #[serde(skip)]
    silences: Deadlines,
    /// When nodes that broke down are tried again.
    #[serde(skip)]
    probes: Deadlines,
    /// When preparations for people must be over.
    #[serde(skip)]
    preparations: Deadlines,
}

impl ClusterState {
    pub fn new(settings: Arc<Settings>) -> ClusterState {
        ClusterState {
            settings,
            nodes: Blocks::default(),
            names: BTreeMap::new(),
            known: KnownFacts::default(),
            vacant: Vec::new(),
            pools: BTreeMap::new(),
            live: Blocks::default(),
            on_node: Links::default(),
            withdrawing: BTreeMap::new(),
            pending: pending::PendingNodes::default(),
            usage_history: usage_history::UsageHistory::default(),
            last_version: 0,
            last_sweep: 0,
            last_incarnation: 0,
            last_reservation: 0,
            silences: Deadlines::default(),
            probes: Deadlines::default(),
            preparations: Deadlines::default(),
        }
    }

    pub fn node_id(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())?.as_ref()
    }

    /// All nodes, by id.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let entries = self.nodes.iter().enumerate();
        entries.filter_map(|(index, node)| node.as_ref().map(|node| (NodeId(index as u32), node)))
    }

    /// Every node has a smaller number than this.
    pub fn node_numbers(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// All live attempts, by slot.
    pub fn live(&self) -> impl Iterator<Item = &LiveAttempt> {
        self.live.iter().flatten()
    }

    /// The name of the resource kind with this number.
    pub fn kind_name(&self, kind: usize) -> Option<&str> {
        self.settings.kinds.names().nth(kind)
    }

    /// What a node is doing, derived from the ledger.
    pub fn usage(&self, id: NodeId) -> Option<Usage> {
        Some(self.node(id)?.usage(self.pending.is_pending(id)))
    }

    fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.index())?.as_mut()
    }

    fn add_node(&mut self, now: Time, ticket: Ticket, spec: NodeSpec, out: &mut Outbox) {
        if self.names.contains_key(&spec.facts.name) {
            return out.refuse(ticket, Refusal::NodeExists(spec.facts.name));
        }
        let limit = self.settings.limits.nodes;
        if self.names.len() as u64 >= limit {
            return out.refuse(ticket, Refusal::TooManyNodes { limit });
        }
        let id = self.vacant.pop().unwrap_or_else(|| {
            let index = self.nodes.len();
            self.nodes.reach(index, || None);
            NodeId(index as u32)
        });
        self.names.insert(spec.facts.name.clone(), id);
        self.last_incarnation += 1;
        let session = self.last_incarnation << u32::BITS;
        out.runner.push(RunnerMessage::NodeAdded { node: id, session });
        out.node_event(NodeEvent::Added { node: id, name: spec.facts.name.clone(), session });
        let mut node = Node::new(spec);
        NodeFacts::be_judged_by(&mut node.facts, &self.settings.filters);
        self.known.enter(&mut node.facts);
        node.session = session;
        node.pool_state = self.pool_state(&node.facts.pool);
        self.nodes[id.index()] = Some(node);
        self.expect_news(now, id);
        self.begin_usage(now, id);
        self.announce(id, out);
        out.reply(ticket, Answer::Node(id));
    }

    fn update_node(&mut self, now: Time, ticket: Ticket, name: String, patch: NodePatch, out: &mut Outbox) {
        let Some(id) = self.node_id(&name) else {
            return out.refuse(ticket, Refusal::UnknownNode(name));
        };
        if let Some(kind) = self.names_what_others_use(id, &patch) {
            let kind = self.settings.kinds.name(kind).to_owned();
            return out.refuse(ticket, Refusal::ReservedUnits { node: name, kind });
        }
        let pool = patch.pool.as_ref().map(|pool| (pool.clone(), self.pool_state(pool)));
        let node = self.node_mut(id).expect("a named node is there");
        if let Some((pool, state)) = pool.filter(|(pool, _)| *pool != node.facts.pool) {
            // What stays in one pool would find itself in two.
            if node.tasks() > 0 {
                return out.refuse(ticket, Refusal::PoolInUse { node: name, pool, tasks: node.tasks() });
            }
            node.pool_state = state;
        }
        let (was_in_deficit, was_broken_down) = (node.deficit(), node.breakdown.clone());
        let common = Arc::clone(&node.facts.common);
        node.apply(now, patch);
        if node.deficit() && !was_in_deficit {
            out.node_event(NodeEvent::Deficit { node: id });
        }
        let breakdown = node.breakdown.clone();
        self.share_facts(id, &common);
        self.revoke_units(id, out);
        if was_broken_down != breakdown {
            out.node_event(match breakdown {
                Some(breakdown) => NodeEvent::Broken { node: id, breakdown },
                None => NodeEvent::BreakdownOver { node: id },
            });
            self.probes.clear(id.index());
        }
        self.announce(id, out);
        out.reply(ticket, Answer::Done);
    }

    /// The facts of a node may be others than before: what is the same on others is kept once.
    fn share_facts(&mut self, id: NodeId, before: &Arc<CommonFacts>) {
        let node = self.nodes[id.index()].as_mut().expect("the caller has seen the node");
        if !Arc::ptr_eq(&node.facts.common, before) {
            self.known.leave(before);
            self.known.enter(&mut node.facts);
        }
    }

    /// A kind of which others would use some although its units have names.
    fn names_what_others_use(&self, id: NodeId, patch: &NodePatch) -> Option<KindId> {
        let node = self.node(id)?;
        let named = |kind| match patch.capacity {
            Some(_) => patch.units.has(kind),
            None => node.units.as_ref().is_some_and(|units| units.offered.has(kind)),
        };
        both_reserved_and_named(patch.reserved.as_ref().unwrap_or(&node.reserved), named)
    }

    fn remove_node(&mut self, now: Time, ticket: Ticket, name: String, out: &mut Outbox) {
        let Some(id) = self.names.remove(&name) else {
            return out.refuse(ticket, Refusal::UnknownNode(name));
        };
        self.release_all_on(id, Outcome::Lost, out);
        let node = self.nodes[id.index()].take().expect("a named node is there");
        self.known.leave(&node.facts.common);
        self.forget_usage(now, id);
        self.vacant.push(id);
        self.pending.forget(id);
        self.silences.clear(id.index());
        self.probes.clear(id.index());
        self.preparations.clear(id.index());
        out.runner.push(RunnerMessage::NodeGone(id));
        out.node_news(NodeNews { node: id, view: None });
        out.node_event(NodeEvent::Removed { node: id, name });
        out.reply(ticket, Answer::Done);
    }

    /// Gives the node a new eligibility version, tells the Scheduler, and has the node looked at.
    fn announce(&mut self, id: NodeId, out: &mut Outbox) {
        self.last_version += 1;
        let version = self.last_version;
        let node = self.node_mut(id).expect("only nodes that are there are announced");
        node.version = version;
        let (view, state) = (node.view(), node.state());
        if std::mem::replace(&mut node.told, state) != state {
            out.node_event(NodeEvent::State { node: id, state });
        }
        out.node_news(NodeNews { node: id, view: Some(view) });
        self.pending.touch(id);
        self.note_usage(id);
    }

    fn unresponsive(&mut self, now: Time, node: NodeId, out: &mut Outbox) {
        // A node that is silent already has been reported as such by somebody who knows better.
        if self.node(node).is_some_and(|node| node.liveness == Liveness::Ready) {
            self.heartbeat_lost(now, node, out);
            out.node_event(NodeEvent::Unresponsive { node });
        }
    }

    fn look_again(&mut self, out: &mut Outbox) {
        let nodes: Vec<NodeId> = self.nodes().map(|(id, _)| id).collect();
        for id in nodes {
            self.pending.touch(id);
            // Whoever prepared it is gone with the runtime of before.
            self.ask_to_prepare(id, out);
        }
    }

    fn handle(&mut self, now: Time, message: ClusterMessage, out: &mut Outbox) {
        match message {
            ClusterMessage::AddNode { ticket, node } => self.add_node(now, ticket, *node, out),
            ClusterMessage::UpdateNode { ticket, name, patch } => {
                self.update_node(now, ticket, name, *patch, out);
            }
            ClusterMessage::RemoveNode { ticket, name } => self.remove_node(now, ticket, name, out),
            ClusterMessage::SetPool { ticket, pool, state } => self.set_pool(ticket, pool, state, out),
            ClusterMessage::Heartbeat { ticket, name, heard } => {
                self.heartbeat(now, ticket, name, heard, out)
            }
            ClusterMessage::Reserve { ticket, name, wish } => self.reserve(now, ticket, name, *wish, out),
            ClusterMessage::Return { ticket, name } => self.give_back(now, ticket, name, out),
            ClusterMessage::Prepared { node, reservation, how } => {
                self.prepared(now, node, reservation, how, out);
            }
            ClusterMessage::HeartbeatLost(node) => self.heartbeat_lost(now, node, out),
            ClusterMessage::Unresponsive(node) => self.unresponsive(now, node, out),
            ClusterMessage::NodeDown(node) => self.node_down(now, node, out),
            ClusterMessage::HeartbeatBack(node) => self.heartbeat_back(now, node, out),
            ClusterMessage::Swept { node, sweep } => self.swept(now, node, sweep, out),
            ClusterMessage::AskUsage { ticket, of, since } => self.tell_usage(now, ticket, of, since, out),
            ClusterMessage::Settings(settings) => {
                let (retention, heartbeat) = (self.settings.retention, self.settings.deadlines.heartbeat);
                Settings::replace(&mut self.settings, settings);
                self.change_retention(now, retention);
                self.change_heartbeat(now, heartbeat);
            }
            ClusterMessage::LookAgain => self.look_again(out),
            ClusterMessage::Audit { first, most } => self.audit(first, most, out),
            ClusterMessage::Undispatched(attempts) => self.undispatched(attempts, out),
            ClusterMessage::Commit(plan) => self.commit(plan, out),
            ClusterMessage::Withdraw(withdrawals) => {
                for withdrawal in withdrawals {
                    self.withdraw(withdrawal, out);
                }
            }
            ClusterMessage::CancelOnNode { ticket, name } => self.cancel_on_node(ticket, name, out),
            ClusterMessage::Extend(attempts) => {
                let live = attempts.into_iter().filter(|(attempt, _)| self.live_attempt(*attempt).is_some());
                out.runner.push(RunnerMessage::Extend(live.collect()));
            }
            ClusterMessage::Stop(orders) => {
                for order in orders {
                    self.stop(order, out);
                }
            }
            ClusterMessage::Fence(groups) => groups.into_iter().for_each(|group| out.fenced(group)),
            ClusterMessage::Seen { sequence } => {
                self.pending.seen(sequence);
                self.note_seen(sequence);
            }
            ClusterMessage::Ended(reports) => {
                for report in reports {
                    self.ended(now, report, out);
                }
            }
            ClusterMessage::Progress(steps) => {
                for (attempt, phase) in steps {
                    self.progress(attempt, phase, out);
                }
            }
        }
    }
}

impl Machine for ClusterState {
    type Message = ClusterMessage;

    fn receive(&mut self, now: Time, batch: Vec<ClusterMessage>, out: &mut Outbox) {
        while let Some(index) = self.silences.pop_due(now) {
            self.silent(now, NodeId(index as u32), out);
        }
        while let Some(index) = self.probes.pop_due(now) {
            self.probe(NodeId(index as u32), out);
        }
        while let Some(index) = self.preparations.pop_due(now) {
            self.preparation_late(now, NodeId(index as u32), out);
        }
        for message in batch {
            self.handle(now, message, out);
        }
        self.report_pending(out);
        self.record_usage(now);
    }

    fn wake_at(&self) -> Option<Time> {
        let deadlines = [&self.silences, &self.probes, &self.preparations];
        deadlines.into_iter().filter_map(Deadlines::earliest).min()
    }

    fn equip(&mut self, filters: &Filters) {
        Arc::make_mut(&mut self.settings).filters = filters.clone();
        for node in self.nodes.iter_mut().flatten() {
            NodeFacts::be_judged_by(&mut node.facts, filters);
        }
    }

    fn rebuild(&mut self) {
        (self.silences, self.probes) = (Deadlines::default(), Deadlines::default());
        self.preparations = Deadlines::default();
        self.known = KnownFacts::default();
        for node in self.nodes.iter_mut().flatten() {
            self.known.enter(&mut node.facts);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            self.silences.set(index, node.as_ref().map_or(Time::NEVER, |node| node.silent_until));
            self.probes.set(index, node.as_ref().map_or(Time::NEVER, Node::probe_at));
            self.preparations.set(index, node.as_ref().map_or(Time::NEVER, Node::preparation_due));
        }
    }

    fn check(&self) -> Result<(), Broken> {
        self.check_ledger()?;
        self.check_usage()
    }
}

#[cfg(test)]
mod tests;
