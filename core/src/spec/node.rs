//! Nodes as callers describe them, and the three things that decide whether one takes work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::resources::Resources;
use crate::settings::Settings;

use super::facts::{check_path, note_labels};
use super::limits::note_amounts;
use super::{Invalid, NodeFacts, NodePath};

/// A node to be added.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeSpec {
    pub facts: NodeFacts,
    pub capacity: Resources,
    pub condition: Condition,
    pub availability: Availability,
    /// Whether the node's agent answers at the moment it is added.
    pub liveness: Liveness,
}

/// What the operators say about a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Condition {
    #[default]
    Automated,
    Manual,
    Broken,
}

/// Whether a node may take new work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Availability {
    #[default]
    Active,
    Pause,
    Drain,
}

/// Whether a node's agent answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Liveness {
    #[default]
    Ready,
    /// Silent for a while: it keeps its attempts and gets no new ones.
    Suspect,
    /// Given up: its attempts are lost for good.
    Down,
}

/// What decides whether a node takes new work, apart from room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct NodeState {
    pub condition: Condition,
    pub availability: Availability,
    pub liveness: Liveness,
}

impl NodeState {
    /// What keeps new work away, in words that follow the name of the node.
    pub fn objections(self) -> Vec<&'static str> {
        let condition = match self.condition {
            Condition::Automated => None,
            Condition::Manual => Some("is in manual condition"),
            Condition::Broken => Some("is broken"),
        };
        let availability = match self.availability {
            Availability::Active => None,
            Availability::Pause => Some("is paused"),
            Availability::Drain => Some("is being drained"),
        };
        let liveness = match self.liveness {
            Liveness::Ready => None,
            Liveness::Suspect => Some("is silent"),
            Liveness::Down => Some("is down"),
        };
        condition.into_iter().chain(availability).chain(liveness).collect()
    }
}

/// A change of a node; what is `None` stays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NodePatch {
    pub capacity: Option<Resources>,
    pub labels: Option<BTreeMap<String, String>>,
    pub path: Option<NodePath>,
    pub condition: Option<Condition>,
    pub availability: Option<Availability>,
}

pub const POOL_DEFAULT: &str = "default";

impl NodeSpec {
    pub fn new(name: impl Into<String>, capacity: Resources) -> NodeSpec {
        NodeSpec {
            facts: NodeFacts { name: name.into(), pool: POOL_DEFAULT.into(), ..NodeFacts::default() },
            capacity,
            condition: Condition::default(),
            availability: Availability::default(),
            liveness: Liveness::default(),
        }
    }

    pub fn validate(&self, settings: &Settings) -> Result<(), Invalid> {
        self.problems(settings).into_iter().next().map_or(Ok(()), Err)
    }

    /// Everything that is wrong with the node, in the order of its fields.
    pub fn problems(&self, settings: &Settings) -> Vec<Invalid> {
        let mut problems = Vec::new();
        self.facts.note_problems(settings, &mut problems);
        note_amounts("capacity", &self.capacity, settings, &mut problems);
        problems
    }
}

impl NodePatch {
    pub fn validate(&self, settings: &Settings) -> Result<(), Invalid> {
        self.problems(settings).into_iter().next().map_or(Ok(()), Err)
    }

    /// Everything that is wrong with the change, in the order of its fields.
    pub fn problems(&self, settings: &Settings) -> Vec<Invalid> {
        let mut problems = Vec::new();
        if let Some(labels) = &self.labels {
            note_labels("labels", labels, settings, &mut problems);
        }
        problems.extend(self.path.as_ref().and_then(|path| check_path(path, settings)));
        if let Some(capacity) = &self.capacity {
            note_amounts("capacity", capacity, settings, &mut problems);
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::KindId;
    use crate::spec::Problem;

    #[test]
    fn bad_nodes_name_the_field_and_the_problem() {
        let settings = Settings::default();
        let nameless = NodeSpec::new("", Resources::new()).validate(&settings).expect_err("no name");
        assert_eq!((nameless.field.as_str(), nameless.problem), ("name", Problem::Empty));
        let mut labelled = NodeSpec::new("n", Resources::of(KindId(0), 1_000));
        labelled.facts.labels.insert("zone".into(), "z".repeat(300));
        let invalid = labelled.validate(&settings).expect_err("the label is long");
        assert_eq!(invalid.field, "labels.zone");
        assert!(invalid.value.len() < 100, "the value is shortened");
    }
}
