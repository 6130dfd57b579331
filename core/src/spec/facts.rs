//! What is known about a node besides what it offers and whether it takes work.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::settings::Settings;

use super::limits::{check_count, check_length};
use super::{CommonFacts, Filters, Invalid, Judges, KindSet, NodePath, Problem};

/// The facts that rules look at. Shared by everybody who knows the node. What it has in common with others
/// reads and changes like its own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct NodeFacts {
    pub name: String,
    pub ip: Option<String>,
    /// Where it is in the network tree.
    pub path: Option<NodePath>,
    pub common: Arc<CommonFacts>,
    /// The kinds of which it offers single units with names.
    pub named_kinds: KindSet,
    /// The filters of the service that judge it.
    #[serde(skip)]
    pub judges: Judges,
}

impl Deref for NodeFacts {
    type Target = CommonFacts;

    fn deref(&self) -> &CommonFacts {
        &self.common
    }
}

impl DerefMut for NodeFacts {
    fn deref_mut(&mut self) -> &mut CommonFacts {
        Arc::make_mut(&mut self.common)
    }
}

/// A node has no more plugins than this.
const PLUGINS_MAX: u64 = 1_024;

impl NodeFacts {
    /// Whether the node has the plugin, in any version or in its latest.
    pub fn has_plugin(&self, plugin: &str) -> bool {
        let is_it = |known: &String| known == plugin || known.strip_suffix(":latest") == Some(plugin);
        self.plugins.iter().any(is_it)
    }

    /// Puts the node into the hands of these filters.
    pub fn be_judged_by(facts: &mut Arc<NodeFacts>, filters: &Filters) {
        if !facts.judges.0.are(filters) {
            Arc::make_mut(facts).judges = Judges(filters.clone());
        }
    }

    pub(super) fn note_problems(&self, settings: &Settings, problems: &mut Vec<Invalid>) {
        let length = settings.limits.name_length;
        if self.name.is_empty() {
            problems.push(Invalid::new("name", "\"\"", Problem::Empty));
        }
        problems.extend(check_length("name", &self.name, length));
        problems.extend(check_length("pool", &self.pool, length));
        let texts = [("os", &self.os), ("arch", &self.arch), ("role", &self.role), ("ip", &self.ip)];
        for (field, text) in texts {
            problems.extend(text.as_ref().and_then(|text| check_length(field, text, length)));
        }
        problems.extend(self.path.as_ref().and_then(|path| check_path(path, settings)));
        if let Some(access) = &self.access {
            access.note_problems(length, problems);
        }
        note_labels("labels", &self.labels, settings, problems);
        note_labels("engine_labels", &self.engine_labels, settings, problems);
        note_plugins(&self.plugins, settings, problems);
    }
}

pub(super) fn note_plugins(plugins: &[String], settings: &Settings, problems: &mut Vec<Invalid>) {
    problems.extend(check_count("plugins", plugins.len(), PLUGINS_MAX));
    for (index, plugin) in plugins.iter().enumerate() {
        let field = format_args!("plugins[{index}]");
        problems.extend(check_length(field, plugin, settings.limits.name_length));
    }
}

pub(super) fn check_path(path: &NodePath, settings: &Settings) -> Option<Invalid> {
    check_length("path", path.as_str(), settings.limits.name_length)
}

pub(super) fn note_labels(
    field: impl Display + Copy,
    labels: &BTreeMap<String, String>,
    settings: &Settings,
    problems: &mut Vec<Invalid>,
) {
    let limits = &settings.limits;
    problems.extend(check_count(field, labels.len(), limits.labels_per_node));
    for (key, value) in labels {
        match check_length(field, key, limits.label_length) {
            Some(long) => problems.push(long),
            None => problems.extend(check_length(format_args!("{field}.{key}"), value, limits.label_length)),
        }
    }
}
