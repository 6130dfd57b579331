//! The presets, for the worlds, which read no files.

use crate::settings::{
    JobKey, RawClass, RawElastic, RawFaulty, RawRebalance, RawSettings, RawShares, ShareKey, ShareUnit,
};
use crate::spec::{NodeChoice, OnUnsatisfiable, PoolDefault};

/// The name of a preset, and what makes its settings.
pub type Preset = (&'static str, fn() -> RawSettings);

/// The presets as the files in `config/` have them; a test compares the two.
pub const PRESETS: [Preset; 6] = [
    ("default", default),
    ("scoot", scoot),
    ("armada", armada),
    ("swarmkit", swarmkit),
    ("beaker", beaker),
    ("paddle", paddle),
];

/// The window that most presets have.
fn windowed(adaptive: bool) -> RawSettings {
    RawSettings {
        window: Some(0.05),
        window_cap: Some(1.0),
        window_adaptive: Some(adaptive),
        placement: Some(NodeChoice::Spread),
        ..RawSettings::default()
    }
}

fn faulty(broken_after: u64) -> RawFaulty {
    RawFaulty {
        failures: Some(5),
        within: Some(300.0),
        broken_after: Some(broken_after),
        ..RawFaulty::default()
    }
}

fn default() -> RawSettings {
    RawSettings { faulty: RawFaulty { probe: Some(600.0), ..faulty(3) }, ..windowed(true) }
}

fn scoot() -> RawSettings {
    let class = |name: &str, percent, patterns: &[&str]| RawClass {
        name: name.to_owned(),
        percent,
        requestors: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
        cap: None,
    };
    let classes = vec![
        class("land", 40, &["land.*"]),
        class("diff", 25, &["diff.*"]),
        class("regression", 17, &["regression.*", "CI.*"]),
        class("sandbox", 10, &["sandbox.*"]),
        class("ktf", 3, &["jenkins.*", "ktf.*"]),
        class("coverage", 2, &["coverage.*"]),
        class("tryout", 2, &["tryout.*"]),
        class("unknown", 1, &[]),
    ];
    let shares = RawShares {
        share_key: Some(ShareKey::Entitlement),
        share_unit: Some(ShareUnit::Slot),
        job_key: Some(JobKey::LeastRunning),
        default_class: Some("unknown".to_owned()),
        classes: Some(classes),
        ..RawShares::default()
    };
    let rebalance = RawRebalance { threshold: Some(20), duration: Some(240.0), ..RawRebalance::default() };
    RawSettings { shares, rebalance, ..windowed(true) }
}

fn armada() -> RawSettings {
    let weights = [("cpu", 1.0), ("gpu", 20.0), ("slot", 1.0)];
    let shares = RawShares {
        queue_key: Some(ShareKey::Flow),
        half_time: Some(3_600.0),
        resource_weights: Some(weights.map(|(kind, weight)| (kind.to_owned(), weight)).into()),
        non_preemptible_factor: Some(1.2),
        ..RawShares::default()
    };
    RawSettings {
        placement: Some(NodeChoice::Pack),
        pool: Some(PoolDefault::Job),
        protected_fraction: Some(1.0),
        rebalance: RawRebalance { lifetime: Some(true), ..RawRebalance::default() },
        shares,
        ..windowed(true)
    }
}

fn swarmkit() -> RawSettings {
    RawSettings { faulty: faulty(0), ..windowed(false) }
}

fn beaker() -> RawSettings {
    let shares = bands(
        &["urgent", "high", "normal", "medium", "low"],
        &[("low", 1), ("medium", 2), ("normal", 3), ("high", 4), ("urgent", 5)],
    );
    RawSettings {
        window: Some(0.0),
        placement: Some(NodeChoice::OwnFirst),
        pool: Some(PoolDefault::Group),
        on_unsatisfiable: Some(OnUnsatisfiable::Fail),
        shares,
        ..RawSettings::default()
    }
}

fn paddle() -> RawSettings {
    let bands = bands(
        &["production"],
        &[("experiment", 10), ("offline", 100), ("normal", 1_000), ("production", 10_000)],
    );
    let shares = RawShares { job_key: Some(JobKey::RunTime), queue_key: Some(ShareKey::RunTime), ..bands };
    RawSettings {
        window: Some(0.0),
        placement: Some(NodeChoice::Spread),
        elastic: RawElastic { headroom: Some(0.03), freeze: Some(60.0), resize_interval: Some(5.0) },
        rebalance: RawRebalance { elastic: Some(true), ..RawRebalance::default() },
        shares,
        ..RawSettings::default()
    }
}

fn bands(strict: &[&str], values: &[(&str, u64)]) -> RawShares {
    let value = |(name, value): &(&str, u64)| ((*name).to_owned(), *value);
    RawShares {
        strict_bands: Some(strict.iter().map(|name| (*name).to_owned()).collect()),
        bands: Some(values.iter().map(value).collect()),
        ..RawShares::default()
    }
}
