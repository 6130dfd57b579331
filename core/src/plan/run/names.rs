//! The names by which events of a dry run mean groups and roles.

use crate::id::{NodeId, TaskId};
use crate::plan::scenario::Which;

use super::{DryRun, PlanError, is_it};

impl DryRun<'_> {
    /// Whether the job has the group and the role that an event names.
    pub(super) fn check_names(&self, field: &str, job: &str, which: &Which) -> Result<(), PlanError> {
        let groups = &self.jobs[self.numbers[job].0 as usize - 1].groups;
        let groups: Vec<_> = groups.iter().filter(|group| is_it(&group.name, &which.group)).collect();
        let mut roles = groups.iter().flat_map(|group| &group.roles);
        let missing = match (&which.group, &which.role) {
            (Some(name), _) if groups.is_empty() => ("group", name),
            (_, Some(name)) if !roles.any(|role| role.name == *name) => ("role", name),
            _ => return Ok(()),
        };
        let (what, name) = missing;
        let (field, what) = (format!("{field}.{what}"), format!("job `{job}` has no {what} named `{name}`"));
        Err(PlanError::Impossible { field, what })
    }

    pub(super) fn is_one_of(&self, task: TaskId, node: NodeId, which: &Which) -> bool {
        let group = &self.jobs[task.job().0 as usize - 1].groups[task.group.index()];
        let role = &group.roles[usize::from(task.role)].name;
        let node = &self.node_name(node);
        is_it(&group.name, &which.group) && is_it(role, &which.role) && is_it(node, &which.node)
    }
}
