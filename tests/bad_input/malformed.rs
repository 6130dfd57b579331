//! Files that are no documents at all, or documents with the wrong type everywhere.

use plimsoll::core::document::FaultKind;
use plimsoll::{Format, InputError, scenario};
use serde_json::{Value, json};

use super::kit::{command, command_messages, faults, good};

fn toml() -> String {
    toml::to_string(&good()).expect("the good file can be written as TOML")
}

/// Goal: a file that ends too early is an error and nothing worse, wherever it ends. Method: a good file in
/// both formats, cut off at every letter; shorter JSON is never good, shorter TOML may be.
#[test]
fn truncated_files() {
    let json = good().to_string();
    for end in 0..json.len() {
        let error = scenario::from_text(&json[..end], Format::Json).expect_err("it is cut off");
        assert!(matches!(error, InputError::Malformed { format: Format::Json, .. }), "{end}: {error}");
    }
    let toml = toml();
    scenario::from_text(&toml, Format::Toml).expect("the whole file is good");
    let mut malformed = 0;
    for end in 0..toml.len() {
        match scenario::from_text(&toml[..end], Format::Toml) {
            Err(InputError::Malformed { .. }) => malformed += 1,
            Err(InputError::Faulty { .. }) | Ok(_) => {}
            Err(other) => panic!("{end}: {other}"),
        }
    }
    assert!(malformed > toml.len() / 4, "most places are inside something: {malformed}");
}

/// Goal: the command says what it read and where it ended. Method: one cut through each format.
#[test]
fn the_command_names_the_place_at_which_a_file_is_malformed() {
    let json = command_messages(b"{\"nodes\": [\n{\"name\": \"n\"");
    assert!(
        json[0].starts_with("standard input: not well-formed JSON: ") && json[0].contains("line 2"),
        "{json:?}"
    );
    let toml = command_messages(b"now = 1\nnodes = [");
    assert!(
        toml[0].starts_with("standard input: not well-formed TOML: ") && toml[0].contains("line 2"),
        "{toml:?}"
    );
    let binary = command_messages(b"now = \xff\xfe");
    assert_eq!(binary, ["standard input: expected UTF-8 text, found other bytes at offset 6"]);
    let empty = command(b"");
    assert_eq!(empty.status.code(), Some(0), "an empty file is an empty cluster");
}

/// Every place of the document that holds something, as a pointer.
fn places(prefix: &str, value: &Value, found: &mut Vec<String>) {
    if !prefix.is_empty() {
        found.push(prefix.to_owned());
    }
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, inner)| places(&format!("{prefix}/{name}"), inner, found));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, inner)| places(&format!("{prefix}/{index}"), inner, found));
        }
        _ => {}
    }
}

/// The path that a fault names for the place of a pointer.
fn path(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        match part.parse::<usize>() {
            Ok(index) => path += &format!("[{index}]"),
            Err(_) if path.is_empty() => path += part,
            Err(_) => path += &format!(".{part}"),
        }
    }
    path
}

/// Goal: a value of the wrong type is named at its place, everywhere in a file. Method: each value of a
/// complete file is replaced by each of four values of other types.
#[test]
fn wrong_types_everywhere() {
    let mut all = Vec::new();
    let file = complete();
    assert_eq!(faults(&file), []);
    places("", &file, &mut all);
    assert!(all.len() > 60, "the whole file is walked: {all:?}");
    for pointer in &all {
        for wrong in [json!(true), json!([[]]), json!({"?": {}}), json!("?")] {
            let mut spoiled = file.clone();
            let place = spoiled.pointer_mut(pointer).expect("it was walked");
            if same_type(place, &wrong) {
                continue;
            }
            *place = wrong.clone();
            let found = faults(&spoiled);
            let here = path(pointer);
            let named = found.iter().any(|fault| fault.field == here && fault.found.is_some());
            assert!(named, "{here} = {wrong}: {found:?}");
        }
    }
}

fn same_type(left: &Value, right: &Value) -> bool {
    std::mem::discriminant(left) == std::mem::discriminant(right)
}

