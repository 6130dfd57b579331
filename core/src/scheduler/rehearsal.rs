//! In which order what waits would be served if there were room: level by level, by the keys of the shares,
//! with copies of their books in which every entry that was served is charged.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use crate::messages::WaitingEntry;
use crate::settings::{JobKey, ShareKey};
use crate::shares::classes::{ClassLoad, Percents};
use crate::shares::ratio::Weight;

use super::Scheduler;
use super::account::{Account, Change};
use super::grants::Allowance;
use super::keys::Key;
use super::leaf::LeafId;
use super::order::Order;
use super::shapes::ShapeId;
use super::shares::{class_weight, weight_of};

/// Something that waits, and its place in the line of its leaf.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) order: Order,
    pub(super) shape: ShapeId,
    /// How many heads of the shape it is: tasks, or one atomic group.
    pub(super) heads: u64,
    pub(super) entry: WaitingEntry,
}

/// What waits in each of some leaves, in order.
type LeafLines = Vec<(LeafId, Vec<Listed>)>;

/// What waits of one class at one level.
struct ClassLine {
    class: usize,
    queues: Vec<QueueLine>,
    /// Those of which something is left, by their keys and the age of what is next; the next one is the last.
    ready: Vec<(Key, Order, usize)>,
}

struct QueueLine {
    weight: Weight,
    account: Account,
    entries: VecDeque<Listed>,
}

/// What classes may start, counted as grants are.
struct Purse {
    left: Allowance,
    loads: Vec<ClassLoad>,
    idle: u64,
    total: u64,
}

impl Scheduler {
    /// The entries of all lines, at most so many, in the order in which they would be served.
    pub(super) fn rehearse(&self, lines: BTreeMap<LeafId, Vec<Listed>>, limit: usize) -> Vec<WaitingEntry> {
        let mut levels: BTreeMap<u16, BTreeMap<u16, LeafLines>> = BTreeMap::new();
        for (leaf, line) in lines {
            let share = self.shares.leaf(leaf);
            levels.entry(share.level).or_default().entry(share.class).or_default().push((leaf, line));
        }
        let mut accounts = self.shares.classes.clone();
        let mut served = Vec::new();
        for (level, classes) in levels {
            let lines = classes.into_iter().map(|(class, lines)| self.class_line(class, lines));
            let mut lines: Vec<ClassLine> = lines.collect();
            let mut purse = self.purse(usize::from(level));
            while served.len() < limit {
                let Some(at) = self.next_line(&lines, &accounts, &mut purse) else { break };
                let class = lines[at].class;
                let listed = self.serve(&mut lines[at], &mut accounts[class]);
                if let Some(purse) = &mut purse {
                    let units = self.units_of(listed.shape, self.price_of(listed.shape)).max(1);
                    purse.spend(class, units.saturating_mul(listed.heads));
                }
                served.push(listed.entry);
            }
        }
        served
    }

    fn class_line(&self, class: u16, lines: LeafLines) -> ClassLine {
        let line = |(leaf, entries): (LeafId, Vec<Listed>)| {
            let share = self.shares.queue_of(leaf);
            let weight = weight_of(share, &self.settings.shares);
            QueueLine { weight, account: share.account.clone(), entries: entries.into() }
        };
        let queues = lines.into_iter().map(line).collect();
        let mut line = ClassLine { class: usize::from(class), queues, ready: Vec::new() };
        (0..line.queues.len()).for_each(|at| self.make_ready(&mut line, at));
        line
    }

    /// A queue takes its place among those of its class, if something of it is left.
    fn make_ready(&self, line: &mut ClassLine, at: usize) {
        let queue = &line.queues[at];
        let Some(head) = queue.entries.front() else { return };
        let (kind, head) = (self.settings.shares.queue_key, (head.order, head.shape));
        let key = self.key_by(kind, &queue.account, queue.weight, head, self.now);
        let (order, _) = head;
        let job_key = self.settings.shares.job_key;
        let age = |order: Order| order.age(job_key);
        let goes_later = |(other, other_order, _): &(Key, Order, usize)| {
            other.compare(&key).then_with(|| age(*other_order).cmp(&age(order))) == Ordering::Greater
        };
        let place = line.ready.partition_point(goes_later);
        line.ready.insert(place, (key, order, at));
    }

