//! What can go wrong when a service asks for something.

use plimsoll_actors::Stopped;
use plimsoll_core::messages::Refusal;
use plimsoll_core::spec::Invalid;
use thiserror::Error;

use crate::specs::JobSpec;

/// Why a job was not taken. Nothing has changed, and the job is inside.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The job itself is wrong.
    #[error("the job is not valid")]
    Invalid {
        /// Which field, and what is wrong with it.
        #[source]
        problem: Invalid,
        /// The job as it was given.
        job: Box<JobSpec>,
    },
    /// The runtime has no room for another command right now.
    #[error("the runtime is busy: its lane is full")]
    Full(Box<JobSpec>),
    /// The runtime looked at it and said no.
    #[error("the job was refused")]
    Refused {
        /// Why.
        #[source]
        refusal: Refusal,
        /// The job as it was given.
        job: Box<JobSpec>,
    },
    /// The runtime has stopped.
    #[error("{stopped}")]
    Stopped {
        /// The cause, if it did not stop in order.
        #[source]
        stopped: StoppedError,
        /// The job as it was given.
        job: Box<JobSpec>,
    },
}

/// Why a request other than a submission was not carried out. Nothing has changed.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// What was given is wrong.
    #[error("the request is not valid")]
    Invalid(#[from] Invalid),
    /// The runtime has no room for another command right now.
    #[error("the runtime is busy: its lane is full")]
    Full,
    /// The runtime looked at it and said no.
    #[error("the request was refused")]
    Refused(#[from] Refusal),
    /// A change of the settings has problems; the settings are as they were.
    #[error("the settings are not valid")]
    Settings(#[from] plimsoll_core::document::Faults),
    /// The runtime has stopped.
    #[error(transparent)]
    Stopped(#[from] StoppedError),
}

/// The runtime has stopped; the cause says why, if it was not in order.
#[derive(Clone, Debug, Error)]
#[error(transparent)]
pub struct StoppedError(#[from] pub Stopped);

impl PartialEq for StoppedError {
    fn eq(&self, other: &StoppedError) -> bool {
        let cause = |error: &StoppedError| error.0.cause.as_ref().map(ToString::to_string);
        cause(self) == cause(other)
    }
}

impl SubmitError {
    /// Whether the same job may be taken later without being changed.
    pub fn is_retryable(&self) -> bool {
        match self {
            SubmitError::Full(_) => true,
            SubmitError::Refused { refusal, .. } => refusal.is_retryable(),
            SubmitError::Invalid { .. } | SubmitError::Stopped { .. } => false,
        }
    }

    /// The job, as it was given.
    pub fn into_job(self) -> JobSpec {
        match self {
            SubmitError::Full(job)
            | SubmitError::Invalid { job, .. }
            | SubmitError::Refused { job, .. }
            | SubmitError::Stopped { job, .. } => *job,
        }
    }
}

impl RequestError {
    /// Whether the same request may be carried out later without being changed.
    pub fn is_retryable(&self) -> bool {
        match self {
            RequestError::Full => true,
            RequestError::Refused(refusal) => refusal.is_retryable(),
            RequestError::Invalid(_) | RequestError::Settings(_) | RequestError::Stopped(_) => false,
        }
    }
}
