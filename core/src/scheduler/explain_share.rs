//! Which share something waits in, how that stands, and whose turn it is: computed when somebody asks.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::GroupId;
use crate::settings::ShareKey;
use crate::share_explanation::{LimitReason, NextTurn, OverLimit, ShareExplanation, ShareLevel};
use crate::share_report::{ShareBook, ShareStatus};
use crate::shares::classes::ClassLoad;
use crate::shares::ratio::Weight;
use crate::time::Time;

use super::Scheduler;
use super::grants::Allowance;
use super::keys::Key;
use super::leaf::LeafId;
use super::limits::{Excess, Limit};
use super::order::Order;
use super::pick::{KeyOf, Pick, goes_before};
use super::shapes::ShapeId;
use super::shares::{class_weight, weight_of};

impl Scheduler {
    /// Where a group waits; nothing where everything is one share without bands.
    pub(super) fn explain_share(&self, id: GroupId, shape: ShapeId) -> Option<ShareExplanation> {
        let settings = &self.settings.shares;
        let job = self.jobs.get(id.job().0)?;
        if self.shares.is_plain() && settings.bands.is_empty() {
            return None;
        }
        let leaf = self.shares.leaf(job.leaf);
        let queue = &self.shares.queues[leaf.queue as usize];
        let mut book = ShareBook::default();
        book.apply(&self.share_news());
        let class_name = &self.shares.class_names[usize::from(queue.class)];
        let queue_name = queue.queue.map(|queue| self.shares.queue_name(queue));
        let level = |status: ShareStatus, name: &str| ShareLevel {
            name: name.to_owned(),
            target: status.target,
            held: status.held,
        };
        let of = |queue: Option<&str>| {
            let mut report = book.report().into_iter();
            report.find(|one| one.name.class == *class_name && one.name.queue.as_deref() == queue)
        };
        let percents = settings.classes.as_ref().map(|classes| &classes.percents);
        let band = settings.band(job.band()).map(|band| settings.bands[band].name.clone());
        Some(ShareExplanation {
            unit: settings.unit,
            class: percents.and_then(|_| Some(level(of(None)?, class_name))),
            queue: queue_name.and_then(|name| Some(level(of(Some(&name))?, &name))),
            band,
            last: self.shares.is_last(usize::from(queue.class)),
            next: self.next_turn(self.leaf_of_group(id), shape),
            raise: self.explain_raise(id),
        })
    }

    /// Nobody's turn is told to whom a limit keeps waiting, whoever ends.
    fn next_turn(&self, own: LeafId, shape: ShapeId) -> Option<NextTurn> {
        if self.shapes.is_limited(shape) {
            return None;
        }
        let leaf = self.shares.leaf(own);
        let before = self.shares.leaves.iter().filter(|other| other.level < leaf.level);
        let tasks: u64 = before.map(|other| other.waiting).sum();
        if tasks > 0 {
            return Some(NextTurn::Bands { tasks });
        }
        if self.shares.is_plain() {
            return None;
        }
        if self.settings.shares.share_key == ShareKey::Entitlement && self.shares.classes.len() > 1 {
            return self.next_entitled(own, shape);
        }
        let first = self.first_leaf(usize::from(leaf.level))?;
        if first == own {
            return Some(NextTurn::Own);
        }
        Some(NextTurn::Behind { share: self.name_of(first) })
    }

    fn name_of(&self, leaf: LeafId) -> String {
        let queue = self.shares.queue_of(leaf);
        let class = &self.shares.class_names[usize::from(queue.class)];
        match queue.queue {
            Some(queue) => format!("queue {}", self.shares.queue_name(queue)),
            None if class.is_empty() => "the queue without a name".to_owned(),
            None => format!("class {class}"),
        }
    }

    /// Of which class a task must end so that the next to start is of this one.
    fn next_entitled(&self, own: LeafId, shape: ShapeId) -> Option<NextTurn> {
        let percents = &self.settings.shares.classes.as_ref()?.percents;
        let leaf = self.shares.leaf(own);
        let (level, class) = (usize::from(leaf.level), usize::from(leaf.class));
        let classes = percents.classes();
        if self.shares.is_last(class) {
            return None;
        }
        let units = self.units_of(shape, self.price_of(shape)).max(1);
        let able = self.classes_that_may_start(level);
        let loads: Vec<ClassLoad> = (0..classes.len())
            .map(|other| ClassLoad {
                running: self.running_units(other),
                waiting: if able.contains(&other) { self.waiting_units(level, other).max(1) } else { 0 },
            })
            .collect();
        let idle = self.idle_units().saturating_add(units);
        let served_after = |ended: usize| {
            let mut loads = loads.clone();
            loads[ended].running = loads[ended].running.saturating_sub(units);
            // Whoever ends may release a limit of his own class.
            loads[ended].waiting = self.waiting_units(level, ended);
            let mut allowance = Allowance::new(classes.len());
            allowance.count(percents, self.total_units(), idle, &loads);
            allowance.first(percents, |class| loads[class].running).map(|(first, _)| first)
        };
        let order = percents.order().iter().map(|class| class.at());
        let others = order.filter(|other| loads[*other].running > 0 && *other != class);
        let own_too = others.chain((loads[class].running > 0).then_some(class));
        let mut ends: Vec<usize> = own_too.collect();
        if let Some(ended) = ends.iter().find(|ended| served_after(**ended) == Some(class)) {
            return Some(NextTurn::After { class: classes[*ended].name.clone() });
        }
        let first = served_after(ends.pop()?)?;
        Some(NextTurn::Behind { share: format!("class {}", classes[first].name) })
    }

