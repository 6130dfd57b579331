//! Amounts, lengths of time and texts as services write them, turned into what the machines know.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use plimsoll_core::quantity::QuantityError;
use plimsoll_core::resources::Resources;
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::{Invalid, Problem, Units};
use plimsoll_core::time::Span;

/// An amount of a resource: `2`, `0.5`, `"500m"` or `"4Gi"`.
#[derive(Clone, PartialEq, Debug)]
pub enum Amount {
    /// A whole number.
    Whole(i64),
    /// A number with decimals.
    Number(f64),
    /// A text, with or without a suffix.
    Text(String),
    /// So many units of a node, each under its own name. Only nodes offer those; tasks ask for a number.
    Units(Vec<String>),
}

macro_rules! amount_from {
    ($($from:ty => $variant:ident),+) => {
        $(impl From<$from> for Amount {
            fn from(amount: $from) -> Amount {
                Amount::$variant(amount.into())
            }
        })+
    };
}

amount_from!(i32 => Whole, u32 => Whole, i64 => Whole, f64 => Number, &str => Text, String => Text);

/// Texts that all mean something; the first that does not is named.
pub(super) fn parsed<T>(
    field: impl Display + Copy,
    name: &str,
    texts: &[String],
    parse: impl Fn(&str) -> Option<T>,
    problem: &Problem,
) -> Result<Vec<T>, Invalid> {
    let one = |(index, text): (usize, &String)| {
        let invalid = || Invalid::new(format!("{field}.{name}[{index}]"), text, problem.clone());
        parse(text).ok_or_else(invalid)
    };
    texts.iter().enumerate().map(one).collect()
}

pub(super) fn optional_span(
    field: impl Display + Copy,
    name: &str,
    duration: Option<Duration>,
) -> Result<Option<Span>, Invalid> {
    duration.map(|duration| span(format_args!("{field}.{name}"), duration)).transpose()
}

pub(super) fn span(field: impl Display + Copy, duration: Duration) -> Result<Span, Invalid> {
    let too_long = || Invalid::new(field, format!("{duration:?}"), Problem::DurationTooLong);
    Span::from_seconds(duration.as_secs_f64()).ok_or_else(too_long)
}

/// What a node offers, with the names of its units where they have some.
pub(crate) fn offered(
    field: &str,
    amounts: &BTreeMap<String, Amount>,
    settings: &Settings,
) -> Result<(Resources, Units), Invalid> {
    let is_counted = |(_, amount): &(&String, &Amount)| !matches!(amount, Amount::Units(_));
    let counted = amounts.iter().filter(is_counted).map(|(name, amount)| (name.clone(), amount.clone()));
    let mut capacity = resources(field, &counted.collect(), settings)?;
    let mut units = Units::default();
    for (name, amount) in amounts {
        let Amount::Units(names) = amount else { continue };
        let unknown = || Invalid::new(field, name, Problem::UnknownKind);
        let kind = settings.kinds.id(name).ok_or_else(unknown)?;
        units.offer(kind, names.iter().map(|name| name.as_str().into()).collect(), &mut capacity);
    }
    Ok((capacity, units))
}

pub(crate) fn resources(
    field: impl Display + Copy,
    amounts: &BTreeMap<String, Amount>,
    settings: &Settings,
) -> Result<Resources, Invalid> {
    let mut resources = Resources::new();
    for (name, amount) in amounts {
        let Some(kind) = settings.kinds.id(name) else {
            return Err(Invalid::new(field, name, Problem::UnknownKind));
        };
        let unit = settings.kinds.unit(kind);
        let (base, shown) = match amount {
            Amount::Whole(number) => (unit.from_whole(*number), number.to_string()),
            Amount::Number(number) => (unit.from_number(*number), number.to_string()),
            Amount::Text(text) => (unit.parse(text), text.clone()),
            Amount::Units(names) => (Err(QuantityError::Malformed), format!("{} names", names.len())),
        };
        let wrong = |error: QuantityError| Problem::NoAmount { why: error.to_string() };
        let base = base.map_err(|error| Invalid::new(format!("{field}.{name}"), shown, wrong(error)))?;
        resources.set(kind, base);
    }
    Ok(resources)
}
