//! A group as callers describe it: the unit of admission.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::settings::Settings;

use super::limits::{check_count, check_hops, check_length};
use super::{Hops, Invalid, Problem, RoleSpec};

/// The unit of admission.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GroupSpec {
    pub name: String,
    pub start: Start,
    /// How far apart all of its tasks may run; it must start as a whole.
    pub hops: Option<Hops>,
    pub roles: Vec<RoleSpec>,
}

/// How the tasks of a group may start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Start {
    /// Each task on its own, as soon as it fits.
    #[default]
    Independent,
    /// All of them in one commit, or none.
    Atomic,
}

impl GroupSpec {
    pub(super) fn note_problems(&self, field: &str, settings: &Settings, problems: &mut Vec<Invalid>) {
        let limits = &settings.limits;
        problems.extend(check_length(&format!("{field}.name"), &self.name, limits.name_length));
        if self.roles.is_empty() {
            problems.push(Invalid::new(format!("{field}.roles"), "[]", Problem::Empty));
        }
        problems.extend(check_hops(field, self.hops, self.start));
        problems.extend(check_count(&format!("{field}.roles"), self.roles.len(), limits.roles_per_group));
        let mut names = BTreeSet::new();
        for (index, role) in self.roles.iter().enumerate() {
            let field = format!("{field}.roles[{index}]");
            if !names.insert(&role.name) {
                problems.push(Invalid::new(format!("{field}.name"), &role.name, Problem::Duplicate));
            }
            role.note_problems(&field, settings, problems);
            problems.extend(check_hops(&field, role.shape.hops, self.start));
            if self.start == Start::Atomic && role.min < role.max {
                // Sizes that vary while a group runs are a capability of their own.
                problems.push(Invalid::new(format!("{field}.min"), role.min, Problem::NotSupported));
            }
        }
        self.note_guests(field, problems);
    }
}
