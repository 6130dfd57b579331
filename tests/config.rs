//! Configurations: the presets, and everything that can be wrong with a file.

use std::path::Path;

use plimsoll::core::sim::PRESETS;
use plimsoll::core::spec::NodeChoice;
use plimsoll::{Config, InputError};
use proptest::prelude::*;

fn messages(error: InputError) -> Vec<String> {
    match error {
        InputError::Faulty { faults, .. } => faults.listed.iter().map(ToString::to_string).collect(),
        other => panic!("expected faults, found {other}"),
    }
}

#[test]
fn every_preset_loads_with_its_window() {
    let expected = [
        ("default", 0.05, 1.0, true),
        ("scoot", 0.05, 1.0, true),
        ("armada", 0.05, 1.0, true),
        ("swarmkit", 0.05, 1.0, false),
        ("beaker", 0.0, 1.0, true),
        ("paddle", 0.0, 1.0, true),
    ];
    assert_eq!(Config::presets().collect::<Vec<_>>(), expected.map(|(name, ..)| name));
    for (name, window, cap, adaptive) in expected {
        let config = Config::load(name).unwrap_or_else(|error| panic!("{error}"));
        let settings = config.settings().window;
        let found = (settings.gap.as_seconds(), settings.cap.as_seconds(), settings.adaptive);
        assert_eq!(found, (window, cap, adaptive), "{name}");
        assert_eq!(config.name(), name);
    }
}

#[test]
fn every_preset_says_how_nodes_are_chosen() {
    for name in Config::presets() {
        let expected = match name {
            "armada" => NodeChoice::Pack,
            "beaker" => NodeChoice::OwnFirst,
            _ => NodeChoice::Spread,
        };
        assert_eq!(Config::preset(name).expect("a preset").settings().placement, expected, "{name}");
    }
    let found = messages(Config::from_toml("placement = \"packed\"").expect_err("bad"));
    assert_eq!(found, ["placement: expected one of `spread`, `pack` or `own_first`, found \"packed\""]);
}

#[test]
fn the_default_preset_is_what_runs_without_configuration() {
    let preset = Config::preset("default").expect("it comes with Plimsoll");
    assert_eq!(preset.settings(), Config::default().settings());
}

/// Goal: the simulated worlds play the presets as people have them. The worlds read no files.
#[test]
fn the_presets_of_the_simulated_worlds_are_those_of_the_files() {
    let of_worlds: Vec<_> = PRESETS.iter().map(|(name, preset)| ((*name).to_owned(), preset())).collect();
    let of_files = Config::presets().map(|name| {
        let config = Config::preset(name).expect("it comes with Plimsoll");
        (name.to_owned(), config.raw().clone())
    });
    assert_eq!(of_worlds, of_files.collect::<Vec<_>>());
}

#[test]
fn preset_files_load_by_path_too() {
    for name in Config::presets() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(name).with_extension("toml");
        let config = Config::load(&path.display().to_string()).expect("a good file");
        assert_eq!(config.settings(), Config::preset(name).expect("a preset").settings());
    }
}

#[test]
fn every_problem_is_reported_at_once() {
    let text = r#"
        window = "soon"
        window_cap = 1979-05-27
        windo_adaptive = true
        share_key = "flaw"
        bands = { low = 0 }
        [limits]
        jobs = -1
        nodes = 1e9
        job = 1
        [deadlines]
        run = nan
    "#;
    let mut found = messages(Config::from_toml(text).expect_err("bad"));
    found.sort();
    let expected = [
        "bands.low: expected a whole number between 1 and 1000000, found 0",
        "deadlines.run: expected seconds between 0.001 and 1000000000, found NaN",
        "limits.job: unknown field, expected `jobs`",
        "limits.jobs: expected a whole number between 1 and 100000000, found -1",
        "limits.nodes: expected a whole number between 1 and 10000000, found 1000000000",
        "share_key: expected one of `entitlement`, `flow`, `dominant`, `run_time` or `fifo`, found \"flaw\"",
        "windo_adaptive: unknown field, expected `window_adaptive`",
        "window: expected seconds between 0 and 3600, found \"soon\"",
        "window_cap: expected seconds between 0 and 3600, found \"1979-05-27\"",
    ];
    assert_eq!(found, expected);
}

