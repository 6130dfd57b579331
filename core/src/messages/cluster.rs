//! What ClusterState hears.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{Attempt, GroupId, NodeId, Ticket};
use crate::outcome::{Exit, Phase, StopCause};
use crate::settings::Settings;
use crate::spec::{NodePatch, NodeSpec, PoolState, ReservationSpec, ShapeSpec};
use crate::time::{Span, Time};

use super::usage::UsageOf;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ClusterMessage {
    /// From the host; validated.
    AddNode {
        ticket: Ticket,
        node: Box<NodeSpec>,
    },
    UpdateNode {
        ticket: Ticket,
        name: String,
        patch: Box<NodePatch>,
    },
    RemoveNode {
        ticket: Ticket,
        name: String,
    },
    /// From the host: whether the nodes of this pool take work.
    SetPool {
        ticket: Ticket,
        pool: String,
        state: PoolState,
    },
    /// From the host: whether the node's agent is heard, as far as the service knows.
    Heartbeat {
        ticket: Ticket,
        name: String,
        heard: bool,
    },
    /// From the host: somebody wants this node for himself.
    Reserve {
        ticket: Ticket,
        name: String,
        wish: Box<ReservationSpec>,
    },
    /// From the host: whoever has the node for himself gives it back.
    Return {
        ticket: Ticket,
        name: String,
    },
    /// From the host: how was time spent, since the beginning or this moment?
    AskUsage {
        ticket: Ticket,
        of: UsageOf,
        since: Option<Time>,
    },
    /// From the host: how far the preparations for a reservation are.
    Prepared {
        node: NodeId,
        reservation: u64,
        how: Preparation,
    },
    /// From the host: whatever runs on the node is to be cancelled.
    CancelOnNode {
        ticket: Ticket,
        name: String,
    },
    /// From whoever watches the agents: this one has been silent for too long.
    HeartbeatLost(NodeId),
    /// From the host: the node is known to be dead; there is no point in waiting for it.
    NodeDown(NodeId),
    /// From whoever watches the agents: this one is heard again.
    HeartbeatBack(NodeId),
    Settings(Arc<Settings>),
    /// From the host, after a restore: every node is to be looked at anew.
    LookAgain,
    /// From the Monitor: tell everybody what the ledger says of so many nodes from this one on.
    Audit {
        first: NodeId,
        most: u32,
    },
    /// From the Scheduler.
    Commit(Plan),
    Withdraw(Vec<Withdrawal>),
    Stop(Vec<StopOrder>),
    /// From the Scheduler: JobState waits until everything before this has been dealt with.
    Fence(Vec<GroupId>),
    /// From the Scheduler: these may run for so much longer from now on.
    Extend(Vec<(Attempt, Span)>),
    /// From the Scheduler: everything up to this pending sequence has been looked at.
    Seen {
        sequence: u64,
    },
    /// From the TaskRunner: terminal reports.
    Ended(Vec<EndReport>),
    Progress(Vec<(Attempt, Phase)>),
    /// From the TaskRunner: the agent does not answer a stop.
    Unresponsive(NodeId),
    /// From the TaskRunner: it does not know of these, which the ledger has.
    Undispatched(Vec<Attempt>),
    /// From the TaskRunner: everything that had to end on the returned node has ended.
    Swept {
        node: NodeId,
        sweep: u64,
    },
}

/// How far the preparations for a reservation are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Preparation {
    Begun,
    Done,
    /// They failed, or were told to end and did.
    Failed,
}

/// What the Scheduler decided in one turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub number: u64,
    /// Each part covers the next `count` placements.
    pub parts: Vec<PlanPart>,
    pub placements: Vec<Placement>,
}

/// Placements of one role.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlanPart {
    pub shape: Arc<ShapeSpec>,
    pub count: u32,
    /// The parts of one atomic group follow each other; all but the last are bound to the next.
    pub atomic: bool,
    pub bound_to_next: bool,
    /// These attempts run already: they are entered even where no new work is taken.
    pub adopted: bool,
    /// How long each may run, if the role says so.
    pub timeout: Option<Span>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Placement {
    pub attempt: Attempt,
    pub node: NodeId,
    /// The eligibility version the decision was made on.
    pub version: u64,
}

/// A cancelled or aborted group and the attempts of it that may be live.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Withdrawal {
    pub group: GroupId,
    pub attempts: Vec<Attempt>,
    pub cause: StopCause,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StopOrder {
    pub attempt: Attempt,
    pub cause: StopCause,
}

/// The end of an attempt, as its node's agent tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndReport {
    pub attempt: Attempt,
    pub exit: Exit,
}
