//! Classes, queues and rates as files give them, one by one.

use crate::document::{Cursor, FaultKind, Fields, Value};
use crate::shares::bucket::Rate;
use crate::shares::classes::PERCENT_MAX;

use super::raw_shares::{RawAmounts, RawClass, RawQueue, RawRate, RawRates, WEIGHT_MAX, scaled};
use super::shares::Rates;

const RATE_MAX: f64 = 1e9;
const BURST_MAX: u64 = 1_000_000_000;

impl RawClass {
    pub(super) fn read(cursor: Cursor<'_>) -> Option<RawClass> {
        cursor.table(|fields| {
            let name = fields.required("name", "the name of the class").and_then(|name| name.name());
            let percent = fields.required("percent", "the percent of the class").and_then(read_percent);
            let requestors = fields
                .get("requestors")
                .map_or(Some(Vec::new()), |list| list.list(|item| item.text().map(str::to_owned)));
            let cap = fields.get("cap").and_then(read_amounts);
            Some(RawClass { name: name?.to_owned(), percent: percent?, requestors: requestors?, cap })
        })?
    }
}

impl RawQueue {
    pub(super) fn read(cursor: Cursor<'_>) -> Option<RawQueue> {
        cursor.table(|fields| {
            let name = fields.required("name", "the name of the queue").and_then(|name| name.name());
            let weight = fields.get("weight").map_or(Some(1.0), |weight| weight.number(0.0..=WEIGHT_MAX));
            let class = fields.get("class").and_then(|class| class.name()).map(str::to_owned);
            let quota = fields.get("quota").and_then(read_amounts);
            Some(RawQueue { name: name?.to_owned(), weight: weight?, class, quota })
        })?
    }
}

impl RawRates {
    pub(super) fn read(fields: &Fields<'_>) -> RawRates {
        let rate = |name| fields.get(name).and_then(|cursor| cursor.table(RawRate::read)).flatten();
        RawRates { scheduling: rate("scheduling"), queue_scheduling: rate("queue_scheduling") }
    }

    pub(super) fn validate(self) -> Rates {
        let rate = |raw: RawRate| Rate {
            millionths_per_second: scaled(raw.per_second, 1_000_000),
            burst: raw.burst,
        };
        Rates { scheduling: self.scheduling.map(rate), queue_scheduling: self.queue_scheduling.map(rate) }
    }
}

impl RawRate {
    pub(super) fn read(fields: &Fields<'_>) -> Option<RawRate> {
        let per_second = fields.required("per_second", "how many tokens come in a second");
        let per_second = per_second.and_then(|cursor| cursor.number(0.001..=RATE_MAX));
        let burst = fields.required("burst", "how many tokens can be saved up");
        let burst = burst.and_then(|cursor| cursor.whole(1..=BURST_MAX));
        Some(RawRate { per_second: per_second?, burst: burst? })
    }
}

fn read_percent(cursor: Cursor<'_>) -> Option<i64> {
    match cursor.value() {
        Value::Integer(percent) => Some(*percent),
        _ => cursor.whole(0..=PERCENT_MAX as u64).map(|percent| percent as i64),
    }
}

fn read_amounts(cursor: Cursor<'_>) -> Option<RawAmounts> {
    let mut amounts = RawAmounts::new();
    cursor.entries(|name, amount| {
        let text = match amount.value() {
            Value::Integer(whole) => whole.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Text(text) => text.clone(),
            _ => return amount.fault(FaultKind::WrongType, "an amount such as 2, 0.5 or \"4Gi\""),
        };
        amounts.insert(name.to_owned(), text);
    })?;
    Some(amounts)
}
