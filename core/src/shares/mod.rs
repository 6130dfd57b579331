//! The arithmetic of shares: who is entitled to how much, and whose turn it is. Plain functions and
//! small values in exact integers; nothing here knows a machine.

pub mod bucket;
pub mod classes;
pub mod decay;
pub mod flow;
pub mod ratio;
pub mod requestors;

#[cfg(test)]
mod tests;
