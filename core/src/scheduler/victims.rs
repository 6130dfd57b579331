//! Who may have to go, and in which order.
//!
//! Whoever is taken from first is decided lane by lane: a lane is a leaf of the share tree, and the cause
//! gives each lane a value. Of the lane with the largest value the newest start goes first. An atomic group
//! goes whole.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{Slot, TaskId};
use crate::settings::RebalanceSettings;
use crate::spec::Start;
use crate::time::Time;

use super::Scheduler;
use super::elastic::Phase;
use super::leaf::LeafId;
use super::live::LiveView;

/// So many of the newest attempts are looked at in one turn.
const CANDIDATES_MAX: usize = 16_384;

/// Attempts that end together or not at all.
pub(super) type Unit = Vec<Slot>;

/// Attempts that may have to go, newest first, by the leaf they belong to.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    pub(super) lanes: BTreeMap<LeafId, Vec<Slot>>,
    /// When one of those that are still protected is so no more.
    pub(super) next: Option<Time>,
}

/// What a lane is worth to a cause, and what one attempt less takes off.
pub(super) struct LaneValue {
    pub(super) leaf: LeafId,
    /// Lanes of one account are worth less together.
    pub(super) account: u32,
    pub(super) value: i128,
}

/// A walk through the candidates for one beneficiary.
pub(super) struct Walk<'a> {
    candidates: &'a Candidates,
    lanes: Vec<LaneValue>,
    at: Vec<usize>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(candidates: &'a Candidates, lanes: Vec<LaneValue>) -> Walk<'a> {
        let at = vec![0; lanes.len()];
        Walk { candidates, lanes, at }
    }

    /// The next attempt to look at: of the lane that is worth most, the newest.
    pub(super) fn next(&mut self, started: impl Fn(Slot) -> Option<Time>) -> Option<Slot> {
        let mut best: Option<((i128, Time, LeafId), usize)> = None;
        for (index, lane) in self.lanes.iter().enumerate() {
            let slots = &self.candidates.lanes[&lane.leaf];
            while slots.get(self.at[index]).is_some_and(|slot| started(*slot).is_none()) {
                self.at[index] += 1;
            }
            let Some(since) = slots.get(self.at[index]).and_then(|slot| started(*slot)) else { continue };
            let key = (lane.value, since, lane.leaf);
            if best.as_ref().is_none_or(|(least, _)| key > *least) {
                best = Some((key, index));
            }
        }
        let (_, index) = best?;
        self.at[index] += 1;
        Some(self.candidates.lanes[&self.lanes[index].leaf][self.at[index] - 1])
    }

    /// So much less is to be had of the account of a leaf.
    pub(super) fn take_off(&mut self, leaf: LeafId, amount: i128) {
        let account = self.lanes.iter().find(|lane| lane.leaf == leaf).map(|lane| lane.account);
        for lane in self.lanes.iter_mut().filter(|lane| Some(lane.account) == account) {
            lane.value -= amount;
        }
    }
}

impl Scheduler {
    /// Collects who may be stopped at all now.
    pub(super) fn candidates(&self, now: Time) -> Candidates {
        let mut candidates = Candidates::default();
        for live in self.live.newest().take(CANDIDATES_MAX) {
            if live.stopping || live.node.is_none() {
                continue;
            }
            match self.protected_until(live) {
                Some(Time::NEVER) => {}
                Some(until) if until > now => {
                    candidates.next = Some(candidates.next.map_or(until, |next| next.min(until)));
                }
                _ => {
                    let leaf = self.leaf_of(live.attempt.task.job());
                    candidates.lanes.entry(leaf).or_default().push(live.attempt.slot);
                }
            }
        }
        candidates
    }

    /// Until when nobody may stop this for somebody else's sake: it has not had its node for long enough, or
    /// was stopped too often before. `None` if nothing protects it.
    pub(super) fn protected_until(&self, live: &LiveView) -> Option<Time> {
        let RebalanceSettings { minimum_run, stops_per_task, .. } = self.settings.rebalance;
        if u64::from(self.stops_of(live.attempt.task)) >= stops_per_task {
            return Some(Time::NEVER);
        }
        (!minimum_run.is_zero()).then(|| live.since + minimum_run)
    }

    /// How often a task was stopped for others.
    pub(super) fn stops_of(&self, task: TaskId) -> u32 {
        let group = self.group(task.group);
        group.map_or(0, |group| group.roles[usize::from(task.role)].stops(task.index))
    }

    /// The moment from which the lifetime of a task protects it no more; never if it has none.
    pub(super) fn outlives_at(&self, live: &LiveView) -> Time {
        let job = self.jobs.get(live.attempt.task.job().0);
        job.and_then(|job| job.lifetime()).map_or(Time::NEVER, |lifetime| live.since + lifetime)
    }

    /// Who goes with this attempt, beside those that are gone: its whole group if that is atomic, unless the
    /// attempt is above the minimum of its role. Nobody if one of them may not go or is going already.
    pub(super) fn unit_of(&self, slot: Slot, now: Time, gone: &BTreeSet<Slot>) -> Option<Unit> {
        let task = self.live.get(slot)?.attempt.task;
        let group = self.group(task.group)?;
        let role = &group.roles[usize::from(task.role)];
        let members = || self.live.of_group(group.live);
        if let Some(elastic) = &role.elastic {
            let of_role = members().filter(|one| one.attempt.task.role == task.role);
            let gone = of_role.filter(|one| gone.contains(&one.attempt.slot)).count() as u32;
            if group.phase() == Some(Phase::Running) && role.steady() > elastic.min + gone {
                return Some(vec![slot]);
            }
        }
        if group.start == Start::Independent {
            return Some(vec![slot]);
        }
        let may_go = |live: &LiveView| {
            let protected = self.protected_until(live).is_some_and(|until| until > now);
            !live.stopping && live.node.is_some() && !protected
        };
        let others = members().map(|live| live.attempt.slot).filter(|slot| !gone.contains(slot));
        members().all(may_go).then(|| others.collect())
    }
}
