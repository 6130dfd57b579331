//! What the gate means for one task that runs, computed when somebody asks.

use crate::gate_explanation::{Protection, RunningTask, Threat};
use crate::id::TaskId;
use crate::time::Time;

use super::Scheduler;
use super::live::LiveView;

impl Scheduler {
    /// What could stop this task and what protects it; `None` if it does not run.
    pub(super) fn explain_running(&self, task: TaskId) -> Option<RunningTask> {
        let group = self.group(task.group)?;
        let live = self.live.of_group(group.live).find(|live| live.attempt.task == task)?;
        let (mut threats, mut protections) = (Vec::new(), Vec::new());
        if !self.settings.rebalance.any() {
            protections.push(Protection::Off);
            return Some(RunningTask { since: live.since, stopping: live.stopping, threats, protections });
        }
        let stops = self.stops_of(task);
        match self.protected_until(live) {
            Some(Time::NEVER) if self.is_firm(task) => protections.push(Protection::Firm),
            Some(Time::NEVER) => protections.push(Protection::StoppedBefore { times: stops }),
            Some(until) if until > self.now => protections.push(Protection::Until { until }),
            _ => {}
        }
        self.judge_causes(live, &mut threats, &mut protections);
        if self.guarded_until(live).is_some_and(|until| until > self.now) {
            threats.clear();
        } else if self.rests_until(live.attempt.slot).is_some_and(|until| until > self.now) {
            // Strict bands need not wait until the size of a group has rested.
            let level = self.shares.leaf(self.leaf_of(task.job())).level;
            let wakes = |threat: &Threat| match threat {
                Threat::HigherWork => true,
                Threat::Minimum => level > 0,
                _ => false,
            };
            let is_woken = threats.iter().any(wakes);
            threats = is_woken.then_some(Threat::HigherWork).into_iter().collect();
        }
        Some(RunningTask { since: live.since, stopping: live.stopping, threats, protections })
    }

    fn judge_causes(&self, live: &LiveView, threats: &mut Vec<Threat>, protections: &mut Vec<Protection>) {
        let rebalance = self.settings.rebalance;
        let leaf = self.shares.leaf(self.leaf_of(live.attempt.task.job()));
        let outlives = self.outlives_at(live);
        let lives_on = match outlives {
            Time::NEVER => Some(Protection::NoLifetime),
            until if until > self.now => Some(Protection::Lifetime { until }),
            _ => None,
        };
        if rebalance.higher || rebalance.lifetime {
            match (leaf.level, &lives_on) {
                (0, _) => protections.push(Protection::Band),
                (_, Some(_)) if !rebalance.higher => {}
                _ => threats.push(Threat::HigherWork),
            }
        }
        if rebalance.elastic && self.is_above_minimum(live) {
            threats.push(Threat::Minimum);
        }
        if self.yields_to_somebody(live) {
            threats.push(Threat::Claimant);
        }
        if rebalance.threshold > 0 && self.settings.shares.classes.is_some() {
            let class = usize::from(leaf.class);
            match self.running_units(class) > self.class_targets()[class] {
                true => threats.push(Threat::Imbalance { open: self.gate_open }),
                false => protections.push(Protection::ClassWithinPercent),
            }
        }
        let by_queue = rebalance.lifetime || rebalance.protected_fraction.is_some();
        if by_queue && !self.shares.is_plain() {
            let (held, kept) = self.held_and_kept(leaf.queue);
            match (held > kept, &lives_on) {
                (true, None) => threats.push(Threat::FairShare),
                (false, _) => protections.push(Protection::QueueWithinShare),
                (true, Some(_)) => {}
            }
        }
        if by_queue {
            protections.extend(lives_on);
        }
    }

    /// Whether its elastic group would go on without it: it is one of the newest above the minimum.
    fn is_above_minimum(&self, live: &LiveView) -> bool {
        let task = live.attempt.task;
        let Some(group) = self.group(task.group).filter(|_| self.goes_on(task.group)) else { return false };
        let of_role = self.live.of_group(group.live).filter(|one| one.attempt.task.role == task.role);
        let newer = of_role.filter(|one| !one.stopping && (one.since, one.attempt.task) > (live.since, task));
        (newer.count() as u32) < self.above_minimum(task.group, task.role)
    }
}
