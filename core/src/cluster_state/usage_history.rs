//! The usage history: an entry per node whenever its usage or its condition has changed between two
//! turns, the time spent in each state, and how many nodes are in which. Bounded, and off if nothing is
//! to be kept.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::collections::Blocks;
use crate::id::{NodeId, Ticket};
use crate::machine::{Broken, promise};
use crate::messages::{Answer, Outbox, Refusal, StateTime, UsageAnswer, UsageEntry, UsageOf};
use crate::mutation::{self, Mutation};
use crate::settings::Retention;
use crate::time::{Span, Time};

use super::{ClusterState, Usage};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct UsageHistory {
    /// By node; empty if nothing is kept.
    nodes: Blocks<Option<NodeUsage>>,
    /// Nodes that may have changed in the current turn.
    touched: Vec<NodeId>,
    /// Nodes by the sequence under which they were reported as pending, until that was seen.
    pending: VecDeque<(u64, Vec<NodeId>)>,
    /// So many entries are kept in all, the current ones included.
    entries: u64,
    /// How many nodes are in each state.
    counts: [u64; Usage::ALL.len()],
    /// Time that all nodes together spent in each state up to `counted`, also those that are gone.
    spent: [Span; Usage::ALL.len()],
    counted: Time,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct NodeUsage {
    current: UsageEntry,
    /// Since when it is known without a gap what the node did.
    known_since: Time,
    /// Nothing for nodes that were never in another state.
    before: Option<Box<Before>>,
    touched: bool,
    /// The turn in which its history began is not over.
    fresh: bool,
}

/// What a node did before.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Before {
    /// Oldest first.
    entries: VecDeque<UsageEntry>,
    /// Time spent in each state that it was in, up to the current one.
    spent: Vec<StateTime>,
}

impl UsageHistory {
    /// As many nodes as now were in each state until now.
    fn count_time(&mut self, now: Time) {
        self.spent = self.spent_until(now);
        self.counted = now;
    }

    fn spent_until(&self, now: Time) -> [Span; Usage::ALL.len()] {
        let passed = now.since(self.counted).0;
        std::array::from_fn(|usage| Span(self.spent[usage].0.saturating_add(self.counts[usage] * passed)))
    }
}

impl NodeUsage {
    fn new(entry: UsageEntry) -> NodeUsage {
        NodeUsage { current: entry, known_since: entry.from, before: None, touched: false, fresh: true }
    }

    /// Says how many entries more there are.
    fn change(&mut self, entry: UsageEntry) -> u64 {
        let last = std::mem::replace(&mut self.current, entry);
        if self.fresh {
            return 0;
        }
        let Before { entries, spent } = self.before.get_or_insert_default().as_mut();
        add(spent, last, entry.from.since(last.from));
        entries.push_back(last);
        1
    }

    /// Keeps so many entries at most, the current one included; says how many are gone.
    fn keep(&mut self, kept: usize) -> u64 {
        let Some(before) = &mut self.before else { return 0 };
        let entries = &mut before.entries;
        let gone = (entries.len() + 1).saturating_sub(kept.max(1));
        entries.drain(..gone);
        if entries.capacity() > 2 * kept.max(MANY) {
            entries.shrink_to_fit();
        }
        gone as u64
    }

    fn entries(&self) -> u64 {
        self.before.as_ref().map_or(0, |before| before.entries.len() as u64) + 1
    }

    /// The entries before the current one, oldest first.
    fn past(&self) -> impl DoubleEndedIterator<Item = &UsageEntry> {
        self.before.iter().flat_map(|before| &before.entries)
    }

    /// Time in each state from `since` until `now`, and from when that is complete.
    fn times(&self, since: Option<Time>, now: Time) -> (Vec<StateTime>, Time) {
        let Some(since) = since.filter(|since| *since > self.known_since) else {
            let mut times = self.before.as_ref().map_or_else(Vec::new, |before| before.spent.clone());
            add(&mut times, self.current, now.since(self.current.from));
            return (times, self.known_since);
        };
        let (mut times, mut until) = (Vec::new(), now);
        for entry in std::iter::once(&self.current).chain(self.past().rev()) {
            add(&mut times, *entry, until.since(entry.from.max(since).min(until)));
            until = entry.from.min(until);
            if until <= since {
                return (times, since);
            }
        }
        (times, until)
    }
}

