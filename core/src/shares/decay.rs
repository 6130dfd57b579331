//! Half-lives in integers: `0.5 ^ (elapsed / half)`, the same bits on every machine.
//!
//! The exponent is split into whole half-lives, which shift, and a fraction of 48 bits, rounded down.
//! The fraction is cut into eight digits of 6 bits; a table holds `2 ^ -(digit * 64 ^ -place)` for
//! each, and the result is their product. Tables are made at compile time from square roots of one
//! half, in integers too.
//!
//! Error: 48 roots and 56 products, each rounded down, put a result off by less than `2^-54` of its
//! value; cutting the exponent makes it larger by less than `2^-48.5` of it. So a result before its
//! shift is within `2^-48` of the truth. One step of the exponent changes it by `2^-48.5`, much more
//! than rounding does, so results never rise with time. Whole half-lives are exact.

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// Digits of the fraction of a half-life, and bits per digit.
const PLACES: usize = 8;
const DIGIT_BITS: u32 = 6;
const DIGITS: usize = 1 << DIGIT_BITS;
const FRACTION_BITS: u32 = PLACES as u32 * DIGIT_BITS;

/// One, with 63 bits behind the point.
const POINT: u32 = 63;
const ONE: u64 = 1 << POINT;

const TABLES: &[[u64; DIGITS]; PLACES] = &tables();

/// What is left of something after a time: a factor between zero and one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Decay(u64);

impl Decay {
    /// Nothing is lost.
    pub const NONE: Decay = Decay(ONE);

    /// `0.5 ^ (elapsed / half)`. With a half-life of zero nothing outlasts its moment.
    pub fn after(elapsed: Span, half: Span) -> Decay {
        if elapsed.is_zero() {
            return Decay::NONE;
        }
        if half.is_zero() {
            return Decay(0);
        }
        let halvings = elapsed.0 / half.0;
        if halvings > u64::from(POINT) {
            return Decay(0);
        }
        let rest = u128::from(elapsed.0 % half.0) << FRACTION_BITS;
        let fraction = (rest / u128::from(half.0)) as u64;
        let mut factor = ONE;
        for (place, table) in TABLES.iter().enumerate() {
            let shift = FRACTION_BITS - DIGIT_BITS * (place as u32 + 1);
            let digit = (fraction >> shift) as usize % DIGITS;
            if digit != 0 {
                factor = product(factor, table[digit]);
            }
        }
        Decay(factor >> halvings)
    }

    /// What is left of `amount`, rounded down.
    pub fn of(self, amount: u128) -> u128 {
        let (high, low) = (amount >> 64, amount & u128::from(u64::MAX));
        // Above the lower 64 bits everything is even, so nothing is lost by the order of the steps.
        ((high * u128::from(self.0)) << 1) + ((low * u128::from(self.0)) >> POINT)
    }

    /// The factor as a number, for figures shown to people.
    pub fn as_number(self) -> f64 {
        self.0 as f64 / ONE as f64
    }
}

const fn product(one: u64, other: u64) -> u64 {
    ((one as u128 * other as u128) >> POINT) as u64
}

