//! How amounts are written: `2`, `0.5`, `"500m"`, `"4Gi"`, and counted: in whole base units.

use thiserror::Error;

/// The base unit of a resource kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Thousandths: two and a half cores are 2,500.
    Thousandth,
    /// Whole units: memory and disk are counted in bytes.
    Whole,
}

/// Why a text or number is no amount.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum QuantityError {
    #[error("expected a number such as 2, 0.5, \"500m\" or \"4Gi\"")]
    Malformed,
    #[error("an amount cannot be negative")]
    Negative,
    #[error("larger than any amount that can be counted")]
    TooLarge,
    #[error("finer than the unit of this kind")]
    TooFine,
}

const SUFFIXES: [(&str, u64); 12] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];

impl Unit {
    pub fn of_kind(name: &str) -> Unit {
        match name {
            "memory" | "disk" | "storage" => Unit::Whole,
            _ => Unit::Thousandth,
        }
    }

    fn base_units_in_one(self) -> u64 {
        match self {
            Unit::Thousandth => 1_000,
            Unit::Whole => 1,
        }
    }

    /// An amount in base units from text such as `2`, `0.5`, `500m` or `4Gi`.
    pub fn parse(self, text: &str) -> Result<i64, QuantityError> {
        let text = text.trim();
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let negative = unsigned.len() < text.len();
        let (digits, multiplier, divisor) = split_suffix(unsigned);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let well_formed = !(whole.is_empty() && fraction.is_empty())
            && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
        if !well_formed {
            return Err(QuantityError::Malformed);
        }
        let base = self.scale(whole, fraction, multiplier, divisor)?;
        match negative && base != 0 {
            true => Err(QuantityError::Negative),
            false => Ok(base),
        }
    }

    /// An amount in base units from a plain number.
    pub fn from_number(self, number: f64) -> Result<i64, QuantityError> {
        if !number.is_finite() {
            return Err(QuantityError::Malformed);
        }
        // The shortest text that reads back as this number is what its author wrote.
        self.parse(&format!("{number}"))
    }

    /// An amount in base units from a whole number.
    pub fn from_whole(self, number: i64) -> Result<i64, QuantityError> {
        self.parse(&number.to_string())
    }

    /// The text of an amount, in whole units with decimals where needed.
    pub fn format(self, amount: i64) -> String {
        let one = self.base_units_in_one() as i64;
        let (whole, rest) = (amount / one, (amount % one).abs());
        if one == 1 {
            return format_bytes(amount);
        }
        if rest == 0 {
            return whole.to_string();
        }
        let sign = if amount < 0 && whole == 0 { "-" } else { "" };
        format!("{sign}{whole}.{}", format!("{rest:03}").trim_end_matches('0'))
    }

    fn scale(self, whole: &str, fraction: &str, multiplier: u64, divisor: u64) -> Result<i64, QuantityError> {
        const DIGITS_MAX: usize = 18;
        let fraction = fraction.trim_end_matches('0');
        let whole = whole.trim_start_matches('0');
        if whole.len() > DIGITS_MAX {
            return Err(QuantityError::TooLarge);
        }
        if fraction.len() > DIGITS_MAX {
            return Err(QuantityError::TooFine);
        }
        let power = 10u128.pow(fraction.len() as u32);
        let digits: u128 = format!("0{whole}{fraction}").parse().map_err(|_| QuantityError::Malformed)?;
        let scaled = digits
            .checked_mul(u128::from(multiplier) * u128::from(self.base_units_in_one()))
            .ok_or(QuantityError::TooLarge)?;
        let divisor = power * u128::from(divisor);
        if scaled % divisor != 0 {
            return Err(QuantityError::TooFine);
        }
        let base = scaled / divisor;
        if base > crate::resources::AMOUNT_MAX as u128 {
            return Err(QuantityError::TooLarge);
        }
        Ok(base as i64)
    }
}

fn split_suffix(text: &str) -> (&str, u64, u64) {
    for (suffix, multiplier) in SUFFIXES {
        if let Some(digits) = text.strip_suffix(suffix) {
            return (digits, multiplier, 1);
        }
    }
    match text.strip_suffix('m') {
        Some(digits) => (digits, 1, 1_000),
        None => (text, 1, 1),
    }
}

fn format_bytes(amount: i64) -> String {
    for (suffix, multiplier) in [("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)] {
        if amount != 0 && amount % multiplier == 0 {
            return format!("{}{suffix}", amount / multiplier);
        }
    }
    amount.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        assert_eq!(Unit::Thousandth.parse("2"), Ok(2_000));
        assert_eq!(Unit::Thousandth.parse("0.5"), Ok(500));
        assert_eq!(Unit::Thousandth.parse("500m"), Ok(500));
        assert_eq!(Unit::Whole.parse("4Gi"), Ok(4 << 30));
        assert_eq!(Unit::Whole.parse("1.5Ki"), Ok(1_536));
        assert_eq!(Unit::Thousandth.from_number(2.5), Ok(2_500));
    }

    #[test]
    fn what_cannot_be_counted_says_why() {
        assert_eq!(Unit::Thousandth.parse("-1"), Err(QuantityError::Negative));
        assert_eq!(Unit::Thousandth.parse("two"), Err(QuantityError::Malformed));
        assert_eq!(Unit::Thousandth.parse(""), Err(QuantityError::Malformed));
        assert_eq!(Unit::Thousandth.parse("0.0001"), Err(QuantityError::TooFine));
        assert_eq!(Unit::Whole.parse("0.5"), Err(QuantityError::TooFine));
        assert_eq!(Unit::Whole.parse("99999Ei"), Err(QuantityError::TooLarge));
        assert_eq!(Unit::Thousandth.from_number(f64::NAN), Err(QuantityError::Malformed));
    }

    #[test]
    fn amounts_print_as_people_read_them() {
        assert_eq!(Unit::Thousandth.format(2_500), "2.5");
        assert_eq!(Unit::Thousandth.format(-500), "-0.5");
        assert_eq!(Unit::Whole.format(4 << 30), "4Gi");
        assert_eq!(Unit::Whole.format(1_000), "1000");
    }
}
