//! How elastic groups change their size: how long they rest in between, and what stays free.

use serde::{Deserialize, Serialize};

use crate::document::{Fault, FaultKind, FaultLog, Fields, Value};
use crate::time::Span;

use super::bounds;
use super::raw::read_seconds;
use super::raw_sections::{override_with, seconds_or_default};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ElasticSettings {
    /// How long the size of a group rests after it was changed, where the group does not say.
    pub freeze: Span,
    /// The part of every kind that growth leaves free, in millionths.
    pub headroom: u32,
    /// How often groups are compared that have had more and less, beside whenever something happens; zero for
    /// never.
    pub resize_interval: Span,
}

impl Default for ElasticSettings {
    fn default() -> ElasticSettings {
        ElasticSettings {
            freeze: bounds::FREEZE.default,
            headroom: 0,
            resize_interval: bounds::RESIZE_INTERVAL.default,
        }
    }
}

/// The same as a file has it, each field optional. They stand among the other settings.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RawElastic {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze: Option<f64>,
    /// A part of 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize_interval: Option<f64>,
}

const MILLION: f64 = 1_000_000.0;

impl RawElastic {
    pub(super) fn read(fields: &Fields<'_>) -> RawElastic {
        RawElastic {
            freeze: read_seconds(fields, "freeze", bounds::FREEZE),
            headroom: fields.get("headroom").and_then(|cursor| cursor.number(0.0..=1.0)),
            resize_interval: read_seconds(fields, "resize_interval", bounds::RESIZE_INTERVAL),
        }
    }

    pub(super) fn merge(&mut self, over: &RawElastic) {
        override_with(&mut self.freeze, &over.freeze);
        override_with(&mut self.headroom, &over.headroom);
        override_with(&mut self.resize_interval, &over.resize_interval);
    }

    pub(super) fn validate(&self, log: &FaultLog) -> ElasticSettings {
        let headroom = self.headroom.unwrap_or(0.0);
        let is_part = (0.0..=1.0).contains(&headroom);
        if !is_part {
            let found = Value::Float(headroom);
            log.note(|| {
                Fault::new("headroom", FaultKind::OutOfRange, Some(&found), "a number between 0 and 1")
            });
        }
        let interval = bounds::RESIZE_INTERVAL;
        ElasticSettings {
            freeze: seconds_or_default(log, "freeze", self.freeze, bounds::FREEZE),
            headroom: if is_part { (headroom * MILLION).round() as u32 } else { 0 },
            resize_interval: seconds_or_default(log, "resize_interval", self.resize_interval, interval),
        }
    }
}

impl From<&ElasticSettings> for RawElastic {
    fn from(elastic: &ElasticSettings) -> RawElastic {
        RawElastic {
            freeze: Some(elastic.freeze.as_seconds()),
            headroom: Some(f64::from(elastic.headroom) / MILLION),
            resize_interval: Some(elastic.resize_interval.as_seconds()),
        }
    }
}
