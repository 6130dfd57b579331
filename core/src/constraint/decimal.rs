//! Decimal numbers of any length, compared as they are written: nothing is rounded, nothing overflows.

use std::cmp::Ordering;
use std::fmt;

/// The parts of a number, without zeros that mean nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decimal<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Decimal<'a> {
    /// Reads `2`, `-0.5`, `+3`, `.5` and `5.`, and nothing else.
    pub(super) fn parse(text: &'a str) -> Option<Decimal<'a>> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let is_number = !(whole.is_empty() && fraction.is_empty())
            && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        if !is_number {
            return None;
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let is_zero = whole.is_empty() && fraction.is_empty();
        Some(Decimal { is_negative: text.starts_with('-') && !is_zero, whole, fraction })
    }

    pub(super) fn compare(self, other: Decimal<'_>) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.compare_size(other),
            (true, true) => self.compare_size(other).reverse(),
        }
    }

    /// Without leading zeros the longer whole part is the larger; digits after the point compare from
    /// the left.
    fn compare_size(self, other: Decimal<'_>) -> Ordering {
        let lengths = self.whole.len().cmp(&other.whole.len());
        lengths.then_with(|| (self.whole, self.fraction).cmp(&(other.whole, other.fraction)))
    }
}

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        let whole = if self.whole.is_empty() { "0" } else { self.whole };
        let point = if self.fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{}", self.fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_size_and_not_by_letters() {
        let in_order = ["-10", "-9.5", "-.25", "0", "0.05", "0.5", "5", "5.01", "10", "99999999999999999999"];
        for (at, left) in in_order.iter().enumerate() {
            for (other, right) in in_order.iter().enumerate() {
                let (one, two) = (Decimal::parse(left), Decimal::parse(right));
                let compared = one.zip(two).map(|(one, two)| one.compare(two));
                assert_eq!(compared, Some(at.cmp(&other)), "{left} and {right}");
            }
        }
    }

    #[test]
    fn one_number_has_one_text() {
        let text = |text| Decimal::parse(text).map(|number| number.to_string());
        for (given, printed) in
            [("+007.50", "7.5"), ("-0.0", "0"), (".5", "0.5"), ("5.", "5"), ("-12", "-12"), ("00", "0")]
        {
            assert_eq!(text(given).as_deref(), Some(printed));
        }
        for no_number in ["", ".", "-", "+-1", "1e3", "0x10", "1.2.3", " 1", "1 ", "five", "٣", "NaN"] {
            assert_eq!(text(no_number), None, "{no_number}");
        }
    }
}
