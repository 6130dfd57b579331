//! The share tree: classes on top, queues inside, and for each queue a leaf per level of strict bands in
//! which its work waits. It knows what each share holds and what waits in it; whose turn it is is
//! decided in `pick`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::resources::{KindId, Resources};
use crate::settings::{DOMINANT_PARTS, Settings, ShareSettings, ShareUnit};
use crate::shares::ratio::Weight;
use crate::shares::requestors::RequestorMemo;
use crate::shares::run_time::Floor;
use crate::spec::Standing;
use crate::time::Time;

use super::account::{Account, Change, Price, RunClock};
use super::leaf::LeafId;
use super::newcomers::Busy;
use super::sums::Sums;

/// A queue of a class; jobs without a queue are in the nameless one of their class.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct QueueShare {
    pub(super) class: u16,
    /// Its place in the settings.
    pub(super) queue: Option<u32>,
    pub(super) account: Account,
    /// What waits in it, at any level.
    #[serde(skip)]
    pub(super) waiting: Waiting,
    /// Something about it has changed in this turn.
    #[serde(skip)]
    changed: bool,
}

/// What waits in one queue at one level of strict bands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LeafShare {
    pub(super) level: u16,
    pub(super) class: u16,
    /// Its place among the queue shares.
    pub(super) queue: u32,
    /// Tasks that wait here.
    pub(super) waiting: u64,
    /// Where jobs are compared by run time: newcomers begin here.
    pub(super) floor: Floor,
    /// The last round in which nothing more of it could be served.
    #[serde(skip)]
    pub(super) exhausted: u64,
}

/// What waits in one class at one level, as far as entitlements mind.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassWaiting {
    /// Leaves in which something waits.
    pub(super) active: BTreeSet<LeafId>,
    pub(super) wants: Waiting,
}

/// So much waits somewhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    pub(super) tasks: u64,
    pub(super) slots: u64,
    pub(super) cost: u128,
    pub(super) amounts: Sums,
}

impl Waiting {
    /// So many heads of this request wait more (or, below zero, less), which are so many tasks.
    fn add(&mut self, request: &Resources, price: Price, (heads, tasks): (i64, i64)) {
        let (slots, cost) =
            (price.slots * heads.unsigned_abs(), price.cost * u128::from(heads.unsigned_abs()));
        match heads >= 0 {
            true => (self.slots, self.cost) = (self.slots + slots, self.cost + cost),
            false => (self.slots, self.cost) = (self.slots - slots, self.cost - cost),
        }
        self.amounts.add(request, heads);
        self.tasks = self.tasks.checked_add_signed(tasks).expect("what is taken off was counted");
    }

