//! Producers that submit and report ends, for a runtime that only decides: every submission and every end is
//! an event in.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll::core::id::Attempt;
use plimsoll::{Assignments, Handle, JobSpec, Order, TaskOutcome};

/// Producers submit no more while so many tasks have not ended.
const UNFINISHED_MAX: u64 = 10_000;

/// What producers and the reader of assignments share.
#[derive(Debug, Default)]
pub struct Shared {
    begun: Mutex<VecDeque<Attempt>>,
    submitted: AtomicU64,
    ended: AtomicU64,
}

impl Shared {
    fn take_some(&self, most: usize) -> Vec<Attempt> {
        let mut begun = self.begun.lock().expect("nobody panics");
        let most = most.min(begun.len());
        begun.drain(..most).collect()
    }

    /// Submissions and ends so far.
    pub fn events(&self) -> u64 {
        self.submitted.load(Ordering::Relaxed) + self.ended.load(Ordering::Relaxed)
    }

    /// Reads assignments until the runtime stops.
    pub fn read(&self, handle: &Handle, mut reader: Assignments) {
        pollster::block_on(async {
            while let Some(assignments) = reader.next().await {
                let Some(last) = assignments.last().map(|last| last.sequence) else { continue };
                let starts = assignments.into_iter().filter(|assignment| assignment.order == Order::Start);
                self.begun.lock().expect("nobody panics").extend(starts.map(|start| start.attempt));
                if handle.acknowledge(&mut reader, last).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Submits and reports ends, so many to a command, until there were so many events.
    pub fn feed(&self, handle: &Handle, events: u64, batch: usize) {
        let job = Arc::new(JobSpec::bag("j", 1).request("slot", 1));
        while self.events() < events {
            let some = self.take_some(batch);
            pollster::block_on(handle.tasks_finished(&some, TaskOutcome::Completed)).expect("it runs");
            let ended = self.ended.fetch_add(some.len() as u64, Ordering::Relaxed) + some.len() as u64;
            if self.submitted.load(Ordering::Relaxed).saturating_sub(ended) < UNFINISHED_MAX {
                let jobs = vec![Arc::clone(&job); batch];
                let outcomes = pollster::block_on(handle.submit_many(jobs));
                let accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
                self.submitted.fetch_add(accepted as u64, Ordering::Relaxed);
            } else if some.is_empty() {
                std::thread::yield_now();
            }
        }
    }
}
