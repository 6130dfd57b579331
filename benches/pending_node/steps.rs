//! The measured steps: one attempt ends, its node is pending, the Scheduler finds it work.

use std::time::{Duration, Instant};

use fastrand::Rng;
use hdrhistogram::Histogram;

use plimsoll_core::id::{Attempt, Ticket};
use plimsoll_core::job_state::JobState;
use plimsoll_core::machine::Machine;
use plimsoll_core::messages::{ClusterMessage, EndReport, JobMessage, Outbox, Placement, SchedulerMessage};
use plimsoll_core::outcome::Exit;
use plimsoll_core::time::{Span, Time};

use crate::support::Machines;

use super::workload::{SEED, Size, capacity};

#[derive(Debug)]
pub struct Measured {
    /// Nanoseconds of each Scheduler turn, and of each round trip.
    pub deciding: Histogram<u64>,
    pub round_trip: Histogram<u64>,
    pub deciding_total: Duration,
    pub round_trip_total: Duration,
    pub decisions: u64,
}

/// A cluster that is kept full by a queue that is kept long.
struct Steps {
    machines: Machines,
    jobs: JobState,
    now: Time,
    size: Size,
    /// Jobs submitted so far.
    submitted: u32,
    running: Vec<Attempt>,
    measured: Measured,
}

fn nanoseconds() -> Histogram<u64> {
    const LONGEST: u64 = 10_000_000_000;
    const DIGITS: u8 = 3;
    Histogram::new_with_max(LONGEST, DIGITS).expect("the bounds are allowed")
}

pub fn measure(size: Size, steps: u32) -> Measured {
    let settings = size.settings();
    let (machines, _) = Machines::with_nodes(&settings, size.nodes, &capacity());
    let measured = Measured {
        deciding: nanoseconds(),
        round_trip: nanoseconds(),
        deciding_total: Duration::ZERO,
        round_trip_total: Duration::ZERO,
        decisions: 0,
    };
    let jobs = JobState::new(settings);
    let mut run =
        Steps { machines, jobs, now: Time::ZERO, size, submitted: 0, running: Vec::new(), measured };
    run.fill();
    let mut rng = Rng::with_seed(SEED);
    for _ in 0..steps {
        run.step(&mut rng);
        run.keep_long();
    }
    run.measured
}

impl Steps {
    fn fill(&mut self) {
        // First the cluster, with more than it holds, and then the rest of the queue.
        let tasks = 32 * self.size.nodes;
        let each = self.size.tasks_per_job();
        while self.submitted * each < tasks || self.waiting() < u64::from(self.size.waiting) {
            self.submit(each);
        }
    }

    fn waiting(&self) -> u64 {
        self.machines.scheduler.waiting_tasks()
    }

    /// A new job for each one that the steps have used up.
    fn keep_long(&mut self) {
        if self.waiting() + u64::from(self.size.tasks_per_job()) <= u64::from(self.size.waiting) {
            self.submit(self.size.tasks_per_job());
        }
    }

    fn submit(&mut self, tasks: u32) {
        let job = self.size.job(self.submitted, tasks);
        self.submitted += 1;
        let message = JobMessage::Submit { ticket: Ticket(0), job, adopted: Vec::new() };
        self.tell_jobs(vec![message]);
    }

    /// Unmeasured: JobState hears, and whatever follows from it happens.
    fn tell_jobs(&mut self, batch: Vec<JobMessage>) {
        let mut out = Outbox::default();
        self.jobs.receive(self.now, batch, &mut out);
        if out.scheduler.is_empty() {
            return;
        }
        let mut decided = Outbox::default();
        self.machines.scheduler.receive(self.now, out.scheduler, &mut decided);
        self.note_started(&decided.cluster);
        let mut booked = Outbox::default();
        self.machines.cluster.receive(self.now, decided.cluster, &mut booked);
        self.machines.scheduler.receive(self.now, booked.scheduler, &mut Outbox::default());
        self.jobs.receive(self.now, booked.jobs, &mut Outbox::default());
    }

    fn note_started(&mut self, batch: &[ClusterMessage]) -> u64 {
        let before = self.running.len();
        self.running.extend(placements(batch).map(|placement| placement.attempt));
        (self.running.len() - before) as u64
    }

    fn step(&mut self, rng: &mut Rng) {
        self.now = self.now + Span::from_millis(1);
        let attempt = self.running.swap_remove(rng.usize(..self.running.len()));
        let report = vec![ClusterMessage::Ended(vec![EndReport { attempt, exit: Exit::Completed }])];
        let (mut released, mut decided, mut booked) =
            (Outbox::default(), Outbox::default(), Outbox::default());

        let begin = Instant::now();
        self.machines.cluster.receive(self.now, report, &mut released);
        let batch: Vec<SchedulerMessage> = std::mem::take(&mut released.scheduler);
        let pending = Instant::now();
        self.machines.scheduler.receive(self.now, batch, &mut decided);
        let deciding = pending.elapsed();
        self.measured.decisions += self.note_started(&decided.cluster);
        let committing = Instant::now();
        self.machines.cluster.receive(self.now, decided.cluster, &mut booked);
        let round_trip = (pending - begin) + deciding + committing.elapsed();

        self.note(deciding, round_trip);
        self.machines.scheduler.receive(self.now, booked.scheduler, &mut Outbox::default());
        self.tell_jobs([released.jobs, booked.jobs].concat());
    }

    fn note(&mut self, deciding: Duration, round_trip: Duration) {
        let measured = &mut self.measured;
        measured.deciding.saturating_record(deciding.as_nanos() as u64);
        measured.round_trip.saturating_record(round_trip.as_nanos() as u64);
        measured.deciding_total += deciding;
        measured.round_trip_total += round_trip;
    }
}

fn placements(batch: &[ClusterMessage]) -> impl Iterator<Item = &Placement> {
    batch.iter().flat_map(|message| match message {
        ClusterMessage::Commit(plan) => plan.placements.as_slice(),
        _ => &[],
    })
}
