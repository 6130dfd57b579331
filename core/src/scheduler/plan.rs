//! One turn of planning: everything that arrived, closed or gained room, together, in order.

use std::sync::Arc;

use crate::id::{NodeId, TaskId};
use crate::messages::{Placement, Plan, PlanPart};
use crate::spec::ShapeSpec;
use crate::time::Time;

use super::Scheduler;
use super::credit;
use super::elastic::Phase;
use super::groups::{self, GroupView, RoleView};
use super::live::LiveTable;
use super::near::Candidate;
use super::nodes::{NodeEntry, Nodes};
use super::pick::{Offer, Pick, Round};
use super::queue::Entry;
use super::scopes::{EVERYWHERE, ScopeId};
use super::shapes::{Place, ShapeId, ShapeKey};

/// What a turn collects before it plans, and what it decides.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) now: Time,
    /// Nodes that may have gained room.
    touched: Vec<NodeId>,
    /// Fair shares may be others by now.
    pub(super) capacity_changed: bool,
    /// The last pending sequence taken in.
    pub(super) seen: Option<u64>,
    adopted: Vec<Adoption>,
    /// Nodes on which something was adopted: it has to go if they are drained.
    pub(super) adopted_on: Vec<NodeId>,
    parts: Vec<PlanPart>,
    placements: Vec<Placement>,
    /// Shapes for which the host might add a node, and how many tasks of each wait.
    pub(super) wanted: Vec<(Arc<ShapeSpec>, u64)>,
    /// So many placements are made before others have their turn.
    most: usize,
    /// The role of the last part, while it can still be extended.
    last: Option<Entry>,
}

/// Tasks of a role that run already, from this index on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Adoption {
    pub(super) entry: Entry,
    pub(super) node: NodeId,
    pub(super) first: u32,
    pub(super) tasks: u32,
    pub(super) since: Time,
}

/// What came of serving the head of a shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Served {
    All,
    NoRoom,
    NoCredit,
}

impl Turn {
    pub(super) fn new(now: Time, most: u64) -> Turn {
        Turn {
            now,
            most: most as usize,
            touched: Vec::new(),
            capacity_changed: false,
            seen: None,
            adopted: Vec::new(),
            adopted_on: Vec::new(),
            parts: Vec::new(),
            placements: Vec::new(),
            wanted: Vec::new(),
            last: None,
        }
    }

    /// How many more placements fit into this turn.
    fn left(&self) -> u32 {
        self.most.saturating_sub(self.placements.len()) as u32
    }

    pub(super) fn touched(&self) -> &[NodeId] {
        &self.touched
    }

    /// What was placed so far.
    pub(super) fn placed(&self) -> impl Iterator<Item = crate::id::Attempt> + '_ {
        self.placements.iter().map(|placement| placement.attempt)
    }

    /// What was placed after so many others, and where.
    pub(super) fn placed_since(&self, mark: usize) -> Vec<(crate::id::Attempt, NodeId)> {
        self.placements[mark..].iter().map(|placement| (placement.attempt, placement.node)).collect()
    }

    pub(super) fn touch(&mut self, node: NodeId) {
        self.touched.push(node);
    }

    pub(super) fn adopt(&mut self, adoption: Adoption) {
        self.adopted.push(adoption);
    }

    /// Begins a part of its own, to which placements of one role are added.
    pub(super) fn begin_part(&mut self, role: &RoleView, atomic: bool, adopted: bool) {
        let (shape, timeout) = (Arc::clone(&role.spec), role.timeout.get());
        self.parts.push(PlanPart { shape, count: 0, atomic, bound_to_next: false, adopted, timeout });
        self.last = None;
    }

    /// The part before the next one belongs to the same atomic group.
    pub(super) fn bind_last_to_next(&mut self) {
        self.parts.last_mut().expect("a part was begun").bound_to_next = true;
    }

    pub(super) fn add(&mut self, placement: Placement) {
        self.parts.last_mut().expect("a part was begun").count += 1;
        self.placements.push(placement);
    }

    fn continue_part(&mut self, entry: Entry, role: &RoleView) {
        if self.last != Some(entry) {
            self.begin_part(role, false, false);
            self.last = Some(entry);
        }
    }

    pub(super) fn take_plan(&mut self, last_plan: &mut u64) -> Option<Plan> {
        if self.placements.is_empty() {
            return None;
        }
        *last_plan += 1;
        let mut parts = std::mem::take(&mut self.parts);
        parts.retain(|part| part.count > 0);
        let placements = std::mem::take(&mut self.placements);
        Some(Plan { number: *last_plan, parts, placements })
    }
}