#[test]
fn json_and_toml_say_the_same() {
    let toml = Config::from_toml("window = 0.2\nresources = [\"fpga\"]\n[limits]\njobs = 5").expect("good");
    let json = Config::from_json(r#"{"window": 0.2, "resources": ["fpga"], "limits": {"jobs": 5}}"#);
    assert_eq!(toml.settings(), json.expect("good").settings());
}

#[test]
fn fields_that_contradict_each_other_are_named() {
    let found = messages(Config::from_toml("window = 2").expect_err("longer than its cap"));
    assert_eq!(found, ["window_cap: must be at least `window`, which is 2, found 1"]);
    let found =
        messages(Config::from_toml("share_key = \"entitlement\"").expect_err("to percents of nothing"));
    let expected =
        "share_key: classes are entitled to percents, and there are no `classes`, found \"entitlement\"";
    assert_eq!(found, [expected]);
    let found = messages(Config::from_toml("non_preemptible_factor = 0").expect_err("it would be no limit"));
    let expected = "non_preemptible_factor: expected a number between 0.000001 and 1000000, found 0";
    assert_eq!(found, [expected]);
}

#[test]
fn unknown_names_list_the_presets() {
    let error = Config::load("no-such").expect_err("neither preset nor file").to_string();
    assert_eq!(
        error,
        "no-such: neither a file nor one of the presets default, scoot, armada, swarmkit, beaker, paddle"
    );
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    const DEEP: usize = 100_000;
    let dotted = "a.".repeat(78) + "a";
    let tables = format!("{{{dotted} = ").repeat(78) + "1" + &"}".repeat(78);
    let toml = [
        "a = ".to_owned() + &"[".repeat(DEEP) + &"]".repeat(DEEP),
        "a = ".to_owned() + &"{ a = ".repeat(DEEP),
        format!("[{}a]", "a.".repeat(DEEP)),
        "a.".repeat(DEEP) + "a = 1",
        format!("[{dotted}]\n{dotted} = {tables}"),
        format!("[[{dotted}]]\n{dotted} = {tables}"),
    ];
    for text in toml {
        let error = Config::from_toml(&text).expect_err("too deep");
        assert!(matches!(error, InputError::Malformed { .. }), "{error}");
        assert!(error.to_string().len() < 300, "the message is short");
    }
    for text in ["[".repeat(DEEP), "{\"a\": ".repeat(DEEP), "[".repeat(DEEP) + &"]".repeat(DEEP)] {
        let error = Config::from_json(&text).expect_err("too deep");
        assert!(matches!(error, InputError::Malformed { .. }), "{error}");
    }
}

#[test]
fn what_is_too_large_is_refused_before_it_is_read() {
    let error = Config::from_toml(&"#".repeat((16 << 20) + 1)).expect_err("too large");
    assert!(matches!(error, InputError::TooLarge { limit: 16_777_216, .. }), "{error}");
}

proptest! {
    #[test]
    fn no_text_makes_either_parser_panic(
        text in prop_oneof![".{0,80}", "[\\[\\]{}=\",.a0-9\n \\-+:#ntrue]{0,80}"]
    ) {
        let _ = Config::from_toml(&text).map_err(|error| error.to_string());
        let _ = Config::from_json(&text).map_err(|error| error.to_string());
    }

    #[test]
    fn no_bytes_make_the_file_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = Config::from_toml(&text).map_err(|error| error.to_string());
        let _ = Config::from_json(&text).map_err(|error| error.to_string());
    }
}
