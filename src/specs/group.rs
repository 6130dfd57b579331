//! A group as services describe it.

use std::time::Duration;

use plimsoll_core::settings::Settings;
use plimsoll_core::spec::{self, Hops, Invalid, Start};

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

    /// Adds a role.
    #[must_use]
    pub fn role(mut self, role: RoleSpec) -> GroupSpec {
        self.roles.push(role);
        self
    }

    pub(super) fn convert(&self, field: &str, settings: &Settings) -> Result<spec::GroupSpec, Invalid> {
        let start = if self.atomic { Start::Atomic } else { Start::Independent };
        let roles = self.roles.iter().enumerate();
        let roles =
            roles.map(|(index, role)| role.convert(&format!("{field}.roles[{index}]"), start, settings));
        let roles = roles.collect::<Result<_, _>>()?;
        let freeze = optional_span(field, "freeze", self.freeze)?;
        let mut group = spec::GroupSpec { name: self.name.clone(), start, hops: self.hops, freeze, roles };
        for (index, role) in self.roles.iter().enumerate() {
            if let Some(host) = &role.guest_of {
                group.lodge(index, host, &format!("{field}.roles[{index}].guest_of"))?;
            }
        }
        Ok(group)
    }
}
