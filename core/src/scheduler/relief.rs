//! Nodes that lost capacity: whoever has to go because the rest does not fit any more, in the order in which
//! work is taken away for others. Nothing protects it: the room itself is gone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::id::{NodeId, Slot};
use crate::messages::Outbox;
use crate::outcome::StopCause;
use crate::resources::Resources;
use crate::spec::Start;

use super::Scheduler;
use super::floors::Floors;
use super::leaf::LeafId;
use super::live::LiveView;
use super::victims::{LaneValue, Tier, Tiers, Unit};

/// Those on a node that may have to go, as shares stand without those who are taken off.
struct Losers {
    /// Of one tier and share those first that go first.
    left: Vec<(Tier, LeafId, Slot)>,
    shares: BTreeMap<LeafId, LaneValue>,
    floors: Floors,
}

impl Losers {
    fn next(&mut self) -> Option<Slot> {
        let place = |index: &usize| {
            let (tier, leaf, _) = &self.left[*index];
            let share = &self.shares[leaf];
            (*tier, Reverse((share.is_last, share.has_borrowed(), share.level)))
        };
        // Of equals the first.
        let next = (0..self.left.len()).min_by_key(place)?;
        Some(self.left.remove(next).2)
    }

    /// This one goes: its share holds so much less.
    fn take_off(&mut self, scheduler: &Scheduler, slot: Slot) {
        let leaf = scheduler.leaf_of(scheduler.task_in(slot).job());
        let Some(account) = self.shares.get(&leaf).map(|share| share.account) else { return };
        let amount = self.floors.step(scheduler, slot);
        for share in self.shares.values_mut().filter(|share| share.account == account) {
            share.held -= amount;
        }
    }
}

impl Scheduler {
    /// A node whose capacity shrank below what runs there: stops attempts that hold what is lacking, until the
    /// rest fits, and none that could stay.
    pub(super) fn relieve(&mut self, node: NodeId, out: &mut Outbox) {
        if !self.nodes.get(node).is_some_and(|entry| entry.free.has_negative()) {
            return;
        }
        let accounts = self.shares.accounts();
        self.suppose_books(self.now);
        let taken = self.who_has_to_go(node);
        self.shares.restore_accounts(accounts);
        for slot in taken {
            self.stop(slot, StopCause::CapacityLoss, out);
        }
    }

    fn who_has_to_go(&self, node: NodeId) -> Vec<Slot> {
        let Some(entry) = self.nodes.get(node) else { return Vec::new() };
        let mut free = entry.free.clone();
        let on_node = || self.live.on_node(entry.attempts);
        on_node().filter(|live| live.stopping).for_each(|live| free += self.request_of(live.attempt.task));
        let mut gone: BTreeSet<Slot> = BTreeSet::new();
        let mut taken: Vec<(Unit, Resources)> = Vec::new();
        let mut losers = self.losers(on_node().filter(|live| !live.stopping));
        while free.has_negative() {
            let Some(slot) = losers.next() else { break };
            let (mut unit, whole) = self.goes_with(slot, node, &gone);
            let mut held = Resources::new();
            unit.iter().for_each(|slot| held += self.request_of(self.task_in(*slot)));
            if !held.iter().any(|(kind, amount)| amount > 0 && free.get(kind) < 0) {
                continue;
            }
            free += &held;
            unit.iter().for_each(|slot| losers.take_off(self, *slot));
            gone.extend(unit.iter().copied());
            if whole {
                // Those of the group that were to go alone go with it.
                let group = self.task_in(slot).group;
                let of_group = |(unit, _): &mut (Unit, Resources)| self.task_in(unit[0]).group == group;
                for (alone, amount) in taken.extract_if(.., of_group) {
                    unit.extend(alone);
                    held += &amount;
                }
            }
            taken.push((unit, held));
        }
        for index in (0..taken.len()).rev() {
            let mut without = free.clone();
            without -= &taken[index].1;
            if !without.has_negative() {
                free = without;
                taken.remove(index);
            }
        }
        taken.into_iter().flat_map(|(unit, _)| unit).collect()
    }

    /// Whoever may have to go of these.
    fn losers<'a>(&self, attempts: impl Iterator<Item = &'a LiveView>) -> Losers {
        let mut newest: Vec<&LiveView> = attempts.collect();
        newest.sort_unstable_by_key(|live| Reverse((live.since, live.attempt.task)));
        let mut tiers = Tiers::default();
        let (surplus, ordinary): (Vec<&LiveView>, Vec<&LiveView>) =
            newest.into_iter().partition(|live| tiers.of(self, live.attempt.task) == Tier::Surplus);
        let slots =
            |attempts: &[&LiveView]| -> Vec<Slot> { attempts.iter().map(|live| live.attempt.slot).collect() };
        // Of those above their minima, those first that have had most.
        let surplus = self.who_has_had_most(&slots(&surplus), self.now).into_iter();
        let left = surplus.map(|slot| (Tier::Surplus, slot));
        let left = left.chain(slots(&ordinary).into_iter().map(|slot| (Tier::Ordinary, slot)));
        let left: Vec<(Tier, LeafId, Slot)> =
            left.map(|(tier, slot)| (tier, self.leaf_of(self.task_in(slot).job()), slot)).collect();
        let floors = self.floors();
        let shares = left.iter().map(|(_, leaf, _)| (*leaf, floors.value(self, *leaf))).collect();
        Losers { left, shares, floors }
    }

    /// Those on the node that end with this attempt, and whether that is all there is of a group: it is if the
    /// group is atomic, unless the attempt is above the minimum of its role.
    fn goes_with(&self, slot: Slot, node: NodeId, gone: &BTreeSet<Slot>) -> (Unit, bool) {
        let task = self.task_in(slot);
        let group = self.group(task.group).expect("a group outlives its attempts");
        if gone.contains(&slot) {
            return (Vec::new(), false);
        }
        let role = &group.roles[usize::from(task.role)];
        let members = || self.live.of_group(group.live);
        let gone_of_role = members()
            .filter(|one| one.attempt.task.role == task.role && gone.contains(&one.attempt.slot))
            .count() as u32;
        let above = role.elastic.as_ref().is_some_and(|elastic| role.steady() > elastic.min + gone_of_role);
        if group.start == Start::Independent || above {
            return (vec![slot], false);
        }
        let here = members().filter(|live| live.node() == Some(node) && !live.stopping);
        (here.map(|live| live.attempt.slot).filter(|slot| !gone.contains(slot)).collect(), true)
    }
}
