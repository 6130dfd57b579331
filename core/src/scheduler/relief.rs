//! Nodes that lost capacity: whoever has to go because the rest does not fit any more, in the order in which
//! work is taken away for others. Nothing protects it: the room itself is gone.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::id::{NodeId, Slot};
use crate::messages::Outbox;
use crate::outcome::StopCause;
use crate::resources::Resources;
use crate::spec::Start;

use super::Scheduler;
use super::live::LiveView;
use super::victims::{Tier, Tiers, Unit};

impl Scheduler {
    /// A node whose capacity shrank below what runs there: stops attempts that hold what is lacking, until the
    /// rest fits, and none that could stay.
    pub(super) fn relieve(&mut self, node: NodeId, out: &mut Outbox) {
        let Some(entry) = self.nodes.get(node).filter(|entry| entry.free.has_negative()) else { return };
        let mut free = entry.free.clone();
        let on_node = || self.live.on_node(entry.attempts);
        on_node().filter(|live| live.stopping).for_each(|live| free += self.request_of(live.attempt.task));
        let mut gone: BTreeSet<Slot> = BTreeSet::new();
        let mut taken: Vec<(Unit, Resources)> = Vec::new();
        for slot in self.in_order_of_loss(on_node().filter(|live| !live.stopping)) {
            if !free.has_negative() {
                break;
            }
            let (mut unit, whole) = self.goes_with(slot, node, &gone);
            let mut held = Resources::new();
            unit.iter().for_each(|slot| held += self.request_of(self.task_in(*slot)));
            if !held.iter().any(|(kind, amount)| amount > 0 && free.get(kind) < 0) {
                continue;
            }
            free += &held;
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
        for slot in taken.into_iter().flat_map(|(unit, _)| unit) {
            self.stop(slot, StopCause::CapacityLoss, out);
        }
    }

    /// Attempts in the order in which they go: see [`super::victims`].
    fn in_order_of_loss<'a>(&self, attempts: impl Iterator<Item = &'a LiveView>) -> Vec<Slot> {
        let mut newest: Vec<&LiveView> = attempts.collect();
        newest.sort_unstable_by_key(|live| Reverse((live.since, live.attempt.task)));
        let floors = self.floors();
        let mut tiers = Tiers::default();
        let place = |live: &&LiveView| {
            let task = live.attempt.task;
            let leaf = self.leaf_of(task.job());
            let tier: Tier = tiers.of(self, task);
            let value = floors.value(self, leaf);
            (tier, Reverse((value.held > value.own, value.level)), live.attempt.slot)
        };
        let mut places: Vec<_> = newest.iter().map(place).collect();
        // Equals stay as they are, the newest first.
        places.sort_by_key(|(tier, share, _)| (*tier, *share));
        let mut order = Vec::with_capacity(places.len());
        for alike in places.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
            let slots: Vec<Slot> = alike.iter().map(|(_, _, slot)| *slot).collect();
            // Of those above their minima, those first that have had most.
            order.extend(match alike[0].0 {
                Tier::Surplus => self.who_has_had_most(&slots, self.now),
                Tier::Ordinary => slots,
            });
        }
        order
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
        let here = members().filter(|live| live.node == Some(node) && !live.stopping);
        (here.map(|live| live.attempt.slot).filter(|slot| !gone.contains(slot)).collect(), true)
    }
}
