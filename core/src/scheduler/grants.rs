//! What each class may start of the capacity at hand: its entitlement, then loans.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::resources::KindId;
use crate::settings::ShareUnit;
use crate::shares::classes::{ClassLoad, Percents};

use super::Scheduler;
use super::account::{Price, SLOT, cost};
use super::shapes::ShapeId;
use super::shares::{WHOLE, units};
use super::sums::Sums;

/// Grants that are not used up yet. They hold while a turn goes on, also when it is cut into several.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Grants {
    pub(super) level: usize,
    /// Units by class.
    left: Vec<u64>,
    /// Classes that could not place what they were granted: they count as having nothing waiting.
    out: Vec<bool>,
}

impl Grants {
    pub(super) fn new(level: usize, classes: usize) -> Grants {
        Grants { level, left: vec![0; classes], out: vec![false; classes] }
    }

    /// The first class in order that has something left.
    pub(super) fn first(&self, percents: &Percents) -> Option<(usize, u64)> {
        let order = percents.order().iter().map(|class| class.at());
        order.map(|class| (class, self.left[class])).find(|(_, left)| *left > 0)
    }

    pub(super) fn set(&mut self, left: Vec<u64>) {
        self.left = left;
    }

    /// The class cannot place its grant: the counts are taken again without it.
    pub(super) fn give_up(&mut self, class: usize) {
        self.out[class] = true;
        self.left.fill(0);
    }

    /// So many units of a grant were used.
    pub(super) fn spend(&mut self, class: usize, units: u64) {
        self.left[class] = self.left[class].saturating_sub(units);
    }
}

impl Scheduler {
    /// Takes the counts: how many units each class may start now. `None` if no class above 0% that could
    /// place something has anything waiting.
    pub(super) fn count_grants(&self, level: usize, percents: &Percents) -> Option<Vec<u64>> {
        let grants = self.grants.as_ref().expect("the caller made them");
        let classes = percents.classes();
        let waits = |class: usize| {
            classes[class].percent > 0
                && !grants.out[class]
                && !self.shares.waiting(level, class).active.is_empty()
        };
        if !(0..classes.len()).any(waits) {
            return None;
        }
        let loads: SmallVec<[ClassLoad; 16]> = (0..classes.len())
            .map(|class| ClassLoad {
                running: self.running_units(class),
                waiting: if waits(class) { self.waiting_units(level, class).max(1) } else { 0 },
            })
            .collect();
        let mut given = vec![0; classes.len()];
        percents.counts(self.total_units(), self.idle_units(), &loads, &mut given);
        if given.iter().all(|given| *given == 0) {
            // There is no whole unit left, but there may be room for what needs less: whoever has the
            // least for its percent goes first.
            let ratio = |class: &usize| {
                let percent = u128::from(classes[*class].percent);
                (u128::from(loads[*class].running) * 100 / percent, u128::from(loads[*class].running))
            };
            let order = percents.order().iter().map(|class| class.at()).filter(|class| waits(*class));
            let class = order.min_by_key(ratio).expect("somebody waits");
            given[class] = 1;
        }
        Some(given)
    }

    pub(super) fn running_units(&self, class: usize) -> u64 {
        let account = &self.shares.classes[class];
        let unit = self.settings.shares.unit;
        units(unit, account.slots, account.cost, &account.usage, |kind| self.nodes.capacity(kind))
    }

    pub(super) fn waiting_units(&self, level: usize, class: usize) -> u64 {
        let waiting = self.shares.waiting(level, class);
        let unit = self.settings.shares.unit;
        units(unit, waiting.slots, waiting.cost, &waiting.amounts, |kind| self.nodes.capacity(kind))
    }

    /// What the head of a shape takes of a grant.
    pub(super) fn units_of(&self, shape: ShapeId, price: Price) -> u64 {
        let mut amounts = Sums::default();
        amounts.add(&self.shapes.get(shape).total_request(), 1);
        let unit = self.settings.shares.unit;
        units(unit, price.slots, price.cost, &amounts, |kind| self.nodes.capacity(kind))
    }

    /// All there is.
    pub(super) fn total_units(&self) -> u64 {
        self.sum_of_units(|kind| self.nodes.capacity(kind))
    }

    /// What is free of it.
    pub(super) fn idle_units(&self) -> u64 {
        self.sum_of_units(|kind| self.nodes.open_free(kind))
    }

    /// What everything costs that takes work, full or not.
    pub(super) fn cost_of_all(&self) -> u128 {
        let (shares, kinds) = (&self.settings.shares, &self.settings.kinds);
        let all = (0..kinds.len()).map(|kind| KindId(kind as u16));
        all.map(|kind| cost(kind, self.nodes.capacity(kind), shares, kinds)).sum()
    }

    fn sum_of_units(&self, of: impl Fn(KindId) -> i128) -> u64 {
        const BASE_UNITS: i128 = 1_000;
        let (shares, kinds) = (&self.settings.shares, &self.settings.kinds);
        let all = || (0..kinds.len()).map(|kind| KindId(kind as u16));
        let sum = match shares.unit {
            ShareUnit::Slot => u128::try_from(of(SLOT) / BASE_UNITS).unwrap_or(0),
            ShareUnit::Weighted => all().map(|kind| cost(kind, of(kind), shares, kinds)).sum(),
            ShareUnit::Dominant => {
                // The kind of which the smallest part is there says how much of everything is.
                let capacity = |kind| self.nodes.capacity(kind);
                let parts = all().filter(|kind| capacity(*kind) > 0);
                let parts = parts.map(|kind| of(kind).max(0) * i128::from(WHOLE) / capacity(kind));
                u128::try_from(parts.min().unwrap_or(0)).unwrap_or(0)
            }
        };
        u64::try_from(sum).unwrap_or(u64::MAX)
    }
}
