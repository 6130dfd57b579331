//! Shows that the world has teeth: each rule of the protocol, broken alone, is found out.

use crate::mutation::{Mutation, with};

use super::run::run;

const SEEDS_MAX: u64 = 1_500;

const ALL: &[Mutation] = &[
    Mutation::DropRelease,
    Mutation::SkipVersionCheck,
    Mutation::ChargeTwice,
    Mutation::IgnoreAttemptNumber,
    Mutation::SplitAtomicGroup,
    Mutation::ForgetPending,
    Mutation::TrustReturnedNode,
    Mutation::SwallowConflict,
    Mutation::WithdrawEarly,
    Mutation::KeepChargeOnConflict,
    Mutation::MissWindowClose,
    Mutation::SkipWithdrawal,
    Mutation::ForgetStarved,
    Mutation::BreakInSilence,
    Mutation::KeepDrained,
    Mutation::IgnoreOthers,
    Mutation::ShareReserved,
    Mutation::ReturnInSilence,
    Mutation::MissProgress,
    Mutation::TrustFlagged,
    Mutation::ForgetFailure,
    Mutation::IgnoreHops,
    Mutation::IgnorePools,
    Mutation::KeepOldTree,
    Mutation::MissChange,
    Mutation::ForgetWhoAsks,
    Mutation::OverlookFilters,
    Mutation::MissAgeing,
    Mutation::KeepOldStanding,
    Mutation::KeepOldWeights,
    Mutation::TrustOldProspect,
    Mutation::GiveUpEarly,
    Mutation::LoseReturnedTask,
    Mutation::RetryForever,
    Mutation::RetryEarly,
    Mutation::KeepBrokenGroup,
    Mutation::KeepAuxiliary,
    Mutation::LodgeElsewhere,
    Mutation::KeepGuests,
    Mutation::TakeOldTag,
    Mutation::KeepSuperseded,
    Mutation::RequeueCancelled,
    Mutation::ObeyOldSession,
    Mutation::PrepareForever,
    Mutation::GiveUnitsTwice,
    Mutation::KeepRevoked,
    Mutation::ConfirmStopEarly,
    Mutation::StealClaim,
    Mutation::KeepClaim,
    Mutation::DelayClaim,
];

/// Rules about taking work away.
const OF_THE_GATE: &[Mutation] = &[
    Mutation::StopForNothing,
    Mutation::StopTooMany,
    Mutation::TakeFirm,
    Mutation::WakeResting,
    Mutation::IgnoreStopRate,
    Mutation::StealEarmark,
    Mutation::KeepEarmark,
    Mutation::CountStarted,
    Mutation::FillFirm,
    Mutation::FillForGood,
];

#[test]
fn every_broken_rule_of_the_gate_is_found() {
    assert_found(OF_THE_GATE);
}

#[test]
fn every_broken_rule_is_found_within_a_bounded_number_of_seeds() {
    assert_found(ALL);
}

fn assert_found(mutations: &[Mutation]) {
    // The assertions that stop a mutated machine are expected here: keep them quiet.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found: Vec<(Mutation, Option<u64>)> = mutations
        .iter()
        .copied()
        .map(|mutation| (mutation, with(mutation, || (0..SEEDS_MAX).find(|seed| run(*seed).is_err()))))
        .collect();
    std::panic::set_hook(hook);
    let missed: Vec<_> = found.iter().filter(|(_, seed)| seed.is_none()).collect();
    assert!(missed.is_empty(), "the world does not notice {missed:?}");
}
