//! Shares that come to weigh otherwise while everybody stays where he is: percents, weights and keys change
//! often, and cost as much as there are shares, however many jobs wait.

use std::collections::BTreeMap;

use crate::mutation::{self, Mutation};
use crate::settings::ShareSettings;
use crate::shares::ratio::Weight;
use crate::shares::run_time::VirtualTime;
use crate::time::Time;

use super::Scheduler;
use super::account::Account;
use super::shares::{Shares, class_weight, weight_of};

impl Scheduler {
    /// The settings weigh shares otherwise, and place nobody anew. What was used before counts on.
    pub(super) fn weigh_anew(&mut self, now: Time, before: &ShareSettings) {
        self.grants = None;
        if mutation::active(Mutation::KeepOldWeights) {
            return;
        }
        let settings = &self.settings.shares;
        for (class, account) in self.shares.classes.iter_mut().enumerate() {
            account.remember(now, before, class_weight(class, settings).unwrap_or(Weight::ONE));
        }
        for queue in &mut self.shares.queues {
            let weight = weight_of(queue, settings);
            queue.account.remember(now, before, weight);
        }
        let were_last: Vec<usize> =
            (0..self.shares.classes.len()).filter(|class| self.shares.is_last(*class)).collect();
        let floor = self.shares.class_floor(now);
        self.shares.weigh(settings);
        for class in were_last.iter().copied() {
            // What it had while it got only what was left says nothing.
            if !self.shares.is_last(class) {
                self.shares.classes[class].clock.place(now, floor);
            }
        }
        self.order_classes_anew(now, &were_last);
        self.limit_anew(now);
    }
}

impl Account {
    /// It weighs so much from now on, and what faded did so by the settings before.
    fn remember(&mut self, now: Time, before: &ShareSettings, weight: Weight) {
        self.clock.set_weight(now, self.cost, weight);
        for flow in [&mut self.flow, &mut self.firm] {
            flow.set_usage(now, before.half_time, flow.usage());
        }
    }

    /// It goes on from what a share of the same name has used.
    fn inherit(&mut self, now: Time, account: &Account, before: &ShareSettings, settings: &ShareSettings) {
        for (flow, other) in [(&mut self.flow, &account.flow), (&mut self.firm, &account.firm)] {
            flow.remember(now, settings.half_time, other.value(now, before.half_time));
        }
        self.clock.place(now, account.clock.value(now, account.cost));
    }
}

impl Shares {
    /// What shares have used counts on under their names, if resources cost what they did. Those that are new
    /// begin, by run time, where the others are. Says which queue shares are the same: number before, and now.
    pub(super) fn inherit(
        &mut self,
        now: Time,
        other: &Shares,
        before: &ShareSettings,
        settings: &ShareSettings,
    ) -> BTreeMap<u32, u32> {
        let mut same = BTreeMap::new();
        if self.is_plain() || other.is_plain() || before.resource_weights != settings.resource_weights {
            return same;
        }
        let classes = other.class_names.iter().zip(&other.classes);
        let classes: BTreeMap<&str, &Account> = classes.map(|(name, account)| (&**name, account)).collect();
        let named = self.class_names.iter().zip(&mut self.classes);
        let found = named.map(|(name, account)| (account, classes.get(&**name).copied()));
        inherit_all(now, found, before, settings);
        let queues = (0..other.queues.len() as u32).map(|queue| (other.name_of(queue), queue));
        let queues: BTreeMap<_, u32> = queues.collect();
        for queue in 0..self.queues.len() as u32 {
            same.extend(queues.get(&self.name_of(queue)).map(|before| (*before, queue)));
        }
        self.inherit_floors(other);
        let ancestor: BTreeMap<u32, u32> = same.iter().map(|(before, queue)| (*queue, *before)).collect();
        let own = self.queues.iter_mut().enumerate();
        let found = own.map(|(index, queue)| {
            let account = ancestor.get(&(index as u32)).map(|queue| &other.queues[*queue as usize].account);
            (&mut queue.account, account)
        });
        inherit_all(now, found, before, settings);
        same
    }
}

fn inherit_all<'a>(
    now: Time,
    shares: impl Iterator<Item = (&'a mut Account, Option<&'a Account>)>,
    before: &ShareSettings,
    settings: &ShareSettings,
) {
    let mut newcomers: Vec<&mut Account> = Vec::new();
    let mut floor: Option<VirtualTime> = None;
    for (account, ancestor) in shares {
        match ancestor {
            Some(ancestor) => {
                account.inherit(now, ancestor, before, settings);
                let value = account.clock.value(now, account.cost);
                floor = Some(floor.map_or(value, |floor| floor.min(value)));
            }
            None => newcomers.push(account),
        }
    }
    let floor = floor.unwrap_or_default();
    newcomers.into_iter().for_each(|account| account.clock.place(now, floor));
}
