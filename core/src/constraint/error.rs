//! Why a text is no constraint: where, what was found there and what was expected.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::key::KEYS;

/// The first thing that is wrong with an expression.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
#[error("column {column}: {problem}")]
#[non_exhaustive]
pub struct ConstraintError {
    /// The byte at which it is wrong, from 0.
    pub position: usize,
    /// The letter at which it is wrong, from 1.
    pub column: usize,
    pub problem: ConstraintProblem,
}

#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ConstraintProblem {
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What stands there, in backticks and shortened if it is long, or `the end`.
        found: String,
        expected: Expected,
    },
    #[error("there is no key {key}, possible are {KEYS}")]
    UnknownKey {
        /// In backticks, shortened if it is long.
        key: String,
    },
    #[error("an expression may have at most {limit} bytes, as it is written and as it is printed")]
    TooLong { limit: usize },
    #[error("at most {limit} parentheses and `not`s may be open at one place")]
    TooDeep { limit: usize },
    #[error("at most {limit} conditions are allowed in one expression")]
    TooManyConditions { limit: usize },
}

/// What could have stood at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Expected {
    Condition,
    Key,
    Operator,
    /// Only these can be asked about an address.
    AddressOperator,
    Value,
    Address,
    Number,
    /// The beginning of a list.
    List,
    /// A list goes on or ends.
    CommaOrClose,
    /// The parenthesis was opened inside a bare value.
    ValueClose,
    QuoteClose,
    Escape,
    /// After a condition inside parentheses.
    AndOrClose,
    /// After a condition outside of parentheses.
    AndOrEnd,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Expected::Condition => "a condition such as `node.role == worker`",
            Expected::Key => "a key such as `node.labels.disk`",
            Expected::Operator => "one of ==, !=, <, <=, >, >=, in, not in, like, not like",
            Expected::AddressOperator => "one of ==, !=, in, not in, as for every address",
            Expected::Value => {
                "a value: letters, digits and any of :-_.*?+[]\\^$|/, or any text in double quotes"
            }
            Expected::Address => "an address such as 10.0.0.7 or a network such as 10.0.0.0/8",
            Expected::Number => "a decimal number",
            Expected::List => "a list in parentheses such as `(a, b)`",
            Expected::CommaOrClose => "`,` or `)`",
            Expected::ValueClose => "`)`, or quotes around the value",
            Expected::QuoteClose => "a closing quote",
            Expected::Escape => "`\\\"` or `\\\\`",
            Expected::AndOrClose => "`and`, `or` or `)`",
            Expected::AndOrEnd => "`and`, `or` or the end",
        })
    }
}

impl ConstraintError {
    pub(super) fn at(position: usize, problem: ConstraintProblem) -> ConstraintError {
        ConstraintError { position, column: position + 1, problem }
    }

    /// The same, with letters counted in the text where it was found.
    pub(super) fn in_text(self, text: &str) -> ConstraintError {
        let before = text.char_indices().take_while(|(at, _)| *at < self.position).count();
        ConstraintError { column: before + 1, ..self }
    }

    pub(super) fn unexpected(position: usize, found: &str, expected: Expected) -> ConstraintError {
        let found = if found.is_empty() { "the end".into() } else { shown(found) };
        ConstraintError::at(position, ConstraintProblem::Unexpected { found, expected })
    }

    /// A value that is complete, be it empty, but not of the kind that is needed.
    pub(super) fn not_a(expected: Expected, position: usize, value: &str) -> ConstraintError {
        ConstraintError::at(position, ConstraintProblem::Unexpected { found: shown(value), expected })
    }

    pub(super) fn unknown_key(position: usize, key: &str) -> ConstraintError {
        ConstraintError::at(position, ConstraintProblem::UnknownKey { key: shown(key) })
    }
}

const LETTERS_SHOWN_MAX: usize = 40;

/// The text in backticks, short and on one line.
fn shown(text: &str) -> String {
    let mut letters = text.chars();
    let mut shown = String::from("`");
    for letter in letters.by_ref().take(LETTERS_SHOWN_MAX) {
        match letter.is_control() {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    if letters.next().is_some() {
        shown.push('…');
    }
    shown.push('`');
    shown
}
