//! Whoever is stopped for somebody else: what must hold of every stop, with plain loops and lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::{GroupId, NodeId, TaskId};
use crate::machine::{Broken, promise};
use crate::messages::{ClusterMessage, Outbox, SchedulerMessage};
use crate::outcome::{Outcome, StopCause};
use crate::scheduler::{EarmarkEnd, Evidence, Scheduler, StopRecord};
use crate::shares::bucket::Rate;
use crate::time::{Span, Time};

use super::oracle::{Room, can_be_tried, fits, gang_fits};
use super::world::World;

/// Everything that was stopped for others so far.
#[derive(Clone, Debug, Default)]
pub(super) struct StopWatch {
    started: BTreeMap<TaskId, Time>,
    /// How often each task was stopped for others.
    times: BTreeMap<TaskId, u64>,
    /// When tasks were stopped at the rate that is in force, and how many.
    stops: Vec<(Time, u64)>,
    rate: Option<Rate>,
    /// Who went for whom since anything else happened than stops and what follows from them.
    for_whom: BTreeSet<(GroupId, GroupId)>,
    /// Which group gave to which so that they become more even, and when last.
    evened: BTreeMap<(GroupId, GroupId), Time>,
    /// Groups for which work was stopped that ran on what they had claimed, until they start.
    cleared: BTreeSet<GroupId>,
}

/// What gave does not get it back before that.
const GIVEN_FOR: Span = Span::from_millis(1_000);

type Earmarks = [(u64, GroupId, StopCause, Option<Time>)];

impl StopWatch {
    /// Forgets who went for whom when something happens that no stop has caused.
    pub(super) fn hear(&mut self, message: &SchedulerMessage) {
        use SchedulerMessage::{
            Audit, Committed, Explain, Gate, GateClock, Member, Mend, Pending, Released, Return,
        };
        let follows = match message {
            Released(ended) => ended
                .iter()
                .all(|end| matches!(end.outcome, Outcome::Preempted(cause) if cause.beneficiary().is_some())),
            Return(_) | Mend(_) | Member { .. } | Pending { .. } | Committed { .. } => true,
            Gate { .. } | GateClock { .. } | Audit(_) | Explain { .. } => true,
            _ => false,
        };
        if !follows {
            self.for_whom.clear();
        }
    }

    pub(super) fn watch(
        &mut self,
        now: Time,
        (before, resting): (&Earmarks, &BTreeMap<GroupId, Time>),
        scheduler: &Scheduler,
        out: &Outbox,
    ) -> Result<(), Broken> {
        let placed = placed(out);
        self.started.extend(placed.iter().map(|task| (*task, now)));
        self.cleared.retain(|group| !placed.iter().any(|task| task.group == *group));
        check_ended(now, before, scheduler, &placed)?;
        let rebalance = scheduler.settings().rebalance;
        if self.rate != rebalance.rate {
            (self.rate, self.stops) = (rebalance.rate, Vec::new());
        }
        for record in scheduler.stop_records() {
            let beneficiary = record.cause.beneficiary();
            promise!(8, beneficiary.is_some(), "{:?}: somebody goes for nobody", record.cause);
            let beneficiary = beneficiary.expect("just seen");
            if let StopCause::Backfill(_) = record.cause {
                self.cleared.insert(beneficiary);
            }
            let mut victims = 0;
            for task in record.units.iter().flatten() {
                victims += 1;
                let times = self.times.entry(*task).or_default();
                *times += 1;
                promise!(8, *times <= rebalance.stops_per_task, "{task} is stopped for others too often");
                let since = self.started.get(task).copied().unwrap_or(Time::ZERO);
                let may_go = since + rebalance.minimum_run <= now;
                promise!(8, may_go, "{task} is stopped at {now} and has run only since {since}");
                promise!(8, task.group != beneficiary, "{task} goes for its own group");
                check_rest(now, resting, *task, beneficiary, scheduler)?;
                if let StopCause::Evenness(_) = record.cause {
                    let gave = self.evened.insert((task.group, beneficiary), now);
                    let turned = self.evened.get(&(beneficiary, task.group)).copied();
                    let before = turned.max(gave.filter(|at| *at < now));
                    let is_late = before.is_none_or(|at| at + GIVEN_FOR <= now);
                    promise!(8, is_late, "{task} goes for {beneficiary} again after {before:?}");
                    continue;
                }
                if let StopCause::Backfill(_) = record.cause {
                    // It had what was kept for somebody else: it was not taken from it.
                    continue;
                }
                let turned = self.for_whom.contains(&(beneficiary, task.group));
                promise!(8, !turned, "{task} goes for {beneficiary}, which went for it");
                self.for_whom.insert((task.group, beneficiary));
            }
            self.stops.push((now, victims));
            self.check_rate(now)?;
        }
        Ok(())
    }

