//! Worlds with the settings that people use: a preset, or a mix in which each part comes from another one. What
//! presets leave to everybody, such as deadlines and limits, is drawn like in other worlds.

use std::sync::Arc;

use fastrand::Rng;

use crate::resources::{Kinds, Resources};
use crate::settings::{ClaimAfter, RawSettings, RawShares, Settings};
use crate::spec::{JobSpec, StandingChange, parts_of};
use crate::time::Span;

use super::presets::PRESETS;
use super::standings;
use super::workload::SLOT;

/// Nodes have so many slots at most.
pub(super) const SLOTS_MAX: i64 = 4_000;

/// Draws everything that a world of presets has otherwise; worlds of drawn settings do without.
#[derive(Clone, Debug)]
pub(super) struct Mixer {
    rng: Rng,
    /// So many jobs come at once at most: where little is free, work is taken away.
    crowd: u64,
}

impl Mixer {
    /// Every other world is one of presets.
    pub(super) fn of(seed: u64) -> Option<Mixer> {
        const APART: u64 = 0x7072_6573_6574;
        let mut rng = Rng::with_seed(seed ^ APART);
        let crowd = rng.choice([1, 4, 12]).expect("not empty");
        rng.bool().then_some(Mixer { rng, crowd })
    }

    /// How many jobs come at once.
    pub(super) fn crowd(&mut self) -> u64 {
        self.rng.u64(1..=self.crowd)
    }

    /// These settings with the policy of a preset or of a mix.
    pub(super) fn settings(&mut self, drawn: Settings) -> Settings {
        let rng = &mut self.rng;
        let mut raw = if rng.bool() { preset(rng) } else { mix(rng) };
        if rng.bool() {
            raw.shares.queues = Some(standings::queues(rng));
        }
        let mut policy = raw.validate().expect("all parts of presets go together");
        quicken(&mut policy, rng.choice([1, 20, 1_000, 1_000]).expect("not empty"));
        let Settings { version, deadlines, limits, retention, monitor, filters, .. } = drawn;
        Settings { version, deadlines, limits, retention, monitor, filters, ..policy }
    }

    /// Nodes have slots too.
    pub(super) fn add_slots(&mut self, capacity: &mut Resources) {
        capacity.set(SLOT, self.rng.i64(1..=SLOTS_MAX / 1_000) * 1_000);
    }

    /// Most jobs belong somewhere by these settings, and tasks of some take a slot.
    pub(super) fn settle(&mut self, settings: &Settings, job: &mut JobSpec) {
        let rng = &mut self.rng;
        if let Some(class) = any_class(rng, settings) {
            job.requestor = class;
        }
        let change = any_standing(rng, settings);
        job.standing = change.applied_to(&job.standing);
        if rng.bool() {
            return;
        }
        for role in job.groups.iter_mut().flat_map(|group| &mut group.roles) {
            let shape = Arc::make_mut(&mut role.shape);
            if shape.guest_of.is_none() {
                shape.request.set(SLOT, 1_000);
                shape.rules.parts = parts_of(&shape.request, &Kinds::default());
            }
        }
    }

    /// Somebody is to stand elsewhere by these settings.
    pub(super) fn restand(&mut self, settings: &Settings, change: &mut StandingChange) {
        let StandingChange { queue, band, .. } = any_standing(&mut self.rng, settings);
        change.queue = change.queue.take().and(queue);
        change.band = change.band.take().and(band);
    }
}

/// The name of a class is a requestor of it, in all presets.
fn any_class(rng: &mut Rng, settings: &Settings) -> Option<Arc<str>> {
    let classes = settings.shares.classes.as_ref()?.percents.classes();
    Some(rng.choice(classes)?.name.as_str().into())
}

fn any_standing(rng: &mut Rng, settings: &Settings) -> StandingChange {
    let queue = rng.choice(&settings.shares.queues).map(|queue| queue.name.as_str().into());
    let band = rng.choice(&settings.shares.bands).map(|band| band.name.as_str().into());
    // Some stay without.
    StandingChange {
        queue: queue.filter(|_| rng.u8(0..4) > 0),
        band: band.filter(|_| rng.u8(0..4) > 0),
        ..StandingChange::default()
    }
}

fn preset(rng: &mut Rng) -> RawSettings {
    rng.choice(PRESETS).expect("there are presets").1()
}

/// Each part of another preset, as far as parts do not depend on each other.
fn mix(rng: &mut Rng) -> RawSettings {
    let (windows, nodes, pools, gate) = (preset(rng), preset(rng), preset(rng), preset(rng));
    let (classes, queues, bands) = (preset(rng).shares, preset(rng).shares, preset(rng).shares);
    RawSettings {
        window: windows.window,
        window_cap: windows.window_cap,
        window_adaptive: windows.window_adaptive,
        placement: nodes.placement,
        faulty: nodes.faulty,
        pool: pools.pool,
        on_unsatisfiable: pools.on_unsatisfiable,
        rebalance: gate.rebalance,
        protected_fraction: gate.protected_fraction,
        shares: RawShares {
            classes: classes.classes,
            default_class: classes.default_class,
            share_key: classes.share_key,
            share_unit: classes.share_unit,
            queue_key: queues.queue_key,
            half_time: queues.half_time,
            resource_weights: queues.resource_weights,
            non_preemptible_factor: queues.non_preemptible_factor,
            job_key: preset(rng).shares.job_key,
            bands: bands.bands,
            strict_bands: bands.strict_bands,
            ..RawShares::default()
        },
        elastic: preset(rng).elastic,
        ..RawSettings::default()
    }
}

/// Presets are made for hours and worlds go by in seconds: every length of time is so much shorter.
fn quicken(settings: &mut Settings, times: u64) {
    let Settings { window, shares, elastic, faulty, rebalance, .. } = settings;
    let ClaimAfter(claim_after) = &mut settings.claim_after;
    let spans = [
        &mut window.gap,
        &mut window.cap,
        &mut shares.half_time,
        &mut elastic.freeze,
        &mut elastic.resize_interval,
        &mut faulty.within,
        &mut faulty.probe,
        &mut rebalance.duration,
        &mut rebalance.minimum_run,
        &mut rebalance.earmark,
        claim_after,
    ];
    for span in spans.into_iter().filter(|span| !span.is_zero()) {
        *span = Span((span.0 / times).max(1_000));
    }
}
