//! The slow, plain truth: what must hold between the machines whenever nothing is on its way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster_state::Node;
use crate::id::{Attempt, GroupId, NodeId};
use crate::job_state::GroupStatus;
use crate::machine::{Broken, promise};
use crate::resources::Resources;
use crate::scheduler::Startable;
use crate::spec::{Availability, Company, Condition, GroupSpec, NodeFacts, PoolState, ShapeSpec, Start};

use super::doors::asked;
use super::nearness::{Whereabouts, is_near, whereabouts};
use super::pools::Reach;
use super::world::World;

impl World {
    /// Checks everything that holds between machines in a quiescent state.
    pub fn check_quiescent(&self) -> Result<(), Broken> {
        debug_assert!(self.is_quiescent());
        self.check_views_agree()?;
        self.check_breaking_groups()?;
        self.check_company()?;
        self.check_relations()?;
        self.check_listing()?;
        self.check_vacated_nodes()?;
        self.check_revoked_units()?;
        self.check_pools()?;
        self.check_what_is_kept()?;
        let overdue = self.runner.overdue_since(self.now);
        promise!(
            4,
            overdue.is_none(),
            "{overdue:?} is beyond its deadline and nobody does anything about it"
        );
        self.check_shares()?;
        self.check_claims()?;
        self.check_ages()?;
        self.check_nobody_is_unable()?;
        self.check_nothing_could_start()
    }

    fn check_views_agree(&self) -> Result<(), Broken> {
        promise!(5, self.cluster.all_seen(), "a pending node was not looked at");
        let ledger: BTreeMap<NodeId, Resources> =
            self.cluster.nodes().map(|(id, node)| (id, node.free())).collect();
        let view = self.scheduler.free_by_node();
        for (id, free) in &ledger {
            let seen = view.get(id);
            promise!(1, seen == Some(free), "{id} has {free:?} free, the Scheduler believes {seen:?}");
        }
        promise!(1, view.len() == ledger.len(), "the Scheduler sees nodes that are not there");
        let taking: Vec<NodeId> =
            self.cluster.nodes().filter(|(_, node)| node.takes_work()).map(|(id, _)| id).collect();
        let open = self.scheduler.open_nodes();
        promise!(5, open == taking, "{taking:?} take work, the Scheduler believes {open:?}");
        let live: Vec<Attempt> = self.cluster.live().map(|live| live.attempt).collect();
        let dispatched: Vec<Attempt> = self.runner.live().map(|(attempt, _)| attempt).collect();
        promise!(4, live == dispatched, "the TaskRunner has {dispatched:?}, the ledger {live:?}");
        let known: Vec<Attempt> = self.jobs.live().map(|task| task.attempt).collect();
        promise!(4, live == known, "JobState knows {known:?}, the ledger has {live:?}");
        let mut tasks: Vec<_> = live.iter().map(|attempt| attempt.task).collect();
        tasks.sort_unstable();
        let planned: Vec<_> = self.scheduler.live_tasks().into_iter().collect();
        promise!(4, planned == tasks, "the Scheduler believes other tasks live than the ledger");
        self.check_waiting_is_known()
    }

    /// Every task that JobState calls queued is one that the Scheduler has waiting.
    fn check_waiting_is_known(&self) -> Result<(), Broken> {
        for (id, job) in self.jobs.jobs() {
            for (index, group) in job.groups.iter().enumerate() {
                if group.status != GroupStatus::Active {
                    continue;
                }
                let id = crate::id::GroupId::new(id, index as u16);
                let queued = group.waiting();
                let waiting = self.scheduler.explain(id).map_or(0, |explanation| explanation.waiting);
                // Of an atomic group the Scheduler counts those that wait for their time among its own.
                let delayed = if group.start == Start::Atomic { 0 } else { group.delayed() };
                let waiting = waiting + delayed;
                promise!(4, queued == waiting, "{id} has {queued} tasks queued, {waiting} of them wait");
            }
        }
        Ok(())
    }

    /// Whatever runs on a node that is drained or out of use is being stopped.
    fn check_vacated_nodes(&self) -> Result<(), Broken> {
        for live in self.cluster.live().filter(|live| live.stop.is_none()) {
            let node = self.cluster.node(live.node).expect("a node outlives its attempts");
            let vacated = node.availability == Availability::Drain || node.condition == Condition::Removed;
            promise!(4, !vacated, "{} stays on {}, which is drained", live.attempt, live.node);
        }
        Ok(())
    }

