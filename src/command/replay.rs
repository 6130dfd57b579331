//! `plimsoll replay`: do the machines say the same again?

use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::output::Output;
use super::patience::Patience;
use super::{BAD_INPUT, FAILED};

/// Replay a turn log and compare everything the machines say, bit for bit
///
/// The exit code is 0 if every turn was the same, 1 if one was not, and 2 if the log cannot be read.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// A log written with `plimsoll demo --record FILE`
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

const EXAMPLES: &str = "Examples:
  plimsoll demo --seconds 5 --record turns.log
  plimsoll replay turns.log";

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> io::Result<ExitCode> {
    let log = File::open(&arguments.file).map_err(plimsoll::ReplayError::from);
    let patience = Patience::with("replaying", output.json);
    let replayed = log.and_then(|file| plimsoll::replay(BufReader::new(file)));
    drop(patience);
    match replayed {
        Ok(turns) if output.json => output.document(&json!({"ok": true, "turns": turns}))?,
        Ok(turns) => output.note(&format!("{turns} turns, every one the same"))?,
        Err(error) => {
            let mismatch = matches!(error, plimsoll::ReplayError::Mismatch(_));
            output.failure(&error)?;
            return Ok(ExitCode::from(if mismatch { FAILED } else { BAD_INPUT }));
        }
    }
    Ok(ExitCode::SUCCESS)
}
