//! How shares of one level are compared, by the key that the settings name.

use std::cmp::Ordering;

use crate::resources::{KindId, Resources};
use crate::settings::{ShareKey, ShareSettings};
use crate::shares::flow::FlowValue;
use crate::shares::ratio::{Fraction, Weight};
use crate::shares::run_time::{self, VirtualTime};
use crate::time::{Span, Time};

use super::account::Account;
use super::order::Order;
use super::shares::{WHOLE, dominant_parts};

/// What a share is compared by; smaller goes first. Keys of one level are all of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    Arrival(Order),
    Flow(FlowValue, Weight),
    Part(Fraction),
    RunTime(VirtualTime, Weight),
}

impl Key {
    pub(super) fn compare(&self, other: &Key) -> Ordering {
        match (self, other) {
            (Key::Arrival(one), Key::Arrival(other)) => one.cmp(other),
            (Key::Flow(one, weight), Key::Flow(other, other_weight)) => {
                one.compare(*weight, *other, *other_weight)
            }
            (Key::Part(one), Key::Part(other)) => one.cmp(other),
            (Key::RunTime(one, weight), Key::RunTime(other, other_weight)) => {
                run_time::compare((*one, *weight), (*other, *other_weight))
            }
            _ => unreachable!("keys of one level are of one kind"),
        }
    }
}

/// What a key is computed from, apart from the share itself.
pub(super) struct Scales<'a> {
    pub(super) now: Time,
    /// Run time is compared as it will be in so long.
    pub(super) ahead: Span,
    pub(super) settings: &'a ShareSettings,
    /// Of each kind, all there is.
    pub(super) capacity: &'a dyn Fn(KindId) -> i128,
}

/// What would be served: its order, what it costs and what it requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish<'a> {
    pub(super) order: Order,
    pub(super) cost: u128,
    pub(super) request: &'a Resources,
}

impl Scales<'_> {
    /// The key of a share if this wish of it were fulfilled.
    pub(super) fn key(&self, kind: ShareKey, account: &Account, weight: Weight, wish: Wish<'_>) -> Key {
        match kind {
            ShareKey::Fifo | ShareKey::Entitlement => Key::Arrival(wish.order),
            ShareKey::Flow => {
                let flow = account.flow.value(self.now, self.settings.half_time);
                Key::Flow(flow.plus(wish.cost), weight)
            }
            ShareKey::Dominant => {
                let mut usage = account.usage.clone();
                usage.add(wish.request, 1);
                let parts = dominant_parts(&usage, self.capacity);
                Key::Part(Fraction::new(u128::from(parts), u128::from(WHOLE)).over(weight))
            }
            ShareKey::RunTime => {
                Key::RunTime(account.clock.ahead(self.now, account.cost, wish.cost, self.ahead), weight)
            }
        }
    }
}
