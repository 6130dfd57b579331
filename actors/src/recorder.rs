//! Writes turn logs: length-prefixed records of what each machine heard and said.

use std::fmt;
use std::io::{self, Write};
use std::sync::Mutex;

use plimsoll_core::codec;
use serde::Serialize;

/// Writes length-prefixed records until a limit is reached; then it only counts what it left out.
pub struct Recorder {
    state: Mutex<State>,
}

struct State {
    sink: Box<dyn Write + Send>,
    room: u64,
    left_out: u64,
    failed: Option<io::Error>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Recorder {
    /// A recorder that writes at most `bytes_max` bytes to `sink`.
    pub fn new(sink: Box<dyn Write + Send>, bytes_max: u64) -> Recorder {
        Recorder { state: Mutex::new(State { sink, room: bytes_max, left_out: 0, failed: None }) }
    }

    pub(crate) fn record<T: Serialize>(&self, record: &T) {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if state.failed.is_some() || state.left_out > 0 {
            // A log with a hole cannot be replayed beyond it: keep it whole up to here.
            state.left_out += 1;
            return;
        }
        let bytes = match codec::encode(record) {
            Ok(bytes) => bytes,
            Err(error) => return state.failed = Some(io::Error::other(error)),
        };
        let length = bytes.len() as u64 + 4;
        if length > state.room {
            state.left_out = 1;
            return;
        }
        state.room -= length;
        let prefix = (bytes.len() as u32).to_le_bytes();
        let written = state.sink.write_all(&prefix).and_then(|()| state.sink.write_all(&bytes));
        if let Err(error) = written {
            state.failed = Some(error);
        }
    }

    /// Flushes, and tells how many turns were left out for lack of room.
    pub fn finish(&self) -> io::Result<u64> {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        state.sink.flush()?;
        Ok(state.left_out)
    }
}
