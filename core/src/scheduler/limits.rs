//! Limits: what keeps work waiting although there would be room. A shape that runs into one stands aside
//! until the limit is released: something of its share ends, time passes, or the settings change.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::id::Slot;
use crate::resources::KindId;
use crate::settings::{Ceiling, ShareSettings};
use crate::shares::bucket::{Bucket, Rate};
use crate::shares::caps::within_factor;
use crate::shares::flow::FlowValue;
use crate::time::{Span, Time};

use super::Scheduler;
use super::account::Account;
use super::gangs::gang_size;
use super::leaf::LeafId;
use super::shapes::{Place, ShapeId};
use super::shares::weight_of;

/// What a shape has run into.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Limit {
    /// Its queue would hold more of this kind than its quota.
    Quota(Excess),
    /// Its class would hold more of this kind than its cap.
    Cap(Excess),
    /// Work without a lifetime would go too far beyond the fair share of its queue; it fades or it does
    /// not.
    NonPreemptible { fades: bool },
    /// The queue is above its fair share and has no budget left for it.
    ExcessBudget,
    /// So many tasks a second, over all or in its queue.
    Rate { until: Time },
}

/// By how much something would exceed a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Excess {
    pub(super) kind: KindId,
    pub(super) limit: i64,
    pub(super) over: i64,
    /// What wants to start asks for this much by itself.
    pub(super) asked: i64,
}

/// The books of limits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Limits {
    /// Shapes that stand aside, by queue share.
    aside: BTreeSet<(u32, ShapeId)>,
    /// When those are to be looked at again that only time releases.
    wakes: BTreeSet<(Time, ShapeId)>,
    wake_of: BTreeMap<ShapeId, Time>,
    /// What live attempts have drawn from the budget of their queue, by queue share.
    drawn: BTreeMap<u32, u128>,
    draws: BTreeMap<Slot, u128>,
    /// Who has or wants something has changed, and with it what is fair.
    pub(super) stale: bool,
    scheduling: Option<Bucket>,
    queues: BTreeMap<u32, Bucket>,
}

/// How long something waits at the most until a limit that fades with time is looked at again, as a part
/// of the half-time.
const LOOKS_PER_HALF_TIME: u64 = 8;

impl Limits {
    /// When the next limit may be released by time alone.
    pub(super) fn next_wake(&self) -> Option<Time> {
        self.wakes.first().map(|(time, _)| *time)
    }

    /// Looks at a shape again at this time, or before if that is to be done anyway.
    fn wake(&mut self, shape: ShapeId, at: Time) {
        let known = self.wake_of.get(&shape).copied();
        if known.is_some_and(|known| known <= at) {
            return;
        }
        if let Some(known) = known {
            self.wakes.remove(&(known, shape));
        }
        self.wake_of.insert(shape, at);
        self.wakes.insert((at, shape));
    }

    /// The next shape whose time has come.
    fn pop_due(&mut self, now: Time) -> Option<ShapeId> {
        let (at, shape) = self.wakes.first().copied().filter(|(at, _)| *at <= now)?;
        self.wakes.remove(&(at, shape));
        self.wake_of.remove(&shape);
        Some(shape)
    }

    /// Whether an attempt has drawn from a budget.
    pub(super) fn has_drawn(&self, slot: Slot) -> bool {
        self.draws.contains_key(&slot)
    }

    /// Whether there is any limit at all, so that nobody pays for none.
    pub(super) fn any(settings: &ShareSettings) -> bool {
        // Without classes and queues everything is one queue's, and nothing is beyond its fair share.
        let has_fair_shares = settings.classes.is_some() || !settings.queues.is_empty();
        let is_fair_limit = settings.non_preemptible_factor.is_some() || settings.excess_budget.is_some();
        (has_fair_shares && is_fair_limit)
            || settings.rates.scheduling.is_some()
            || settings.rates.queue_scheduling.is_some()
            || settings.queues.iter().any(|queue| queue.quota.is_some())
            || settings.classes.as_ref().is_some_and(|classes| classes.caps.iter().any(Option::is_some))
    }
}

