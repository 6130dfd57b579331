//! Actors that everything depends on. A panic outside of a machine's step ends an actor without a word, and
//! whoever waits for it would wait for ever. So each of them holds a guard that ends the runtime when the
//! actor is gone before its time, with an error that says who it was.

use std::sync::{Arc, OnceLock};

use actix::{Addr, System};

use crate::assignments::AssignmentQueue;
use crate::board::Board;
use crate::clock::Clock;
use crate::commands::Command;
use crate::fatal::{Fatal, FatalError, Part};
use crate::herald::{DropAll, Herald};
use crate::lane::Lane;

/// Whatever is needed to end everything at once, from any thread.
pub(crate) struct Emergency {
    pub(crate) fatal: Fatal,
    pub(crate) clock: Clock,
    pub(crate) lane: Arc<Lane<Command>>,
    pub(crate) board: Arc<Board>,
    pub(crate) assignments: Arc<AssignmentQueue>,
    pub(crate) herald: OnceLock<Addr<Herald>>,
    /// The one of the deciding thread.
    pub(crate) system: System,
}

impl Emergency {
    /// Nothing new is taken, everybody who waits is told, and the threads end.
    pub(crate) fn stop(&self, error: FatalError) {
        self.fatal.set(error);
        self.lane.close();
        while self.lane.pop().is_some() {}
        // At once, and not by the herald, who may not come to it any more.
        self.board.close();
        self.assignments.close();
        if let Some(herald) = self.herald.get() {
            herald.do_send(DropAll);
        }
        self.system.stop();
    }
}

/// Held by an actor as long as it lives.
pub(crate) struct Vital {
    part: Part,
    emergency: Arc<Emergency>,
}

impl Vital {
    pub(crate) fn new(part: Part, emergency: &Arc<Emergency>) -> Vital {
        Vital { part, emergency: Arc::clone(emergency) }
    }
}

impl Drop for Vital {
    fn drop(&mut self) {
        if self.emergency.fatal.is_ending() {
            return;
        }
        self.emergency.stop(FatalError {
            part: self.part,
            at: self.emergency.clock.now(),
            message: "it panicked between two steps".into(),
            turn: "".into(),
        });
    }
}

/// What tests do to a runtime from inside.
#[cfg(test)]
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(crate) enum Sabotage {
    /// This part panics between two steps.
    Panic(Part),
    /// So much seems to be on its way to the herald, or does not any more.
    Delay(usize),
    CatchUp(usize),
}
