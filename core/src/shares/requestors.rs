//! Which class a requestor belongs to: regular expressions per class, the first match in the order of
//! the settings. A pattern may match anywhere in the name; `^` and `$` tie it to the ends.

use std::collections::BTreeMap;

use regex::{RegexBuilder, RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::classes::{CLASSES_MAX, ClassIndex};

/// Patterns of all classes together.
pub const PATTERNS_MAX: usize = 1_024;

/// Length of one pattern.
pub const PATTERN_BYTES_MAX: usize = 1_024;

/// Size of one pattern, and of all patterns together, once compiled.
pub const PATTERN_COMPILED_MAX: usize = 1 << 20;
pub const COMPILED_MAX: usize = 8 << 20;

/// Answers a memo keeps, in two halves.
const REMEMBERED_MAX: usize = 4_096;

/// Longer names are looked up each time, so that the memory of a memo is bounded.
const REMEMBERED_BYTES_MAX: usize = 256;

/// The patterns of one class, as stated.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ClassPatterns {
    pub class: String,
    pub patterns: Vec<String>,
}

/// Why a set of patterns is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RequestorsError {
    #[error("there are {count} classes, at most {CLASSES_MAX} are allowed")]
    TooManyClasses { count: usize },
    #[error("the classes have {count} requestor patterns, at most {PATTERNS_MAX} are allowed")]
    TooManyPatterns { count: usize },
    #[error(
        "class `{class}` has a requestor pattern of {bytes} bytes, at most {PATTERN_BYTES_MAX} are allowed"
    )]
    TooLong { class: String, bytes: usize },
    #[error("class `{class}`: the requestor pattern `{pattern}` is refused: {reason}")]
    BadPattern { class: String, pattern: String, reason: String },
    #[error("the requestor patterns are too large together: {reason}")]
    TooLargeTogether { reason: String },
}

/// The patterns of all classes, checked and compiled once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<ClassPatterns>", into = "Vec<ClassPatterns>")]
pub struct RequestorMap {
    source: Vec<ClassPatterns>,
    /// All patterns in the order of the settings.
    compiled: RegexSet,
    /// For each pattern, its class.
    classes: Vec<ClassIndex>,
}

impl RequestorMap {
    pub fn new(source: Vec<ClassPatterns>) -> Result<RequestorMap, RequestorsError> {
        if source.len() > CLASSES_MAX {
            return Err(RequestorsError::TooManyClasses { count: source.len() });
        }
        let count = source.iter().map(|class| class.patterns.len()).sum();
        if count > PATTERNS_MAX {
            return Err(RequestorsError::TooManyPatterns { count });
        }
        let mut classes = Vec::with_capacity(count);
        for (at, class) in source.iter().enumerate() {
            for pattern in &class.patterns {
                check(&class.class, pattern)?;
                classes.push(ClassIndex(at as u16));
            }
        }
        let all = source.iter().flat_map(|class| &class.patterns);
        let compiled = RegexSetBuilder::new(all)
            .size_limit(COMPILED_MAX)
            .build()
            .map_err(|error| RequestorsError::TooLargeTogether { reason: error.to_string() })?;
        Ok(RequestorMap { source, compiled, classes })
    }

    /// The patterns as they were stated, in the order of the settings.
    pub fn source(&self) -> &[ClassPatterns] {
        &self.source
    }

    /// The class of the first pattern that matches, as a place in [`RequestorMap::source`].
    pub fn class_of(&self, requestor: &str) -> Option<ClassIndex> {
        let first = self.compiled.matches(requestor).iter().next()?;
        Some(self.classes[first])
    }
}

impl Default for RequestorMap {
    /// No patterns: no requestor has a class.
    fn default() -> RequestorMap {
        RequestorMap { source: Vec::new(), compiled: RegexSet::empty(), classes: Vec::new() }
    }
}

/// The source says everything: the rest is made from it.
impl PartialEq for RequestorMap {
    fn eq(&self, other: &RequestorMap) -> bool {
        self.source == other.source
    }
}

impl Eq for RequestorMap {}