/// The first kind of which there would be too much.
fn exceeds(ceiling: &Ceiling, account: &Account, request: &crate::resources::Resources) -> Option<Excess> {
    let excess = |(kind, limit): &(KindId, i64)| {
        let asked = request.get(*kind);
        let over = account.usage.get(*kind) + i128::from(asked) - i128::from(*limit);
        let over = i64::try_from(over).unwrap_or(i64::MAX);
        (asked > 0 && over > 0).then_some(Excess { kind: *kind, limit: *limit, over, asked })
    };
    ceiling.amounts.iter().find_map(excess)
}

fn bucket_at(bucket: &mut Option<Bucket>, rate: Rate, now: Time) -> &mut Bucket {
    let bucket = bucket.get_or_insert_with(|| Bucket::new(rate, now));
    if bucket.rate() != rate {
        bucket.set_rate(now, rate);
    }
    bucket
}

impl Scheduler {
    /// What keeps the head of this shape from starting now, room apart.
    pub(super) fn limit_on(&self, leaf: LeafId, shape: ShapeId, now: Time) -> Option<Limit> {
        if !self.limited {
            return None;
        }
        let settings = &self.settings.shares;
        let request = self.shapes.get(shape).total_request();
        let queue = self.shares.queue_of(leaf);
        let quota = queue.queue.and_then(|queue| settings.queues[queue as usize].quota.as_ref());
        // A queue without a class may have a share in several; its quota is for all of them.
        if let Some(excess) = quota.and_then(|quota| match settings.classes.is_some() {
            false => exceeds(quota, &queue.account, &request),
            true => exceeds(quota, &self.shares.whole_queue(queue.queue), &request),
        }) {
            return Some(Limit::Quota(excess));
        }
        let class = usize::from(queue.class);
        let cap = settings.classes.as_ref().and_then(|classes| classes.caps[class].as_ref());
        if let Some(excess) = cap.and_then(|cap| exceeds(cap, &self.shares.classes[class], &request)) {
            return Some(Limit::Cap(excess));
        }
        self.fair_limit_on(leaf, shape, now).or_else(|| self.rate_limit_on(leaf, shape, now))
    }

    /// Limits that are measured against the fair share of a queue.
    fn fair_limit_on(&self, leaf: LeafId, shape: ShapeId, now: Time) -> Option<Limit> {
        let settings = &self.settings.shares;
        if settings.non_preemptible_factor.is_none() && settings.excess_budget.is_none() {
            return None;
        }
        let queue = self.shares.queue_of(leaf);
        let cost = self.price_of(shape).cost;
        let (pot, weights) = self.fair_pot(usize::from(queue.class));
        let weight = weight_of(queue, settings);
        let within = |wanted: u128, factor: u64| {
            within_factor(u64::try_from(wanted).unwrap_or(u64::MAX), pot, weight, weights, factor)
        };
        match (self.shapes.get(shape).lifetime(), settings.non_preemptible_factor, settings.excess_budget) {
            (None, Some(factor), _) => {
                let firm = &queue.account.firm;
                // What was used before counts until it has faded. What takes its place does not come on top.
                let held = FlowValue::of_usage(firm.usage() + cost);
                let flow = firm.value(now, settings.half_time).max(held).whole();
                let fades = within(firm.usage() + cost, factor.millionths());
                (!within(flow, factor.millionths())).then_some(Limit::NonPreemptible { fades })
            }
            (Some(lifetime), _, Some(budget)) if !lifetime.is_zero() => {
                let share = 1_000_000;
                let drawn = self.limits.drawn.get(&self.shares.leaf(leaf).queue).copied().unwrap_or(0);
                let is_above = !within(queue.account.cost + cost, share);
                let too_much = drawn + draw(cost, lifetime) > u128::from(budget);
                (is_above && too_much).then_some(Limit::ExcessBudget)
            }
            _ => None,
        }
    }

    fn rate_limit_on(&self, leaf: LeafId, shape: ShapeId, now: Time) -> Option<Limit> {
        let rates = self.settings.shares.rates;
        let tasks = gang_size(&self.shapes.get(shape).key);
        let own = self.limits.queues.get(&self.shares.leaf(leaf).queue);
        let until = |rate: Option<Rate>, bucket: Option<&Bucket>| {
            let rate = rate?;
            let bucket = bucket.copied().unwrap_or_else(|| Bucket::new(rate, now));
            bucket.refusal(now, tasks).map(|_| bucket.next_time_for(now, tasks))
        };
        let all = until(rates.scheduling, self.limits.scheduling.as_ref());
        let until = all.max(until(rates.queue_scheduling, own))?;
        Some(Limit::Rate { until })
    }

