//! Snapshots: every machine at one consistent cut, with the batches that were on their way.
//!
//! All shells are held first, then photographed. Whatever one had sent before it was held is in
//! another's mailbox by then and is kept aside there, so it is part of that one's photograph:
//! nothing is lost and nothing is there twice.

use std::sync::Arc;

use actix::Addr;
use plimsoll_core::cluster_state::ClusterState;
use plimsoll_core::codec::{self, CodecError};
use plimsoll_core::job_state::JobState;
use plimsoll_core::machine::Broken;
use plimsoll_core::machines::Machines;
use plimsoll_core::rebalancer::Rebalancer;
use plimsoll_core::scheduler::Scheduler;
use plimsoll_core::settings::Settings;
use plimsoll_core::task_runner::TaskRunner;
use plimsoll_core::time::Time;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::router::Router;
use crate::shell::{Hold, Photograph, Resume, Seated, Shell};

/// A runtime's whole state at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub taken: Time,
    pub settings: Settings,
    pub(crate) last_ticket: u64,
    jobs: Vec<u8>,
    scheduler: Vec<u8>,
    cluster: Vec<u8>,
    runner: Vec<u8>,
    rebalancer: Vec<u8>,
}

/// A machine and the batches that were on their way to it.
pub(crate) struct Seatful<M: Seated> {
    pub(crate) machine: M,
    pub(crate) held: Vec<Vec<M::Message>>,
}

/// The machines with what was on its way to each.
pub(crate) struct SeatedMachines {
    pub(crate) jobs: Seatful<JobState>,
    pub(crate) scheduler: Seatful<Scheduler>,
    pub(crate) cluster: Seatful<ClusterState>,
    pub(crate) runner: Seatful<TaskRunner>,
    pub(crate) rebalancer: Seatful<Rebalancer>,
}

impl SeatedMachines {
    /// Machines that have not heard anything yet.
    pub(crate) fn new(settings: &Arc<Settings>) -> SeatedMachines {
        fn fresh<M: Seated>(machine: M) -> Seatful<M> {
            Seatful { machine, held: Vec::new() }
        }
        let Machines { jobs, scheduler, cluster, runner, rebalancer } = Machines::new(settings);
        SeatedMachines {
            jobs: fresh(jobs),
            scheduler: fresh(scheduler),
            cluster: fresh(cluster),
            runner: fresh(runner),
            rebalancer: fresh(rebalancer),
        }
    }
}

impl Snapshot {
    pub fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        codec::encode(self)
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Snapshot, CodecError> {
        codec::decode(bytes)
    }

    /// The machines that decide, each found whole, for whoever wants to look into them. What was on its
    /// way to one is not in it.
    pub fn inspect(&self) -> Result<Machines, SnapshotError> {
        let SeatedMachines { jobs, scheduler, cluster, runner, rebalancer } = self.machines()?;
        let (jobs, scheduler, cluster) = (jobs.machine, scheduler.machine, cluster.machine);
        let (runner, rebalancer) = (runner.machine, rebalancer.machine);
        Ok(Machines { jobs, scheduler, cluster, runner, rebalancer })
    }

    /// The machines, each found whole.
    pub(crate) fn machines(&self) -> Result<SeatedMachines, SnapshotError> {
        Ok(SeatedMachines {
            jobs: self.seatful(&self.jobs)?,
            scheduler: self.seatful(&self.scheduler)?,
            cluster: self.seatful(&self.cluster)?,
            runner: self.seatful(&self.runner)?,
            rebalancer: self.seatful(&self.rebalancer)?,
        })
    }

    fn seatful<M: Seated>(&self, bytes: &[u8]) -> Result<Seatful<M>, SnapshotError> {
        let (mut machine, held): (M, Vec<Vec<M::Message>>) = codec::decode(bytes)?;
        machine.equip(&self.settings.filters);
        machine.rebuild();
        machine.check()?;
        Ok(Seatful { machine, held })
    }
}

/// Why nothing can be restored from a snapshot.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    #[error("the snapshot cannot be read")]
    Codec(#[from] CodecError),
    #[error("the snapshot contradicts itself")]
    Broken(#[from] Broken),
}

/// A snapshot, or why the state cannot be written.
pub type SnapshotResult = Result<Snapshot, CodecError>;

/// Takes a snapshot; `None` if a machine is gone.
pub(crate) async fn take(
    router: &Router,
    taken: Time,
    settings: Settings,
    last_ticket: u64,
) -> Option<SnapshotResult> {
    let Router { jobs, scheduler, cluster, runner, rebalancer, .. } = router;
    // The TaskRunner first: it is the only one that hears from other threads.
    runner.send(Hold).await.ok()?;
    tokio::try_join!(cluster.send(Hold), jobs.send(Hold), scheduler.send(Hold), rebalancer.send(Hold))
        .ok()?;
    let photographs = (
        photograph(jobs).await?,
        photograph(scheduler).await?,
        photograph(cluster).await?,
        photograph(runner).await?,
        photograph(rebalancer).await?,
    );
    jobs.do_send(Resume);
    scheduler.do_send(Resume);
    cluster.do_send(Resume);
    runner.do_send(Resume);
    rebalancer.do_send(Resume);
    let (jobs, scheduler, cluster, runner, rebalancer) = photographs;
    let snapshot = || {
        let (jobs, scheduler) = (jobs?, scheduler?);
        let (cluster, runner, rebalancer) = (cluster?, runner?, rebalancer?);
        Ok(Snapshot { taken, settings, last_ticket, jobs, scheduler, cluster, runner, rebalancer })
    };
    Some(snapshot())
}

async fn photograph<M: Seated>(shell: &Addr<Shell<M>>) -> Option<Result<Vec<u8>, CodecError>> {
    shell.send(Photograph).await.ok()
}
