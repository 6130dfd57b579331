//! What claims mean to those who wait: what a claimant holds and until when, and what is kept from others.

use crate::explanation::{ClaimNote, KeptNode};
use crate::id::GroupId;
use crate::messages::ClaimView;

use super::Scheduler;
use super::claims::{ALL_POOLS, Claim};

/// So many nodes are named that are kept from somebody.
const NAMES_MAX: usize = 3;

impl Scheduler {
    pub(super) fn view_of(&self, claim: &Claim) -> ClaimView {
        let (awaited, yielding) = self.awaited_by(claim);
        ClaimView {
            group: claim.entry.group,
            pool: claim.pool.clone().unwrap_or_else(|| ALL_POOLS.into()),
            nodes: claim.nodes.keys().copied().collect(),
            awaited,
            yielding,
            made: claim.made,
            expected: claim.expected.filter(|_| !claim.late),
        }
    }

    /// Every claim that is held.
    pub fn claims(&self) -> Vec<ClaimView> {
        self.claims.entries.iter().map(|claim| self.view_of(claim)).collect()
    }

    /// What the claims mean to a group that waits.
    pub(super) fn claim_note(&self, id: GroupId) -> Option<Box<ClaimNote>> {
        let group = self.group(id).filter(|_| !self.claims.is_empty())?;
        let name = |node| self.nodes.get(node).map_or(String::new(), |entry| entry.view.facts.name.clone());
        if let Some(index) = self.claims.of(id) {
            let ClaimView { pool, nodes, awaited, yielding, expected, .. } =
                self.view_of(&self.claims.entries[index]);
            let nodes = nodes.into_iter().map(name).collect();
            return Some(Box::new(ClaimNote::Holds { pool, nodes, awaited, yielding, expected }));
        }
        let mut kept = Vec::new();
        for claim in &self.claims.entries {
            let expected = claim.expected.filter(|_| !claim.late);
            for node in claim.nodes.keys().copied() {
                let waiting = group.roles.iter().filter(|role| role.wants_room());
                let mut kept_from = waiting.filter(|role| {
                    let has_room = self.nodes.get(node).is_some_and(|entry| entry.has_room_for(&role.spec));
                    !has_room && self.has_room_unclaimed(node, &role.spec)
                });
                if kept_from.next().is_some() && kept.len() < NAMES_MAX {
                    kept.push(KeptNode { node: name(node), group: claim.entry.group, until: expected });
                }
            }
        }
        (!kept.is_empty()).then(|| Box::new(ClaimNote::KeptFromIt(kept)))
    }
}
