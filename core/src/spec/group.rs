//! A group as callers describe it: the unit of admission.

use std::collections::BTreeSet;
use std::fmt::Display;

use serde::{Deserialize, Serialize};

use crate::settings::Settings;
use crate::time::MaybeSpan;

use super::limits::{check_count, check_hops, check_length};
use super::{Hops, Invalid, OnUnsatisfiable, PoolRule, Problem, RoleSpec};

/// The unit of admission.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GroupSpec {
    pub name: String,
    pub start: Start,
    /// How far apart all of its tasks may run; it must start as a whole.
    pub hops: Option<Hops>,
    /// How long the size of an elastic group rests after it was changed; as the settings say unless given.
    pub freeze: MaybeSpan,
    /// Whether its tasks stay in one pool; as its job and the settings say if it is not said here.
    pub pool: Option<PoolRule>,
    /// What becomes of it if it can never fit; as the settings say if it is not said here.
    pub on_unsatisfiable: Option<OnUnsatisfiable>,
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
    /// Whether its size may vary while it runs.
    pub fn is_elastic(&self) -> bool {
        self.start == Start::Atomic && self.roles.iter().any(|role| role.min < role.max)
    }

    pub(super) fn note_problems(
        &self,
        field: impl Display + Copy,
        settings: &Settings,
        problems: &mut Vec<Invalid>,
    ) {
        let limits = &settings.limits;
        problems.extend(check_length(format_args!("{field}.name"), &self.name, limits.name_length));
        if self.roles.is_empty() {
            problems.push(Invalid::new(format!("{field}.roles"), "[]", Problem::Empty));
        }
        problems.extend(check_hops(field, self.hops, self.start));
        problems.extend(check_count(format_args!("{field}.roles"), self.roles.len(), limits.roles_per_group));
        let mut names = BTreeSet::new();
        for (index, role) in self.roles.iter().enumerate() {
            let field = format_args!("{field}.roles[{index}]");
            if !names.insert(&role.name) {
                problems.push(Invalid::new(format!("{field}.name"), &role.name, Problem::Duplicate));
            }
            role.note_problems(field, settings, problems);
            problems.extend(check_hops(field, role.shape.hops, self.start));
            role.note_sizes(field, self.start, problems);
        }
        self.note_elastic_problems(field, problems);
    }

    fn note_elastic_problems(&self, field: impl Display + Copy, problems: &mut Vec<Invalid>) {
        let is_atomic = self.start == Start::Atomic;
        if is_atomic && !self.roles.is_empty() && self.roles.iter().all(|role| role.min == 0) {
            problems.push(Invalid::new(format!("{field}.roles"), "a smallest size of 0", Problem::NoMinimum));
        }
        let nearness = self.hops.is_some() || self.roles.iter().any(|role| role.shape.hops.is_some());
        if self.is_elastic() && nearness {
            // Members that join later would have to be near those that run.
            problems.push(Invalid::new(format!("{field}.hops"), "roles that may grow", Problem::NotElastic));
        }
        let mut roles = self.roles.iter().enumerate();
        if let Some((index, _)) = roles.find(|(_, role)| role.shape.guest_of.is_some() && self.is_elastic()) {
            let field = format_args!("{field}.roles[{index}].guest_of");
            problems.push(Invalid::new(field, "roles that may grow", Problem::NotElastic));
        }
        if !is_atomic && self.freeze.get().is_some_and(|freeze| !freeze.is_zero()) {
            problems.push(Invalid::new(format!("{field}.freeze"), "independent", Problem::NotElastic));
        }
        self.note_guests(field, problems);
    }
}
