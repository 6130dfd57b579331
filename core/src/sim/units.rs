//! Nodes whose units have names, which come and go while they are used.

use std::sync::Arc;

use fastrand::Rng;

use crate::cluster_state::Node;
use crate::machine::{Broken, promise};
use crate::resources::{KindId, Resources};
use crate::spec::{NodePatch, Units};

use super::World;
use super::workload::{GPU, GPUS_MAX};

/// On some nodes every GPU has a name. Of the names that there are, those of now may be others than before.
pub(super) fn name(rng: &mut Rng, capacity: &Resources) -> Units {
    let (mut units, count) = (Units::default(), capacity.get(GPU) / 1_000);
    if count == 0 || rng.bool() {
        return units;
    }
    let mut names: Vec<Arc<str>> = (0..=GPUS_MAX / 1_000).map(|number| format!("u{number}").into()).collect();
    rng.shuffle(&mut names);
    names.truncate(count as usize);
    units.set(GPU, names);
    units
}

/// One of the units in use, if any is, goes and another comes.
pub(super) fn replace(rng: &mut Rng, node: Option<&Node>) -> NodePatch {
    let mut patch = NodePatch::default();
    let Some((node, units)) = node.and_then(|node| Some((node, node.units.as_ref()?))) else { return patch };
    let held: Vec<&(KindId, Arc<str>)> = units.held.iter().collect();
    let Some((kind, gone)) = rng.choice(held) else { return patch };
    let Some(offered) = units.offered.get(*kind) else { return patch };
    let other = |name: &Arc<str>| if name == gone { format!("{name}'").into() } else { Arc::clone(name) };
    patch.units = units.offered.clone();
    patch.units.set(*kind, offered.iter().map(other).collect());
    patch.capacity = Some(node.capacity.clone());
    patch
}

impl World {
    /// Whoever holds a unit that its node does not offer any more is being stopped.
    pub(super) fn check_revoked_units(&self) -> Result<(), Broken> {
        for live in self.cluster.live().filter(|live| live.stop.is_none()) {
            let node = self.cluster.node(live.node).expect("a node outlives its attempts");
            let Some(units) = &node.units else { continue };
            for (kind, name) in live.units.iter().flat_map(|given| given.each()) {
                let is_there = units.offered.get(kind).is_none_or(|offered| offered.contains(name));
                promise!(1, is_there, "{} goes on with {name}, which {} has not", live.attempt, live.node);
            }
        }
        Ok(())
    }
}
