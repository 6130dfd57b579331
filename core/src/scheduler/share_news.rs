//! What the host is told of the shares: once a turn, those that changed in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::messages::{HostMessage, Outbox};
use crate::settings::ShareUnit;
use crate::share_report::{ShareLoad, ShareName, ShareNews};

use super::Scheduler;
use super::account::Account;
use super::shares::{Shares, Waiting, units, weight_of};

/// What the host was told of the shares.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Told {
    /// The shares are others than those it was told of.
    pub(super) anew: bool,
    /// All there was to share.
    total: u64,
}

impl Told {
    pub(super) fn new(shares: &Shares) -> Told {
        Told { anew: !shares.is_plain(), total: 0 }
    }
}

impl Scheduler {
    /// How all shares stand now, as if nothing had been said of them before.
    pub fn share_news(&self) -> ShareNews {
        let all = if self.shares.is_plain() { 0 } else { self.shares.queues.len() as u32 };
        let classes = if self.shares.is_plain() { 0 } else { self.shares.classes.len() };
        ShareNews { anew: true, ..self.news_of((0..classes).collect(), (0..all).collect()) }
    }

    /// Tells the host of the shares that changed in this turn, once.
    pub(super) fn tell_shares(&mut self, capacity_changed: bool, out: &mut Outbox) {
        if self.told.anew {
            self.told = Told { anew: false, total: self.total_units() };
            self.shares.take_changed();
            return out.host.push(HostMessage::Shares(Box::new(self.share_news())));
        }
        if self.shares.is_plain() {
            return;
        }
        let total = self.total_units();
        let grew = std::mem::replace(&mut self.told.total, total) != total;
        let mut changed = self.shares.take_changed();
        // Parts of what there is are others as soon as that is.
        if capacity_changed && self.settings.shares.unit == ShareUnit::Dominant {
            changed = (0..self.shares.queues.len() as u32).collect();
        }
        if changed.is_empty() && !grew {
            return;
        }
        let class_of = |queue: &u32| usize::from(self.shares.queues[*queue as usize].class);
        let classes: BTreeSet<usize> = changed.iter().map(class_of).collect();
        out.host.push(HostMessage::Shares(Box::new(self.news_of(classes, changed))));
    }

    fn news_of(&self, classes: BTreeSet<usize>, queues: Vec<u32>) -> ShareNews {
        let settings = &self.settings.shares;
        let capacity = |kind| self.nodes.capacity(kind);
        let held =
            |account: &Account| units(settings.unit, account.slots, account.cost, &account.usage, capacity);
        let demand = |account: &Account, waiting: &Waiting| {
            let mut amounts = account.usage.clone();
            amounts.join(&waiting.amounts);
            let (slots, cost) = (account.slots + waiting.slots, account.cost + waiting.cost);
            units(settings.unit, slots, cost, &amounts, capacity)
        };
        let class_name = |class: usize| Arc::clone(&self.shares.class_names[class]);
        let of_class = |class: usize| {
            let (account, wants) = (&self.shares.classes[class], self.shares.class_wants(class));
            let percents = settings.classes.as_ref().map(|classes| &classes.percents);
            ShareLoad {
                name: ShareName { class: class_name(class), queue: None },
                weight: percents.map_or(100, |percents| percents.classes()[class].percent),
                held: held(account),
                demand: demand(account, &wants),
                running: account.tasks,
                waiting: wants.tasks,
            }
        };
        let of_queue = |index: u32| {
            let queue = &self.shares.queues[index as usize];
            let name = queue.queue.map_or_else(|| Arc::from(""), |at| self.shares.queue_name(at));
            ShareLoad {
                name: ShareName { class: class_name(usize::from(queue.class)), queue: Some(name) },
                weight: weight_of(queue, settings).millionths(),
                held: held(&queue.account),
                demand: demand(&queue.account, &queue.waiting),
                running: queue.account.tasks,
                waiting: queue.waiting.tasks,
            }
        };
        let loads = classes.into_iter().map(of_class).chain(queues.into_iter().map(of_queue)).collect();
        ShareNews { anew: false, unit: settings.unit, total: self.total_units(), loads }
    }
}
