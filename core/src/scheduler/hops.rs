//! Atomic groups whose tasks must run near each other, or as near as is possible now.
//!
//! Tasks that are within so many hops of each other are inside one region of the network tree, so regions
//! are tried one after the other, those without room in sum passed over, until the whole group finds room.
//! A group may ask for all of its tasks, and each role for its own; every one of them gets a region.
//! Where the fewest hops are asked for, the regions of height nought are tried first, then the next
//! height; a group that asks comes before its roles, and these in their order.
//!
//! The answer is exact for groups that the exact search is exact for, as long as no more than
//! [`ARRANGEMENTS_MAX`] choices of regions have room in sum. Beyond that a group may wait, or start further
//! apart, although there is a better way.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::NodeId;
use crate::resources::Resources;
use crate::spec::{Company, Hops, ShapeSpec};

use super::gangs::{give_back, take_anywhere};
use super::nodes::{NodeEntry, Nodes};
use super::packing::{self, Demand, Room};
use super::topology::{HEIGHT_MAX, Region};

/// So many choices of regions are looked into, for each number of hops, before a group waits.
const ARRANGEMENTS_MAX: usize = 64;

/// Somebody who asks for hops: the whole group, or one role.
struct Party {
    hops: Hops,
    /// The demands it asks for.
    demands: std::ops::Range<usize>,
    /// What they need in sum.
    wanted: Resources,
}

