//! What belongs to the formats and has no effect yet, for every test that must not pass it over.

/// Settings that belong to the format and that nothing acts on yet.
pub const SETTINGS_OF_LATER: [&str; 1] = ["resize_interval"];
