//! Pools that take no new work, or only more of what is bound to them.

use crate::id::{NodeId, Ticket};
use crate::messages::{Answer, Outbox, Refusal};
use crate::spec::PoolState;

use super::ClusterState;

/// So many pools may be kept from work at one time.
const POOLS_MAX: usize = 10_000;

impl ClusterState {
    /// What the operators say about a pool, also of one that has no nodes yet.
    pub fn pool_state(&self, pool: &str) -> PoolState {
        self.pools.get(pool).copied().unwrap_or_default()
    }

    /// Nodes of the pool change as if each were changed: what was planned for them meanwhile is a conflict.
    pub(super) fn set_pool(&mut self, ticket: Ticket, pool: String, state: PoolState, out: &mut Outbox) {
        let before = self.pool_state(&pool);
        if before == PoolState::Enabled && state != before && self.pools.len() >= POOLS_MAX {
            return out.refuse(ticket, Refusal::TooManyPools { limit: POOLS_MAX as u64 });
        }
        if state != before {
            let nodes = self.nodes().filter(|(_, node)| node.facts.pool == pool);
            let nodes: Vec<NodeId> = nodes.map(|(id, _)| id).collect();
            for id in nodes {
                self.node_mut(id).expect("just seen").pool_state = state;
                self.announce(id, out);
            }
            match state {
                PoolState::Enabled => self.pools.remove(&pool),
                _ => self.pools.insert(pool, state),
            };
        }
        out.reply(ticket, Answer::Done);
    }
}
