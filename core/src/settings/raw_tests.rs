//! Settings as files have them: read, merged, checked and printed again.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::document::reader_tests::any_value;
use crate::document::{Fault, Value};
use crate::settings::{RawClass, ShareKey, ShareUnit};

fn document(text: &str) -> Value {
    serde_json::from_str(text).expect("well-formed")
}

fn messages(result: Result<impl Sized, crate::document::Faults>) -> Vec<String> {
    match result {
        Ok(_) => Vec::new(),
        Err(faults) => faults.listed.iter().map(Fault::to_string).collect(),
    }
}

#[test]
fn nothing_given_is_the_default() {
    assert_eq!(RawSettings::default().validate(), Ok(Settings::default()));
    assert_eq!(RawSettings::from_document(&document("{}")), Ok(RawSettings::default()));
}

#[test]
fn effective_settings_read_back_as_themselves() {
    let text = r#"{"window": 0.1, "window_cap": 2, "window_adaptive": false, "resources": ["fpga", "x.y/z"],
        "limits": {"jobs": 7, "nodes": 9}, "retention": {"finished_age": 1.5}, "deadlines": {"run": 60},
        "faulty": {"failures": 0, "within": 60, "broken_after": 2, "probe": 0},
        "rebalance": {"threshold": 20, "duration": 30, "on_preempt": "fail"}}"#;
    let raw = RawSettings::from_document(&document(text)).expect("good");
    let settings = raw.validate().expect("good");
    assert_eq!((settings.limits.jobs, settings.limits.nodes, settings.kinds.len()), (7, 9, 6));
    let faulty = settings.faulty;
    assert_eq!((faulty.failures, faulty.broken_after, faulty.probe.as_seconds()), (0, 2, 0.0));
    let rebalance = settings.rebalance;
    assert_eq!((rebalance.threshold, rebalance.duration.as_seconds()), (20, 30.0));
    assert_eq!(rebalance.on_preempt, crate::spec::OnPreempt::Fail);
    assert_eq!(RawSettings::from(&settings).validate(), Ok(settings));
}

#[test]
fn later_layers_replace_what_they_give() {
    let mut raw = RawSettings { window: Some(0.0), window_adaptive: Some(true), ..RawSettings::default() };
    let mut over = RawSettings { window: Some(0.2), ..RawSettings::default() };
    over.limits.jobs = Some(5);
    (raw.faulty.failures, raw.faulty.within, over.faulty.within) = (Some(2), Some(1.0), Some(9.0));
    raw.merge(&over);
    assert_eq!((raw.faulty.failures, raw.faulty.within, raw.faulty.probe), (Some(2), Some(9.0), None));
    assert_eq!((raw.window, raw.window_adaptive, raw.limits.jobs), (Some(0.2), Some(true), Some(5)));
}

#[test]
fn every_bad_setting_is_named_at_once() {
    let text = r#"{"window": -1, "window_cap": "soon", "resources": ["fpga", "fpga", 7], "windov": 1,
        "limits": {"jobs": 0, "tasks": 1}, "deadlines": {"stop": 0}, "retention": 3,
        "faulty": {"failures": 101, "within": 0, "after": 1}, "headroom": 1.1}"#;
    let expected = [
        "window: expected seconds between 0 and 3600, found -1",
        "window_cap: expected seconds between 0 and 3600, found \"soon\"",
        "resources[1]: a resource kind may be declared only once, found \"fpga\"",
        "resources[2]: expected a text, found 7",
        "limits.jobs: expected a whole number between 1 and 100000000, found 0",
        "limits.tasks: unknown field, expected `tasks_per_job`",
        "retention: expected a table, found 3",
        "deadlines.stop: expected seconds between 0.001 and 1000000000, found 0",
        "faulty.failures: expected a whole number between 0 and 100, found 101",
        "faulty.within: expected seconds between 0.001 and 1000000000, found 0",
        "faulty.after: unknown field, expected `failures`, `within`, `broken_after` or `probe`",
        "headroom: expected a number between 0 and 1, found 1.1",
        "windov: unknown field, expected `window`",
    ];
    assert_eq!(messages(RawSettings::from_document(&document(text))), expected);
}

#[test]
fn values_set_by_programs_are_checked_too() {
    let mut raw = RawSettings {
        window: Some(5.0),
        resources: Some(vec!["fine".into(), "not fine".into()]),
        ..RawSettings::default()
    };
    raw.limits.nodes = Some(u64::MAX);
    raw.deadlines.run = Some(f64::NAN);
    let expected = [
        "resources[1]: expected the name of a resource kind: \
         1 to 128 letters, digits, `-`, `_`, `.` or `/`, found \"not fine\"",
        "window_cap: must be at least `window`, which is 5, found 1",
        "limits.nodes: expected a whole number between 1 and 10000000, found 9223372036854775807",
        "deadlines.run: expected seconds between 0.001 and 1000000000, found NaN",
    ];
    assert_eq!(messages(raw.validate()), expected);
    raw = RawSettings { resources: Some((0..40).map(|n| format!("k{n}")).collect()), ..Default::default() };
    assert_eq!(messages(raw.validate()).len(), 12, "32 kinds in all, 4 of them built in");
}

#[test]
fn classes_that_come_at_runtime_are_entitled_to_their_percents() {
    let class = |name: &str, percent| RawClass { name: name.to_owned(), percent, ..RawClass::default() };
    let settings = Settings::default();
    let with_classes = settings.edited(|raw| {
        raw.shares.classes = Some(vec![class("a", 3), class("b", 1)]);
        Ok(())
    });
    let with_classes = with_classes.expect("good settings");
    assert_eq!(with_classes.shares.share_key, ShareKey::Entitlement);
    assert_eq!((settings.shares.unit, with_classes.shares.unit), (ShareUnit::Weighted, ShareUnit::Slot));
    let by_flow = with_classes.edited(|raw| {
        raw.shares.share_key = Some(ShareKey::Flow);
        Ok(())
    });
    let again = by_flow.expect("good settings").edited(|_| Ok(())).expect("good settings");
    assert_eq!(again.shares.share_key, ShareKey::Flow);
}

#[test]
fn every_setting_is_described() {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(RawSettings::from(&Settings::default()))
    else {
        panic!("settings are a table")
    };
    // What has no value unless it is given.
    let given = [
        "default_class",
        "share_key",
        "share_unit",
        "non_preemptible_factor",
        "excess_budget",
        "protected_fraction",
    ];
    let mut names: BTreeSet<String> = given.map(str::to_owned).into();
    let sections = ["limits", "retention", "deadlines", "faulty", "monitor", "rebalance"];
    for (name, value) in fields {
        match value {
            serde_json::Value::Object(section) if sections.contains(&name.as_str()) => {
                names.extend(section.keys().map(|inner| format!("{name}.{inner}")))
            }
            _ => drop(names.insert(name)),
        }
    }
    let described: BTreeSet<String> = bounds::DESCRIPTIONS.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(described, names);
}

proptest! {
    #[test]
    fn no_document_makes_the_reader_panic(value in any_value(), limits in any_value()) {
        let _ = RawSettings::from_document(&value);
        let document = Value::Table(vec![("limits".into(), limits), ("window".into(), value)]);
        if let Ok(raw) = RawSettings::from_document(&document) {
            prop_assert!(raw.validate().is_ok() || raw.window > Some(1.0));
        }
    }
}
