//! What may happen according to the format but is not acted on yet: none of it is passed over in silence.

use plimsoll::core::document::FaultKind;
use serde_json::json;

use super::kit::{command_messages, fault, good, with};

const EVENTS: [&str; 2] = ["idle", "settings"];

/// Goal: what may happen according to the format but is not acted on yet is refused. Method: each such
/// event in place of a good one.
#[test]
fn no_event_of_later_is_passed_over() {
    for action in EVENTS {
        let mut event = json!({"at": 12});
        event[action] = json!({"job": "j"});
        let (field, kind, found) = fault(&with("/events/-", event));
        assert_eq!((field, kind), (format!("events[2].{action}"), FaultKind::NotSupportedYet));
        assert_eq!(found.as_deref(), Some(r#"{"job": "j"}"#));
    }
}

/// Goal: the command refuses such events with exit code 2 and their names. Method: one file with all of them;
/// every one is named, in one answer.
#[test]
fn the_command_names_every_event_of_later() {
    let mut file = good();
    for action in EVENTS {
        file["events"].as_array_mut().expect("a list").push(json!({"at": 12, action: "something"}));
    }
    let events = EVENTS.iter().enumerate();
    let message = |(index, action): (usize, &&str)| {
        format!("events[{}].{action}: not supported yet: {action}, found \"something\"", index + 2)
    };
    let mut expected: Vec<String> = events.map(message).collect();
    let mut found = command_messages(file.to_string().as_bytes());
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}
