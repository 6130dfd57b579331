//! A group as services describe it.

use std::fmt::Display;
use std::time::Duration;

use plimsoll_core::settings::Settings;
use plimsoll_core::spec::{self, Hops, Invalid, OnUnsatisfiable, PoolRule, Start};

use super::RoleSpec;
use super::amount::optional_span;

/// The unit of admission.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GroupSpec {
    /// Unique within its job.
    pub name: String,
    /// Whether all tasks start together or each on its own.
    pub atomic: bool,
    /// How far apart in the network tree its tasks may run; for atomic groups.
    pub hops: Option<Hops>,
    /// How long the size of a group that may vary rests after it was changed; the setting `freeze` unless
    /// given.
    pub freeze: Option<Duration>,
    /// Whether its tasks stay in one pool; as its job and the settings say if it is not said here.
    pub pool_rule: Option<PoolRule>,
    /// What becomes of it if it can never fit; as the settings say if it is not said here.
    pub on_unsatisfiable: Option<OnUnsatisfiable>,
    /// At least one.
    pub roles: Vec<RoleSpec>,
}

impl GroupSpec {
    /// A group of tasks that start each on its own.
    pub fn new(name: impl Into<String>) -> GroupSpec {
        GroupSpec { name: name.into(), ..GroupSpec::default() }
    }

    /// All tasks start together or not at all.
    #[must_use]
    pub fn atomic(mut self) -> GroupSpec {
        self.atomic = true;
        self
    }

    /// Says how far apart in the network tree its tasks may run.
    #[must_use]
    pub fn hops(mut self, hops: Hops) -> GroupSpec {
        self.hops = Some(hops);
        self
    }

    /// Says how long the size of the group rests after it was changed.
    #[must_use]
    pub fn freeze(mut self, freeze: Duration) -> GroupSpec {
        self.freeze = Some(freeze);
        self
    }

    /// Says whether its tasks stay in one pool.
    #[must_use]
    pub fn pool_rule(mut self, rule: PoolRule) -> GroupSpec {
        self.pool_rule = Some(rule);
        self
    }

    /// Says what becomes of the group if it can never fit on the nodes that are there.
    #[must_use]
    pub fn on_unsatisfiable(mut self, what: OnUnsatisfiable) -> GroupSpec {
        self.on_unsatisfiable = Some(what);
        self
    }

    /// Adds a role.
    #[must_use]
    pub fn role(mut self, role: RoleSpec) -> GroupSpec {
        self.roles.push(role);
        self
    }

    pub(super) fn convert(
        &self,
        field: impl Display + Copy,
        settings: &Settings,
    ) -> Result<spec::GroupSpec, Invalid> {
        let start = if self.atomic { Start::Atomic } else { Start::Independent };
        let roles = self.roles.iter().enumerate();
        let roles =
            roles.map(|(index, role)| role.convert(format_args!("{field}.roles[{index}]"), start, settings));
        let roles = roles.collect::<Result<_, _>>()?;
        let freeze = optional_span(field, "freeze", self.freeze)?.into();
        let (name, hops, pool) = (self.name.clone(), self.hops, self.pool_rule);
        let on_unsatisfiable = self.on_unsatisfiable;
        let mut group = spec::GroupSpec { name, start, hops, freeze, pool, on_unsatisfiable, roles };
        for (index, role) in self.roles.iter().enumerate() {
            if let Some(host) = &role.guest_of {
                group.lodge(index, host, format_args!("{field}.roles[{index}].guest_of"))?;
            }
        }
        Ok(group)
    }
}
