//! Weights, and fractions compared exactly.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// How much a share counts, in millionths; never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Weight(u64);

impl Weight {
    pub const ONE: Weight = Weight(1_000_000);
    /// The largest weight: a million.
    pub const MAX: Weight = Weight(1_000_000_000_000);

    /// `None` for zero and for more than [`Weight::MAX`].
    pub fn from_millionths(millionths: u64) -> Option<Weight> {
        (1..=Weight::MAX.0).contains(&millionths).then_some(Weight(millionths))
    }

    /// From a number of a file, rounded to millionths; `None` for what is no weight.
    pub fn from_number(number: f64) -> Option<Weight> {
        let millionths = (number * Weight::ONE.0 as f64).round();
        let in_range = (1.0..=Weight::MAX.0 as f64).contains(&millionths);
        in_range.then_some(Weight(millionths as u64))
    }

    pub fn millionths(self) -> u64 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Weight {
        Weight::ONE
    }
}

impl TryFrom<u64> for Weight {
    type Error = &'static str;

    fn try_from(millionths: u64) -> Result<Weight, &'static str> {
        Weight::from_millionths(millionths).ok_or("a weight is between a millionth and a million")
    }
}

impl From<Weight> for u64 {
    fn from(weight: Weight) -> u64 {
        weight.0
    }
}

/// A non-negative fraction, not necessarily in lowest terms; the denominator is never zero.
/// Equality and order are those of the numbers, exact over the whole range.
#[derive(Clone, Copy, Debug)]
pub struct Fraction {
    numerator: u128,
    denominator: u128,
}

impl Fraction {
    pub const ZERO: Fraction = Fraction { numerator: 0, denominator: 1 };

    /// A denominator of zero makes zero: a share of nothing counts nothing.
    pub fn new(numerator: u128, denominator: u128) -> Fraction {
        match denominator {
            0 => Fraction::ZERO,
            _ => Fraction { numerator, denominator },
        }
    }

    /// This fraction divided by a weight of millionths; exact for denominators below 2^88, which the
    /// costs of [`super::dominant`] have.
    pub fn over(self, weight: Weight) -> Fraction {
        let denominator = self.denominator.saturating_mul(u128::from(weight.0));
        Fraction { numerator: self.numerator, denominator }
    }

    /// This fraction times a weight of millionths; exact for numerators below 2^88, larger products
    /// stay at the limit.
    pub fn times(self, weight: Weight) -> Fraction {
        let numerator = self.numerator.saturating_mul(u128::from(weight.0));
        Fraction { numerator, denominator: self.denominator }
    }

    /// `floor(self * scale)`, at most `u64::MAX`.
    pub fn scaled(self, scale: u64) -> u64 {
        let whole = (self.numerator / self.denominator).saturating_mul(u128::from(scale));
        let rest = self.numerator % self.denominator;
        let part = match rest.checked_mul(u128::from(scale)) {
            Some(product) => product / self.denominator,
            None => long_division(rest, scale, self.denominator),
        };
        u64::try_from(whole.saturating_add(part)).unwrap_or(u64::MAX)
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Fraction) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Fraction {}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> Ordering {
        compare_products((self.numerator, other.denominator), (other.numerator, self.denominator))
    }
}

/// `floor(part * scale / whole)` for a part below the whole, bit by bit.
fn long_division(part: u128, scale: u64, whole: u128) -> u128 {
    let (mut quotient, mut rest) = (0, 0);
    for bit in (0..u64::BITS).rev() {
        let (carry, doubled) = add_below(rest, rest, whole);
        let (further, sum) = match scale >> bit & 1 {
            1 => add_below(doubled, part, whole),
            _ => (0, doubled),
        };
        quotient = 2 * quotient + carry + further;
        rest = sum;
    }
    quotient
}

/// The sum of two numbers below `whole`, as how often it holds the whole, and the rest.
fn add_below(one: u128, other: u128, whole: u128) -> (u128, u128) {
    match one >= whole - other {
        true => (1, one - (whole - other)),
        false => (0, one + other),
    }
}

/// Compares two products exactly.
pub fn compare_products(one: (u128, u128), other: (u128, u128)) -> Ordering {
    match (one.0.checked_mul(one.1), other.0.checked_mul(other.1)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => wide_product(one).cmp(&wide_product(other)),
    }
}

/// The product as its upper and lower 128 bits.
fn wide_product((one, other): (u128, u128)) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (one_high, one_low) = (one >> 64, one & LOW);
    let (other_high, other_low) = (other >> 64, other & LOW);
    let low = one_low * other_low;
    let first = one_high * other_low + (low >> 64);
    let second = one_low * other_high + (first & LOW);
    let high = one_high * other_high + (first >> 64) + (second >> 64);
    (high, (second << 64) | (low & LOW))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fractions_are_compared_as_numbers() {
        assert_eq!(Fraction::new(1, 3), Fraction::new(2, 6));
        assert!(Fraction::new(1, 3) < Fraction::new(334, 1_000));
        assert_eq!(Fraction::new(5, 0), Fraction::ZERO);
        let large = u128::MAX;
        assert!(Fraction::new(large - 1, large) < Fraction::new(large, large));
        assert!(Fraction::new(large - 1, large) > Fraction::new(large - 2, large - 1));
    }

    #[test]
    fn weights_divide_and_multiply() {
        let two = Weight::from_number(2.0).expect("a weight");
        assert_eq!(Fraction::new(1, 2).over(two), Fraction::new(1, 4_000_000));
        assert_eq!(Fraction::new(1, 2).times(two), Fraction::new(1_000_000, 1));
        for bad in [0.0, -1.0, f64::NAN, 1e7, 1e-7] {
            assert_eq!(Weight::from_number(bad), None, "{bad}");
        }
        assert_eq!(Weight::from_number(1e6), Some(Weight::MAX));
        assert_eq!(serde_json::from_str::<Weight>("2000000").ok(), Some(two));
        assert!(serde_json::from_str::<Weight>("0").is_err());
    }

    #[test]
    fn fractions_are_scaled_down_to_whole_numbers() {
        assert_eq!(Fraction::new(1, 3).scaled(1_000), 333);
        assert_eq!(Fraction::new(7, 2).scaled(10), 35);
        assert_eq!(Fraction::new(u128::MAX, 1).scaled(10), u64::MAX);
        assert_eq!(Fraction::new(u128::MAX / 2, u128::MAX).scaled(1 << 32), (1 << 31) - 1);
    }

    proptest! {
        #[test]
        fn wide_products_agree_with_long_multiplication(one: u128, other: u128) {
            // In 32-bit digits, as one learns it at school.
            let digits = |number: u128| (0..4).map(move |at| number >> (32 * at) & 0xffff_ffff);
            let mut columns = [0_u128; 8];
            for (at, one) in digits(one).enumerate() {
                for (by, other) in digits(other).enumerate() {
                    let product = one * other;
                    columns[at + by] += product & 0xffff_ffff;
                    columns[at + by + 1] += product >> 32;
                }
            }
            let mut carry = 0;
            for column in &mut columns {
                let sum = *column + carry;
                (*column, carry) = (sum & 0xffff_ffff, sum >> 32);
            }
            let join = |digits: &[u128]| digits.iter().rev().fold(0, |sum, digit| sum << 32 | digit);
            prop_assert_eq!(wide_product((one, other)), (join(&columns[4..]), join(&columns[..4])));
        }
    }
}
