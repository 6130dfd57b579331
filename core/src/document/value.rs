//! The tree every document becomes before it is read, so that one reader serves every format.

use std::fmt::{self, Write};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A value of a document.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    /// In the order of the file. Names that occur twice are kept: the reader reports them.
    Table(Vec<(String, Value)>),
}

/// Documents nested deeper than this are refused, so that reading one never exhausts the stack.
pub const NESTING_MAX: usize = 64;

/// How TOML hands over dates and times: as a table with this one field.
const TOML_DATETIME: &str = "$__toml_private_datetime";

/// Elements a document announces are trusted only this far; the rest grows as it arrives.
const ANNOUNCED_MAX: usize = 4_096;

impl Value {
    /// The value of a table's field, when this is a table and has it.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Table(entries) => entries.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The value as text, at most `limit` bytes and a sign that more follows.
    pub fn shortened(&self, limit: usize) -> String {
        let mut text = Shortened { text: String::new(), limit };
        // The only error there is says that the limit was reached, which the text itself shows.
        let _ = write!(text, "{self}");
        text.text
    }
}

/// A writer that stops a large value from being written out in full.
struct Shortened {
    text: String,
    limit: usize,
}

impl Write for Shortened {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.limit - self.text.len().min(self.limit);
        if part.len() <= room {
            self.text.push_str(part);
            return Ok(());
        }
        let end = (0..=room).rev().find(|end| part.is_char_boundary(*end)).unwrap_or(0);
        self.text.push_str(&part[..end]);
        self.text.push('…');
        Err(fmt::Error)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Text(text) => write!(f, "\"{}\"", text.escape_debug()),
            Value::List(items) => {
                f.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { ", " })?;
                    item.fmt(f)?;
                }
                f.write_char(']')
            }
            Value::Table(entries) => {
                f.write_char('{')?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { ", " })?;
                    write!(f, "\"{}\": {value}", key.escape_debug())?;
                }
                f.write_char('}')
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        Nested { levels: NESTING_MAX }.deserialize(deserializer)
    }
}

/// A value that may contain this many levels of lists and tables.
#[derive(Clone, Copy)]
struct Nested {
    levels: usize,
}

impl Nested {
    fn deeper<E: Error>(self) -> Result<Nested, E> {
        match self.levels.checked_sub(1) {
            Some(levels) => Ok(Nested { levels }),
            None => Err(E::custom(format!("lists and tables are nested deeper than {NESTING_MAX} levels"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Nested {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, true, false, a number, a text, a list or a table")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deeper()?.deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        // Beyond 63 bits no field of any document accepts the value, however it is rounded.
        Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Integer))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::with_capacity(access.size_hint().unwrap_or(0).min(ANNOUNCED_MAX));
        while let Some(item) = access.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut entries = Vec::with_capacity(access.size_hint().unwrap_or(0).min(ANNOUNCED_MAX));
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(inner)?;
            if key == TOML_DATETIME && matches!(value, Value::Text(_)) {
                return Ok(value);
            }
            entries.push((key, value));
        }
        Ok(Value::Table(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value {
        serde_json::from_str(text).expect("well-formed")
    }

    #[test]
    fn every_kind_of_value_is_kept_in_order() {
        let value = parse(r#"{"b": [1, -2.5, "x", null, true], "a": {}, "b": 18446744073709551615}"#);
        let list = Value::List(vec![
            Value::Integer(1),
            Value::Float(-2.5),
            Value::Text("x".into()),
            Value::Null,
            Value::Bool(true),
        ]);
        let expected = [
            ("b".to_owned(), list),
            ("a".to_owned(), Value::Table(vec![])),
            ("b".to_owned(), Value::Float(u64::MAX as f64)),
        ];
        assert_eq!(value, Value::Table(expected.to_vec()));
    }

    #[test]
    fn a_large_value_is_shown_shortened() {
        let value = Value::List(vec![Value::Text("é\n".repeat(100)); 100]);
        let text = value.shortened(10);
        assert!(text.starts_with("[\"é\\né") && text.ends_with('…') && text.len() <= 13, "{text}");
        assert_eq!(parse(r#"{"a": [1, 2.5]}"#).shortened(80), r#"{"a": [1, 2.5]}"#);
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(serde_json::from_str::<Value>(&deep(NESTING_MAX)).is_ok());
        let error = serde_json::from_str::<Value>(&deep(NESTING_MAX + 1)).expect_err("too deep");
        assert!(error.to_string().contains("deeper than 64 levels"), "{error}");
        assert!(serde_json::from_str::<Value>(&deep(100_000)).is_err());
    }
}
