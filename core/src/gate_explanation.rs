//! What the gate means for one task: whether it could open for one that waits, and what could stop one that
//! runs and what protects it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::outcome::StopCause;
use crate::time::Time;

/// What the gate could do for something that waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum GateOutlook {
    /// Room is kept for it, or will be when those have ended who are being stopped for it.
    Kept { cause: StopCause },
    /// These would go for it, at once or not before then. Without a moment the classes have to come too far
    /// apart first.
    Would { cause: StopCause, at_once: bool, from: Option<Time>, victims: Vec<TaskId> },
    /// What is claimed for it is used by others until it can start. These go then.
    Backfill { victims: Vec<TaskId> },
    /// Nobody may go for it, or not yet: the first who is protected is so until then.
    Nobody { until: Option<Time> },
}

/// How a running task stands with the gate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunningTask {
    pub since: Time,
    /// It has been told to stop.
    pub stopping: bool,
    /// For whom it could be stopped now.
    pub threats: Vec<Threat>,
    pub protections: Vec<Protection>,
}

/// Somebody for whom a running task could be stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Threat {
    /// Work of a higher band that cannot start otherwise.
    HigherWork,
    /// A class below its percent, once the gate is open; it may be already.
    Imbalance { open: bool },
    /// A queue below its fair share.
    FairShare,
    /// What cannot start otherwise, or a group that has had less: its own group is above its minimum.
    Minimum,
    /// Whoever has claimed what it runs on, or will.
    Claimant,
}

/// What keeps a running task from being stopped for others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Nothing is ever taken away.
    Off,
    /// It has not run for long enough, or the size of its group rests.
    Until { until: Time },
    /// It is never stopped for somebody else's sake.
    Firm,
    /// It was stopped as often as may be.
    StoppedBefore { times: u32 },
    /// No band is above its own.
    Band,
    /// Its class has no more than its percent.
    ClassWithinPercent,
    /// Its queue has no more than is protected of its fair share.
    QueueWithinShare,
    /// It has no lifetime: queues take only what has outlived its own.
    NoLifetime,
    /// It has not outlived its lifetime.
    Lifetime { until: Time },
}

impl fmt::Display for GateOutlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GateOutlook::Kept { .. } => f.write_str("room is being made for it"),
            GateOutlook::Would { at_once, from, victims, .. } => {
                let when = match from {
                    _ if *at_once => "now".to_owned(),
                    Some(from) => format!("at {from}"),
                    None => "once the gate has opened".to_owned(),
                };
                let many = victims.len();
                let tasks = if many == 1 { "task" } else { "tasks" };
                let first = victims.first().map(|task| format!(", {task} first")).unwrap_or_default();
                write!(f, "{many} running {tasks} would go for it {when}{first}")
            }
            GateOutlook::Backfill { victims } => {
                let (tasks, go) = if victims.len() == 1 { ("task", "goes") } else { ("tasks", "go") };
                write!(f, "{} running {tasks} {go} for it once it can start", victims.len())
            }
            GateOutlook::Nobody { until: None } => f.write_str("nobody who runs may go for it"),
            GateOutlook::Nobody { until: Some(until) } => {
                write!(f, "nobody who runs may go for it before {until}")
            }
        }
    }
}

impl fmt::Display for RunningTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.stopping {
            return write!(f, "it runs since {} and is being stopped", self.since);
        }
        write!(f, "it runs since {}; ", self.since)?;
        let threats: Vec<String> = self.threats.iter().map(Threat::to_string).collect();
        match threats.is_empty() {
            true => f.write_str("nobody could stop it for others now")?,
            false => write!(f, "it could be stopped for {}", threats.join(" and "))?,
        }
        let protections: Vec<String> = self.protections.iter().map(Protection::to_string).collect();
        match protections.is_empty() {
            true => f.write_str("; nothing protects it"),
            false => write!(f, "; {}", protections.join(", ")),
        }
    }
}

impl fmt::Display for Threat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Threat::HigherWork => "work of a higher band",
            Threat::Imbalance { open: true } => "a class below its percent",
            Threat::Imbalance { open: false } => "a class below its percent once the gate has opened",
            Threat::FairShare => "a queue below its fair share",
            Threat::Claimant => "a group for which its place is kept, once that can start",
            Threat::Minimum => "work that cannot start otherwise, or a group that has had less",
        })
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protection::Off => f.write_str("nothing is ever taken away"),
            Protection::Until { until } => write!(f, "it is protected until {until}"),
            Protection::Firm => f.write_str("it is never stopped for others"),
            Protection::StoppedBefore { times } => write!(f, "it was stopped {times} times, that is enough"),
            Protection::Band => f.write_str("no band is above its own"),
            Protection::ClassWithinPercent => f.write_str("its class has no more than its percent"),
            Protection::QueueWithinShare => {
                f.write_str("its queue has no more than is protected of its share")
            }
            Protection::NoLifetime => f.write_str("queues do not take what has no lifetime"),
            Protection::Lifetime { until } => write!(f, "its lifetime protects it until {until}"),
        }
    }
}
