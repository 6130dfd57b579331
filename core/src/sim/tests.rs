//! The world over many seeds, twice the same, and through bytes.

use fastrand::Rng;

use super::run::{Run, run};

/// Goal: no promise is broken in any of these runs. Fixed seeds, so a failure stays a failure.
#[test]
fn a_thousand_seeds_run_clean() {
    let failures: Vec<String> =
        (0..1_000).filter_map(|seed| run(seed).err()).map(|failure| failure.to_string()).collect();
    assert!(failures.is_empty(), "{} of 1000 failed, the first: {}", failures.len(), failures[0]);
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_bit() {
    for seed in 0..50 {
        assert_eq!(run(seed), run(seed));
    }
}

/// Goal: a machine restored from bytes goes on exactly as the original would. Method: the same
/// seed once as it is, once with every machine restored at random moments; equal digests mean
/// that every outbox of every turn was the same.
#[test]
fn machines_restored_from_bytes_at_random_moments_go_on_as_before() {
    for seed in 0..100 {
        let restored = {
            let mut run = Run::new(seed);
            run.restores = Some(Rng::with_seed(seed ^ 0x5eed));
            run.guarded(|run| run.whole())
        };
        assert_eq!(restored, run(seed), "seed {seed}");
    }
}
