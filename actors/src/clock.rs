//! The runtime's clock: microseconds since it began, and past that of the run it was restored from.

use plimsoll_core::time::Time;
use tokio::time::Instant;

/// Follows tokio's clock, so a paused one pauses everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
    offset: Time,
}

impl Clock {
    /// A clock that reads `offset` now.
    pub(crate) fn starting_at(offset: Time) -> Clock {
        Clock { origin: Instant::now(), offset }
    }

    pub(crate) fn now(&self) -> Time {
        let elapsed = Instant::now().saturating_duration_since(self.origin);
        Time(self.offset.0.saturating_add(elapsed.as_micros() as u64))
    }
}
