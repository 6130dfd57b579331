//! The language by which a role says on which nodes its tasks may run.
//!
//! One expression is one text; a role carries a list of them and all must hold.
//!
//! | form | holds when |
//! |---|---|
//! | `KEY == VALUE`, `KEY != VALUE` | the fact is the value, or is not |
//! | `KEY in (a, b)`, `KEY not in (a, b)` | the fact is one of the values, or none of them |
//! | `KEY like PATTERN`, `KEY not like PATTERN` | `*` stands for any letters and `?` for one |
//! | `KEY < 5`, `<=`, `>`, `>=` | the fact is a decimal number and compares so |
//! | `exists KEY` | the node has the fact at all, be it empty |
//! | `not X`, `X and Y`, `X or Y`, `(X)` | as usual; `not` binds tightest, `or` loosest |
//!
//! Keys are `node.id`, `node.hostname`, `node.ip`, `node.role`, `node.pool`, `node.platform.os`,
//! `node.platform.arch`, `node.labels.NAME` and `engine.labels.NAME`. Keywords and keys are read
//! without regard to case, label names with it. Values compare whole and without case. A fact that is
//! missing counts as the empty text: `==` fails (unless it asks for `""`), `!=` holds, `like *` holds,
//! and no order holds.
//!
//! `node.ip` takes an address or a network such as `10.0.0.0/8`, with `==`, `!=`, `in`, `not in` and
//! `exists`. An address of the node that is missing or unreadable lies in no network: `==` and `in`
//! fail, `!=` and `not in` hold. `node.platform.arch` takes `x86_64` for `amd64` and `aarch64` for
//! `arm64`, on both sides.
//!
//! A value is text in double quotes, where `\"` and `\\` stand for a quote and a backslash, or it is
//! bare: letters, digits, the signs `: - _ . * ? + [ ] \ ^ $ | /`, blanks between them, and parentheses
//! that close inside the value. A bare value ends before `and`, before `or` and before the parenthesis
//! that closes the condition, in a list before the comma. A bare `and` or `or` right after the operator
//! is a value.
//!
//! # Differences from SwarmKit
//!
//! An expression that SwarmKit accepts means the same here, except:
//! - a bare value with the word `and` or `or` inside (`big and blue`) needs quotes;
//! - a bare value with a parenthesis that has no partner inside the value (`a)` or `(a`) needs quotes;
//! - a key that does not exist is an error; there it parses and never holds;
//! - a value for `node.ip` that is neither address nor network is an error; there it parses and never
//!   holds, not even with `!=`;
//! - `node.platform.arch` knows the aliases; there only the separate platform filter does;
//! - the limits [`LENGTH_MAX`], [`DEPTH_MAX`] and [`CONDITIONS_MAX`].

mod condition;
mod decimal;
mod error;
mod key;
mod network;
mod parser;
#[cfg(test)]
mod properties;
mod scanner;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use condition::Condition;
pub use error::{ConstraintError, ConstraintProblem, Expected};
pub use key::{Facts, Key};
pub(crate) use text::is_exactly_like;

/// Bytes of an expression, as it is given and as it is printed.
pub const LENGTH_MAX: usize = 4096;

/// Parentheses and `not`s that may be open at one place.
pub const DEPTH_MAX: usize = 32;

/// Comparisons and `exists` in one expression.
pub const CONDITIONS_MAX: usize = 256;

/// One parsed expression.
///
/// It is stored as its text, so that whatever is read back went through the parser; its printed form
/// parses to an equal value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Constraint {
    /// Operands come before their operator; exactly one truth is left at the end.
    steps: Vec<Step>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Step {
    Condition(Condition),
    And,
    Or,
    Not,
}

// Before every open parenthesis one `or` and one `and` can wait for their right side, and two more in
// the innermost: all their left sides must fit into the bits of `holds`.
const _: () = assert!(2 * (DEPTH_MAX + 1) < u128::BITS as usize);

impl Constraint {
    /// Reads one expression.
    pub fn parse(text: &str) -> Result<Constraint, ConstraintError> {
        Constraint::read(text).map_err(|error| error.in_text(text))
    }