    /// Members of a broken group are all being stopped.
    fn check_breaking_groups(&self) -> Result<(), Broken> {
        for live in self.cluster.live() {
            let group = live.attempt.task.group;
            let Ok(job) = self.jobs.job(group.job()) else { continue };
            let breaking = job.groups[group.index()].status == GroupStatus::Breaking;
            promise!(2, !breaking || live.stop.is_some(), "{} outlives its broken group", live.attempt);
            let cancelled = job.groups[group.index()].status == GroupStatus::Withdrawing;
            promise!(9, !cancelled || live.stop.is_some(), "{} outlives its cancelled job", live.attempt);
        }
        Ok(())
    }

    /// Promise 5, from the ledger alone: no free capacity fits anything that waits with a closed
    /// window. Plain loops over every group and every node, no index.
    fn check_nothing_could_start(&self) -> Result<(), Broken> {
        if self.scheduler.is_starved() {
            return Ok(());
        }
        for Startable { group: id, roles, atomic } in self.scheduler.startable() {
            let job = self.jobs.job(id.job()).map_err(|_| Broken::new(4, "a forgotten job waits"))?;
            let spec = &asked(&job.spec, id);
            // What is claimed is for somebody else.
            let free = self.open_free(Some(id));
            let starts = within_reach(&self.reach_of(id), &free).into_iter().any(|free| match atomic {
                // Trying every way must end: where they are too many the question is left open.
                true if !can_be_tried(&roles, free.len()) => false,
                true => gang_fits(spec, &roles, free),
                false => roles.iter().any(|(role, _)| {
                    let shape = &spec.roles[usize::from(*role)].shape;
                    free.values().any(|room| fits(shape, room))
                }),
            });
            promise!(5, !starts, "{id} waits although it could start: a wake-up was lost");
        }
        Ok(())
    }

    /// What is free for a group.
    fn open_free(&self, of: Option<GroupId>) -> BTreeMap<NodeId, Room> {
        let claims = self.scheduler.claimed_from(of);
        let nodes = self.cluster.nodes().filter(|(_, node)| node.takes_work() && !node.deficit());
        // What is earmarked is for somebody else.
        let room = |id: NodeId, node: &Node| {
            let (mut free, mut company) = (node.free(), node.company.clone());
            let (shapes, kept) = self.scheduler.earmarked_on(id);
            for shape in shapes {
                free -= &shape.request;
                company.join(&shape);
            }
            free -= &kept;
            for held in claims.iter().filter(|held| held.0 == id) {
                held.1.iter().for_each(|shape| company.join(shape));
                free -= &held.2;
            }
            let cordoned = node.pool_state == PoolState::Cordoned;
            Room { facts: Arc::clone(&node.facts), cordoned, free, company, some_day: false }
        };
        nodes.map(|(id, node)| (id, room(id, node))).collect()
    }

    /// Whether a group would fit if nothing else ran and every node took work.
    pub(super) fn could_ever_fit(
        &self,
        id: GroupId,
        spec: &GroupSpec,
        roles: &[(u16, u32)],
        atomic: bool,
    ) -> bool {
        let empty: BTreeMap<NodeId, Room> =
            self.cluster.nodes().map(|(id, node)| (id, empty_room(node))).collect();
        match atomic {
            true => within_reach(&self.reach_of(id), &empty)
                .into_iter()
                .any(|rooms| gang_fits(spec, roles, rooms)),
            // One after the other, each may go to another pool.
            false => roles.iter().all(|(role, _)| {
                let shape = &spec.roles[usize::from(*role)].shape;
                empty.values().any(|room| fits(shape, room))
            }),
        }
    }
}

/// Whether every way to place these tasks can be tried in reasonable time.
pub(super) fn can_be_tried(roles: &[(u16, u32)], nodes: usize) -> bool {
    const WAYS_MAX: u64 = 1_000_000;
    const TASKS_MAX: u64 = 64;
    let tasks: u64 = roles.iter().map(|(_, count)| u64::from(*count)).sum();
    // Identical tasks on distinct nodes: so many ways to choose with repetition, role by role.
    let ways = |count: u64| {
        (1..=count).try_fold(1u64, |ways, number| {
            let ways = ways.checked_mul(nodes as u64 + number - 1)? / number;
            (ways <= WAYS_MAX).then_some(ways)
        })
    };
    let all = roles.iter().try_fold(1u64, |all, (_, count)| all.checked_mul(ways(u64::from(*count))?));
    tasks <= TASKS_MAX && all.is_some_and(|all| all <= WAYS_MAX)
}

