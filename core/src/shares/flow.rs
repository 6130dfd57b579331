//! Flow: usage with a memory. It jumps up with the usage at once and falls back towards it with a
//! half-life,
//!
//! `flow = usage + max(flow - usage, 0) * 0.5 ^ (elapsed / half_time)`,
//!
//! so that whoever has used much lately waits a little longer. Nothing is swept: a queue keeps what it
//! had above its usage and since when, and the value is computed when somebody asks.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::decay::Decay;
use super::ratio::{Weight, compare_products};
use crate::time::{Span, Time};

/// More usage than this is read as this.
pub const USAGE_MAX: u128 = 1 << 80;

/// Bits behind the point of a flow: what rounding loses in a million updates is still far below one
/// unit of usage.
const POINT: u32 = 32;

/// The usage of an allocation: the sum of its amounts, each times the weight of its resource in
/// millionths. What is negative counts nothing.
pub fn weighted_usage(amounts: impl IntoIterator<Item = (i64, u64)>) -> u128 {
    let weighted = |(amount, weight): (i64, u64)| u128::try_from(amount).unwrap_or(0) * u128::from(weight);
    amounts.into_iter().map(weighted).fold(0, u128::saturating_add)
}

/// A value of flow, in units of usage with 32 bits behind the point; below 2^114.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct FlowValue(u128);

impl FlowValue {
    pub fn of_usage(usage: u128) -> FlowValue {
        FlowValue(usage.min(USAGE_MAX) << POINT)
    }

    /// The flow that would result if this much usage came on top.
    pub fn plus(self, usage: u128) -> FlowValue {
        FlowValue(self.0 + FlowValue::of_usage(usage).0)
    }

    /// Compares two flows, each divided by its weight; exact.
    pub fn compare(self, weight: Weight, other: FlowValue, other_weight: Weight) -> Ordering {
        compare_products(
            (self.0, u128::from(other_weight.millionths())),
            (other.0, u128::from(weight.millionths())),
        )
    }

    /// In whole units of usage, rounded up.
    pub fn whole(self) -> u128 {
        self.0.div_ceil(1 << POINT)
    }

    /// For figures shown to people.
    pub fn as_number(self) -> f64 {
        self.0 as f64 / (1_u64 << POINT) as f64
    }
}

/// The flow of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Flow {
    usage: u128,
    /// What the flow was above the usage, at the time `since`.
    excess: FlowValue,
    since: Time,
}

impl Flow {
    pub fn usage(&self) -> u128 {
        self.usage
    }

    /// The usage is another one from now on. A time before the last change counts as that change.
    pub fn set_usage(&mut self, now: Time, half_time: Span, usage: u128) {
        let flow = self.value(now, half_time);
        self.usage = usage.min(USAGE_MAX);
        self.excess = FlowValue(flow.0.saturating_sub(FlowValue::of_usage(self.usage).0));
        self.since = now.max(self.since);
    }

    /// It was as much as this before, whatever the usage is now.
    pub fn remember(&mut self, now: Time, half_time: Span, before: FlowValue) {
        let flow = self.value(now, half_time).max(before);
        self.excess = FlowValue(flow.0.saturating_sub(FlowValue::of_usage(self.usage).0));
        self.since = now.max(self.since);
    }

