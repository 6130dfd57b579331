//! Why something was decided, in the words of a dry run.

use crate::outcome::{Outcome, Phase, StopCause};
use crate::spec::{GroupSpec, NodeChoice};

/// Why a task of this role went to its node and no other.
pub(super) fn why_there(group: &GroupSpec, role: u16, placement: NodeChoice) -> &'static str {
    let shape = &group.roles[usize::from(role)].shape;
    let choice = shape.placement.unwrap_or(placement);
    let (packs, own_first) = (choice == NodeChoice::Pack, choice == NodeChoice::OwnFirst);
    match (&shape.rules.node, &shape.snapshot, &shape.service) {
        (Some(_), ..) => "the node it is for",
        _ if group.hops.or(shape.hops).is_some() => "near enough to the others that start with it",
        (None, Some(_), _) if packs => "warm for its snapshot, else new, else the fullest with room",
        (None, Some(_), _) => "warm for its snapshot, else new, else fewest tasks among the nodes with room",
        (None, None, Some(_)) if packs && !shape.spread.is_empty() => {
            "the fullest with room in the branch with the fewest tasks of the service"
        }
        (None, None, _) if own_first => {
            "own before granted, granted before others, then fewest tasks among the nodes with room"
        }
        (None, None, _) if packs => "the fullest of the nodes with room",
        (None, None, Some(_)) => "fewest tasks of the service among the nodes with room",
        (None, None, None) => "fewest tasks among the nodes with room",
    }
}

/// Why an attempt did not run to its end, if somebody or something kept it from that.
pub(super) fn why_stopped(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Preempted(StopCause::CapacityLoss) => {
            Some("the node's capacity shrank, or others use it: too little was left for what ran there")
        }
        Outcome::Preempted(StopCause::Resized) => Some("its group was made smaller"),
        Outcome::Preempted(StopCause::Drain) => Some("its node is drained or out of use"),
        Outcome::Preempted(StopCause::Imbalance(_)) => {
            Some("its class was above its percent, and below was that of job")
        }
        Outcome::Preempted(StopCause::FairShare(_)) => {
            Some("its queue was above its fair share, and below was that of job")
        }
        Outcome::Preempted(StopCause::Minimum(_)) => {
            Some("its group was above its minimum, and could not start otherwise: job")
        }
        Outcome::Preempted(StopCause::Evenness(_)) => Some("its group has had more than that of job"),
        Outcome::Preempted(StopCause::Backfill(_)) => {
            Some("it ran there until somebody could start for whom that was kept: job")
        }
        Outcome::Preempted(StopCause::Lifetime(_)) => Some("it is older than its lifetime, and held up job"),
        Outcome::Preempted(StopCause::HigherWork(_)) => Some("it held up work of a higher band, job"),
        Outcome::Preempted(StopCause::GroupBroken) => Some("a member of its atomic group was lost"),
        Outcome::Preempted(StopCause::Cancel) | Outcome::Cancelled => Some("its job was cancelled"),
        Outcome::Preempted(StopCause::Abort) | Outcome::Aborted => Some("its job was aborted"),
        Outcome::Preempted(StopCause::HostEnded) => Some("the task whose guest it was has ended"),
        Outcome::Preempted(StopCause::GroupDone) | Outcome::Dismissed => {
            Some("the rest of its group is done")
        }
        Outcome::Lost => Some("its node is down"),
        Outcome::TimedOut(Phase::Scheduled) => Some("its node did not begin it in time"),
        Outcome::TimedOut(Phase::Installing) => Some("its node was not prepared in time"),
        Outcome::TimedOut(_) => Some("it ran beyond its deadline"),
        Outcome::Completed | Outcome::Failed(_) => None,
    }
}
