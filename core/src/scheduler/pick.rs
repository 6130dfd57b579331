//! Who is served next: the share whose turn it is, and in it the first shape that can be served now.
//!
//! Strict bands go first, one after the other. Inside a level classes are compared, inside a class its
//! queues, by the keys that the settings name, each with the job it would have served next. A share that
//! has nothing to be served is out for the rest of the turn: what others are given only takes room away.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::id::NodeId;
use crate::settings::{JobKey, ShareKey};
use crate::shares::ratio::Weight;
use crate::time::{Span, Time};

use super::Scheduler;
use super::account::{Account, Price, QUANTUM};
use super::keys::{Key, Scales, Wish};
use super::leaf::LeafId;
use super::near::{Candidate, Filing};
use super::nodes::Nodes;
use super::order::Order;
use super::shapes::{ShapeId, ShapeKey, Shapes};
use super::shares::{class_weight, weight_of};

/// Run time is compared as it will be after so many more runs of the usual length.
const RUNS_AHEAD: u64 = 4;

/// What a leaf can have served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Offer {
    /// The head of an open shape, anywhere.
    Open(ShapeId),
    /// The head of a shape, on a node that gained room.
    Near(Candidate),
}

impl Offer {
    fn shape(self) -> ShapeId {
        match self {
            Offer::Open(shape) => shape,
            Offer::Near(candidate) => candidate.shape,
        }
    }
}

/// What is served next: so many tasks at most before the shares are compared again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    pub(super) leaf: LeafId,
    pub(super) offer: Offer,
    pub(super) most: u32,
    order: Order,
}

impl Pick {
    /// The head of a shape, wherever there is room for it.
    pub(super) fn of(leaf: LeafId, order: Order, shape: ShapeId) -> Pick {
        Pick { leaf, offer: Offer::Open(shape), most: 1, order }
    }

    /// The older, the smaller.
    pub(super) fn age(&self, key: JobKey) -> (u64, Order) {
        self.order.age(key)
    }
}

/// One turn of picking: the nodes that gained room, filed leaf by leaf as the leaves come up.
#[derive(Debug)]
pub(super) struct Round {
    number: u64,
    now: Time,
    touched: Vec<NodeId>,
    /// By leaf: what is filed for those that have come up.
    near: Vec<Filing>,
    /// By leaf, where few nodes were touched: whether one of them may have room for something that waits
    /// there. That only becomes less while a turn plans.
    hopes: Vec<bool>,
}

impl Round {
    pub(super) fn new(number: u64, now: Time, mut touched: Vec<NodeId>) -> Round {
        touched.sort_unstable();
        touched.dedup();
        Round { number, now, touched, near: Vec::new(), hopes: Vec::new() }
    }

    fn near(&mut self, leaf: LeafId, nodes: &Nodes, shapes: &Shapes) -> Option<Candidate> {
        if self.touched.is_empty() {
            return None;
        }
        if self.near.len() <= leaf.index() {
            self.near.resize_with(leaf.index() + 1, Filing::default);
        }
        let filing = &mut self.near[leaf.index()];
        if matches!(filing, Filing::NotYet) {
            *filing = Filing::of(leaf, &self.touched, nodes, shapes);
        }
        filing.first(leaf, nodes, shapes)
    }

    /// Whether it is plain without filing anything that no touched node has room for what waits. Where many
    /// were touched that is not worth a look.
    fn has_nothing_near(&mut self, nodes: &Nodes, shapes: &Shapes) -> bool {
        const FEW: usize = 4;
        if self.touched.len() > FEW {
            return false;
        }
        self.hopes.clear();
        self.hopes.resize(shapes.leaves(), false);
        let entries = self.touched.iter().filter_map(|node| nodes.get(*node));
        for entry in entries.filter(|entry| entry.takes_work()) {
            shapes.note_hopes(entry, &mut self.hopes);
        }
        !self.hopes.contains(&true)
    }

    /// Whether it is plain that no touched node has room for anything of a leaf.
    fn is_hopeless(&self, leaf: LeafId) -> bool {
        self.hopes.get(leaf.index()) == Some(&false)
    }

    /// A candidate was dealt with: its node is filed anew.
    pub(super) fn served(&mut self, leaf: LeafId, candidate: Candidate, nodes: &Nodes, shapes: &Shapes) {
        match &mut self.near[leaf.index()] {
            Filing::One(filed) => *filed = filed.again(leaf, nodes, shapes),
            Filing::Many(near) => {
                near.take(candidate.shape);
                near.file(candidate.node, nodes, shapes);
            }
            Filing::NotYet => unreachable!("the candidate was filed"),
        }
    }

