//! Telling about nodes.

use plimsoll_actors::{Command, NodeStatus};
use plimsoll_core::messages::Refusal;

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

    /// Tells whether a node's agent is heard. A node that is not heard for long loses its tasks.
    pub async fn heartbeat(&self, name: &str, heard: bool) -> Result<(), RequestError> {
        self.ask(|reply| Command::Heartbeat(name.to_owned(), heard, reply)).await.map(drop)
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