/// Steps of a turn since something was placed last. An index that says there is room where there is none
/// would be asked again for ever; this way it is found out.
#[derive(Default)]
struct Idle {
    left: u32,
    steps: usize,
}

impl Idle {
    fn step(&mut self, left: u32, shapes: usize) {
        self.steps = if left == self.left { self.steps + 1 } else { 0 };
        self.left = left;
        // A shape is opened once, and parked once.
        assert!(self.steps <= 2 * shapes + 2, "a turn serves what it cannot place");
    }
}

impl Scheduler {
    /// Serves, in order, the shapes that are open (anywhere there is room) and the indexed shapes to
    /// which a touched node matters (on that node), until nothing more fits. Each step places
    /// something, exhausts a shape or parks one, so the turn ends.
    pub(super) fn plan(&mut self, turn: &mut Turn) {
        self.adopt(turn);
        // Every other turn at most: lower bands are not held up for long.
        let mut asks_below = if std::mem::take(&mut self.ahead) { u16::MAX } else { 0 };
        if turn.capacity_changed || self.limits.stale {
            self.limits.stale = false;
            self.release_all_limits(turn.now);
        }
        self.look_at_headroom();
        turn.touched.extend(std::mem::take(&mut self.unserved));
        self.open_bound_shapes(turn);
        if self.is_starved() {
            // Whoever came next needs more credit than there is: nobody uses up what is left before it.
            let touched = Round::new(self.rounds, turn.now, std::mem::take(&mut turn.touched));
            self.starve(touched.into_nodes(&self.nodes));
            return self.end_turn(turn);
        }
        self.rounds += 1;
        let mut round = Round::new(self.rounds, turn.now, std::mem::take(&mut turn.touched));
        let mut idle = Idle::default();
        // What classes were granted in a turn that was full does not know of what has become free since.
        let mut carried = self.grants.is_some();
        let starved = loop {
            idle.step(turn.left(), self.shapes.len());
            if turn.left() == 0 {
                // What is left comes with the next turn, after everybody else had theirs.
                self.unserved.extend(round.into_nodes(&self.nodes));
                return self.end_turn(turn);
            }
            let Some(Pick { leaf, offer, most, .. }) = self.pick(&mut round) else {
                if !std::mem::take(&mut carried) {
                    break false;
                }
                self.grants = None;
                continue;
            };
            let level = self.shares.leaf(leaf).level;
            if level > asks_below {
                asks_below = level;
                if self.sees_to_higher_first(leaf) {
                    self.ahead = true;
                    self.unserved.extend(round.into_nodes(&self.nodes));
                    return self.end_turn(turn);
                }
            }
            let served = match offer {
                Offer::Open(shape) => self.serve_anywhere(shape, most, turn),
                Offer::Near(candidate) => self.serve_on_node(candidate, turn),
            };
            if served == Served::NoCredit {
                break true;
            }
            if let Offer::Near(candidate) = offer {
                round.served(leaf, candidate, &self.nodes, &self.shapes);
            }
        };
        self.grants = None;
        if starved {
            // Credit ran out. Whoever is next waits too: credit is used in order.
            self.starve(round.into_nodes(&self.nodes));
        }
        self.end_turn(turn);
    }

    fn end_turn(&mut self, turn: &mut Turn) {
        self.freeze_resized(turn.now);
        turn.wanted = self.shapes.news_of_wants(&self.nodes);
        let parked = self.shapes.parked().to_vec();
        self.note_in_vain(&parked);
        self.shapes.unpark(&self.jobs);
    }

    fn serve_anywhere(&mut self, shape: ShapeId, most: u32, turn: &mut Turn) -> Served {
        let (_, entry) = self.shapes.head(shape, &self.jobs).expect("an open shape has something waiting");
        let is_gang = matches!(self.shapes.get(shape).key, ShapeKey::Gang(..));
        let lifted = self.withheld_for(shape);
        self.nodes.lift(&lifted, true);
        let served = self.place_beside_claims(entry, is_gang, most, turn);
        self.nodes.lift(&lifted, false);
        let place = if served == Served::NoRoom { Place::Parked } else { Place::Open };
        self.shapes.move_to(shape, place, &self.jobs);
        if is_gang && served == Served::All {
            self.shapes.release(shape, &mut self.nodes);
        }
        self.bind_if_tied(entry.group);
        served
    }