/// What these tasks need in sum.
pub(super) fn wanted(demands: &[Demand<'_>]) -> Resources {
    let mut wanted = Resources::new();
    for demand in demands {
        for (kind, amount) in demand.shape.request.iter() {
            let all = amount.saturating_mul(i64::from(demand.tasks));
            wanted.set(kind, wanted.get(kind).saturating_add(all));
        }
    }
    wanted
}

fn parties(group: Option<Hops>, demands: &[Demand<'_>]) -> Vec<Party> {
    let party = |hops, range: std::ops::Range<usize>| {
        let wanted = wanted(&demands[range.clone()]);
        Party { hops, demands: range, wanted }
    };
    let group = group.map(|hops| party(hops, 0..demands.len()));
    let roles = demands.iter().enumerate();
    let roles = roles.filter_map(|(role, demand)| Some(party(demand.shape.hops?, role..role + 1)));
    group.into_iter().chain(roles).collect()
}

/// Takes room for all of these tasks within the hops that are asked for, or for none of them.
pub(super) fn take_near(
    nodes: &mut Nodes,
    demands: &[Demand<'_>],
    group: Option<Hops>,
) -> Option<Vec<NodeId>> {
    let parties = parties(group, demands);
    let mut heights: Vec<u8> = parties
        .iter()
        .map(|party| match party.hops {
            Hops::AtMost(hops) => (hops / 2).min(HEIGHT_MAX),
            Hops::Fewest => HEIGHT_MAX,
        })
        .collect();
    let mut found: Option<Vec<NodeId>> = None;
    for position in (0..parties.len()).filter(|position| parties[*position].hops == Hops::Fewest) {
        if let Some(places) = found.take() {
            give_back(nodes, demands, &places);
        }
        for height in 0..=HEIGHT_MAX {
            heights[position] = height;
            found = take_within(nodes, demands, &parties, &heights);
            if found.is_some() {
                break;
            }
        }
        found.as_ref()?;
    }
    found.or_else(|| take_within(nodes, demands, &parties, &heights))
}

/// The same for given heights of the regions.
fn take_within(
    nodes: &mut Nodes,
    demands: &[Demand<'_>],
    parties: &[Party],
    heights: &[u8],
) -> Option<Vec<NodeId>> {
    let limited = parties.iter().zip(heights.iter().copied()).filter(|(_, height)| *height < HEIGHT_MAX);
    let limited: Vec<(&Party, u8)> = limited.collect();
    if limited.is_empty() {
        return take_anywhere(nodes, demands);
    }
    let mut search = RegionSearch { demands, limited, regions: Vec::new(), arrangements: 0 };
    let places = search.choose(nodes)?;
    for (demand, places) in demands.iter().zip(&places) {
        places.iter().for_each(|node| nodes.take(*node, demand.shape));
    }
    Some(places.concat())
}

struct RegionSearch<'a> {
    demands: &'a [Demand<'a>],
    /// Those who ask, with the height their regions may have.
    limited: Vec<(&'a Party, u8)>,
    /// The regions chosen for the first of them.
    regions: Vec<Region>,
    arrangements: usize,
}

impl RegionSearch<'_> {
    /// Chooses regions for those who have none yet until the whole group finds room.
    fn choose(&mut self, nodes: &mut Nodes) -> Option<Vec<Vec<NodeId>>> {
        let Some((party, height)) = self.limited.get(self.regions.len()) else {
            self.arrangements += 1;
            return self.arrange(nodes);
        };
        let (wanted, height) = (&party.wanted, *height);
        let mut tried = Vec::new();
        while self.arrangements < ARRANGEMENTS_MAX {
            let region = nodes.topology().first_region(height, wanted, &tried)?;
            tried.push(region);
            self.regions.push(region);
            let found = self.choose(nodes);
            self.regions.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Places every task in the regions that were chosen.
    fn arrange(&self, nodes: &mut Nodes) -> Option<Vec<Vec<NodeId>>> {
        let tasks: usize = self.demands.iter().map(|demand| demand.tasks as usize).sum();
        let mut candidates = Vec::with_capacity(self.demands.len());
        for role in 0..self.demands.len() {
            let found = self.candidates(role, tasks, nodes);
            if found.is_empty() {
                return None;
            }
            candidates.push(found);
        }
        let trial = Trial { nodes, rooms: BTreeMap::new() };
        let greedy = trial.clone().place_all(self.demands, &candidates, |_| true);
        greedy.or_else(|| self.arrange_exactly(trial, &candidates, tasks))
    }

    /// Up to `most` nodes that have room for a task of this role, those with the fewest tasks first.
    fn candidates(&self, role: usize, most: usize, nodes: &mut Nodes) -> Vec<NodeId> {
        let Demand { scope, shape, .. } = self.demands[role];
        let limited = self.limited.iter().zip(&self.regions);
        let mine = limited.filter(|((party, _), _)| party.demands.contains(&role));
        let regions: Vec<Region> = mine.map(|(_, region)| *region).collect();
        let mut found: Vec<NodeId> = match regions.split_last() {
            None => nodes.fits(scope, shape, most),
            Some((last, others)) => {
                let topology = nodes.topology();
                let inside = |node: &NodeId| others.iter().all(|region| topology.contains(*region, *node));
                topology.nodes(*last).filter(inside).collect()
            }
        };
        found.retain(|node| {
            let entry = nodes.get(*node).expect("the index named it");
            entry.has_room_for(shape) && shape.rules.allow(&entry.view.facts)
        });
        found.sort_by_cached_key(|node| {
            preference(*node, &nodes.get(*node).expect("the index named it").company, shape)
        });
        found.truncate(most);
        found
    }

    /// A role for which as many nodes have room as there are tasks always finds one that no other task
    /// has touched, so only the scarcer roles are searched for.
    fn arrange_exactly(
        &self,
        mut trial: Trial<'_>,
        candidates: &[Vec<NodeId>],
        tasks: usize,
    ) -> Option<Vec<Vec<NodeId>>> {
        let is_scarce = |role: usize| candidates[role].len() < tasks;
        let scarce: Vec<usize> = (0..self.demands.len()).filter(|role| is_scarce(*role)).collect();
        let searched: Vec<(Demand<'_>, &[NodeId])> =
            scarce.iter().map(|role| (self.demands[*role], candidates[*role].as_slice())).collect();
        let found = packing::pack(&searched, |node| trial.room(node))?;
        for (role, nodes) in scarce.iter().zip(&found) {
            nodes.iter().for_each(|node| trial.take(*node, self.demands[*role].shape));
        }
        let mut places = trial.place_all(self.demands, candidates, |role| !is_scarce(role))?;
        for (role, nodes) in scarce.into_iter().zip(found) {
            places[role] = nodes;
        }
        Some(places)
    }
}

/// The order in which nodes of a region are taken: fewest tasks of the service, fewest tasks, id.
fn preference(node: NodeId, company: &Company, shape: &ShapeSpec) -> (u32, u32, NodeId) {
    let service = shape.service.as_deref().map_or(0, |(service, _)| company.of_service(service));
    (service, company.tasks, node)
}

/// The nodes as they would be if the tasks tried so far ran there.
#[derive(Clone)]
struct Trial<'a> {
    nodes: &'a Nodes,
    rooms: BTreeMap<NodeId, Room>,
}

impl Trial<'_> {
    fn room(&self, node: NodeId) -> Room {
        self.rooms.get(&node).cloned().unwrap_or_else(|| Room::on(self.entry(node)))
    }

    fn entry(&self, node: NodeId) -> &NodeEntry {
        self.nodes.get(node).expect("the index named it")
    }

    fn rank(&self, node: NodeId, shape: &ShapeSpec) -> (u32, u32, NodeId) {
        let company = self.rooms.get(&node).map_or(&self.entry(node).company, |room| &room.company);
        preference(node, company, shape)
    }

    fn admits(&self, node: NodeId, shape: &ShapeSpec) -> bool {
        self.rooms.get(&node).map_or_else(|| self.entry(node).has_room_for(shape), |room| room.admits(shape))
    }

    fn take(&mut self, node: NodeId, shape: &ShapeSpec) {
        let nodes = self.nodes;
        let room = self.rooms.entry(node);
        let room = room.or_insert_with(|| Room::on(nodes.get(node).expect("the index named it")));
        room.take(shape);
    }

    /// Places the roles that are asked for one after the other, each task on the first candidate that
    /// still takes it.
    fn place_all(
        mut self,
        demands: &[Demand<'_>],
        candidates: &[Vec<NodeId>],
        asked: impl Fn(usize) -> bool,
    ) -> Option<Vec<Vec<NodeId>>> {
        let mut places = vec![Vec::new(); demands.len()];
        for role in (0..demands.len()).filter(|role| asked(*role)) {
            let shape = demands[role].shape;
            let mut order: BTreeSet<(u32, u32, NodeId)> =
                candidates[role].iter().map(|node| self.rank(*node, shape)).collect();
            while places[role].len() < demands[role].tasks as usize {
                let (_, _, node) = order.pop_first()?;
                if self.admits(node, shape) {
                    self.take(node, shape);
                    places[role].push(node);
                    order.insert(self.rank(node, shape));
                }
            }
        }
        Some(places)
    }
}
