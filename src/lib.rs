//! Plimsoll: an embeddable cluster scheduler.
pub use plimsoll_core as core;
