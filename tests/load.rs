//! Runs under load, short ones: what they print adds up, and every promise is kept.

use std::process::Output;

use serde_json::Value;

#[path = "kit/starter.rs"]
mod starter;

fn load(arguments: &[&str]) -> Output {
    starter::plimsoll(&[&["load"], arguments].concat(), b"")
}

fn document(arguments: &[&str]) -> Value {
    let output = load(&[arguments, &["--json"]].concat());
    let shown = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    serde_json::from_slice(&output.stdout).expect("it is one JSON document")
}

/// Goal: a run of so many jobs ends by itself, counts every task, and writes a page that stands alone.
#[test]
fn a_run_of_some_jobs_counts_every_task_and_writes_its_page() {
    let page = std::env::temp_dir().join(format!("plimsoll-load-{}.html", std::process::id()));
    let place = page.to_str().expect("a plain path");
    let figures = document(&[
        "--jobs",
        "300",
        "--tasks",
        "3",
        "--nodes",
        "20",
        "--seconds",
        "60",
        "--producers",
        "4",
        "--report",
        place,
    ]);
    let written = std::fs::read_to_string(&page).expect("the page is there");
    std::fs::remove_file(&page).expect("it can be removed");
    assert_eq!(figures["promises_kept"], true, "{figures:#}");
    let jobs = figures["jobs_submitted"].as_u64().expect("a number");
    // Jobs of the probe have one task. The last of them may not have been measured.
    let probes =
        figures["latency_microseconds"]["submit_to_assigned"]["measured"].as_u64().expect("a number");
    assert!((300..=301).contains(&(jobs - probes)), "{jobs} with {probes}");
    assert!(figures["task_lives"].as_u64().expect("a number") >= 3 * (jobs - probes - 1));
    assert!(written.contains("<svg") && written.contains("Throughput over time"));
    for outside in ["http:", "https:", "<script", "@import", "url("] {
        assert!(!written.contains(outside), "the page asks for {outside}");
    }
}

/// Goal: where the service reports the ends itself, by task and by idle node, nothing is lost either.
#[test]
fn a_mix_of_events_loses_nothing() {
    let figures = document(&["--mix", "3:1:2", "--seconds", "1", "--nodes", "20", "--preset", "beaker"]);
    assert_eq!(figures["promises_kept"], true, "{figures:#}");
    assert!(figures["task_lives"].as_u64() > Some(0), "{figures:#}");
}

/// Goal: simulated cores are kept busy with jobs of ten minutes, and the same run gives the same figures.
#[test]
fn simulated_cores_are_kept_busy() {
    let figures = || document(&["--simulated", "--cores", "2000", "--seconds", "1000"]);
    let (one, other) = (figures(), figures());
    assert_eq!(one["promises_kept"], true, "{one:#}");
    for kind in ["cpu", "memory"] {
        assert!(one["utilisation"][kind].as_f64() > Some(0.9), "{one:#}");
    }
    for figure in ["jobs_submitted", "task_lives", "utilisation"] {
        assert_eq!(one[figure], other[figure]);
    }
}

#[test]
fn what_cannot_be_driven_is_refused_before_the_run() {
    for (arguments, expected) in [
        (&["--mix", "1:2"][..], "expected three parts"),
        (&["--mix", "0:1:1"], "without submissions nothing happens"),
        (&["--preset", "no-such"], "neither a file nor one of the presets"),
        (&["--simulated", "--nodes", "3"], "cannot be used with"),
        (&["--report", "no/such/place.html"], "no/such/place.html"),
    ] {
        let output = load(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(shown.contains(expected), "{shown}");
    }
}
