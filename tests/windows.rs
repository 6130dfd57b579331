//! Identical-task windows, seen from outside: jobs of one task each are submitted at stated times, and
//! the times at which they are assigned are read from the report of a dry run.

use std::collections::BTreeMap;

use plimsoll::core::plan::{self, PlanReport};
use plimsoll::{Format, scenario};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A task of shape `shape`, submitted so many milliseconds after the beginning.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: u64,
    shape: usize,
}

/// When how many tasks were assigned together.
type Batches = Vec<(u64, usize)>;

fn arrivals(times: impl IntoIterator<Item = u64>) -> Vec<Arrival> {
    times.into_iter().map(|at| Arrival { at, shape: 0 }).collect()
}

fn settings(gap: u64, cap: u64, adaptive: bool) -> Value {
    json!({"window": gap as f64 / 1e3, "window_cap": cap as f64 / 1e3, "window_adaptive": adaptive})
}

/// 50 milliseconds after the last, a second after the first, and even the first is collected.
fn plain() -> Value {
    settings(50, 1_000, false)
}

/// The name of a job says its shape and its place in the order of arrival.
fn job(index: usize, shape: usize, duration: Option<f64>) -> Value {
    // Shapes differ only in an amount that no node ever runs out of.
    let request = json!({"slot": 1, "cpu": shape + 1});
    let role = json!({"name": "task", "max": 1, "request": request, "duration": duration});
    json!({"name": format!("{shape}-{index}"), "groups": [{"name": "tasks", "roles": [role]}]})
}

fn dry_run(settings: Value, places: usize, arrivals: &[Arrival], work: Option<(f64, f64)>) -> PlanReport {
    let duration = work.map(|(duration, _)| duration);
    let events = arrivals.iter().enumerate().map(|(index, arrival)| {
        json!({"at": arrival.at as f64 / 1e3, "submit": job(index, arrival.shape, duration)})
    });
    let node = json!({"name": "n", "capacity": {"slot": places, "cpu": 1_000_000}});
    let file = json!({
        "settings": settings,
        "until": work.map(|(_, until)| until),
        "nodes": [node],
        "events": events.collect::<Vec<_>>(),
    });
    let scenario = scenario::from_text(&file.to_string(), Format::Json);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    plan::run(&scenario).unwrap_or_else(|error| panic!("{error}"))
}

/// The batches of each shape, in order of time.
fn batches_by_shape(report: &PlanReport) -> BTreeMap<usize, Batches> {
    let mut counts: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    for decision in &report.decisions {
        let (shape, _) = decision.job.split_once('-').expect("the shape comes first");
        let shape = shape.parse().expect("it is a number");
        *counts.entry((shape, (decision.at * 1e3).round() as u64)).or_default() += 1;
    }
    let mut batches: BTreeMap<usize, Batches> = BTreeMap::new();
    for ((shape, at), count) in counts {
        batches.entry(shape).or_default().push((at, count));
    }
    batches
}

fn batches(settings: Value, places: usize, arrivals: &[Arrival]) -> Batches {
    let report = dry_run(settings, places, arrivals, None);
    batches_by_shape(&report).remove(&0).unwrap_or_default()
}

fn assigned(report: &PlanReport) -> Vec<&str> {
    report.decisions.iter().map(|decision| decision.job.as_str()).collect()
}

/// Goal: a window closes 50 ms after the last identical arrival. Method: the known cases of a plain
/// debounce with that gap.
#[test]
fn a_window_closes_a_gap_after_the_last_arrival() {
    let cases = [
        (vec![0], vec![(50, 1)]),
        (vec![0, 40], vec![(90, 2)]),
        (vec![0, 60], vec![(50, 1), (110, 1)]),
        (vec![0, 10, 20, 30, 40], vec![(90, 5)]),
        (vec![0, 0, 0], vec![(50, 3)]),
    ];
    for (times, expected) in cases {
        assert_eq!(batches(plain(), 100, &arrivals(times.clone())), expected, "{times:?}");
    }
}

/// Goal: the cap is exact: a window closes one second after its first arrival and not a gap later.
/// Method: arrivals every 40 ms never leave a gap; the one at the cap itself still belongs to it, those
/// after it begin the next window.
#[test]
fn a_window_closes_at_its_cap_exactly() {
    let until = |last| arrivals((0..=last).step_by(40));
    assert_eq!(batches(plain(), 100, &until(1_000)), [(1_000, 26)]);
    assert_eq!(batches(plain(), 100, &until(960)), [(1_000, 25)]);
    assert_eq!(batches(plain(), 100, &until(1_200)), [(1_000, 26), (1_250, 5)]);
    assert_eq!(batches(settings(50, 70, false), 100, &arrivals([0, 30, 60])), [(70, 3)]);
}

