//! Bounds of a queue beyond its share: what may not be preempted may pass the share by a factor, and
//! what lives long needs a budget.

use super::ratio::{Weight, compare_products};

/// Whether a queue may have `wanted` of cost that cannot be preempted: no more than its share of
/// `capacity` by weight, times `factor` in millionths; `weights` are the millionths of all queues.
pub fn within_factor(wanted: u64, capacity: u64, weight: Weight, weights: u64, factor: u64) -> bool {
    // wanted <= capacity * (weight / weights) * (factor / 10^6)
    let allowed = u128::from(capacity) * u128::from(weight.millionths());
    let of_all = u128::from(weights) * 1_000_000;
    compare_products((allowed, u128::from(factor)), (u128::from(wanted), of_all)).is_ge()
}

/// Takes what a task of this cost and lifetime needs beyond the share from a budget of cost times
/// time. Takes nothing and says so if the budget does not hold it.
pub fn take_excess(budget: &mut u128, cost: u64, lifetime: u64) -> bool {
    let needed = u128::from(cost) * u128::from(lifetime);
    match budget.checked_sub(needed) {
        Some(left) => {
            *budget = left;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_preempted_may_pass_the_share_by_a_factor() {
        // A quarter of 100, times 1.2, is 30.
        let within = |wanted| within_factor(wanted, 100, Weight::ONE, 4_000_000, 1_200_000);
        assert!(within(28 + 2));
        assert!(!within(28 + 3));
        assert!(within_factor(0, 0, Weight::ONE, 1_000_000, 0));
        assert!(!within_factor(1, 0, Weight::ONE, 1_000_000, 1_200_000));
    }

    #[test]
    fn a_long_life_is_paid_from_the_budget() {
        // Budget, cost, lifetime, taken, budget then.
        for (budget, cost, lifetime, taken, then) in
            [(60, 5, 10, true, 10), (40, 5, 10, false, 40), (0, 500, 0, true, 0), (50, 5, 10, true, 0)]
        {
            let mut left = budget;
            assert_eq!(take_excess(&mut left, cost, lifetime), taken, "{budget} {cost} {lifetime}");
            assert_eq!(left, then, "{budget} {cost} {lifetime}");
        }
    }
}