    /// Places up to `most` of the waiting tasks of a role, each on the node that comes first for it among
    /// those with room.
    pub(super) fn place_role(&mut self, entry: Entry, most: u32, turn: &mut Turn) -> Served {
        let (mut placed, mut served) = (0, Served::All);
        // The first decides where the others may go.
        let most = if self.decides_pool(entry.group) { 1 } else { most };
        while placed < most {
            match self.place_some(entry, most - placed, turn) {
                Ok(0) => break,
                Ok(tasks) => placed += tasks,
                Err(end) => {
                    served = end;
                    break;
                }
            }
        }
        if placed > 0 {
            let group = groups::find(&self.jobs, entry.group).expect("a queued group is there");
            self.take_waiting(group.roles[usize::from(entry.role)].shape, u64::from(placed));
            self.count_started(turn.now, entry, placed);
            self.has_grown(turn.now, entry.group);
        }
        served
    }

    /// Places one task, or several at once where that comes to the same; none if nothing more waits.
    fn place_some(&mut self, entry: Entry, most: u32, turn: &mut Turn) -> Result<u32, Served> {
        let group = groups::find_mut(&mut self.jobs, entry.group).expect("a queued group is there");
        let role = usize::from(entry.role);
        let most = group.roles[role].queued.min(turn.left()).min(most);
        if most == 0 {
            return Ok(0);
        }
        let spec = Arc::clone(&group.roles[role].spec);
        let scope = self.shapes.get(group.roles[role].shape).scopes[0];
        let first = self.nodes.first_fit(scope, &spec).ok_or(Served::NoRoom)?;
        let first = elsewhere(&mut self.nodes, scope, &group.roles[role], first);
        debug_assert!(self.nodes.may_take(first, &spec), "a flagged node is taken before others");
        // Credit is asked for before a place is taken, so where it counts, one by one.
        let most = if self.credit.is_some() { 1 } else { most };
        let alike = !spec.minds_company() && !group.roles[role].avoids_some();
        let level = alike && scope == EVERYWHERE;
        // The node that is filled still comes first after each task.
        let fill = alike && self.nodes.scopes.packs(scope);
        let most = if level || fill { most } else { 1 };
        if !credit::spend(&mut self.credit, u64::from(most)) {
            return Err(Served::NoCredit);
        }
        turn.continue_part(entry, &group.roles[role]);
        if level {
            return Ok(self.nodes.take_level(first, &spec, most, |node, on| {
                let (index, number) = group.roles[role].take_queued();
                bind_on(&mut self.live, on, group, Bind { entry, index, number, node }, turn);
            }));
        }
        let placed = self.nodes.take_several(first, &spec, most);
        for _ in 0..placed {
            let (index, number) = group.roles[role].take_queued();
            bind(&mut self.live, &mut self.nodes, group, Bind { entry, index, number, node: first }, turn);
        }
        Ok(placed)
    }

    /// Places one task of the candidate's shape on the candidate's node. Where something matters more than
    /// the number of tasks, the best of all nodes with room is taken, which is mostly one of those that
    /// have just gained it.
    fn serve_on_node(&mut self, candidate: Candidate, turn: &mut Turn) -> Served {
        let Candidate { shape, node, .. } = candidate;
        if let ShapeKey::Gang(..) = self.shapes.get(shape).key {
            // A gang needs more than this node. One that still collects waits for its window.
            let collecting = self.shapes.get(shape).window.is_some();
            let place = if collecting { Place::Parked } else { Place::Open };
            self.shapes.move_to(shape, place, &self.jobs);
            return Served::All;
        }
        if !credit::spend(&mut self.credit, 1) {
            return Served::NoCredit;
        }
        let (_, entry) = self.shapes.head(shape, &self.jobs).expect("an indexed shape has something waiting");
        self.take_waiting(shape, 1);
        // One that still collects takes what was offered to it, and nothing else.
        let waiting = self.shapes.get(shape);
        let scope = waiting.scopes[0];
        let better = Some(scope).filter(|_| waiting.window.is_none());
        let better = better.filter(|scope| self.nodes.scopes.is_choosy(*scope));
        let group = groups::find_mut(&mut self.jobs, entry.group).expect("a queued group is there");
        let role = &mut group.roles[usize::from(entry.role)];
        turn.continue_part(entry, role);
        let node = match better {
            Some(scope) => self.nodes.first_fit(scope, &role.spec).unwrap_or(node),
            None => self.nodes.unless_flagged(node, scope, &role.spec),
        };
        let node = elsewhere(&mut self.nodes, self.shapes.get(shape).scopes[0], role, node);
        let (index, number) = role.take_queued();
        self.nodes.take(node, &role.spec);
        bind(&mut self.live, &mut self.nodes, group, Bind { entry, index, number, node }, turn);
        self.count_started(turn.now, entry, 1);
        self.has_grown(turn.now, entry.group);
        self.shapes.settle(shape, &self.jobs);
        self.bind_if_tied(entry.group);
        Served::All
    }

