//! Fair shares of a pool, plain and adjusted to what queues can use.
//!
//! Shares are whole numbers of `10^-18` of the pool, rounded down at each step; ten rounds over a
//! thousand queues lose less than `10^-14` of it.

use super::dominant::{Counted, cost};
use super::ratio::Weight;

/// The whole pool.
pub const WHOLE: u64 = 1_000_000_000_000_000_000;

/// What is handed round again ends at one percent of the pool or after this many rounds.
const LEFT_OVER_MAX: u64 = WHOLE / 100;
const ROUNDS_MAX: usize = 10;

/// A queue with something running or waiting in the pool, and what it may expect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueShare {
    weight: Weight,
    demand: u64,
    /// What the weight alone gives.
    pub fair: u64,
    /// What it gets when nobody gets more than it can use.
    pub demand_capped: u64,
    /// What it would get if its own demand were unlimited.
    pub uncapped: u64,
    /// What the queue gave back in the last round.
    returned: u64,
    has_enough: bool,
}

impl QueueShare {
    /// `demand` is a share of the pool, such as [`demand_share`] computes.
    pub fn new(weight: Weight, demand: u64) -> QueueShare {
        let (fair, demand_capped, uncapped, returned) = (0, 0, 0, 0);
        QueueShare { weight, demand, fair, demand_capped, uncapped, returned, has_enough: false }
    }

    fn part_of(&self, amount: u64, weights: u128) -> u64 {
        let weight = u128::from(self.weight.millionths());
        // Below 2^60 times 2^40; the result is at most `amount`.
        (u128::from(amount) * weight / weights) as u64
    }
}

/// The share of the pool that a demand asks for. In a pool that has nothing of what counts every
/// demand is read as the whole.
pub fn demand_share<'a>(amounts: impl IntoIterator<Item = (&'a Counted, i64)>) -> u64 {
    let mut has_anything = false;
    let amounts = amounts.into_iter().inspect(|(counted, _)| has_anything |= counted.total > 0);
    let share = cost(amounts).scaled(WHOLE);
    if has_anything { share } else { WHOLE }
}

/// Computes the shares of all queues of a pool.
///
/// The pool is handed out by weight; a queue that gets more than its demand keeps the demand and
/// returns the rest, which is handed round again among those that have not enough, until little is
/// left. Uncapped, a queue that has enough goes on to take part in what *others* return.
pub fn adjust(queues: &mut [QueueShare]) {
    let all: u128 = queues.iter().map(|queue| u128::from(queue.weight.millionths())).sum();
    for queue in queues.iter_mut() {
        *queue = QueueShare::new(queue.weight, queue.demand);
        queue.fair = queue.part_of(WHOLE, all);
    }
    let mut to_share = WHOLE;
    for _ in 0..ROUNDS_MAX {
        if to_share <= LEFT_OVER_MAX {
            return;
        }
        to_share = round(queues, to_share);
    }
}

/// One round; returns what came back.
fn round(queues: &mut [QueueShare], to_share: u64) -> u64 {
    let short = queues.iter().filter(|queue| !queue.has_enough);
    let weights: u128 = short.map(|queue| u128::from(queue.weight.millionths())).sum();
    let mut returned = 0;
    for queue in queues {
        if queue.has_enough {
            let of_others = to_share - queue.returned;
            let with_own = weights + u128::from(queue.weight.millionths());
            queue.uncapped += queue.part_of(of_others, with_own);
            queue.returned = 0;
            continue;
        }
        let part = queue.part_of(to_share, weights);
        queue.uncapped += part;
        queue.demand_capped += part;
        if queue.demand_capped > queue.demand {
            queue.returned = queue.demand_capped - queue.demand;
            queue.demand_capped = queue.demand;
            queue.has_enough = true;
            returned += queue.returned;
        }
    }
    returned
}

/// How much all queues together are short of their demand-capped shares; `actual` is the share of the
/// pool that a queue has.
pub fn shortfall(queues: impl IntoIterator<Item = (u64, u64)>) -> u64 {
    queues.into_iter().map(|(demand_capped, actual)| demand_capped.saturating_sub(actual)).sum()
}

