//! Who carries out what the agents want: the runtime's own executor, or the service.

use std::sync::Arc;

use actix::Addr;
use plimsoll_core::id::{Attempt, NodeId};
use plimsoll_core::outcome::{Exit, Phase};
use plimsoll_core::spec::{JobSpec, UnitNames};
use tokio::task::AbortHandle;

use crate::agents::AgentShard;
use crate::assignments::{Assignment, AssignmentQueue, Order};
use crate::executions::Executions;

pub(crate) enum Work {
    Run(Executions),
    Assign(Assigning),
}

/// What the service is to do, handed over once a batch.
pub(crate) struct Assigning {
    queue: Arc<AssignmentQueue>,
    untold: Vec<Assignment>,
}

impl Assigning {
    pub(crate) fn new(queue: Arc<AssignmentQueue>) -> Assigning {
        Assigning { queue, untold: Vec::new() }
    }

    fn tell(&mut self) {
        self.queue.push(&mut self.untold);
    }
}

/// What came of starting an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Started {
    Running(Phase),
    /// It was over at once; with the words of a failure.
    Over(Exit, Option<Arc<str>>),
}

impl Work {
    pub(crate) fn start(
        &mut self,
        node: NodeId,
        attempt: Attempt,
        spec: Option<Arc<JobSpec>>,
        name: &Arc<str>,
        units: Option<Arc<UnitNames>>,
        shard: &Addr<AgentShard>,
    ) -> Started {
        match (self, spec) {
            (_, None) => Started::Over(Exit::Lost, None),
            (Work::Run(executions), Some(spec)) => executions.start(node, attempt, spec, name, units, shard),
            (Work::Assign(assigning), Some(job)) => {
                let (order, name) = (Order::Start, Arc::clone(name));
                let start = Assignment { sequence: 0, order, attempt, job, node: name, units, node_id: node };
                assigning.untold.push(start);
                Started::Running(Phase::Waiting)
            }
        }
    }

    /// Tells an execution to end; the answer is its end, if it is over at once.
    pub(crate) fn stop(
        &mut self,
        node: NodeId,
        attempt: Attempt,
        spec: Option<Arc<JobSpec>>,
        name: &Arc<str>,
    ) -> Option<Exit> {
        match self {
            Work::Run(executions) => {
                executions.stop(node, attempt);
                None
            }
            Work::Assign(assigning) => {
                assigning.tell();
                if assigning.queue.take_back(attempt) {
                    return Some(Exit::Stopped);
                }
                let (order, job, name) = (Order::Stop, spec?, Arc::clone(name));
                let stop =
                    Assignment { sequence: 0, order, attempt, job, node: name, units: None, node_id: node };
                assigning.untold.push(stop);
                None
            }
        }
    }

    pub(crate) fn stop_all(&mut self) {
        if let Work::Run(executions) = self {
            executions.stop_all();
        }
    }

    /// Ends everything on a node without waiting for it; the answer tells when that is over.
    pub(crate) fn abandon(&mut self, node: NodeId) -> Vec<AbortHandle> {
        match self {
            Work::Run(executions) => executions.abandon(node),
            Work::Assign(assigning) => {
                assigning.tell();
                assigning.queue.abandon(node);
                Vec::new()
            }
        }
    }

    /// Everything that was asked for so far is handed over: before anybody hears that it was begun.
    pub(crate) fn hand_over(&mut self) {
        if let Work::Assign(assigning) = self {
            assigning.tell();
        }
    }

    pub(crate) fn is_current(&self, node: NodeId, attempt: Attempt, serial: u64) -> bool {
        match self {
            Work::Run(executions) => executions.is_current(node, attempt, serial),
            Work::Assign(_) => false,
        }
    }

    /// Forgets an execution that has ended; true if it had been told to.
    pub(crate) fn end(&mut self, node: NodeId, attempt: Attempt) -> bool {
        match self {
            Work::Run(executions) => executions.end(node, attempt),
            Work::Assign(_) => false,
        }
    }

    /// Executions that have not ended. What a service runs goes on without us.
    pub(crate) fn count(&self) -> usize {
        match self {
            Work::Run(executions) => executions.count(),
            Work::Assign(_) => 0,
        }
    }
}
