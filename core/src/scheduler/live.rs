//! The attempts the Scheduler has planned and not heard the end of, by slot. It hands out the
//! slots that every machine then uses as the place of its own record.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::collections::{Blocks, Chain, Links};
use crate::id::{Attempt, NodeId, Slot, TaskId};
use crate::time::Time;

use super::leaf::LeafId;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LiveTable {
    entries: Blocks<Option<LiveView>>,
    /// Slots to be used again, last in first out.
    vacant: Vec<Slot>,
    by_node: Links,
    by_group: Links,
    /// Attempts that were told to stop.
    stopping: BTreeSet<Slot>,
    /// All attempts by their share and start, if anything may ever be taken away.
    #[serde(skip)]
    by_start: Option<BTreeMap<LeafId, Starts>>,
    /// Those that have begun and are not among these yet.
    #[serde(skip)]
    fresh: Vec<Slot>,
}

/// Attempts by their start.
pub(super) type Starts = BTreeSet<(Time, TaskId, Slot)>;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LiveView {
    pub(super) attempt: Attempt,
    node: NodeId,
    pub(super) since: Time,
    /// It was told to stop.
    pub(super) stopping: bool,
    /// Its elastic group ran already when it was placed.
    pub(super) grown: bool,
    /// It was let onto what is claimed until the claimant can start.
    pub(super) fills: bool,
    /// The node was removed while the placement was on its way.
    is_nowhere: bool,
}

impl LiveView {
    /// Where it runs, unless the node was removed while the placement was on its way.
    pub(super) fn node(&self) -> Option<NodeId> {
        (!self.is_nowhere).then_some(self.node)
    }
}

impl LiveTable {
    /// Keeps the attempts in the order of their starts if that is wanted.
    pub(super) fn new(by_start: bool) -> LiveTable {
        LiveTable { by_start: by_start.then(BTreeMap::new), ..LiveTable::default() }
    }

    /// Enters a new attempt and gives it a slot.
    pub(super) fn insert(&mut self, task: TaskId, number: u32, node: NodeId, since: Time) -> Attempt {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            let index = self.entries.len();
            self.entries.reach(index, || None);
            Slot(index as u32)
        });
        let attempt = Attempt { task, number, slot };
        if self.by_start.is_some() {
            self.fresh.push(slot);
        }
        let (stopping, grown, fills, is_nowhere) = (false, false, false, false);
        self.entries[slot.index()] =
            Some(LiveView { attempt, node, since, stopping, grown, fills, is_nowhere });
        attempt
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&LiveView> {
        self.entries.get(slot.index())?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut LiveView> {
        self.entries.get_mut(slot.index())?.as_mut()
    }

    /// Takes an attempt of a share out, if it is the live one of its slot. The caller unlinks it.
    pub(super) fn remove(&mut self, attempt: Attempt, leaf: LeafId) -> Option<LiveView> {
        let entry = self.entries.get_mut(attempt.slot.index())?;
        let live = entry.take_if(|live| live.attempt == attempt)?;
        self.vacant.push(attempt.slot);
        self.stopping.remove(&attempt.slot);
        self.take_start(leaf, (live.since, attempt.task, attempt.slot));
        Some(live)
    }

    fn take_start(&mut self, leaf: LeafId, start: (Time, TaskId, Slot)) {
        let Some(by_start) = &mut self.by_start else { return };
        let Some(starts) = by_start.get_mut(&leaf) else { return };
        starts.remove(&start);
        if starts.is_empty() {
            by_start.remove(&leaf);
        }
    }

    /// Those that have begun since this was asked last, where starts are kept in order.
    pub(super) fn take_fresh(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.fresh)
    }

    /// Keeps the start of an attempt under its share.
    pub(super) fn keep_start(&mut self, slot: Slot, leaf: LeafId) {
        let Some(live) = self.get(slot) else { return };
        let start = (live.since, live.attempt.task, slot);
        if let Some(by_start) = &mut self.by_start {
            by_start.entry(leaf).or_default().insert(start);
        }
    }

    /// The same under another one from now on.
    pub(super) fn move_start(&mut self, slot: Slot, from: LeafId, to: LeafId) {
        let Some(live) = self.get(slot) else { return };
        self.take_start(from, (live.since, live.attempt.task, slot));
        self.keep_start(slot, to);
    }

    /// The attempt was told to stop; false if it had been before.
    pub(super) fn mark_stopping(&mut self, slot: Slot) -> bool {
        let live = self.get_mut(slot).expect("only live attempts are stopped");
        let is_new = !std::mem::replace(&mut live.stopping, true);
        self.stopping.insert(slot);
        is_new
    }

    /// Attempts that were told to stop and have not ended.
    pub(super) fn stopping(&self) -> impl Iterator<Item = &LiveView> {
        self.stopping.iter().filter_map(|slot| self.get(*slot))
    }

    /// Keeps the attempts in the order of their starts from now on, all of which are to be entered anew, or does
    /// not any more.
    pub(super) fn order_by_start(&mut self, wanted: bool) {
        self.by_start = wanted.then(BTreeMap::new);
        self.fresh = if wanted { self.iter().map(|live| live.attempt.slot).collect() } else { Vec::new() };
    }

    pub(super) fn is_ordered_by_start(&self) -> bool {
        self.by_start.is_some()
    }

    /// The attempts of each share by their start, where that is kept.
    pub(super) fn starts(&self) -> impl Iterator<Item = (LeafId, &Starts)> {
        self.by_start.iter().flatten().map(|(leaf, starts)| (*leaf, starts))
    }

    /// The node of this attempt is gone: there is nothing to give back to.
    pub(super) fn leave_node(&mut self, slot: Slot) {
        self.get_mut(slot).expect("the attempt is live").is_nowhere = true;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &LiveView> {
        self.entries.iter().flatten()
    }

    pub(super) fn link_node(&mut self, chain: &mut Chain, slot: Slot) {
        self.by_node.push(chain, slot.0);
    }

    pub(super) fn unlink_node(&mut self, chain: &mut Chain, slot: Slot) {
        self.by_node.remove(chain, slot.0);
    }

    pub(super) fn link_group(&mut self, chain: &mut Chain, slot: Slot) {
        self.by_group.push(chain, slot.0);
    }

    pub(super) fn unlink_group(&mut self, chain: &mut Chain, slot: Slot) {
        self.by_group.remove(chain, slot.0);
    }

    /// The attempts on a node, newest first.
    pub(super) fn on_node(&self, chain: Chain) -> impl Iterator<Item = &LiveView> {
        self.by_node.iter(chain).map(|slot| self.linked(slot))
    }

    /// The attempts of a group, newest first.
    pub(super) fn of_group(&self, chain: Chain) -> impl Iterator<Item = &LiveView> {
        self.by_group.iter(chain).map(|slot| self.linked(slot))
    }

    fn linked(&self, slot: u32) -> &LiveView {
        self.entries[slot as usize].as_ref().expect("chained attempts are live")
    }
}
