//! The command as people and programs start it.

use std::process::Output;

#[path = "kit/starter.rs"]
mod starter;

fn plimsoll(arguments: &[&str], input: &str) -> Output {
    starter::plimsoll(arguments, input.as_bytes())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}

fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).expect("it is one JSON document")
}

#[test]
fn a_good_configuration_is_shown_as_a_table_and_as_json() {
    let table = plimsoll(&["check-config", "swarmkit"], "");
    assert_eq!(table.status.code(), Some(0));
    let shown = text(&table.stdout);
    assert!(shown.contains("window_adaptive") && shown.contains("limits.nodes"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "colours are for terminals");
    let document = json(&plimsoll(&["check-config", "swarmkit", "--json"], "").stdout);
    assert_eq!(document["ok"], true);
    assert_eq!(document["settings"]["window"], 0.05);
    assert_eq!(document["settings"]["limits"]["nodes"], 1_000_000);
}

#[test]
fn bad_input_exits_with_2_and_names_every_problem() {
    let file = r#"{"nodes": 3, "job": 4, "settings": {"headroom": []}}"#;
    let output = plimsoll(&["plan", "-"], file);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
    let expected = "error: standard input: 3 problems found\n\
                    settings.headroom: expected a number between 0 and 1, found []\n\
                    nodes: expected a list, found 3\n\
                    job: unknown field, expected `jobs`\n";
    assert_eq!(text(&output.stderr), expected);
    let output = plimsoll(&["--json", "plan", "-"], file);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), String::new()));
    let document = json(&output.stdout);
    assert_eq!(document["ok"], false);
    assert_eq!(document["problems"][2]["field"], "job");
    assert_eq!(document["problems"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_missing_file_and_a_malformed_one_exit_with_2() {
    for (arguments, input, expected) in [
        (["plan", "no/such/file"], "", "no/such/file: cannot be read"),
        (["plan", "-"], "{", "standard input: not well-formed JSON"),
        (["check-config", "no-such"], "", "no-such: neither a file nor one of the presets"),
    ] {
        let output = plimsoll(&arguments, input);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
}

#[test]
fn every_help_has_an_example() {
    for arguments in [&["--help"][..], &["check-config", "--help"], &["plan", "--help"]] {
        let output = plimsoll(arguments, "");
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("Examples:\n  plimsoll "), "{arguments:?}");
    }
}