    fn read(text: &str) -> Result<Constraint, ConstraintError> {
        let too_long = |position| {
            let problem = ConstraintProblem::TooLong { limit: LENGTH_MAX };
            Err(ConstraintError::at(position, problem))
        };
        if text.len() > LENGTH_MAX {
            return too_long(LENGTH_MAX);
        }
        let constraint = Constraint { steps: parser::parse(text)? };
        // What is printed must be readable again, and quotes and blanks can make it longer.
        if constraint.to_string().len() > LENGTH_MAX {
            return too_long(text.len());
        }
        Ok(constraint)
    }

    /// Whether a node with these facts satisfies the expression. Nothing is allocated.
    pub fn holds(&self, facts: &(impl Facts + ?Sized)) -> bool {
        // The lowest bit is the top of the stack.
        let mut stack: u128 = 0;
        for step in &self.steps {
            match step {
                Step::Condition(condition) => stack = stack << 1 | u128::from(condition.holds(facts)),
                Step::Not => stack ^= 1,
                Step::And => stack = (stack >> 1) & (!1 | stack),
                Step::Or => stack = (stack >> 1) | (stack & 1),
            }
        }
        stack & 1 == 1
    }

    /// The keys of all conditions in the order of the text; one that is used twice comes twice.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.steps.iter().filter_map(|step| match step {
            Step::Condition(condition) => Some(&condition.key),
            Step::And | Step::Or | Step::Not => None,
        })
    }
}

impl FromStr for Constraint {
    type Err = ConstraintError;

    fn from_str(text: &str) -> Result<Constraint, ConstraintError> {
        Constraint::parse(text)
    }
}

impl TryFrom<String> for Constraint {
    type Error = ConstraintError;

    fn try_from(text: String) -> Result<Constraint, ConstraintError> {
        Constraint::parse(&text)
    }
}

impl From<Constraint> for String {
    fn from(constraint: Constraint) -> String {
        constraint.to_string()
    }
}

/// How tightly the outermost part of a text holds together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Not,
}

/// The text of some steps, on the way to the text of all.
struct Piece {
    text: String,
    binding: Binding,
}

impl Piece {
    /// The text, in parentheses if it holds together less tightly than it must.
    fn at_least(self, binding: Binding) -> String {
        match self.binding < binding {
            true => format!("({})", self.text),
            false => self.text,
        }
    }

    fn joined(left: Piece, word: &str, binding: Binding, right: Piece) -> Piece {
        // The right side of `and` and `or` needs parentheses against its like: without them the parser
        // would join from the left.
        let tighter = if binding == Binding::Or { Binding::And } else { Binding::Not };
        let mut text = left.at_least(binding);
        text.push_str(word);
        text.push_str(&right.at_least(tighter));
        Piece { text, binding }
    }
}

/// Only as many parentheses as the meaning needs, so never more than the text that was parsed.
impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pieces: Vec<Piece> = Vec::new();
        for step in &self.steps {
            let piece = match (step, pieces.pop()) {
                (Step::Condition(condition), before) => {
                    pieces.extend(before);
                    Some(Piece { text: condition.to_string(), binding: Binding::Not })
                }
                (Step::Not, Some(piece)) => {
                    let text = format!("not {}", piece.at_least(Binding::Not));
                    Some(Piece { text, binding: Binding::Not })
                }
                (Step::And, Some(right)) => {
                    pieces.pop().map(|left| Piece::joined(left, " and ", Binding::And, right))
                }
                (Step::Or, Some(right)) => {
                    pieces.pop().map(|left| Piece::joined(left, " or ", Binding::Or, right))
                }
                (Step::Not | Step::And | Step::Or, None) => None,
            };
            debug_assert!(piece.is_some(), "operands come before their operator");
            pieces.extend(piece);
        }
        debug_assert_eq!(pieces.len(), 1, "one truth is left");
        pieces.iter().try_for_each(|piece| f.write_str(&piece.text))
    }
}
