//! Dry-run files: a cluster, its workload and what happens to them.

use std::io;
use std::path::{Path, PathBuf};

use plimsoll_core::document::{Fault, FaultKind, FaultLog, Faults, Value};
use plimsoll_core::plan::{Scenario, format};
use plimsoll_core::settings::RawSettings;
use plimsoll_core::spec::Filters;

use crate::config::Config;
use crate::input::{self, Format, InputError};

/// Larger dry-run files are refused.
const BYTES_MAX: u64 = 64 << 20;
const GIVEN_TEXT: &str = "the given text";

/// Reads a TOML or JSON file; `-` is standard input. A path that the file gives as its `config` is
/// relative to the file.
pub fn load(path: &str) -> Result<Scenario, InputError> {
    if path == "-" {
        let place = "standard input";
        let document = input::read_stream(io::stdin().lock(), place, BYTES_MAX)?;
        return from_document(&document, place, Path::new(""), &Filters::default());
    }
    let path = Path::new(path);
    let document = input::read_file(path, BYTES_MAX)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    from_document(&document, &path.display().to_string(), directory, &Filters::default())
}

/// Reads a text. A path that it gives as its `config` is relative to the current directory.
pub fn from_text(text: &str, format: Format) -> Result<Scenario, InputError> {
    from_text_with(text, format, &Filters::default())
}

/// Reads a text whose roles may name these filters, as those of a runtime with the same filters may.
pub fn from_text_with(text: &str, format: Format, filters: &Filters) -> Result<Scenario, InputError> {
    if text.len() as u64 > BYTES_MAX {
        return Err(InputError::TooLarge { place: GIVEN_TEXT.into(), limit: BYTES_MAX });
    }
    from_document(&input::parse(text, format, GIVEN_TEXT)?, GIVEN_TEXT, Path::new(""), filters)
}

fn from_document(
    document: &Value,
    place: &str,
    directory: &Path,
    filters: &Filters,
) -> Result<Scenario, InputError> {
    let log = FaultLog::new();
    let base = base_settings(document, directory, &log);
    let scenario = format::read_with(document, &base, filters);
    let scenario = scenario.map_err(|faults| log.extend(faults)).ok();
    log.into_result(scenario).map_err(|faults| InputError::Faulty { place: place.to_owned(), faults })
}

/// The settings of the configuration that the file builds on. When that cannot be used the rest of
/// the file is still checked, against the default.
fn base_settings(document: &Value, directory: &Path, log: &FaultLog) -> RawSettings {
    let Some(name) = format::config_of(document).filter(|name| !name.is_empty()) else {
        return RawSettings::default();
    };
    let is_preset = Config::presets().any(|preset| preset == name);
    let path = if is_preset { PathBuf::from(name) } else { directory.join(name) };
    let error = match Config::load(&path.display().to_string()) {
        Ok(config) => return config.raw().clone(),
        Err(error) => error,
    };
    let fault = |reason: String| Fault::new("config", FaultKind::Refused, None, reason);
    log.extend(match error {
        InputError::Faulty { faults, .. } => {
            let listed = faults.listed.iter().map(|inner| fault(format!("{name}: {inner}"))).collect();
            Faults { listed, more: faults.more }
        }
        other => fault(other.to_string()).into(),
    });
    RawSettings::default()
}
