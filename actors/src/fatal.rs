//! What happens when a machine's step panics: the runtime stops, and everybody learns why.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use plimsoll_core::turn_log::MachineName;
use thiserror::Error;

/// A machine's step panicked. The turn that did it is attached.
#[derive(Clone, Debug, Error)]
#[error("the {machine} stopped at {at}: {message}; the turn was {turn}")]
pub struct FatalError {
    pub machine: MachineName,
    pub at: plimsoll_core::time::Time,
    pub message: String,
    /// The messages of the offending turn, shortened if they are long.
    pub turn: String,
}

/// The first fatal error of a runtime, if there was one.
#[derive(Clone, Debug, Default)]
pub struct Fatal {
    error: Arc<OnceLock<FatalError>>,
}

pub(crate) const TURN_SHOWN_MAX: usize = 4_096;

impl Fatal {
    pub fn get(&self) -> Option<&FatalError> {
        self.error.get()
    }

    /// Keeps the first error; later ones are consequences.
    pub(crate) fn set(&self, error: FatalError) {
        tracing::error!(machine = %error.machine, message = %error.message, "a machine stopped");
        let _ = self.error.set(error);
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a word").to_owned()
}
