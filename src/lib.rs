//! Plimsoll: an embeddable cluster scheduler.
//!
//! A [`Config`] says how to schedule; a [`Scenario`](core::plan::Scenario), read from a dry-run
//! file with [`scenario::load`], says what.

#![warn(missing_docs)]

mod config;
mod input;
pub mod scenario;

pub use config::Config;
pub use input::{Format, InputError};
pub use plimsoll_core as core;
