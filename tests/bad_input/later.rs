//! Fields of the format that nothing acts on yet: none of them is passed over in silence, at any level.

use plimsoll::core::document::FaultKind;
use serde_json::{Value, json};

use crate::fields_of_later::SETTINGS_OF_LATER;

use super::kit::{command_messages, fault, faults, good, with};

const NODE: [&str; 1] = ["reserved"];

/// What cannot be changed yet while a node is there.
const CHANGE: [&str; 4] = ["os", "arch", "plugins", "engine_labels"];

/// Every place at which a field of later may stand, as a pointer and as the path that faults name.
fn places() -> Vec<(String, String)> {
    let levels: [(&str, &str, &[&str]); 5] = [
        ("/nodes/0", "nodes[0]", &NODE),
        ("/events/1/node", "events[1].node", &NODE),
        ("/events/1/node", "events[1].node", &CHANGE),
        ("/settings", "settings", &SETTINGS_OF_LATER),
        ("/events/2/settings", "events[2].settings", &SETTINGS_OF_LATER),
    ];
    let expand = |(pointer, path, fields): (&str, &str, &[&str])| -> Vec<(String, String)> {
        fields.iter().map(|field| (format!("{pointer}/{field}"), format!("{path}.{field}"))).collect()
    };
    let mut places: Vec<(String, String)> = levels.into_iter().flat_map(expand).collect();
    places.push(("/events/1/node/pool".into(), "events[1].node.pool".into()));
    places
}

fn name(path: &str) -> &str {
    path.rsplit('.').next().expect("a path has a last part")
}

/// What the message of a field of later must be; only a field of the file itself needs no path.
fn message(path: &str, found: &Value) -> String {
    let place = if path == name(path) { String::new() } else { format!("{path}: ") };
    format!("{place}not supported yet: {}, found {found}", name(path))
}

/// Goal: a field that nothing acts on yet is refused by its name at every level. Method: each of them is
/// put into a file that is otherwise good, with a value that asks for something.
#[test]
fn no_field_of_later_is_passed_over() {
    assert_eq!(faults(&good()), []);
    let wish = json!(["something"]);
    for (pointer, path) in places() {
        let (field, kind, found) = fault(&with(&pointer, wish.clone()));
        assert_eq!((field.as_str(), kind), (path.as_str(), FaultKind::NotSupportedYet));
        assert_eq!(found.as_deref(), Some("[\"something\"]"), "{path}");
        let all = faults(&with(&pointer, wish.clone()));
        assert_eq!(all[0].to_string(), message(&path, &wish));
    }
}

/// Goal: whatever type the value has, it is never mistaken for a request for nothing. Method: several
/// values that all ask for something, in every place.
#[test]
fn every_value_that_asks_for_something_is_refused() {
    for value in [json!(7), json!(-1), json!(true), json!("some"), json!({"a": 1}), json!([0])] {
        for (pointer, path) in places() {
            let (field, kind, _) = fault(&with(&pointer, value.clone()));
            assert_eq!((field, kind), (path, FaultKind::NotSupportedYet), "{value}");
        }
    }
}

/// Goal: null asks for nothing, so a complete file written by a program is accepted. Method: every field
/// of later with null.
#[test]
fn null_asks_for_nothing() {
    for (pointer, path) in places() {
        assert_eq!(faults(&with(&pointer, Value::Null)), [], "{path}");
    }
}

/// Goal: the command refuses fields of later with exit code 2 and their names. Method: one file with a
/// wish at every place at once; every one of them is named, in one answer.
#[test]
fn the_command_names_every_field_of_later() {
    let wish = json!(["something"]);
    let mut file = good();
    for (pointer, _) in places() {
        let (table, field) = pointer.rsplit_once('/').expect("a pointer has a slash");
        file.pointer_mut(table).expect("the table is there")[field] = wish.clone();
    }
    let mut expected: Vec<String> = places().iter().map(|(_, path)| message(path, &wish)).collect();
    let mut found = command_messages(file.to_string().as_bytes());
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}