    /// How often a task was stopped for others.
    pub(super) fn stopped(&self, task: TaskId) -> u64 {
        self.times.get(&task).copied().unwrap_or(0)
    }

    /// Whether work was stopped that ran on what a group had claimed, and it has not started since.
    pub(super) fn was_cleared(&self, group: GroupId) -> bool {
        self.cleared.contains(&group)
    }

    /// In no span of time were more stopped than lay ready at its beginning and came since.
    fn check_rate(&self, now: Time) -> Result<(), Broken> {
        let Some(rate) = self.rate else { return Ok(()) };
        let mut sum = 0;
        for (at, tasks) in self.stops.iter().rev() {
            sum += u128::from(*tasks) * 1_000_000_000_000;
            let came = u128::from(rate.millionths_per_second) * u128::from(now.since(*at).0);
            let most = u128::from(rate.burst) * 1_000_000_000_000 + came;
            promise!(8, sum <= most, "more are stopped from {at} to {now} than the rate allows");
        }
        Ok(())
    }
}

/// The size of a group that rests is changed for the sake of a higher band only.
fn check_rest(
    now: Time,
    resting: &BTreeMap<GroupId, Time>,
    task: TaskId,
    beneficiary: GroupId,
    scheduler: &Scheduler,
) -> Result<(), Broken> {
    let Some(until) = resting.get(&task.group).filter(|until| **until > now) else { return Ok(()) };
    let level = |job| scheduler.level_of_job(job);
    let strictly = level(task.job()) > level(beneficiary.job());
    promise!(8, strictly, "{task} goes for {beneficiary} although the size of its group rests until {until}");
    Ok(())
}

/// Tasks that are placed with this, beside those that run already.
fn placed(out: &Outbox) -> BTreeSet<TaskId> {
    let mut placed = BTreeSet::new();
    for message in &out.cluster {
        let ClusterMessage::Commit(plan) = message else { continue };
        let mut placements = plan.placements.iter();
        for part in &plan.parts {
            let own = placements.by_ref().take(part.count as usize);
            placed.extend(own.filter(|_| !part.adopted).map(|placement| placement.attempt.task));
        }
    }
    placed
}

/// What was kept for somebody is given up for a true reason only, and never kept beyond its time.
fn check_ended(
    now: Time,
    before: &Earmarks,
    scheduler: &Scheduler,
    placed: &BTreeSet<TaskId>,
) -> Result<(), Broken> {
    for (number, end) in scheduler.earmarks_ended() {
        let Some((_, group, _, until)) = before.iter().find(|(known, ..)| known == number) else { continue };
        let starts = placed.iter().any(|task| task.group == *group);
        let is_true = match end {
            EarmarkEnd::Started => starts,
            EarmarkEnd::Expired => until.is_some_and(|until| until <= now),
            _ => true,
        };
        promise!(8, is_true, "what was kept for {group} is given up, and it is not true: {end:?}");
    }
    let overdue = scheduler.earmarks().into_iter().find(|(.., until)| until.is_some_and(|until| until < now));
    promise!(8, overdue.is_none(), "{overdue:?} is kept beyond its time");
    Ok(())
}

