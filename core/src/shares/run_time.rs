//! Weighted run time: `v += cost * instances * elapsed / weight`. The unit with the smallest value
//! grows first, the one with the largest shrinks first, so that in the long run usage is in
//! proportion to weights.
//!
//! Values are in cost times seconds for a weight of one, with 32 bits behind the point. A unit keeps
//! the remainder of each division, so charging in pieces is the same as charging at once.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::ratio::Weight;
use crate::time::Span;

/// Bits behind the point of a value.
const POINT: u32 = 32;

/// A value of weighted run time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct VirtualTime(u128);

impl VirtualTime {
    /// From whole units of cost times seconds for a weight of one.
    pub fn from_whole(units: u64) -> VirtualTime {
        VirtualTime(u128::from(units) << POINT)
    }

    /// In the smallest parts, for orders that compare many values.
    pub fn parts(self) -> u128 {
        self.0
    }

    /// For figures shown to people.
    pub fn as_number(self) -> f64 {
        self.0 as f64 / (1_u64 << POINT) as f64
    }
}

/// The run time of one unit. Exact while the product of cost, instances and microseconds of a charge
/// is below 2^95; beyond, a value stays at its largest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RunTime {
    value: VirtualTime,
    /// What the division by the weight left over, in parts of that weight.
    remainder: u64,
    weight: Weight,
}

impl RunTime {
    /// A unit that never ran.
    pub fn new(weight: Weight) -> RunTime {
        RunTime { value: VirtualTime::default(), remainder: 0, weight }
    }

    pub fn value(&self) -> VirtualTime {
        self.value
    }

    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// Charges go by another weight from now on.
    pub fn set_weight(&mut self, weight: Weight) {
        if weight != self.weight {
            (self.weight, self.remainder) = (weight, 0);
        }
    }

    /// `instances`, each of this cost, ran for a time.
    pub fn charge(&mut self, cost: u64, instances: u64, elapsed: Span) {
        let product = (u128::from(cost) * u128::from(instances)).saturating_mul(u128::from(elapsed.0));
        let (added, remainder) = self.divide(product);
        self.value = VirtualTime(self.value.0.saturating_add(added));
        self.remainder = remainder;
    }

    /// What the value would be after one more instance ran for `quantum`: decisions compare this, or
    /// large units would be favoured.
    pub fn after_step(&self, cost: u64, quantum: Span) -> VirtualTime {
        self.after_steps(u128::from(cost) * u128::from(quantum.0))
    }

    /// What the value would be after so much more: the sum of cost times microseconds.
    pub fn after_steps(&self, product: u128) -> VirtualTime {
        let (added, _) = self.divide(product);
        VirtualTime(self.value.0.saturating_add(added))
    }

    /// The unit arrives or wakes up: it gets no more credit for the time it did not want to run.
    pub fn place(&mut self, floor: VirtualTime, credit: VirtualTime) {
        let least = VirtualTime(floor.0.saturating_sub(credit.0));
        if self.value < least {
            (self.value, self.remainder) = (least, 0);
        }
    }

    /// The quotient by the weight with [`POINT`] bits behind the point, and what it leaves over. The
    /// millionths of a weight and the microseconds of a time cancel out.
    fn divide(&self, product: u128) -> (u128, u64) {
        let weight = u128::from(self.weight.millionths());
        let whole = (product / weight).saturating_mul(1 << POINT);
        // Below 2^72 plus 2^40.
        let rest = ((product % weight) << POINT) + u128::from(self.remainder);
        (whole.saturating_add(rest / weight), (rest % weight) as u64)
    }
}

/// The smallest value among the units that want to run; it never decreases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Floor(VirtualTime);

impl Floor {
    pub fn value(self) -> VirtualTime {
        self.0
    }

    /// Follows the smallest value of the runnable units; without any it stays.
    pub fn raise(&mut self, smallest_runnable: Option<VirtualTime>) {
        self.0 = self.0.max(smallest_runnable.unwrap_or_default());
    }
}

