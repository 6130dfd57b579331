//! Roles that are there for others: guests, which run inside tasks of another role, and auxiliary ones.

use std::fmt::Display;
use std::sync::Arc;

use super::{GroupSpec, Invalid, Problem, RoleSpec, Rules, ShapeSpec, Start};

impl GroupSpec {
    /// Makes the tasks of a role guests of those of the role with this name.
    pub fn lodge(&mut self, role: usize, host: &str, field: impl Display + Copy) -> Result<(), Invalid> {
        let unknown = || Invalid::new(field, host, Problem::UnknownRole);
        let host = self.roles.iter().position(|role| role.name == host).ok_or_else(unknown)?;
        let guest = self.roles.get_mut(role).ok_or_else(unknown)?;
        Arc::make_mut(&mut guest.shape).guest_of = Some(host as u16);
        Ok(())
    }

    pub(super) fn note_guests(&self, field: impl Display + Copy, problems: &mut Vec<Invalid>) {
        if !self.roles.is_empty() && self.roles.iter().all(|role| role.auxiliary) {
            let problem = Problem::OnlyAuxiliary;
            problems.push(Invalid::new(format!("{field}.roles"), "auxiliary = true", problem));
        }
        for (index, role) in self.roles.iter().enumerate() {
            let Some(host) = role.shape.guest_of else { continue };
            let field = format_args!("{field}.roles[{index}]");
            if let Some(problem) = self.problem_of_guest(role, usize::from(host)) {
                let host = self.roles.get(usize::from(host)).map_or("", |host| &host.name);
                problems.push(Invalid::new(format!("{field}.guest_of"), format!("`{host}`"), problem));
            }
            for name in role.shape.wishes() {
                problems.push(Invalid::new(format!("{field}.{name}"), &role.name, Problem::OfGuest));
            }
        }
    }

    fn problem_of_guest(&self, guest: &RoleSpec, host: usize) -> Option<Problem> {
        let Some(host) = self.roles.get(host) else { return Some(Problem::UnknownRole) };
        if host.shape.guest_of.is_some() {
            return Some(Problem::GuestOfGuest);
        }
        if self.start != Start::Atomic {
            return Some(Problem::GuestNeedsAtomic);
        }
        let sizes = (guest.min, guest.max) == (host.min, host.max) && host.min == host.max;
        (!sizes).then_some(Problem::GuestSize { tasks: host.max })
    }
}

impl Rules {
    /// Whether they ask for nothing but what a whole job may ask for.
    fn are_plain(&self) -> bool {
        let own = Rules { pools: Vec::new(), asker: None, parts: 0, ..self.clone() };
        own == Rules::default()
    }
}

impl ShapeSpec {
    /// What it asks of its node that a guest cannot ask, because its host has the node.
    fn wishes(&self) -> impl Iterator<Item = &'static str> {
        let wishes = [
            ("request", !self.request.is_zero()),
            ("constraints", !self.rules.are_plain()),
            ("service", self.service.is_some()),
            ("spread", !self.spread.is_empty()),
            ("ports", !self.ports.is_empty()),
            ("max_per_node", self.max_per_node > 0),
            ("exclusive", self.exclusive),
            ("placement", self.placement.is_some()),
            ("snapshot", self.snapshot.is_some()),
            ("hops", self.hops.is_some()),
        ];
        wishes.into_iter().filter(|(_, given)| *given).map(|(name, _)| name)
    }
}
