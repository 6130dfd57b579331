//! Who may have to go, and in which order.
//!
//! Whoever is taken from first is decided lane by lane. A lane is a tier and a leaf of the share tree, and the
//! cause gives each lane a value. The order is:
//!
//! 1. members of elastic groups above their minimum, before everybody else;
//! 2. work of classes of 0 percent, which has only what nobody else could use;
//! 3. borrowed work, that is of shares above what is theirs; by how much, where the cause is about shares;
//! 4. lower bands before higher ones;
//! 5. the newest start first.
//!
//! An atomic group goes whole. When a node loses capacity its tasks go in the same order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::id::{GroupId, JobId, Slot, TaskId};
use crate::machine::{Broken, promise};
use crate::mutation::{self, Mutation};
use crate::settings::RebalanceSettings;
use crate::spec::Start;
use crate::time::Time;

use super::Scheduler;
use super::elastic::Phase;
use super::leaf::LeafId;
use super::live::LiveView;

/// So many attempts are looked at in one turn: of each share the newest, as many of each as of the others.
const CANDIDATES_MAX: usize = 16_384;

/// Of each share at least so many, however many shares there are.
const CANDIDATES_OF_SHARE: usize = 1_024;

/// Attempts that end together or not at all.
pub(super) type Unit = Vec<Slot>;

/// Who goes before everybody else, whatever the share and the band.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Tier {
    /// A member of an elastic group above its minimum: the group goes on without it.
    Surplus,
    Ordinary,
}

/// Where an attempt stands among those who may go.
pub(super) type Lane = (Tier, LeafId);

/// Attempts that may have to go, newest first, by the lane they belong to.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    pub(super) lanes: BTreeMap<Lane, Vec<Slot>>,
    /// When one of those that are still protected is so no more.
    pub(super) next: Option<Time>,
}

/// How a leaf stands for a cause.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneValue {
    /// Lanes of one account are worth less together.
    pub(super) account: u32,
    /// What the account holds, and what of that is its own: beyond that it has borrowed.
    pub(super) held: i128,
    pub(super) own: i128,
    /// Of a class of 0 percent.
    pub(super) is_last: bool,
    /// Whoever holds most goes first, and nothing is taken from those who have not borrowed.
    pub(super) by_share: bool,
    pub(super) level: u16,
}

impl LaneValue {
    pub(super) fn has_borrowed(&self) -> bool {
        self.held > self.own
    }

    pub(super) fn lacks_some(&self) -> bool {
        self.held < self.own
    }
}

/// A walk through the candidates for one beneficiary.
pub(super) struct Walk<'a> {
    candidates: &'a Candidates,
    lanes: Vec<(Lane, LaneValue)>,
    at: Vec<usize>,
}

/// The larger, the sooner.
type Place = (Reverse<Tier>, bool, bool, i128, u16, Time, LeafId);

