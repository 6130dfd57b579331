//! Whole dry runs: every file in `tests/scenarios` is carried out and its report compared with the
//! expectation beside it, `NAME.expect.json`. The files double as examples of the format.
//!
//! An expectation gives a part of the report. Every field in it must be in the report with the same
//! value; lists must have the same length and match element by element. Two fields are not the
//! report's own: `about` says what the scenario shows, and `story` is the list of all decisions with
//! one line for each, `AT KIND JOB ROLE TASK -> NODE`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll::core::plan;
use plimsoll::scenario;
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// The scenarios by name, in order, each with its file.
fn scenarios() -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder()).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let mut found: Vec<(String, PathBuf)> = paths
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?.to_owned();
            (!name.ends_with(".expect")).then_some((name, path))
        })
        .collect();
    found.sort();
    found
}

fn expectation(name: &str) -> Value {
    let path = folder().join(format!("{name}.expect.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The report of the library, as a program would read it, with its story.
fn report(path: &Path) -> Value {
    let place = path.display();
    let scenario = scenario::load(&place.to_string()).unwrap_or_else(|error| panic!("{error}"));
    let report = plan::run(&scenario).unwrap_or_else(|error| panic!("{place}: {error}"));
    serde_json::to_value(report).expect("a report can be written")
}

fn with_story(mut report: Value) -> Value {
    let decisions = report["decisions"].as_array().expect("decisions are a list");
    let line = |one: &Value| {
        let text = |field: &str| one[field].as_str().unwrap_or("?").to_owned();
        let (kind, job, role, node) = (text("kind"), text("job"), text("role"), text("node"));
        let at = one["at"].as_f64().expect("a time");
        format!("{at} {kind} {job} {role} {} -> {node}", one["task"])
    };
    report["story"] = decisions.iter().map(line).collect();
    report
}

/// Where the report differs from what is expected of it, one line for each place.
fn differences(place: &str, expected: &Value, found: &Value) -> Vec<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let inside = |(name, value): (&String, &Value)| {
                let place = format!("{place}.{name}");
                match found.get(name) {
                    Some(found) => differences(&place, value, found),
                    None => vec![format!("{place}: expected {value}, but there is no such field")],
                }
            };
            expected.iter().flat_map(inside).collect()
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let pairs = expected.iter().zip(found).enumerate();
            pairs
                .flat_map(|(index, (one, other))| differences(&format!("{place}[{index}]"), one, other))
                .collect()
        }
        _ if expected == found || equal_numbers(expected, found) => Vec::new(),
        _ => vec![format!("{place}: expected {expected}, found {found}")],
    }
}

/// `5` and `5.0` are the same number.
fn equal_numbers(left: &Value, right: &Value) -> bool {
    left.as_f64().is_some_and(|left| right.as_f64() == Some(left))
}

/// Goal: every scenario comes out as its expectation says. Method: all of them through the library,
/// and every difference of every scenario is listed at once.
#[test]
fn every_scenario_comes_out_as_expected() {
    let mut failures = Vec::new();
    for (name, path) in scenarios() {
        let mut expected = expectation(&name);
        expected.as_object_mut().expect("an expectation is a table").remove("about");
        let found = with_story(report(&path));
        let differences = differences("", &expected, &found);
        failures.extend(differences.into_iter().map(|difference| format!("{name}{difference}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Goal: no scenario lacks its expectation, and none says nothing. Method: the folder is listed; each
/// expectation must say what it shows and give at least what is decided or what waits.
#[test]
fn every_scenario_has_an_expectation_that_says_something() {
    let names: BTreeSet<String> = scenarios().into_iter().map(|(name, _)| name).collect();
    assert!(names.len() >= 20, "the folder is read: {names:?}");
    for name in &names {
        let expected = expectation(name);
        assert!(expected["about"].as_str().is_some_and(|about| about.ends_with('.')), "{name}");
        let says =
            ["story", "decisions", "summary", "waiting"].iter().any(|field| expected.get(field).is_some());
        assert!(says, "{name} expects nothing");
    }
    let files = fs::read_dir(folder()).expect("the folder is there");
    assert_eq!(files.count(), 2 * names.len(), "each scenario is two files");
}

/// Goal: a wrong report would be noticed. Method: each way in which a report can differ is shown to
/// the comparison.
#[test]
fn every_difference_is_noticed() {
    let found = json!({"a": 1.0, "list": [1, {"b": "x"}], "more": true});
    let noticed = |expected: Value| differences("", &expected, &found);
    assert_eq!(noticed(json!({"a": 1, "list": [1, {"b": "x"}]})), [""; 0]);
    assert_eq!(noticed(json!({"a": 2})), [".a: expected 2, found 1.0"]);
    assert_eq!(noticed(json!({"c": 2})), [".c: expected 2, but there is no such field"]);
    assert_eq!(noticed(json!({"list": [1]})), [".list: expected [1], found [1,{\"b\":\"x\"}]"]);
    assert_eq!(noticed(json!({"list": [1, {"b": "y"}]})), [".list[1].b: expected \"y\", found \"x\""]);
    assert_eq!(noticed(json!({"more": "true"})), [".more: expected \"true\", found true"]);
}

/// Goal: the command says exactly what the library decides. Method: some scenarios of each sort through
/// the real command, as one JSON document; nothing goes to standard error.
#[test]
fn the_command_prints_the_same_report() {
    let chosen =
        ["bag_on_slots", "gang_starts_again_after_a_loss", "nothing_at_all", "written_as_toml", "never_fits"];
    let all = scenarios();
    for name in chosen {
        let (_, path) = all.iter().find(|(known, _)| known == name).expect("the scenario is there");
        let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["plan", "--json"])
            .arg(path)
            .output()
            .expect("the command starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), errors.as_ref()), (Some(0), ""), "{name}");
        let printed: Value = serde_json::from_slice(&output.stdout).expect("it is one JSON document");
        assert_eq!(printed, report(path), "{name}");
    }
}

/// Goal: the same file gives the same report, to the last letter. Method: every scenario twice.
#[test]
fn the_same_scenario_gives_the_same_report() {
    for (name, path) in scenarios() {
        assert_eq!(report(&path).to_string(), report(&path).to_string(), "{name}");
    }
}
