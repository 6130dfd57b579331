//! Walks a document: every getter answers the value or notes what is wrong with it and goes on, so
//! that one pass finds every fault.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::quantity::{QuantityError, Unit};
use crate::resources::{AMOUNT_MAX, Kinds, Resources};
use crate::time::{SECONDS_MAX, Span, Time};

use super::{Fault, FaultKind, FaultLog, Path, Value, suggest};

/// A value of the document and its place.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    value: &'a Value,
    path: Path<'a>,
    log: &'a FaultLog,
}

/// The fields of a table. Fields nobody asked for are faults.
#[derive(Debug)]
pub struct Fields<'a> {
    entries: &'a [(String, Value)],
    path: Path<'a>,
    log: &'a FaultLog,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Cursor<'a> {
    pub fn root(value: &'a Value, log: &'a FaultLog) -> Cursor<'a> {
        Cursor { value, path: Path::ROOT, log }
    }

    pub fn value(&self) -> &'a Value {
        self.value
    }

    pub fn path(&self) -> &Path<'a> {
        &self.path
    }

    pub fn log(&self) -> &'a FaultLog {
        self.log
    }

    /// The field of a table, when this is a table and has it and it is not null.
    pub fn field(&self, name: &str) -> Option<Cursor<'_>> {
        let Value::Table(entries) = self.value else { return None };
        let (name, value) = entries.iter().find(|(key, _)| key == name)?;
        let is_there = !matches!(value, Value::Null);
        is_there.then_some(Cursor { value, path: self.path.field(name), log: self.log })
    }

    /// The element of a list, when this is a list and has it.
    pub fn item(&self, index: usize) -> Option<Cursor<'_>> {
        let Value::List(items) = self.value else { return None };
        Some(Cursor { value: items.get(index)?, path: self.path.index(index), log: self.log })
    }

    /// Notes a fault of this value.
    pub fn fault(&self, kind: FaultKind, expected: impl Into<String>) {
        self.log.note(|| Fault::new(self.path, kind, Some(self.value), expected));
    }

    fn wrong_type<T>(&self, expected: &str) -> Option<T> {
        self.fault(FaultKind::WrongType, expected);
        None
    }

    pub fn flag(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(*value),
            _ => self.wrong_type("true or false"),
        }
    }

    pub fn text(&self) -> Option<&'a str> {
        match self.value {
            Value::Text(text) => Some(text),
            _ => self.wrong_type("a text"),
        }
    }

    /// A text that is not empty.
    pub fn name(&self) -> Option<&'a str> {
        let text = self.text()?;
        if text.is_empty() {
            self.fault(FaultKind::OutOfRange, "a text that is not empty");
            return None;
        }
        Some(text)
    }

    /// A number in a range; whole numbers count as numbers.
    pub fn number(&self, range: RangeInclusive<f64>) -> Option<f64> {
        self.number_called("a number", range)
    }

    fn number_called(&self, what: &str, range: RangeInclusive<f64>) -> Option<f64> {
        let number = match self.value {
            Value::Integer(whole) => *whole as f64,
            Value::Float(number) => *number,
            _ => return self.wrong_type(&between(what, range.start(), range.end())),
        };
        if !range.contains(&number) {
            self.fault(FaultKind::OutOfRange, between(what, range.start(), range.end()));
            return None;
        }
        Some(number)
    }

    /// A whole number in a range; `3.0` is one.
    pub fn whole(&self, range: RangeInclusive<u64>) -> Option<u64> {
        /// From here on floating-point numbers leave out whole ones.
        const EXACT_MAX: f64 = (1u64 << 53) as f64;
        let expected = || between("a whole number", range.start(), range.end());
        let whole = match self.value {
            Value::Integer(whole) => u64::try_from(*whole).ok(),
            Value::Float(number) if number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(number) => {
                Some(*number as u64)
            }
            Value::Float(_) => None,
            _ => return self.wrong_type(&expected()),
        };
        let whole = whole.filter(|whole| range.contains(whole));
        if whole.is_none() {
            self.fault(FaultKind::OutOfRange, expected());
        }
        whole
    }

    /// A whole number that may be negative.
    pub fn integer(&self, range: RangeInclusive<i64>) -> Option<i64> {
        let expected = || between("a whole number", range.start(), range.end());
        let Value::Integer(whole) = self.value else { return self.wrong_type(&expected()) };
        if !range.contains(whole) {
            self.fault(FaultKind::OutOfRange, expected());
            return None;
        }
        Some(*whole)
    }

    /// A length of time, written in seconds.
    pub fn span(&self, range: RangeInclusive<Span>) -> Option<Span> {
        let range = range.start().as_seconds()..=range.end().as_seconds();
        self.number_called("seconds", range).and_then(Span::from_seconds)
    }

    /// A moment, written in seconds.
    pub fn time(&self) -> Option<Time> {
        self.number_called("seconds", 0.0..=SECONDS_MAX).and_then(Time::from_seconds)
    }

    /// One of a few names.
    pub fn one_of<T: Copy>(&self, names: &[(&'static str, T)]) -> Option<T> {
        let expected = || format!("one of {}", suggest("", names.iter().map(|(name, _)| *name)));
        let Value::Text(text) = self.value else {
            return self.wrong_type(&expected());
        };
        let found = names.iter().find(|(name, _)| name == text);
        if found.is_none() {
            self.fault(FaultKind::OutOfRange, expected());
        }
        found.map(|(_, value)| *value)
    }

    /// The elements of a list that could be read.
    pub fn list<T>(&self, mut read: impl FnMut(Cursor<'_>) -> Option<T>) -> Option<Vec<T>> {
        let Value::List(items) = self.value else {
            return self.wrong_type("a list");
        };
        let cursors = items.iter().enumerate().map(|(index, value)| Cursor {
            value,
            path: self.path.index(index),
            log: self.log,
        });
        Some(cursors.filter_map(&mut read).collect())
    }

    /// A table whose names are free to choose.
    pub fn entries(&self, mut read: impl FnMut(&str, Cursor<'_>)) -> Option<()> {
        let entries = self.checked_entries()?;
        for (name, value) in entries {
            read(name, Cursor { value, path: self.path.field(name), log: self.log });
        }
        Some(())
    }

    /// A table of known fields. Whatever `read` does not ask for is noted as unknown.
    pub fn table<T>(&self, read: impl FnOnce(&Fields<'_>) -> T) -> Option<T> {
        let entries = self.checked_entries()?;
        let fields = Fields { entries, path: self.path, log: self.log, known: RefCell::new(Vec::new()) };
        let value = read(&fields);
        fields.note_unknown();
        Some(value)
    }

    /// The entries of a table; names that occur twice are noted.
    fn checked_entries(&self) -> Option<&'a [(String, Value)]> {
        let Value::Table(entries) = self.value else {
            return self.wrong_type("a table");
        };
        let mut names = BTreeSet::new();
        for (name, value) in entries {
            if !names.insert(name) {
                let expected = "a field may be given only once";
                self.log
                    .note(|| Fault::new(self.path.field(name), FaultKind::Duplicate, Some(value), expected));
            }
        }
        Some(entries)
    }

    /// Amounts by resource kind.
    pub fn amounts(&self, kinds: &Kinds) -> Option<Resources> {
        let mut amounts = Resources::new();
        self.entries(|name, cursor| {
            let Some(kind) = kinds.id(name) else {
                let known = suggest(name, kinds.names());
                cursor.fault(
                    FaultKind::UnknownName,
                    format!("a resource kind that is declared in `resources` or offered by a node, such as {known}"),
                );
                return;
            };
            if let Some(amount) = cursor.amount(kinds.unit(kind)) {
                amounts.set(kind, amount);
            }
        })?;
        Some(amounts)
    }

    /// An amount in base units, written as a number or as a text such as `"4Gi"`.
    pub fn amount(&self, unit: Unit) -> Option<i64> {
        let amount = match self.value {
            Value::Integer(whole) => unit.from_whole(*whole),
            Value::Float(number) => unit.from_number(*number),
            Value::Text(text) => unit.parse(text),
            _ => return self.wrong_type(AMOUNT_EXPECTED),
        };
        match amount {
            Ok(amount) => Some(amount),
            Err(error) => {
                self.fault(FaultKind::OutOfRange, amount_expected(unit, &error));
                None
            }
        }
    }
}

const AMOUNT_EXPECTED: &str = "an amount such as 2, 0.5, \"500m\" or \"4Gi\"";

fn amount_expected(unit: Unit, error: &QuantityError) -> String {
    match error {
        QuantityError::Malformed => AMOUNT_EXPECTED.into(),
        QuantityError::Negative => "an amount of at least 0".into(),
        QuantityError::TooLarge => format!("an amount of at most {}", unit.format(AMOUNT_MAX)),
        QuantityError::TooFine => format!("a multiple of {}", unit.format(1)),
    }
}

fn between<N: std::fmt::Display>(what: &str, low: N, high: N) -> String {
    format!("{what} between {low} and {high}")
}

impl<'a> Fields<'a> {
    /// The place of the table.
    pub fn path(&self) -> &Path<'a> {
        &self.path
    }

    pub fn log(&self) -> &'a FaultLog {
        self.log
    }

    /// A field, unless it is absent or null.
    pub fn get(&self, name: &'static str) -> Option<Cursor<'_>> {
        self.known.borrow_mut().push(name);
        let (name, value) = self.entries.iter().find(|(key, _)| key == name)?;
        match value {
            Value::Null => None,
            value => Some(Cursor { value, path: self.path.field(name), log: self.log }),
        }
    }

    /// A field that must be there.
    pub fn required(&self, name: &'static str, expected: &str) -> Option<Cursor<'_>> {
        let cursor = self.get(name);
        if cursor.is_none() {
            self.log.note(|| Fault::new(self.path.field(name), FaultKind::Missing, None, expected));
        }
        cursor
    }

    fn note_unknown(&self) {
        let known = self.known.borrow();
        for (name, value) in self.entries.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
            self.log.note(|| {
                let expected = suggest(name, known.iter().copied());
                Fault::new(self.path.field(name), FaultKind::UnknownField, Some(value), expected)
            });
        }
    }
}
