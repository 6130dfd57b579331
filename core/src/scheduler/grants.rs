//! What each class may start of the capacity at hand: its entitlement, then loans.
//!
//! Much of what is idle may be of no use to those who wait: slots on nodes without memory, say. The counts
//! do not know that, and grant more than can start. Therefore grants are not served class by class, which
//! would leave all that can be used to the first, but by who has least for its percent.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::messages::SchedulerMessage;
use crate::resources::KindId;
use crate::settings::ShareUnit;
use crate::shares::classes::{ClassLoad, Given, Percents};

use super::Scheduler;
use super::account::{Price, SLOT, cost};
use super::shapes::ShapeId;
use super::shares::{WHOLE, units};
use super::sums::Sums;

/// A class keeps its turn for this part of what it was granted, so that turns are few however much is.
const TURNS: u64 = 8;

/// What classes may start of what was counted last, and whose turn it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Allowance {
    /// Units by class.
    left: Vec<Given>,
    /// A class, and the units it has left until others are compared with it again.
    turn: Option<(usize, u64)>,
}

impl Allowance {
    pub(super) fn new(classes: usize) -> Allowance {
        Allowance { left: vec![Given::default(); classes], turn: None }
    }

    /// Takes the counts anew. There may be room for what needs less although there is no whole unit left:
    /// whoever has the least for its percent may start then.
    pub(super) fn count(&mut self, percents: &Percents, total: u64, idle: u64, loads: &[ClassLoad]) {
        self.turn = None;
        percents.counts(total, idle, loads, &mut self.left);
        if self.left.iter().all(|given| given.all() == 0) {
            let waits = |class: usize| loads[class].waiting > 0;
            if let Some(class) = least(percents, |class| loads[class].running, waits) {
                self.left[class].lent = 1;
            }
        }
    }

    /// The class whose turn it is and how many units it may start: entitlements before loans, of both those
    /// of the class that has least for its percent.
    pub(super) fn first(
        &mut self,
        percents: &Percents,
        running: impl Fn(usize) -> u64,
    ) -> Option<(usize, u64)> {
        if self.turn.is_some() {
            return self.turn;
        }
        let part = |of: fn(&Given) -> u64, left: &[Given]| {
            let class = least(percents, &running, |class| of(&left[class]) > 0)?;
            Some((class, of(&left[class])))
        };
        let (class, units) =
            part(|given| given.entitled, &self.left).or_else(|| part(|given| given.lent, &self.left))?;
        let is_only = self.left.iter().filter(|given| given.all() > 0).count() == 1;
        self.turn = Some((class, if is_only { units } else { units.div_ceil(TURNS) }));
        self.turn
    }

    /// So many units of a grant were used.
    pub(super) fn spend(&mut self, class: usize, units: u64) {
        self.left[class].spend(units);
        self.turn = self.turn.filter(|(turn, left)| *turn != class || *left > units);
        if let Some((turn, left)) = &mut self.turn
            && *turn == class
        {
            *left -= units;
        }
    }

    pub(super) fn clear(&mut self) {
        self.left.fill(Given::default());
        self.turn = None;
    }
}

/// The class above 0% that has least for its percent, ties by the order of the classes.
fn least(
    percents: &Percents,
    running: impl Fn(usize) -> u64,
    admits: impl Fn(usize) -> bool,
) -> Option<usize> {
    let percent = |class: usize| u128::from(percents.classes()[class].percent);
    let order = percents.order().iter().map(|class| class.at());
    order.filter(|class| percent(*class) > 0 && admits(*class)).min_by(|one, other| {
        let (of_one, of_other) = (u128::from(running(*one)), u128::from(running(*other)));
        (of_one * percent(*other)).cmp(&(of_other * percent(*one)))
    })
}

/// Grants that are not used up yet. They hold while a turn goes on, also when it is cut into several.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Grants {
    pub(super) level: usize,
    pub(super) left: Allowance,
    /// Classes that could not place what they were granted: they count as having nothing waiting.
    out: Vec<bool>,
}

impl Grants {
    pub(super) fn new(level: usize, classes: usize) -> Grants {
        Grants { level, left: Allowance::new(classes), out: vec![false; classes] }
    }

    /// The class cannot place its grant: the counts are taken again without it.
    pub(super) fn give_up(&mut self, class: usize) {
        self.out[class] = true;
        self.left.clear();
    }
}

/// Grants were counted for what was there: they hold as long as nothing happens to that. Whether the gate is
/// open, and what somebody asks, is no part of it.
pub(super) fn outlived_by_grants(message: &SchedulerMessage) -> bool {
    matches!(
        message,
        SchedulerMessage::Committed { .. }
            | SchedulerMessage::Gate { .. }
            | SchedulerMessage::GateClock { .. }
            | SchedulerMessage::Explain { .. }
            | SchedulerMessage::ExplainOn { .. }
            | SchedulerMessage::ListSizes { .. }
            | SchedulerMessage::ListWaiting { .. }
    )
}

impl Scheduler {
    /// The class that is granted something now, and how many units; grants are made anew as they run out.
    pub(super) fn granted(&mut self, level: usize) -> Option<(usize, u64)> {
        let settings = Arc::clone(&self.settings);
        let percents = &settings.shares.classes.as_ref()?.percents;
        let mut grants = self
            .grants
            .take()
            .filter(|grants| grants.level == level)
            .unwrap_or_else(|| Grants::new(level, percents.classes().len()));
        let granted = self.next_grant(&mut grants, percents);
        self.grants = Some(grants);
        granted
    }

    fn next_grant(&self, grants: &mut Grants, percents: &Percents) -> Option<(usize, u64)> {
        let running = |class| self.running_units(class);
        if let Some(granted) = grants.left.first(percents, running) {
            return Some(granted);
        }
        if !self.count_grants(grants, percents) {
            return None;
        }
        grants.left.first(percents, running)
    }

    /// Takes the counts: how many units each class may start now. False if no class above 0% that could
    /// place something has anything waiting.
    fn count_grants(&self, grants: &mut Grants, percents: &Percents) -> bool {
        let (classes, level) = (percents.classes(), grants.level);
        let out = &grants.out;
        let waits = |class: usize| {
            classes[class].percent > 0 && !out[class] && !self.shares.waiting(level, class).active.is_empty()
        };
        if !(0..classes.len()).any(waits) {
            return false;
        }
        let loads: SmallVec<[ClassLoad; 16]> = (0..classes.len())
            .map(|class| ClassLoad {
                running: self.running_units(class),
                waiting: if waits(class) { self.waiting_units(level, class).max(1) } else { 0 },
            })
            .collect();
        grants.left.count(percents, self.total_units(), self.idle_units(), &loads);
        true
    }

    pub(super) fn running_units(&self, class: usize) -> u64 {
        let account = &self.shares.classes[class];
        let unit = self.settings.shares.unit;
        units(unit, account.slots, account.cost, &account.usage, |kind| self.nodes.capacity(kind))
    }

    pub(super) fn waiting_units(&self, level: usize, class: usize) -> u64 {
        let waiting = &self.shares.waiting(level, class).wants;
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