impl<'a> Walk<'a> {
    pub(super) fn new(candidates: &'a Candidates, lanes: Vec<(Lane, LaneValue)>) -> Walk<'a> {
        let at = vec![0; lanes.len()];
        Walk { candidates, lanes, at }
    }

    /// The next attempt to look at: of the lane that comes first, the newest.
    pub(super) fn next(&mut self, started: impl Fn(Slot) -> Option<Time>) -> Option<Slot> {
        let mut best: Option<(Place, usize)> = None;
        for (index, ((tier, leaf), value)) in self.lanes.iter().enumerate() {
            if value.by_share && !value.has_borrowed() {
                continue;
            }
            let slots = &self.candidates.lanes[&(*tier, *leaf)];
            while slots.get(self.at[index]).is_some_and(|slot| started(*slot).is_none()) {
                self.at[index] += 1;
            }
            let Some(since) = slots.get(self.at[index]).and_then(|slot| started(*slot)) else { continue };
            let held = if value.by_share { value.held } else { 0 };
            let place =
                (Reverse(*tier), value.is_last, value.has_borrowed(), held, value.level, since, *leaf);
            if best.as_ref().is_none_or(|(first, _)| place > *first) {
                best = Some((place, index));
            }
        }
        let (_, index) = best?;
        self.at[index] += 1;
        Some(self.candidates.lanes[&self.lanes[index].0][self.at[index] - 1])
    }

    /// How many attempts were looked at.
    pub(super) fn steps(&self) -> usize {
        self.at.iter().sum()
    }

    /// So much less is held by the account of a leaf.
    pub(super) fn take_off(&mut self, leaf: LeafId, amount: i128) {
        let account = self.lanes.iter().find(|((_, of), _)| *of == leaf).map(|(_, value)| value.account);
        for (_, value) in self.lanes.iter_mut().filter(|(_, value)| Some(value.account) == account) {
            value.held -= amount;
        }
    }
}

/// How many members above the minimum of their role have not been come across yet.
#[derive(Clone, Default)]
pub(super) struct Tiers(BTreeMap<(GroupId, u16), u32>);

impl Tiers {
    /// The tier of an attempt; of each role the newest have to be shown first.
    pub(super) fn of(&mut self, scheduler: &Scheduler, task: TaskId) -> Tier {
        let Some(group) = scheduler.group(task.group).filter(|group| group.phase() == Some(Phase::Running))
        else {
            return Tier::Ordinary;
        };
        let role = &group.roles[usize::from(task.role)];
        let Some(elastic) = &role.elastic else { return Tier::Ordinary };
        let above = || role.steady().saturating_sub(elastic.min);
        let left = self.0.entry((task.group, task.role)).or_insert_with(above);
        match left.checked_sub(1) {
            Some(fewer) => {
                *left = fewer;
                Tier::Surplus
            }
            None => Tier::Ordinary,
        }
    }
}

impl Scheduler {
    /// Collects who may be stopped at all now: of each share the newest of those that have run for long enough.
    pub(super) fn candidates(&self, now: Time) -> Candidates {
        let mut candidates = Candidates::default();
        let mut tiers = Tiers::default();
        let most = (CANDIDATES_MAX / self.live.starts().count().max(1)).max(CANDIDATES_OF_SHARE);
        let minimum_run = self.settings.rebalance.minimum_run;
        let first = TaskId { group: GroupId::new(JobId(0), 0), role: 0, index: 0 };
        for (leaf, starts) in self.live.starts() {
            let young = now.0.checked_sub(minimum_run.0).map_or(Time::ZERO, |settled| Time(settled + 1));
            let young = (young, first, Slot(0));
            let of =
                |start: &(Time, TaskId, Slot)| self.live.get(start.2).filter(|live| live.node().is_some());
            for live in starts.range(..young).rev().take(most).filter_map(of) {
                if live.stopping || self.guarded_until(live).is_some_and(|until| until > now) {
                    continue;
                }
                let lane = (tiers.of(self, live.attempt.task), leaf);
                candidates.lanes.entry(lane).or_default().push(live.attempt.slot);
            }
            let protected = starts.range(young..).take(most).filter_map(of).filter(|live| !live.stopping);
            let mut until = protected.filter_map(|live| self.guarded_until(live));
            let next = until.find(|until| *until != Time::NEVER);
            candidates.next = candidates.next.into_iter().chain(next).min();
        }
        candidates
    }

    /// Everything that runs is kept by its share and start anew, if anything may ever be taken away.
    pub(super) fn order_by_start(&mut self) {
        self.live.order_by_start(self.settings.rebalance.any());
        self.keep_starts();
    }

    /// So is what has just begun.
    pub(super) fn keep_starts(&mut self) {
        for slot in self.live.take_fresh() {
            let Some(live) = self.live.get(slot) else { continue };
            self.live.keep_start(slot, self.leaf_of(live.attempt.task.job()));
        }
    }

