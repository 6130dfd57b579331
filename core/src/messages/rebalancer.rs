//! What the Rebalancer hears.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::settings::Settings;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum RebalancerMessage {
    /// From the Scheduler: how the shares stand now, all of them.
    Shares(Vec<ShareFigure>),
    /// From the Scheduler: it has stopped what the open gate let it.
    Rebalanced,
    Settings(Arc<Settings>),
}

/// How one share stands against its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShareFigure {
    /// Percent of all that it should hold.
    pub target_percent: u32,
    /// Percent of all that it holds.
    pub held_percent: u32,
    pub has_waiting: bool,
}
