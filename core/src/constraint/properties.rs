//! What holds for every expression, against simple references.

use proptest::prelude::*;

use super::text::is_like;
use super::*;
use crate::codec::{decode, encode};

/// Three labels; the first may be missing.
#[derive(Clone, Debug)]
struct Labels([Option<String>; 3]);

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Facts for Labels {
    fn fact(&self, key: &Key) -> Option<&str> {
        let Key::NodeLabel(name) = key else { return None };
        let at = NAMES.iter().position(|known| known == name)?;
        self.0[at].as_deref()
    }
}

/// An expression as a tree.
#[derive(Clone, Debug)]
enum Tree {
    Exists(usize),
    Compare(usize, &'static str, Vec<String>),
    Order(usize, &'static str, i32),
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
}

impl Tree {
    /// Every part in parentheses and every value in quotes: nothing depends on precedence.
    fn text(&self) -> String {
        let quoted = |value: &String| format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
        match self {
            Tree::Exists(label) => format!("exists node.labels.{}", NAMES[*label]),
            Tree::Compare(label, operator, values) => {
                let values: Vec<String> = values.iter().map(quoted).collect();
                let values = values.join(",");
                let (open, close) = if operator.ends_with("in") { ("(", ")") } else { ("", "") };
                format!("node.labels.{} {operator} {open}{values}{close}", NAMES[*label])
            }
            Tree::Order(label, operator, limit) => {
                format!("node.labels.{}{operator}{}.{}", NAMES[*label], limit / 10, (limit % 10).abs())
            }
            Tree::Not(inner) => format!("not ({})", inner.text()),
            Tree::And(left, right) => format!("({}) and ({})", left.text(), right.text()),
            Tree::Or(left, right) => format!("({}) or ({})", left.text(), right.text()),
        }
    }

    fn holds(&self, labels: &Labels) -> bool {
        let lower = |text: &str| text.to_ascii_lowercase();
        match self {
            Tree::Exists(label) => labels.0[*label].is_some(),
            Tree::Compare(label, operator, values) => {
                let fact = lower(labels.0[*label].as_deref().unwrap_or(""));
                let is_one = values.iter().any(|value| lower(value) == fact);
                let is_like = values.iter().any(|value| naive_like(fact.as_bytes(), lower(value).as_bytes()));
                match *operator {
                    "==" | "in" => is_one,
                    "!=" | "not in" => !is_one,
                    "like" => is_like,
                    _ => !is_like,
                }
            }
            Tree::Order(label, operator, limit) => {
                let fact = labels.0[*label].as_deref().and_then(|fact| fact.parse::<f64>().ok());
                // A limit between -1 and 0 is written without its sign.
                let limit = if *limit / 10 == 0 { limit.abs() } else { *limit };
                fact.is_some_and(|fact| match *operator {
                    "<" => fact < f64::from(limit) / 10.0,
                    "<=" => fact <= f64::from(limit) / 10.0,
                    ">" => fact > f64::from(limit) / 10.0,
                    _ => fact >= f64::from(limit) / 10.0,
                })
            }
            Tree::Not(inner) => !inner.holds(labels),
            Tree::And(left, right) => left.holds(labels) & right.holds(labels),
            Tree::Or(left, right) => left.holds(labels) | right.holds(labels),
        }
    }
}

fn naive_like(text: &[u8], pattern: &[u8]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|taken| naive_like(&text[taken..], rest)),
        ([b'?', rest @ ..], [_, after @ ..]) => naive_like(after, rest),
        ([letter, rest @ ..], [first, after @ ..]) => letter == first && naive_like(after, rest),
        (_, []) => false,
    }
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[aAbB*?]{0,3}", "-?[0-9]\\.?[0-9]?", "[a-c \"\\\\(),]{0,4}", Just("and".to_owned())]
}

fn labels() -> impl Strategy<Value = Labels> {
    prop::array::uniform3(prop::option::weighted(0.8, value())).prop_map(Labels)
}

fn tree() -> impl Strategy<Value = Tree> {
    let label = 0..NAMES.len();
    let operator = prop::sample::select(&["==", "!=", "in", "not in", "like", "not like"][..]);
    let compare = (label.clone(), operator, prop::collection::vec(value(), 1..4)).prop_map(
        |(label, operator, values)| {
            let count = if operator.ends_with("in") { values.len() } else { 1 };
            Tree::Compare(label, operator, values.into_iter().take(count).collect())
        },
    );
    let order = prop::sample::select(&["<", "<=", ">", ">="][..]);
    let leaf = prop_oneof![
        label.clone().prop_map(Tree::Exists),
        compare,
        (label, order, -30..120).prop_map(|(label, order, limit)| Tree::Order(label, order, limit)),
    ];
    leaf.prop_recursive(5, 24, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            inner.prop_map(|inner| Tree::Not(Box::new(inner))),
            pair.clone().prop_map(|(left, right)| Tree::And(Box::new(left), Box::new(right))),
            pair.prop_map(|(left, right)| Tree::Or(Box::new(left), Box::new(right))),
        ]
    })
}

