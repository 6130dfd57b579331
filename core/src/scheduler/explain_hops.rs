//! How much of a group would find room within the hops it asks for, to explain why it waits.

use std::collections::BTreeMap;

use crate::explanation::WithinHops;
use crate::spec::{HOPS_MAX, Hops, ShapeSpec};

use super::Scheduler;
use super::groups::GroupView;
use super::nodes::NodeEntry;
use super::packing::Room;

/// Nodes that take work below a part of the network tree, with their depths.
type Regions<'a> = BTreeMap<&'a str, Vec<(usize, &'a NodeEntry)>>;

impl Scheduler {
    /// The best that could be done within the hops that a waiting group, or the first of its roles that
    /// lacks room, asks for; `None` if nobody asks.
    pub(super) fn within_hops(&self, group: &GroupView) -> Option<WithinHops> {
        let limit = |hops: Option<Hops>| match hops {
            Some(Hops::AtMost(hops)) if hops < HOPS_MAX => Some(hops),
            _ => None,
        };
        let roles: Vec<(&ShapeSpec, u32)> = group
            .roles
            .iter()
            .filter(|role| role.wants_room())
            .map(|role| (&*role.spec, role.waiting()))
            .collect();
        let whole = limit(group.hops).map(|hops| (hops, roles.as_slice()));
        let alone =
            roles.iter().filter_map(|role| limit(role.0.hops).map(|hops| (hops, std::slice::from_ref(role))));
        let asked: Vec<(u8, &[(&ShapeSpec, u32)])> = whole.into_iter().chain(alone).collect();
        if asked.is_empty() {
            return None;
        }
        let regions = self.regions();
        let mut answers: Vec<WithinHops> =
            asked.into_iter().map(|(hops, roles)| best_region(hops, roles, &regions)).collect();
        let lacking = answers.iter().position(|answer| answer.placeable < answer.wanted);
        Some(answers.swap_remove(lacking.unwrap_or(0)))
    }

    fn regions(&self) -> Regions<'_> {
        let mut regions = Regions::new();
        for (_, entry) in self.nodes.iter().filter(|(_, entry)| entry.takes_work()) {
            let facts = &entry.view.facts;
            let Some(path) = &facts.path else {
                // Alone in its branch; no path ends in a slash, so the name is nobody else's.
                regions.entry(&facts.name).or_default().push((usize::from(HOPS_MAX), entry));
                continue;
            };
            let depth = path.levels();
            for prefix in std::iter::once("").chain(path.prefixes()) {
                regions.entry(prefix).or_default().push((depth, entry));
            }
        }
        regions
    }
}

fn best_region(hops: u8, roles: &[(&ShapeSpec, u32)], regions: &Regions<'_>) -> WithinHops {
    let wanted = roles.iter().map(|(_, tasks)| u64::from(*tasks)).sum();
    let mut best = WithinHops { hops, placeable: 0, wanted, best: None };
    for (prefix, nodes) in regions {
        let depth = if prefix.is_empty() { 0 } else { prefix.split('/').count() };
        let is_near = |own: usize| own <= depth + usize::from(hops / 2);
        let near = nodes.iter().filter(|(own, _)| is_near(*own) || nodes.len() == 1);
        let placeable = placeable(roles, near.map(|(_, entry)| *entry));
        if placeable > best.placeable {
            (best.placeable, best.best) = (placeable, Some((*prefix).to_owned()));
        }
    }
    best
}

/// How many of these tasks find room on these nodes when one role takes it after the other.
fn placeable<'a>(roles: &[(&ShapeSpec, u32)], nodes: impl Iterator<Item = &'a NodeEntry>) -> u64 {
    let mut rooms: Vec<(&NodeEntry, Room)> = nodes.map(|entry| (entry, Room::on(entry))).collect();
    let mut placed = 0;
    for (shape, tasks) in roles {
        let mut left = *tasks;
        for (_, room) in rooms.iter_mut().filter(|(entry, _)| shape.rules.allow(&entry.view.facts)) {
            while left > 0 && room.admits(shape) {
                room.take(shape);
                left -= 1;
            }
        }
        placed += u64::from(tasks - left);
    }
    placed
}