    /// The class whose turn it is.
    fn next_line(
        &self,
        lines: &[ClassLine],
        accounts: &[Account],
        purse: &mut Option<Purse>,
    ) -> Option<usize> {
        let left: Vec<usize> = (0..lines.len()).filter(|at| !lines[*at].ready.is_empty()).collect();
        if left.len() < 2 {
            return left.first().copied();
        }
        if let (Some(purse), Some(classes)) = (purse, &self.settings.shares.classes) {
            let waits = |class: usize| left.iter().any(|at| lines[*at].class == class);
            let class = purse.next(&classes.percents, waits);
            return match class {
                Some(class) => left.into_iter().find(|at| lines[*at].class == class),
                None => oldest(lines, &left, self.settings.shares.job_key),
            };
        }
        let (kind, job_key) = (self.settings.shares.share_key, self.settings.shares.job_key);
        let mut best: Option<(Key, usize)> = None;
        for at in left.iter().copied().filter(|at| !self.shares.is_last(lines[*at].class)) {
            let (class, head) = (lines[at].class, lines[at].head());
            let weight = class_weight(class, &self.settings.shares).unwrap_or(Weight::ONE);
            let key = self.key_by(kind, &accounts[class], weight, head, self.now);
            let age = |at: usize| lines[at].head().0.age(job_key);
            let goes_before = |(least, other): &(Key, usize)| {
                key.compare(least).then_with(|| age(at).cmp(&age(*other))) == Ordering::Less
            };
            if best.as_ref().is_none_or(goes_before) {
                best = Some((key, at));
            }
        }
        best.map(|(_, at)| at).or_else(|| oldest(lines, &left, job_key))
    }

    /// Takes the next entry of a class and charges its shares.
    fn serve(&self, line: &mut ClassLine, class: &mut Account) -> Listed {
        let (_, _, at) = line.ready.pop().expect("something is left");
        let queue = &mut line.queues[at];
        let listed = queue.entries.pop_front().expect("something is left");
        if !self.shares.is_plain() {
            let request = self.shapes.get(listed.shape).total_request();
            let tasks = i64::try_from(listed.heads).unwrap_or(i64::MAX);
            let price = self.price_of(listed.shape);
            let change = Change { now: self.now, request: &request, price, tasks, firm: false };
            let half_time = self.settings.shares.half_time;
            class.change(change, half_time);
            queue.account.change(change, half_time);
        }
        self.make_ready(line, at);
        listed
    }

    /// What classes may start of what is idle now, where they have entitlements.
    fn purse(&self, level: usize) -> Option<Purse> {
        let classes = self.settings.shares.classes.as_ref()?;
        if self.settings.shares.share_key != ShareKey::Entitlement {
            return None;
        }
        let count = classes.percents.classes().len();
        let load = |class| {
            let (running, waiting) = (self.running_units(class), self.waiting_units(level, class));
            ClassLoad { running, waiting }
        };
        let loads = (0..count).map(load).collect();
        Some(Purse { left: Allowance::new(count), loads, idle: self.idle_units(), total: self.total_units() })
    }
}

/// Nobody above 0% has anything left: the oldest goes first.
fn oldest(lines: &[ClassLine], left: &[usize], key: JobKey) -> Option<usize> {
    left.iter().copied().min_by_key(|at| lines[*at].head().0.age(key))
}

impl ClassLine {
    /// The order and the shape of what is next.
    fn head(&self) -> (Order, ShapeId) {
        let (_, _, at) = self.ready.last().expect("something is left");
        let head = self.queues[*at].entries.front().expect("something is left");
        (head.order, head.shape)
    }
}

impl Purse {
    /// The class that is granted something now; none if nobody above 0% waits.
    fn next(&mut self, percents: &Percents, waits: impl Fn(usize) -> bool) -> Option<usize> {
        let waits = |class: usize| percents.classes()[class].percent > 0 && waits(class);
        let running = |loads: &[ClassLoad], class: usize| loads[class].running;
        if let Some((granted, _)) = self.left.first(percents, |class| running(&self.loads, class)) {
            if waits(granted) {
                return Some(granted);
            }
            // Nothing more of it is listed.
            self.left.clear();
        }
        let mut loads = self.loads.clone();
        for (class, load) in loads.iter_mut().enumerate() {
            load.waiting = if waits(class) { load.waiting.max(1) } else { 0 };
        }
        self.left.count(percents, self.total, self.idle, &loads);
        self.left.first(percents, |class| running(&loads, class)).map(|(class, _)| class)
    }

    fn spend(&mut self, class: usize, units: u64) {
        self.left.spend(class, units);
        let load = &mut self.loads[class];
        load.running = load.running.saturating_add(units);
        load.waiting = load.waiting.saturating_sub(units);
        self.idle = self.idle.saturating_sub(units);
    }
}
