//! `plimsoll sim`: do the promises hold, whatever goes wrong?

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;
use plimsoll::core::sim::{self, Failure, RunReport};
use serde_json::json;

use super::FAILED;
use super::output::Output;

/// Run the deterministic world and check every promise after every step
///
/// Each seed decides a cluster, a workload, faults and the order in which everything happens. A seed
/// that breaks a promise is printed and does so every time. The exit code is 0 if all promises held
/// and 1 if one was broken.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds to run, one after the other
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Print everything that happens
    #[arg(long)]
    trace: bool,
}

const EXAMPLES: &str = "Examples:
  plimsoll sim --seeds 1000
  plimsoll sim --seed 42 --trace";

/// Failures beyond this many are only counted.
const FAILURES_SHOWN_MAX: usize = 10;

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> io::Result<ExitCode> {
    let mut reports = Vec::new();
    let mut failures = Vec::new();
    let mut progress = Progress::new(arguments.seeds, output.json || arguments.trace);
    for number in 0..arguments.seeds {
        // Seeds go round: after the largest comes zero.
        match run_one(arguments.seed.wrapping_add(number), arguments.trace)? {
            Ok(report) => reports.push(report),
            Err(failure) => failures.push(failure),
        }
        progress.step(failures.len())?;
    }
    progress.clear()?;
    print(&reports, &failures, output)?;
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn run_one(seed: u64, trace: bool) -> io::Result<Result<RunReport, Failure>> {
    if !trace {
        return Ok(sim::run(seed));
    }
    let mut stderr = anstream::stderr().lock();
    let mut written = Ok(());
    let outcome = sim::run_traced(seed, &mut |line| {
        if written.is_ok() {
            written = writeln!(stderr, "{:>6} {} {}", line.step, line.at, line.what);
        }
    });
    written.map(|()| outcome)
}

fn print(reports: &[RunReport], failures: &[Failure], output: &mut Output) -> io::Result<()> {
    let sum = |figure: fn(&RunReport) -> u64| reports.iter().map(figure).sum::<u64>();
    let figures = [
        ("seeds", (reports.len() + failures.len()) as u64),
        ("failed", failures.len() as u64),
        ("steps", sum(|report| report.steps)),
        ("jobs", sum(|report| report.jobs)),
        ("faults", sum(|report| report.faults)),
        ("quiescent checks", sum(|report| report.quiescent_checks)),
    ];
    if output.json {
        let figures: serde_json::Map<_, _> =
            figures.iter().map(|(name, value)| (name.replace(' ', "_"), json!(value))).collect();
        let shown = &failures[..failures.len().min(FAILURES_SHOWN_MAX)];
        let runs = if reports.len() == 1 { reports } else { &[] };
        return output.document(&json!({"ok": failures.is_empty(), "figures": figures,
                                       "failures": shown, "runs": runs}));
    }
    output.table(&["", "count"], figures.map(|(name, value)| vec![name.to_owned(), value.to_string()]))?;
    for failure in failures.iter().take(FAILURES_SHOWN_MAX) {
        output.failure(failure)?;
        output.note(&format!("  again: plimsoll sim --seed {} --trace", failure.seed))?;
    }
    match failures.is_empty() {
        true => output.note("every promise held"),
        false => Ok(()),
    }
}

/// A line that shows how far the run is, on a terminal only.
struct Progress {
    done: u64,
    all: u64,
    visible: bool,
}

impl Progress {
    fn new(all: u64, quiet: bool) -> Progress {
        Progress { done: 0, all, visible: !quiet && all > 1 && io::stderr().is_terminal() }
    }

    fn step(&mut self, failed: usize) -> io::Result<()> {
        self.done += 1;
        if self.visible {
            write!(io::stderr().lock(), "\r{} of {} seeds, {failed} failed ", self.done, self.all)?;
        }
        Ok(())
    }

    fn clear(&self) -> io::Result<()> {
        match self.visible {
            true => write!(io::stderr().lock(), "\r\x1b[K"),
            false => Ok(()),
        }
    }
}
