//! Settings as files and callers give them: every field may be left out. Layers are merged, then
//! validated once into [`Settings`].

use serde::Serialize;

use crate::document::{Cursor, Fault, FaultKind, FaultLog, Faults, Fields, Path, Value};
use crate::resources::{KINDS_BUILT_IN, KINDS_MAX, Kinds};
use crate::spec::{NodeChoice, OnUnsatisfiable, PoolDefault};
use crate::time::Span;

use super::bounds::{self, Bounds};
use super::raw_sections::{RawDeadlines, RawLimits, RawRetention, override_with, seconds_or_default};
use super::raw_shares::RawShares;
use super::rebalance::{PROTECTED_MAX, raw_fraction};
use super::{ClaimAfter, RawElastic, RawFaulty, RawMonitor, RawRebalance, Settings, WindowSettings};

/// Settings under their names in files, each of them optional. Lengths of time are seconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RawSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_cap: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_adaptive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<NodeChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolDefault>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unsatisfiable: Option<OnUnsatisfiable>,
    /// Resource kinds besides the built-in ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<String>>,
    #[serde(skip_serializing_if = "RawLimits::is_empty")]
    pub limits: RawLimits,
    #[serde(skip_serializing_if = "RawRetention::is_empty")]
    pub retention: RawRetention,
    #[serde(skip_serializing_if = "RawDeadlines::is_empty")]
    pub deadlines: RawDeadlines,
    #[serde(skip_serializing_if = "RawFaulty::is_empty")]
    pub faulty: RawFaulty,
    #[serde(skip_serializing_if = "RawMonitor::is_empty")]
    pub monitor: RawMonitor,
    #[serde(skip_serializing_if = "RawRebalance::is_empty")]
    pub rebalance: RawRebalance,
    /// What of its fair share a queue keeps when others take work away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_fraction: Option<f64>,
    /// So many CPUs a task must bring for each of its GPUs; 0 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_cpu_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_after: Option<f64>,
    #[serde(flatten)]
    pub shares: RawShares,
    #[serde(flatten)]
    pub elastic: RawElastic,
}

/// So many CPUs at most can be demanded for each GPU.
const RATIO_MAX: f64 = 1_000.0;

/// Bytes of the name of a resource kind.
const KIND_NAME_MAX: usize = 128;

impl RawSettings {
    /// Reads a whole document that holds nothing but settings.
    pub fn from_document(document: &Value) -> Result<RawSettings, Faults> {
        let log = FaultLog::new();
        let settings = RawSettings::read(Cursor::root(document, &log));
        log.into_result(settings)
    }

    /// Reads the settings at one place of a document; what is wrong with them goes to its log.
    pub fn read(cursor: Cursor<'_>) -> Option<RawSettings> {
        cursor.table(RawSettings::read_fields)
    }

    fn read_fields(fields: &Fields<'_>) -> RawSettings {
        RawSettings {
            window: read_seconds(fields, "window", bounds::WINDOW),
            window_cap: read_seconds(fields, "window_cap", bounds::WINDOW_CAP),
            window_adaptive: fields.get("window_adaptive").and_then(|cursor| cursor.flag()),
            placement: fields.get("placement").and_then(|cursor| cursor.one_of(&NodeChoice::NAMES)),
            pool: fields.get("pool").and_then(|cursor| cursor.one_of(&PoolDefault::NAMES)),
            on_unsatisfiable: fields
                .get("on_unsatisfiable")
                .and_then(|cursor| cursor.one_of(&OnUnsatisfiable::NAMES)),
            resources: fields.get("resources").and_then(read_kinds),
            limits: section(fields, "limits", RawLimits::read),
            retention: section(fields, "retention", RawRetention::read),
            deadlines: section(fields, "deadlines", RawDeadlines::read),
            faulty: section(fields, "faulty", RawFaulty::read),
            monitor: section(fields, "monitor", RawMonitor::read),
            rebalance: section(fields, "rebalance", RawRebalance::read),
            protected_fraction: fields
                .get("protected_fraction")
                .and_then(|cursor| cursor.number(0.0..=PROTECTED_MAX)),
            gpu_cpu_ratio: fields.get("gpu_cpu_ratio").and_then(|cursor| cursor.number(0.0..=RATIO_MAX)),
            claim_after: read_seconds(fields, "claim_after", bounds::CLAIM_AFTER),
            shares: RawShares::read(fields),
            elastic: RawElastic::read(fields),
        }
    }

    /// Lays `over` on top: what it gives replaces what is here.
    pub fn merge(&mut self, over: &RawSettings) {
        override_with(&mut self.window, &over.window);
        override_with(&mut self.window_cap, &over.window_cap);
        override_with(&mut self.window_adaptive, &over.window_adaptive);
        override_with(&mut self.placement, &over.placement);
        override_with(&mut self.pool, &over.pool);
        override_with(&mut self.on_unsatisfiable, &over.on_unsatisfiable);
        override_with(&mut self.resources, &over.resources);
        self.limits.merge(&over.limits);
        self.retention.merge(&over.retention);
        self.deadlines.merge(&over.deadlines);
        self.faulty.merge(&over.faulty);
        self.monitor.merge(&over.monitor);
        self.rebalance.merge(&over.rebalance);
        override_with(&mut self.protected_fraction, &over.protected_fraction);
        override_with(&mut self.gpu_cpu_ratio, &over.gpu_cpu_ratio);
        override_with(&mut self.claim_after, &over.claim_after);
        self.shares.merge(&over.shares);
        self.elastic.merge(&over.elastic);
    }

