//! Where jobs queue and how urgent they are, changed while they wait or run.

use plimsoll_actors::Command;
use plimsoll_core::id::JobId;
use plimsoll_core::messages::{Addressed, Answer};
use plimsoll_core::spec::StandingChange;

use super::Handle;
use crate::error::RequestError;

/// What [`Handle::reprioritise`] changes; what is not said stays as it is.
///
/// ```
/// let change = plimsoll::Reprioritise::new().queue("team-b").priority(5);
/// assert_ne!(change, plimsoll::Reprioritise::new());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reprioritise(StandingChange);

impl Reprioritise {
    /// Nothing changes yet.
    pub fn new() -> Reprioritise {
        Reprioritise::default()
    }

    /// Moves to another queue; an empty name is the one without a name.
    #[must_use]
    pub fn queue(mut self, queue: impl AsRef<str>) -> Reprioritise {
        self.0.queue = Some(queue.as_ref().into());
        self
    }

    /// Moves to another band; an empty name is the default one.
    #[must_use]
    pub fn band(mut self, band: impl AsRef<str>) -> Reprioritise {
        self.0.band = Some(band.as_ref().into());
        self
    }

    /// Gives another priority: larger is sooner.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Reprioritise {
        self.0.priority = Some(priority);
        self
    }
}

impl Handle {
    /// Changes where a job queues and how urgent it is, at once: what waits of it waits there, and what
    /// runs counts for its new queue. A finished job stays as it was.
    pub async fn reprioritise(&self, job: JobId, change: &Reprioritise) -> Result<(), RequestError> {
        self.restand(Addressed::Job(job), change).await.map(drop)
    }

    /// The same for every unfinished job of a set; the answer is those that changed.
    pub async fn reprioritise_set(
        &self,
        set: &str,
        change: &Reprioritise,
    ) -> Result<Vec<JobId>, RequestError> {
        self.restand(Addressed::Set(set.to_owned()), change).await
    }

    async fn restand(&self, jobs: Addressed, change: &Reprioritise) -> Result<Vec<JobId>, RequestError> {
        let Reprioritise(change) = change;
        if let Some(invalid) = change.problems(&self.port.settings()).into_iter().next() {
            return Err(invalid.into());
        }
        match self.ask(|reply| Command::Reprioritise(jobs, change.clone(), reply)).await? {
            Answer::Jobs(jobs) => Ok(jobs),
            other => unreachable!("jobs are moved or refused, not {other:?}"),
        }
    }

    /// The jobs of a set that are kept, oldest first.
    pub async fn job_set(&self, set: &str) -> Result<Vec<JobId>, RequestError> {
        match self.ask(|reply| Command::ListSet(set.to_owned(), reply)).await? {
            Answer::Jobs(jobs) => Ok(jobs),
            other => unreachable!("a set is listed or refused, not {other:?}"),
        }
    }
}
