//! One job after the other, each measured from its submission on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use plimsoll::core::time::Time;
use plimsoll::{Handle, JobSpec, RequestError};

use super::follow::{Counts, histogram};

/// Microseconds from the submission of a job of one task.
#[derive(Debug)]
pub(super) struct Latencies {
    /// Until the Scheduler had looked at it. Where it was not bound by then, it was asked about, and the
    /// way of the question is part of the figure.
    pub(super) considered: Histogram<u64>,
    pub(super) assigned: Histogram<u64>,
    pub(super) finished: Histogram<u64>,
}

const PAUSE: Duration = Duration::from_millis(2);
/// So long it is waited for the word of a binding before it is asked.
const PATIENCE: Duration = Duration::from_micros(500);

impl Latencies {
    pub(super) fn new() -> Latencies {
        Latencies { considered: histogram(), assigned: histogram(), finished: histogram() }
    }

    /// Measures until it is over.
    pub(super) fn measure(handle: &Handle, job: &JobSpec, counts: &Counts, over: &AtomicBool) -> Latencies {
        let mut latencies = Latencies::new();
        let Ok(driver) = tokio::runtime::Builder::new_current_thread().build() else { return latencies };
        while !over.load(Ordering::Relaxed) {
            if driver.block_on(latencies.probe(handle, job, counts, over)).is_none() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        latencies
    }

    async fn probe(
        &mut self,
        handle: &Handle,
        job: &JobSpec,
        counts: &Counts,
        over: &AtomicBool,
    ) -> Option<()> {
        let before = handle.now();
        let id = handle.submit(job.clone()).await.ok()?;
        Counts::add(&counts.accepted_jobs, 1);
        Counts::add(&counts.accepted_tasks, 1);
        Counts::add(&counts.events_in, 1);
        counts.probes().await_binding(id);
        let soon = Instant::now() + PATIENCE;
        let mut asked = None;
        let bound = loop {
            if let Some(bound) = counts.probes().bound {
                break bound;
            }
            if over.load(Ordering::Relaxed) {
                return None;
            }
            if asked.is_none() && Instant::now() > soon {
                // The answer comes after the Scheduler has heard of the job: questions stand behind it
                // in line.
                match handle.explain(id).await {
                    Ok(_) | Err(RequestError::Refused(_)) => asked = Some(handle.now()),
                    Err(_) => return None,
                }
            }
            std::thread::sleep(Duration::from_micros(20));
        };
        let record = |histogram: &mut Histogram<u64>, at: Time| {
            histogram.saturating_record(at.since(before).0);
        };
        record(&mut self.considered, asked.map_or(bound, |asked| bound.min(asked)));
        record(&mut self.assigned, bound);
        match handle.wait(id).await {
            // It is over and forgotten already.
            Ok(_) | Err(RequestError::Refused(_)) => {}
            Err(_) => return None,
        }
        record(&mut self.finished, handle.now());
        Some(())
    }
}
