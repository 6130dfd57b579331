//! `plimsoll load`: how many events and whole task lives a second go through the real runtime?

mod drive;
mod figures;
mod follow;
mod memory;
mod mix;
mod page;
mod probe;
mod produce;
mod progress;
mod promises;
mod simulated;
mod virtual_cluster;
mod workload;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use plimsoll::Config;

use super::output::Output;
use super::{BAD_INPUT, FAILED};
use mix::Mix;

/// Drive the real runtime as hard as it goes and print what it did
///
/// Producer threads submit jobs, many to a command. An executor that does nothing ends each task at
/// once, so every task lives a whole life: submitted, assigned, started, finished, released. With
/// --mix the runtime only decides and the producers also report the ends. One more thread submits
/// single jobs and measures how long each takes. Windows are switched off, so latencies are those of
/// deciding. At the end nothing may be lost: every machine is checked whole. Ctrl-C ends it in order,
/// with the report so far.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// How long to drive; with --simulated, how long in virtual time
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// How many nodes there are, with 8 slots, 8 cores and 32 gibibytes each
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    nodes: u32,
    /// How many threads submit
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    producers: u32,
    /// Stop after this many jobs; those of the thread that measures come on top
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
    /// Tasks of each job
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tasks: u32,
    /// Jobs submitted a second, by all producers together; without it, as fast as it goes
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rate: Option<u64>,
    /// Jobs in one command
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
    /// The runtime only decides, and producers feed submissions, idle nodes and finished tasks in
    /// these parts
    #[arg(long, value_name = "SUBMIT:IDLE:FINISH")]
    mix: Option<Mix>,
    /// How long each task runs, in milliseconds
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    run_millis: u64,
    /// The settings: a preset or a file
    #[arg(long, default_value = "default")]
    preset: String,
    /// Write the figures with charts into this file, one page that needs nothing else
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Drive the machines alone in virtual time, on a pretend cluster of --cores cores, with jobs of
    /// ten minutes, one core and more, and gangs among them
    #[arg(long, conflicts_with_all = ["nodes", "producers", "jobs", "tasks", "batch", "mix", "run_millis"])]
    simulated: bool,
    /// Cores of the simulated cluster
    #[arg(long, default_value_t = 1_400_000, requires = "simulated",
          value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    cores: u64,
}

const EXAMPLES: &str = "Examples:
  plimsoll load --seconds 20 --producers 4
  plimsoll load --seconds 20 --json --report load.html
  plimsoll load --rate 50000 --tasks 4 --preset armada
  plimsoll load --mix 2:1:2 --nodes 5000
  plimsoll load --simulated --seconds 1800";

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> io::Result<ExitCode> {
    let config = match Config::load(&arguments.preset) {
        Ok(config) => config.without_heartbeats(),
        Err(error) => return output.problems(&error),
    };
    if let Some(path) = &arguments.report {
        // Before the work and not after it: a place that cannot be written is a mistake of the caller.
        if let Err(error) = std::fs::write(path, "") {
            let place = format!("{}: {error}", path.display());
            output.failure(&io::Error::other(place))?;
            return Ok(ExitCode::from(BAD_INPUT));
        }
    }
    let figures = match arguments.simulated {
        true => simulated::run(arguments, &config, output.json),
        false => {
            let driver = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            driver.block_on(drive::drive(arguments, &config, output.json))
        }
    };
    let figures = match figures {
        Ok(figures) => figures,
        Err(error) => {
            output.failure(error.as_ref())?;
            return Ok(ExitCode::from(FAILED));
        }
    };
    if let Some(path) = &arguments.report {
        std::fs::write(path, page::render(&figures))?;
    }
    figures.print(output)
}
