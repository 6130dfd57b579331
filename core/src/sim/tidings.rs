//! What everybody in the world is told.

use std::sync::Arc;

use crate::messages::{
    ClusterMessage, JobMessage, MonitorMessage, RebalancerMessage, RunnerMessage, SchedulerMessage,
};
use crate::settings::Settings;

use super::links::{Batch, Party};
use super::world::World;

impl World {
    /// Every machine works with these settings once it is told.
    pub fn tell_settings(&mut self, settings: &Arc<Settings>) {
        let settings = || Arc::clone(settings);
        self.tell(Party::Jobs, Batch::Jobs(vec![JobMessage::Settings(settings())]));
        self.tell(Party::Cluster, Batch::Cluster(vec![ClusterMessage::Settings(settings())]));
        self.tell(Party::Scheduler, Batch::Scheduler(vec![SchedulerMessage::Settings(settings())]));
        self.tell(Party::Runner, Batch::Runner(vec![RunnerMessage::Settings(settings())]));
        if self.monitor.is_some() {
            self.tell(Party::Monitor, Batch::Monitor(vec![MonitorMessage::Settings(settings())]));
        }
        self.tell(Party::Rebalancer, Batch::Rebalancer(vec![RebalancerMessage::Settings(settings())]));
    }
}
