//! Classes, queues, bands and their keys as files give them, each field optional.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::document::{Cursor, Fault, FaultKind, FaultLog, Fields, Path, Value};
use crate::resources::{KindId, Kinds};
use crate::shares::bucket::Rate;
use crate::shares::classes::Percents;
use crate::shares::ratio::Weight;
use crate::shares::requestors::{ClassPatterns, RequestorMap, RequestorsError};
use crate::time::Span;

use super::bounds;
use super::raw::read_seconds;
use super::raw_sections::{override_with, seconds_or_default};
use super::shares::{
    BAND_DEFAULT, Band, COST_SCALE, Ceiling, ClassSettings, JobKey, QueueSettings, ShareKey, ShareSettings,
    ShareUnit,
};

/// Everything about shares, under its name in files.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RawShares {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<RawClass>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<Vec<RawQueue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_key: Option<ShareKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_key: Option<ShareKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_key: Option<JobKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_unit: Option<ShareUnit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_weights: Option<BTreeMap<String, f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_preemptible_factor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excess_budget: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bands: Option<BTreeMap<String, u64>>,
    /// Bands that go before any share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_bands: Option<Vec<String>>,
    /// Seconds after which what waits is raised by one strict band; 0 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ageing: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<RawRates>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RawClass {
    pub name: String,
    pub percent: i64,
    pub requestors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<RawAmounts>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RawQueue {
    pub name: String,
    pub weight: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<RawAmounts>,
}

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct RawRates {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<RawRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_scheduling: Option<RawRate>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RawRate {
    pub per_second: f64,
    pub burst: u64,
}

/// Amounts by the name of their kind, written as in files: `"2"`, `"0.5"`, `"4Gi"`.
pub type RawAmounts = BTreeMap<String, String>;

const SHARE_KEYS: [(&str, ShareKey); 5] = [
    ("entitlement", ShareKey::Entitlement),
    ("flow", ShareKey::Flow),
    ("dominant", ShareKey::Dominant),
    ("run_time", ShareKey::RunTime),
    ("fifo", ShareKey::Fifo),
];

const JOB_KEYS: [(&str, JobKey); 3] =
    [("priority", JobKey::Priority), ("least_running", JobKey::LeastRunning), ("run_time", JobKey::RunTime)];

const SHARE_UNITS: [(&str, ShareUnit); 3] =
    [("slot", ShareUnit::Slot), ("weighted", ShareUnit::Weighted), ("dominant", ShareUnit::Dominant)];

/// More queues than this are refused.
const QUEUES_MAX: usize = 100_000;
/// More bands than this are refused.
const BANDS_MAX: usize = 64;
pub(super) const WEIGHT_MAX: f64 = 1e6;
/// Less would be no factor at all.
const FACTOR_MIN: f64 = 1e-6;
const BAND_VALUE_MAX: u64 = 1_000_000;
/// In cost times seconds.
const BUDGET_MAX: f64 = 1e12;

impl RawShares {
    pub(super) fn read(fields: &Fields<'_>) -> RawShares {
        let number = |name, range| fields.get(name).and_then(|cursor| cursor.number(range));
        RawShares {
            classes: fields.get("classes").and_then(|list| list.list(RawClass::read)),
            default_class: fields.get("default_class").and_then(|cursor| cursor.name()).map(str::to_owned),
            queues: fields.get("queues").and_then(|list| list.list(RawQueue::read)),
            share_key: fields.get("share_key").and_then(|cursor| cursor.one_of(&SHARE_KEYS)),
            queue_key: fields.get("queue_key").and_then(|cursor| cursor.one_of(&SHARE_KEYS)),
            job_key: fields.get("job_key").and_then(|cursor| cursor.one_of(&JOB_KEYS)),
            share_unit: fields.get("share_unit").and_then(|cursor| cursor.one_of(&SHARE_UNITS)),
            resource_weights: fields.get("resource_weights").and_then(read_weights),
            half_time: read_seconds(fields, "half_time", bounds::HALF_TIME),
            non_preemptible_factor: number("non_preemptible_factor", FACTOR_MIN..=WEIGHT_MAX),
            excess_budget: number("excess_budget", 0.0..=BUDGET_MAX),
            bands: fields.get("bands").and_then(read_bands),
            strict_bands: fields
                .get("strict_bands")
                .and_then(|list| list.list(|item| item.name().map(str::to_owned))),
            ageing: read_seconds(fields, "ageing", bounds::AGEING),
            rates: fields.get("rates").and_then(|cursor| cursor.table(RawRates::read)),
        }
    }

    pub(super) fn merge(&mut self, over: &RawShares) {
        override_with(&mut self.classes, &over.classes);
        override_with(&mut self.default_class, &over.default_class);
        override_with(&mut self.queues, &over.queues);
        override_with(&mut self.share_key, &over.share_key);
        override_with(&mut self.queue_key, &over.queue_key);
        override_with(&mut self.job_key, &over.job_key);
        override_with(&mut self.share_unit, &over.share_unit);
        override_with(&mut self.resource_weights, &over.resource_weights);
        override_with(&mut self.half_time, &over.half_time);
        override_with(&mut self.non_preemptible_factor, &over.non_preemptible_factor);
        override_with(&mut self.excess_budget, &over.excess_budget);
        override_with(&mut self.bands, &over.bands);
        override_with(&mut self.strict_bands, &over.strict_bands);
        override_with(&mut self.ageing, &over.ageing);
        override_with(&mut self.rates, &over.rates);
    }

    pub fn validate(&self, kinds: &Kinds, log: &FaultLog) -> ShareSettings {
        let classes = self.classes(kinds, log);
        let queues = self.queues(classes.as_ref(), kinds, log);
        let queue_key = self.queue_key.unwrap_or_default();
        if queue_key == ShareKey::Entitlement {
            let expected = "queues have weights, not percents: flow, dominant, run_time or fifo";
            refuse(log, "queue_key", "entitlement", expected);
        }
        // Percents say nothing without a key that looks at them, nor that key without percents.
        let default_key = if classes.is_some() { ShareKey::Entitlement } else { ShareKey::Fifo };
        let names_classes = self.classes.as_ref().is_some_and(|classes| !classes.is_empty());
        if self.share_key == Some(ShareKey::Entitlement) && !names_classes {
            let expected = "classes are entitled to percents, and there are no `classes`";
            refuse(log, "share_key", "entitlement", expected);
        }
        let seconds = |name, value, bounds| seconds_or_default(log, name, value, bounds);
        ShareSettings {
            queues_by_name: by_name(&queues),
            queues,
            share_key: self.share_key.unwrap_or(default_key),
            queue_key,
            job_key: self.job_key.unwrap_or_default(),
            unit: self.share_unit.unwrap_or_else(|| usual_unit(classes.is_some(), queue_key)),
            resource_weights: self.resource_weights(kinds, log),
            half_time: seconds("half_time", self.half_time, bounds::HALF_TIME),
            non_preemptible_factor: self.factor(log),
            excess_budget: self.budget(log),
            bands: self.bands(log),
            ageing: Some(seconds("ageing", self.ageing, bounds::AGEING)).filter(|span| !span.is_zero()),
            rates: self.rates.map(RawRates::validate).unwrap_or_default(),
            classes,
        }
    }

    fn classes(&self, kinds: &Kinds, log: &FaultLog) -> Option<ClassSettings> {
        let Some(classes) = self.classes.as_ref().filter(|classes| !classes.is_empty()) else {
            if let Some(name) = &self.default_class {
                refuse(log, "default_class", name, "must be the name of a class, and there are no `classes`");
            }
            return None;
        };
        let stated: Vec<(&str, i64)> =
            classes.iter().map(|class| (class.name.as_str(), class.percent)).collect();
        let percents = Percents::new(&stated);
        let patterns = classes
            .iter()
            .map(|class| ClassPatterns { class: class.name.clone(), patterns: class.requestors.clone() });
        let requestors = RequestorMap::new(patterns.collect());
        let caps = classes.iter().enumerate().map(|(index, class)| {
            let field = format!("classes[{index}].cap");
            class.cap.as_ref().map(|cap| amounts(cap, &field, kinds, log))
        });
        let caps = caps.collect();
        if let Err(error) = &percents {
            note(log, "classes", error.to_string());
        }
        // That there are too many classes was said already.
        if let Err(error) = &requestors
            && !matches!(error, RequestorsError::TooManyClasses { .. })
        {
            note(log, "classes", error.to_string());
        }
        let (percents, requestors) = (percents.ok()?, requestors.ok()?);
        let default = match &self.default_class {
            None => percents.lowest(),
            Some(name) => percents.index_of(name).unwrap_or_else(|| {
                refuse(log, "default_class", name, "must be the name of a class");
                percents.lowest()
            }),
        };
        let default_is_stated = self.default_class.is_some();
        Some(ClassSettings { percents, requestors, default, default_is_stated, caps })
    }

    fn queues(&self, classes: Option<&ClassSettings>, kinds: &Kinds, log: &FaultLog) -> Vec<QueueSettings> {
        let raw: &[RawQueue] = self.queues.as_deref().unwrap_or_default();
        if raw.len() > QUEUES_MAX {
            note(log, "queues", format!("at most {QUEUES_MAX} queues are allowed, there are {}", raw.len()));
            return Vec::new();
        }
        let mut names = std::collections::BTreeSet::new();
        let mut queues = Vec::with_capacity(raw.len());
        for (index, queue) in raw.iter().enumerate() {
            let field = format!("queues[{index}]");
            if !names.insert(&queue.name) {
                refuse(log, &format!("{field}.name"), &queue.name, "a queue may be named only once");
            }
            let weight = Weight::from_number(queue.weight);
            if weight.is_none() {
                let expected = format!("must be above 0 and at most {WEIGHT_MAX}");
                refuse(log, &format!("{field}.weight"), &queue.weight.to_string(), &expected);
            }
            let class = queue.class.as_ref().and_then(|name| {
                let class = classes.and_then(|classes| classes.percents.index_of(name));
                if class.is_none() {
                    refuse(log, &format!("{field}.class"), name, "must be the name of a class");
                }
                class
            });
            let quota =
                queue.quota.as_ref().map(|quota| amounts(quota, &format!("{field}.quota"), kinds, log));
            let weight = weight.unwrap_or_default();
            queues.push(QueueSettings { name: queue.name.clone(), weight, class, quota });
        }
        queues
    }

    fn factor(&self, log: &FaultLog) -> Option<Weight> {
        let stated = self.non_preemptible_factor?;
        let factor = Weight::from_number(stated);
        if factor.is_none() {
            let expected = format!("must be a number between {FACTOR_MIN} and {WEIGHT_MAX}");
            refuse(log, "non_preemptible_factor", &stated.to_string(), &expected);
        }
        factor
    }

    fn budget(&self, log: &FaultLog) -> Option<u64> {
        let stated = self.excess_budget?;
        if !(0.0..=BUDGET_MAX).contains(&stated) {
            let expected = format!("must be a number between 0 and {BUDGET_MAX}");
            refuse(log, "excess_budget", &stated.to_string(), &expected);
        }
        Some(scaled(stated, COST_SCALE))
    }

    fn resource_weights(&self, kinds: &Kinds, log: &FaultLog) -> Vec<u64> {
        let Some(stated) = &self.resource_weights else {
            let default = |name: &str| match name {
                "slot" | "cpu" => COST_SCALE,
                "gpu" => 20 * COST_SCALE,
                _ => 0,
            };
            return kinds.names().map(default).collect();
        };
        let mut weights = vec![0; kinds.len()];
        for (name, weight) in stated {
            let field = format!("resource_weights.{name}");
            match kinds.id(name) {
                None => refuse(log, &field, name, "must be a resource kind that is known"),
                Some(_) if !(0.0..=WEIGHT_MAX).contains(weight) => {
                    let expected = format!("must be a number between 0 and {WEIGHT_MAX}");
                    refuse(log, &field, &weight.to_string(), &expected);
                }
                Some(kind) => weights[usize::from(kind.0)] = scaled(*weight, COST_SCALE),
            }
        }
        weights
    }

    fn bands(&self, log: &FaultLog) -> Vec<Band> {
        let stated = self.bands.clone().unwrap_or_default();
        if stated.len() > BANDS_MAX {
            note(log, "bands", format!("at most {BANDS_MAX} bands are allowed, there are {}", stated.len()));
        }
        let strict: &[String] = self.strict_bands.as_deref().unwrap_or_default();
        for (index, name) in strict.iter().enumerate().filter(|(_, name)| !stated.contains_key(*name)) {
            refuse(log, &format!("strict_bands[{index}]"), name, "must be the name of a band");
        }
        let mut bands: Vec<Band> = Vec::with_capacity(stated.len());
        for (name, value) in stated {
            if !(1..=BAND_VALUE_MAX).contains(&value) {
                let expected = format!("must be a whole number between 1 and {BAND_VALUE_MAX}");
                refuse(log, &format!("bands.{name}"), &value.to_string(), &expected);
            }
            let strict = strict.contains(&name);
            bands.push(Band { name, value, strict });
        }
        bands.sort_by(|left, right| (right.value, &left.name).cmp(&(left.value, &right.name)));
        bands
    }
}

impl RawShares {
    /// The settings as a file would give them.
    pub(super) fn of(settings: &ShareSettings, kinds: &Kinds) -> RawShares {
        let class_name =
            |classes: &ClassSettings, index: usize| classes.percents.classes()[index].name.clone();
        let classes = settings.classes.as_ref().map(|classes| {
            let all = classes.percents.classes().iter().enumerate();
            all.map(|(index, class)| RawClass {
                name: class.name.clone(),
                percent: class.percent as i64,
                requestors: classes.requestors.source()[index].patterns.clone(),
                cap: classes.caps[index].as_ref().map(|cap| raw_amounts(cap, kinds)),
            })
        });
        let queues = settings.queues.iter().map(|queue| RawQueue {
            name: queue.name.clone(),
            weight: number(queue.weight),
            class: queue
                .class
                .and_then(|class| settings.classes.as_ref().map(|classes| class_name(classes, class.at()))),
            quota: queue.quota.as_ref().map(|quota| raw_amounts(quota, kinds)),
        });
        let weights = kinds.names().zip(&settings.resource_weights);
        let rate =
            |rate: Rate| RawRate { per_second: rate.millionths_per_second as f64 / 1e6, burst: rate.burst };
        let strict = settings.bands.iter().filter(|band| band.strict);
        RawShares {
            default_class: settings
                .classes
                .as_ref()
                .filter(|all| all.default_is_stated)
                .map(|all| class_name(all, all.default.at())),
            classes: Some(classes.into_iter().flatten().collect()),
            queues: Some(queues.collect()),
            // Without classes there is nothing to compare; classes that come later bring their own key.
            share_key: Some(settings.share_key)
                .filter(|key| settings.classes.is_some() || *key != ShareKey::Fifo),
            queue_key: Some(settings.queue_key),
            job_key: Some(settings.job_key),
            share_unit: Some(settings.unit)
                .filter(|unit| settings.classes.is_some() || *unit != usual_unit(false, settings.queue_key)),
            resource_weights: Some(
                weights.map(|(name, weight)| (name.to_owned(), *weight as f64 / COST_SCALE as f64)).collect(),
            ),
            half_time: Some(settings.half_time.as_seconds()),
            non_preemptible_factor: settings.non_preemptible_factor.map(number),
            excess_budget: settings.excess_budget.map(|budget| budget as f64 / COST_SCALE as f64),
            bands: Some(settings.bands.iter().map(|band| (band.name.clone(), band.value)).collect()),
            strict_bands: Some(strict.map(|band| band.name.clone()).collect()),
            ageing: Some(settings.ageing.map_or(0.0, Span::as_seconds)),
            rates: Some(RawRates {
                scheduling: settings.rates.scheduling.map(rate),
                queue_scheduling: settings.rates.queue_scheduling.map(rate),
            }),
        }
    }
}

/// What shares are counted in if nobody says so: classes have percents of slots. Queues alone are told as they are
/// compared.
fn usual_unit(has_classes: bool, queue_key: ShareKey) -> ShareUnit {
    match queue_key {
        _ if has_classes => ShareUnit::Slot,
        ShareKey::Dominant => ShareUnit::Dominant,
        _ => ShareUnit::Weighted,
    }
}

/// The places of queues in the order of their names.
fn by_name(queues: &[QueueSettings]) -> Vec<u32> {
    let mut places: Vec<u32> = (0..queues.len() as u32).collect();
    places.sort_by_key(|place| &queues[*place as usize].name);
    places
}

impl Default for ShareSettings {
    fn default() -> ShareSettings {
        RawShares::default().validate(&Kinds::default(), &FaultLog::new())
    }
}

fn read_weights(cursor: Cursor<'_>) -> Option<BTreeMap<String, f64>> {
    let mut weights = BTreeMap::new();
    cursor.entries(|name, weight| {
        weight.number(0.0..=WEIGHT_MAX).into_iter().for_each(|number| {
            weights.insert(name.to_owned(), number);
        });
    })?;
    Some(weights)
}

fn read_bands(cursor: Cursor<'_>) -> Option<BTreeMap<String, u64>> {
    let mut bands = BTreeMap::new();
    cursor.entries(|name, value| {
        value.whole(1..=BAND_VALUE_MAX).into_iter().for_each(|value| {
            bands.insert(name.to_owned(), value);
        });
    })?;
    if !bands.is_empty() && !bands.contains_key(BAND_DEFAULT) {
        let expected =
            format!("one of the bands must be called `{BAND_DEFAULT}`: jobs that name none are in it");
        cursor.fault(FaultKind::Refused, expected);
    }
    Some(bands)
}

fn amounts(raw: &RawAmounts, field: &str, kinds: &Kinds, log: &FaultLog) -> Ceiling {
    let mut ceiling = Ceiling::default();
    for (name, text) in raw {
        let field = format!("{field}.{name}");
        let Some(kind) = kinds.id(name) else {
            refuse(log, &field, name, "must be a resource kind that is known");
            continue;
        };
        match kinds.unit(kind).parse(text) {
            Ok(amount) => ceiling.amounts.push((kind, amount)),
            Err(error) => refuse(log, &field, text, &error.to_string()),
        }
    }
    ceiling.amounts.sort_unstable();
    ceiling
}

fn raw_amounts(ceiling: &Ceiling, kinds: &Kinds) -> RawAmounts {
    let write =
        |(kind, amount): &(KindId, i64)| (kinds.name(*kind).to_owned(), kinds.unit(*kind).format(*amount));
    ceiling.amounts.iter().map(write).collect()
}

fn number(weight: Weight) -> f64 {
    weight.millionths() as f64 / Weight::ONE.millionths() as f64
}

/// A number of a file as a whole number of parts: the only place where fractions are rounded.
pub(super) fn scaled(number: f64, scale: u64) -> u64 {
    (number * scale as f64).round() as u64
}

fn note(log: &FaultLog, field: &str, expected: String) {
    log.note(|| Fault::new(Path::ROOT.field(field), FaultKind::Refused, None, expected));
}

fn refuse(log: &FaultLog, field: &str, found: &str, expected: &str) {
    let found = Value::Text(found.to_owned());
    log.note(|| Fault::new(field, FaultKind::Refused, Some(&found), expected.to_owned()));
}