/// What a new queue with unlimited demand would get beside these.
pub fn theoretical_share(queues: &[QueueShare], weight: Weight) -> u64 {
    let mut with_new: Vec<QueueShare> = queues.to_vec();
    with_new.push(QueueShare::new(weight, WHOLE));
    adjust(&mut with_new);
    with_new[queues.len()].demand_capped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues of (weight, demand) in a pool.
    fn shares(capacity: i64, queues: &[(f64, i64)]) -> Vec<QueueShare> {
        let pool = Counted::new(capacity);
        let queue = |(weight, demand): &(f64, i64)| {
            let weight = Weight::from_number(*weight).expect("a weight");
            QueueShare::new(weight, demand_share([(&pool, *demand)]))
        };
        let mut shares: Vec<QueueShare> = queues.iter().map(queue).collect();
        adjust(&mut shares);
        shares
    }

    /// Fair, demand-capped and uncapped shares per queue.
    fn check(capacity: i64, queues: &[(f64, i64)], expected: &[[f64; 3]]) {
        for (share, expected) in shares(capacity, queues).iter().zip(expected) {
            let ours = [share.fair, share.demand_capped, share.uncapped].map(|one| one as f64 / WHOLE as f64);
            for (one, other) in ours.iter().zip(expected) {
                assert!((one - other).abs() < 1e-12, "{capacity} {queues:?}: {ours:?} {expected:?}");
            }
        }
    }

    const THIRD: f64 = 1.0 / 3.0;

    #[test]
    fn shares_follow_weights_and_demands() {
        check(100, &[(1.0, 1_000)], &[[1.0, 1.0, 1.0]]);
        check(100, &[(1.0, 1)], &[[1.0, 0.01, 1.0]]);
        check(100, &[(1.0, 1_000); 2], &[[0.5, 0.5, 0.5]; 2]);
        check(100, &[(1.0, 1_000), (3.0, 1)], &[[0.25, 0.99, 0.99], [0.75, 0.01, 0.75]]);
    }

    #[test]
    fn what_is_returned_goes_round_again() {
        let expected = [[THIRD, 0.01, 0.380_833_333_333_333_3], [THIRD, 0.4, 0.495], [THIRD, 0.59, 0.59]];
        check(100, &[(1.0, 1), (1.0, 40), (1.0, 1_000)], &expected);
    }

    #[test]
    fn queues_without_demand_and_pools_without_capacity_have_shares() {
        check(100, &[(1.0, 0); 3], &[[THIRD, 0.0, 1.0]; 3]);
        check(0, &[(1.0, 1); 3], &[[THIRD, THIRD, THIRD]; 3]);
        adjust(&mut []);
    }

    #[test]
    fn rounds_end_after_ten() {
        // Each weighs twelve times the next and wants 9.2%: each round satisfies one queue.
        let weight = |at: u32| Weight::from_millionths(12_u64.pow(11 - at)).expect("a weight");
        let mut shares: Vec<QueueShare> =
            (0..12).map(|at| QueueShare::new(weight(at), WHOLE / 1_000 * 92)).collect();
        adjust(&mut shares);
        let satisfied: Vec<bool> = shares.iter().map(|share| share.has_enough).collect();
        assert_eq!(satisfied, [vec![true; ROUNDS_MAX], vec![false; 2]].concat());
        let sum: u64 = shares.iter().map(|share| share.demand_capped).sum();
        assert!(sum < WHOLE - LEFT_OVER_MAX, "more than one percent is left over: {sum}");
        let before = shares.clone();
        adjust(&mut shares);
        assert_eq!(shares, before, "computing again changes nothing");
    }

    #[test]
    fn nobody_gets_more_than_the_demand_and_all_no_more_than_the_pool() {
        for seed in 0..200_i64 {
            let queues: Vec<(f64, i64)> =
                (1..=12).map(|at| ((seed * at % 7 + 1) as f64 / 2.0, seed * at * at % 31 * 10)).collect();
            let shares = shares(300, &queues);
            let sum: u64 = shares.iter().map(|share| share.demand_capped).sum();
            assert!(sum <= WHOLE);
            for share in &shares {
                assert!(share.demand_capped <= share.demand && share.demand_capped <= share.uncapped);
                assert!(share.uncapped >= share.fair);
            }
            let wanted: u64 = shares.iter().map(|share| share.demand).sum();
            assert!(sum + 1_000 >= wanted.min(WHOLE - LEFT_OVER_MAX), "{sum} of {wanted}");
        }
    }

    #[test]
    fn a_new_queue_gets_what_others_leave() {
        let near = |share: u64, expected: f64| (share as f64 / WHOLE as f64 - expected).abs() < 1e-12;
        assert!(near(theoretical_share(&shares(100, &[(2.0, 1_000)]), Weight::ONE), THIRD));
        assert!(near(theoretical_share(&shares(100, &[(1.0, 1)]), Weight::ONE), 0.99));
    }

    #[test]
    fn the_shortfall_is_summed_over_those_below() {
        let percent = WHOLE / 100;
        assert_eq!(shortfall([(50 * percent, 50 * percent); 2]), 0);
        assert_eq!(shortfall([(50 * percent, 40 * percent)]), 10 * percent);
        assert_eq!(shortfall([(50 * percent, 100 * percent)]), 0);
        assert_eq!(shortfall([]), 0);
    }
}
