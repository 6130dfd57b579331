//! How much each class and each queue holds against what it should, for whoever measures.

use std::collections::BTreeMap;

use metrics::{Gauge, gauge};
use plimsoll_core::share_report::{ShareName, ShareStatus};

#[derive(Default)]
pub(crate) struct ShareGauges {
    shares: BTreeMap<ShareName, OfShare>,
}

struct OfShare {
    held: Gauge,
    target: Gauge,
    waiting: Gauge,
}

/// More shares than this are not measured one by one.
const SHARES_MAX: usize = 1_000;

impl ShareGauges {
    pub(crate) fn show(&mut self, shares: &[ShareStatus]) {
        for share in shares.iter().take(SHARES_MAX) {
            let gauges = self.shares.entry(share.name.clone()).or_insert_with(|| OfShare::new(&share.name));
            gauges.held.set(share.unit.whole(share.held));
            gauges.target.set(share.unit.whole(share.target));
            gauges.waiting.set(share.waiting as f64);
        }
    }
}

impl OfShare {
    fn new(name: &ShareName) -> OfShare {
        let class = name.class.to_string();
        let queue = name.queue.as_deref().unwrap_or("*").to_owned();
        let labels = [("class", class), ("queue", queue)];
        OfShare {
            held: gauge!("plimsoll_share_held", &labels),
            target: gauge!("plimsoll_share_target", &labels),
            waiting: gauge!("plimsoll_share_waiting_tasks", &labels),
        }
    }
}
