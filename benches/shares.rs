//! What the arithmetic of shares costs: how many tasks each of ten classes starts, and to which class each
//! of a thousand requestors belongs.
//!
//! The baselines are what one would write without loans, exactness or patterns. `--quick` is the short
//! run, `--json` prints a document for programs.

mod support;

use std::hint::black_box;

use cpu_time::ThreadTime;
use fastrand::Rng;

use plimsoll_core::shares::classes::{ClassLoad, Given, Percents};
use plimsoll_core::shares::requestors::{ClassPatterns, RequestorMap, RequestorMemo};

use support::{Options, Report, Table, Value, nanos_each};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CLASSES: usize = 10;
const REQUESTORS: usize = 1_000;
const TARGET_NANOS: f64 = 1_000.0;

fn main() {
    let options = Options::from_environment();
    let rounds = if options.quick { 20_000 } else { 500_000 };
    let mut report = Report::new("shares", options);
    let mut table = Table::new("Shares", &["what", "ns each", "baseline ns each", "baseline", "target ns"]);
    counts(&mut table, rounds);
    requestors(&mut table, rounds);
    report.add(table);
    report.finish();
}

fn counts(table: &mut Table, rounds: u32) {
    let stated: Vec<(String, i64)> =
        (0..CLASSES).map(|class| (format!("class-{class}"), 5 + class as i64)).collect();
    let percents = Percents::new(&stated).expect("good percents");
    let mut rng = Rng::with_seed(1);
    for (what, pressure) in
        [("class counts, all classes wait", 100_000), ("class counts, half of them wait", 40)]
    {
        let loads: Vec<Vec<ClassLoad>> = (0..64)
            .map(|_| {
                let load = |class: usize| {
                    let waits = pressure > 1_000 || class.is_multiple_of(2);
                    let waiting = if waits { rng.u64(1..pressure) } else { 0 };
                    ClassLoad { running: rng.u64(..2_000), waiting }
                };
                (0..CLASSES).map(load).collect()
            })
            .collect();
        let mut given = [Given::default(); CLASSES];
        let ours = each(rounds, |round| {
            black_box(percents.counts(20_000, 10, &loads[round % loads.len()], &mut given));
        });
        let mut parts = [0; CLASSES];
        let weights: Vec<f64> = (0..CLASSES).map(|class| 0.05 + class as f64 / 100.0).collect();
        let plain = each(rounds, |round| {
            let loads = &loads[round % loads.len()];
            let whole: f64 = weights
                .iter()
                .zip(loads)
                .filter(|(_, load)| load.waiting > 0)
                .map(|(weight, _)| weight)
                .sum();
            for ((part, weight), load) in parts.iter_mut().zip(&weights).zip(loads) {
                *part = ((10.0 * weight / whole) as u64).min(load.waiting);
            }
            black_box(&parts);
        });
        table.row(vec![
            what.into(),
            Value::Number(ours, 1),
            Value::Number(plain, 1),
            "in proportion, floating point, no loans".into(),
            Value::Number(TARGET_NANOS, 0),
        ]);
    }
}

fn requestors(table: &mut Table, rounds: u32) {
    let patterns = |class: usize| ClassPatterns {
        class: format!("class-{class}"),
        patterns: vec![format!("^team-{class}-.*"), format!("^bot{class}$")],
    };
    let map = RequestorMap::new((0..CLASSES).map(patterns).collect()).expect("good patterns");
    let names: Vec<String> =
        (0..REQUESTORS).map(|number| format!("team-{}-person-{number}", number % (CLASSES + 1))).collect();
    let hashed: std::collections::BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let baseline = each(rounds, |round| {
        black_box(hashed.get(names[round % REQUESTORS].as_str()));
    });
    let first = each(rounds / 10, |round| {
        black_box(map.class_of(&names[round % REQUESTORS]));
    });
    let mut memo = RequestorMemo::default();
    let again = each(rounds, |round| {
        black_box(memo.class_of(&map, &names[round % REQUESTORS]));
    });
    for (what, nanos) in [
        ("class of a requestor, first sight", first),
        ("class of one of 1,000 requestors, seen before", again),
    ] {
        table.row(vec![
            what.into(),
            Value::Number(nanos, 1),
            Value::Number(baseline, 1),
            "a look into a table of names".into(),
            "".into(),
        ]);
    }
}

fn each(rounds: u32, mut round: impl FnMut(usize)) -> f64 {
    let begin = ThreadTime::now();
    (0..rounds as usize).for_each(&mut round);
    nanos_each(begin.elapsed(), u64::from(rounds))
}