    /// The settings the machines work with, or everything that keeps them from being used.
    pub fn validate(&self) -> Result<Settings, Faults> {
        let log = FaultLog::new();
        let kinds = self.kinds(&log);
        let settings = Settings {
            shares: self.shares.validate(&kinds, &log),
            kinds,
            window: self.window(&log),
            placement: self.placement.unwrap_or_default(),
            pool: self.pool.unwrap_or_default(),
            on_unsatisfiable: self.on_unsatisfiable.unwrap_or_default(),
            limits: self.limits.validate(&log),
            retention: self.retention.validate(&log),
            deadlines: self.deadlines.validate(&log),
            faulty: self.faulty.validate(&log),
            monitor: self.monitor.validate(&log),
            elastic: self.elastic.validate(&log),
            gpu_cpu_ratio: self.gpu_cpu_ratio(&log),
            claim_after: ClaimAfter(seconds_or_default(
                &log,
                "claim_after",
                self.claim_after,
                bounds::CLAIM_AFTER,
            )),
            rebalance: self.rebalance.validate(self.protected_fraction, &log),
            ..Settings::default()
        };
        log.into_result(Some(settings))
    }

    fn gpu_cpu_ratio(&self, log: &FaultLog) -> u32 {
        let ratio = self.gpu_cpu_ratio.unwrap_or(0.0);
        if !(0.0..=RATIO_MAX).contains(&ratio) {
            let expected = format!("a number between 0 and {RATIO_MAX}");
            let found = Value::Float(ratio);
            log.note(|| Fault::new("gpu_cpu_ratio", FaultKind::OutOfRange, Some(&found), expected));
            return 0;
        }
        (ratio * 1_000.0).round() as u32
    }

    fn window(&self, log: &FaultLog) -> WindowSettings {
        let gap = seconds_or_default(log, "window", self.window, bounds::WINDOW);
        let cap = seconds_or_default(log, "window_cap", self.window_cap, bounds::WINDOW_CAP);
        if cap < gap {
            log.note(|| {
                let expected = format!("must be at least `window`, which is {}", gap.as_seconds());
                let found = Value::Float(cap.as_seconds());
                Fault::new("window_cap", FaultKind::Refused, Some(&found), expected)
            });
        }
        let adaptive = self.window_adaptive.unwrap_or(bounds::WINDOW_ADAPTIVE);
        WindowSettings { gap, cap, adaptive }
    }

    fn kinds(&self, log: &FaultLog) -> Kinds {
        let mut kinds = Kinds::default();
        let path = Path::ROOT.field("resources");
        for (index, name) in self.resources.iter().flatten().enumerate() {
            declare_kind(&mut kinds, name, &path.index(index), log);
        }
        kinds
    }
}

impl From<&Settings> for RawSettings {
    fn from(settings: &Settings) -> RawSettings {
        let declared = settings.kinds.names().filter(|name| !KINDS_BUILT_IN.contains(name));
        RawSettings {
            window: Some(settings.window.gap.as_seconds()),
            window_cap: Some(settings.window.cap.as_seconds()),
            window_adaptive: Some(settings.window.adaptive),
            placement: Some(settings.placement),
            pool: Some(settings.pool),
            on_unsatisfiable: Some(settings.on_unsatisfiable),
            resources: Some(declared.map(str::to_owned).collect()),
            limits: RawLimits::from(&settings.limits),
            retention: RawRetention::from(&settings.retention),
            deadlines: RawDeadlines::from(&settings.deadlines),
            faulty: RawFaulty::from(&settings.faulty),
            monitor: RawMonitor::from(&settings.monitor),
            rebalance: RawRebalance::from(&settings.rebalance),
            protected_fraction: raw_fraction(&settings.rebalance),
            gpu_cpu_ratio: Some(f64::from(settings.gpu_cpu_ratio) / 1_000.0),
            claim_after: Some(settings.claim_after.0.as_seconds()),
            shares: RawShares::of(&settings.shares, &settings.kinds),
            elastic: RawElastic::from(&settings.elastic),
        }
    }
}

/// Adds a resource kind under its name, or notes why that cannot be.
pub fn declare_kind(kinds: &mut Kinds, name: &str, place: &Path<'_>, log: &FaultLog) {
    let fault = |expected: String| {
        let found = Value::Text(name.to_owned());
        Fault::new(place, FaultKind::OutOfRange, Some(&found), expected)
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    if name.is_empty() || name.len() > KIND_NAME_MAX || !name.bytes().all(is_allowed) {
        log.note(|| {
            fault(format!(
                "the name of a resource kind: 1 to {KIND_NAME_MAX} letters, digits, `-`, `_`, `.` or `/`"
            ))
        });
    } else if kinds.declare(name).is_none() {
        log.note(|| fault(format!("at most {KINDS_MAX} resource kinds in all")));
    }
}

fn read_kinds(cursor: Cursor<'_>) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    cursor.list(|item| {
        let name = item.name()?;
        match names.iter().any(|known| known == name) {
            true => item.fault(FaultKind::Duplicate, "a resource kind may be declared only once"),
            false => names.push(name.to_owned()),
        }
        Some(())
    })?;
    Some(names)
}

fn section<T: Default>(fields: &Fields<'_>, name: &'static str, read: fn(&Fields<'_>) -> T) -> T {
    fields.get(name).and_then(|cursor| cursor.table(read)).unwrap_or_default()
}

pub(super) fn read_seconds(fields: &Fields<'_>, name: &'static str, bounds: Bounds<Span>) -> Option<f64> {
    fields.get(name).and_then(|cursor| cursor.span(bounds.range())).map(Span::as_seconds)
}
