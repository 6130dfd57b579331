//! What a run gave, for people and for programs.

use std::io;
use std::process::ExitCode;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use super::super::FAILED;
use super::super::output::Output;
use super::memory;
use super::progress::{Sample, rate};
use super::promises::Verdict;

/// Microseconds of something that was measured often.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) micros: Histogram<u64>,
}

#[derive(Debug)]
pub(super) struct Figures {
    pub(super) title: String,
    pub(super) seconds: f64,
    pub(super) interrupted: bool,
    /// The seconds are virtual.
    pub(super) simulated: bool,
    pub(super) jobs: u64,
    pub(super) refused: u64,
    pub(super) events_in: u64,
    pub(super) lives: u64,
    pub(super) missed: u64,
    pub(super) cpu_seconds: f64,
    pub(super) latencies: Vec<Named>,
    pub(super) utilisation: Vec<(String, f64)>,
    pub(super) samples: Vec<Sample>,
    pub(super) promises: Vec<Verdict>,
    pub(super) threads_joined: bool,
}

pub(super) const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

impl Named {
    pub(super) fn new(name: &'static str, micros: Histogram<u64>) -> Named {
        Named { name, micros }
    }
}

/// Microseconds as people read them.
pub(super) fn span(micros: u64) -> String {
    match micros {
        0..10_000 => format!("{micros} µs"),
        10_000..10_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

/// A count with its thousands apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Figures {
    pub(super) fn is_kept(&self) -> bool {
        self.promises.iter().all(|verdict| verdict.broken.is_none())
    }

    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds.max(1e-9)
    }

    /// Memory after the first tenth of the run, at its end, and the most there was.
    pub(super) fn memory(&self) -> (u64, u64, u64) {
        let early = self.samples.iter().find(|sample| sample.seconds * 10.0 >= self.seconds);
        let last = self.samples.last().copied().unwrap_or_default().memory;
        let most = self.samples.iter().map(|sample| sample.memory).max().unwrap_or(0);
        (early.map_or(last, |sample| sample.memory), last, most)
    }

    /// The plain figures, each with its name.
    pub(super) fn rows(&self) -> Vec<(String, String)> {
        let whole = |rate: f64| grouped(rate.round() as u64);
        let (early, last, most) = self.memory();
        let per_life = match self.lives {
            0 => "none has ended".to_owned(),
            lives => format!("{:.2} µs", self.cpu_seconds * 1e6 / lives as f64),
        };
        let mut rows = vec![
            (if self.simulated { "virtual seconds" } else { "seconds" }, format!("{:.1}", self.seconds)),
            ("jobs submitted", grouped(self.jobs)),
            ("jobs per second", whole(self.per_second(self.jobs))),
            ("events in per second", whole(self.per_second(self.events_in))),
            ("task lives", grouped(self.lives)),
            ("task lives per second", whole(self.per_second(self.lives))),
            ("processor time per task life", per_life),
            ("memory early / at the end / most", [early, last, most].map(memory::text).join(" / ")),
        ];
        if self.refused > 0 {
            rows.push(("jobs refused", grouped(self.refused)));
        }
        if self.missed > 0 {
            rows.push(("events missed by the counter", grouped(self.missed)));
        }
        let mut rows: Vec<(String, String)> =
            rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        for (kind, part) in &self.utilisation {
            rows.push((format!("utilisation of {kind}"), format!("{:.1} %", part * 100.0)));
        }
        rows
    }

    pub(super) fn print(&self, output: &mut Output) -> io::Result<ExitCode> {
        if output.json {
            output.document(&self.document())?;
        } else {
            self.print_tables(output)?;
        }
        Ok(if self.is_good() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
    }

    /// Whether the run ended as it should, however fast it was.
    fn is_good(&self) -> bool {
        self.is_kept() && self.threads_joined
    }

    fn print_tables(&self, output: &mut Output) -> io::Result<()> {
        output.heading(&self.title)?;
        output.table(&["load", ""], self.rows().into_iter().map(|(name, value)| vec![name, value]))?;
        let mut header = vec!["latency", "measured"];
        header.extend(QUANTILES.map(|(name, _)| name));
        header.push("most");
        let latencies = self.latencies.iter().map(|latency| {
            let mut row = vec![latency.name.to_owned(), grouped(latency.micros.len())];
            row.extend(QUANTILES.map(|(_, quantile)| span(latency.micros.value_at_quantile(quantile))));
            row.push(span(latency.micros.max()));
            row
        });
        output.note("")?;
        output.table(&header, latencies)?;
        output.note("")?;
        let promises = self.promises.iter().map(|verdict| {
            let found = verdict.broken.clone().unwrap_or_else(|| "kept".into());
            vec![verdict.promise.to_owned(), found]
        });
        output.table(&["promise", ""], promises)?;
        if self.interrupted {
            output.note("It was interrupted; the figures are those so far.")?;
        }
        Ok(())
    }

    pub(super) fn document(&self) -> Value {
        let (early, last, most) = self.memory();
        let latencies: Map<String, Value> = self.latencies.iter().map(named_document).collect();
        let utilisation: Map<String, Value> =
            self.utilisation.iter().map(|(kind, part)| (kind.clone(), json!(part))).collect();
        let over_time: Vec<Value> =
            self.samples.windows(2).map(|pair| sample_document(pair[0], pair[1])).collect();
        let promises: Vec<Value> = self
            .promises
            .iter()
            .map(|verdict| json!({"promise": verdict.promise, "broken": verdict.broken}))
            .collect();
        json!({
            "title": self.title,
            "simulated": self.simulated,
            "interrupted": self.interrupted,
            "seconds": self.seconds,
            "jobs_submitted": self.jobs,
            "jobs_refused": self.refused,
            "jobs_per_second": self.per_second(self.jobs),
            "events_in": self.events_in,
            "events_in_per_second": self.per_second(self.events_in),
            "task_lives": self.lives,
            "task_lives_per_second": self.per_second(self.lives),
            "cpu_microseconds_per_task_life":
                (self.lives > 0).then(|| self.cpu_seconds * 1e6 / self.lives as f64),
            "events_missed_by_the_counter": self.missed,
            "latency_microseconds": latencies,
            "utilisation": utilisation,
            "memory_bytes": {"early": early, "end": last, "most": most},
            "over_time": over_time,
            "promises": promises,
            "promises_kept": self.is_kept(),
            "threads_joined": self.threads_joined,
        })
    }
}

fn named_document(latency: &Named) -> (String, Value) {
    let mut figures = Map::new();
    figures.insert("measured".into(), json!(latency.micros.len()));
    for (name, quantile) in QUANTILES {
        figures.insert(name.into(), json!(latency.micros.value_at_quantile(quantile)));
    }
    figures.insert("most".into(), json!(latency.micros.max()));
    (latency.name.replace(' ', "_"), Value::Object(figures))
}

fn sample_document(before: Sample, after: Sample) -> Value {
    json!({
        "seconds": after.seconds,
        "events_in_per_second": rate(before, after, |sample| sample.events_in),
        "task_lives_per_second": rate(before, after, |sample| sample.lives),
        "memory_bytes": after.memory,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([7, 12_340, 61_000_000].map(span), ["7 µs", "12.3 ms", "61.0 s"]);
    }

    fn figures(broken: Option<&str>) -> Figures {
        Figures {
            title: "a run".into(),
            seconds: 1.0,
            interrupted: false,
            simulated: false,
            jobs: 1,
            refused: 0,
            events_in: 1,
            lives: 0,
            missed: 0,
            cpu_seconds: 1.0,
            latencies: Vec::new(),
            utilisation: Vec::new(),
            samples: Vec::new(),
            promises: vec![Verdict { promise: "nothing is lost", broken: broken.map(str::to_owned) }],
            threads_joined: true,
        }
    }

    /// Goal: a broken promise makes the whole run fail, and is told in every form.
    #[test]
    fn a_broken_promise_fails_the_run() {
        let (kept, broken) = (figures(None), figures(Some("two tasks are gone")));
        assert_eq!((kept.is_good(), broken.is_good()), (true, false));
        assert!(!Figures { threads_joined: false, ..figures(None) }.is_good());
        let document = broken.document();
        assert_eq!(document["promises_kept"], false);
        assert_eq!(document["promises"][0]["broken"], "two tasks are gone");
        assert!(super::super::page::render(&broken).contains("two tasks are gone"));
    }

    #[test]
    fn what_no_task_has_lived_is_not_divided() {
        let (rows, document) = (figures(None).rows(), figures(None).document());
        let row = rows.iter().find(|(name, _)| name == "processor time per task life").expect("a row");
        assert_eq!(row.1, "none has ended");
        assert_eq!(document["cpu_microseconds_per_task_life"], Value::Null);
    }
}