impl TryFrom<Vec<ClassPatterns>> for RequestorMap {
    type Error = RequestorsError;

    fn try_from(source: Vec<ClassPatterns>) -> Result<RequestorMap, RequestorsError> {
        RequestorMap::new(source)
    }
}

impl From<RequestorMap> for Vec<ClassPatterns> {
    fn from(map: RequestorMap) -> Vec<ClassPatterns> {
        map.source
    }
}

/// Each pattern is compiled alone first, so that an error can name it.
fn check(class: &str, pattern: &str) -> Result<(), RequestorsError> {
    let bytes = pattern.len();
    if bytes > PATTERN_BYTES_MAX {
        return Err(RequestorsError::TooLong { class: class.to_owned(), bytes });
    }
    match RegexBuilder::new(pattern).size_limit(PATTERN_COMPILED_MAX).build() {
        Ok(_) => Ok(()),
        Err(error) => Err(RequestorsError::BadPattern {
            class: class.to_owned(),
            pattern: pattern.to_owned(),
            reason: error.to_string(),
        }),
    }
}

/// Answers of a [`RequestorMap`] that were asked for before. It belongs to one map: forget it when
/// the settings change.
///
/// Answers are kept in two halves. A full recent half becomes the old one and the old one is
/// dropped, so what is asked for again and again stays, and what goes depends on the questions only.
#[derive(Clone, Debug, Default)]
pub struct RequestorMemo {
    recent: BTreeMap<Box<str>, Option<ClassIndex>>,
    old: BTreeMap<Box<str>, Option<ClassIndex>>,
}

impl RequestorMemo {
    pub fn class_of(&mut self, map: &RequestorMap, requestor: &str) -> Option<ClassIndex> {
        if let Some(class) = self.recent.get(requestor) {
            return *class;
        }
        if requestor.len() > REMEMBERED_BYTES_MAX {
            return map.class_of(requestor);
        }
        let class = match self.old.get(requestor) {
            Some(class) => *class,
            None => map.class_of(requestor),
        };
        if self.recent.len() == REMEMBERED_MAX / 2 {
            self.old = std::mem::take(&mut self.recent);
        }
        self.recent.insert(requestor.into(), class);
        class
    }

