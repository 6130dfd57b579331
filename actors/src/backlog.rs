//! How far the herald is behind. Mailboxes give no back-pressure, so whoever takes in new work looks here
//! first: what the machines have said and nobody has passed on yet is bounded by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    messages: Arc<AtomicUsize>,
}

impl Backlog {
    /// So much is on its way to the herald before nothing new is taken in.
    const MOST: usize = 50_000;

    /// So much, and even what the runtime does by itself has to wait.
    const FAR_TOO_MUCH: usize = 4 * Backlog::MOST;

    pub(crate) fn add(&self, messages: usize) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
    }

    pub(crate) fn done(&self, messages: usize) {
        self.messages.fetch_sub(messages, Ordering::Relaxed);
    }

    pub(crate) fn messages(&self) -> usize {
        self.messages.load(Ordering::Relaxed)
    }

    /// Nothing new is to be taken in.
    pub(crate) fn is_long(&self) -> bool {
        self.messages() > Backlog::MOST
    }

    /// Nothing more is to be placed either: every end makes room for a start, and each is told.
    pub(crate) fn is_far_too_long(&self) -> bool {
        self.messages() > Backlog::FAR_TOO_MUCH
    }
}
