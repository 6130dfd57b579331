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
    let shown = text(&plimsoll(&["--help"], "").stdout);
    let commands =
        shown.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 6 && commands.contains(&"plan"), "{shown}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        let output = plimsoll(&[command, "--help"], "");
        assert_eq!(output.status.code(), Some(0));
        let help = text(&output.stdout);
        let examples = help.split_once("Examples:\n").map(|(_, examples)| examples);
        let example = examples.is_some_and(|all| all.contains(&format!("  plimsoll {command}")));
        assert!(example, "{command} has no example of its own:\n{help}");
        assert!(!help.contains('\u{1b}'), "colours are for terminals");
    }
    assert!(shown.contains("Examples:\n  plimsoll "));
}

/// Goal: how nodes and jobs would spend their time. Method: two pools, one task that is prepared for 30 seconds and
/// runs for 60, a second one that is still running at the end, and a node whose condition changes.
#[test]
fn a_dry_run_tells_how_time_would_be_spent() {
    let file = r#"{
        "now": 100, "until": 300, "settings": {"window": 0},
        "nodes": [{"name": "a", "pool": "x", "capacity": {"slot": 1}},
                  {"name": "b", "pool": "y", "capacity": {"slot": 1}}],
        "jobs": [{"name": "j", "pool": ["x"], "groups": [{"name": "g", "roles": [
                    {"name": "r", "max": 2, "request": {"slot": 1}, "prepare": 30, "duration": 60}]}]},
                 {"name": "k", "pool": ["x"], "tasks": 1, "request": {"slot": 1}}],
        "events": [{"at": 200, "node": {"name": "b", "condition": "manual"}}]}"#;
    let document = json(&plimsoll(&["plan", "-", "--usage", "--json"], file).stdout);
    let usage = &document["usage"];
    assert_eq!((&usage["from"], &usage["until"]), (&100.0.into(), &300.0.into()));
    let spent = |states: &serde_json::Value| -> Vec<(String, f64)> {
        let all = states.as_array().expect("a list").iter();
        let all = all.map(|one| {
            let name = |field: &str| one[field].as_str().expect("a name").to_owned();
            (format!("{} {}", name("condition"), name("usage")), one["seconds"].as_f64().expect("seconds"))
        });
        all.filter(|(_, seconds)| *seconds > 0.0).collect()
    };
    let on_a = [("automated installing".to_owned(), 60.0), ("automated running".to_owned(), 140.0)];
    assert_eq!(spent(&usage["nodes"][0]["states"]), on_a);
    assert_eq!(spent(&usage["pools"][0]["states"]), on_a);
    assert_eq!(
        spent(&usage["pools"][1]["states"]),
        [("automated idle".into(), 100.0), ("manual idle".into(), 100.0)]
    );
    let history = usage["nodes"][1]["history"].as_array().expect("a list");
    let last = history.last().expect("it is never empty");
    assert_eq!((&last["from"], &last["condition"]), (&200.0.into(), &"manual".into()));
    let jobs = usage["jobs"].as_array().expect("a list");
    let times: Vec<_> =
        jobs.iter().map(|job| (job["provisioning"].as_f64(), job["running"].as_f64())).collect();
    assert_eq!(times, [(Some(60.0), Some(120.0)), (Some(0.0), Some(20.0))]);
    let table = text(&plimsoll(&["plan", "-", "--usage"], file).stdout);
    assert!(table.contains("Time of nodes from 100.000 to 300.000") && table.contains("33.3 %"), "{table}");
    assert!(
        json(&plimsoll(&["plan", "-", "--json"], file).stdout)["usage"].is_null(),
        "only if it is wanted"
    );
}

/// Goal: whoever asks what would be decided sees how classes and queues stand then, in the units that shares are
/// counted in.
#[test]
fn a_dry_run_tells_how_classes_and_queues_stand() {
    let file = r#"{
        "settings": {"window": 0, "share_unit": "weighted", "queue_key": "dominant",
            "classes": [{"name": "build", "percent": 75}, {"name": "rest", "percent": 25}],
            "queues": [{"name": "small", "class": "build"}, {"name": "large", "class": "build"}]},
        "nodes": [{"name": "n", "count": 8, "capacity": {"cpu": 1}}],
        "jobs": [{"name": "a", "queue": "small", "tasks": 1, "request": {"cpu": 1}},
                 {"name": "b", "queue": "large", "tasks": 9, "request": {"cpu": 1}},
                 {"name": "c", "requestor": "other", "tasks": 3, "request": {"cpu": 1}}]}"#;
    let document = json(&plimsoll(&["plan", "-", "--json"], file).stdout);
    let shares = document["summary"]["shares"].as_array().expect("a list");
    let of = |class: &str, queue: Option<&str>| {
        let found = shares.iter().find(|share| share["class"] == class && share["queue"].as_str() == queue);
        found.unwrap_or_else(|| panic!("{class} {queue:?} is listed: {document}"))
    };
    let build = of("build", None);
    assert_eq!(
        (&build["percent"], &build["assigned"], &build["waiting"]),
        (&75.into(), &6.into(), &4.into())
    );
    let adjusted = |share: &serde_json::Value| share["adjusted"].clone();
    let millions = |capped: u64, uncapped: u64| {
        let (capped, uncapped) = (capped * 1_000_000, uncapped * 1_000_000);
        serde_json::json!({"capped": capped, "uncapped": uncapped})
    };
    assert_eq!(adjusted(of("build", Some("small"))), millions(1, 3));
    assert_eq!(adjusted(of("build", Some("large"))), millions(5, 5));
    let table = text(&plimsoll(&["plan", "-"], file).stdout);
    let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |cells: &[&str]| {
        let is_it = |words: &Vec<&str>| {
            let words: Vec<&str> = words.iter().copied().filter(|word| !"│┆|".contains(word)).collect();
            words == cells
        };
        assert!(words.iter().any(is_it), "{cells:?} in\n{table}");
    };
    row(&["build", "75", "6", "6", "6", "6", "4"]);
    row(&["rest", "25", "2", "2", "2", "2", "1"]);
    row(&["small", "build", "3", "1", "1", "1", "1", "0"]);
    row(&["large", "build", "3", "5", "5", "5", "5", "4"]);
}
