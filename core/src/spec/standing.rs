//! What decides when the turn of a job comes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::settings::Settings;
use crate::time::{MaybeSpan, MaybeTime};

use super::limits::check_length;
use super::{Invalid, Problem};

/// Where a job queues and how urgent it is. It can change while the job waits or runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Standing {
    /// Empty for the queue without a name of its class.
    pub queue: Arc<str>,
    /// Empty for the default band.
    pub band: Arc<str>,
    /// Inside a queue, larger is sooner.
    pub priority: i32,
    /// How long it may hold what it holds beyond its queue's share; without one it is never asked to
    /// give way for that.
    pub lifetime: MaybeSpan,
    /// It is never stopped for somebody else's sake, whoever that is.
    pub firm: bool,
    /// When it should be finished: inside a band and priority the earliest goes first. Where bands share by
    /// weight it says nothing.
    pub finish_by: MaybeTime,
}

/// What is to change about how a job stands; what is not given stays as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StandingChange {
    /// Empty for the queue without a name.
    pub queue: Option<Arc<str>>,
    /// Empty for the default band.
    pub band: Option<Arc<str>>,
    pub priority: Option<i32>,
}

impl StandingChange {
    pub fn applied_to(&self, standing: &Standing) -> Standing {
        Standing {
            queue: self.queue.clone().unwrap_or_else(|| Arc::clone(&standing.queue)),
            band: self.band.clone().unwrap_or_else(|| Arc::clone(&standing.band)),
            priority: self.priority.unwrap_or(standing.priority),
            ..standing.clone()
        }
    }

    /// Everything that keeps the change from being made.
    pub fn problems(&self, settings: &Settings) -> Vec<Invalid> {
        let mut problems = Vec::new();
        self.applied_to(&Standing::default()).note_problems(settings, &mut problems);
        problems
    }
}

impl Standing {
    pub(super) fn note_problems(&self, settings: &Settings, problems: &mut Vec<Invalid>) {
        let length = settings.limits.name_length;
        problems.extend(check_length("queue", &self.queue, length));
        problems.extend(check_length("band", &self.band, length));
        let shares = &settings.shares;
        if !self.queue.is_empty() && shares.queue(&self.queue).is_none() {
            problems.push(Invalid::new("queue", &self.queue, Problem::UnknownQueue));
        }
        let is_default = self.band.is_empty() || *self.band == *crate::settings::BAND_DEFAULT;
        if !is_default && shares.band(&self.band).is_none() {
            problems.push(Invalid::new("band", &self.band, Problem::UnknownBand));
        }
    }
}
