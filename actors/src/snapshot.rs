//! Snapshots: every machine at one consistent cut, with the batches that were on their way.
//!
//! All shells are held first, then photographed. Whatever one had sent before it was held is in
//! another's mailbox by then and is kept aside there, so it is part of that one's photograph:
//! nothing is lost and nothing is there twice.

use actix::Addr;
use plimsoll_core::cluster_state::ClusterState;
use plimsoll_core::codec::{self, CodecError};
use plimsoll_core::job_state::JobState;
use plimsoll_core::rebalancer::Rebalancer;
use plimsoll_core::scheduler::Scheduler;
use plimsoll_core::settings::Settings;
use plimsoll_core::task_runner::TaskRunner;
use plimsoll_core::time::Time;
use serde::{Deserialize, Serialize};

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

/// The machines of a snapshot.
pub(crate) struct Machines {
    pub(crate) jobs: Seatful<JobState>,
    pub(crate) scheduler: Seatful<Scheduler>,
    pub(crate) cluster: Seatful<ClusterState>,
    pub(crate) runner: Seatful<TaskRunner>,
    pub(crate) rebalancer: Seatful<Rebalancer>,
}

impl Snapshot {
    pub fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        codec::encode(self)
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Snapshot, CodecError> {
        codec::decode(bytes)
    }

    pub(crate) fn machines(&self) -> Result<Machines, CodecError> {
        Ok(Machines {
            jobs: seatful(&self.jobs)?,
            scheduler: seatful(&self.scheduler)?,
            cluster: seatful(&self.cluster)?,
            runner: seatful(&self.runner)?,
            rebalancer: seatful(&self.rebalancer)?,
        })
    }
}

fn seatful<M: Seated>(bytes: &[u8]) -> Result<Seatful<M>, CodecError> {
    let (mut machine, held): (M, Vec<Vec<M::Message>>) = codec::decode(bytes)?;
    machine.rebuild();
    Ok(Seatful { machine, held })
}

/// Takes a snapshot; `None` if a machine is gone or cannot be written.
pub(crate) async fn take(
    router: &Router,
    taken: Time,
    settings: Settings,
    last_ticket: u64,
) -> Option<Snapshot> {
    let Router { jobs, scheduler, cluster, runner, rebalancer, .. } = router;
    // The TaskRunner first: it is the only one that hears from other threads.
    runner.send(Hold).await.ok()?;
    tokio::try_join!(cluster.send(Hold), jobs.send(Hold), scheduler.send(Hold), rebalancer.send(Hold))
        .ok()?;
    let snapshot = async {
        Some(Snapshot {
            taken,
            settings,
            last_ticket,
            jobs: photograph(jobs).await?,
            scheduler: photograph(scheduler).await?,
            cluster: photograph(cluster).await?,
            runner: photograph(runner).await?,
            rebalancer: photograph(rebalancer).await?,
        })
    };
    let snapshot = snapshot.await;
    jobs.do_send(Resume);
    scheduler.do_send(Resume);
    cluster.do_send(Resume);
    runner.do_send(Resume);
    rebalancer.do_send(Resume);
    snapshot
}

async fn photograph<M: Seated>(shell: &Addr<Shell<M>>) -> Option<Vec<u8>> {
    match shell.send(Photograph).await.ok()? {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            tracing::error!(machine = %M::NAME, %error, "a machine cannot be written");
            None
        }
    }
}
