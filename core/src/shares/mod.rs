//! The arithmetic of shares: who is entitled to how much, and whose turn it is. Plain functions and
//! small values in exact integers; nothing here knows a machine.
//!
//! - [`classes`]: percents of the workers, entitlements and loans; [`requestors`]: who is in which class
//! - [`flow`]: usage with a memory, which [`decay`]s
//! - [`dominant`]: the largest share of any resource as a cost; [`fair_shares`]: shares adjusted to demand
//! - [`run_time`]: cost times time over weight
//! - [`bucket`]: rate limits; [`caps`]: bounds beyond a share; [`durations`]: how long tasks of a kind take
//! - [`ratio`]: weights and exact fractions

pub mod bucket;
pub mod caps;
pub mod classes;
pub mod decay;
pub mod dominant;
pub mod durations;
pub mod fair_shares;
pub mod flow;
pub mod ratio;
pub mod requestors;
pub mod run_time;

#[cfg(test)]
mod tests;
