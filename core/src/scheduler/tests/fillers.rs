//! Work that runs on what is claimed until the claimant can start.

use crate::settings::{ClaimAfter, RebalanceSettings};

use super::*;

const LATER: Time = Time(1_000);

/// Attempts and where they are.
type Placed = Vec<(Attempt, NodeId)>;

fn backfilling() -> Bench {
    let window = WindowSettings { gap: Span::ZERO, cap: Span::ZERO, adaptive: false };
    let rebalance = RebalanceSettings { backfill: true, ..RebalanceSettings::default() };
    let claim_after = ClaimAfter(Span::ZERO);
    let settings = Settings { window, rebalance, claim_after, ..Settings::default() };
    Bench { scheduler: Scheduler::new(Arc::new(settings)), out: Outbox::default(), last_sequence: 0 }
}

/// Two nodes that run something, and a gang that has claimed both; then one of them becomes free and is filled.
fn filled() -> (Bench, Placed, Placed) {
    let mut bench = backfilling();
    bench.add_nodes(SLOT, &[1, 1]);
    assert_eq!(bench.hear(vec![bag(1, 2, SLOT, 1)]).len(), 2);
    let running = bench.attempts();
    assert_eq!(bench.hear(vec![gang(2, vec![role(Resources::of(SLOT, 1), 2)])]), []);
    assert_eq!(bench.scheduler.claims().len(), 1, "the gang holds the claim");
    assert_eq!(bench.hear(vec![bag(3, 1, SLOT, 1)]), [], "nothing is free");
    let pending = bench.pending(&[0]);
    let ended = released(&running[..1], Outcome::Completed);
    let placed = bench.hear_at(LATER, vec![ended, pending]);
    assert_eq!(placed, [(3, 0, 0, 0)], "what can be stopped at once fills what is claimed");
    let filler = bench.attempts();
    (bench, running, filler)
}

/// The last of those ends who are awaited: the filler is told to go.
fn cleared() -> (Bench, Placed) {
    let (mut bench, running, filler) = filled();
    let pending = bench.pending(&[1]);
    assert_eq!(bench.hear_at(LATER, vec![released(&running[1..], Outcome::Completed), pending]), []);
    assert_eq!(bench.stops(), [(filler[0].0, StopCause::Backfill(group(2)))]);
    assert!(bench.scheduler.claims().is_empty(), "what was claimed is earmarked");
    (bench, filler)
}

/// Goal: the claimant starts as soon as it can, and the filler waits once more.
#[test]
fn a_filler_goes_when_the_claimant_can_start() {
    let (mut bench, filler) = cleared();
    let pending = bench.pending(&[0]);
    let ended = released(&filler, Outcome::Preempted(StopCause::Backfill(group(2))));
    let placed = bench.hear_at(LATER, vec![ended, pending]);
    assert_eq!(placed, [(2, 0, 0, 0), (2, 0, 1, 1)], "the gang runs");
    let task = filler[0].0.task;
    let again = ReturnedTask { task, number: 2, avoid: Vec::new() };
    assert_eq!(bench.hear_at(LATER, vec![SchedulerMessage::Return(vec![again])]), []);
    let waiting = bench.scheduler.explain(group(3)).map(|explanation| explanation.waiting);
    assert_eq!(waiting, Some(1));
}

/// Goal: what was stopped for a claimant is not let in before it again and again. Method: one of the nodes goes
/// before the gang has started, so that it waits for another; what is free meanwhile stays free for it.
#[test]
fn nobody_fills_what_is_claimed_twice_before_the_same_claimant() {
    let (mut bench, filler) = cleared();
    let third = SchedulerMessage::Nodes(vec![node(2, Resources::of(SLOT, 1))]);
    let pending = bench.pending(&[2]);
    let placed = bench.hear_at(LATER, vec![bag(4, 1, SLOT, 1), third, pending]);
    assert_eq!(placed, [(4, 0, 0, 2)], "somebody runs where nothing is kept");
    let gone = SchedulerMessage::Nodes(vec![NodeNews { node: NodeId(1), view: None }]);
    let ended = released(&filler, Outcome::Preempted(StopCause::Backfill(group(2))));
    let task = filler[0].0.task;
    let again = SchedulerMessage::Return(vec![ReturnedTask { task, number: 2, avoid: Vec::new() }]);
    let pending = bench.pending(&[0]);
    bench.hear_at(LATER, vec![gone]);
    let first = bench.hear_at(LATER, vec![ended, pending]);
    let second = bench.hear_at(LATER, vec![again]);
    assert_eq!((first, second), (vec![], vec![]), "nobody is let in before the gang once more");
    assert_eq!(bench.scheduler.claims().len(), 1, "it holds a claim again");
}

/// Goal: a filler counts for nobody who chooses nodes. Method: the claimant is cancelled, and another gang comes
/// for the same nodes; it need not wait for the filler.
#[test]
fn whoever_claims_next_does_not_wait_for_fillers() {
    let (mut bench, running, filler) = filled();
    bench.hear_at(LATER, vec![SchedulerMessage::Withdraw(vec![group(2)])]);
    let pending = bench.pending(&[1]);
    bench.hear_at(LATER, vec![released(&running[1..], Outcome::Completed), pending]);
    bench.hear_at(LATER, vec![gang(5, vec![role(Resources::of(SLOT, 1), 2)])]);
    bench.hear_at(LATER, vec![]);
    assert_eq!(bench.stops(), [(filler[0].0, StopCause::Backfill(group(5)))]);
}
