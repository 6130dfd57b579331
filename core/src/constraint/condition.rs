//! One comparison of one fact.

use std::cmp::Ordering;
use std::fmt;

use super::decimal::Decimal;
use super::key::{Facts, Key};
use super::network::Network;
use super::scanner::{is_bare, is_connective};
use super::text::{is_like, is_same};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Condition {
    pub(super) key: Key,
    pub(super) test: Test,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Test {
    Exists,
    Equal(Value),
    NotEqual(Value),
    In(Vec<Value>),
    NotIn(Vec<Value>),
    Like(String),
    NotLike(String),
    /// The number as [`Decimal`] prints it.
    Number(Bound, String),
}

/// What the fact is compared with: a network for `node.ip`, text for all other keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Value {
    Text(String),
    Network(Network),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Bound {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// Two names of the same processor, the one of the kernel and the one of container images.
const ARCHITECTURES: [(&str, &str); 2] = [("x86_64", "amd64"), ("aarch64", "arm64")];

/// The other name of an architecture that has two.
fn other_architecture(name: &str) -> Option<&'static str> {
    ARCHITECTURES.iter().find_map(|(kernel, image)| match name {
        _ if is_same(name, kernel) => Some(*image),
        _ if is_same(name, image) => Some(*kernel),
        _ => None,
    })
}

impl Condition {
    pub(super) fn holds(&self, facts: &(impl Facts + ?Sized)) -> bool {
        let known = facts.fact(&self.key);
        let fact = known.unwrap_or_default();
        // An architecture with two names passes if either does.
        let other = match self.key {
            Key::Arch => other_architecture(fact),
            _ => None,
        };
        let either = |test: &dyn Fn(&str) -> bool| test(fact) || other.is_some_and(test);
        let equals = |value: &Value| either(&|fact| value.is(fact));
        match &self.test {
            Test::Exists => known.is_some(),
            Test::Equal(value) => equals(value),
            Test::NotEqual(value) => !equals(value),
            Test::In(values) => values.iter().any(equals),
            Test::NotIn(values) => !values.iter().any(equals),
            Test::Like(pattern) => either(&|fact| is_like(fact, pattern)),
            Test::NotLike(pattern) => !either(&|fact| is_like(fact, pattern)),
            Test::Number(bound, limit) => {
                let number = Decimal::parse(fact).zip(Decimal::parse(limit));
                number.is_some_and(|(number, limit)| bound.admits(number.compare(limit)))
            }
        }
    }
}

impl Value {
    fn is(&self, fact: &str) -> bool {
        match self {
            Value::Text(text) => is_same(fact, text),
            Value::Network(network) => network.contains(fact),
        }
    }
}

impl Bound {
    fn admits(self, fact_to_limit: Ordering) -> bool {
        match self {
            Bound::Below => fact_to_limit.is_lt(),
            Bound::AtMost => fact_to_limit.is_le(),
            Bound::Above => fact_to_limit.is_gt(),
            Bound::AtLeast => fact_to_limit.is_ge(),
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Bound::Below => "<",
            Bound::AtMost => "<=",
            Bound::Above => ">",
            Bound::AtLeast => ">=",
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::Exists => write!(f, "exists {key}"),
            Test::Equal(value) => write!(f, "{key} == {value}"),
            Test::NotEqual(value) => write!(f, "{key} != {value}"),
            Test::In(values) => write!(f, "{key} in {}", List(values)),
            Test::NotIn(values) => write!(f, "{key} not in {}", List(values)),
            Test::Like(pattern) => write!(f, "{key} like {}", Quoted(pattern)),
            Test::NotLike(pattern) => write!(f, "{key} not like {}", Quoted(pattern)),
            Test::Number(bound, limit) => write!(f, "{key} {} {limit}", bound.sign()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => Quoted(text).fmt(f),
            Value::Network(network) => network.fmt(f),
        }
    }
}

struct List<'a>(&'a [Value]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, value) in self.0.iter().enumerate() {
            write!(f, "{}{value}", if at == 0 { "(" } else { ", " })?;
        }
        f.write_str(")")
    }
}

/// A text in quotes, or bare if nobody could mistake it.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_word = !self.0.is_empty() && self.0.chars().all(is_bare);
        if is_word && !is_connective(self.0) {
            return f.write_str(self.0);
        }
        f.write_str("\"")?;
        for part in self.0.split_inclusive(['"', '\\']) {
            match part.strip_suffix(['"', '\\']) {
                Some(start) => write!(f, "{start}\\{}", &part[start.len()..])?,
                None => f.write_str(part)?,
            }
        }
        f.write_str("\"")
    }
}
