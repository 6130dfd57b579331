//! `[rebalance]`: when running work may be taken away, for whom, and how often.

use serde::{Deserialize, Serialize};

use crate::document::{Fault, FaultKind, FaultLog, Fields, Value};
use crate::shares::bucket::Rate;
use crate::spec::OnPreempt;
use crate::time::Span;

use super::bounds;
use super::raw::read_seconds;
use super::raw_sections::{override_with, read_whole, seconds_or_default, whole_or_default};

/// Everything is off unless it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RebalanceSettings {
    /// Percent points that the spread between classes must exceed; 0 keeps the gate closed.
    pub threshold: u64,
    /// How long it must do so without a break.
    pub duration: Span,
    /// What becomes of a task that was stopped, where its role does not say.
    pub on_preempt: OnPreempt,
    /// Nothing is stopped that has not had its node for so long, unless the room itself is lost.
    pub minimum_run: Span,
    /// How long what a stop frees is kept for whom it was done.
    pub earmark: Span,
    /// Whether work older than its lifetime gives way where its queue is above its fair share.
    pub lifetime: bool,
    /// Whether work of lower bands gives way to strict bands that cannot start otherwise.
    pub higher: bool,
    /// Whether elastic groups give way above their minima: to what cannot start otherwise, and to groups that
    /// have had less.
    pub elastic: bool,
    /// Whether work may run on what is claimed until the claimant can start, and is stopped then.
    pub backfill: bool,
    /// What of its fair share a queue keeps, in millionths; without it queues take nothing from each other.
    pub protected_fraction: Option<u64>,
    /// One task is stopped for others so many times at most.
    pub stops_per_task: u64,
    /// Tasks stopped for others; without it as many as it takes.
    pub rate: Option<Rate>,
}

impl RebalanceSettings {
    /// Whether anything may ever be taken away for somebody else's sake.
    pub fn any(&self) -> bool {
        let by_share = self.threshold > 0 || self.lifetime || self.protected_fraction.is_some();
        by_share || self.higher || self.elastic || self.backfill
    }
}

impl Default for RebalanceSettings {
    fn default() -> RebalanceSettings {
        RawRebalance::default().validate(None, &FaultLog::new())
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_run: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earmark: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elastic: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub higher: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backfill: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stops_per_task: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stops_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stops_saved_up: Option<u64>,
}

const STOPS_PER_SECOND_MAX: f64 = 1e9;
const MILLION: f64 = 1e6;
/// The largest part of its fair share that can be kept for a queue.
pub(super) const PROTECTED_MAX: f64 = 1_000.0;

impl RawRebalance {
    pub(super) fn read(fields: &Fields<'_>) -> RawRebalance {
        let flag = |name| fields.get(name).and_then(|cursor| cursor.flag());
        let per_second = fields.get("stops_per_second");
        RawRebalance {
            threshold: read_whole(fields, "threshold", bounds::REBALANCE_THRESHOLD),
            duration: read_seconds(fields, "duration", bounds::REBALANCE_DURATION),
            on_preempt: fields.get("on_preempt").and_then(|cursor| cursor.one_of(&OnPreempt::NAMES)),
            minimum_run: read_seconds(fields, "minimum_run", bounds::REBALANCE_MINIMUM_RUN),
            earmark: read_seconds(fields, "earmark", bounds::REBALANCE_EARMARK),
            lifetime: flag("lifetime"),
            higher: flag("higher"),
            backfill: flag("backfill"),
            elastic: flag("elastic"),
            stops_per_task: read_whole(fields, "stops_per_task", bounds::REBALANCE_STOPS_PER_TASK),
            stops_per_second: per_second.and_then(|cursor| cursor.number(0.0..=STOPS_PER_SECOND_MAX)),
            stops_saved_up: read_whole(fields, "stops_saved_up", bounds::REBALANCE_STOPS_SAVED_UP),
        }
    }

