//! `[faulty]`: when failures put a node last, and when they take it out of use.

use serde::{Deserialize, Serialize};

use crate::document::{FaultLog, Fields};
use crate::time::Span;

use super::bounds;
use super::raw::read_seconds;
use super::raw_sections::{override_with, read_whole, seconds_or_default, whole_or_default};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FaultySettings {
    /// So many failures of one version of a service put a node last for it; 0 for never.
    pub failures: u64,
    /// How long a failure counts.
    pub within: Span,
    /// So many services that fail on a node in a row make it broken; 0 for never.
    pub broken_after: u64,
    /// After this time such a node is tried again; zero leaves that to people.
    pub probe: Span,
}

impl Default for FaultySettings {
    fn default() -> FaultySettings {
        FaultySettings {
            failures: bounds::FAULTY_FAILURES.default,
            within: bounds::FAULTY_WITHIN.default,
            broken_after: bounds::FAULTY_BROKEN_AFTER.default,
            probe: bounds::FAULTY_PROBE.default,
        }
    }
}

/// The same as a file has it, each field optional.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RawFaulty {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<f64>,
}

impl RawFaulty {
    pub(super) fn read(fields: &Fields<'_>) -> RawFaulty {
        RawFaulty {
            failures: read_whole(fields, "failures", bounds::FAULTY_FAILURES),
            within: read_seconds(fields, "within", bounds::FAULTY_WITHIN),
            broken_after: read_whole(fields, "broken_after", bounds::FAULTY_BROKEN_AFTER),
            probe: read_seconds(fields, "probe", bounds::FAULTY_PROBE),
        }
    }

    pub(super) fn merge(&mut self, over: &RawFaulty) {
        override_with(&mut self.failures, &over.failures);
        override_with(&mut self.within, &over.within);
        override_with(&mut self.broken_after, &over.broken_after);
        override_with(&mut self.probe, &over.probe);
    }

    pub(super) fn validate(&self, log: &FaultLog) -> FaultySettings {
        let whole = |field, value, bounds| whole_or_default(log, field, value, bounds);
        let seconds = |field, value, bounds| seconds_or_default(log, field, value, bounds);
        FaultySettings {
            failures: whole("faulty.failures", self.failures, bounds::FAULTY_FAILURES),
            within: seconds("faulty.within", self.within, bounds::FAULTY_WITHIN),
            broken_after: whole("faulty.broken_after", self.broken_after, bounds::FAULTY_BROKEN_AFTER),
            probe: seconds("faulty.probe", self.probe, bounds::FAULTY_PROBE),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == RawFaulty::default()
    }
}

impl From<&FaultySettings> for RawFaulty {
    fn from(faulty: &FaultySettings) -> RawFaulty {
        RawFaulty {
            failures: Some(faulty.failures),
            within: Some(faulty.within.as_seconds()),
            broken_after: Some(faulty.broken_after),
            probe: Some(faulty.probe.as_seconds()),
        }
    }
}