/// Who goes first: the smaller value after the step, then the heavier weight. Who is equal then is
/// told apart by arrival and id.
pub fn compare(one: (VirtualTime, Weight), other: (VirtualTime, Weight)) -> Ordering {
    one.0.cmp(&other.0).then_with(|| other.1.cmp(&one.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_whole_seconds(1);

    fn weight(number: u64) -> Weight {
        Weight::from_number(number as f64).expect("a weight")
    }

    fn ran(number: u64, cost: u64, seconds: u64) -> RunTime {
        let mut unit = RunTime::new(weight(number));
        unit.charge(cost, 1, Span::from_whole_seconds(seconds));
        unit
    }

    #[test]
    fn run_time_is_cost_times_time_over_weight() {
        // Weight, cost, seconds, value in ten-thousandths.
        for (number, cost, seconds, expected) in [
            (10, 1, 3_600, 3_600_000),
            (10_000, 1, 3_600, 3_600),
            (10, 1, 1_000, 1_000_000),
            (100, 1, 1_000, 100_000),
            (1_000, 1, 1_000, 10_000),
            (10_000, 1, 1_000, 1_000),
            (10, 4, 100_000, 400_000_000),
            (10_000, 1, 1, 1),
            (10, 1, 1_000_000, 1_000_000_000),
            (1_000, 10, 100, 10_000),
            (1_000, 1, 500, 5_000),
        ] {
            let value = ran(number, cost, seconds).value();
            assert_eq!(value.0, (expected << POINT) / 10_000, "{number} {cost} {seconds}");
        }
    }

    #[test]
    fn with_equal_usage_the_heavier_goes_first_and_expensive_units_pay_more() {
        let order = |units: &[(&'static str, RunTime)]| {
            let mut units = units.to_vec();
            units.sort_by(|one, other| {
                compare((one.1.value(), one.1.weight()), (other.1.value(), other.1.weight()))
            });
            units.into_iter().map(|(name, _)| name).collect::<String>()
        };
        let levels = [("e", 10), ("o", 100), ("n", 1_000), ("p", 10_000)];
        assert_eq!(order(&levels.map(|(name, number)| (name, ran(number, 1, 1_000)))), "pnoe");
        assert_eq!(order(&levels.map(|(name, number)| (name, ran(number, 1, 0)))), "pnoe");
        assert_eq!(order(&[("g", ran(1_000, 10, 100)), ("c", ran(1_000, 1, 500))]), "cg");
        assert_eq!(order(&[("e", ran(10, 1, 1_000_000)), ("p", ran(10_000, 1, 1_000))]), "pe");
    }

    #[test]
    fn instances_count_once_each() {
        for (instances, expected) in [(4, 240), (10, 600)] {
            let mut unit = RunTime::new(Weight::ONE);
            unit.charge(1, instances, Span::from_whole_seconds(60));
            assert_eq!(unit.value(), VirtualTime::from_whole(expected));
        }
    }

    #[test]
    fn newcomers_start_at_the_floor_less_a_credit() {
        let floor = VirtualTime::from_whole(500);
        for (own, credit, expected) in [(0, 0, 500), (120, 50, 450), (490, 50, 490), (700, 50, 700)] {
            let mut unit = ran(1, 1, own);
            unit.place(floor, VirtualTime::from_whole(credit));
            assert_eq!(unit.value(), VirtualTime::from_whole(expected), "{own} {credit}");
        }
    }

    #[test]
    fn the_floor_never_falls() {
        let mut floor = Floor::default();
        for (smallest, expected) in [(Some(5), 5), (Some(3), 5), (None, 5), (Some(9), 9)] {
            floor.raise(smallest.map(VirtualTime::from_whole));
            assert_eq!(floor.value(), VirtualTime::from_whole(expected));
        }
    }

    #[test]
    fn usage_comes_out_in_proportion_to_weights() {
        let mut units = [10, 100, 1_000, 10_000].map(|number| (RunTime::new(weight(number)), 0_u64));
        for _ in 0..11_110 {
            let key = |unit: &RunTime| (unit.after_step(1, SECOND), unit.weight());
            let least = units.iter_mut().min_by(|one, other| compare(key(&one.0), key(&other.0)));
            let (unit, used) = least.expect("four units");
            unit.charge(1, 1, SECOND);
            *used += 1;
        }
        assert_eq!(units.map(|(_, used)| used), [10, 100, 1_000, 10_000]);
    }

    #[test]
    fn charging_in_pieces_is_charging_at_once() {
        let mut pieces = RunTime::new(weight(7));
        for _ in 0..100_000 {
            pieces.charge(3, 1, Span(1));
        }
        let mut whole = RunTime::new(weight(7));
        whole.charge(3, 1, Span(100_000));
        assert_eq!(pieces, whole);
        pieces.set_weight(weight(2));
        assert_eq!((pieces.value(), pieces.remainder), (whole.value(), 0));
    }

    #[test]
    fn the_step_decides_not_what_was() {
        // The large unit has run less, but one more instance of it would take it further.
        let (large, small) = (ran(1, 1, 9), ran(1, 1, 10));
        let after = |unit: &RunTime, cost| (unit.after_step(cost, SECOND), unit.weight());
        assert_eq!(compare(after(&large, 8), after(&small, 1)), Ordering::Greater);
    }

    #[test]
    fn the_largest_charges_stay_at_the_limit() {
        let mut unit = RunTime::new(Weight::from_millionths(1).expect("a weight"));
        unit.charge(u64::MAX, u64::MAX, Span(u64::MAX));
        unit.charge(u64::MAX, u64::MAX, Span(u64::MAX));
        assert_eq!(unit.value(), VirtualTime(u128::MAX));
    }
}
