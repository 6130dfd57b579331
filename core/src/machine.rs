//! What every machine is: state that takes messages at stated times and says what follows.

use crate::messages::Outbox;
use crate::spec::Filters;
use crate::time::Time;

/// A decision maker without clock, threads or I/O. The same messages at the same times give the
/// same outboxes, bit for bit, under actix, in the deterministic world and in a dry run alike.
pub trait Machine {
    type Message;

    /// One turn: everything in the batch is taken in, in order, together with every deadline that
    /// has come, and what follows from all of it is decided once.
    fn receive(&mut self, now: Time, batch: Vec<Self::Message>, out: &mut Outbox);

    /// When the machine next wants a turn although no message came.
    fn wake_at(&self) -> Option<Time>;

    /// The next deadline; what wants a turn at once without having one is no deadline.
    fn next_deadline(&self) -> Option<Time> {
        self.wake_at()
    }

    /// A turn without messages.
    fn wake(&mut self, now: Time, out: &mut Outbox) {
        self.receive(now, Vec::new(), out);
    }

    /// Takes the filters of the service, of which only the names are stored, before it is rebuilt.
    fn equip(&mut self, _filters: &Filters) {}

    /// Rebuilds what is derived and not stored, after the machine was restored from bytes.
    fn rebuild(&mut self) {}

    /// Walks the whole state and reports the first promise that does not hold.
    fn check(&self) -> Result<(), Broken>;
}

/// A promise that does not hold: always a bug, never an operating error.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("promise {promise} is broken: {what}")]
pub struct Broken {
    /// The number of the promise in the list of promises.
    pub promise: u8,
    pub what: String,
}

impl Broken {
    pub fn new(promise: u8, what: impl Into<String>) -> Broken {
        Broken { promise, what: what.into() }
    }
}

/// Reports a broken promise unless the condition holds.
macro_rules! promise {
    ($number:literal, $condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::machine::Broken::new($number, format!($($what)+)));
        }
    };
}
pub(crate) use promise;
