//! Why a node was taken out of use: tasks of several services failed on it in a row, or people said so.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::JobId;
use crate::time::Time;

/// Whose tasks failed: those of a service, whatever its version, or of a job that belongs to none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Culprit {
    Service(String),
    Job(JobId),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Breakdown {
    /// In the order in which they failed.
    pub failed: Vec<Culprit>,
    pub since: Time,
    /// When the node is tried again; `None` if people have to say so.
    pub until: Option<Time>,
    /// What people said who took it out of use.
    pub reason: Option<Arc<str>>,
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Culprit::Service(name) => f.write_str(name),
            Culprit::Job(job) => job.fmt(f),
        }
    }
}

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = &self.reason {
            return f.write_str(reason);
        }
        /// More names than this are only counted.
        const NAMED_MAX: usize = 5;
        let names: Vec<String> = self.failed.iter().take(NAMED_MAX).map(Culprit::to_string).collect();
        write!(f, "tasks of {}", names.join(", "))?;
        match self.failed.len().saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }?;
        f.write_str(" failed there in a row")?;
        match self.until {
            Some(until) => write!(f, "; it is tried again at {until}"),
            None => Ok(()),
        }
    }
}