    /// What the queues of a class have fair shares of, and the sum of the weights of those that have or
    /// want something.
    pub(super) fn fair_pot(&self, class: usize) -> (u64, u64) {
        let settings = &self.settings.shares;
        let total = self.cost_of_all();
        let percent = settings.classes.as_ref().map(|classes| classes.percents.classes()[class].percent);
        // A class of 0% has what nobody else wants: there is no telling how much that is.
        let pot = match percent {
            Some(percent) if percent > 0 => total * u128::from(percent) / 100,
            _ => total,
        };
        (u64::try_from(pot).unwrap_or(u64::MAX), self.shares.busy_weights(class))
    }

    /// A shape ran into a limit: it stands aside until that may be released.
    pub(super) fn stand_aside(&mut self, leaf: LeafId, shape: ShapeId, limit: Limit, now: Time) {
        self.shapes.move_to(shape, Place::Limited, &self.jobs);
        self.limits.aside.insert((self.shares.leaf(leaf).queue, shape));
        let look_again = Span((self.settings.shares.half_time.0 / LOOKS_PER_HALF_TIME).max(1));
        match limit {
            Limit::Rate { until } if until != Time::NEVER => self.limits.wake(shape, until),
            // What was used before fades: what is too much now is not for ever.
            Limit::NonPreemptible { fades: true } => self.limits.wake(shape, now + look_again),
            _ => {}
        }
    }

    /// Something of a queue has ended, or may have become possible otherwise: what stood aside for it is
    /// tried if no limit keeps it any more.
    pub(super) fn release_limits(&mut self, queue: u32, now: Time) {
        if self.limits.aside.is_empty() {
            return;
        }
        let settings = &self.settings.shares;
        // Caps are for a class, quotas may be for a queue in several, and fair shares change with
        // whoever has nothing any more.
        let has_nothing = self.shares.queues[queue as usize].account.tasks == 0;
        let others_gain = settings.non_preemptible_factor.is_some() && has_nothing;
        if settings.classes.is_some() || settings.excess_budget.is_some() || others_gain {
            return self.release_all_limits(now);
        }
        let aside = self.limits.aside.range((queue, ShapeId(0))..=(queue, ShapeId(u32::MAX)));
        let shapes: Vec<ShapeId> = aside.map(|(_, shape)| *shape).collect();
        for shape in shapes {
            self.look_at_limit(queue, shape, now);
        }
    }

    fn look_at_limit(&mut self, queue: u32, shape: ShapeId, now: Time) {
        if !self.shapes.is_limited(shape) {
            self.limits.aside.remove(&(queue, shape));
            return;
        }
        let leaf = self.shapes.get(shape).leaf;
        match self.limit_on(leaf, shape, now) {
            Some(limit) => self.stand_aside(leaf, shape, limit, now),
            None => {
                self.limits.aside.remove(&(queue, shape));
                self.shapes.move_to(shape, Place::Open, &self.jobs);
            }
        }
    }

    /// Looks again at what only time releases.
    pub(super) fn release_by_time(&mut self, now: Time) {
        while let Some(shape) = self.limits.pop_due(now) {
            if self.shapes.is_limited(shape) {
                let queue = self.shares.leaf(self.shapes.get(shape).leaf).queue;
                self.look_at_limit(queue, shape, now);
            }
        }
    }

    /// Whether a shape stands aside for something that fades, and is looked at again before long.
    pub(super) fn looks_soon(&self, shape: ShapeId) -> bool {
        let settings = &self.settings.shares;
        let soon = self.now + Span((settings.half_time.0 / LOOKS_PER_HALF_TIME).max(1));
        let fades = settings.non_preemptible_factor.is_some() && self.shapes.get(shape).lifetime().is_none();
        fades && self.limits.wake_of.get(&shape).is_some_and(|at| *at <= soon)
    }

