//! Preparing nodes for people who reserved them: one future of the executor per node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{Context, Handler, Message};
use plimsoll_core::cluster_state::ClusterState;
use plimsoll_core::id::NodeId;
use plimsoll_core::messages::{ClusterMessage, Preparation};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::agents::AgentShard;
use crate::executor::{Executor, NodeContext, StopSignal};
use crate::flag::Raiser;
use crate::router::Mailbox;

/// What is to be done about a node that somebody has reserved.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) enum NodePreparation {
    Begin { node: NodeId, reservation: u64, what: Arc<str> },
    End { node: NodeId, reservation: u64 },
}

pub(crate) struct Preparations {
    cluster: Mailbox<ClusterState>,
    /// Who prepares; without one there is nothing to do.
    executor: Option<(Arc<dyn Executor>, Handle)>,
    grace: Duration,
    running: BTreeMap<NodeId, Running>,
}

struct Running {
    reservation: u64,
    stop: Raiser,
    abort: AbortHandle,
}

impl Preparations {
    pub(crate) fn new(
        cluster: Mailbox<ClusterState>,
        executor: Option<(Arc<dyn Executor>, Handle)>,
        grace: Duration,
    ) -> Preparations {
        Preparations { cluster, executor, grace, running: BTreeMap::new() }
    }

    fn begin(&mut self, node: NodeId, reservation: u64, what: Arc<str>, name: Arc<str>) {
        let cluster = self.cluster.clone();
        let tell = move |how| {
            cluster.post(vec![ClusterMessage::Prepared { node, reservation, how }]);
        };
        tell(Preparation::Begun);
        let Some((executor, workers)) = &self.executor else { return tell(Preparation::Done) };
        let (stop, signal) = StopSignal::new();
        let (executor, context) = (Arc::clone(executor), NodeContext { node: name, what, stop: signal });
        let work = workers.spawn(async move { executor.prepare_node(context).await });
        let abort = work.abort_handle();
        workers.spawn(async move {
            // A panic, and what was dropped, has not prepared anything either.
            let prepared = matches!(work.await, Ok(Ok(())));
            tell(if prepared { Preparation::Done } else { Preparation::Failed });
        });
        self.abandon(node);
        self.running.insert(node, Running { reservation, stop, abort });
    }

    fn end(&mut self, node: NodeId, reservation: u64) {
        match self.running.remove(&node) {
            Some(running) if running.reservation == reservation => {
                running.stop.raise();
                let (abort, grace) = (running.abort.clone(), self.grace);
                if let Some((_, workers)) = &self.executor {
                    workers.spawn(async move {
                        tokio::time::sleep(grace).await;
                        abort.abort();
                        // Until then somebody has to hold the other end.
                        drop(running.stop);
                    });
                }
            }
            other => {
                self.running.extend(other.map(|running| (node, running)));
                let how = Preparation::Failed;
                self.cluster.post(vec![ClusterMessage::Prepared { node, reservation, how }]);
            }
        }
    }

    /// Ends what goes on for a node without waiting for it.
    pub(crate) fn abandon(&mut self, node: NodeId) {
        if let Some(running) = self.running.remove(&node) {
            running.stop.raise();
            running.abort.abort();
        }
    }

    pub(crate) fn abandon_all(&mut self) {
        for node in self.running.keys().copied().collect::<Vec<_>>() {
            self.abandon(node);
        }
    }
}

impl Handler<NodePreparation> for AgentShard {
    type Result = ();

    fn handle(&mut self, order: NodePreparation, _: &mut Context<Self>) {
        match order {
            NodePreparation::Begin { node, reservation, what } => {
                if let Some(name) = self.name_of(node) {
                    self.preparations.begin(node, reservation, what, name);
                }
            }
            NodePreparation::End { node, reservation } => self.preparations.end(node, reservation),
        }
    }
}
