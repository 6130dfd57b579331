//! What is wrong with a document: which field, which value, and what was expected instead.

use std::cell::RefCell;
use std::fmt;

use serde::Serialize;

use crate::spec::{Invalid, Problem};

use super::{Path, Value};

/// One thing wrong with a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fault {
    /// The full path of the field; empty for the document as a whole.
    pub field: String,
    pub kind: FaultKind,
    /// The value that was found, shortened; `None` when there was none.
    pub found: Option<String>,
    /// What was expected, or the rule that was broken.
    pub expected: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultKind {
    /// The value is of another type than the field.
    WrongType,
    /// The type is right, the value is not one of those allowed.
    OutOfRange,
    /// A field that must be there is not.
    Missing,
    /// No such field exists.
    UnknownField,
    /// A name or field occurs twice.
    Duplicate,
    /// The value names something that is not there.
    UnknownName,
    /// The value breaks a rule that involves more than this field.
    Refused,
}

/// Faults beyond this many are counted, not listed.
pub const FAULTS_LISTED_MAX: usize = 100;

const VALUE_SHOWN_MAX: usize = 80;

impl Fault {
    pub fn new(
        field: impl ToString,
        kind: FaultKind,
        found: Option<&Value>,
        expected: impl Into<String>,
    ) -> Fault {
        let found = found.map(|value| value.shortened(VALUE_SHOWN_MAX));
        Fault { field: field.to_string(), kind, found, expected: expected.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        match self.kind {
            FaultKind::WrongType | FaultKind::OutOfRange | FaultKind::UnknownName => {
                write!(f, "expected {}", self.expected)?;
            }
            FaultKind::Missing => write!(f, "missing, expected {}", self.expected)?,
            FaultKind::UnknownField => return write!(f, "unknown field, expected {}", self.expected),
            FaultKind::Duplicate | FaultKind::Refused => f.write_str(&self.expected)?,
        }
        match &self.found {
            Some(found) => write!(f, ", found {found}"),
            None => Ok(()),
        }
    }
}

/// Everything wrong with a document, in the order it was found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Faults {
    /// The first ones, at most `FAULTS_LISTED_MAX`.
    pub listed: Vec<Fault>,
    /// How many more there are.
    pub more: u64,
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.listed.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "\n" })?;
            fault.fmt(f)?;
        }
        match self.more {
            0 => Ok(()),
            1 => f.write_str("\nand 1 more problem"),
            more => write!(f, "\nand {more} more problems"),
        }
    }
}

impl std::error::Error for Faults {}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Faults {
        Faults { listed: vec![fault], more: 0 }
    }
}

/// Where the reader of a document notes what it finds wrong. Noting needs no exclusive access, so
/// that any number of open places can share one log.
#[derive(Debug, Default)]
pub struct FaultLog {
    faults: RefCell<Faults>,
}

impl FaultLog {
    pub fn new() -> FaultLog {
        FaultLog::default()
    }

    /// Notes a fault; it is built only while there is room to list it.
    pub fn note(&self, fault: impl FnOnce() -> Fault) {
        if self.faults.borrow().listed.len() >= FAULTS_LISTED_MAX {
            self.faults.borrow_mut().more += 1;
            return;
        }
        let fault = fault();
        self.faults.borrow_mut().listed.push(fault);
    }

    /// Notes what a specification's own rules say about it, at its place in the document.
    pub fn note_invalid(&self, place: &Path<'_>, invalid: Invalid) {
        self.note(|| {
            let kind = match invalid.problem {
                Problem::Duplicate => FaultKind::Duplicate,
                _ => FaultKind::Refused,
            };
            let place = place.to_string();
            let dot = if place.is_empty() { "" } else { "." };
            let field = format!("{place}{dot}{}", printable(&invalid.field));
            let found = Some(printable(&invalid.value));
            Fault { field, kind, found, expected: invalid.problem.to_string() }
        });
    }

    pub fn extend(&self, faults: Faults) {
        for fault in faults.listed {
            self.note(|| fault);
        }
        self.faults.borrow_mut().more += faults.more;
    }

    /// The value, if nothing was wrong with the document it came from.
    pub fn into_result<T>(self, value: Option<T>) -> Result<T, Faults> {
        let faults = self.faults.into_inner();
        match value {
            Some(value) if faults.listed.is_empty() => Ok(value),
            _ => Err(faults),
        }
    }
}

/// Text of a stranger without the control characters that would act on a terminal.
fn printable(text: &str) -> String {
    let escape =
        |letter: char| if letter.is_control() { letter.escape_debug().to_string() } else { letter.into() };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display(field: &str, kind: FaultKind, expected: &str) -> String {
        Fault::new(field, kind, Some(&Value::Integer(7)), expected).to_string()
    }

    #[test]
    fn a_fault_names_field_value_and_expectation() {
        assert_eq!(display("a.b", FaultKind::WrongType, "a text"), "a.b: expected a text, found 7");
        assert_eq!(display("a.b", FaultKind::Missing, "a text"), "a.b: missing, expected a text, found 7");
        assert_eq!(display("a.b", FaultKind::UnknownField, "`c`"), "a.b: unknown field, expected `c`");
        assert_eq!(display("", FaultKind::WrongType, "a table"), "expected a table, found 7");
    }

    #[test]
    fn the_list_is_bounded_and_the_rest_counted() {
        let log = FaultLog::new();
        for index in 0..150 {
            log.note(|| Fault::new(index, FaultKind::Missing, None, "x"));
        }
        let faults = log.into_result(Some(())).expect_err("there are faults");
        assert_eq!((faults.listed.len(), faults.more), (100, 50));
        assert!(faults.to_string().ends_with("and 50 more problems"));
    }
}
