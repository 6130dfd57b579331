//! Reads the words, signs and values of an expression from left to right.

use super::error::{ConstraintError, Expected};

/// A place in the text. Every step forward lands between two letters.
#[derive(Clone)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// Where a value stands decides where it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Condition,
    List,
}

fn is_blank(letter: char) -> bool {
    letter.is_ascii_whitespace()
}

fn is_key(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_./".contains(letter)
}

/// Letters of a bare value, besides blanks and pairs of parentheses.
pub(super) fn is_bare(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || ":-_.*?+[]\\^$|/".contains(letter)
}

/// The words before which a bare value ends.
pub(super) fn is_connective(word: &str) -> bool {
    ["and", "or"].iter().any(|connective| word.eq_ignore_ascii_case(connective))
}

/// How far the text goes on with such letters.
fn run(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|letter| !belongs(letter)).unwrap_or(text.len())]
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Also moves on to the next thing that is not blank.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.at += run(self.rest(), is_blank).len();
        self.rest().is_empty()
    }

    /// What stands here cannot.
    pub(super) fn unexpected(&self, expected: Expected) -> ConstraintError {
        let rest = self.rest();
        let word = match run(rest, is_key) {
            "" => &rest[..rest.chars().next().map_or(0, char::len_utf8)],
            word => word,
        };
        ConstraintError::unexpected(self.at, word, expected)
    }

    /// Takes the sign if it comes next.
    pub(super) fn take(&mut self, sign: &str) -> bool {
        let comes = !self.is_at_end() && self.rest().starts_with(sign);
        self.at += if comes { sign.len() } else { 0 };
        comes
    }

    /// Takes the word if it comes next, whatever its case, and is not the start of a longer one.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let comes = !self.is_at_end() && run(self.rest(), is_key).eq_ignore_ascii_case(word);
        self.at += if comes { word.len() } else { 0 };
        comes
    }

    /// The next word, which may be empty, and its place.
    pub(super) fn word(&mut self) -> (usize, &'a str) {
        self.is_at_end();
        let (start, word) = (self.at, run(self.rest(), is_key));
        self.at += word.len();
        (start, word)
    }

    /// The next value and its place.
    pub(super) fn value(&mut self, place: Place) -> Result<(usize, String), ConstraintError> {
        self.is_at_end();
        let start = self.at;
        let value = match self.take("\"") {
            true => self.quoted()?,
            false => self.bare(place)?.to_owned(),
        };
        Ok((start, value))
    }

    /// The rest of a text in quotes.
    fn quoted(&mut self) -> Result<String, ConstraintError> {
        let mut value = String::new();
        loop {
            let plain = run(self.rest(), |letter| !matches!(letter, '"' | '\\'));
            value.push_str(plain);
            self.at += plain.len();
            let rest = self.rest();
            let (letter, length) = match rest.as_bytes() {
                [b'"', ..] => {
                    self.at += 1;
                    return Ok(value);
                }
                [b'\\', b'"', ..] => ('"', 2),
                [b'\\', b'\\', ..] => ('\\', 2),
                [] | [b'\\'] => {
                    let end = self.text.len();
                    return Err(ConstraintError::unexpected(end, "", Expected::QuoteClose));
                }
                _ => {
                    let escape = rest.chars().take(2).map(char::len_utf8).sum();
                    return Err(ConstraintError::unexpected(self.at, &rest[..escape], Expected::Escape));
                }
            };
            value.push(letter);
            self.at += length;
        }
    }

    /// A value without quotes, without the blanks behind it.
    fn bare(&mut self, place: Place) -> Result<&'a str, ConstraintError> {
        let start = self.at;
        let mut end = start;
        let (mut open, mut outermost) = (0_usize, start);
        while !self.is_at_end() {
            let rest = self.rest();
            let length = match rest.as_bytes()[0] {
                b'(' => {
                    outermost = if open == 0 { self.at } else { outermost };
                    open += 1;
                    1
                }
                b')' if open == 0 => break,
                b')' => {
                    open -= 1;
                    1
                }
                b',' if open == 0 && place == Place::List => break,
                _ => {
                    let word = run(rest, is_bare);
                    if word.is_empty() {
                        return Err(self.unexpected(Expected::Value));
                    }
                    let is_later_word = start < end && end < self.at && open == 0;
                    if is_later_word && place == Place::Condition && is_connective(word) {
                        break;
                    }
                    word.len()
                }
            };
            self.at += length;
            end = self.at;
        }
        if open > 0 {
            return Err(ConstraintError::unexpected(outermost, "(", Expected::ValueClose));
        }
        if start == end {
            return Err(self.unexpected(Expected::Value));
        }
        Ok(&self.text[start..end])
    }
}
