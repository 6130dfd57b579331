//! When running work is taken away in the worlds: every cause, in every mix.

use fastrand::Rng;

use crate::settings::RebalanceSettings;
use crate::shares::bucket::Rate;
use crate::spec::OnPreempt;
use crate::time::Span;

/// In one world of three nothing is ever taken away.
pub(super) fn rebalance(rng: &mut Rng) -> RebalanceSettings {
    if rng.u8(0..3) == 0 {
        return RebalanceSettings::default();
    }
    let millis =
        |rng: &mut Rng, choices: [u64; 3]| Span::from_millis(rng.choice(choices).expect("not empty"));
    // In some everything is reason enough, so that much is taken away.
    let eager = rng.u8(0..3) == 0;
    let slow = rng.u8(0..5) < 2;
    RebalanceSettings {
        threshold: if eager { 1 } else { rng.choice([0, 1, 10, 40]).expect("not empty") },
        duration: millis(rng, if eager { [0, 0, 20] } else { [0, 20, 500] }),
        on_preempt: on_preempt(rng),
        minimum_run: millis(rng, [0, 0, 50]),
        earmark: millis(rng, [0, 5, 5_000]),
        lifetime: eager || rng.bool(),
        higher: eager || rng.bool(),
        protected_fraction: rng.choice([None, Some(500_000), Some(1_000_000)]).expect("not empty"),
        stops_per_task: rng.choice([0, 1, 3, 3, 10, 10]).expect("not empty"),
        elastic: eager || rng.bool(),
        backfill: eager || rng.bool(),
        rate: slow.then(|| Rate { millionths_per_second: rng.u64(50_000..2_000_000), burst: rng.u64(1..3) }),
    }
}

/// Most tasks that were stopped wait once more.
pub(super) fn on_preempt(rng: &mut Rng) -> OnPreempt {
    match rng.u8(0..6) {
        0 => OnPreempt::Fail,
        1 => OnPreempt::Drop,
        _ => OnPreempt::Requeue,
    }
}
