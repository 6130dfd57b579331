//! Work that is to end, or to go on differently.

use std::sync::Arc;

use plimsoll_actors::Command;
use plimsoll_core::id::JobId;

use crate::error::RequestError;

use super::Handle;

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
}

/// A text that is kept, without the rest of one that is too long.
fn abridged(text: &str) -> Arc<str> {
    text[..text.floor_char_boundary(REASON_BYTES_MAX)].into()
}