    /// How many answers are kept at the moment.
    pub fn len(&self) -> usize {
        self.recent.len() + self.old.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(classes: &[(&str, &[&str])]) -> Result<RequestorMap, RequestorsError> {
        let source = classes.iter().map(|(class, patterns)| ClassPatterns {
            class: (*class).to_owned(),
            patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
        });
        RequestorMap::new(source.collect())
    }

    fn name(map: &RequestorMap, requestor: &str) -> Option<String> {
        map.class_of(requestor).map(|class| map.source()[class.at()].class.clone())
    }

    const STOCK: [(&str, &[&str]); 7] = [
        ("land", &["land.*"]),
        ("diff", &["diff.*"]),
        ("sandbox", &["sandbox.*"]),
        ("regression", &["regression.*", "CI.*"]),
        ("ktf", &["jenkins.*", "ktf.*"]),
        ("coverage", &["coverage.*"]),
        ("tryout", &["tryout.*"]),
    ];

    #[test]
    fn a_pattern_matches_anywhere_unless_it_is_tied_to_an_end() {
        let free = map(&[("land", &["land.*"])]).expect("valid");
        assert_eq!(name(&free, "my-land").as_deref(), Some("land"));
        let tied = map(&[("land", &["^land"])]).expect("valid");
        assert_eq!(name(&tied, "my-land"), None);
        assert_eq!(name(&tied, "land-7").as_deref(), Some("land"));
    }

    #[test]
    fn an_empty_pattern_matches_everything_and_no_pattern_nothing() {
        let any = map(&[("none", &[]), ("any", &[""])]).expect("valid");
        assert_eq!(name(&any, "").as_deref(), Some("any"));
        assert_eq!(name(&any, "whoever").as_deref(), Some("any"));
        assert_eq!(name(&map(&[("none", &[])]).expect("valid"), ""), None);
        assert_eq!(name(&RequestorMap::default(), ""), None);
        assert_eq!(name(&map(&STOCK).expect("valid"), ""), None);
    }

    #[test]
    fn of_several_matches_the_first_in_the_settings_wins() {
        let classes: [(&str, &[&str]); 3] = [("land", &["land.*"]), ("diff", &["diff.*"]), ("any", &[""])];
        let mut turned = classes;
        turned.reverse();
        let (one, other) = (map(&classes).expect("valid"), map(&turned).expect("valid"));
        for _ in 0..100 {
            assert_eq!(name(&one, "land-diff").as_deref(), Some("land"));
            assert_eq!(name(&other, "land-diff").as_deref(), Some("any"));
        }
        assert_eq!(name(&map(&STOCK).expect("valid"), "CI-17").as_deref(), Some("regression"));
    }

    #[test]
    fn a_bad_pattern_is_refused_with_class_pattern_and_reason() {
        let error = map(&[("good", &["a"]), ("p", &["ok", "("])]).expect_err("refused");
        let RequestorsError::BadPattern { class, pattern, reason } = &error else { panic!("{error:?}") };
        assert_eq!((class.as_str(), pattern.as_str()), ("p", "("));
        assert!(reason.contains("unclosed group"), "{reason}");
        assert!(error.to_string().starts_with("class `p`: the requestor pattern `(`"), "{error}");
    }

    #[test]
    fn patterns_are_limited_in_number_length_and_size() {
        let long = "x".repeat(PATTERN_BYTES_MAX + 1);
        let bytes = long.len();
        assert_eq!(
            map(&[("c", &[long.as_str()])]),
            Err(RequestorsError::TooLong { class: "c".to_owned(), bytes })
        );
        let many = vec!["x"; PATTERNS_MAX + 1];
        assert_eq!(map(&[("c", &many)]), Err(RequestorsError::TooManyPatterns { count: PATTERNS_MAX + 1 }));
        assert!(map(&[("c", &many[1..])]).is_ok());
        let large = map(&[("c", &["(x{1000}){1000}"])]).expect_err("refused");
        assert!(matches!(large, RequestorsError::BadPattern { .. }), "{large:?}");
        let together = vec!["x{900}"; 400];
        let together = map(&[("c", &together)]).expect_err("refused");
        assert!(matches!(together, RequestorsError::TooLargeTogether { .. }), "{together:?}");
        let classes = vec![("c", &[][..]); CLASSES_MAX + 1];
        assert_eq!(map(&classes), Err(RequestorsError::TooManyClasses { count: CLASSES_MAX + 1 }));
    }

    #[test]
    fn a_map_is_stored_by_its_source_and_compiled_again() {
        let stock = map(&STOCK).expect("valid");
        let text = serde_json::to_string(&stock).expect("it serialises");
        let back: RequestorMap = serde_json::from_str(&text).expect("it is read back");
        assert_eq!(back, stock);
        assert_eq!(name(&back, "jenkins-1").as_deref(), Some("ktf"));
        let bad = r#"[{"class": "p", "patterns": ["("]}]"#;
        assert!(serde_json::from_str::<RequestorMap>(bad).is_err());
    }

    #[test]
    fn a_memo_answers_as_the_map_does_and_stays_small() {
        let stock = map(&STOCK).expect("valid");
        let mut memo = RequestorMemo::default();
        for number in 0..3 * REMEMBERED_MAX {
            let requestor = format!("{}-{number}", STOCK[number % STOCK.len()].0);
            assert_eq!(memo.class_of(&stock, &requestor), stock.class_of(&requestor));
            assert_eq!(memo.class_of(&stock, "land-always"), Some(ClassIndex(0)));
            assert_eq!(memo.class_of(&stock, "nobody"), None);
            assert!(memo.len() <= REMEMBERED_MAX);
        }
        let long = format!("diff-{}", "x".repeat(REMEMBERED_BYTES_MAX));
        let before = memo.len();
        assert_eq!(memo.class_of(&stock, &long), Some(ClassIndex(1)));
        assert_eq!(memo.len(), before);
    }
}