    pub(super) fn merge(&mut self, over: &RawRebalance) {
        override_with(&mut self.threshold, &over.threshold);
        override_with(&mut self.duration, &over.duration);
        override_with(&mut self.on_preempt, &over.on_preempt);
        override_with(&mut self.minimum_run, &over.minimum_run);
        override_with(&mut self.earmark, &over.earmark);
        override_with(&mut self.lifetime, &over.lifetime);
        override_with(&mut self.higher, &over.higher);
        override_with(&mut self.backfill, &over.backfill);
        override_with(&mut self.elastic, &over.elastic);
        override_with(&mut self.stops_per_task, &over.stops_per_task);
        override_with(&mut self.stops_per_second, &over.stops_per_second);
        override_with(&mut self.stops_saved_up, &over.stops_saved_up);
    }

    pub(super) fn validate(&self, protected_fraction: Option<f64>, log: &FaultLog) -> RebalanceSettings {
        let whole = |field, value, bounds| whole_or_default(log, field, value, bounds);
        let seconds = |field, value, bounds| seconds_or_default(log, field, value, bounds);
        let saved = bounds::REBALANCE_STOPS_SAVED_UP;
        let burst = whole("rebalance.stops_saved_up", self.stops_saved_up, saved);
        let per_second = self.stops_per_second.unwrap_or(0.0);
        number_within(log, "rebalance.stops_per_second", per_second, STOPS_PER_SECOND_MAX);
        let protected_fraction = protected_fraction.inspect(|fraction| {
            number_within(log, "protected_fraction", *fraction, PROTECTED_MAX);
        });
        let per_task = bounds::REBALANCE_STOPS_PER_TASK;
        RebalanceSettings {
            threshold: whole("rebalance.threshold", self.threshold, bounds::REBALANCE_THRESHOLD),
            duration: seconds("rebalance.duration", self.duration, bounds::REBALANCE_DURATION),
            on_preempt: self.on_preempt.unwrap_or_default(),
            minimum_run: seconds("rebalance.minimum_run", self.minimum_run, bounds::REBALANCE_MINIMUM_RUN),
            earmark: seconds("rebalance.earmark", self.earmark, bounds::REBALANCE_EARMARK),
            lifetime: self.lifetime.unwrap_or(false),
            higher: self.higher.unwrap_or(false),
            backfill: self.backfill.unwrap_or(false),
            elastic: self.elastic.unwrap_or(false),
            protected_fraction: protected_fraction.map(|fraction| (fraction * MILLION).round() as u64),
            stops_per_task: whole("rebalance.stops_per_task", self.stops_per_task, per_task),
            rate: (per_second > 0.0)
                .then(|| Rate { millionths_per_second: (per_second * MILLION).round() as u64, burst }),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == RawRebalance::default()
    }
}

/// Notes a number that is no number, below zero or too large.
fn number_within(log: &FaultLog, field: &str, number: f64, most: f64) {
    if !(0.0..=most).contains(&number) {
        let found = Value::Float(number);
        log.note(|| Fault::new(field, FaultKind::OutOfRange, Some(&found), format!("0 to {most}")));
    }
}

impl From<&RebalanceSettings> for RawRebalance {
    fn from(settings: &RebalanceSettings) -> RawRebalance {
        let rate = settings.rate.map(|rate| rate.millionths_per_second as f64 / MILLION);
        RawRebalance {
            threshold: Some(settings.threshold),
            duration: Some(settings.duration.as_seconds()),
            on_preempt: Some(settings.on_preempt),
            minimum_run: Some(settings.minimum_run.as_seconds()),
            earmark: Some(settings.earmark.as_seconds()),
            lifetime: Some(settings.lifetime),
            higher: Some(settings.higher),
            backfill: Some(settings.backfill),
            elastic: Some(settings.elastic),
            stops_per_task: Some(settings.stops_per_task),
            stops_per_second: Some(rate.unwrap_or(0.0)),
            stops_saved_up: Some(
                settings.rate.map_or(bounds::REBALANCE_STOPS_SAVED_UP.default, |rate| rate.burst),
            ),
        }
    }
}

/// The fraction of its fair share that a queue keeps, as files have it.
pub(super) fn raw_fraction(settings: &RebalanceSettings) -> Option<f64> {
    settings.protected_fraction.map(|fraction| fraction as f64 / MILLION)
}