    /// What runs of a job is of another share from now on.
    pub(super) fn move_starts(&mut self, id: JobId, from: LeafId, to: LeafId) {
        if from == to || !self.live.is_ordered_by_start() {
            return;
        }
        let groups = self.jobs.get(id.0).into_iter().flat_map(|job| job.groups.iter().flatten());
        let slots: Vec<Slot> =
            groups.flat_map(|group| self.live.of_group(group.live)).map(|live| live.attempt.slot).collect();
        slots.into_iter().for_each(|slot| self.live.move_start(slot, from, to));
    }

    /// Everything that runs is kept by the share it belongs to, and nothing else is.
    pub(super) fn check_starts(&self) -> Result<(), Broken> {
        let mut kept = 0;
        for (leaf, starts) in self.live.starts() {
            kept += starts.len();
            for (since, task, slot) in starts {
                let live = self.live.get(*slot);
                let is_true = live.is_some_and(|live| live.attempt.task == *task && live.since == *since);
                promise!(8, is_true, "{task} is kept by its start and does not run");
                promise!(8, self.leaf_of(task.job()) == leaf, "{task} is kept under a share of others");
            }
        }
        let all = if self.live.is_ordered_by_start() { self.live.iter().count() } else { 0 };
        promise!(8, kept == all, "of {all} that run {kept} are kept by their start");
        Ok(())
    }

    /// Whether nobody may ever stop this for somebody else's sake.
    pub(super) fn is_firm(&self, task: TaskId) -> bool {
        let job = self.jobs.get(task.job().0);
        job.is_some_and(|job| job.is_firm()) && !mutation::active(Mutation::TakeFirm)
    }

    /// Until when nobody may stop this for somebody else's sake: it is firm, it has not had its node for
    /// long enough, the size of its group rests, or it was stopped too often before. `None` if nothing
    /// protects it.
    pub(super) fn protected_until(&self, live: &LiveView) -> Option<Time> {
        self.guarded_until(live).max(self.rests_until(live.attempt.slot))
    }

    /// Until when the size of its group rests.
    pub(super) fn rests_until(&self, slot: Slot) -> Option<Time> {
        self.group(self.task_in(slot).group)?.elastic.as_ref()?.thaws
    }

    /// The same for everything else that protects it.
    pub(super) fn guarded_until(&self, live: &LiveView) -> Option<Time> {
        let RebalanceSettings { minimum_run, stops_per_task, .. } = self.settings.rebalance;
        let stops = u64::from(self.stops_of(live.attempt.task));
        if stops >= stops_per_task || self.is_firm(live.attempt.task) {
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

    /// Who goes with this attempt, beside those that are gone, and whether that is a whole group: it is if the
    /// group is atomic, unless the attempt is above the minimum of its role. Nobody if one of them may not go
    /// or is going already.
    pub(super) fn unit_of(&self, slot: Slot, now: Time, gone: &BTreeSet<Slot>) -> Option<(Unit, bool)> {
        let task = self.live.get(slot)?.attempt.task;
        let group = self.group(task.group)?;
        let role = &group.roles[usize::from(task.role)];
        let members = || self.live.of_group(group.live);
        if let Some(elastic) = &role.elastic {
            let of_role = members().filter(|one| one.attempt.task.role == task.role);
            let gone = of_role.filter(|one| gone.contains(&one.attempt.slot)).count() as u32;
            if group.phase() == Some(Phase::Running) && role.steady() > elastic.min + gone {
                return Some((vec![slot], false));
            }
        }
        if group.start == Start::Independent {
            return Some((vec![slot], false));
        }
        let may_go = |live: &LiveView| {
            // Whether the size of the group rests was asked of the first of them.
            let protected = self.guarded_until(live).is_some_and(|until| until > now);
            !live.stopping && live.node().is_some() && !protected
        };
        let others = members().map(|live| live.attempt.slot).filter(|slot| !gone.contains(slot));
        members().all(may_go).then(|| (others.collect(), true))
    }
}