fn add(times: &mut Vec<StateTime>, state: UsageEntry, span: Span) {
    let same = |time: &&mut StateTime| (time.condition, time.usage) == (state.condition, state.usage);
    match times.iter_mut().find(same) {
        Some(time) => time.span = Span(time.span.0 + span.0),
        None => times.push(StateTime { condition: state.condition, usage: state.usage, span }),
    }
}

/// Room for so many entries is not given back.
const MANY: usize = 16;

/// How many entries of each node are kept, the current one included, so that all bounds hold.
fn kept_per_node(retention: &Retention, nodes: usize) -> usize {
    let each = retention.usage_entries / (nodes.max(1) as u64);
    each.clamp(1, retention.usage_entries_per_node.max(1)) as usize
}

impl ClusterState {
    pub fn keeps_usage(&self) -> bool {
        self.settings.retention.usage_entries > 0
    }

    /// How many nodes are in each state, in the order of [`Usage::ALL`]. Nothing is counted unless the
    /// history is kept.
    pub fn nodes_by_usage(&self) -> [u64; Usage::ALL.len()] {
        self.usage_history.counts
    }

    /// Time that all nodes together spent in each state, in the order of [`Usage::ALL`], also those that
    /// are gone.
    pub fn total_time_by_usage(&self, now: Time) -> [Span; Usage::ALL.len()] {
        self.usage_history.spent_until(now)
    }

    /// The entries that are kept of a node, oldest first.
    pub fn usage_entries(&self, id: NodeId) -> Vec<UsageEntry> {
        let node = self.usage_history.nodes.get(id.index()).and_then(Option::as_ref);
        node.into_iter().flat_map(|node| node.past().copied().chain([node.current])).collect()
    }

    /// The node may be in another state when the turn is over.
    #[inline]
    pub(super) fn note_usage(&mut self, id: NodeId) {
        if let Some(Some(node)) = self.usage_history.nodes.get_mut(id.index())
            && !std::mem::replace(&mut node.touched, true)
        {
            self.usage_history.touched.push(id);
        }
    }

    pub(super) fn begin_usage(&mut self, now: Time, id: NodeId) {
        if !self.keeps_usage() {
            return;
        }
        let Some(entry) = self.usage_now(now, id) else { return };
        let history = &mut self.usage_history;
        history.nodes.reach(id.index(), || None);
        history.count_time(now);
        history.counts[entry.usage as usize] += 1;
        history.entries += 1;
        history.nodes[id.index()] = Some(NodeUsage::new(entry));
        self.note_usage(id);
    }

    pub(super) fn forget_usage(&mut self, now: Time, id: NodeId) {
        self.usage_history.count_time(now);
        let gone = self.usage_history.nodes.get_mut(id.index()).and_then(Option::take);
        if let Some(gone) = gone {
            self.usage_history.counts[gone.current.usage as usize] -= 1;
            self.usage_history.entries -= gone.entries();
        }
    }

    /// The history begins or ends with the setting that wants it, and forgets what is too much for another one.
    pub(super) fn change_retention(&mut self, now: Time, before: Retention) {
        let kept_before = before.usage_entries > 0;
        match (kept_before, self.keeps_usage()) {
            (true, false) => self.usage_history = UsageHistory::default(),
            (false, true) => {
                let nodes: Vec<NodeId> = self.nodes().map(|(id, _)| id).collect();
                nodes.into_iter().for_each(|id| self.begin_usage(now, id));
                let unseen = self.pending.unseen().into_iter().map(|(sequence, id)| (sequence, vec![id]));
                self.usage_history.pending = unseen.collect();
            }
            (true, true) if self.settings.retention != before => self.forget_old_usage(),
            _ => {}
        }
    }

    /// Keeps no more entries of any node than there may be of each.
    fn forget_old_usage(&mut self) {
        let kept = kept_per_node(&self.settings.retention, self.names.len());
        let history = &mut self.usage_history;
        for node in history.nodes.iter_mut().flatten() {
            history.entries -= node.keep(kept);
        }
    }

    /// Entries that may be kept in all: one of each node in any case.
    fn usage_entries_max(&self) -> u64 {
        self.settings.retention.usage_entries.max(self.names.len() as u64)
    }

    pub(super) fn check_usage(&self) -> Result<(), Broken> {
        let (history, each) = (&self.usage_history, self.settings.retention.usage_entries_per_node);
        let counted = history.nodes.iter().flatten().map(NodeUsage::entries);
        let (all, most) = counted.fold((0, 0), |(all, most), entries| (all + entries, most.max(entries)));
        promise!(7, all == history.entries, "{all} entries of usage are kept, not {}", history.entries);
        let max = if self.keeps_usage() { self.usage_entries_max() } else { 0 };
        promise!(7, all <= max, "{all} entries of usage are kept, {max} may be");
        promise!(7, most <= each.max(1), "{most} entries of usage are kept of a node, {each} may be");
        Ok(())
    }

