//! How to schedule: a preset, a file, or both.

use std::path::Path;

use plimsoll_core::document::Value;
use plimsoll_core::settings::{RawSettings, Settings};

use crate::input::{self, Format, InputError};

/// Larger configuration files are refused.
const BYTES_MAX: u64 = 16 << 20;

const PRESETS: [(&str, &str); 6] = [
    ("default", include_str!("../config/default.toml")),
    ("scoot", include_str!("../config/scoot.toml")),
    ("armada", include_str!("../config/armada.toml")),
    ("swarmkit", include_str!("../config/swarmkit.toml")),
    ("beaker", include_str!("../config/beaker.toml")),
    ("paddle", include_str!("../config/paddle.toml")),
];

/// A configuration that has been read and checked.
///
/// ```
/// let config = plimsoll::Config::preset("scoot")?;
/// assert_eq!(config.settings().window.gap.as_seconds(), 0.05);
/// let custom = plimsoll::Config::from_toml("window = 0.2")?;
/// assert_eq!(custom.settings().window.gap.as_seconds(), 0.2);
/// # Ok::<(), plimsoll::InputError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    name: String,
    raw: RawSettings,
    settings: Settings,
}

impl Config {
    /// The names that [`Config::preset`] knows.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// A configuration that comes with Plimsoll.
    pub fn preset(name: &str) -> Result<Config, InputError> {
        let Some((name, text)) = PRESETS.iter().find(|(known, _)| *known == name) else {
            let presets = Config::presets().collect::<Vec<_>>().join(", ");
            return Err(InputError::NotFound { place: name.to_owned(), presets });
        };
        Config::from_document(&input::parse(text, Format::Toml, name)?, name)
    }

    /// A preset, or a TOML or JSON file. A file that is named like a preset needs a directory in
    /// front, such as `./scoot`.
    pub fn load(preset_or_path: &str) -> Result<Config, InputError> {
        let path = Path::new(preset_or_path);
        match Config::preset(preset_or_path) {
            Err(InputError::NotFound { .. }) if path.exists() => {
                Config::from_document(&input::read_file(path, BYTES_MAX)?, preset_or_path)
            }
            preset => preset,
        }
    }

    /// A configuration written as TOML.
    pub fn from_toml(text: &str) -> Result<Config, InputError> {
        Config::from_text(text, Format::Toml)
    }

    /// A configuration written as JSON.
    pub fn from_json(text: &str) -> Result<Config, InputError> {
        Config::from_text(text, Format::Json)
    }

    fn from_text(text: &str, format: Format) -> Result<Config, InputError> {
        const PLACE: &str = "the given text";
        if text.len() as u64 > BYTES_MAX {
            return Err(InputError::TooLarge { place: PLACE.into(), limit: BYTES_MAX });
        }
        Config::from_document(&input::parse(text, format, PLACE)?, PLACE)
    }

    fn from_document(document: &Value, name: &str) -> Result<Config, InputError> {
        let faulty = |faults| InputError::Faulty { place: name.to_owned(), faults };
        let raw = RawSettings::from_document(document).map_err(faulty)?;
        let settings = raw.validate().map_err(faulty)?;
        Ok(Config { name: name.to_owned(), raw, settings })
    }

    /// The preset or file it came from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The settings as they were given: what was left out is left out.
    pub fn raw(&self) -> &RawSettings {
        &self.raw
    }

    /// The same for a cluster whose nodes nobody listens to: a node is heard until the service says that it
    /// is not.
    #[must_use]
    pub fn without_heartbeats(mut self) -> Config {
        self.raw.deadlines.heartbeat = None;
        self.settings = self.settings.without_heartbeats();
        self
    }

    /// The settings in effect.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Default for Config {
    /// What runs when nothing is configured: the settings of the preset `default`.
    fn default() -> Config {
        let raw = RawSettings::default();
        Config { name: "default".into(), raw, settings: Settings::default() }
    }
}
