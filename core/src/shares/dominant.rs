//! Dominant-resource fairness: what an allocation costs is its largest share of any one resource, and
//! whose cost for its weight is least goes next. Costs are exact fractions.

use std::cmp::Ordering;

use super::ratio::Fraction;

/// A multiplier of one, in millionths.
pub const MULTIPLIER_ONE: u64 = 1_000_000;

/// Larger multipliers are read as this, so that costs stay within exact bounds.
pub const MULTIPLIER_MAX: u64 = 1_000_000_000_000;

/// A resource that counts, in one pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    /// What the whole pool has of it; a resource of which there is nothing counts nothing.
    pub total: i64,
    /// In millionths; zero is read as one. A multiplier makes a resource count more or less.
    pub multiplier: u64,
}

impl Counted {
    pub fn new(total: i64) -> Counted {
        Counted { total, multiplier: MULTIPLIER_ONE }
    }

    fn share(&self, amount: i64) -> Fraction {
        let (Ok(amount), Ok(total)) = (u128::try_from(amount), u128::try_from(self.total)) else {
            return Fraction::ZERO;
        };
        let multiplier = match self.multiplier {
            0 => MULTIPLIER_ONE,
            stated => stated.min(MULTIPLIER_MAX),
        };
        // Below 2^103 and 2^83.
        Fraction::new(amount * u128::from(multiplier), total * u128::from(MULTIPLIER_ONE))
    }
}

/// The cost of an allocation: its largest share, times the multiplier, of any resource that counts;
/// never below zero. Resources come in pairs with the amounts; divide by the weight of the queue with
/// [`Fraction::over`].
pub fn cost<'a>(amounts: impl IntoIterator<Item = (&'a Counted, i64)>) -> Fraction {
    let shares = amounts.into_iter().map(|(counted, amount)| counted.share(amount));
    shares.max().unwrap_or(Fraction::ZERO)
}

/// The next group of a queue, seen among those of other queues. All costs are divided by the weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// What the queue has now.
    pub current: Fraction,
    /// What it would have with this group.
    pub proposed: Fraction,
    /// Its demand-capped share; see [`super::fair_shares`].
    pub budget: Fraction,
    /// The cost of the group alone, times the weight: the group of a heavier queue looks larger.
    pub size: Fraction,
}

impl Candidate {
    /// Which of two goes first by its cost; who else is equal is told apart by name. The one with the
    /// smaller proposed cost, or with `prefer_large`: one within its budget before one beyond, of two
    /// within the one that has less and of those that have the same the larger group.
    pub fn compare(&self, other: &Candidate, prefer_large: bool) -> Ordering {
        let by_proposed = self.proposed.cmp(&other.proposed);
        if !prefer_large {
            return by_proposed;
        }
        match (self.proposed <= self.budget, other.proposed <= other.budget) {
            (true, true) => self.current.cmp(&other.current).then_with(|| other.size.cmp(&self.size)),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => by_proposed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::ratio::Weight;

    /// Totals of foo, bar and baz with their multipliers, an allocation in thousandths; the considered
    /// resources come first.
    fn cost_of(totals: &[(i64, u64)], allocation: &[i64]) -> Fraction {
        let counted: Vec<Counted> = totals
            .iter()
            .map(|(total, multiplier)| Counted { total: total * 1_000, multiplier: *multiplier })
            .collect();
        cost(counted.iter().zip(allocation.iter().copied()))
    }

    #[test]
    fn the_largest_share_of_a_considered_resource_is_the_cost() {
        // foo 1 and bar 2 count, baz does not.
        assert_eq!(cost_of(&[(1, 0), (2, 0)], &[500, 0]), Fraction::new(1, 2));
        // There is no bar at all.
        assert_eq!(cost_of(&[(1, 0), (0, 0)], &[500, 2_000]), Fraction::new(1, 2));
        // Half of what there is of bar counts for half.
        assert_eq!(cost_of(&[(1, MULTIPLIER_ONE), (2, 500_000)], &[500, 2_000]), Fraction::new(1, 2));
        assert_eq!(cost_of(&[(1, 0), (2, 0)], &[500, 2_000]), Fraction::new(1, 1));
        assert_eq!(cost_of(&[(1, 0), (2, 3_000_000)], &[0, 1_000]), Fraction::new(3, 2));
        assert_eq!(cost_of(&[(1, 0), (2, 0)], &[-500, -1]), Fraction::ZERO);
        assert_eq!(cost_of(&[], &[]), Fraction::ZERO);
    }

    #[test]
    fn a_heavier_queue_pays_less() {
        let two = Weight::from_number(2.0).expect("a weight");
        let half = cost_of(&[(1, 0), (2, 0)], &[500, 0]);
        assert_eq!(half.over(two), Fraction::new(1, 4).over(Weight::ONE));
        assert!(half.over(two) < half.over(Weight::ONE));
    }

    #[test]
    fn the_largest_amounts_stay_exact() {
        let counted = Counted { total: i64::MAX, multiplier: u64::MAX };
        let full = cost([(&counted, i64::MAX)]).over(Weight::MAX);
        let less = cost([(&counted, i64::MAX - 1)]).over(Weight::MAX);
        assert!(less < full);
    }

    fn candidate(proposed: u128, current: u128, budget: u128, size: u128) -> Candidate {
        let whole = |number| Fraction::new(number, 1);
        Candidate {
            current: whole(current),
            proposed: whole(proposed),
            budget: whole(budget),
            size: whole(size),
        }
    }

    fn order(prefer_large: bool, mut candidates: Vec<(&'static str, Candidate)>) -> String {
        candidates.sort_by(|one, other| one.1.compare(&other.1, prefer_large).then(one.0.cmp(other.0)));
        candidates.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn within_the_budget_the_one_that_has_least_goes_first_then_the_larger_group() {
        let equal =
            vec![("A", candidate(2, 0, 5, 2)), ("B", candidate(3, 0, 5, 3)), ("C", candidate(1, 0, 5, 1))];
        assert_eq!(order(true, equal.clone()), "BAC");
        assert_eq!(order(false, equal), "CAB");
        let unequal =
            vec![("A", candidate(4, 2, 5, 2)), ("B", candidate(3, 2, 5, 1)), ("C", candidate(2, 1, 5, 1))];
        assert_eq!(order(true, unequal), "CAB");
    }

    #[test]
    fn beyond_the_budget_the_smaller_proposed_cost_goes_first_and_all_within_before() {
        let beyond =
            vec![("A", candidate(9, 0, 5, 9)), ("B", candidate(8, 7, 5, 1)), ("C", candidate(5, 4, 5, 1))];
        assert_eq!(order(true, beyond), "CBA");
    }

    #[test]
    fn equals_are_told_apart_by_name() {
        let equals = ["B", "C", "A"].map(|name| (name, candidate(0, 0, 0, 0)));
        assert_eq!(order(true, equals.to_vec()), "ABC");
    }
}
