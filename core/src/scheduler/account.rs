//! What a class or a queue holds, and what it has held lately.

use serde::{Deserialize, Serialize};

use crate::resources::{KindId, Kinds, Resources};
use crate::settings::{COST_SCALE, ShareSettings};
use crate::shares::flow::Flow;
use crate::time::Time;

use super::sums::Sums;

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
}

/// What one task of a shape counts for, however many of them start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
        crate::quantity::Unit::Thousandth => 1_000,
        crate::quantity::Unit::Whole => 1 << 30,
    };
    u128::try_from(amount).unwrap_or(0) * u128::from(weight) / base_units
}

/// One whole unit of a kind of weight 1.
pub(super) const ONE_COST: u128 = COST_SCALE as u128;

impl Account {
    /// So many tasks start (or, below zero, end).
    pub(super) fn change(
        &mut self,
        now: Time,
        request: &Resources,
        price: Price,
        tasks: i64,
        settings: &ShareSettings,
    ) {
        let times = tasks.unsigned_abs();
        self.usage.add(request, tasks);
        if tasks >= 0 {
            self.tasks += times;
            self.cost += price.cost * u128::from(times);
            self.slots += price.slots * times;
        } else {
            self.tasks -= times;
            self.cost -= price.cost * u128::from(times);
            self.slots -= price.slots * times;
        }
        self.flow.set_usage(now, settings.half_time, self.cost);
    }
}
