//! Claims in the worlds: how long work waits until it may hold one, how long it says that it takes, and that
//! nobody who is let in holds a claimant up.

use std::collections::BTreeSet;
use std::sync::Arc;

use fastrand::Rng;

use crate::id::{Attempt, NodeId};
use crate::machine::{Broken, promise};
use crate::messages::ClaimView;
use crate::settings::ClaimAfter;
use crate::spec::{OnPreempt, RoleSpec, Start};
use crate::time::Span;

use super::world::World;

/// Most wait a short time only, some for ever.
pub(super) fn after(rng: &mut Rng) -> ClaimAfter {
    let milliseconds = rng.choice([0, 0, 20, 200, 2_000, 1_000_000_000_000]).expect("not empty");
    ClaimAfter(Span::from_millis(milliseconds))
}

/// What a role says about itself is true now and then.
pub(super) fn duration(rng: &mut Rng) -> Option<Span> {
    let spans = [None, None, Some(1), Some(20), Some(300), Some(2_000)];
    rng.choice(spans).expect("not empty").map(Span::from_millis)
}

impl World {
    /// One claim in each pool, held by somebody who waits, on nodes that are enough for it once those have
    /// ended who are waited for; and none of these began after the claim without saying that it ends in time.
    pub(super) fn check_claims(&self) -> Result<(), Broken> {
        let claims = self.scheduler.claims();
        let pools: BTreeSet<&Arc<str>> = claims.iter().map(|claim| &claim.pool).collect();
        let of_all = claims.iter().any(|claim| &*claim.pool == "*");
        promise!(6, pools.len() == claims.len(), "a pool has several claims: {claims:?}");
        promise!(6, !of_all || claims.len() == 1, "a pool has several claims: {claims:?}");
        for claim in &claims {
            let group = claim.group;
            let waits = self.scheduler.explain(group).is_some_and(|explanation| explanation.waiting > 0);
            promise!(9, waits, "{group} holds a claim and does not wait");
            for (id, awaited, need) in self.scheduler.awaited(group) {
                let node = self.cluster.node(id).ok_or_else(|| Broken::new(9, "a claim on no node"))?;
                let mut free = node.offered();
                let on_node = self.cluster.live().filter(|live| live.node == id);
                for live in on_node.filter(|live| !awaited.contains(&live.attempt)) {
                    free -= &self.request(live.attempt);
                }
                promise!(6, need.fits_in(&free), "{id} is claimed by {group}, and others hold it up");
                self.check_awaited(claim, id, &awaited)?;
            }
        }
        let held_up = self.scheduler.held_up_by_fillers();
        promise!(6, held_up.is_empty(), "{held_up:?} wait for nobody but those who go at once");
        Ok(())
    }

    fn request(&self, attempt: Attempt) -> crate::resources::Resources {
        let job = self.jobs.job(attempt.task.job()).expect("a job outlives its attempts");
        let group = &job.spec.groups[attempt.task.group.index()];
        group.roles[usize::from(attempt.task.role)].shape.request.clone()
    }

    /// Whoever was let onto what is claimed in this turn, until the claimant can start, may be stopped at any time.
    /// Those from before were let in by the settings of then.
    pub(super) fn check_fillers(&self, before: &BTreeSet<Attempt>) -> Result<(), Broken> {
        let rebalance = self.scheduler.settings().rebalance;
        for (attempt, since) in self.scheduler.fillers().filter(|(attempt, _)| !before.contains(attempt)) {
            let job = self.jobs.job(attempt.task.job()).expect("a job outlives its attempts");
            let group = &job.spec.groups[attempt.task.group.index()];
            let requeues =
                |role: &RoleSpec| role.on_preempt.unwrap_or(rebalance.on_preempt) == OnPreempt::Requeue;
            let requeues = match group.start {
                Start::Independent => requeues(&group.roles[usize::from(attempt.task.role)]),
                Start::Atomic => group.roles.iter().all(|role| requeues(role) && role.min == role.max),
            };
            let bounded =
                rebalance.rate.is_some() || self.stop_watch.stopped(attempt.task) >= rebalance.stops_per_task;
            let goes = requeues && rebalance.backfill && !bounded && !job.spec.standing.firm;
            promise!(6, goes, "{attempt} fills what is claimed since {since} and does not give way");
            let claims = self.scheduler.claims().into_iter().filter(|claim| claim.made < self.now);
            for claim in claims.filter(|claim| self.stop_watch.was_cleared(claim.group)) {
                let awaited = self.scheduler.awaited(claim.group);
                let is_before = awaited.iter().any(|(_, awaited, _)| awaited.contains(&attempt));
                promise!(6, !is_before, "{attempt} is let in before {}, for which others went", claim.group);
            }
        }
        Ok(())
    }

    /// Whoever came after the claim and is awaited says that it ends before the claimant is to start, or goes
    /// once that can.
    fn check_awaited(&self, claim: &ClaimView, node: NodeId, awaited: &[Attempt]) -> Result<(), Broken> {
        let Some(expected) = claim.expected else { return Ok(()) };
        let fillers = self.scheduler.fillers().map(|(attempt, _)| attempt);
        let stopping = self.cluster.live().filter(|live| live.stop.is_some()).map(|live| live.attempt);
        let fillers: BTreeSet<Attempt> = fillers.chain(stopping).collect();
        let awaited = self.jobs.live().filter(|live| awaited.contains(&live.attempt));
        for live in awaited.filter(|live| !fillers.contains(&live.attempt)) {
            let job = self.jobs.job(live.attempt.task.job()).expect("a job outlives its attempts");
            let group = &job.spec.groups[live.attempt.task.group.index()];
            let role = &group.roles[usize::from(live.attempt.task.role)];
            let longest = role.duration.get().or(role.timeout.get()).or(job.spec.standing.lifetime.get());
            let began = self.scheduler.began(live.attempt).filter(|began| *began > claim.made);
            let in_time = began.is_none_or(|began| longest.is_some_and(|span| began + span <= expected));
            promise!(6, in_time, "{} on {node} ends after the claimant is to start", live.attempt);
        }
        Ok(())
    }
}
