//! What is checked of many fields alike: lengths, numbers, amounts and hops.

use crate::resources::{AMOUNT_MAX, KindId, Resources};
use crate::settings::Settings;
use std::fmt::Display;

use super::{HOPS_MAX, Hops, Invalid, Problem, Start};

pub(super) fn check_hops(field: impl Display + Copy, hops: Option<Hops>, start: Start) -> Option<Invalid> {
    let (value, is_wide) = match hops? {
        Hops::Fewest => ("fewest".to_owned(), false),
        Hops::AtMost(hops) => (hops.to_string(), hops > HOPS_MAX),
    };
    let problem = match start {
        Start::Independent => Problem::NeedsAtomic,
        Start::Atomic => is_wide.then_some(Problem::TooManyHops { limit: HOPS_MAX })?,
    };
    Some(Invalid::new(format!("{field}.hops"), value, problem))
}

pub(super) fn check_length(field: impl Display + Copy, value: &str, limit: u64) -> Option<Invalid> {
    let is_long = value.len() as u64 > limit;
    is_long.then(|| Invalid::new(field, value, Problem::TooLong { limit }))
}

pub(super) fn check_count(field: impl Display + Copy, count: usize, limit: u64) -> Option<Invalid> {
    let is_many = count as u64 > limit;
    is_many.then(|| Invalid::new(field, count, Problem::TooMany { limit }))
}

pub(super) fn note_amounts(
    field: impl Display + Copy,
    amounts: &Resources,
    settings: &Settings,
    problems: &mut Vec<Invalid>,
) {
    if amounts.amounts().len() > settings.kinds.len() {
        let unknown = KindId(settings.kinds.len() as u16);
        problems.push(Invalid::new(field, format!("kind number {}", unknown.0), Problem::UnknownKind));
        return;
    }
    for (kind, amount) in amounts.iter().filter(|(_, amount)| !(0..=AMOUNT_MAX).contains(amount)) {
        let field = format_args!("{field}.{}", settings.kinds.name(kind));
        problems.push(Invalid::new(field, amount, Problem::AmountOutOfRange { limit: AMOUNT_MAX }));
    }
}