/// Goal: an arrival at the very moment at which the window would close still joins it. Method: the
/// second task arrives exactly one gap after the first.
#[test]
fn an_arrival_at_the_moment_of_closing_keeps_the_window_open() {
    assert_eq!(batches(plain(), 100, &arrivals([0, 50])), [(100, 2)]);
}

/// Goal: adaptive windows plan the first arrival after quiet at once and collect what follows. Method:
/// a burst, quiet, and one more.
#[test]
fn an_adaptive_window_opens_behind_its_first_arrival() {
    let adaptive = || settings(50, 1_000, true);
    assert_eq!(batches(adaptive(), 100, &arrivals([0, 10, 20])), [(0, 1), (70, 2)]);
    assert_eq!(batches(adaptive(), 100, &arrivals([0, 10, 20, 100])), [(0, 1), (70, 2), (100, 1)]);
    assert_eq!(batches(adaptive(), 100, &arrivals([0, 60])), [(0, 1), (60, 1)]);
    let steady = batches(adaptive(), 100, &arrivals((0..=1_080).step_by(40)));
    assert_eq!(steady, [(0, 1), (1_000, 25), (1_040, 1), (1_130, 1)]);
}

/// Goal: an adaptive window closes as soon as its batch takes every free place, and only then. Method:
/// the third arrival takes the last of three places, or does not where there are four.
#[test]
fn an_adaptive_window_closes_early_when_its_batch_fills_all_that_is_free() {
    let adaptive = || settings(50, 1_000, true);
    assert_eq!(batches(adaptive(), 3, &arrivals([0, 10, 20])), [(0, 1), (20, 2)]);
    assert_eq!(batches(adaptive(), 4, &arrivals([0, 10, 20])), [(0, 1), (70, 2)]);
    assert_eq!(batches(plain(), 3, &arrivals([0, 10, 20])), [(70, 3)], "without it nothing is early");
}

/// Goal: a window of 0 plans every arrival at once, adaptive or not. Method: arrivals close together.
#[test]
fn without_a_window_every_arrival_is_planned_at_once() {
    for adaptive in [false, true] {
        let found = batches(settings(0, 1_000, adaptive), 100, &arrivals([0, 0, 10, 11]));
        assert_eq!(found, [(0, 2), (10, 1), (11, 1)]);
    }
}

/// Goal: each shape has a window of its own. Method: arrivals of a second shape between those of a
/// first one lengthen nothing but their own window.
#[test]
fn windows_of_different_shapes_do_not_know_each_other() {
    let times = [(0, 0), (20, 1), (40, 0), (60, 2)];
    let arrivals = times.map(|(at, shape)| Arrival { at, shape });
    let found = batches_by_shape(&dry_run(plain(), 100, &arrivals, None));
    assert_eq!(found, [(0, vec![(90, 2)]), (1, vec![(70, 1)]), (2, vec![(110, 1)])].into());
}

/// Goal: windows that close at the same moment are planned together, by arrival and not shape by shape.
/// Method: two shapes, both windows close at 80 ms, and two places for three tasks.
#[test]
fn windows_that_close_at_the_same_moment_are_planned_together() {
    let times = [(0, 0), (30, 1), (30, 0)];
    let arrivals = times.map(|(at, shape)| Arrival { at, shape });
    let report = dry_run(plain(), 2, &arrivals, None);
    assert_eq!(assigned(&report), ["0-0", "1-1"]);
    assert!(report.decisions.iter().all(|decision| decision.at == 0.08), "{:?}", report.decisions);
    assert_eq!(report.waiting[0].job, "0-2");
}

/// Goal: the service and its version are the shape where the caller names them. Method: equal requests
/// of two versions are collected apart.
#[test]
fn versions_of_a_service_are_collected_apart() {
    let submit = |at: f64, name: &str, version: u32| {
        let role =
            json!({"name": "task", "max": 1, "request": {"slot": 1}, "service": "web", "version": version});
        json!({"at": at, "submit": {"name": name, "groups": [{"name": "g", "roles": [role]}]}})
    };
    let file = json!({
        "settings": plain(),
        "nodes": [{"name": "n", "capacity": {"slot": 9}}],
        "events": [submit(0.0, "old", 1), submit(0.03, "new", 2), submit(0.04, "old again", 1)],
    });
    let scenario = scenario::from_text(&file.to_string(), Format::Json).expect("a good file");
    let report = plan::run(&scenario).expect("a good scenario");
    let times: Vec<_> = report.decisions.iter().map(|one| (one.job.as_str(), one.at)).collect();
    assert_eq!(times, [("new", 0.08), ("old", 0.09), ("old again", 0.09)]);
}

