//! What callers hand in: jobs and nodes, as validated values.

mod access;
mod choice;
mod command;
mod company;
mod facts;
mod group;
mod guests;
mod invalid;
mod job;
mod limits;
mod node;
mod on_preempt;
mod pool;
mod prospect;
mod retries;
mod role;
mod rules;
mod standing;
mod topology;

pub use access::{Access, Asker};
pub use choice::NodeChoice;
pub use command::{CommandSpec, OutputTo, RING_DEFAULT, RING_MAX};
pub use company::{Company, HostPort, Protocol};
pub use facts::NodeFacts;
pub use group::{GroupSpec, Start};
pub use invalid::{Invalid, Problem};
pub use job::JobSpec;
pub use node::{Availability, Condition, Liveness, NodePatch, NodeSpec, NodeState, ReservationSpec};
pub use on_preempt::OnPreempt;
pub use pool::{PoolDefault, PoolRule, PoolState, Tie};
pub use prospect::OnUnsatisfiable;
pub use retries::{FACTOR_MAX, RETRIES_MAX, Retries, RetryOn};
pub use role::{RoleSpec, ShapeSpec};
pub use rules::{Filter, Platform, Rules};
pub use standing::{Standing, StandingChange};
pub use topology::{HOPS_MAX, Hops, LEVELS_MAX, NodePath, hops_between};