    /// The flow at a time. If the half-time changes, say the usage again at that moment: the memory
    /// before it faded by the old one.
    pub fn value(&self, now: Time, half_time: Span) -> FlowValue {
        let usage = FlowValue::of_usage(self.usage);
        if self.excess.0 == 0 {
            return usage;
        }
        let left = Decay::after(now.since(self.since), half_time).of(self.excess.0);
        FlowValue(usage.0 + left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Span = Span::from_whole_seconds(600);

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_whole_seconds(seconds)
    }

    /// A queue whose flow is `flow` and whose usage is `usage` from the beginning.
    fn queue(flow: u128, usage: u128) -> Flow {
        let mut queue = Flow::default();
        queue.set_usage(at(0), HALF, flow);
        queue.set_usage(at(0), HALF, usage);
        queue
    }

    #[test]
    fn flow_rises_at_once_and_falls_by_halves() {
        // Flow, usage, elapsed, flow then.
        for (flow, usage, elapsed, expected) in
            [(0, 10, 60, 10), (10, 0, 600, 5), (12, 4, 1_200, 6), (12, 4, 0, 12)]
        {
            let value = queue(flow, usage).value(at(elapsed), HALF);
            assert_eq!(value, FlowValue::of_usage(expected), "{flow} {usage} {elapsed}");
        }
    }

    #[test]
    fn updates_follow_one_another() {
        let mut queue = Flow::default();
        queue.set_usage(at(300), HALF, 8);
        assert_eq!(queue.value(at(300), HALF), FlowValue::of_usage(8));
        queue.set_usage(at(300), HALF, 2);
        let value = queue.value(at(600), HALF).as_number();
        assert!((value - 6.242640687119286).abs() < 1e-9, "{value}");
        queue.set_usage(at(600), HALF, 2);
        let value = queue.value(at(900), HALF).as_number();
        assert!((value - 5.0).abs() < 1e-9, "{value}");
        queue.set_usage(at(900), HALF, 7);
        assert_eq!(queue.value(at(900), HALF), FlowValue::of_usage(7));
    }

    #[test]
    fn many_updates_fade_like_one() {
        let (mut often, once) = (queue(1_000, 0), queue(1_000, 0));
        for milliseconds in 1..=600_000 {
            often.set_usage(Time::ZERO + Span::from_millis(milliseconds), HALF, 0);
        }
        let (often, once) = (often.value(at(600), HALF).as_number(), once.value(at(600), HALF).as_number());
        assert!((often - once).abs() < 1e-3, "{often} {once}");
    }

    #[test]
    fn time_does_not_run_backwards() {
        let mut queue = queue(10, 0);
        queue.set_usage(at(600), HALF, 0);
        queue.set_usage(at(0), HALF, 0);
        assert_eq!(queue.value(at(0), HALF), FlowValue::of_usage(5));
        assert_eq!(queue.value(at(1_200), HALF).0, FlowValue::of_usage(5).0 / 2);
    }

    #[test]
    fn the_smallest_flow_for_its_weight_goes_first() {
        let one = Weight::ONE;
        let two = Weight::from_number(2.0).expect("a weight");
        // In tenths: flow 4, 5 and 8, head jobs of 2, 0.5 and 2, weights 1, 1 and 2.
        let mut queues = [("a", 40, 20, one), ("b", 50, 5, one), ("c", 80, 20, two)]
            .map(|(name, flow, cost, weight)| (name, FlowValue::of_usage(flow).plus(cost), weight));
        assert_eq!(queues.map(|(_, flow, _)| flow.as_number()), [60.0, 55.0, 100.0]);
        queues.sort_by(|one, other| one.1.compare(one.2, other.1, other.2));
        assert_eq!(queues.map(|(name, _, _)| name), ["c", "b", "a"]);
    }

    #[test]
    fn the_largest_usage_neither_overflows_nor_loses_the_order() {
        let mut queue = queue(u128::MAX, u128::MAX);
        assert_eq!(queue.usage(), USAGE_MAX);
        queue.set_usage(at(0), HALF, 0);
        let full = FlowValue::of_usage(u128::MAX).plus(u128::MAX);
        let more = FlowValue(full.0 + 1);
        assert_eq!(full.compare(Weight::MAX, more, Weight::MAX), Ordering::Less);
        assert_eq!(full.compare(Weight::ONE, more, Weight::MAX), Ordering::Greater);
        assert_eq!(queue.value(at(600), HALF), FlowValue::of_usage(USAGE_MAX / 2));
    }

    #[test]
    fn resources_count_by_their_weights() {
        // 4 cores, 1 GPU and 32 GiB at weights 1, 8 and 0.125, in thousandths of each.
        let usage = weighted_usage([(4_000, 1_000_000), (1_000, 8_000_000), (32_000, 125_000)]);
        assert_eq!(usage, 16_000 * 1_000_000);
        assert_eq!(weighted_usage([(-5, 1_000_000)]), 0);
        assert_eq!(weighted_usage([(i64::MAX, u64::MAX); 3]), u128::MAX);
    }

    #[test]
    fn without_a_half_time_flow_is_usage() {
        let mut queue = queue(10, 3);
        queue.set_usage(at(1), Span::ZERO, 2);
        assert_eq!(queue.value(at(1), Span::ZERO), FlowValue::of_usage(3));
        assert_eq!(queue.value(at(2), Span::ZERO), FlowValue::of_usage(2));
    }
}
