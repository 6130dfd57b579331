//! The deterministic world: the real machines, virtual time, per-link queues, and a seed that
//! decides everything else. What happens here can be made to happen again.

mod ageing;
mod claims;
mod company;
mod control;
#[cfg(test)]
mod convergence;
mod doors;
mod elastic;
mod endings;
mod executor;
mod faults;
mod filters;
mod gate;
mod history;
mod links;
#[cfg(test)]
mod mending;
mod mixes;
mod nearness;
mod oracle;
mod people;
mod pools;
mod presets;
mod prospects;
mod run;
mod share_check;
mod standings;
mod stops;
#[cfg(test)]
mod teeth;
#[cfg(test)]
mod tests;
mod tidings;
mod tries;
mod units;
mod usage;
mod workload;
mod world;

pub use executor::{Behaviour, Course};
pub use links::{Batch, Link, Party};
pub use presets::PRESETS;
pub use run::{Failure, FailureKind, RunReport, TraceLine, run, run_traced};
pub use world::World;
