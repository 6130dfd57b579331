//! The machines that decide, all five of one runtime. Agents come and go with their nodes.

use std::sync::Arc;

use crate::cluster_state::ClusterState;
use crate::job_state::JobState;
use crate::rebalancer::Rebalancer;
use crate::scheduler::Scheduler;
use crate::settings::Settings;
use crate::task_runner::TaskRunner;

#[derive(Clone, Debug)]
pub struct Machines {
    pub jobs: JobState,
    pub scheduler: Scheduler,
    pub cluster: ClusterState,
    pub runner: TaskRunner,
    pub rebalancer: Rebalancer,
}

impl Machines {
    pub fn new(settings: &Arc<Settings>) -> Machines {
        Machines {
            jobs: JobState::new(Arc::clone(settings)),
            scheduler: Scheduler::new(Arc::clone(settings)),
            cluster: ClusterState::new(Arc::clone(settings)),
            runner: TaskRunner::new(Arc::clone(settings)),
            rebalancer: Rebalancer::new(Arc::clone(settings)),
        }
    }
}
