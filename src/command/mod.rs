//! The command line: one file per command, and what they share.

mod check_config;
mod class_table;
mod demo;
mod load;
mod metrics;
mod output;
mod patience;
mod plan;
mod replay;
mod share_tables;
mod sim;
mod tally;
mod usage_tables;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::Output;

/// Schedules work on a cluster, and tells what it would do and why.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES, arg_required_else_help = true)]
struct CommandLine {
    /// Print one JSON document instead of tables
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    CheckConfig(check_config::Arguments),
    Demo(demo::Arguments),
    Load(load::Arguments),
    Plan(plan::Arguments),
    Replay(replay::Arguments),
    Sim(sim::Arguments),
}

const EXAMPLES: &str = "Examples:
  plimsoll demo
  plimsoll check-config scoot
  plimsoll plan cluster.toml --json
  plimsoll sim --seeds 1000";

/// Nothing was wrong with the command, but it could not be carried out.
const FAILED: u8 = 1;
/// The files or options given cannot be used.
const BAD_INPUT: u8 = 2;

/// Carries out the command that the program was started with.
pub fn run() -> ExitCode {
    let line = CommandLine::parse();
    let mut output = Output::new(line.json);
    let result = match line.command {
        Command::CheckConfig(arguments) => check_config::run(&arguments, &mut output),
        Command::Demo(arguments) => demo::run(&arguments, &mut output),
        Command::Load(arguments) => load::run(&arguments, &mut output),
        Command::Replay(arguments) => replay::run(&arguments, &mut output),
        Command::Plan(arguments) => plan::run(&arguments, &mut output),
        Command::Sim(arguments) => sim::run(&arguments, &mut output),
    };
    match result {
        Ok(code) => code,
        // Whoever reads the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("plimsoll: the output cannot be written: {error}");
            ExitCode::from(FAILED)
        }
    }
}
