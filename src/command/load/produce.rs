//! Threads that feed the runtime.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll::core::id::Attempt;
use plimsoll::{Assignments, Handle, JobSpec, Order, SubmitError, TaskOutcome};

use super::Arguments;
use super::follow::Counts;
use super::mix::{Kind, Mix};
use super::workload;

/// Producers pause while more tasks than this are unfinished, so that memory stays bounded.
const UNFINISHED_MAX: u64 = 50_000;

/// Attempts that a service carries out itself, and their nodes.
pub(super) type Begun = VecDeque<(Attempt, Arc<str>)>;

/// What producers share.
#[derive(Clone)]
pub(super) struct Producers {
    pub(super) handle: Handle,
    pub(super) counts: Arc<Counts>,
    pub(super) over: Arc<AtomicBool>,
    /// Assignments that nobody has reported the end of, where the runtime only decides.
    pub(super) begun: Arc<Mutex<Begun>>,
}

/// One producer: what it submits, and how fast.
pub(super) struct Producer {
    shared: Producers,
    job: Arc<JobSpec>,
    tasks: u64,
    batch: u64,
    /// Jobs that all producers may submit in sum.
    jobs_max: u64,
    unfinished_max: u64,
    pause: Option<Duration>,
    next: Instant,
    driver: tokio::runtime::Runtime,
}

impl Producer {
    pub(super) fn new(shared: Producers, arguments: &Arguments) -> std::io::Result<Producer> {
        let batch = u64::from(arguments.batch).min(arguments.rate.unwrap_or(u64::MAX));
        let producers = f64::from(arguments.producers);
        let pause = |rate: u64| Duration::from_secs_f64(batch as f64 * producers / rate as f64);
        Ok(Producer {
            shared,
            job: Arc::new(workload::job(arguments)),
            tasks: u64::from(arguments.tasks),
            batch,
            jobs_max: arguments.jobs.unwrap_or(u64::MAX),
            unfinished_max: UNFINISHED_MAX.max(2 * batch * u64::from(arguments.tasks)),
            pause: arguments.rate.map(pause),
            next: Instant::now(),
            driver: tokio::runtime::Builder::new_current_thread().build()?,
        })
    }

    /// Submits until it is over; an executor ends the tasks.
    pub(super) fn submit_all(mut self) {
        while !self.is_over() && self.has_jobs_left() {
            if !self.may_submit() {
                std::thread::sleep(Duration::from_micros(50));
            } else if !self.submit() {
                return;
            }
        }
    }

    /// Feeds a mix of events until it is over. Where the kind whose turn it is cannot be fed, another is.
    pub(super) fn feed(mut self, mix: Mix) {
        let mut fed = [0; 3];
        while !self.is_over() {
            let kind = mix.next(fed);
            let submits = self.has_jobs_left() && self.may_submit();
            let (kind, count) = match kind {
                Kind::Submit if submits => (Kind::Submit, self.submit().then_some(self.batch)),
                kind => match (self.end_some(kind), submits) {
                    (Some(0), true) => (Kind::Submit, self.submit().then_some(self.batch)),
                    (ended, _) => (if kind == Kind::Submit { Kind::Finish } else { kind }, ended),
                },
            };
            match count {
                Some(0) => std::thread::yield_now(),
                Some(count) => fed[kind as usize] += count,
                None => return,
            }
        }
    }

    /// Reports the end of as many assignments as there are jobs in one command, or of all on one node: how
    /// many reports that were, and nothing once the runtime takes no more.
    fn end_some(&self, kind: Kind) -> Option<u64> {
        let most = if kind == Kind::Idle { 1 } else { self.batch as usize };
        let some: Vec<(Attempt, Arc<str>)> = {
            let mut begun = self.shared.begun.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let most = most.min(begun.len());
            begun.drain(..most).collect()
        };
        let handle = &self.shared.handle;
        match (kind, some.first()) {
            (_, None) => return Some(0),
            (Kind::Idle, Some((_, node))) => self.driver.block_on(handle.node_idle(node)).ok()?,
            _ => {
                let ended: Vec<Attempt> = some.iter().map(|(attempt, _)| *attempt).collect();
                self.driver.block_on(handle.tasks_finished(&ended, TaskOutcome::Completed)).ok()?;
            }
        }
        Counts::add(&self.shared.counts.events_in, some.len() as u64);
        Some(some.len() as u64)
    }

    fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Relaxed)
    }

    fn has_jobs_left(&self) -> bool {
        Counts::get(&self.shared.counts.claimed_jobs) < self.jobs_max
    }

    /// How many of the jobs that are left are for this producer to submit now: no two submit the same.
    fn claim(&self) -> u64 {
        let claimed = &self.shared.counts.claimed_jobs;
        let with_mine = |claimed: u64| Some(claimed.saturating_add(self.batch).min(self.jobs_max));
        let before = claimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_mine);
        let before = before.unwrap_or_else(|claimed| claimed);
        self.batch.min(self.jobs_max.saturating_sub(before))
    }

    fn may_submit(&self) -> bool {
        self.shared.counts.unfinished() < self.unfinished_max
            && self.pause.is_none_or(|_| Instant::now() >= self.next)
    }

    /// False once the runtime takes nothing more.
    fn submit(&mut self) -> bool {
        if let Some(pause) = self.pause {
            self.next += pause;
        }
        let counts = &self.shared.counts;
        let batch = self.claim();
        let jobs = vec![Arc::clone(&self.job); batch as usize];
        let outcomes = self.driver.block_on(self.shared.handle.submit_many(jobs));
        let accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
        counts.claimed_jobs.fetch_sub(batch - accepted, Ordering::Relaxed);
        Counts::add(&counts.produced_jobs, accepted);
        Counts::add(&counts.accepted_jobs, accepted);
        Counts::add(&counts.accepted_tasks, accepted * self.tasks);
        Counts::add(&counts.refused_jobs, batch - accepted);
        Counts::add(&counts.events_in, batch);
        !outcomes.iter().any(|outcome| matches!(outcome, Err(SubmitError::Stopped { .. })))
    }
}

/// Reads assignments and keeps them for the producers, until the runtime stops.
pub(super) fn take_assignments(mut reader: Assignments, shared: &Producers) {
    let Ok(driver) = tokio::runtime::Builder::new_current_thread().build() else { return };
    driver.block_on(async {
        while let Some(assignments) = reader.next().await {
            let Some(last) = assignments.last().map(|last| last.sequence) else { continue };
            let starts = assignments.into_iter().filter(|assignment| assignment.order == Order::Start);
            let starts = starts.map(|start| (start.attempt, start.node));
            shared.begun.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(starts);
            if shared.handle.acknowledge(&mut reader, last).await.is_err() {
                return;
            }
        }
    });
}

/// After the producers: reports the end of whatever was assigned and not reported yet.
pub(super) async fn end_the_rest(shared: &Producers) {
    loop {
        let begun = shared.begun.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop_front();
        let Some((attempt, _)) = begun else { return };
        if shared.handle.task_finished(attempt, TaskOutcome::Completed).await.is_err() {
            return;
        }
    }
}
