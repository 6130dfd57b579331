//! What callers hand in: jobs and nodes, as validated values.

mod invalid;
mod job;
mod node;

pub use invalid::{Invalid, Problem};
pub use job::{GroupSpec, JobSpec, RoleSpec, ShapeSpec, Start};
pub use node::{Availability, Condition, Liveness, NodePatch, NodeSpec};
