//! What the tests of bad input share: good documents to spoil, and both ways to have them judged.

use std::process::Output;

use plimsoll::core::document::{Fault, FaultKind};
use plimsoll::core::plan::{self, PlanError};
use plimsoll::{Format, InputError, scenario};
use serde_json::{Value, json};

/// A good file with one of everything.
pub fn good() -> Value {
    json!({
        "now": 10,
        "nodes": [{"name": "n", "capacity": {"cpu": 4}}],
        "jobs": [{"name": "j", "groups": [{"name": "g", "roles": [
            {"name": "r", "max": 2, "request": {"cpu": 1}}]}]}],
        "running": [{"job": "j"}],
        "events": [
            {"at": 11, "submit": {"name": "k", "groups": [{"name": "g", "roles": [
                {"name": "r", "max": 2, "request": {"cpu": 1}}]}]}},
            {"at": 12, "node": {"name": "n", "availability": "pause"}},
            {"at": 12, "settings": {"window": 0.05}}],
        "settings": {"window": 0}
    })
}

/// The good file with one field given another value. `place` is a pointer such as `/nodes/0`; a `-`
/// at its end adds to a list.
pub fn with(place: &str, value: Value) -> Value {
    let mut file = good();
    let (table, field) = place.rsplit_once('/').expect("a pointer has a slash");
    match file.pointer_mut(table).expect("the table is there") {
        Value::Object(fields) => drop(fields.insert(field.to_owned(), value)),
        Value::Array(items) if field == "-" => items.push(value),
        other => panic!("{table} is no place for a field: {other}"),
    }
    file
}

/// Everything the library finds wrong with a file.
pub fn faults(file: &Value) -> Vec<Fault> {
    match scenario::from_text(&file.to_string(), Format::Json) {
        Ok(_) => Vec::new(),
        Err(InputError::Faulty { faults, .. }) => faults.listed,
        Err(other) => panic!("expected faults, found {other}"),
    }
}

/// The one thing wrong with a file: its field, its kind and the value that was found.
pub fn fault(file: &Value) -> (String, FaultKind, Option<String>) {
    match <[Fault; 1]>::try_from(faults(file)) {
        Ok([fault]) => (fault.field, fault.kind, fault.found),
        Err(faults) => panic!("expected one fault of {file}, found {faults:?}"),
    }
}

/// Why the dry run of a well-formed file is refused.
pub fn refusal(file: &Value) -> PlanError {
    let scenario = scenario::from_text(&file.to_string(), Format::Json);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    plan::run(&scenario).expect_err("it cannot be carried out")
}

/// Starts `plimsoll plan - --json` with this input.
pub fn command(input: &[u8]) -> Output {
    crate::starter::plimsoll(&["plan", "-", "--json"], input)
}

/// The problems that the command prints, one message each; it must say exit code 2 and nothing else.
pub fn command_messages(input: &[u8]) -> Vec<String> {
    let output = command(input);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), errors.as_ref()), (Some(2), ""));
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is one JSON document");
    assert_eq!(document["ok"], false);
    let problems = document["problems"].as_array().expect("a list of problems").iter();
    problems.map(|problem| problem["message"].as_str().expect("a message").to_owned()).collect()
}
