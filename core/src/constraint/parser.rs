//! Turns the text of an expression into steps, without recursion: operators wait on a stack until their
//! right side is complete.

use super::condition::{Bound, Condition, Test, Value};
use super::decimal::Decimal;
use super::error::{ConstraintError, ConstraintProblem, Expected};
use super::key::Key;
use super::network::Network;
use super::scanner::{Place, Scanner};
use super::{CONDITIONS_MAX, DEPTH_MAX, Step};

/// What waits for the end of its right side, from the loosest to the tightest. A parenthesis waits for
/// its partner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pending {
    Open,
    Or,
    And,
    Not,
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    steps: Vec<Step>,
    pending: Vec<Pending>,
    conditions: usize,
    /// Parentheses and `not`s among the pending.
    depth: usize,
}

pub(super) fn parse(text: &str) -> Result<Vec<Step>, ConstraintError> {
    let scanner = Scanner::new(text);
    let mut parser = Parser { scanner, steps: Vec::new(), pending: Vec::new(), conditions: 0, depth: 0 };
    loop {
        parser.read_prefixes()?;
        parser.read_condition()?;
        parser.finish(Pending::Not);
        if !parser.read_connective()? {
            return Ok(parser.steps);
        }
    }
}

impl Parser<'_> {
    /// Whatever stands before a condition: `not`s and parentheses.
    fn read_prefixes(&mut self) -> Result<(), ConstraintError> {
        loop {
            self.scanner.is_at_end();
            let position = self.scanner.position();
            let prefix = match () {
                () if self.scanner.take("(") => Pending::Open,
                () if self.scanner.take_word("not") => Pending::Not,
                () => return Ok(()),
            };
            if self.depth == DEPTH_MAX {
                let problem = ConstraintProblem::TooDeep { limit: DEPTH_MAX };
                return Err(ConstraintError::at(position, problem));
            }
            self.depth += 1;
            self.pending.push(prefix);
        }
    }

    /// Whatever stands behind a condition: parentheses that close, then `and` or `or`. False at the end.
    fn read_connective(&mut self) -> Result<bool, ConstraintError> {
        loop {
            for (word, connective) in [("and", Pending::And), ("or", Pending::Or)] {
                if self.scanner.take_word(word) {
                    self.finish(connective);
                    self.pending.push(connective);
                    return Ok(true);
                }
            }
            let is_inside = self.pending.contains(&Pending::Open);
            if is_inside && self.scanner.take(")") {
                self.finish(Pending::Or);
                self.pending.pop();
                self.depth -= 1;
                self.finish(Pending::Not);
                continue;
            }
            if is_inside {
                return Err(self.scanner.unexpected(Expected::AndOrClose));
            }
            if !self.scanner.is_at_end() {
                return Err(self.scanner.unexpected(Expected::AndOrEnd));
            }
            self.finish(Pending::Or);
            return Ok(false);
        }
    }

    /// Everything on top of the stack that binds at least so tightly has its right side now.
    fn finish(&mut self, at_least: Pending) {
        while let Some(pending) = self.pending.pop_if(|pending| *pending >= at_least) {
            self.depth -= usize::from(pending == Pending::Not);
            self.steps.extend(match pending {
                Pending::Open => None,
                Pending::Or => Some(Step::Or),
                Pending::And => Some(Step::And),
                Pending::Not => Some(Step::Not),
            });
        }
    }

    fn read_condition(&mut self) -> Result<(), ConstraintError> {
        self.scanner.is_at_end();
        let position = self.scanner.position();
        let condition = match self.scanner.take_word("exists") {
            true => Condition { key: self.read_key(Expected::Key)?, test: Test::Exists },
            false => {
                let key = self.read_key(Expected::Condition)?;
                let test = self.read_test(&key)?;
                Condition { key, test }
            }
        };
        if self.conditions == CONDITIONS_MAX {
            let problem = ConstraintProblem::TooManyConditions { limit: CONDITIONS_MAX };
            return Err(ConstraintError::at(position, problem));
        }
        self.conditions += 1;
        self.steps.push(Step::Condition(condition));
        Ok(())
    }

    fn read_key(&mut self, expected: Expected) -> Result<Key, ConstraintError> {
        match self.scanner.word() {
            (_, "") => Err(self.scanner.unexpected(expected)),
            (position, word) => Key::parse(word).ok_or_else(|| ConstraintError::unknown_key(position, word)),
        }
    }

    /// The operator and what stands on its right side.
    fn read_test(&mut self, key: &Key) -> Result<Test, ConstraintError> {
        if self.scanner.take("==") {
            return Ok(Test::Equal(self.read_value(key, Place::Condition)?));
        }
        if self.scanner.take("!=") {
            return Ok(Test::NotEqual(self.read_value(key, Place::Condition)?));
        }
        self.scanner.is_at_end();
        let operator = self.scanner.clone();
        let is_negated = self.scanner.take_word("not");
        if self.scanner.take_word("in") {
            let values = self.read_list(key)?;
            return Ok(if is_negated { Test::NotIn(values) } else { Test::In(values) });
        }
        if *key == Key::Ip {
            return Err(operator.unexpected(Expected::AddressOperator));
        }
        if self.scanner.take_word("like") {
            let (_, pattern) = self.scanner.value(Place::Condition)?;
            return Ok(if is_negated { Test::NotLike(pattern) } else { Test::Like(pattern) });
        }
        match is_negated {
            true => Err(operator.unexpected(Expected::Operator)),
            false => self.read_bound(),
        }
    }

    fn read_bound(&mut self) -> Result<Test, ConstraintError> {
        let bounds =
            [("<=", Bound::AtMost), (">=", Bound::AtLeast), ("<", Bound::Below), (">", Bound::Above)];
        let Some((_, bound)) = bounds.into_iter().find(|(sign, _)| self.scanner.take(sign)) else {
            return Err(self.scanner.unexpected(Expected::Operator));
        };
        let (position, text) = self.scanner.value(Place::Condition)?;
        match Decimal::parse(&text) {
            Some(number) => Ok(Test::Number(bound, number.to_string())),
            None => Err(ConstraintError::not_a(Expected::Number, position, &text)),
        }
    }

    fn read_value(&mut self, key: &Key, place: Place) -> Result<Value, ConstraintError> {
        let (position, text) = self.scanner.value(place)?;
        match key {
            Key::Ip => match Network::parse(&text) {
                Some(network) => Ok(Value::Network(network)),
                None => Err(ConstraintError::not_a(Expected::Address, position, &text)),
            },
            _ => Ok(Value::Text(text)),
        }
    }

    fn read_list(&mut self, key: &Key) -> Result<Vec<Value>, ConstraintError> {
        if !self.scanner.take("(") {
            return Err(self.scanner.unexpected(Expected::List));
        }
        let mut values = vec![self.read_value(key, Place::List)?];
        while !self.scanner.take(")") {
            if !self.scanner.take(",") {
                return Err(self.scanner.unexpected(Expected::CommaOrClose));
            }
            values.push(self.read_value(key, Place::List)?);
        }
        Ok(values)
    }
}