    /// These nodes are pending until the sequence has been seen.
    pub(super) fn note_pending(&mut self, sequence: u64, nodes: &[NodeId]) {
        if self.keeps_usage() {
            nodes.iter().for_each(|id| self.note_usage(*id));
            self.usage_history.pending.push_back((sequence, nodes.to_vec()));
        }
    }

    pub(super) fn note_seen(&mut self, sequence: u64) {
        while self.usage_history.pending.front().is_some_and(|(number, _)| *number <= sequence) {
            let (_, nodes) = self.usage_history.pending.pop_front().expect("it was looked at");
            nodes.into_iter().for_each(|id| self.note_usage(id));
        }
    }

    fn usage_now(&self, now: Time, id: NodeId) -> Option<UsageEntry> {
        let (condition, usage) = (self.node(id)?.condition, self.usage(id)?);
        Some(UsageEntry { from: now, condition, usage })
    }

    /// Ends a turn: enters what has changed.
    pub(super) fn record_usage(&mut self, now: Time) {
        if self.usage_history.touched.is_empty() {
            return;
        }
        let kept = kept_per_node(&self.settings.retention, self.names.len());
        self.usage_history.count_time(now);
        let mut touched = std::mem::take(&mut self.usage_history.touched);
        for id in touched.drain(..) {
            let Some(entry) = self.usage_now(now, id) else { continue };
            let history = &mut self.usage_history;
            let Some(Some(node)) = history.nodes.get_mut(id.index()) else { continue };
            node.touched = false;
            let before = node.current;
            if (before.condition, before.usage) != (entry.condition, entry.usage) {
                history.entries += node.change(entry);
                history.entries -= node.keep(kept);
                history.counts[before.usage as usize] -= 1;
                history.counts[entry.usage as usize] += 1;
            }
            node.fresh = false;
        }
        // The same room serves the next turn.
        self.usage_history.touched = touched;
        // With every node that comes there is less room for each; most have had their last change before.
        if self.usage_history.entries > self.usage_entries_max() {
            self.forget_old_usage();
        }
    }

    /// Answers how time was spent, on one node or on many.
    pub(super) fn tell_usage(
        &self,
        now: Time,
        ticket: Ticket,
        of: UsageOf,
        since: Option<Time>,
        out: &mut Outbox,
    ) {
        let mut answer = UsageAnswer { at: now, ..UsageAnswer::default() };
        let one = match &of {
            UsageOf::Node(name) => match self.node_id(name) {
                Some(id) => Some(id),
                None => return out.refuse(ticket, Refusal::UnknownNode(name.clone())),
            },
            UsageOf::Pool(_) | UsageOf::All => None,
        };
        let in_pool = |id: NodeId| match &of {
            UsageOf::Pool(pool) => self.node(id).is_some_and(|node| node.facts.pool == *pool),
            UsageOf::Node(_) | UsageOf::All => true,
        };
        let asked = match one {
            Some(id) => vec![id],
            None => self.nodes().map(|(id, _)| id).filter(|id| in_pool(*id)).collect(),
        };
        for id in asked {
            answer.nodes += 1;
            let Some(Some(node)) = self.usage_history.nodes.get(id.index()) else { continue };
            let (times, complete_since) = node.times(since, now);
            answer.complete_since = answer.complete_since.max(complete_since);
            for time in times {
                let state = UsageEntry { from: now, condition: time.condition, usage: time.usage };
                add(&mut answer.times, state, time.span);
            }
        }
        answer.times.sort_unstable_by_key(|time| (time.condition, time.usage));
        answer.entries = one.map_or_else(Vec::new, |id| self.usage_entries(id));
        out.reply(ticket, Answer::Usage(Box::new(answer)));
    }

    /// For the checks of the world: time in each state since the node's history began.
    pub fn time_by_usage(&self, id: NodeId, now: Time) -> Vec<StateTime> {
        let node = self.usage_history.nodes.get(id.index()).and_then(Option::as_ref);
        let mut times = node.map_or_else(Vec::new, |node| node.times(None, now).0);
        times.sort_unstable_by_key(|time| (time.condition, time.usage));
        times
    }

    pub(super) fn note_progress(&mut self, id: NodeId) {
        if !mutation::active(Mutation::MissProgress) {
            self.note_usage(id);
        }
    }
}
