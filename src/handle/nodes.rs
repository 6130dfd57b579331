//! Telling about nodes.

use plimsoll_actors::{Command, NodeStatus};
use plimsoll_core::messages::{Answer, Refusal, UsageAnswer, UsageOf};
use plimsoll_core::spec::{Invalid, PoolState, Problem, ReservationSpec};
use plimsoll_core::time::Time;

use super::Handle;
use crate::error::RequestError;
use crate::node_specs::{NodePatch, NodeSpec};

impl Handle {
    /// Adds a node; it takes work at once.
    pub async fn add_node(&self, node: NodeSpec) -> Result<(), RequestError> {
        let node = Box::new(node.validated(&self.port.settings())?);
        self.ask(|reply| Command::AddNode(node, reply)).await.map(drop)
    }

    /// Changes a node.
    pub async fn update_node(&self, name: &str, patch: NodePatch) -> Result<(), RequestError> {
        let patch = Box::new(patch.validated(&self.port.settings())?);
        self.ask(|reply| Command::UpdateNode(name.to_owned(), patch, reply)).await.map(drop)
    }

    /// Removes a node; what runs there is lost and runs again elsewhere.
    pub async fn remove_node(&self, name: &str) -> Result<(), RequestError> {
        self.ask(|reply| Command::RemoveNode(name.to_owned(), reply)).await.map(drop)
    }

    /// Says whether the nodes of a pool take work: like any other, only more of what is bound to the pool
    /// already, or nothing new at all. It holds for nodes that are added later too.
    pub async fn set_pool(&self, pool: &str, state: PoolState) -> Result<(), RequestError> {
        let limit = self.port.settings().limits.name_length;
        if pool.len() as u64 > limit {
            return Err(Invalid::new("pool", pool, Problem::TooLong { limit }).into());
        }
        self.ask(|reply| Command::SetPool(pool.to_owned(), state, reply)).await.map(drop)
    }

    /// Tells whether a node is heard. A silent node is suspect: it keeps what runs there and gets nothing new; after
    /// `deadlines.down` what ran there is lost. With `deadlines.heartbeat` a node of which this does not say for
    /// so long that it is heard is silent too; else it is heard until somebody says that it is not.
    pub async fn heartbeat(&self, name: &str, heard: bool) -> Result<(), RequestError> {
        self.ask(|reply| Command::Heartbeat(name.to_owned(), heard, reply)).await.map(drop)
    }

    /// Reserves a manual node for somebody, who has it until it is returned. What is to be prepared is
    /// handed to [`Executor::prepare_node`](crate::Executor::prepare_node) first; with nothing to prepare, or
    /// without an executor, the node is his at once. Refused unless the node is manual, free and heard.
    pub async fn reserve_node(
        &self,
        name: &str,
        who: &str,
        prepare: Option<&str>,
    ) -> Result<(), RequestError> {
        let wish = ReservationSpec { who: who.into(), prepare: prepare.map(Into::into) };
        wish.validate(&self.port.settings())?;
        self.ask(|reply| Command::Reserve(name.to_owned(), Box::new(wish), reply)).await.map(drop)
    }

    /// Gives a reserved node back. Preparations that go on are ended first.
    pub async fn return_node(&self, name: &str) -> Result<(), RequestError> {
        self.ask(|reply| Command::Return(name.to_owned(), reply)).await.map(drop)
    }

    /// How a node, the nodes of a pool or all nodes spent their time: since their history began, or since
    /// a moment as far as it is still known. Nothing is known unless `retention.usage_entries` says so.
    pub async fn usage(&self, of: UsageOf, since: Option<Time>) -> Result<UsageAnswer, RequestError> {
        match self.ask(|reply| Command::Usage(of, since, reply)).await? {
            Answer::Usage(answer) => Ok(*answer),
            other => unreachable!("usage is told or refused, not {other:?}"),
        }
    }

    /// How a node stands, without asking anybody.
    pub fn node(&self, name: &str) -> Result<NodeStatus, Refusal> {
        self.port.board().node(name)
    }

    /// All nodes.
    pub fn nodes(&self) -> Vec<NodeStatus> {
        self.port.board().nodes()
    }
}