/// The definition, written down once more and as plainly as possible: what one shape's arrivals, in
/// order of time, are planned as when there is always room.
fn reference(times: &[u64], gap: u64, cap: u64, adaptive: bool) -> Batches {
    let mut batches: BTreeMap<u64, usize> = BTreeMap::new();
    let mut rest = times;
    while let Some(first) = rest.first().copied() {
        let mut closes = first + gap;
        let mut members = 0;
        while let Some(next) = rest.first().copied().filter(|next| *next <= closes) {
            closes = (next + gap).min(first + cap);
            let planned_at_once = adaptive && next == first;
            if planned_at_once {
                *batches.entry(first).or_default() += 1;
            } else {
                members += 1;
            }
            rest = &rest[1..];
        }
        if members > 0 {
            *batches.entry(closes).or_default() += members;
        }
    }
    batches.into_iter().collect()
}

fn any_arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    // Multiples of ten meet the closing moments of the windows below more often than not.
    let arrival = (0u64..60, 0usize..3).prop_map(|(tens, shape)| Arrival { at: tens * 10, shape });
    prop::collection::vec(arrival, 1..40).prop_map(|mut arrivals| {
        arrivals.sort_by_key(|arrival| arrival.at);
        arrivals
    })
}

fn any_window() -> impl Strategy<Value = (u64, u64)> {
    (1u64..8, 0u64..20).prop_map(|(gap, more)| (gap * 10, gap * 10 + more * 10))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Goal: for any arrivals the times of the decisions are those of the definition. Method: the
    /// reference above, per shape, on a node that is never full.
    #[test]
    fn decisions_fall_where_the_definition_says(
        arrivals in any_arrivals(), (gap, cap) in any_window(), adaptive: bool
    ) {
        let found = batches_by_shape(&dry_run(settings(gap, cap, adaptive), 10_000, &arrivals, None));
        let mut expected = BTreeMap::new();
        for shape in 0..3 {
            let own = arrivals.iter().filter(|arrival| arrival.shape == shape);
            let times: Vec<u64> = own.map(|arrival| arrival.at).collect();
            if !times.is_empty() {
                expected.insert(shape, reference(&times, gap, cap, adaptive));
            }
        }
        prop_assert_eq!(found, expected);
    }

    /// Goal: the window changes when identical tasks start, not which of them. Method: one shape and
    /// too few places, with and without a window: the same tasks run, none of them earlier.
    #[test]
    fn the_window_changes_times_and_not_what_runs(
        arrivals in any_arrivals(), (gap, cap) in any_window(), adaptive: bool, places in 1usize..40
    ) {
        let one_shape: Vec<Arrival> =
            arrivals.into_iter().map(|arrival| Arrival { shape: 0, ..arrival }).collect();
        let with = dry_run(settings(gap, cap, adaptive), places, &one_shape, None);
        let without = dry_run(settings(0, cap, adaptive), places, &one_shape, None);
        prop_assert_eq!(assigned(&with), assigned(&without));
        prop_assert_eq!(with.decisions.len(), places.min(one_shape.len()));
        for (late, early) in with.decisions.iter().zip(&without.decisions) {
            prop_assert!(late.at >= early.at, "{} at {} and {}", late.job, late.at, early.at);
        }
    }

    /// Goal: whatever the window, everything runs once in the end. Method: several shapes on few
    /// places, tasks that end by themselves, and time enough for all of them.
    #[test]
    fn everything_runs_once_in_the_end_whatever_the_window(
        arrivals in any_arrivals(), (gap, cap) in any_window(), adaptive: bool, places in 1usize..5
    ) {
        for window in [settings(gap, cap, adaptive), settings(0, cap, adaptive)] {
            let report = dry_run(window, places, &arrivals, Some((0.5, 100.0)));
            prop_assert_eq!(report.summary.assigned_by_job.len(), arrivals.len());
            prop_assert!(report.summary.assigned_by_job.values().all(|count| *count == 1));
            prop_assert!(report.waiting.is_empty(), "{:?}", report.waiting);
        }
    }
}
