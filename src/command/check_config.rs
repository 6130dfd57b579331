//! `plimsoll check-config`: is a configuration good, and which settings are in effect?

use std::io;
use std::process::ExitCode;

use clap::Args;
use plimsoll::Config;
use plimsoll::core::settings::{RawSettings, Settings, bounds};
use serde_json::{Value, json};

use super::output::Output;

/// Check a configuration and print the settings in effect
///
/// Every problem is listed, with the field, the value and what was expected. The exit code is 0 for
/// a good configuration and 2 for a bad one.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// A preset (default, scoot, armada, swarmkit, beaker, paddle) or a TOML or JSON file
    #[arg(value_name = "FILE|PRESET")]
    config: String,
}

const EXAMPLES: &str = "Examples:
  plimsoll check-config swarmkit
  plimsoll check-config ./production.toml --json";

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> io::Result<ExitCode> {
    let config = match Config::load(&arguments.config) {
        Ok(config) => config,
        Err(error) => return output.problems(&error),
    };
    let effective = serde_json::to_value(RawSettings::from(config.settings()))?;
    if output.json {
        output.document(&json!({"ok": true, "config": config.name(), "settings": effective}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let defaults = serde_json::to_value(RawSettings::from(&Settings::default()))?;
    let rows = bounds::DESCRIPTIONS.iter().map(|(name, about)| {
        let (value, default) = (show(&effective, name), show(&defaults, name));
        vec![(*name).to_owned(), value, default, (*about).to_owned()]
    });
    output.heading(&format!("The configuration {} is good. In effect:", config.name()))?;
    output.table(&["setting", "value", "default", "meaning"], rows)?;
    Ok(ExitCode::SUCCESS)
}

/// The value of a setting such as `limits.jobs`, as people write it.
fn show(settings: &Value, name: &str) -> String {
    let value = name.split('.').fold(settings, |table, part| &table[part]);
    match value {
        Value::Array(items) if items.is_empty() => "none".into(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or(number.to_string(), |number| number.to_string()),
        other => other.to_string(),
    }
}