/// The good file with every field that something acts on.
fn complete() -> Value {
    let mut file = good();
    file["config"] = json!("default");
    file["until"] = json!(20);
    file["settings"] = json!({
        "window": 0.05, "window_cap": 1, "window_adaptive": false, "resources": ["fpga"],
        "limits": {"jobs": 9, "tasks_per_job": 9, "groups_per_job": 9, "roles_per_group": 9, "nodes": 9,
                   "name_length": 99, "labels_per_node": 9, "label_length": 99,
                   "placements_per_turn": 9},
        "retention": {"finished_jobs": 1, "finished_age": 1},
        "deadlines": {"dispatch": 1, "prepare": 1, "run": 1, "overhead": 1, "stop": 1, "down": 1},
        "faulty": {"failures": 1, "within": 1, "broken_after": 1, "probe": 1}
    });
    let more = json!({"count": 1, "pool": "p", "labels": {"zone": "a"}, "condition": "automated",
                      "availability": "active", "liveness": "ready"});
    extend(&mut file["nodes"][0], &more);
    extend(&mut file["jobs"][0], &json!({"requestor": "me", "job_set": "s", "submitted": 1}));
    extend(&mut file["jobs"][0]["groups"][0], &json!({"start": "independent", "pool": "any"}));
    let role = json!({"min": 1, "service": "web", "version": 3, "duration": 5});
    extend(&mut file["jobs"][0]["groups"][0]["roles"][0], &role);
    extend(
        &mut file["running"][0],
        &json!({"group": "g", "role": "r", "count": 1, "node": "n", "started": 1}),
    );
    let finish = json!({"at": 13, "finish": {"job": "j", "count": 1}});
    let fail = json!({"at": 13, "fail": {"job": "j", "count": 1, "group": "g", "role": "r", "node": "n"}});
    let cancel = json!({"at": 14, "cancel": {"job": "j"}});
    file["events"].as_array_mut().expect("a list").extend([finish, fail, cancel]);
    file["failures"] = json!([{"service": "web", "version": 3, "node": "n", "at": [1]}]);
    file
}

fn extend(table: &mut Value, more: &Value) {
    let more = more.as_object().expect("a table").clone();
    table.as_object_mut().expect("a table").extend(more);
}

/// Goal: an unknown field is named wherever it stands, never ignored. Method: a stranger in every table
/// of the file except those whose names are free.
#[test]
fn unknown_fields_everywhere() {
    let file = complete();
    let mut all = vec![String::new()];
    places("", &file, &mut all);
    let is_table = |pointer: &String| file.pointer(pointer).is_some_and(Value::is_object);
    let is_free =
        |pointer: &String| ["labels", "capacity", "request"].iter().any(|name| pointer.ends_with(name));
    let tables: Vec<String> = all.into_iter().filter(is_table).filter(|pointer| !is_free(pointer)).collect();
    assert!(tables.len() > 15, "{tables:?}");
    for pointer in tables {
        let mut spoiled = file.clone();
        spoiled.pointer_mut(&pointer).expect("it was walked")["stranger"] = json!(1);
        let found = faults(&spoiled);
        let here = path(&format!("{pointer}/stranger"));
        assert!(found.len() == 1 && found[0].field == here, "{here}: {found:?}");
        assert_eq!(found[0].kind, FaultKind::UnknownField);
    }
}

/// Goal: nesting without end is an error and exhausts nothing. Method: 100,000 brackets of each sort, in
/// both formats and at a place where a list is expected, through library and command.
#[test]
fn a_hundred_thousand_brackets() {
    const DEEP: usize = 100_000;
    let brackets = "[".repeat(DEEP) + &"]".repeat(DEEP);
    let json = [
        brackets.clone(),
        "[".repeat(DEEP),
        "{\"a\":".repeat(DEEP),
        format!("{{\"nodes\": {brackets}}}"),
        format!("{{\"jobs\": [{{\"groups\": {brackets}}}]}}"),
    ];
    for text in &json {
        let error = scenario::from_text(text, Format::Json).expect_err("too deep");
        assert!(matches!(error, InputError::Malformed { .. }), "{error}");
    }
    for text in
        [format!("nodes = {brackets}"), "a.".repeat(DEEP) + "a = 1", "a = ".to_owned() + &"{a=".repeat(DEEP)]
    {
        let error = scenario::from_text(&text, Format::Toml).expect_err("too deep");
        assert!(matches!(error, InputError::Malformed { .. }), "{error}");
        assert_eq!(command_messages(text.as_bytes()).len(), 1);
    }
    assert_eq!(command_messages(json[3].as_bytes()).len(), 1);
}
