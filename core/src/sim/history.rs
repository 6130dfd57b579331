//! What failed where, as the Scheduler heard it: a plain list, from which its flags are computed anew.

use std::collections::BTreeMap;

use crate::id::{GroupId, NodeId};
use crate::machine::{Broken, promise};
use crate::messages::{PastFailure, SchedulerMessage};
use crate::scheduler::Scheduler;
use crate::settings::FaultySettings;
use crate::time::Time;

type Service = (String, u64);

#[derive(Clone, Debug)]
pub(super) struct History {
    settings: FaultySettings,
    /// The service of each role whose tasks may choose their node.
    roles: BTreeMap<(GroupId, u16), Service>,
    failures: BTreeMap<(Service, NodeId), Vec<Time>>,
}

impl History {
    pub(super) fn new(settings: FaultySettings) -> History {
        History { settings, roles: BTreeMap::new(), failures: BTreeMap::new() }
    }

    pub(super) fn hear(&mut self, now: Time, message: &SchedulerMessage) {
        match message {
            SchedulerMessage::NewGroups(groups) => {
                for group in groups {
                    for (role, arrival) in group.roles.iter().enumerate() {
                        let service = arrival.shape.service.clone();
                        if let Some(service) = service.filter(|_| arrival.shape.rules.node.is_none()) {
                            self.roles.insert((group.group, role as u16), *service);
                        }
                    }
                }
            }
            SchedulerMessage::Released(ended) => {
                for end in ended.iter().filter(|end| end.outcome.is_failure()) {
                    let task = end.attempt.task;
                    if let Some(service) = self.roles.get(&(task.group, task.role)) {
                        self.note(service.clone(), end.node, now);
                    }
                }
            }
            SchedulerMessage::PastFailures(failures) => {
                for PastFailure { service, node, at } in failures.iter().cloned() {
                    self.note(service, node, at);
                }
            }
            SchedulerMessage::Nodes(news) => {
                for gone in news.iter().filter(|news| news.view.is_none()) {
                    self.failures.retain(|(_, node), _| *node != gone.node);
                }
            }
            SchedulerMessage::Settings(settings) if settings.faulty != self.settings => {
                self.change_settings(now, settings.faulty);
            }
            _ => {}
        }
    }

    fn note(&mut self, service: Service, node: NodeId, at: Time) {
        if self.settings.failures > 0 {
            self.failures.entry((service, node)).or_default().push(at);
        }
    }

    /// What the old rules had no use for has been forgotten when new rules come.
    fn change_settings(&mut self, now: Time, settings: FaultySettings) {
        let old = std::mem::replace(&mut self.settings, settings);
        if settings.failures == 0 {
            self.failures.clear();
        }
        for times in self.failures.values_mut() {
            let newest = times[times.len() - 1];
            times.retain(|time| *time + old.within >= newest);
            let spare = times.len().saturating_sub(old.failures.min(settings.failures) as usize);
            times.drain(..spare);
        }
        self.failures.retain(|_, times| times[times.len() - 1] + old.within >= now);
    }

    fn flags(&self, now: Time) -> BTreeMap<Service, Vec<NodeId>> {
        let (failures, within) = (self.settings.failures as usize, self.settings.within);
        let mut flags: BTreeMap<Service, Vec<NodeId>> = BTreeMap::new();
        for ((service, node), times) in &self.failures {
            if times.iter().filter(|time| **time + within >= now).count() >= failures {
                flags.entry(service.clone()).or_default().push(*node);
            }
        }
        flags
    }

    /// The Scheduler avoids exactly the nodes that it has reason to avoid.
    pub(super) fn check(&self, now: Time, scheduler: &Scheduler) -> Result<(), Broken> {
        let (expected, found) = (self.flags(now), scheduler.flags());
        promise!(7, found == expected, "the Scheduler avoids {found:?}, what failed says {expected:?}");
        Ok(())
    }
}
