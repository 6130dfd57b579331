//! Work that is to end, or to go on differently.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_actors::Command;
use plimsoll_core::id::JobId;
use plimsoll_core::messages::{Answer, Cancelled, Extended, WaitingEntry};
use plimsoll_core::spec::{Invalid, Problem};
use plimsoll_core::time::{SECONDS_MAX, Span};

use crate::error::RequestError;

use super::{Explained, Handle};

/// So much of a reason is kept.
const REASON_BYTES_MAX: usize = 1_024;

impl Handle {
    /// Ends a job whose submitter did not ask for that: its tasks end as aborted, and the job keeps the
    /// reason. Whatever has ended by then keeps its end; aborting a job that was cancelled or aborted
    /// before changes nothing.
    pub async fn abort(&self, job: JobId, reason: &str) -> Result<(), RequestError> {
        let reason = abridged(reason);
        self.ask(|reply| Command::Abort(job, reason, reply)).await.map(drop)
    }

    /// Cancels a job, the jobs that are parts of it, and the parts of these. Says how many had not ended.
    pub async fn cancel_with_children(&self, job: JobId) -> Result<u64, RequestError> {
        self.cancel_all(Cancelled::Tree(job)).await
    }

    /// Cancels every job of a set. Says how many had not ended.
    pub async fn cancel_set(&self, set: &str) -> Result<u64, RequestError> {
        self.cancel_all(Cancelled::Set(set.to_owned())).await
    }

    /// Cancels every job of a queue; the empty name is for jobs that name none. Says how many had not ended.
    pub async fn cancel_queue(&self, queue: &str) -> Result<u64, RequestError> {
        self.cancel_all(Cancelled::Queue(queue.into())).await
    }

    /// Cancels what runs on a node: independent tasks each by itself, atomic groups as a whole. Says how
    /// many tasks that were. The node goes on to take work: pause it first if it should not.
    pub async fn cancel_on_node(&self, node: &str) -> Result<u64, RequestError> {
        self.count(|reply| Command::CancelOnNode(node.to_owned(), reply)).await
    }

    /// Lets every running task of a job, or one task, run for this long from now on, whatever its deadline
    /// was. Attempts that are still being prepared get as long from when they run. Says how many attempts.
    pub async fn extend(&self, what: impl Into<Explained>, by: Duration) -> Result<u64, RequestError> {
        let longest = Span::from_seconds(SECONDS_MAX).unwrap_or_default();
        let span = Span::from_seconds(by.as_secs_f64()).unwrap_or(longest);
        if span.is_zero() {
            return Err(Invalid::new("by", 0, Problem::NoTime).into());
        }
        let what = match what.into() {
            Explained::Job(job) => Extended::Job(self.known(job)?),
            Explained::Task(task) => {
                self.known(task.job())?;
                Extended::Task(task)
            }
        };
        self.count(|reply| Command::Extend(what, span, reply)).await
    }

    /// The unfinished jobs that are parts of this one, oldest first.
    pub async fn children(&self, job: JobId) -> Result<Vec<JobId>, RequestError> {
        match self.ask(|reply| Command::ListChildren(job, reply)).await? {
            Answer::Jobs(jobs) => Ok(jobs),
            other => unreachable!("jobs are listed or refused, not {other:?}"),
        }
    }

    /// What waits, whoever comes next first, up to so many entries: strict bands one after the other, in
    /// each by the keys of the shares, inside a share by its own order. Each entry is taken to start whole
    /// before shares are compared again, and to find room and no limit in its way.
    pub async fn queue(&self, limit: u32) -> Result<Vec<WaitingEntry>, RequestError> {
        match self.ask(|reply| Command::ListWaiting(limit, reply)).await? {
            Answer::Waiting(waiting) => Ok(waiting),
            other => unreachable!("what waits is listed or refused, not {other:?}"),
        }
    }

    fn known(&self, job: JobId) -> Result<JobId, RequestError> {
        self.port.board().job(job)?;
        Ok(job)
    }

    async fn cancel_all(&self, which: Cancelled) -> Result<u64, RequestError> {
        self.count(|reply| Command::CancelAll(which, reply)).await
    }

    async fn count(
        &self,
        command: impl FnOnce(tokio::sync::oneshot::Sender<Answer>) -> Command,
    ) -> Result<u64, RequestError> {
        match self.ask(command).await? {
            Answer::Count(count) => Ok(count),
            other => unreachable!("what was done is counted or refused, not {other:?}"),
        }
    }
}

/// A text that is kept, without the rest of one that is too long.
fn abridged(text: &str) -> Arc<str> {
    let ends = text.char_indices().map(|(start, letter)| start + letter.len_utf8());
    let end = ends.take_while(|end| *end <= REASON_BYTES_MAX).last().unwrap_or(0);
    text[..end].into()
}
