//! What the documents say is so: their dry-run files are good, and their settings are the settings.

use std::fs;
use std::path::Path;

use plimsoll::core::plan::{self, DecisionKind};
use plimsoll::core::settings::{RawSettings, Settings, bounds};
use plimsoll::{Format, scenario};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).expect("the document is there")
}

/// The contents of the fenced blocks of one language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("```{language}\n");
    text.split(&opening).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

#[test]
fn the_dry_run_file_of_the_readme_can_be_carried_out() {
    let readme = read("README.md");
    let files = blocks(&readme, "json");
    assert!(!files.is_empty(), "the README shows a dry-run file");
    for file in files {
        let scenario = scenario::from_text(file, Format::Json).unwrap_or_else(|error| panic!("{error}"));
        let report = plan::run(&scenario).expect("it can be carried out");
        assert!(report.summary.assigned > 0, "something is assigned");
    }
}

/// Goal: the README's examples of groups decide what it shows. Method: when each job of them starts.
#[test]
fn the_examples_of_groups_decide_what_the_readme_shows() {
    let starts = |name: &str| -> Vec<(f64, String)> {
        let scenario =
            scenario::from_text(&read(name), Format::Json).unwrap_or_else(|error| panic!("{error}"));
        let report = plan::run(&scenario).expect("it can be carried out");
        let assigned = report.decisions.iter().filter(|one| one.kind == DecisionKind::Assign);
        let mut starts: Vec<(f64, String)> = assigned.map(|one| (one.at, one.job.clone())).collect();
        starts.dedup();
        starts
    };
    let one = |at: f64, job: &str| (at, job.to_owned());
    assert_eq!(starts("examples/two_sets.json"), [one(0.0, "one"), one(50.0, "two")]);
    let expected = [one(0.0, "small"), one(20.0, "short"), one(100.0, "gang"), one(160.0, "long")];
    assert_eq!(starts("examples/backfill.json"), expected);
    let (early, late) = (one(0.0, "early"), one(0.0, "late"));
    let expected = [early, late, one(50.0, "long"), one(100.0, "gang"), one(160.0, "long")];
    assert_eq!(starts("examples/fillers.json"), expected);
}

/// Goal: the README's first example shows what it promises. The numbers are those of the file.
#[test]
fn the_first_example_shows_assignments_and_both_kinds_of_wait() {
    let text = read("examples/first.json");
    let scenario = scenario::from_text(&text, Format::Json).unwrap_or_else(|error| panic!("{error}"));
    let report = plan::run(&scenario).expect("it can be carried out");
    assert_eq!(report.summary.assigned, 12);
    let late = report.decisions.iter().filter(|one| one.at == 60.0);
    let late: Vec<(DecisionKind, &str)> = late.map(|one| (one.kind, one.job.as_str())).collect();
    // What has waited for a minute by then has a node kept for it.
    let (claim, assign) = (DecisionKind::Claim, DecisionKind::Assign);
    let expected = [(claim, "batch"), (assign, "render"), (assign, "render")];
    assert_eq!(late, expected, "the second gang starts when the first has finished");
    let waiting: Vec<&str> = report.waiting.iter().map(|group| group.sentence.as_str()).collect();
    let expected = [
        "1 task waits: no node has room now (of 4 nodes 4 lack cpu); node large is kept for it, \
         where 2 tasks have to end first; \
         nobody knows when it starts; nearest: 1 more cpu on node small-0",
        "1 task waits: no node could take it even if empty (of 4 nodes 4 are too small); 1 task is ahead; \
         nearest: 14 more cpu on node small-0",
    ];
    assert_eq!(waiting, expected);
}

/// Goal: the settings table is complete, in order, and gives the real defaults and meanings.
#[test]
fn the_settings_table_of_the_readme_is_true() {
    let readme = read("README.md");
    let table = readme.split("\n## Settings\n").nth(1).expect("there is a section");
    let rows = table.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    let names: Vec<&str> = rows.iter().map(|row| row[1].trim_matches('`')).collect();
    let known: Vec<&str> = bounds::DESCRIPTIONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known);
    let defaults = serde_json::to_value(RawSettings::from(&Settings::default())).expect("settings are data");
    for (row, (name, meaning)) in rows.iter().zip(bounds::DESCRIPTIONS) {
        assert_eq!(row[4], *meaning, "{name}");
        let default = name.split('.').fold(&defaults, |section, part| &section[part]);
        let shown = row[2].replace(',', "");
        match default.as_f64() {
            Some(number) => assert_eq!(shown.parse(), Ok(number), "{name}"),
            None if default.is_array() || default.is_null() => assert_eq!(shown, "none", "{name}"),
            None if default.is_string() => assert_eq!(Some(&*shown), default.as_str(), "{name}"),
            None if default.is_object() => {
                let entries = default.as_object().into_iter().flatten();
                let set =
                    entries.filter_map(|(key, value)| Some((key, value.as_f64().filter(|one| *one > 0.0)?)));
                let set: Vec<String> = set.map(|(key, value)| format!("{key} {value}")).collect();
                let expected = if set.is_empty() { "none".to_owned() } else { set.join(" ") };
                assert_eq!(shown, expected, "{name}");
            }
            None => assert_eq!(shown, default.to_string(), "{name}"),
        }
    }
}
