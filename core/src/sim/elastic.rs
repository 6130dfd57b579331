//! What a seed makes of elastic groups.

use std::sync::Arc;

use fastrand::Rng;

use crate::id::GroupId;
use crate::messages::Resize;
use crate::settings::ElasticSettings;
use crate::spec::GroupSpec;
use crate::time::Span;

use super::world::World;

pub(super) fn settings(rng: &mut Rng) -> ElasticSettings {
    ElasticSettings {
        freeze: Span::from_millis(rng.choice([0, 0, 20, 500, 5_000]).expect("not empty")),
        resize_interval: Span::from_millis(rng.choice([0, 0, 2_000, 60_000]).expect("not empty")),
        headroom: rng.choice([0, 0, 30_000, 200_000]).expect("not empty"),
    }
}

/// Lets an atomic group vary in size.
pub(super) fn make(rng: &mut Rng, group: &mut GroupSpec) {
    if group.roles.iter().any(|role| role.shape.guest_of.is_some()) {
        return;
    }
    group.hops = None;
    let freeze =
        (rng.u8(0..3) == 0).then(|| Span::from_millis(rng.choice([0, 10, 300, 3_000]).expect("not empty")));
    group.freeze = freeze.into();
    for (index, role) in group.roles.iter_mut().enumerate() {
        Arc::make_mut(&mut role.shape).hops = None;
        role.max = rng.u32(1..=5);
        role.min = rng.u32(u32::from(index == 0)..=role.max);
        role.initial = (rng.u8(0..3) == 0).then(|| rng.u32(role.min..=role.max));
    }
}

/// Other sizes for a role of some elastic group; not all of them are possible.
pub(super) fn resize(rng: &mut Rng, world: &World) -> Option<Resize> {
    let mut roles = Vec::new();
    for (id, job) in world.jobs.jobs() {
        for (index, group) in job.spec.groups.iter().enumerate().filter(|(_, group)| group.is_elastic()) {
            let group_id = GroupId::new(id, index as u16);
            roles.extend(group.roles.iter().map(|role| (group_id, role.name.clone())));
        }
    }
    let (group, role) = rng.choice(roles)?;
    let max = rng.u32(1..=6);
    Some(Resize { group, role, min: rng.u32(0..=max), max })
}
