//! `plimsoll plan`: what would be decided for a cluster and a workload described in a file?

use std::io;
use std::process::ExitCode;

use clap::Args;
use plimsoll::core::plan::Scenario;
use plimsoll::scenario;
use serde_json::json;

use super::output::Output;

/// Decide what would run where, without running anything
///
/// The file describes nodes, jobs, what runs already and what happens later, as JSON or TOML. The
/// exit code is 0 for a good file and 2 for a bad one.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// A TOML or JSON file; - for standard input
    #[arg(value_name = "FILE")]
    file: String,
}

const EXAMPLES: &str = "Examples:
  plimsoll plan cluster.toml
  echo '{\"nodes\": [{\"name\": \"n\", \"count\": 2, \"capacity\": {\"slot\": 1}}],
         \"jobs\": [{\"name\": \"j\", \"tasks\": 3, \"request\": {\"slot\": 1}}]}' | plimsoll plan - --json";

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> io::Result<ExitCode> {
    match scenario::load(&arguments.file) {
        Ok(scenario) => decide(&scenario, output),
        Err(error) => output.problems(&error),
    }
}

/// Carries out the dry run and prints what it decided.
fn decide(scenario: &Scenario, output: &mut Output) -> io::Result<ExitCode> {
    let counts = [
        ("nodes", scenario.nodes.len() as u64),
        ("jobs", scenario.jobs.len() as u64),
        ("tasks", scenario.tasks()),
        ("running", scenario.running.iter().map(|running| u64::from(running.count)).sum()),
        ("events", scenario.events.len() as u64),
    ];
    if output.json {
        let counts: serde_json::Map<_, _> =
            counts.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
        output.document(&counts)?;
    } else {
        output.table(&["", "count"], counts.map(|(name, count)| vec![name.to_owned(), count.to_string()]))?;
    }
    Ok(ExitCode::SUCCESS)
}
