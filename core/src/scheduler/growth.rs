//! In which order elastic groups grow, and how far: whoever has the least of what it may have goes first, and
//! a part of every kind stays free.

use crate::resources::{KindId, Resources};

use super::Scheduler;
use super::groups::RoleView;
use super::leaf::LeafId;
use super::order::Order;
use super::queue::Entry;
use super::shapes::{Place, ShapeId};

const CPU: KindId = KindId(1);
const MEMORY: KindId = KindId(2);
const GPU: KindId = KindId(3);

/// The place of the surplus of a role: after what jobs are compared by, the smallest part of the way from the
/// smallest to the largest size, then more GPUs, more CPUs, more memory, then the arrival.
pub(super) fn surplus_order(rank: u128, role: &RoleView, entry: Entry) -> Order {
    const WHOLE: u64 = 1 << 31;
    let Some(elastic) = &role.elastic else { return Order::by_arrival(rank, entry) };
    let size = role.tasks() - role.waiting();
    let (above, span) = (size.saturating_sub(elastic.min), elastic.max.saturating_sub(elastic.min).max(1));
    let fulfilment = (u64::from(above) * WHOLE / u64::from(span)).min(2 * WHOLE - 1);
    let Size { gpus, cpus, memory } = Size::of([&role.spec.request]);
    let last = memory << 48 | entry.group.order() & ((1 << 48) - 1);
    Order::new(rank, fulfilment << 32 | gpus << 24 | cpus, last)
}

/// What is compared of requests where nothing else tells jobs apart: numbers that are the smaller the more is
/// requested, GPUs before CPUs before memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Size {
    /// In eight bits.
    gpus: u64,
    /// In 24 bits.
    cpus: u64,
    /// In 16 bits.
    memory: u64,
}

impl Size {
    /// Of several requests the most of each kind counts.
    pub(super) fn of<'a>(requests: impl IntoIterator<Item = &'a Resources> + Clone) -> Size {
        const GPUS_MAX: u64 = (1 << 8) - 1;
        const THOUSANDTHS: u64 = 1_000;
        let most = |kind| {
            let amounts = requests.clone().into_iter().map(|request| request.get(kind));
            amounts.max().unwrap_or(0).max(0)
        };
        let gpus = u64::try_from(most(GPU)).unwrap_or(0).div_ceil(THOUSANDTHS);
        Size {
            gpus: GPUS_MAX - gpus.min(GPUS_MAX),
            cpus: code(i64::MAX, 24) - code(most(CPU), 24),
            memory: code(i64::MAX, 16) - code(most(MEMORY), 16),
        }
    }

    /// After what jobs are compared by the larger goes first, and only then who came first.
    pub(super) fn order(self, rank: u128, entry: Entry) -> Order {
        let last = entry.group.order() << 16 | u64::from(entry.role);
        Order::new(rank, self.gpus << 56 | self.cpus << 32 | self.memory << 16, last)
    }
}

/// A number of so many bits that is never smaller for a larger amount: its magnitude and its first digits.
fn code(amount: i64, bits: u32) -> u64 {
    let amount = u64::try_from(amount).unwrap_or(0);
    let digits = bits - 6;
    let magnitude = u64::BITS - amount.leading_zeros();
    let first = match magnitude > digits {
        true => amount >> (magnitude - digits),
        false => amount << (digits - magnitude),
    };
    // The first digit is always one: it says nothing.
    u64::from(magnitude) << digits.saturating_sub(1) | first & ((1 << (digits - 1)) - 1)
}

impl Scheduler {
    /// Whether surplus waits in this leaf.
    pub(super) fn is_surplus(&self, leaf: LeafId) -> bool {
        self.shares.any_surplus()
            && usize::from(self.shares.leaf(leaf).level) >= self.settings.shares.levels()
    }

    /// A kind of which too little would stay free if something grew by this.
    pub(super) fn short_of_headroom(&self, request: &Resources) -> Option<KindId> {
        const MILLION: i128 = 1_000_000;
        let headroom = i128::from(self.settings.elastic.headroom);
        if headroom == 0 {
            return None;
        }
        let is_short = |(kind, amount): &(KindId, i64)| {
            let kept = (self.nodes.capacity(*kind) * headroom + MILLION - 1) / MILLION;
            *amount > 0 && self.nodes.open_free(*kind) - i128::from(*amount) < kept
        };
        request.iter().find(is_short).map(|(kind, _)| kind)
    }

    /// The same for a shape, if it is surplus that waits.
    pub(super) fn headroom_limit(&self, leaf: LeafId, shape: ShapeId) -> Option<KindId> {
        match self.is_surplus(leaf) {
            true => self.short_of_headroom(&self.shapes.get(shape).total_request()),
            false => None,
        }
    }

    /// Surplus that would take what is to stay free stands aside until more is free.
    pub(super) fn keep_headroom(&mut self, shape: ShapeId) {
        self.shapes.move_to(shape, Place::Limited, &self.jobs);
        self.elastic.aside.insert(shape);
    }

    /// Looks again at the surplus that stood aside.
    pub(super) fn look_at_headroom(&mut self) {
        if self.elastic.aside.is_empty() {
            return;
        }
        let aside: Vec<ShapeId> = self.elastic.aside.iter().copied().collect();
        for shape in aside {
            let stands_aside = self.shapes.is_limited(shape);
            let is_free = stands_aside && {
                let leaf = self.shapes.get(shape).leaf;
                self.headroom_limit(leaf, shape).is_none()
            };
            if is_free {
                self.shapes.move_to(shape, Place::Open, &self.jobs);
            }
            if is_free || !stands_aside {
                self.elastic.aside.remove(&shape);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_amount_never_falls() {
        let amounts = [0, 1, 2, 3, 4, 7, 8, 1_000, 1_001, 4_095, 65_536, 1 << 40, i64::MAX - 1, i64::MAX];
        for bits in [16, 24] {
            let codes: Vec<u64> = amounts.iter().map(|amount| code(*amount, bits)).collect();
            assert!(codes.is_sorted() && codes.iter().all(|code| *code < 1 << bits), "{codes:?}");
        }
        assert!(code(1_000, 24) < code(1_001, 24), "amounts of common sizes are told apart");
    }

    #[test]
    fn whoever_requests_more_gpus_goes_first_then_more_cpus_then_more_memory() {
        let request = |gpus: i64, cpus: i64, memory: i64| {
            let mut request = Resources::of(GPU, gpus * 1_000);
            request.set(CPU, cpus * 1_000);
            request.set(MEMORY, memory << 30);
            request
        };
        let sizes = [(8, 1, 1), (4, 1, 1), (2, 9, 9), (1, 9, 9), (0, 9, 1), (0, 8, 9), (0, 8, 1), (0, 0, 1)];
        let requests: Vec<Resources> =
            sizes.into_iter().map(|(gpus, cpus, memory)| request(gpus, cpus, memory)).collect();
        let sizes: Vec<Size> = requests.iter().map(|request| Size::of([request])).collect();
        assert!(sizes.is_sorted_by(|one, next| one < next), "{sizes:?}");
        assert_eq!(Size::of(&requests), Size::of([&request(8, 9, 9)]), "the most of each kind counts");
    }
}
