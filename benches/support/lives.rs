//! Whole lives without agents: JobState, Scheduler and ClusterState in virtual time. Attempts end when
//! their time has come, and the CPU time of every turn is counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;

use plimsoll_core::id::{Attempt, Ticket};
use plimsoll_core::job_state::JobState;
use plimsoll_core::machine::Machine;
use plimsoll_core::messages::{
    ClusterMessage, EndReport, HostMessage, JobEvent, JobMessage, Outbox, SchedulerMessage,
};
use plimsoll_core::outcome::Exit;
use plimsoll_core::resources::Resources;
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::JobSpec;
use plimsoll_core::time::{Span, Time};

use super::Machines;

#[derive(Debug)]
pub struct Lives {
    pub now: Time,
    pub machines: Machines,
    pub jobs: JobState,
    ends: BinaryHeap<Reverse<(Time, Attempt)>>,
    /// CPU time of the Scheduler's turns, and of all three machines.
    pub deciding: Duration,
    pub spent: Duration,
    pub started: u64,
    pub ended: u64,
}

/// What is on its way to the three machines.
#[derive(Default)]
struct Mail {
    jobs: Vec<JobMessage>,
    scheduler: Vec<SchedulerMessage>,
    cluster: Vec<ClusterMessage>,
}

impl Lives {
    pub fn new(settings: &Arc<Settings>, nodes: u32, capacity: &Resources) -> Lives {
        let (machines, _) = Machines::with_nodes(settings, nodes, capacity);
        Lives {
            now: Time::ZERO,
            machines,
            jobs: JobState::new(Arc::clone(settings)),
            ends: BinaryHeap::new(),
            deciding: Duration::ZERO,
            spent: Duration::ZERO,
            started: 0,
            ended: 0,
        }
    }

    /// Submits jobs in one batch; `run` says how long each attempt runs, `None` for ever.
    pub fn submit(&mut self, jobs: Vec<Arc<JobSpec>>, run: impl Fn(Attempt) -> Option<Span>) {
        let submit = |job| JobMessage::Submit { ticket: Ticket(0), job, adopted: Vec::new() };
        let jobs = jobs.into_iter().map(submit).collect();
        self.settle(Mail { jobs, ..Mail::default() }, run);
    }

    /// Time passes until the next attempts end, which they do; false if none will.
    pub fn advance(&mut self, run: impl Fn(Attempt) -> Option<Span>) -> bool {
        let Some(Reverse((next, _))) = self.ends.peek() else { return false };
        self.now = *next;
        let mut reports = Vec::new();
        while let Some(Reverse((due, attempt))) = self.ends.peek().copied() {
            if due > self.now {
                break;
            }
            self.ends.pop();
            reports.push(EndReport { attempt, exit: Exit::Completed });
        }
        self.end(reports, run);
        true
    }

    /// These attempts end now.
    pub fn end(&mut self, reports: Vec<EndReport>, run: impl Fn(Attempt) -> Option<Span>) {
        self.ended += reports.len() as u64;
        self.settle(Mail { cluster: vec![ClusterMessage::Ended(reports)], ..Mail::default() }, run);
    }

    /// Tells ClusterState something.
    pub fn tell_cluster(&mut self, message: ClusterMessage) {
        self.settle(Mail { cluster: vec![message], ..Mail::default() }, |_| None);
    }

    fn settle(&mut self, mut mail: Mail, run: impl Fn(Attempt) -> Option<Span>) {
        let begin = ThreadTime::now();
        loop {
            let mut out = Outbox::default();
            let (cluster, jobs) = (std::mem::take(&mut mail.cluster), std::mem::take(&mut mail.jobs));
            if !cluster.is_empty() {
                self.machines.cluster.receive(self.now, cluster, &mut out);
            }
            if !jobs.is_empty() {
                self.jobs.receive(self.now, jobs, &mut out);
            }
            mail.scheduler.append(&mut out.scheduler);
            let scheduler = &mut self.machines.scheduler;
            let due = scheduler.wake_at().is_some_and(|at| at <= self.now);
            if !mail.scheduler.is_empty() || due {
                let begin = ThreadTime::now();
                scheduler.receive(self.now, std::mem::take(&mut mail.scheduler), &mut out);
                self.deciding += begin.elapsed();
            }
            for message in &out.host {
                let HostMessage::Job(JobEvent::Bound { attempt, .. }) = message else { continue };
                self.started += 1;
                self.ends.extend(run(*attempt).map(|span| Reverse((self.now + span, *attempt))));
            }
            (mail.cluster, mail.jobs, mail.scheduler) = (out.cluster, out.jobs, out.scheduler);
            let due = self.machines.scheduler.wake_at().is_some_and(|at| at <= self.now);
            if mail.cluster.is_empty() && mail.jobs.is_empty() && mail.scheduler.is_empty() && !due {
                break;
            }
        }
        self.spent += begin.elapsed();
    }

    pub fn waiting(&self) -> u64 {
        self.machines.scheduler.waiting_tasks()
    }
}
