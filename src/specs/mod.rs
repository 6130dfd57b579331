//! Jobs as services describe them, with resources by name.

mod amount;
mod group;
mod job;
mod role;

pub use amount::Amount;
pub(crate) use amount::{offered, resources};
pub use group::GroupSpec;
pub use job::JobSpec;
pub use role::RoleSpec;