    /// The nodes that may still have room for something.
    pub(super) fn into_nodes(self, nodes: &Nodes) -> Vec<NodeId> {
        let takes_work = |node: &NodeId| nodes.get(*node).is_some_and(|entry| entry.takes_work());
        self.touched.into_iter().filter(takes_work).collect()
    }
}

impl Scheduler {
    /// What is served next; `None` when nothing more can be.
    pub(super) fn pick(&mut self, round: &mut Round) -> Option<Pick> {
        if !self.shapes.any_open() && round.has_nothing_near(&self.nodes, &self.shapes) {
            return None;
        }
        // What is above the minima of elastic groups comes after everything else.
        let levels = self.settings.shares.levels() * if self.shares.any_surplus() { 2 } else { 1 };
        (0..levels).find_map(|level| {
            let pick = match self.settings.shares.share_key {
                ShareKey::Entitlement => self.pick_entitled(level, round),
                _ => self.pick_class(level, round),
            };
            pick.or_else(|| self.pick_last(level, round))
        })
    }

    /// The class whose turn it is by the key of classes, and what is served of it.
    fn pick_class(&mut self, level: usize, round: &mut Round) -> Option<Pick> {
        let (key_kind, job_key) = (self.settings.shares.share_key, self.settings.shares.job_key);
        let mut best: Option<(Key, Pick)> = None;
        for class in 0..self.shares.classes.len() {
            if self.shares.waiting(level, class).active.is_empty() || self.shares.is_last(class) {
                continue;
            }
            let Some(pick) = self.pick_queue(level, class, round) else { continue };
            if self.shares.classes.len() == 1 {
                return Some(pick);
            }
            let weight = class_weight(class, &self.settings.shares).unwrap_or(Weight::ONE);
            let key = self.key(key_kind, KeyOf::Class(class), weight, &pick, round.now);
            if best.as_ref().is_none_or(|best| goes_before((&key, &pick), best, job_key)) {
                best = Some((key, pick));
            }
        }
        // Others may be next after one task.
        best.map(|(_, pick)| Pick { most: 1, ..pick })
    }

    /// By entitlement and loan: whoever has a grant.
    fn pick_entitled(&mut self, level: usize, round: &mut Round) -> Option<Pick> {
        while let Some((class, grant)) = self.granted(level) {
            let Some(pick) = self.pick_queue(level, class, round) else {
                self.grants.as_mut().expect("there was a grant").give_up(class);
                continue;
            };
            let price = self.price_of(pick.offer.shape());
            let affordable = grant.div_ceil(self.units_of(pick.offer.shape(), price).max(1));
            return Some(Pick { most: pick.most.min(affordable.min(u64::from(u32::MAX)) as u32), ..pick });
        }
        None
    }

    /// What nobody above 0% can use goes to the classes of 0%, the oldest job first.
    fn pick_last(&mut self, level: usize, round: &mut Round) -> Option<Pick> {
        let key = self.settings.shares.job_key;
        let mut best: Option<Pick> = None;
        for class in 0..self.shares.classes.len() {
            if !self.shares.is_last(class) {
                continue;
            }
            let Some(pick) = self.pick_queue(level, class, round) else { continue };
            if best.as_ref().is_none_or(|best| pick.age(key) < best.age(key)) {
                best = Some(pick);
            }
        }
        best.map(|pick| Pick { most: 1, ..pick })
    }

