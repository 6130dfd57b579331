//! Counts what the runtime says happened, for commands that show it while it happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll::core::job_state::Spent;
use plimsoll::core::messages::JobEvent;
use plimsoll::core::outcome::Outcome;
use plimsoll::core::time::Span;
use plimsoll::{Event, Subscription};

/// Counters that one reader of events writes and anybody reads.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) ended: AtomicU64,
    pub(super) completed: AtomicU64,
    pub(super) jobs_finished: AtomicU64,
    pub(super) missed: AtomicU64,
    /// What ended attempts took, in microseconds.
    provisioning: AtomicU64,
    running: AtomicU64,
}

impl Tally {
    /// Counts on a thread of its own until the runtime stops.
    pub(super) fn follow(mut events: Subscription) -> Arc<Tally> {
        let tally = Arc::new(Tally::default());
        let counters = Arc::clone(&tally);
        std::thread::spawn(move || {
            while let Some(batch) = events.next_blocking() {
                counters.missed.fetch_add(batch.missed, Ordering::Relaxed);
                batch.events.iter().for_each(|event| counters.count(event));
            }
        });
        tally
    }

    fn count(&self, event: &Event) {
        let add = |counter: &AtomicU64| {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        match event {
            Event::Job(JobEvent::Ended { outcome, bound, began, at, .. }) => {
                add(&self.ended);
                let mut spent = Spent::default();
                spent.add(*bound, *began, *at);
                self.provisioning.fetch_add(spent.provisioning.0, Ordering::Relaxed);
                self.running.fetch_add(spent.running.0, Ordering::Relaxed);
                if *outcome == Outcome::Completed {
                    add(&self.completed);
                }
            }
            Event::Job(JobEvent::Finished { .. }) => add(&self.jobs_finished),
            _ => {}
        }
    }

    /// Seconds that ended attempts were prepared for, and seconds that they ran.
    pub(super) fn attempt_seconds(&self) -> (f64, f64) {
        let seconds = |micros| Span(Tally::get(micros)).as_seconds();
        (seconds(&self.provisioning), seconds(&self.running))
    }

    pub(super) fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}
