//! What a condition can ask about a node, and where the answers come from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One fact about a node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Key {
    /// `node.id`
    Id,
    /// `node.hostname`: the name of the node.
    Hostname,
    /// `node.ip`
    Ip,
    /// `node.role`
    Role,
    /// `node.pool`
    Pool,
    /// `node.platform.os`
    Os,
    /// `node.platform.arch`
    Arch,
    /// `node.labels.NAME`
    NodeLabel(String),
    /// `engine.labels.NAME`
    EngineLabel(String),
}

/// A node, as far as conditions see it.
pub trait Facts {
    /// The fact as text, or `None` if the node does not have it.
    fn fact(&self, key: &Key) -> Option<&str>;
}

/// What can stand where a key is expected, for people who wrote something else.
pub(super) const KEYS: &str = "node.id, node.hostname, node.ip, node.role, node.pool, node.platform.os, \
                               node.platform.arch, node.labels.NAME and engine.labels.NAME";

const NODE_LABELS: &str = "node.labels.";
const ENGINE_LABELS: &str = "engine.labels.";

impl Key {
    /// The key with this name. Prefixes are read without regard to case, names of labels with it.
    pub fn parse(text: &str) -> Option<Key> {
        let named = [Key::Id, Key::Hostname, Key::Ip, Key::Role, Key::Pool, Key::Os, Key::Arch];
        if let Some(key) = named.into_iter().find(|key| text.eq_ignore_ascii_case(key.name())) {
            return Some(key);
        }
        let label = |prefix: &str| {
            let (start, name) = text.split_at_checked(prefix.len())?;
            let is_label = start.eq_ignore_ascii_case(prefix) && !name.is_empty();
            is_label.then(|| name.to_owned())
        };
        label(NODE_LABELS).map(Key::NodeLabel).or_else(|| label(ENGINE_LABELS).map(Key::EngineLabel))
    }

    /// The whole name, or for a label what stands before its own.
    fn name(&self) -> &'static str {
        match self {
            Key::Id => "node.id",
            Key::Hostname => "node.hostname",
            Key::Ip => "node.ip",
            Key::Role => "node.role",
            Key::Pool => "node.pool",
            Key::Os => "node.platform.os",
            Key::Arch => "node.platform.arch",
            Key::NodeLabel(_) => NODE_LABELS,
            Key::EngineLabel(_) => ENGINE_LABELS,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Key::NodeLabel(name) | Key::EngineLabel(name) => f.write_str(name),
            _ => Ok(()),
        }
    }
}