impl World {
    /// What is kept is kept for somebody who still waits, and not beyond its time.
    pub(super) fn check_what_is_kept(&self) -> Result<(), Broken> {
        let mut kept: BTreeMap<GroupId, u64> = BTreeMap::new();
        for (number, group, _, until) in self.scheduler.earmarks() {
            let is_over = until.is_some_and(|until| until <= self.now);
            promise!(8, !is_over, "earmark {number} of {group} is kept beyond its time");
            *kept.entry(group).or_default() += 1;
        }
        for (group, earmarks) in kept {
            let job = self.jobs.job(group.job()).ok();
            let waiting = job.map_or(0, |job| job.groups[group.index()].waiting());
            promise!(8, earmarks <= waiting, "{waiting} of {group} wait and {earmarks} earmarks are kept");
        }
        Ok(())
    }

    /// Without all who go there is room for the beneficiary, and without any one fewer there is none.
    pub(super) fn check_evidence(&self) -> Result<(), Broken> {
        for record in self.scheduler.stop_records() {
            for task in record.units.iter().flatten() {
                let firm = self.jobs.job(task.job()).is_ok_and(|job| job.spec.standing.firm);
                promise!(8, !firm, "{:?}: {task} is firm and goes all the same", record.cause);
            }
            let (Some(evidence), Some(group)) = (&record.evidence, record.cause.beneficiary()) else {
                continue;
            };
            if !self.can_see(record, evidence) {
                continue;
            }
            let fits = |gone: &dyn Fn(usize) -> bool| self.would_fit(record, evidence, group, gone);
            promise!(8, fits(&|_| true), "{:?}: there is no room although everybody goes", record.cause);
            for spared in 0..record.units.len() {
                let whom = &record.units[spared];
                let is_needed = !fits(&|unit| unit != spared);
                promise!(8, is_needed, "{:?}: {whom:?} go for nothing", record.cause);
            }
        }
        Ok(())
    }

    fn can_see(&self, record: &StopRecord, evidence: &Evidence) -> bool {
        can_be_tried(&sizes(record), evidence.rooms.len())
    }

    /// Whether the beneficiary would fit if only these units were gone.
    fn would_fit(
        &self,
        record: &StopRecord,
        evidence: &Evidence,
        group: GroupId,
        gone: &dyn Fn(usize) -> bool,
    ) -> bool {
        let mut supposed = evidence.rooms.clone();
        for (_, unit) in record.units.iter().enumerate().filter(|(index, _)| !gone(*index)) {
            for task in unit {
                let (node, shape) = &evidence.held[task];
                let room = supposed.get_mut(node).expect("it is on a node");
                room.free -= &shape.request;
                room.company.join(shape);
            }
        }
        let pool = evidence.wanted.values().find_map(|shape| shape.rules.bound_pool.clone());
        let is_bound = |room: &Room| pool.as_deref() == Some(&*room.facts.pool);
        let rooms: BTreeMap<NodeId, Room> = supposed
            .into_iter()
            .filter(|(_, room)| room.open && !room.free.has_negative())
            .map(|(id, room)| {
                let (facts, cordoned) = (Arc::clone(&room.facts), room.cordoned);
                (id, Room { facts, cordoned, free: room.free, company: room.company, some_day: false })
            })
            .filter(|(_, room)| !room.cordoned || is_bound(room))
            .collect();
        if !record.atomic {
            return evidence.wanted.values().all(|shape| rooms.values().any(|room| fits(shape, room)));
        }
        let job = self.jobs.job(group.job()).expect("a waiting job is kept");
        let mut spec = job.spec.groups[group.index()].clone();
        for (role, shape) in &evidence.wanted {
            spec.roles[usize::from(*role)].shape = Arc::clone(shape);
        }
        if !evidence.decides_pool {
            return gang_fits(&spec, &sizes(record), rooms);
        }
        let pools: BTreeSet<String> = rooms.values().map(|room| room.facts.pool.clone()).collect();
        pools.into_iter().any(|pool| {
            let there = rooms.iter().filter(|(_, room)| room.facts.pool == pool);
            gang_fits(&spec, &sizes(record), there.map(|(id, room)| (*id, room.clone())).collect())
        })
    }
}

/// How many tasks of which roles start together.
fn sizes(record: &StopRecord) -> Vec<(u16, u32)> {
    let mut sizes: BTreeMap<u16, u32> = BTreeMap::new();
    record.places.iter().for_each(|(role, _)| *sizes.entry(*role).or_default() += 1);
    sizes.into_iter().collect()
}
