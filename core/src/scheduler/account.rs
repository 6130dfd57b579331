//! What a class or a queue holds, and what it has held lately.

use serde::{Deserialize, Serialize};

use crate::quantity::Unit;
use crate::resources::{KindId, Kinds, Resources};
use crate::settings::ShareSettings;
use crate::shares::flow::Flow;
use crate::shares::ratio::Weight;
use crate::shares::run_time::{RunTime, VirtualTime};
use crate::time::{Span, Time};

use super::sums::Sums;

/// Decisions by run time compare what the values would be after one more task ran for this long.
pub(super) const QUANTUM: Span = Span::from_whole_seconds(1);

/// The books of one share. Everything in it changes with starts and ends only; what fades or grows with
/// time is computed when somebody asks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Account {
    /// Tasks that run.
    pub(super) tasks: u64,
    /// What they hold.
    pub(super) usage: Sums,
    /// What they cost, in parts of the weighted sum.
    pub(super) cost: u128,
    /// Slots they count for.
    pub(super) slots: u64,
    pub(super) flow: Flow,
    /// The flow of what has no lifetime.
    pub(super) firm: Flow,
    pub(super) clock: RunClock,
}

/// Weighted run time, and up to when it was charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct RunClock {
    run_time: RunTime,
    since: Time,
}

impl RunClock {
    pub(super) fn new(weight: Weight) -> RunClock {
        RunClock { run_time: RunTime::new(weight), since: Time::ZERO }
    }

    /// What cost so much since the last time is charged.
    pub(super) fn charge(&mut self, now: Time, cost: u128) {
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        self.run_time.charge(cost, 1, now.since(self.since));
        self.since = now.max(self.since);
    }

    /// What counts now, if a task of this cost came on top and what runs went on for so long with it. Who has
    /// much running takes less, before it is too much: by the value alone everything that is free at one moment
    /// would go to one, and later to the other.
    pub(super) fn ahead(mut self, now: Time, running: u128, task: u128, ahead: Span) -> VirtualTime {
        self.charge(now, running);
        let goes_on = running.saturating_mul(u128::from(ahead.0));
        self.run_time.after_steps(goes_on.saturating_add(task.saturating_mul(u128::from(QUANTUM.0))))
    }

    pub(super) fn weight(&self) -> Weight {
        self.run_time.weight()
    }

    pub(super) fn value(mut self, now: Time, running: u128) -> VirtualTime {
        self.charge(now, running);
        self.run_time.value()
    }

    /// What counts now, and what so much for so long adds to it.
    pub(super) fn so_far_and_next(
        mut self,
        now: Time,
        running: u128,
        cost: u128,
        span: Span,
    ) -> (u128, u128) {
        self.charge(now, running);
        let value = self.run_time.value().parts();
        let after = self.run_time.after_step(u64::try_from(cost).unwrap_or(u64::MAX), span).parts();
        (value, after.saturating_sub(value))
    }

    /// Charges go by another weight from now on.
    pub(super) fn set_weight(&mut self, now: Time, running: u128, weight: Weight) {
        self.charge(now, running);
        self.run_time.set_weight(weight);
    }

    /// A newcomer has no claim on the past.
    pub(super) fn place(&mut self, now: Time, floor: VirtualTime) {
        self.run_time.place(floor, VirtualTime::default());
        self.since = now.max(self.since);
    }
}

/// What one task of a shape counts for, however many of them start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Price {
    pub(super) cost: u128,
    pub(super) slots: u64,
}

impl Price {
    pub(super) fn of(request: &Resources, settings: &ShareSettings, kinds: &Kinds) -> Price {
        let parts = request.iter().map(|(kind, amount)| cost(kind, i128::from(amount), settings, kinds));
        Price { cost: parts.sum(), slots: slots_of(request.get(SLOT)).max(1) }
    }
}

/// The kind that share units are counted in by default.
pub(super) const SLOT: KindId = KindId(0);

fn slots_of(amount: i64) -> u64 {
    const BASE_UNITS: u64 = 1_000;
    u64::try_from(amount).unwrap_or(0).div_ceil(BASE_UNITS)
}

/// What an amount of a kind costs. Memory is weighed by the gibibyte, everything else by the whole.
pub(super) fn cost(kind: KindId, amount: i128, settings: &ShareSettings, kinds: &Kinds) -> u128 {
    let weight = settings.resource_weights.get(usize::from(kind.0)).copied().unwrap_or(0);
    let base_units: u128 = match kinds.unit(kind) {
        Unit::Thousandth => 1_000,
        Unit::Whole => 1 << 30,
    };
    u128::try_from(amount).unwrap_or(0) * u128::from(weight) / base_units
}

/// Tasks that start, or, if their number is below zero, end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'a> {
    pub(super) now: Time,
    pub(super) request: &'a Resources,
    pub(super) price: Price,
    pub(super) tasks: i64,
    /// They have no lifetime.
    pub(super) firm: bool,
}

impl Account {
    pub(super) fn change(&mut self, change: Change<'_>, half_time: Span) {
        let Change { now, request, price, tasks, firm } = change;
        let times = tasks.unsigned_abs();
        let cost = price.cost * u128::from(times);
        self.clock.charge(now, self.cost);
        self.usage.add(request, tasks);
        let firm_cost = self.firm.usage();
        let firm_cost = if tasks >= 0 {
            self.tasks += times;
            self.cost += cost;
            self.slots += price.slots * times;
            firm_cost + cost
        } else {
            self.tasks -= times;
            self.cost -= cost;
            self.slots -= price.slots * times;
            firm_cost.saturating_sub(cost)
        };
        self.flow.set_usage(now, half_time, self.cost);
        if firm {
            self.firm.set_usage(now, half_time, firm_cost);
        }
    }
}
