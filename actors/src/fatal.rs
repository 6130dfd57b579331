//! What happens when a machine's step panics: the runtime stops, and everybody learns why.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use plimsoll_core::turn_log::MachineName;
use thiserror::Error;

/// A part of the runtime that all others depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Part {
    Machine(MachineName),
    /// Takes commands in.
    Front,
    /// Passes on what the machines say to the service.
    Herald,
    Monitor,
    /// What the agents of the nodes live in.
    Agents,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Machine(machine) => machine.fmt(f),
            other => write!(f, "{other:?}"),
        }
    }
}

/// A part of the runtime panicked. If it was a machine's step, the turn that did it is attached.
#[derive(Clone, Debug, Error)]
#[error("the {part} stopped at {at}: {message}{}", with_turn(.turn))]
pub struct FatalError {
    pub part: Part,
    pub at: plimsoll_core::time::Time,
    pub message: Arc<str>,
    /// The messages of the offending turn, shortened if they are long; empty if it was no turn.
    pub turn: Arc<str>,
}

fn with_turn(turn: &str) -> String {
    if turn.is_empty() { String::new() } else { format!("; the turn was {turn}") }
}

/// The first fatal error of a runtime, if there was one.
#[derive(Clone, Debug, Default)]
pub struct Fatal {
    error: Arc<OnceLock<FatalError>>,
    ending: Arc<AtomicBool>,
}

pub(crate) const TURN_SHOWN_MAX: usize = 4_096;

impl Fatal {
    pub fn get(&self) -> Option<&FatalError> {
        self.error.get()
    }

    /// Keeps the first error; later ones are consequences.
    pub(crate) fn set(&self, error: FatalError) {
        self.note_ending();
        let (part, message) = (error.part, Arc::clone(&error.message));
        if self.error.set(error).is_ok() {
            tracing::error!(%part, %message, "a part of the runtime stopped");
        }
    }

    /// From now on actors end because they are told to.
    pub(crate) fn note_ending(&self) {
        self.ending.store(true, Ordering::Release);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a word").to_owned()
}