/// `tables()[place][digit]` is `2 ^ -(digit / 64 ^ (place + 1))`.
const fn tables() -> [[u64; DIGITS]; PLACES] {
    let mut tables = [[ONE; DIGITS]; PLACES];
    // The square root of the square root ... of one half: `2 ^ -(2 ^ -n)`.
    let mut root = ONE >> 1;
    let mut place = 0;
    while place < PLACES {
        let mut bit = DIGITS / 2;
        while bit > 0 {
            root = ((root as u128) << POINT).isqrt() as u64;
            let mut digit = 0;
            while digit < DIGITS {
                if digit & bit != 0 {
                    tables[place][digit] = product(tables[place][digit], root);
                }
                digit += 1;
            }
            bit /= 2;
        }
        place += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exactly(elapsed: u64, half: u64) -> f64 {
        (-(elapsed as f64) / half as f64).exp2()
    }

    #[test]
    fn whole_half_lives_are_exact() {
        let half = Span::from_whole_seconds(600);
        for count in 0..=63 {
            assert_eq!(Decay::after(Span(half.0 * count), half), Decay(ONE >> count));
        }
        assert_eq!(Decay::after(Span(half.0 * 64), half), Decay(0));
        assert_eq!(Decay::after(Span(u64::MAX), half), Decay(0));
    }

    #[test]
    fn known_bits_never_change() {
        // Any change of these is a change of every recorded run.
        let after = |elapsed, half| Decay::after(Span(elapsed), Span(half)).0;
        assert_eq!(after(1, 2), KNOWN[0]);
        assert_eq!(after(1, 3), KNOWN[1]);
        assert_eq!(after(1, 3_600_000_000), KNOWN[2]);
        assert_eq!(after(u64::MAX / 2, u64::MAX), KNOWN[3]);
        assert_eq!(after(123_456_789, 20_000_000), KNOWN[4]);
    }

    const KNOWN: [u64; 5] = [
        6_521_908_912_666_391_106,
        7_320_595_236_998_678_888,
        9_223_372_035_078_910_804,
        6_521_908_912_666_407_120,
        127_843_865_624_432_122,
    ];

    #[test]
    fn no_memory_without_a_half_life() {
        assert_eq!(Decay::after(Span(0), Span(0)), Decay::NONE);
        assert_eq!(Decay::after(Span(1), Span(0)), Decay(0));
    }

    #[test]
    fn entries_of_the_tables_are_close_and_fall() {
        for (place, table) in TABLES.iter().enumerate() {
            for (digit, entry) in table.iter().enumerate() {
                let truth = (-(digit as f64) / 64_f64.powi(place as i32 + 1)).exp2();
                assert!((*entry as f64 / ONE as f64 - truth).abs() < 1e-15, "{place} {digit}");
                assert!(digit == 0 || *entry < table[digit - 1], "{place} {digit}");
            }
        }
    }

    #[test]
    fn what_is_left_is_rounded_down() {
        let half = Decay::after(Span(1), Span(1));
        assert_eq!((half.of(9), half.of(1), half.of(0)), (4, 0, 0));
        assert_eq!(half.of(u128::MAX), u128::MAX / 2);
        assert_eq!(Decay::NONE.of(u128::MAX), u128::MAX);
    }

    proptest! {
        #[test]
        fn the_error_is_as_stated(elapsed in 0_u64..1 << 50, half in 1_u64..1 << 50) {
            let ours = Decay::after(Span(elapsed), Span(half)).as_number();
            let truth = exactly(elapsed, half);
            // The comparison itself is in floating point, good to about 2^-46 for such exponents.
            prop_assert!((ours - truth).abs() <= truth * 2_f64.powi(-44) + 2_f64.powi(-62), "{ours} {truth}");
        }

        #[test]
        fn more_time_never_leaves_more(
            half in prop_oneof![1_u64..1 << 40, 1_u64..100, Just(u64::MAX)], elapsed: u64, more in 0_u64..1 << 40,
        ) {
            let elapsed = elapsed % half.saturating_mul(70).max(1);
            let mut before = Decay::after(Span(elapsed), Span(half));
            for step in [1, 2, 3, more] {
                let after = Decay::after(Span(elapsed.saturating_add(step)), Span(half));
                prop_assert!(after <= before || step == more && after <= Decay::after(Span(elapsed), Span(half)));
                before = after;
            }
        }

        #[test]
        fn neighbours_across_a_carry_fall(places in 1_usize..PLACES, above: u64) {
            // A half-life of 2^48 makes the fraction equal to the time: the carry can be aimed at.
            let half = Span(1 << FRACTION_BITS);
            let carry = 1 << (DIGIT_BITS * places as u32);
            let at = (above % (1 << FRACTION_BITS)) / carry * carry;
            prop_assume!(at > 0);
            prop_assert!(Decay::after(Span(at), half) < Decay::after(Span(at - 1), half));
        }
    }
}
