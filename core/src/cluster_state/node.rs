//! One node: what it offers, whether it takes work, and what its attempts add up to.

use std::num::NonZeroU64;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::breakdown::{Breakdown, Culprit};
use crate::collections::{Chain, Seldom};
use crate::messages::NodeView;
use crate::mutation::{self, Mutation};
use crate::outcome::Phase;
use crate::resources::Resources;
use crate::spec::{
    Availability, Company, Condition, Liveness, NodeFacts, NodePatch, NodeSpec, NodeState, PoolState,
    ShapeSpec,
};
use crate::time::Time;

use super::reservation::Reservation;
use super::units::NodeUnits;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Node {
    pub facts: Arc<NodeFacts>,
    pub capacity: Resources,
    /// So much of that is used by others.
    pub reserved: Seldom<Resources>,
    pub condition: Condition,
    pub availability: Availability,
    pub liveness: Liveness,
    /// What the operators say about its pool.
    pub pool_state: PoolState,
    /// The first session of the node's agent; no earlier node had it.
    pub session: u64,
    /// Raised with every change of labels, condition, availability, liveness or capacity.
    pub version: u64,
    /// The sum of what the live attempts hold.
    pub used: Resources,
    /// The names of its units and who holds them, where they have names.
    pub units: Option<Box<NodeUnits>>,
    /// Who is here, as far as newcomers mind.
    pub company: Company,
    /// When a node becomes suspect unless it is heard before, or a suspect one is given up.
    pub(super) silent_until: Time,
    /// The sweep that a returned node has to confirm before it takes work.
    pub(super) sweep: Option<NonZeroU64>,
    /// Why the node was set broken, unless that was done by hand.
    pub breakdown: Option<Arc<Breakdown>>,
    /// Whose tasks failed here since one succeeded, each once.
    pub(super) failed_in_a_row: Seldom<Vec<Culprit>>,
    /// Its state as the host was told it.
    pub(super) told: NodeState,
    /// Who has the node for himself.
    pub reservation: Option<Box<Reservation>>,
    pub(super) attempts: Chain,
    /// Live attempts by phase.
    pub(super) phases: [u32; Phase::COUNT],
}

/// What a node is doing. On a shared node the furthest attempt speaks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Usage {
    Idle,
    Scheduled,
    Waiting,
    Installing,
    Running,
    /// It has room that the Scheduler has not looked at yet.
    Pending,
}

impl Usage {
    pub const ALL: [Usage; 6] =
        [Usage::Idle, Usage::Scheduled, Usage::Waiting, Usage::Installing, Usage::Running, Usage::Pending];

    /// By the phase of the furthest attempt.
    const OF_PHASE: [Usage; Phase::COUNT] =
        [Usage::Scheduled, Usage::Waiting, Usage::Installing, Usage::Running];

    pub fn name(self) -> &'static str {
        match self {
            Usage::Idle => "idle",
            Usage::Scheduled => "scheduled",
            Usage::Waiting => "waiting",
            Usage::Installing => "installing",
            Usage::Running => "running",
            Usage::Pending => "pending",
        }
    }
}

impl Node {
    pub(super) fn new(mut spec: NodeSpec) -> Node {
        spec.facts.named_kinds = spec.units.kinds();
        Node {
            facts: Arc::new(spec.facts),
            capacity: spec.capacity,
            reserved: spec.reserved.into(),
            condition: spec.condition,
            availability: spec.availability,
            liveness: spec.liveness,
            pool_state: PoolState::default(),
            session: 0,
            version: 0,
            used: Resources::new(),
            units: NodeUnits::of(spec.units),
            company: Company::default(),
            silent_until: Time::NEVER,
            sweep: None,
            breakdown: None,
            failed_in_a_row: Seldom::default(),
            told: NodeState::default(),
            reservation: None,
            attempts: Chain::default(),
            phases: [0; Phase::COUNT],
        }
    }

    /// Whether the node may be given new work, room permitting.
    pub fn takes_work(&self) -> bool {
        self.state().takes_work()
    }

    pub fn state(&self) -> NodeState {
        let Node { condition, availability, liveness, pool_state: pool, .. } = *self;
        NodeState { condition, availability, liveness, reserved: self.is_reserved(), pool }
    }

    fn is_reserved(&self) -> bool {
        self.reservation.is_some() && !mutation::active(Mutation::ShareReserved)
    }

    /// What others leave of its capacity.
    pub fn offered(&self) -> Resources {
        self.capacity.beside(&self.reserved)
    }

    /// What others leave minus what is held; negative where the node is in deficit.
    pub fn free(&self) -> Resources {
        let mut free = self.offered();
        free -= &self.used;
        free
    }

    /// Whether more is held than the node can hold since its capacity shrank, or others use more of it.
    pub fn deficit(&self) -> bool {
        match self.reserved.is_zero() {
            true => !self.used.fits_in(&self.capacity),
            false => !self.used.fits_in(&self.offered()),
        }
    }

    /// Whether a new task of this shape may come here, room apart.
    pub fn admits(&self, shape: &ShapeSpec) -> bool {
        self.takes_work() && !self.deficit() && shape.rules.allow(&self.facts) && self.company.admits(shape)
    }

    /// Whether every requested amount is free.
    pub fn has_room_for(&self, shape: &ShapeSpec) -> bool {
        let offered = |kind| (self.capacity.get(kind) - self.reserved.get(kind)).max(0);
        shape.request.iter().all(|(kind, amount)| amount <= offered(kind) - self.used.get(kind))
    }

    /// Live attempts on the node.
    pub fn tasks(&self) -> u32 {
        self.phases.iter().sum()
    }

    pub(super) fn view(&self) -> NodeView {
        let silent = mutation::active(Mutation::IgnoreOthers);
        NodeView {
            version: self.version,
            facts: Arc::clone(&self.facts),
            capacity: self.capacity.clone(),
            reserved: if silent { Seldom::default() } else { self.reserved.clone() },
            open: self.takes_work(),
            state: self.state(),
            breakdown: self.breakdown.clone(),
        }
    }

    pub(super) fn apply(&mut self, now: Time, mut patch: NodePatch) {
        patch.change_facts(&mut self.facts);
        if let Some(capacity) = patch.capacity {
            self.capacity = capacity;
            self.rename_units(patch.units);
        }
        if let Some(reserved) = patch.reserved {
            self.reserved = reserved.into();
        }
        if let Some(condition) = patch.condition {
            self.condition = condition;
            self.start_over();
            if let Some(reason) = patch.reason.filter(|_| condition == Condition::Broken) {
                self.note_reason(now, &reason);
            }
        }
        if let Some(availability) = patch.availability {
            self.availability = availability;
        }
    }

    /// As people know it: a broken node is idle whatever is left on it, a manual one unless somebody has reserved
    /// it, and else of what is there the furthest speaks.
    pub(super) fn usage(&self, pending: bool) -> Usage {
        let furthest = self.phases.iter().rposition(|count| *count > 0);
        let working = furthest.map(|phase| Usage::OF_PHASE[phase]);
        let reserved = self.reservation.as_ref().map(|reservation| reservation.stage.usage());
        let furthest = match self.condition {
            Condition::Broken => return Usage::Idle,
            Condition::Manual => reserved,
            Condition::Automated | Condition::Removed => working.max(reserved),
        };
        match furthest {
            Some(usage) => usage,
            None if pending && self.takes_work() => Usage::Pending,
            None => Usage::Idle,
        }
    }
}
