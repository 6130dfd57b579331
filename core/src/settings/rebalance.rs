//! `[rebalance]`: when imbalance between classes opens the gate, and what becomes of what is stopped then.

use serde::{Deserialize, Serialize};

use crate::document::{FaultLog, Fields};
use crate::spec::OnPreempt;
use crate::time::Span;

use super::bounds;
use super::raw::read_seconds;
use super::raw_sections::{override_with, read_whole, seconds_or_default, whole_or_default};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RebalanceSettings {
    /// Percent points that the spread must exceed; 0 keeps the gate closed.
    pub threshold: u32,
    /// How long it must do so without a break.
    pub duration: Span,
    /// What becomes of tasks that are stopped for balance, where their role does not say.
    pub on_preempt: OnPreempt,
}

impl Default for RebalanceSettings {
    fn default() -> RebalanceSettings {
        RebalanceSettings {
            threshold: bounds::REBALANCE_THRESHOLD.default as u32,
            duration: bounds::REBALANCE_DURATION.default,
            on_preempt: OnPreempt::default(),
        }
    }
}

/// The same as a file has it, each field optional.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RawRebalance {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_preempt: Option<OnPreempt>,
}

impl RawRebalance {
    pub(super) fn read(fields: &Fields<'_>) -> RawRebalance {
        RawRebalance {
            threshold: read_whole(fields, "threshold", bounds::REBALANCE_THRESHOLD),
            duration: read_seconds(fields, "duration", bounds::REBALANCE_DURATION),
            on_preempt: fields.get("on_preempt").and_then(|cursor| cursor.one_of(&OnPreempt::NAMES)),
        }
    }

    pub(super) fn merge(&mut self, over: &RawRebalance) {
        override_with(&mut self.threshold, &over.threshold);
        override_with(&mut self.duration, &over.duration);
        override_with(&mut self.on_preempt, &over.on_preempt);
    }

    /// Nothing if everything is as it is when nobody says anything.
    pub(super) fn validate(&self, log: &FaultLog) -> Option<RebalanceSettings> {
        let (threshold, duration) = ("rebalance.threshold", "rebalance.duration");
        let settings = RebalanceSettings {
            threshold: whole_or_default(log, threshold, self.threshold, bounds::REBALANCE_THRESHOLD) as u32,
            duration: seconds_or_default(log, duration, self.duration, bounds::REBALANCE_DURATION),
            on_preempt: self.on_preempt.unwrap_or_default(),
        };
        (settings != RebalanceSettings::default()).then_some(settings)
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == RawRebalance::default()
    }
}

impl From<&Option<RebalanceSettings>> for RawRebalance {
    fn from(rebalance: &Option<RebalanceSettings>) -> RawRebalance {
        let rebalance = rebalance.unwrap_or_default();
        RawRebalance {
            threshold: Some(u64::from(rebalance.threshold)),
            duration: Some(rebalance.duration.as_seconds()),
            on_preempt: Some(rebalance.on_preempt),
        }
    }
}
