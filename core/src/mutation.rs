//! Ways to break one rule of the protocol at a time, so that tests can show that the deterministic
//! world notices. Outside this crate's own tests every rule stands and the questions cost nothing.

/// A rule that can be broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// ClusterState forgets to tell the Scheduler of a release.
    DropRelease,
    /// ClusterState commits against a node that changed since the decision.
    SkipVersionCheck,
    /// ClusterState books an attempt twice.
    ChargeTwice,
    /// ClusterState takes an end report without looking at the attempt it names.
    IgnoreAttemptNumber,
    /// ClusterState commits what fits of an atomic group.
    SplitAtomicGroup,
    /// ClusterState does not say that a node has room again.
    ForgetPending,
    /// ClusterState gives work to a returned node before its old attempts have ended.
    TrustReturnedNode,
    /// ClusterState drops a conflict instead of reporting it.
    SwallowConflict,
    /// ClusterState calls a group withdrawn while attempts of it are live.
    WithdrawEarly,
    /// The Scheduler does not refund a refused placement.
    KeepChargeOnConflict,
    /// The Scheduler forgets to look at waiting work when a window closes.
    MissWindowClose,
    /// The Scheduler skips the withdrawal when nothing of the group waits.
    SkipWithdrawal,
    /// The Scheduler forgets what was to be looked at when credit ran out.
    ForgetStarved,
    /// ClusterState sets a node broken without telling the Scheduler.
    BreakInSilence,
    /// The Scheduler leaves running what runs on a drained node.
    KeepDrained,
    /// ClusterState does not tell the Scheduler what others use of a node.
    IgnoreOthers,
    /// ClusterState lets work onto a node that somebody has for himself.
    ShareReserved,
    /// ClusterState does not tell the Scheduler that a node was given back.
    ReturnInSilence,
    /// ClusterState does not note in the usage history how far attempts have come.
    MissProgress,
    /// The Scheduler takes flagged nodes like any other.
    TrustFlagged,
    /// The Scheduler forgets some of the failures it hears of.
    ForgetFailure,
    /// The Scheduler lets groups that stay in one pool start in several.
    IgnorePools,
    /// The Scheduler places a group without a look at the hops it asks for.
    IgnoreHops,
    /// The network tree is not told of nodes that changed.
    KeepOldTree,
    /// The Scheduler does not tell the indexes of its views that a node has changed.
    MissChange,
    /// The Scheduler does not tell tasks apart by who asks although a node minds.
    ForgetWhoAsks,
    /// The Scheduler does not ask the filters of the service where it looks for nodes.
    OverlookFilters,
    /// The Scheduler does not raise what has waited for long.
    MissAgeing,
    /// The Scheduler leaves a job where it stood.
    KeepOldStanding,
    /// The Scheduler does not look again at a group whose nodes have changed.
    TrustOldProspect,
    /// The Scheduler gives a group up for which the nodes would be enough.
    GiveUpEarly,
    /// JobState does not queue a lost task again.
    LoseReturnedTask,
    /// JobState leaves auxiliary tasks running when everything their group is for is done.
    KeepAuxiliary,
    /// The Scheduler binds guests to the node of any task of their group.
    LodgeElsewhere,
    /// JobState takes work whose tag was replaced.
    TakeOldTag,
    /// JobState leaves work running that was replaced.
    KeepSuperseded,
    /// JobState queues a task again that is being cancelled and was lost meanwhile.
    RequeueCancelled,
    /// JobState leaves guests running when their host has ended.
    KeepGuests,
    /// JobState tries a task again however often it has failed.
    RetryForever,
    /// JobState tries a task again before its time.
    RetryEarly,
    /// JobState leaves the rest of an atomic group running when a member is lost.
    KeepBrokenGroup,
    /// The NodeAgent obeys a start that was meant for an earlier session.
    ObeyOldSession,
    /// The TaskRunner lets preparations go on beyond their deadline.
    PrepareForever,
    /// The Scheduler stops somebody although nothing gets better by it.
    StopForNothing,
    /// The Scheduler stops more than it takes.
    StopTooMany,
    /// The Scheduler stops work that is firm.
    TakeFirm,
    /// The Scheduler takes from groups of which the size rests.
    WakeResting,
    /// The Scheduler stops faster than it may.
    IgnoreStopRate,
    /// The Scheduler gives the room that a stop freed to anybody.
    StealEarmark,
    /// The Scheduler keeps what a stop freed although nobody comes for it.
    KeepEarmark,
    /// The Scheduler takes those that have just started for such as still wait for what is kept for them.
    CountStarted,
    /// ClusterState gives a named unit to somebody although another has it.
    GiveUnitsTwice,
    /// ClusterState does not say that a unit in use is gone.
    KeepRevoked,
    /// The Scheduler keeps nothing for those who hold a claim.
    StealClaim,
    /// The Scheduler keeps what is claimed although the claimant is gone.
    KeepClaim,
    /// The Scheduler lets anybody use what is claimed who says how long it takes.
    DelayClaim,
    /// The Scheduler lets work run on what is claimed that cannot be stopped at any time.
    FillFirm,
    /// The Scheduler leaves work running on what is claimed although the claimant could start.
    FillForGood,
    /// The Scheduler goes on with the percents and weights that were in force before.
    KeepOldWeights,
    /// The TaskRunner reports a stop as done before the agent has confirmed it.
    ConfirmStopEarly,
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) fn active(_: Mutation) -> bool {
    false
}

#[cfg(test)]
pub(crate) use switch::{active, with};

#[cfg(test)]
mod switch {
    use std::cell::Cell;

    use super::Mutation;

    thread_local! {
        static ACTIVE: Cell<Option<Mutation>> = const { Cell::new(None) };
    }

    pub(crate) fn active(mutation: Mutation) -> bool {
        ACTIVE.get() == Some(mutation)
    }

    /// Breaks one rule on this thread for as long as `body` runs.
    pub(crate) fn with<T>(mutation: Mutation, body: impl FnOnce() -> T) -> T {
        struct Restore;
        impl Drop for Restore {
            fn drop(&mut self) {
                ACTIVE.set(None);
            }
        }
        let _restore = Restore;
        ACTIVE.set(Some(mutation));
        body()
    }
}