/// The nodes that may be used together: all of them, or those of one pool. Cordoned ones are only for what
/// runs there already.
fn within_reach(reach: &Reach, rooms: &BTreeMap<NodeId, Room>) -> Vec<BTreeMap<NodeId, Room>> {
    let pick = |wanted: &dyn Fn(&Room) -> bool| -> BTreeMap<NodeId, Room> {
        rooms.iter().filter(|(_, room)| wanted(room)).map(|(id, room)| (*id, room.clone())).collect()
    };
    match reach {
        Reach::Anywhere => vec![pick(&|room| !room.cordoned)],
        Reach::Bound(pool) => vec![pick(&|room| *room.facts.pool == **pool)],
        Reach::OnePool => {
            let pools: BTreeSet<&str> = rooms.values().map(|room| room.facts.pool.as_str()).collect();
            let pools = pools.into_iter();
            pools.map(|pool| pick(&|room| !room.cordoned && room.facts.pool == pool)).collect()
        }
    }
}

/// What is known of a node, what is free on it, and who is there.
#[derive(Clone)]
pub(super) struct Room {
    pub(super) facts: Arc<NodeFacts>,
    pub(super) cordoned: bool,
    pub(super) free: Resources,
    pub(super) company: Company,
    /// What passes with time is as if it had passed.
    pub(super) some_day: bool,
}

impl Room {
    fn suits(&self, shape: &ShapeSpec) -> bool {
        match self.some_day {
            true => shape.rules.may_allow(&self.facts),
            false => shape.rules.allow(&self.facts),
        }
    }
}

fn empty_room(node: &Node) -> Room {
    let (facts, free) = (Arc::clone(&node.facts), node.capacity.clone());
    Room { facts, cordoned: false, free, company: Company::default(), some_day: false }
}

pub(super) fn fits(shape: &ShapeSpec, room: &Room) -> bool {
    room.suits(shape) && shape.request.fits_in(&room.free) && room.company.admits(shape)
}

/// Whether all these tasks find room together, near enough to each other: every way is tried. Who comes
/// first can matter where replicas are limited, so the roles come in their order and in the reverse.
pub(super) fn gang_fits(spec: &GroupSpec, roles: &[(u16, u32)], nodes: BTreeMap<NodeId, Room>) -> bool {
    let reversed: Vec<(u16, u32)> = roles.iter().rev().copied().collect();
    in_this_order(spec, roles, &nodes) || (roles.len() > 1 && in_this_order(spec, &reversed, &nodes))
}

fn in_this_order(spec: &GroupSpec, roles: &[(u16, u32)], nodes: &BTreeMap<NodeId, Room>) -> bool {
    let places = nodes.iter().map(|(id, room)| whereabouts(*id, room.facts.path.as_ref())).collect();
    let mut rooms: Vec<Room> = nodes.values().cloned().collect();
    let mut tasks: Vec<(u16, bool)> = Vec::new();
    for (role, count) in roles {
        let shape: &ShapeSpec = &spec.roles[usize::from(*role)].shape;
        let suitable = rooms.iter().filter(|room| room.suits(shape));
        let room: u64 = suitable.map(|room| shape.request.copies_in(&room.free, u64::from(*count))).sum();
        if room < u64::from(*count) {
            return false;
        }
        tasks.extend((0..*count).map(|number| (*role, number > 0)));
    }
    let mut trial = Trial { spec, places, chosen: Vec::new() };
    trial.place_all(&tasks, 0, &mut rooms)
}

/// A way that is being tried.
struct Trial<'a> {
    spec: &'a GroupSpec,
    places: Vec<Whereabouts<'a>>,
    /// The tasks that have a node, by role.
    chosen: Vec<(u16, usize)>,
}

impl Trial<'_> {
    /// Places each task on each node in turn. Identical tasks stand in the order of their nodes, so no
    /// way is tried twice.
    fn place_all(&mut self, tasks: &[(u16, bool)], previous: usize, rooms: &mut [Room]) -> bool {
        let Some(((role, like_previous), rest)) = tasks.split_first() else { return true };
        let shape: &ShapeSpec = &self.spec.roles[usize::from(*role)].shape;
        let first = if *like_previous { previous } else { 0 };
        for node in first..rooms.len() {
            if fits(shape, &rooms[node]) && self.is_near(*role, node) {
                rooms[node].free -= &shape.request;
                rooms[node].company.join(shape);
                self.chosen.push((*role, node));
                let all_fit = self.place_all(rest, node, rooms);
                self.chosen.pop();
                rooms[node].free += &shape.request;
                rooms[node].company.leave(shape);
                if all_fit {
                    return true;
                }
            }
        }
        false
    }

    /// Whether a task of this role may run on this node, where the others are.
    fn is_near(&self, role: u16, node: usize) -> bool {
        let near = |(other, there): &(u16, usize)| {
            is_near(self.spec, (role, &self.places[node]), (*other, &self.places[*there]))
        };
        self.chosen.iter().all(near)
    }
}
