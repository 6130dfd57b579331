//! The end of a run: is every promise kept? Each machine is checked whole, and all against each other.

use plimsoll::Runtime;
use plimsoll::core::machine::{Broken, Machine};
use plimsoll::core::machines::Machines;
use plimsoll::core::outcome::TaskState;
use plimsoll_actors::Snapshot;

use super::follow::Counts;

/// A promise, and what was found where it is broken.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) promise: &'static str,
    pub(super) broken: Option<String>,
}

/// What was accepted, as whoever submitted it counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted {
    pub(super) jobs: u64,
    pub(super) tasks: u64,
}

fn verdict(promise: &'static str, kept: Result<(), String>) -> Verdict {
    Verdict { promise, broken: kept.err() }
}

fn demand(kept: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if kept { Ok(()) } else { Err(otherwise()) }
}

/// Checks the real runtime through a snapshot of it.
pub(super) async fn check(runtime: &Runtime, counts: &Counts, drained: bool) -> Vec<Verdict> {
    const WHOLE: &str = "every machine is whole";
    let unfinished = counts.unfinished();
    let ended = demand(drained, || format!("{unfinished} tasks did not end in time"));
    let mut verdicts = vec![verdict("everything that was accepted ends", ended)];
    let snapshot = match runtime.snapshot().await {
        Ok(bytes) => Snapshot::from_bytes(&bytes).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let machines = snapshot.and_then(|snapshot| snapshot.inspect().map_err(|error| format!("{error:?}")));
    match machines {
        Ok(machines) => {
            verdicts.push(verdict(WHOLE, Ok(())));
            let accepted = Accepted {
                jobs: Counts::get(&counts.accepted_jobs),
                tasks: Counts::get(&counts.accepted_tasks),
            };
            verdicts.extend(compare(&machines, accepted, drained));
        }
        Err(error) => verdicts.push(verdict(WHOLE, Err(error))),
    }
    verdicts
}

/// Checks machines that nobody else has checked yet.
pub(super) fn check_machines(machines: &Machines, accepted: Accepted) -> Vec<Verdict> {
    let whole: Result<(), Broken> = machines
        .jobs
        .check()
        .and_then(|()| machines.scheduler.check())
        .and_then(|()| machines.cluster.check())
        .and_then(|()| machines.runner.check());
    let mut verdicts = vec![verdict("every machine is whole", whole.map_err(|broken| broken.to_string()))];
    verdicts.extend(compare(machines, accepted, false));
    verdicts
}

fn compare(machines: &Machines, accepted: Accepted, drained: bool) -> Vec<Verdict> {
    vec![
        verdict("the ledger is what runs, and nothing else", ledger(machines, drained)),
        verdict("the Scheduler sees what the ledger holds", views(machines)),
        verdict("nothing accepted is lost", nothing_lost(machines, accepted)),
        verdict("nothing waits that could start", nothing_could_start(machines)),
    ]
}

fn ledger(machines: &Machines, drained: bool) -> Result<(), String> {
    let held: Vec<_> = machines.cluster.live().map(|live| live.attempt).collect();
    let dispatched: Vec<_> = machines.runner.live().map(|(attempt, _)| attempt).collect();
    let known: Vec<_> = machines.jobs.live().map(|task| task.attempt).collect();
    let counted = || {
        format!("the ledger holds {}, {} are dispatched, {} known", held.len(), dispatched.len(), known.len())
    };
    demand(held == dispatched && held == known, counted)?;
    demand(!drained || held.is_empty(), || format!("{} are held after everything has ended", held.len()))
}

fn views(machines: &Machines) -> Result<(), String> {
    let view = machines.scheduler.free_by_node();
    for (id, node) in machines.cluster.nodes() {
        let (free, seen) = (node.free(), view.get(&id));
        demand(seen == Some(&free), || format!("{id} has {free:?} free, the Scheduler believes {seen:?}"))?;
    }
    demand(machines.cluster.all_seen(), || "a node is pending that nobody looked at".to_owned())
}

fn nothing_lost(machines: &Machines, accepted: Accepted) -> Result<(), String> {
    let jobs = machines.jobs.last_job().0;
    demand(jobs == accepted.jobs, || format!("{} jobs were accepted, {jobs} are known", accepted.jobs))?;
    let (mut waiting, mut live, mut finished) = (0, 0, machines.jobs.summary().tasks);
    for (_, job) in machines.jobs.jobs() {
        for group in &job.groups {
            waiting += group.count(TaskState::Queued) + group.count(TaskState::Assigned);
            live += u64::from(group.live);
            let ends = TaskState::ALL.into_iter().filter(|state| state.is_final());
            finished += ends.map(|state| group.count(state)).sum::<u64>();
        }
    }
    let sum = waiting + live + finished;
    demand(sum == accepted.tasks, || {
        let accepted = accepted.tasks;
        format!("{accepted} tasks were accepted; {waiting} wait, {live} run, {finished} have ended")
    })?;
    let queued = machines.scheduler.waiting_tasks();
    demand(queued == waiting, || format!("{waiting} tasks wait, the Scheduler has {queued}"))
}

/// Plain loops over everything that waits and every node: for as much as can be looked at in a moment.
fn nothing_could_start(machines: &Machines) -> Result<(), String> {
    const LOOKS_MAX: usize = 20_000_000;
    let free = machines.scheduler.free_by_node();
    let waiting = machines.scheduler.startable();
    for startable in waiting.iter().filter(|one| !one.atomic).take(LOOKS_MAX / free.len().max(1)) {
        let Ok(job) = machines.jobs.job(startable.group.job()) else { continue };
        let group = &job.spec.groups[startable.group.index()];
        for (role, _) in &startable.roles {
            let request = &group.roles[usize::from(*role)].shape.request;
            let node = free.iter().find(|(_, free)| request.fits_in(free));
            demand(node.is_none(), || {
                format!("{} waits although there is room on {:?}", startable.group, node.map(|(id, _)| id))
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll::core::resources::Resources;
    use plimsoll::core::settings::Settings;
    use plimsoll::core::spec::{JobSpec, NodeSpec};
    use plimsoll::core::time::Span;

    use super::super::virtual_cluster::VirtualCluster;
    use super::*;

    /// Two machines' worth of ordinary work under way, all of which was accepted.
    fn busy() -> (VirtualCluster, Accepted) {
        let mut cluster = VirtualCluster::new(&Arc::default());
        let slots = |count: i64| Resources::of(plimsoll::core::resources::KindId(0), count * 1_000);
        (0..2).for_each(|number| cluster.add_node(NodeSpec::new(format!("n{number}"), slots(2))));
        (0..3).for_each(|_| cluster.submit(Arc::new(JobSpec::bag("j", 2, slots(1)))));
        cluster.settle(|_, _| Span::from_whole_seconds(60), |_, _| {});
        (cluster, Accepted { jobs: 3, tasks: 6 })
    }

    fn broken(machines: &Machines, accepted: Accepted) -> Vec<&'static str> {
        let verdicts = check_machines(machines, accepted);
        verdicts.iter().filter(|one| one.broken.is_some()).map(|one| one.promise).collect()
    }

    #[test]
    fn a_promise_that_is_broken_is_named() {
        let (cluster, accepted) = busy();
        assert_eq!(broken(&cluster.machines, accepted), Vec::<&str>::new());
        let more = Accepted { tasks: 7, ..accepted };
        assert_eq!(broken(&cluster.machines, more), ["nothing accepted is lost"]);
        let mut machines = cluster.machines.clone();
        machines.cluster = Machines::new(&Arc::<Settings>::default()).cluster;
        assert_eq!(broken(&machines, accepted), ["the ledger is what runs, and nothing else"]);
    }
}
