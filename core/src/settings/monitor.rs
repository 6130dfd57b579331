//! `[monitor]`: how often the machines are compared.

use serde::{Deserialize, Serialize};

use crate::document::{FaultLog, Fields};
use crate::time::Span;

use super::bounds;
use super::raw::read_seconds;
use super::raw_sections::{override_with, seconds_or_default};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MonitorSettings {
    /// From one slice of nodes to the next; zero compares nothing.
    pub interval: Span,
}

impl Default for MonitorSettings {
    fn default() -> MonitorSettings {
        MonitorSettings { interval: bounds::MONITOR_INTERVAL.default }
    }
}

/// The same as a file has it, each field optional.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RawMonitor {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<f64>,
}

impl RawMonitor {
    pub(super) fn read(fields: &Fields<'_>) -> RawMonitor {
        RawMonitor { interval: read_seconds(fields, "interval", bounds::MONITOR_INTERVAL) }
    }

    pub(super) fn merge(&mut self, over: &RawMonitor) {
        override_with(&mut self.interval, &over.interval);
    }

    pub(super) fn validate(&self, log: &FaultLog) -> MonitorSettings {
        let interval = seconds_or_default(log, "monitor.interval", self.interval, bounds::MONITOR_INTERVAL);
        MonitorSettings { interval }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == RawMonitor::default()
    }
}

impl From<&MonitorSettings> for RawMonitor {
    fn from(monitor: &MonitorSettings) -> RawMonitor {
        RawMonitor { interval: Some(monitor.interval.as_seconds()) }
    }
}
