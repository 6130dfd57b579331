//! Nodes as services describe them, with resources by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::settings::Settings;
use plimsoll_core::spec::{self, Access, Availability, Condition, Invalid, NodePath, Problem};

use crate::specs::{Amount, offered, resources};

/// A node to be added.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeSpec {
    /// Unique among the nodes that are there.
    pub name: String,
    /// The part of the cluster it belongs to.
    pub pool: Option<String>,
    /// What it offers, by resource kind.
    pub capacity: BTreeMap<String, Amount>,
    /// So much of that is used by others, who are not asked.
    pub reserved: BTreeMap<String, Amount>,
    /// What is known about it.
    pub labels: BTreeMap<String, String>,
    /// What its engine says about itself.
    pub engine_labels: BTreeMap<String, String>,
    /// The operating system, such as `linux`.
    pub os: Option<String>,
    /// The architecture, such as `amd64`.
    pub arch: Option<String>,
    /// Its part in the cluster, such as `worker`.
    pub role: Option<String>,
    /// Its address.
    pub ip: Option<String>,
    /// Plugins that are installed on it.
    pub plugins: Vec<String>,
    /// Where it is in the network tree, such as `block-1/rack-7/host-3`.
    pub path: Option<String>,
    /// Who may use it; everybody unless it is said.
    pub access: Option<Access>,
    /// What the operators say about it.
    pub condition: Condition,
    /// Whether it takes new work.
    pub availability: Availability,
}

/// A change of a node; what is `None` stays.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodePatch {
    /// The whole of what it offers from now on.
    pub capacity: Option<BTreeMap<String, Amount>>,
    /// The whole of what others use of it from now on: work above it gives way at once.
    pub reserved: Option<BTreeMap<String, Amount>>,
    /// All of its labels from now on.
    pub labels: Option<BTreeMap<String, String>>,
    /// The pool it belongs to from now on; refused while something runs there.
    pub pool: Option<String>,
    /// All labels of its engine from now on.
    pub engine_labels: Option<BTreeMap<String, String>>,
    /// Its operating system from now on.
    pub os: Option<String>,
    /// Its architecture from now on.
    pub arch: Option<String>,
    /// Its part in the cluster from now on.
    pub role: Option<String>,
    /// Its address from now on.
    pub ip: Option<String>,
    /// All of its plugins from now on.
    pub plugins: Option<Vec<String>>,
    /// Where it is in the network tree from now on.
    pub path: Option<String>,
    /// Who may use it from now on; `Some(None)` is everybody.
    pub access: Option<Option<Access>>,
    /// What the operators say about it from now on.
    pub condition: Option<Condition>,
    /// Why it is set broken, in words for people; goes with the condition `broken`.
    pub reason: Option<String>,
    /// Whether it takes new work from now on.
    pub availability: Option<Availability>,
}

impl NodeSpec {
    /// A node that offers nothing yet.
    pub fn new(name: impl Into<String>) -> NodeSpec {
        NodeSpec { name: name.into(), ..NodeSpec::default() }
    }

    /// Adds to what it offers.
    #[must_use]
    pub fn capacity(mut self, kind: impl Into<String>, amount: impl Into<Amount>) -> NodeSpec {
        self.capacity.insert(kind.into(), amount.into());
        self
    }

    /// Adds to what others use of it.
    #[must_use]
    pub fn reserved(mut self, kind: impl Into<String>, amount: impl Into<Amount>) -> NodeSpec {
        self.reserved.insert(kind.into(), amount.into());
        self
    }

    /// Names units of a kind, each of which is given to one task only, which is told the name.
    #[must_use]
    pub fn units<N: Into<String>>(
        mut self,
        kind: impl Into<String>,
        names: impl IntoIterator<Item = N>,
    ) -> NodeSpec {
        let names = names.into_iter().map(Into::into).collect();
        self.capacity.insert(kind.into(), Amount::Units(names));
        self
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> NodeSpec {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Says where it is in the network tree.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> NodeSpec {
        self.path = Some(path.into());
        self
    }

    /// Says who may use it.
    #[must_use]
    pub fn access(mut self, access: Access) -> NodeSpec {
        self.access = Some(access);
        self
    }

    pub(crate) fn validated(&self, settings: &Settings) -> Result<spec::NodeSpec, Invalid> {
        let (capacity, units) = offered("capacity", &self.capacity, settings)?;
        let mut node = spec::NodeSpec::new(self.name.clone(), capacity);
        node.units = units;
        node.reserved = resources("reserved", &self.reserved, settings)?;
        let facts = &mut node.facts;
        if let Some(pool) = &self.pool {
            facts.pool.clone_from(pool);
        }
        facts.labels.clone_from(&self.labels);
        facts.engine_labels.clone_from(&self.engine_labels);
        (facts.os, facts.arch) = (self.os.clone(), self.arch.clone());
        (facts.role, facts.ip) = (self.role.clone(), self.ip.clone());
        facts.plugins.clone_from(&self.plugins);
        facts.path = node_path(self.path.as_deref())?;
        facts.access = self.access.clone().map(Arc::new);
        (node.condition, node.availability) = (self.condition, self.availability);
        node.validate(settings)?;
        Ok(node)
    }
}

impl NodePatch {
    pub(crate) fn validated(&self, settings: &Settings) -> Result<spec::NodePatch, Invalid> {
        let capacity = self.capacity.as_ref().map(|amounts| offered("capacity", amounts, settings));
        let (capacity, units) =
            capacity.transpose()?.map_or_else(Default::default, |(all, units)| (Some(all), units));
        let reserved = self.reserved.as_ref().map(|amounts| resources("reserved", amounts, settings));
        let patch = spec::NodePatch {
            capacity,
            units,
            reserved: reserved.transpose()?,
            labels: self.labels.clone(),
            pool: self.pool.clone(),
            engine_labels: self.engine_labels.clone(),
            os: self.os.clone(),
            arch: self.arch.clone(),
            role: self.role.clone(),
            ip: self.ip.clone(),
            plugins: self.plugins.clone(),
            path: node_path(self.path.as_deref())?,
            access: self.access.clone().map(|access| access.map(Arc::new)),
            condition: self.condition,
            reason: self.reason.clone(),
            availability: self.availability,
        };
        patch.validate(settings)?;
        Ok(patch)
    }
}

fn node_path(text: Option<&str>) -> Result<Option<NodePath>, Invalid> {
    let parse = |text| NodePath::parse(text).ok_or_else(|| Invalid::new("path", text, Problem::NoPath));
    text.map(parse).transpose()
}