    /// The queue of a class whose turn it is, and what is served of it.
    fn pick_queue(&mut self, level: usize, class: usize, round: &mut Round) -> Option<Pick> {
        let (key_kind, job_key) = (self.settings.shares.queue_key, self.settings.shares.job_key);
        let one_by_one = job_key != JobKey::Priority || level >= self.settings.shares.levels();
        let mut best: Option<(Key, Pick)> = None;
        // Nothing begins to wait while it is asked for offers.
        let active: SmallVec<[LeafId; 16]> =
            self.shares.waiting(level, class).active.iter().copied().collect();
        let mut active = active.into_iter().peekable();
        while let Some(leaf) = active.next() {
            if self.shares.leaf(leaf).exhausted == round.number {
                continue;
            }
            let is_hopeless = round.is_hopeless(leaf) && self.shapes.leaf(leaf).first_open().is_none();
            let offer = if is_hopeless { None } else { self.offer(leaf, round) };
            let Some((order, offer)) = offer else {
                self.shares.leaves[leaf.index()].exhausted = round.number;
                continue;
            };
            let pick =
                Pick { leaf, offer, order, most: if one_by_one || self.limited { 1 } else { u32::MAX } };
            if best.is_none() && active.peek().is_none() {
                return Some(pick);
            }
            let weight = weight_of(self.shares.queue_of(leaf), &self.settings.shares);
            let key = self.key(key_kind, KeyOf::Queue(leaf), weight, &pick, round.now);
            let pick = Pick { most: 1, ..pick };
            if best.as_ref().is_none_or(|best| goes_before((&key, &pick), best, job_key)) {
                best = Some((key, pick));
            }
        }
        best.map(|(_, pick)| pick)
    }

    /// The first shape of a leaf that can be served now. What runs into a limit stands aside, and what
    /// stands otherwise by now takes its place anew.
    fn offer(&mut self, leaf: LeafId, round: &mut Round) -> Option<(Order, Offer)> {
        loop {
            let near = round.near(leaf, &self.nodes, &self.shapes);
            let (order, offer) = match (self.shapes.leaf(leaf).first_open(), near) {
                (Some((order, shape)), near) if near.is_none_or(|near| order <= near.order) => {
                    (order, Offer::Open(shape))
                }
                (_, near) => near.map(|near| (near.order, Offer::Near(near)))?,
            };
            if self.settings.shares.job_key == JobKey::RunTime && self.has_run_on(offer.shape(), round.now) {
                continue;
            }
            match self.limit_on(leaf, offer.shape(), round.now) {
                None if self.headroom_limit(leaf, offer.shape()).is_some() => {
                    self.keep_headroom(offer.shape());
                }
                None => return Some((order, offer)),
                Some(limit) => self.stand_aside(leaf, offer.shape(), limit, round.now),
            }
        }
    }

    pub(super) fn key(&self, kind: ShareKey, of: KeyOf, weight: Weight, pick: &Pick, now: Time) -> Key {
        let account = match of {
            KeyOf::Class(class) => &self.shares.classes[class],
            KeyOf::Queue(leaf) => &self.shares.queue_of(leaf).account,
        };
        self.key_by(kind, account, weight, (pick.order, pick.offer.shape()), now)
    }

    /// The key of a share with these books if the head of a shape were served.
    pub(super) fn key_by(
        &self,
        kind: ShareKey,
        account: &Account,
        weight: Weight,
        (order, shape): (Order, ShapeId),
        now: Time,
    ) -> Key {
        let request = self.shapes.get(shape).total_request();
        let wish = Wish { order, cost: self.price_of(shape).cost, request: &request };
        let capacity = |kind| self.nodes.capacity(kind);
        let (ahead, settings) = (self.ahead(), &self.settings.shares);
        let scales = Scales { now, ahead, settings, capacity: &capacity };
        scales.key(kind, account, weight, wish)
    }

    /// How far run time looks ahead.
    pub(super) fn ahead(&self) -> Span {
        Span(self.mean_run.max(QUANTUM).0.saturating_mul(RUNS_AHEAD))
    }

    /// What the head of a shape counts for: one task, or a whole atomic group.
    pub(super) fn price_of(&self, shape: ShapeId) -> Price {
        let (settings, kinds) = (&self.settings.shares, &self.settings.kinds);
        match &self.shapes.get(shape).key {
            ShapeKey::Task(spec) => Price::of(&spec.request, settings, kinds),
            ShapeKey::Gang(roles, _) => {
                roles.iter().fold(Price { cost: 0, slots: 0 }, |sum, (spec, count)| {
                    let price = Price::of(&spec.request, settings, kinds);
                    let count = u64::from(*count);
                    Price {
                        cost: sum.cost + price.cost * u128::from(count),
                        slots: sum.slots + price.slots * count,
                    }
                })
            }
        }
    }
}

/// Whether a share goes before another of its level: by the key, and of equals the one whose work came first.
pub(super) fn goes_before((key, pick): (&Key, &Pick), (least, best): &(Key, Pick), job_key: JobKey) -> bool {
    key.compare(least).then_with(|| pick.age(job_key).cmp(&best.age(job_key))) == Ordering::Less
}

pub(super) enum KeyOf {
    Class(usize),
    Queue(LeafId),
}
