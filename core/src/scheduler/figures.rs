//! What the Rebalancer is told: how each class stands against its percent of all there is.

use crate::messages::{Outbox, RebalancerMessage, ShareFigure};

use super::Scheduler;

impl Scheduler {
    /// How the classes stand now, in the order of the settings; none if there are no classes.
    pub fn share_figures(&self) -> Vec<ShareFigure> {
        let Some(classes) = &self.settings.shares.classes else { return Vec::new() };
        let total = u128::from(self.total_units());
        let percents = classes.percents.classes().iter().enumerate();
        let figure = |(class, percent): (usize, &crate::shares::classes::ClassPercent)| {
            let held = u128::from(self.running_units(class)) * 100;
            ShareFigure {
                target_percent: u32::try_from(percent.percent).unwrap_or(u32::MAX),
                held_percent: u32::try_from(held.checked_div(total).unwrap_or(0)).unwrap_or(u32::MAX),
                has_waiting: self.shares.class_waits(class),
            }
        };
        percents.map(figure).collect()
    }

    /// The same, as they will be once everything has ended that was told to and everybody has started for
    /// whom something is kept.
    fn supposed_figures(&mut self) -> Vec<ShareFigure> {
        if self.earmarks.is_empty() && self.live.stopping().next().is_none() {
            return self.share_figures();
        }
        let accounts = self.shares.accounts();
        self.suppose_books(self.now);
        let figures = self.share_figures();
        self.shares.restore_accounts(accounts);
        figures
    }

    /// Tells the Rebalancer how the classes stand, if anything about that has changed.
    pub(super) fn push_figures(&mut self, out: &mut Outbox) {
        let figures = match self.settings.rebalance.threshold {
            0 => Vec::new(),
            _ => self.supposed_figures(),
        };
        if figures != self.last_figures {
            self.last_figures = figures.clone();
            out.rebalancer.push(RebalancerMessage::Shares(figures));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::machine::Machine;
    use crate::messages::SchedulerMessage;
    use crate::settings::{RawClass, RawRebalance, RawSettings};
    use crate::time::Time;

    fn settings(threshold: u64) -> SchedulerMessage {
        let class = |name: &str, percent| RawClass {
            name: name.into(),
            percent,
            requestors: vec![format!("^{name}")],
            cap: None,
        };
        let mut raw = RawSettings::default();
        raw.shares.classes = Some(vec![class("a", 60), class("b", 40)]);
        raw.rebalance = RawRebalance { threshold: Some(threshold), ..RawRebalance::default() };
        SchedulerMessage::Settings(Arc::new(raw.validate().expect("good settings")))
    }

    #[test]
    fn figures_are_pushed_when_they_changed_and_only_when_somebody_wants_them() {
        let mut scheduler = Scheduler::new(Arc::default());
        let mut out = Outbox::default();
        scheduler.receive(Time(0), vec![settings(0)], &mut out);
        assert_eq!(out.rebalancer, []);
        scheduler.receive(Time(1), vec![settings(20)], &mut out);
        let figure = |target_percent| ShareFigure { target_percent, held_percent: 0, has_waiting: false };
        assert_eq!(out.rebalancer, [RebalancerMessage::Shares(vec![figure(60), figure(40)])]);
        scheduler.receive(Time(2), Vec::new(), &mut out);
        assert_eq!(out.rebalancer.len(), 1, "nothing has changed");
        scheduler.receive(Time(3), vec![settings(0)], &mut out);
        assert_eq!(out.rebalancer[1], RebalancerMessage::Shares(Vec::new()));
    }
}