    /// Classes of which something waits at a level that no limit keeps.
    fn classes_that_may_start(&self, level: usize) -> BTreeSet<usize> {
        let waiting = self.shapes.iter().filter(|(id, _)| self.shapes.waiting(*id) > 0);
        let free = waiting.filter(|(id, _)| !self.shapes.is_limited(*id));
        let leaves = free.map(|(_, shape)| self.shares.leaf(shape.leaf));
        leaves.filter(|leaf| usize::from(leaf.level) == level).map(|leaf| usize::from(leaf.class)).collect()
    }

    /// The leaf of a level whose turn is next by the keys, whatever room there is.
    fn first_leaf(&self, level: usize) -> Option<LeafId> {
        let mut heads: BTreeMap<LeafId, (Order, ShapeId)> = BTreeMap::new();
        for (id, shape) in self.shapes.iter().filter(|(id, _)| self.shapes.waiting(*id) > 0) {
            if usize::from(self.shares.leaf(shape.leaf).level) == level && !self.shapes.is_limited(id) {
                let head = heads.entry(shape.leaf).or_insert((shape.order, id));
                *head = (*head).min((shape.order, id));
            }
        }
        let settings = &self.settings.shares;
        let mut best_of_class: BTreeMap<u16, (Key, Pick)> = BTreeMap::new();
        for (leaf, (order, shape)) in heads {
            let pick = Pick::of(leaf, order, shape);
            let weight = weight_of(self.shares.queue_of(leaf), settings);
            let key = self.key(settings.queue_key, KeyOf::Queue(leaf), weight, &pick, self.now);
            let class = self.shares.leaf(leaf).class;
            let best = best_of_class.get(&class);
            if best.is_none_or(|best| goes_before((&key, &pick), best, settings.job_key)) {
                best_of_class.insert(class, (key, pick));
            }
        }
        let is_last = |class: &u16| self.shares.is_last(usize::from(*class));
        let oldest = best_of_class.iter().filter(|(class, _)| is_last(class)).map(|(_, (_, pick))| pick);
        let oldest = oldest.min_by_key(|pick| pick.age(settings.job_key)).copied();
        let mut best: Option<(Key, Pick)> = None;
        for (class, (_, pick)) in best_of_class.into_iter().filter(|(class, _)| !is_last(class)) {
            let weight = class_weight(usize::from(class), settings).unwrap_or(Weight::ONE);
            let of = KeyOf::Class(usize::from(class));
            let key = self.key(settings.share_key, of, weight, &pick, self.now);
            if best.as_ref().is_none_or(|best| goes_before((&key, &pick), best, settings.job_key)) {
                best = Some((key, pick));
            }
        }
        best.map(|(_, pick)| pick).or(oldest).map(|pick| pick.leaf)
    }

    /// What keeps the head of a shape from being served, in words.
    pub(super) fn explain_limit(&self, shape: ShapeId, now: Time) -> Option<LimitReason> {
        let leaf = self.shapes.get(shape).leaf;
        let queue = self.shares.queue_of(leaf);
        let queue_name = || queue.queue.map_or(String::new(), |at| self.shares.queue_name(at).to_string());
        let excess = |excess: Excess| {
            let kinds = &self.settings.kinds;
            let amount = |amount: i64| kinds.unit(excess.kind).format(amount);
            OverLimit {
                kind: kinds.name(excess.kind).to_owned(),
                limit: amount(excess.limit),
                over: amount(excess.over),
                asked: amount(excess.asked),
                ever: excess.asked <= excess.limit,
            }
        };
        Some(match self.limit_on(leaf, shape, now)? {
            Limit::Quota(of) => LimitReason::Quota { queue: queue_name(), by: excess(of) },
            Limit::Cap(of) => {
                let class = self.shares.class_names[usize::from(queue.class)].to_string();
                LimitReason::Cap { class, by: excess(of) }
            }
            Limit::NonPreemptible { fades } => LimitReason::NonPreemptible { fades },
            Limit::ExcessBudget => LimitReason::ExcessBudget,
            Limit::Rate { until } => LimitReason::Rate { until },
        })
    }

    /// Waiting tasks of other groups that come first: those of strict bands before its own, and in its own
    /// queue those that are before it in order.
    pub(super) fn tasks_ahead_of(&self, id: GroupId) -> u64 {
        let Some(own) = self.group(id) else { return 0 };
        let waiting_roles = own.roles.iter().filter(|role| role.waiting() > 0);
        let Some(order) = waiting_roles.map(|role| role.order).min() else { return 0 };
        let own_leaf = self.leaf_of_group(id);
        let level = self.shares.leaf(own_leaf).level;
        let before = self.shares.leaves.iter().filter(|other| other.level < level);
        let of_bands: u64 = before.map(|leaf| leaf.waiting).sum();
        let of_queue: u64 =
            self.shapes_waiting_in(own_leaf).map(|shape| self.tasks_before(shape, order)).sum();
        of_bands + of_queue
    }
}
