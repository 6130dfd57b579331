//! What the service keeps to talk to the engine: the lane in, the board and the streams out.

use std::ops::Deref;
use std::sync::{Arc, RwLock};
use std::time::Instant;

use actix::Addr;
use metrics::Histogram;
use plimsoll_core::id::{Attempt, NodeId};
use plimsoll_core::settings::Settings;
use plimsoll_core::time::Time;
use thiserror::Error;

use crate::assignments::{AssignmentQueue, Assignments};
use crate::board::Board;
use crate::clock::Clock;
use crate::commands::Command;
use crate::fatal::{Fatal, FatalError};
use crate::front::{Front, Ring};
use crate::lane::{Lane, PushError};
use crate::subscriptions::{Subscription, subscription};

/// The runtime has stopped, in order or because a machine's step panicked.
#[derive(Clone, Debug, Error)]
#[error("the runtime has stopped")]
pub struct Stopped {
    #[source]
    pub cause: Option<FatalError>,
}

/// What the service keeps to talk to the engine: cheap to clone, usable from any thread. All clones share
/// their wires: an address of an actor costs two allocations to clone.
#[derive(Clone)]
pub struct Port(Arc<Wires>);

/// What a port is connected to.
pub struct Wires {
    pub(crate) lane: Arc<Lane<Command>>,
    pub(crate) front: Addr<Front>,
    pub(crate) board: Arc<Board>,
    pub(crate) fatal: Fatal,
    pub(crate) settings: Arc<RwLock<Arc<Settings>>>,
    pub(crate) clock: Clock,
    pub(crate) assignments: Arc<AssignmentQueue>,
    pub(crate) decide_only: bool,
    pub(crate) submission_seconds: Histogram,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::fmt::Debug for Wires {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port").field("lane_depth", &self.lane.len()).finish_non_exhaustive()
    }
}

impl Port {
    pub(crate) fn new(wires: Wires) -> Port {
        Port(Arc::new(wires))
    }
}

impl Deref for Port {
    type Target = Wires;

    fn deref(&self) -> &Wires {
        &self.0
    }
}

impl Wires {
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// A submission was answered that was begun at this moment.
    pub fn note_submission(&self, began: Instant) {
        self.submission_seconds.record(began.elapsed().as_secs_f64());
    }

    /// The runtime's own clock.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Makes new settings out of the current ones and sends them to the machines, all under one
    /// lock, so that changes follow each other. Nothing changes if `change` fails.
    pub fn change_settings<E>(
        &self,
        change: impl FnOnce(&Settings) -> Result<Settings, E>,
    ) -> Result<Result<Arc<Settings>, E>, PushError<Command>> {
        let mut current = self.settings.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let settings = match change(&current) {
            Ok(settings) => Arc::new(settings),
            Err(error) => return Ok(Err(error)),
        };
        self.push(Command::Settings(Arc::clone(&settings)))?;
        *current = Arc::clone(&settings);
        Ok(Ok(settings))
    }

    /// Puts a command on the lane, if there is room.
    pub fn push(&self, command: Command) -> Result<(), PushError<Command>> {
        if self.lane.try_push(command)? {
            self.front.do_send(Ring);
        }
        Ok(())
    }

    /// Puts a command on the lane as soon as there is room. Dropping the future before it is done
    /// changes nothing.
    pub async fn push_when_room(&self, command: Command) -> Result<(), Stopped> {
        match self.lane.push(command).await {
            Ok(false) => Ok(()),
            Ok(true) => {
                self.front.do_send(Ring);
                Ok(())
            }
            Err(_) => Err(self.stopped()),
        }
    }

    /// Events from now on, at most so many batches behind.
    pub fn subscribe(&self, batches: usize) -> Result<Subscription, PushError<Command>> {
        let (subscriber, subscription) = subscription(batches);
        self.push(Command::Subscribe(subscriber))?;
        Ok(subscription)
    }

    /// Whether the service carries out the work itself.
    pub fn assigns(&self) -> bool {
        self.decide_only
    }

    /// The reading end of the assignments; the engine's owner sees to it that there is only one.
    pub fn assignments(&self) -> Assignments {
        Assignments::new(Arc::clone(&self.assignments))
    }

    /// Those of these attempts that the service has begun and not reported the end of, with their nodes.
    pub fn begun(&self, attempts: &[Attempt]) -> Vec<(NodeId, Attempt)> {
        self.assignments.begun(attempts)
    }

    /// What the service has begun on a node and not reported the end of.
    pub fn begun_on(&self, name: &str) -> Vec<(NodeId, Attempt)> {
        self.assignments.begun_on(name)
    }

    /// The ends of these were reported.
    pub fn forget_begun(&self, ended: &[(NodeId, Attempt)]) {
        self.assignments.forget_begun(ended);
    }

    /// Why nothing can be told any more; to be asked when an answer was dropped.
    pub fn stopped(&self) -> Stopped {
        Stopped { cause: self.fatal.get().cloned() }
    }

    pub fn is_stopped(&self) -> bool {
        self.lane.is_closed()
    }
}
