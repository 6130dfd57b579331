//! The Rebalancer: the imbalance clock. It plans nothing itself; it only says when the gate opens.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::machine::{Broken, Machine, promise};
use crate::messages::{Outbox, RebalancerMessage, SchedulerMessage, ShareFigure};
use crate::settings::Settings;
use crate::time::Time;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rebalancer {
    settings: Arc<Settings>,
    spread: u32,
    /// Since when the spread has been over the threshold without a break.
    over_since: Option<Time>,
    gate_open: bool,
    /// What the Scheduler was told of the clock.
    told: Option<Time>,
}

impl Rebalancer {
    pub fn new(settings: Arc<Settings>) -> Rebalancer {
        Rebalancer { settings, spread: 0, over_since: None, gate_open: false, told: None }
    }

    pub fn is_gate_open(&self) -> bool {
        self.gate_open
    }

    /// Starts or resets the clock as the spread stands against the threshold.
    fn judge(&mut self, now: Time) {
        let threshold = self.settings.rebalance.threshold;
        let over = threshold > 0 && u64::from(self.spread) > threshold;
        match over {
            true => self.over_since = self.over_since.or(Some(now)),
            false => self.over_since = None,
        }
    }

    fn opens_at(&self) -> Option<Time> {
        Some(self.over_since? + self.settings.rebalance.duration)
    }
}

/// The largest distance between a share below and a share above its target, in percent points,
/// among shares that have work waiting or are above.
fn spread(figures: &[ShareFigure]) -> u32 {
    if figures.len() < 2 {
        return 0;
    }
    let below = figures.iter().filter(|figure| figure.has_waiting);
    let most_below = below.map(|figure| figure.target_percent.saturating_sub(figure.held_percent)).max();
    let most_above =
        figures.iter().map(|figure| figure.held_percent.saturating_sub(figure.target_percent)).max();
    most_below.unwrap_or(0) + most_above.unwrap_or(0)
}

impl Machine for Rebalancer {
    type Message = RebalancerMessage;

    fn receive(&mut self, now: Time, batch: Vec<RebalancerMessage>, out: &mut Outbox) {
        for message in batch {
            match message {
                RebalancerMessage::Shares(figures) => self.spread = spread(&figures),
                // What was stopped has to show its effect: the clock begins anew.
                RebalancerMessage::Rebalanced => self.over_since = None,
                RebalancerMessage::Settings(settings) => self.settings = settings,
            }
        }
        self.judge(now);
        let open = self.opens_at().is_some_and(|opens_at| opens_at <= now);
        if open != self.gate_open {
            self.gate_open = open;
            out.scheduler.push(SchedulerMessage::Gate { open });
        }
        let opens = self.opens_at().filter(|_| !open);
        if opens != self.told {
            self.told = opens;
            out.scheduler.push(SchedulerMessage::GateClock { opens });
        }
    }

    fn wake_at(&self) -> Option<Time> {
        if self.gate_open { None } else { self.opens_at() }
    }

    fn check(&self) -> Result<(), Broken> {
        promise!(8, !self.gate_open || self.over_since.is_some(), "the gate is open without imbalance");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RebalanceSettings;
    use crate::time::Span;

    fn figures(held: u32) -> RebalancerMessage {
        RebalancerMessage::Shares(vec![
            ShareFigure { target_percent: 60, held_percent: 100 - held, has_waiting: true },
            ShareFigure { target_percent: 40, held_percent: held, has_waiting: false },
        ])
    }

    fn machine() -> Rebalancer {
        let rebalance =
            RebalanceSettings { threshold: 20, duration: Span(100), ..RebalanceSettings::default() };
        Rebalancer::new(Arc::new(Settings { rebalance, ..Settings::default() }))
    }

    #[test]
    fn the_gate_opens_only_after_imbalance_without_a_break() {
        let mut rebalancer = machine();
        let mut out = Outbox::default();
        rebalancer.receive(Time(0), vec![figures(60)], &mut out);
        assert_eq!(rebalancer.wake_at(), Some(Time(100)));
        rebalancer.receive(Time(50), vec![figures(45)], &mut out);
        assert_eq!(rebalancer.wake_at(), None, "the spread fell back: the clock is reset");
        rebalancer.receive(Time(60), vec![figures(60)], &mut out);
        let clock = |opens| SchedulerMessage::GateClock { opens };
        let told = [clock(Some(Time(100))), clock(None), clock(Some(Time(160)))];
        assert_eq!(out.scheduler, told, "when it would open, and that it would not");
        rebalancer.wake(Time(160), &mut out);
        assert_eq!(out.scheduler[3..], [SchedulerMessage::Gate { open: true }, clock(None)]);
        rebalancer.receive(Time(170), vec![figures(40)], &mut out);
        assert_eq!(out.scheduler[5], SchedulerMessage::Gate { open: false });
    }

    #[test]
    fn after_a_round_of_stops_the_clock_begins_anew() {
        let mut rebalancer = machine();
        let mut out = Outbox::default();
        rebalancer.receive(Time(0), vec![figures(70)], &mut out);
        rebalancer.wake(Time(100), &mut out);
        rebalancer.receive(Time(110), vec![figures(65), RebalancerMessage::Rebalanced], &mut out);
        let clock = SchedulerMessage::GateClock { opens: Some(Time(210)) };
        assert_eq!(out.scheduler[3..], [SchedulerMessage::Gate { open: false }, clock]);
        assert_eq!(rebalancer.wake_at(), Some(Time(210)), "still too far apart: it may open again");
    }

    #[test]
    fn the_spread_must_exceed_the_threshold() {
        let mut rebalancer = machine();
        rebalancer.receive(Time(0), vec![figures(50)], &mut Outbox::default());
        assert_eq!(rebalancer.wake_at(), None, "10 below and 10 above are just the threshold");
        rebalancer.receive(Time(0), vec![figures(51)], &mut Outbox::default());
        assert_eq!(rebalancer.wake_at(), Some(Time(100)));
    }

    #[test]
    fn who_wants_nothing_is_not_below() {
        let figure = |target_percent, held_percent, has_waiting| ShareFigure {
            target_percent,
            held_percent,
            has_waiting,
        };
        assert_eq!(spread(&[figure(60, 0, false), figure(40, 100, true)]), 60);
        assert_eq!(spread(&[figure(60, 0, true), figure(40, 100, false)]), 120);
        assert_eq!(spread(&[figure(60, 0, true), figure(40, 10, true)]), 60);
        assert_eq!(spread(&[figure(100, 0, true)]), 0, "nobody to take from");
    }

    #[test]
    fn without_a_threshold_the_gate_stays_closed() {
        let mut rebalancer = Rebalancer::new(Arc::new(Settings::default()));
        rebalancer.receive(Time(0), vec![figures(100)], &mut Outbox::default());
        assert_eq!(rebalancer.wake_at(), None);
    }
}
