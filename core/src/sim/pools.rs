//! Pools of the worlds: who stays in one, which take work, and that promises about them hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;

use crate::id::GroupId;
use crate::machine::{Broken, promise};
use crate::messages::ClusterMessage;
use crate::spec::{NodeSpec, PoolDefault, PoolRule, PoolState, Tie};

use super::links::{Batch, Party};
use super::world::World;

pub(super) const POOLS: [&str; 3] = ["default", "lab", "third"];

/// Now and then there is a third pool.
pub(super) fn settle(rng: &mut Rng, node: &mut NodeSpec) {
    if rng.u8(0..5) == 0 {
        node.facts.pool = POOLS[2].to_owned();
    }
}

pub(super) fn rule(rng: &mut Rng) -> Option<PoolRule> {
    rng.choice([None, None, Some(PoolRule::Any), Some(PoolRule::Same)]).expect("not empty")
}

pub(super) fn default(rng: &mut Rng) -> PoolDefault {
    rng.choice([PoolDefault::Any, PoolDefault::Any, PoolDefault::Group, PoolDefault::Job]).expect("not empty")
}

pub(super) fn state(rng: &mut Rng) -> PoolState {
    rng.choice([PoolState::Enabled, PoolState::Cordoned, PoolState::Disabled]).expect("not empty")
}

/// Where the tasks of a group may go, as far as pools are concerned.
pub(super) enum Reach {
    Anywhere,
    /// All of them in one pool, whichever.
    OnePool,
    /// Others run in this pool.
    Bound(Arc<str>),
}

impl World {
    pub(super) fn set_pool(&mut self, ticket: crate::id::Ticket, pool: &str, state: PoolState) {
        let message = ClusterMessage::SetPool { ticket, pool: pool.to_owned(), state };
        self.tell(Party::Cluster, Batch::Cluster(vec![message]));
    }

    /// In which pools what belongs together runs, by the job or group that it belongs to.
    fn pools_in_use(&self) -> BTreeMap<(u64, Option<u16>), Vec<Arc<str>>> {
        let mut pools: BTreeMap<(u64, Option<u16>), Vec<Arc<str>>> = BTreeMap::new();
        for live in self.cluster.live() {
            let group = live.attempt.task.group;
            let Some(key) = belongs_to(self.scheduler.tie_of(group), group) else { continue };
            let Some(node) = self.cluster.node(live.node) else { continue };
            pools.entry(key).or_default().push(node.facts.pool.as_str().into());
        }
        pools
    }

    pub(super) fn check_pools(&self) -> Result<(), Broken> {
        for (who, pools) in self.pools_in_use() {
            let one = pools.iter().all(|pool| *pool == pools[0]);
            promise!(2, one, "{who:?} stays in one pool, but runs in {pools:?}");
        }
        Ok(())
    }

    pub(super) fn reach_of(&self, group: GroupId) -> Reach {
        let tie = self.scheduler.tie_of(group);
        let Some(key) = belongs_to(tie, group) else { return Reach::Anywhere };
        match self.pools_in_use().get(&key) {
            Some(pools) => Reach::Bound(Arc::clone(&pools[0])),
            None => Reach::OnePool,
        }
    }
}

fn belongs_to(tie: Tie, group: GroupId) -> Option<(u64, Option<u16>)> {
    match tie {
        Tie::None => None,
        Tie::Group => Some((group.job().0, Some(group.index() as u16))),
        Tie::Job => Some((group.job().0, None)),
    }
}