    /// Enters tasks that run already where they are.
    fn adopt(&mut self, turn: &mut Turn) {
        for Adoption { entry, node, first, tasks, since } in std::mem::take(&mut turn.adopted) {
            let group = groups::find_mut(&mut self.jobs, entry.group).expect("an adopted group is there");
            let role = &mut group.roles[usize::from(entry.role)];
            if self.nodes.get(node).is_none() {
                // They run nowhere that is known: they wait like any other task.
                role.returned.extend((first..first + tasks).map(|index| (index, 1)));
                self.enqueue_group(turn.now, entry.group);
                continue;
            }
            turn.adopted_on.push(node);
            turn.begin_part(role, false, true);
            // They are entered as of when they started.
            let now = turn.now;
            turn.now = since.min(now);
            for index in first..first + tasks {
                self.nodes.take(node, &group.roles[usize::from(entry.role)].spec);
                bind(&mut self.live, &mut self.nodes, group, Bind { entry, index, number: 1, node }, turn);
            }
            turn.now = now;
            self.count_started(turn.now, entry, tasks);
            self.bind_if_tied(entry.group);
        }
    }

    /// Nodes that are kept from others and not from this shape.
    pub(super) fn withheld_for(&self, shape: ShapeId) -> Vec<NodeId> {
        let pool = self.shapes.get(shape).key.bound_pool();
        pool.map_or(Vec::new(), |pool| self.nodes.pools.cordoned(pool))
    }
}

/// Another node for a task that has failed on this one, if there is one with room; else this one.
fn elsewhere(nodes: &mut Nodes, scope: ScopeId, role: &RoleView, node: NodeId) -> NodeId {
    let avoided = role.next_avoids();
    if !avoided.contains(&node) {
        return node;
    }
    let others = nodes.fits(scope, &role.spec, avoided.len() + 1);
    let mut others = others.into_iter().filter(|other| !avoided.contains(other));
    let has_room = |id: NodeId| nodes.get(id).is_some_and(|entry| entry.has_room_for(&role.spec));
    others.find(|other| has_room(*other) && !nodes.faults.is_flagged_for(&role.spec, *other)).unwrap_or(node)
}

/// A task and the node it was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bind {
    pub(super) entry: Entry,
    pub(super) index: u32,
    pub(super) number: u32,
    pub(super) node: NodeId,
}

/// Enters an attempt for which the node's room was taken already, and adds it to the plan.
pub(super) fn bind(
    live: &mut LiveTable,
    nodes: &mut Nodes,
    group: &mut GroupView,
    bind: Bind,
    turn: &mut Turn,
) {
    nodes.remember(bind.node, &group.roles[usize::from(bind.entry.role)].spec);
    bind_on(live, nodes.entry_mut(bind.node), group, bind, turn);
}

/// The same, for a caller who has the node at hand.
fn bind_on(live: &mut LiveTable, on: &mut NodeEntry, group: &mut GroupView, bind: Bind, turn: &mut Turn) {
    let Bind { entry, index, number, node } = bind;
    let task = TaskId { group: entry.group, role: entry.role, index };
    let attempt = live.insert(task, number, node, turn.now);
    live.link_group(&mut group.live, attempt.slot);
    group.live_count += 1;
    if let Some(elastic) = &mut group.roles[usize::from(entry.role)].elastic {
        elastic.live += 1;
        let grown = group.phase() == Some(Phase::Running);
        live.get_mut(attempt.slot).expect("just entered").grown = grown;
    }
    live.link_node(&mut on.attempts, attempt.slot);
    turn.add(Placement { attempt, node, version: on.view.version });
}
