//! What a NodeAgent hears, and what it asks of the executor on its node.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::Attempt;
use crate::outcome::{Exit, Phase};
use crate::spec::UnitNames;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AgentMessage {
    /// From the TaskRunner, meant for one session of the agent: older ones are void.
    Start {
        session: u64,
        attempt: Attempt,
        /// The units it was given, where they have names.
        units: Option<Arc<UnitNames>>,
    },
    Stop(Attempt),
    /// End everything that was not started in the current session with a later number.
    Sweep {
        session: u64,
        sweep: u64,
    },
    /// From the TaskRunner: this and nothing else should run here, as far as it knows in this session.
    Wanted {
        session: u64,
        attempts: Vec<Attempt>,
    },
    /// From the executor.
    Reached(Attempt, Phase),
    Exited(Attempt, Exit),
}

/// What an agent asks of the executor on its node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ExecutorMessage {
    /// With the units it was given, where they have names.
    Run(Attempt, Option<Arc<UnitNames>>),
    Kill(Attempt),
}
