//! Replays a turn log: the same machines, the same batches, the same times, the same words?

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use plimsoll_core::codec::{self, CodecError};
use plimsoll_core::spec::Filters;
use plimsoll_core::turn_log::{Header, Mismatch, Replay, TurnRecord};
use thiserror::Error;

/// Why a log cannot be replayed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The log cannot be read.
    #[error("the turn log cannot be read")]
    Unreadable(#[from] io::Error),
    /// A record is not what it should be.
    #[error("record {record} of the turn log is damaged")]
    Damaged {
        /// Counted from 0, the header.
        record: u64,
        /// What is wrong with it.
        #[source]
        error: CodecError,
    },
    /// The log is empty.
    #[error("the turn log has no header")]
    Empty,
    /// The recorded runtime judged nodes by a filter that is not among the given ones.
    #[error("the recorded runtime had a filter `{0}`, which is not here")]
    FilterMissing(String),
    /// A machine was told what cannot be: the log is damaged, though it can be read.
    #[error("turn {turn} of the turn log cannot have happened")]
    Impossible {
        /// Counted from 1.
        turn: u64,
    },
    /// A machine said something else this time.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// Records larger than this are damage, not turns.
const RECORD_BYTES_MAX: u32 = 256 << 20;

/// Replays a whole log; the answer is how many turns were the same. A last record that was cut off
/// ends the log.
pub fn replay(log: impl Read) -> Result<u64, ReplayError> {
    replay_with(log, &Filters::default())
}

/// The same for a log of a runtime that had these filters.
pub fn replay_with(mut log: impl Read, filters: &Filters) -> Result<u64, ReplayError> {
    let damaged = |record| move |error| ReplayError::Damaged { record, error };
    let header = next_record(&mut log)?.ok_or(ReplayError::Empty)?;
    let mut header: Header = codec::decode(&header).map_err(damaged(0))?;
    if let Some(missing) = header.settings.filters.missing_in(filters) {
        return Err(ReplayError::FilterMissing(missing.to_string()));
    }
    header.settings.filters = filters.clone();
    let mut replay = Replay::new(header);
    while let Some(bytes) = next_record(&mut log)? {
        let record: TurnRecord = codec::decode(&bytes).map_err(damaged(replay.turns() + 1))?;
        let turn = replay.turns() + 1;
        let step = catch_unwind(AssertUnwindSafe(|| replay.step(record)));
        step.map_err(|_| ReplayError::Impossible { turn })??;
    }
    Ok(replay.turns())
}

fn next_record(log: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut prefix = [0; 4];
    if !read_whole(log, &mut prefix)? {
        return Ok(None);
    }
    let length = u32::from_le_bytes(prefix);
    if length > RECORD_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a record claims an impossible length"));
    }
    let mut bytes = Vec::new();
    let read = log.take(u64::from(length)).read_to_end(&mut bytes)?;
    Ok((read == length as usize).then_some(bytes))
}

/// Fills the buffer; false if the log ends before.
fn read_whole(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
