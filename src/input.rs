//! Files and texts from outside: bounded in size and depth, TOML or JSON, and every way in which
//! they can be unusable.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use plimsoll_core::document::{Faults, Value};
use thiserror::Error;

/// Why a file or text could not be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InputError {
    /// A configuration was named that is neither a preset nor a file.
    #[error("{place}: neither a file nor one of the presets {presets}")]
    NotFound {
        /// The name that was given.
        place: String,
        /// The names of all presets.
        presets: String,
    },
    /// The file could not be opened or read.
    #[error("{place}: cannot be read: {source}")]
    Unreadable {
        /// Where the text should have come from.
        place: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is larger than is accepted.
    #[error("{place}: at most {limit} bytes are accepted")]
    TooLarge {
        /// Where the text came from.
        place: String,
        /// The number of bytes that would have been accepted.
        limit: u64,
    },
    /// The file is not text.
    #[error("{place}: expected UTF-8 text, found other bytes at offset {offset}")]
    NotText {
        /// Where the bytes came from.
        place: String,
        /// The first byte that is no text.
        offset: usize,
    },
    /// The text is not well-formed, or nested too deeply.
    #[error("{place}: not well-formed {format}: {reason}")]
    Malformed {
        /// Where the text came from.
        place: String,
        /// What it was read as.
        format: Format,
        /// What is wrong with it, and where.
        reason: String,
    },
    /// The text is well-formed, but says things that cannot be accepted.
    #[error("{place}: {} found\n{faults}", problems(.faults))]
    Faulty {
        /// Where the text came from.
        place: String,
        /// Everything that is wrong with it.
        faults: Faults,
    },
}

/// How a text is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// TOML 1.1.
    Toml,
    /// JSON.
    Json,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Toml => "TOML",
            Format::Json => "JSON",
        })
    }
}

fn problems(faults: &Faults) -> String {
    match faults.listed.len() as u64 + faults.more {
        1 => "1 problem".into(),
        count => format!("{count} problems"),
    }
}

/// Reads a file of at most `limit` bytes; the format follows from its name or its first letter.
pub(crate) fn read_file(path: &Path, limit: u64) -> Result<Value, InputError> {
    let place = path.display().to_string();
    let file = File::open(path).map_err(|source| InputError::Unreadable { place: place.clone(), source })?;
    let text = read_text(file, &place, limit)?;
    let format = match path.extension().and_then(|extension| extension.to_str()) {
        Some(extension) if extension.eq_ignore_ascii_case("toml") => Format::Toml,
        Some(extension) if extension.eq_ignore_ascii_case("json") => Format::Json,
        _ => guess(&text),
    };
    parse(&text, format, &place)
}

/// Reads at most `limit` bytes from anything; the format follows from the first letter.
pub(crate) fn read_stream(stream: impl Read, place: &str, limit: u64) -> Result<Value, InputError> {
    let text = read_text(stream, place, limit)?;
    parse(&text, guess(&text), place)
}

fn read_text(stream: impl Read, place: &str, limit: u64) -> Result<String, InputError> {
    let place = place.to_owned();
    let mut bytes = Vec::new();
    if let Err(source) = stream.take(limit.saturating_add(1)).read_to_end(&mut bytes) {
        return Err(InputError::Unreadable { place, source });
    }
    if bytes.len() as u64 > limit {
        return Err(InputError::TooLarge { place, limit });
    }
    String::from_utf8(bytes)
        .map_err(|error| InputError::NotText { place, offset: error.utf8_error().valid_up_to() })
}

/// No TOML document begins with a brace, and every JSON document of ours does.
fn guess(text: &str) -> Format {
    match without_mark(text).trim_start().starts_with('{') {
        true => Format::Json,
        false => Format::Toml,
    }
}

/// Some editors put a byte order mark in front of a text.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

pub(crate) fn parse(text: &str, format: Format, place: &str) -> Result<Value, InputError> {
    let text = without_mark(text);
    let parsed = match format {
        Format::Json => serde_json::from_str(text).map_err(|error| error.to_string()),
        Format::Toml => toml::from_str(text).map_err(|error| toml_reason(text, &error)),
    };
    parsed.map_err(|reason| InputError::Malformed { place: place.to_owned(), format, reason })
}

/// The reason and its line; the parser's own text would repeat the line, however long it is.
fn toml_reason(text: &str, error: &toml::de::Error) -> String {
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return error.message().to_owned();
    };
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
    format!("{} at line {line} column {column}", error.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_guessed_from_the_first_letter() {
        assert_eq!(guess("\u{feff}\n {\"now\": 1}"), Format::Json);
        assert_eq!(guess("[limits]\njobs = 1"), Format::Toml);
        assert_eq!(guess(""), Format::Toml);
    }

    #[test]
    fn what_is_too_large_or_no_text_is_refused() {
        let large = read_stream(&b"a = 1"[..], "here", 4).expect_err("5 bytes");
        assert_eq!(large.to_string(), "here: at most 4 bytes are accepted");
        let binary = read_stream(&b"a = \xff"[..], "here", 99).expect_err("no text");
        assert_eq!(binary.to_string(), "here: expected UTF-8 text, found other bytes at offset 4");
    }

    #[test]
    fn both_formats_say_where_they_are_malformed() {
        let toml = parse("a = 1\nb = ", Format::Toml, "x").expect_err("malformed").to_string();
        assert!(toml.starts_with("x: not well-formed TOML: ") && toml.contains("at line 2 column"), "{toml}");
        let json = parse("{\n\"a\": }", Format::Json, "x").expect_err("malformed").to_string();
        assert!(json.starts_with("x: not well-formed JSON: ") && json.contains("at line 2 column"), "{json}");
    }

    #[test]
    fn dates_of_toml_are_texts() {
        let value = parse("at = 1979-05-27T07:32:00Z", Format::Toml, "x").expect("well-formed");
        assert_eq!(value.field("at"), Some(&Value::Text("1979-05-27T07:32:00Z".into())));
    }
}