    fn join(&mut self, other: &Waiting) {
        (self.tasks, self.slots, self.cost) =
            (self.tasks + other.tasks, self.slots + other.slots, self.cost + other.cost);
        self.amounts.join(&other.amounts);
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Shares {
    pub(super) classes: Vec<Account>,
    /// By run time, where a class begins that had and wanted nothing, and by class where its queues do.
    pub(super) class_floor: Floor,
    pub(super) queue_floors: Vec<Floor>,
    pub(super) queues: Vec<QueueShare>,
    pub(super) leaves: Vec<LeafShare>,
    #[serde(skip)]
    queue_of: BTreeMap<(u16, Option<u32>), u32>,
    #[serde(skip)]
    leaf_of: BTreeMap<(u16, u32), LeafId>,
    /// By level and class.
    #[serde(skip)]
    waiting: Vec<Vec<ClassWaiting>>,
    /// By class.
    #[serde(skip)]
    pub(super) busy: Vec<Busy>,
    /// By class: those of 0% come after all others, whatever the key.
    #[serde(skip)]
    pub(super) last: Vec<bool>,
    #[serde(skip)]
    memo: RequestorMemo,
    #[serde(skip)]
    pub(super) class_names: Vec<Arc<str>>,
    #[serde(skip)]
    queue_names: Vec<Arc<str>>,
    /// Queue shares that changed in this turn.
    #[serde(skip)]
    changed: Vec<u32>,
    /// Nobody is compared with anybody: there is one leaf and no books are kept.
    plain: bool,
    /// Whether there is a leaf for the surplus of elastic groups.
    #[serde(skip)]
    surplus: bool,
}

impl Shares {
    pub(super) fn new(settings: &ShareSettings) -> Shares {
        let classes = settings.classes.as_ref().map_or(1, |classes| classes.percents.classes().len());
        let plain = settings.classes.is_none() && settings.queues.is_empty();
        let account = |class| {
            let weight = class_weight(class, settings).unwrap_or(Weight::ONE);
            Account { clock: RunClock::new(weight), ..Account::default() }
        };
        let (queue_floors, classes) = (vec![Floor::default(); classes], (0..classes).map(account).collect());
        let mut shares = Shares { classes, queue_floors, plain, ..Shares::default() };
        shares.rebuild(settings);
        shares
    }

    /// Makes everything anew that is not stored, apart from what waits.
    pub(super) fn rebuild(&mut self, settings: &ShareSettings) {
        self.waiting = vec![vec![ClassWaiting::default(); self.classes.len()]; 2 * settings.levels()];
        self.surplus = self.leaves.iter().any(|leaf| usize::from(leaf.level) >= settings.levels());
        let queues = self.queues.iter().enumerate();
        self.queue_of = queues.map(|(index, queue)| ((queue.class, queue.queue), index as u32)).collect();
        let leaves = self.leaves.iter().enumerate();
        self.leaf_of = leaves.map(|(index, leaf)| ((leaf.level, leaf.queue), LeafId(index as u32))).collect();
        for (index, leaf) in self.leaves.iter_mut().enumerate() {
            leaf.waiting = 0;
            if self.plain {
                let class = &mut self.waiting[usize::from(leaf.level)][usize::from(leaf.class)];
                class.active.insert(LeafId(index as u32));
            }
        }
        self.queues.iter_mut().for_each(|queue| queue.waiting = Waiting::default());
        self.weigh(settings);
        self.memo = RequestorMemo::default();
        self.class_names = match &settings.classes {
            Some(classes) => {
                classes.percents.classes().iter().map(|class| class.name.as_str().into()).collect()
            }
            None => vec!["".into()],
        };
        self.queue_names = settings.queues.iter().map(|queue| queue.name.as_str().into()).collect();
    }

    pub(super) fn queue_name(&self, queue: u32) -> Arc<str> {
        Arc::clone(&self.queue_names[queue as usize])
    }

    /// The names of the class and the queue of a queue share.
    pub(super) fn name_of(&self, queue: u32) -> (Arc<str>, Option<Arc<str>>) {
        let share = &self.queues[queue as usize];
        let class = Arc::clone(&self.class_names[usize::from(share.class)]);
        (class, share.queue.map(|queue| self.queue_name(queue)))
    }

    fn note_change(&mut self, queue: u32) {
        if !std::mem::replace(&mut self.queues[queue as usize].changed, true) {
            self.changed.push(queue);
        }
    }

    /// Queue shares that changed since this was asked last.
    pub(super) fn take_changed(&mut self) -> Vec<u32> {
        let changed = std::mem::take(&mut self.changed);
        for queue in &changed {
            self.queues[*queue as usize].changed = false;
        }
        changed
    }

    /// Whether no books are kept, because nobody would look at them.
    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    pub(super) fn leaf(&self, id: LeafId) -> &LeafShare {
        &self.leaves[id.index()]
    }

    pub(super) fn queue_of(&self, leaf: LeafId) -> &QueueShare {
        &self.queues[self.leaf(leaf).queue as usize]
    }

    pub(super) fn waiting(&self, level: usize, class: usize) -> &ClassWaiting {
        &self.waiting[level][class]
    }

    /// The class of a job: that of its queue, or else by who asks for it.
    pub(super) fn class_of(
        &mut self,
        requestor: &str,
        queue: Option<usize>,
        settings: &ShareSettings,
    ) -> u16 {
        let Some(classes) = &settings.classes else { return 0 };
        if let Some(class) = queue.and_then(|queue| settings.queues[queue].class) {
            return class.0;
        }
        self.memo.class_of(&classes.requestors, requestor).unwrap_or(classes.default).0
    }

    /// The leaf in which a job of this standing waits, made if there is none yet; the second says so.
    pub(super) fn leaf_for(
        &mut self,
        requestor: &str,
        standing: &Standing,
        settings: &ShareSettings,
    ) -> (LeafId, bool) {
        let queue = settings.queue(&standing.queue);
        let class = self.class_of(requestor, queue, settings);
        let level = settings.level(settings.band(&standing.band)) as u16;
        let queue = queue.map(|queue| queue as u32);
        let share = *self.queue_of.entry((class, queue)).or_insert_with(|| {
            let weight = queue.map_or(Weight::ONE, |queue| settings.queues[queue as usize].weight);
            let account = Account { clock: RunClock::new(weight), ..Account::default() };
            self.queues.push(QueueShare { class, queue, account, ..QueueShare::default() });
            self.queues.len() as u32 - 1
        });
        self.leaf_at(level, class, share)
    }

    /// Whether there may be surplus of elastic groups.
    pub(super) fn any_surplus(&self) -> bool {
        self.surplus
    }

    /// The leaf for the surplus of what waits in another, made if there is none yet; the second says so.
    pub(super) fn surplus_leaf(&mut self, leaf: LeafId, settings: &ShareSettings) -> (LeafId, bool) {
        let LeafShare { level, class, queue, .. } = *self.leaf(leaf);
        self.surplus = true;
        self.leaf_at(level + settings.levels() as u16, class, queue)
    }

    /// The leaf so many levels above another, made if there is none yet; the second says so.
    pub(super) fn leaf_above(&mut self, leaf: LeafId, levels: u16) -> (LeafId, bool) {
        let LeafShare { level, class, queue, .. } = *self.leaf(leaf);
        self.leaf_at(level - levels, class, queue)
    }

    fn leaf_at(&mut self, level: u16, class: u16, share: u32) -> (LeafId, bool) {
        let mut is_new = false;
        let leaf = *self.leaf_of.entry((level, share)).or_insert_with(|| {
            is_new = true;
            self.leaves.push(LeafShare {
                level,
                class,
                queue: share,
                waiting: 0,
                floor: Floor::default(),
                exhausted: 0,
            });
            LeafId(self.leaves.len() as u32 - 1)
        });
        if is_new && self.plain {
            // Where there is hardly a choice, a leaf is looked at whether something waits or not.
            self.waiting[usize::from(level)][usize::from(class)].active.insert(leaf);
        }
        (leaf, is_new)
    }

    /// Where nobody looks at the books, only the number of tasks is known.
    pub(super) fn count_plainly(&mut self, id: LeafId, tasks: i64) {
        let leaf = &mut self.leaves[id.index()];
        leaf.waiting = leaf.waiting.checked_add_signed(tasks).expect("what is taken off was counted");
    }

    /// So many heads of this request wait more (or, below zero, less) in a leaf, which are so many tasks.
    pub(super) fn count_waiting(
        &mut self,
        id: LeafId,
        request: &Resources,
        price: Price,
        (heads, tasks): (i64, i64),
    ) {
        let leaf = &mut self.leaves[id.index()];
        let had_some = leaf.waiting > 0;
        leaf.waiting = leaf.waiting.checked_add_signed(tasks).expect("what is taken off was counted");
        let has_some = leaf.waiting > 0;
        let class = &mut self.waiting[usize::from(leaf.level)][usize::from(leaf.class)];
        match (had_some, has_some) {
            (false, true) => drop(class.active.insert(id)),
            (true, false) => drop(class.active.remove(&id)),
            _ => {}
        }
        class.wants.add(request, price, (heads, tasks));
        let queue = leaf.queue;
        self.queues[queue as usize].waiting.add(request, price, (heads, tasks));
        self.note_busy(queue);
        self.note_change(queue);
    }

    /// So many tasks of a leaf start (or, below zero, end).
    pub(super) fn charge(
        &mut self,
        now: Time,
        leaf: LeafId,
        request: &Resources,
        tasks: i64,
        firm: bool,
        settings: &Settings,
    ) {
        let price = Price::of(request, &settings.shares, &settings.kinds);
        let LeafShare { class, queue, .. } = *self.leaf(leaf);
        let change = Change { now, request, price, tasks, firm };
        let half_time = settings.shares.half_time;
        self.classes[usize::from(class)].change(change, half_time);
        self.queues[queue as usize].account.change(change, half_time);
        self.note_busy(queue);
        self.note_change(queue);
    }

    /// All books, as they stand.
    pub(super) fn accounts(&self) -> (Vec<Account>, Vec<Account>) {
        (self.classes.clone(), self.queues.iter().map(|queue| queue.account.clone()).collect())
    }

    /// Puts the books back as they were.
    pub(super) fn restore_accounts(&mut self, (classes, queues): (Vec<Account>, Vec<Account>)) {
        self.classes = classes;
        self.queues.iter_mut().zip(queues).for_each(|(queue, account)| queue.account = account);
        self.busy = self.all_busy();
    }

    /// A queue over all classes in which it has a share.
    pub(super) fn whole_queue(&self, queue: Option<u32>) -> Account {
        let mut whole = Account::default();
        for class in 0..self.classes.len() {
            let share = self.queue_of.get(&(class as u16, queue));
            share.into_iter().for_each(|share| whole.usage.join(&self.queues[*share as usize].account.usage));
        }
        whole
    }

    /// Whether anything waits in a class, at any level.
    pub(super) fn class_waits(&self, class: usize) -> bool {
        self.waiting.iter().any(|level| !level[class].active.is_empty())
    }

    /// What waits in a class, at any level.
    pub(super) fn class_wants(&self, class: usize) -> Waiting {
        let mut wants = Waiting::default();
        self.waiting.iter().for_each(|level| wants.join(&level[class].wants));
        wants
    }
}

/// The weight of a queue; that of the nameless one is 1.
pub(super) fn weight_of(queue: &QueueShare, settings: &ShareSettings) -> Weight {
    queue.queue.map_or(Weight::ONE, |queue| settings.queues[queue as usize].weight)
}

/// The weight of a class, for keys that know weights.
pub(super) fn class_weight(class: usize, settings: &ShareSettings) -> Option<Weight> {
    let Some(classes) = &settings.classes else { return Some(Weight::ONE) };
    let percent = classes.percents.classes()[class].percent;
    Weight::from_millionths(percent * Weight::ONE.millionths())
}

/// How much of the units of a share something is.
pub(super) fn units(
    unit: ShareUnit,
    slots: u64,
    cost: u128,
    amounts: &Sums,
    capacity: impl Fn(KindId) -> i128,
) -> u64 {
    match unit {
        ShareUnit::Slot => slots,
        ShareUnit::Weighted => u64::try_from(cost).unwrap_or(u64::MAX),
        ShareUnit::Dominant => dominant_parts(amounts, capacity),
    }
}

/// A whole, in the parts that [`dominant_parts`] counts.
pub(super) const WHOLE: u64 = DOMINANT_PARTS;

/// The largest part of any kind that these amounts are of all there is, in parts of [`WHOLE`]. Of what
/// there is nothing, nothing is a part.
pub(super) fn dominant_parts(amounts: &Sums, capacity: impl Fn(KindId) -> i128) -> u64 {
    let parts = amounts.iter().filter(|(kind, amount)| *amount > 0 && capacity(*kind) > 0);
    let parts = parts.map(|(kind, amount)| amount * i128::from(WHOLE) / capacity(kind));
    parts.max().map_or(0, |parts| u64::try_from(parts).unwrap_or(u64::MAX))
}
