//! Whose turn it is to hold a claim, as far as shares go: whoever has least for its weight goes first, and
//! nobody who has all of its own is kept what those could use who have less. Else large tasks of a share
//! that has its part already would get every node that becomes free, because small ones never need a claim.

use std::cmp::Ordering;

use crate::id::NodeId;
use crate::settings::ShareKey;
use crate::shares::ratio::compare_products;

use super::Scheduler;
use super::claimants::Claimant;
use super::claims::Claim;
use super::leaf::LeafId;
use super::shapes::ShapeId;
use super::shares::weight_of;

/// How much a share has, and by what that is divided.
#[derive(Clone, Copy, Debug)]
struct Part(u128, u128);

impl Part {
    /// Where nobody is compared by what he has.
    const NONE: Part = Part(0, 1);

    fn compare(self, other: Part) -> Ordering {
        compare_products((self.0, other.1), (other.0, self.1))
    }
}

/// The place of a claimant among those that have waited long enough, as far as its share goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClaimTurn {
    level: u16,
    /// Its class gets what nobody else can use.
    last: bool,
    class: Part,
    queue: Part,
    /// Where queues are compared by what they have.
    leaf: Option<LeafId>,
}

impl ClaimTurn {
    pub(super) fn compare(&self, other: &ClaimTurn) -> Ordering {
        let level = (self.level, self.last).cmp(&(other.level, other.last));
        let share = level.then_with(|| self.class.compare(other.class));
        share.then_with(|| self.queue.compare(other.queue)).then_with(|| self.leaf.cmp(&other.leaf))
    }
}

impl Scheduler {
    pub(super) fn claim_turn(&self, id: LeafId) -> ClaimTurn {
        let (leaf, settings) = (self.shares.leaf(id), &self.settings.shares);
        let class = usize::from(leaf.class);
        let percent = settings.classes.as_ref().map(|all| all.percents.classes()[class].percent);
        let of_class = match percent {
            Some(percent) if percent > 0 && settings.share_key != ShareKey::Fifo => {
                Part(self.running_units(class).into(), percent.into())
            }
            _ => Part::NONE,
        };
        let by_queue = settings.queue_key != ShareKey::Fifo && !self.shares.is_plain();
        let queue = self.shares.queue_of(id);
        let weight = weight_of(queue, settings).millionths();
        let of_queue = match by_queue {
            true => Part(self.queue_measure(&queue.account), weight.into()),
            false => Part::NONE,
        };
        let last = self.shares.is_last(class);
        ClaimTurn { level: leaf.level, last, class: of_class, queue: of_queue, leaf: by_queue.then_some(id) }
    }

    /// Whether a claim of somebody whose share has all of its own would keep what a share waits for that has
    /// less; of somebody of a class of 0 percent, what anybody else waits for.
    pub(super) fn takes_from_those_below(&self, claimant: &Claimant, claim: &Claim) -> bool {
        let settings = &self.settings.shares;
        let key = if settings.classes.is_some() { settings.share_key } else { settings.queue_key };
        let is_compared = key != ShareKey::Fifo && !self.shares.is_plain();
        let waits_for_nobody = claim.nodes.values().all(|held| held.awaited.is_empty());
        let last = self.is_last(claimant.leaf);
        if waits_for_nobody || !(is_compared || last) {
            return false;
        }
        let floors = self.floors();
        let own = floors.value(self, claimant.leaf);
        if !last && (own.lacks_some() || own.held == 0) {
            return false;
        }
        let goes_before = |leaf: LeafId| match last {
            true => !self.is_last(leaf),
            false => floors.value(self, leaf).lacks_some(),
        };
        let leaves = (0..self.shares.leaves.len()).map(|index| LeafId(index as u32));
        let of_level = leaves.filter(|leaf| self.shares.leaf(*leaf).level == claimant.level);
        let waiting = of_level.filter(|leaf| self.shares.leaf(*leaf).waiting > 0);
        waiting.filter(|leaf| goes_before(*leaf)).any(|leaf| {
            let first = self.shapes.leaf(leaf).first();
            first.is_some_and(|shape| claim.nodes.keys().any(|node| self.could_use(shape, *node)))
        })
    }

    /// Whether something of this shape could run on a node if that were empty.
    fn could_use(&self, shape: ShapeId, node: NodeId) -> bool {
        let Some(entry) = self.nodes.get(node) else { return false };
        let (offered, facts) = (entry.view.offered(), &entry.view.facts);
        self.shapes
            .get(shape)
            .key
            .specs()
            .any(|spec| !entry.keeps_out(spec) && spec.request.fits_in(&offered) && spec.rules.allow(facts))
    }
}