    /// Everything that stands aside is looked at again: settings or the capacity have changed.
    pub(super) fn release_all_limits(&mut self, now: Time) {
        let aside: Vec<(u32, ShapeId)> = self.limits.aside.iter().copied().collect();
        for (queue, shape) in aside {
            self.look_at_limit(queue, shape, now);
        }
    }

    /// Tasks start: they use tokens, and budget where their queue is above its share.
    pub(super) fn use_limits(&mut self, now: Time, leaf: LeafId, tasks: u64) {
        let rates = self.settings.shares.rates;
        let queue = self.shares.leaf(leaf).queue;
        if let Some(rate) = rates.scheduling {
            bucket_at(&mut self.limits.scheduling, rate, now).charge(now, tasks);
        }
        if let Some(rate) = rates.queue_scheduling {
            let mut bucket = self.limits.queues.remove(&queue);
            bucket_at(&mut bucket, rate, now).charge(now, tasks);
            self.limits.queues.extend(bucket.map(|bucket| (queue, bucket)));
        }
    }

    /// An attempt of a queue above its share draws from its budget until it ends.
    pub(super) fn draw(&mut self, leaf: LeafId, slot: Slot, cost: u128, lifetime: Option<Span>) {
        let Some(lifetime) = lifetime.filter(|lifetime| !lifetime.is_zero()) else { return };
        if self.settings.shares.excess_budget.is_none() {
            return;
        }
        let queue = self.shares.queue_of(leaf);
        let (pot, weights) = self.fair_pot(usize::from(queue.class));
        let weight = weight_of(queue, &self.settings.shares);
        let held = u64::try_from(queue.account.cost).unwrap_or(u64::MAX);
        let drawn = draw(cost, lifetime);
        if drawn > 0 && !within_factor(held, pot, weight, weights, 1_000_000) {
            *self.limits.drawn.entry(self.shares.leaf(leaf).queue).or_default() += drawn;
            self.limits.draws.insert(slot, drawn);
        }
    }

    /// What was drawn and which tokens were used counts on, also where queues have other numbers by now.
    pub(super) fn inherit_limits(&mut self, now: Time, before: Limits, renamed: &BTreeMap<u32, u32>) {
        self.limits.scheduling = before.scheduling;
        let queues = before.queues.into_iter();
        self.limits.queues =
            queues.filter_map(|(queue, bucket)| Some((*renamed.get(&queue)?, bucket))).collect();
        self.rate_anew(now);
        if self.settings.shares.excess_budget.is_none() {
            return;
        }
        for (slot, drawn) in before.draws {
            let Some(live) = self.live.get(slot) else { continue };
            let queue = self.shares.leaf(self.leaf_of(live.attempt.task.job())).queue;
            *self.limits.drawn.entry(queue).or_default() += drawn;
            self.limits.draws.insert(slot, drawn);
        }
    }

    /// Limits are others, but everybody stands where he stood: what stands aside is looked at again.
    pub(super) fn limit_anew(&mut self, now: Time) {
        self.limited = Limits::any(&self.settings.shares);
        self.rate_anew(now);
        self.release_all_limits(now);
    }

    fn rate_anew(&mut self, now: Time) {
        let rates = self.settings.shares.rates;
        if let (Some(rate), Some(bucket)) = (rates.scheduling, &mut self.limits.scheduling) {
            bucket.set_rate(now, rate);
        }
        if let Some(rate) = rates.queue_scheduling {
            self.limits.queues.values_mut().for_each(|bucket| bucket.set_rate(now, rate));
        }
    }

    /// What an attempt has drawn is given back.
    pub(super) fn give_back_draw(&mut self, leaf: LeafId, slot: Slot) {
        if let Some(drawn) = self.limits.draws.remove(&slot) {
            let queue = self.shares.leaf(leaf).queue;
            let left = self.limits.drawn.get_mut(&queue).expect("what is given back was drawn");
            *left -= drawn;
            if *left == 0 {
                self.limits.drawn.remove(&queue);
            }
        }
    }
}

/// What a task takes from a budget of cost times seconds.
fn draw(cost: u128, lifetime: Span) -> u128 {
    cost * u128::from(lifetime.0) / 1_000_000
}
