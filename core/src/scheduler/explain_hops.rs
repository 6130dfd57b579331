//! How much of a group would find room within the hops it asks for, to explain why it waits.

use std::collections::BTreeMap;

use crate::explanation::WithinHops;
use crate::spec::{HOPS_MAX, Hops, ShapeSpec};

use super::Scheduler;
use super::explain_group::{fill, wanted};
use super::groups::GroupView;
use super::nodes::NodeEntry;
use super::packing::Room;
use super::sight::Sight;

/// Nodes below a part of the network tree with their depths, each as it is and as it is seen. A node without a
/// path is a part of its own, under its name.
type Regions<'a> = BTreeMap<(Kind, &'a str), Vec<(usize, (&'a NodeEntry, &'a NodeEntry))>>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Path,
    Pathless,
}

/// How much of what is asked for would find room in the best part of the network.
struct Best {
    within: WithinHops,
    left: Vec<u64>,
    /// It is a part of the network to which other nodes could come.
    is_open: bool,
}

impl Scheduler {
    /// The best that could be done within the hops that a waiting group, or the first of its roles that
    /// lacks room, asks for; `None` if nobody asks.
    pub(super) fn within_hops(&self, group: &GroupView, sight: &Sight) -> Option<WithinHops> {
        let roles = wanted(group);
        let whole = limit(group.hops).map(|hops| (hops, roles.as_slice()));
        let alone =
            roles.iter().filter_map(|role| limit(role.0.hops).map(|hops| (hops, std::slice::from_ref(role))));
        let asked: Vec<(u8, &[(&ShapeSpec, u32)])> = whole.into_iter().chain(alone).collect();
        if asked.is_empty() {
            return None;
        }
        let regions = self.regions(sight);
        let mut answers: Vec<WithinHops> =
            asked.into_iter().map(|(hops, roles)| best_region(hops, roles, &regions).within).collect();
        let lacking = answers.iter().position(|answer| answer.placeable < answer.wanted);
        Some(answers.swap_remove(lacking.unwrap_or(0)))
    }

    /// The part of the network in which most of a group finds room that is to be near as a whole, and of
    /// each role those that do not. Nothing if that is no part to which another node could come.
    pub(super) fn left_in_best_region(
        &self,
        group: &GroupView,
        roles: &[(&ShapeSpec, u32)],
        sight: &Sight,
    ) -> Option<(String, Vec<u64>)> {
        let hops = limit(group.hops)?;
        if roles.iter().any(|role| limit(role.0.hops).is_some()) {
            return None;
        }
        let Best { within, left, is_open } = best_region(hops, roles, &self.regions(sight));
        within.best.filter(|_| is_open).map(|path| (path, left))
    }

    fn regions<'a>(&'a self, sight: &'a Sight) -> Regions<'a> {
        let mut regions = Regions::new();
        for (id, entry) in self.nodes.iter().filter(|(_, entry)| entry.view.open) {
            let seen = (entry, sight.of(id, entry).node);
            let facts = &entry.view.facts;
            let Some(path) = &facts.path else {
                regions.entry((Kind::Pathless, &facts.name)).or_default().push((0, seen));
                continue;
            };
            let depth = path.levels();
            for prefix in std::iter::once("").chain(path.prefixes()) {
                regions.entry((Kind::Path, prefix)).or_default().push((depth, seen));
            }
        }
        regions
    }
}

fn limit(hops: Option<Hops>) -> Option<u8> {
    match hops {
        Some(Hops::AtMost(hops)) if hops < HOPS_MAX => Some(hops),
        _ => None,
    }
}

fn best_region(hops: u8, roles: &[(&ShapeSpec, u32)], regions: &Regions<'_>) -> Best {
    let tasks: Vec<u64> = roles.iter().map(|(_, tasks)| u64::from(*tasks)).collect();
    let within = WithinHops { hops, placeable: 0, wanted: tasks.iter().sum(), best: None };
    let mut best = Best { within, left: tasks, is_open: false };
    for ((kind, prefix), nodes) in regions {
        let depth = if prefix.is_empty() { 0 } else { prefix.split('/').count() };
        let is_near = |own: usize| own <= depth + usize::from(hops / 2);
        let near = nodes.iter().filter(|(own, _)| is_near(*own));
        let rooms = near.map(|(_, (entry, seen))| (*entry, Room::on(seen), 1));
        let filled = fill(roles, rooms.filter(|(_, room, _)| room.is_usable()).collect());
        if filled.placed > best.within.placeable {
            (best.within.placeable, best.within.best) = (filled.placed, Some((*prefix).to_owned()));
            best.left = filled.left;
            best.is_open = *kind == Kind::Path && !prefix.is_empty();
        }
    }
    best
}
