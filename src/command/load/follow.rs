//! Reads every event and counts: lives, how long nodes stood pending, how busy they were.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hdrhistogram::Histogram;
use plimsoll::core::id::JobId;
use plimsoll::core::messages::JobEvent;
use plimsoll::core::time::Time;
use plimsoll::{Event, Subscription};

/// Counters that one reader of events writes and anybody reads.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Jobs that producers have taken upon themselves to submit, and those of them that were accepted.
    pub(super) claimed_jobs: AtomicU64,
    pub(super) produced_jobs: AtomicU64,
    /// Jobs and tasks accepted, also those of the probe, as whoever submits them counts.
    pub(super) accepted_jobs: AtomicU64,
    pub(super) accepted_tasks: AtomicU64,
    pub(super) refused_jobs: AtomicU64,
    /// Submissions, idle nodes and finished tasks that producers fed.
    pub(super) events_in: AtomicU64,
    pub(super) bound: AtomicU64,
    pub(super) ended: AtomicU64,
    pub(super) jobs_finished: AtomicU64,
    pub(super) events_out: AtomicU64,
    pub(super) missed: AtomicU64,
    /// The moments at which attempts ended less those at which they were bound, in microseconds.
    held: AtomicI64,
    /// When each probe was bound.
    pub(super) probes: Mutex<Probes>,
}

/// The probes that are under way; whoever submits them enters them here.
#[derive(Debug, Default)]
pub(super) struct Probes {
    pub(super) awaited: Option<JobId>,
    pub(super) bound: Option<Time>,
    /// Bindings of the last jobs: a probe may be bound before its number is known.
    recent: std::collections::VecDeque<(JobId, Time)>,
}

const RECENT_MAX: usize = 4_096;

impl Counts {
    pub(super) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    /// Tasks that were accepted and have not ended, as far as is known now.
    pub(super) fn unfinished(&self) -> u64 {
        let done = Counts::get(&self.ended) + Counts::get(&self.missed);
        Counts::get(&self.accepted_tasks).saturating_sub(done)
    }

    /// Microseconds that attempts have held their places until now, in sum.
    pub(super) fn held_micros(&self, now: Time) -> i64 {
        let live = Counts::get(&self.bound).saturating_sub(Counts::get(&self.ended));
        self.held.load(Ordering::Relaxed) + live as i64 * now.0 as i64
    }

    pub(super) fn probes(&self) -> std::sync::MutexGuard<'_, Probes> {
        self.probes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Probes {
    pub(super) fn await_binding(&mut self, job: JobId) {
        self.awaited = Some(job);
        self.bound = self.recent.iter().rev().find(|(known, _)| *known == job).map(|(_, at)| *at);
    }

    fn note(&mut self, job: JobId, at: Time) {
        if self.awaited == Some(job) && self.bound.is_none() {
            self.bound = Some(at);
        }
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((job, at));
    }
}

struct Follower {
    counts: Arc<Counts>,
    /// Microseconds from a release on a node until something is bound there while work waits.
    pending: Histogram<u64>,
    /// Since when a node has room, by its number, if something waited then.
    released_at: Vec<Option<Time>>,
}

/// Counts on a thread of its own until the runtime stops; the answer is how long nodes stood pending.
pub(super) fn follow(mut events: Subscription, counts: Arc<Counts>) -> JoinHandle<Histogram<u64>> {
    let mut follower = Follower { counts, pending: histogram(), released_at: Vec::new() };
    std::thread::spawn(move || {
        while let Some(batch) = events.next_blocking() {
            Counts::add(&follower.counts.missed, batch.missed);
            follower.read(&batch.events);
        }
        follower.pending
    })
}

pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(600_000_000, 3).expect("three digits are a good precision")
}

impl Follower {
    fn read(&mut self, events: &[Event]) {
        let (mut bound, mut ended, mut finished, mut held) = (0, 0, 0, 0);
        let counts = Arc::clone(&self.counts);
        let mut probes = counts.probes();
        for event in events {
            match event {
                Event::Job(JobEvent::Bound { attempt, node, at }) => {
                    bound += 1;
                    held -= at.0 as i64;
                    if let Some(since) = self.released_at.get_mut(node.index()).and_then(Option::take) {
                        self.pending.saturating_record(at.since(since).0);
                    }
                    probes.note(attempt.task.job(), *at);
                }
                Event::Job(JobEvent::Ended { node, at, .. }) => {
                    ended += 1;
                    held += at.0 as i64;
                    let started = Counts::get(&self.counts.bound) + bound;
                    let waits = Counts::get(&self.counts.accepted_tasks) > started;
                    set(&mut self.released_at, node.index(), waits.then_some(*at));
                }
                Event::Job(JobEvent::Finished { .. }) => finished += 1,
                _ => {}
            }
        }
        drop(probes);
        self.counts.held.fetch_add(held, Ordering::Relaxed);
        Counts::add(&self.counts.bound, bound);
        Counts::add(&self.counts.ended, ended);
        Counts::add(&self.counts.jobs_finished, finished);
        Counts::add(&self.counts.events_out, events.len() as u64);
    }
}

fn set<T: Clone + Default>(list: &mut Vec<T>, index: usize, value: T) {
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    list[index] = value;
}
