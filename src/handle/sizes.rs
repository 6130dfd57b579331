//! How large groups are, and how large they may be.

use std::ops::RangeInclusive;

use plimsoll_actors::Command;
use plimsoll_core::id::{GroupId, JobId};
use plimsoll_core::messages::{Answer, Resize, RoleSize};

use crate::error::RequestError;

use super::Handle;

impl Handle {
    /// Says between which sizes a role of an elastic group may vary from now on. The sizes are absolute, so
    /// saying the same twice changes nothing. Members above the largest size stop, the newest first. Where
    /// there is only one role its name may be left out.
    pub async fn resize(
        &self,
        group: GroupId,
        role: &str,
        sizes: RangeInclusive<u32>,
    ) -> Result<(), RequestError> {
        let resize = Resize { group, role: role.to_owned(), min: *sizes.start(), max: *sizes.end() };
        self.ask(|reply| Command::Resize(resize, reply)).await.map(drop)
    }

    /// How many tasks of each role of a job run, and how many are expected to by what is decided already.
    /// Groups that have ended are not listed.
    pub async fn sizes(&self, job: JobId) -> Result<Vec<RoleSize>, RequestError> {
        self.port.board().job(job)?;
        match self.ask(|reply| Command::ListSizes(job, reply)).await? {
            Answer::Sizes(sizes) => Ok(sizes),
            other => unreachable!("sizes are listed or refused, not {other:?}"),
        }
    }
}
