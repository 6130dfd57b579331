//! Lays the tasks that run already onto nodes: where the file says, else on the first that fits.

use std::collections::BTreeMap;

use crate::id::NodeId;
use crate::messages::Adopted;
use crate::resources::Resources;
use crate::spec::{Liveness, Start};
use crate::time::Time;

use super::error::PlanError;
use super::scenario::{RunningTasks, Scenario};

/// The running tasks of one job: where they are, and since when, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Laid {
    pub(super) adopted: Vec<Adopted>,
    /// By group and role, when each task started.
    pub(super) started: BTreeMap<(u16, u16), Vec<Time>>,
}

/// For each job that has running tasks, by its position in the scenario.
pub(super) fn lay(scenario: &Scenario) -> Result<BTreeMap<usize, Laid>, PlanError> {
    let mut free: Vec<Resources> =
        scenario.nodes.iter().map(|node| node.capacity.beside(&node.reserved)).collect();
    let mut jobs: BTreeMap<usize, Laid> = BTreeMap::new();
    for (index, running) in scenario.running.iter().enumerate() {
        let laid = jobs.entry(running.job).or_default();
        lay_role(scenario, index, running, &mut free, laid)?;
    }
    for (job, laid) in &jobs {
        check_atomic_groups(scenario, *job, laid)?;
    }
    Ok(jobs)
}

fn lay_role(
    scenario: &Scenario,
    index: usize,
    running: &RunningTasks,
    free: &mut [Resources],
    laid: &mut Laid,
) -> Result<(), PlanError> {
    let RunningTasks { job, group, role, count, node, started } = *running;
    let spec = &scenario.jobs[job].spec.groups[usize::from(group)].roles[usize::from(role)];
    let request = &spec.shape.request;
    let is_down = |node: usize| scenario.nodes[node].liveness == Liveness::Down;
    let can_run = |node: usize, free: &[Resources]| !is_down(node) && request.fits_in(&free[node]);
    for _ in 0..count {
        let place = match node {
            Some(node) => can_run(node, free).then_some(node),
            None => (0..free.len()).find(|node| can_run(*node, free)),
        };
        let Some(place) = place else {
            let whole = match node {
                Some(node) if is_down(node) => {
                    format!("node `{}` is down and has no place", scenario.nodes[node].facts.name)
                }
                Some(node) => format!("node `{}` has no room", scenario.nodes[node].facts.name),
                None => "no node has room".to_owned(),
            };
            let what = format!("{whole} for {count} running tasks of role `{}`", spec.name);
            return Err(PlanError::Impossible { field: format!("running[{index}]"), what });
        };
        free[place] -= request;
        let node = NodeId(place as u32);
        match laid.adopted.last_mut() {
            Some(last)
                if (last.group, last.role, last.node, last.started) == (group, role, node, started) =>
            {
                last.tasks += 1;
            }
            _ => laid.adopted.push(Adopted { group, role, node, tasks: 1, started }),
        }
        laid.started.entry((group, role)).or_default().push(started);
    }
    Ok(())
}

/// An atomic group runs whole or not at all, also before the dry run begins.
fn check_atomic_groups(scenario: &Scenario, job: usize, laid: &Laid) -> Result<(), PlanError> {
    let spec = &scenario.jobs[job].spec;
    for (index, group) in spec.groups.iter().enumerate().filter(|(_, group)| group.start == Start::Atomic) {
        let running = |role: usize| laid.started.get(&(index as u16, role as u16)).map_or(0, Vec::len);
        let roles = group.roles.iter().enumerate();
        let (some, all) = roles.fold((false, true), |(some, all), (role, spec)| {
            let sizes = spec.min as usize..=spec.max as usize;
            (some || running(role) > 0, all && sizes.contains(&running(role)))
        });
        if some && !all {
            let all = if group.is_elastic() { "at least its minima run" } else { "all of it runs" };
            let what = format!("group `{}` of job `{}` is atomic: {all} or nothing", group.name, spec.name);
            return Err(PlanError::Impossible { field: "running".into(), what });
        }
    }
    Ok(())
}