/// Texts made of what the language is made of, so that many get far and some are right.
fn near_miss() -> impl Strategy<Value = String> {
    let parts = [
        "node.id",
        "node.ip",
        "node.labels.a",
        "engine.labels.B",
        "node.x",
        "==",
        "!=",
        "<",
        ">=",
        "in",
        "not",
        "like",
        "exists",
        "and",
        "or",
        "(",
        ")",
        ",",
        "a",
        "b c",
        "10.0.0.0/8",
        "::1",
        "-1.5",
        "\"",
        "\\",
        "\"a b\"",
        " ",
        "*",
        "é",
        "\t",
        "~",
    ];
    let part = prop::sample::select(parts.to_vec());
    let gap = prop::sample::select(vec!["", " ", " ", " "]);
    prop::collection::vec((part, gap), 0..24)
        .prop_map(|parts| parts.into_iter().flat_map(|(part, gap)| [part, gap]).collect())
}

/// Conditions in a row, so that precedence decides what they mean.
fn flat() -> impl Strategy<Value = (String, Vec<(bool, Option<bool>, usize)>)> {
    let item = (any::<bool>(), any::<bool>(), 0..NAMES.len());
    prop::collection::vec(item, 1..12).prop_map(|items| {
        let last = items.len() - 1;
        let items: Vec<_> = items.into_iter().enumerate().collect();
        let items: Vec<_> = items
            .into_iter()
            .map(|(at, (not, and, label))| (not, (at < last).then_some(and), label))
            .collect();
        let words = items.iter().map(|(not, and, label)| {
            let not = if *not { "not " } else { "" };
            let connective = and.map_or("", |and| if and { " and " } else { " or " });
            format!("{not}exists node.labels.{}{connective}", NAMES[*label])
        });
        (words.collect(), items)
    })
}

/// Splits at every `or`, then asks whether all of some part hold.
fn naive_flat(items: &[(bool, Option<bool>, usize)], labels: &Labels) -> bool {
    let mut parts = items.split_inclusive(|(_, and, _)| *and == Some(false));
    parts.any(|part| part.iter().all(|(not, _, label)| labels.0[*label].is_some() != *not))
}

fn parse(text: &str) -> Result<Constraint, TestCaseError> {
    Constraint::parse(text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))
}

fn comes_back(constraint: &Constraint) -> Result<(), TestCaseError> {
    let printed = constraint.to_string();
    let again = parse(&printed)?;
    prop_assert_eq!(&again, constraint, "{}", &printed);
    prop_assert_eq!(again.to_string(), printed);
    let bytes = encode(constraint).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let stored: Constraint = decode(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&stored, constraint);
    Ok(())
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        if let Err(error) = Constraint::parse(&text) {
            prop_assert!(error.position <= text.len());
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    #[test]
    fn no_near_miss_makes_the_parser_panic(text in near_miss(), labels in labels()) {
        match Constraint::parse(&text) {
            Ok(constraint) => {
                constraint.holds(&labels);
                comes_back(&constraint)?;
            }
            Err(error) => {
                prop_assert!(text.is_char_boundary(error.position), "{text}: {error}");
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }

    #[test]
    fn every_value_comes_back(value in any::<String>()) {
        let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
        let constraint = parse(&format!("node.labels.a == \"{quoted}\""))?;
        comes_back(&constraint)?;
        prop_assert!(constraint.holds(&Labels([Some(value), None, None])));
    }

    #[test]
    fn every_tree_comes_back_and_means_what_it_says(tree in tree(), labels in labels()) {
        let constraint = parse(&tree.text())?;
        comes_back(&constraint)?;
        prop_assert_eq!(constraint.holds(&labels), tree.holds(&labels), "{} on {:?}", constraint, labels);
    }

    #[test]
    fn precedence_is_the_usual_one((text, items) in flat(), labels in labels()) {
        let constraint = parse(&text)?;
        prop_assert_eq!(constraint.to_string(), &text[..]);
        prop_assert_eq!(constraint.holds(&labels), naive_flat(&items, &labels), "{} on {:?}", text, labels);
    }

    #[test]
    fn not_inverts(tree in tree(), labels in labels()) {
        let text = tree.text();
        let inverted = parse(&format!("not ({text})"))?;
        prop_assert_ne!(parse(&text)?.holds(&labels), inverted.holds(&labels));
    }

    #[test]
    fn not_moves_into_and_and_or(left in tree(), right in tree(), labels in labels()) {
        let (left, right) = (left.text(), right.text());
        for (outside, inside) in [("and", "or"), ("or", "and")] {
            let around = parse(&format!("not (({left}) {outside} ({right}))"))?;
            let within = parse(&format!("not ({left}) {inside} not ({right})"))?;
            prop_assert_eq!(around.holds(&labels), within.holds(&labels));
        }
    }

    #[test]
    fn patterns_match_as_the_simple_reference(text in "[ab]{0,9}", pattern in "[ab*?]{0,7}") {
        prop_assert_eq!(is_like(&text, &pattern), naive_like(text.as_bytes(), pattern.as_bytes()));
    }
}
