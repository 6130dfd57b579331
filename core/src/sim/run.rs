//! One run of the world from a seed: a time of trouble, then healing, then everything must end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fastrand::Rng;
use serde::Serialize;
use thiserror::Error;

use crate::codec;
use crate::explanation::Reason;
use crate::id::{JobId, NodeId};
use crate::machine::Broken;
use crate::messages::{ClusterMessage, HostMessage, JobEvent, SchedulerMessage};
use crate::monitor::Monitor;
use crate::scheduler::Startable;
use crate::settings::Settings;
use crate::spec::Liveness;
use crate::time::{Span, Time};

use super::control::Tags;
use super::doors::asked;
use super::endings::Endings;
use super::faults::{Fault, Troublemaker, report_heartbeats, tell_cluster};
use super::filters::filters;
use super::links::{Batch, Link, Party};
use super::mixes::Mixer;
use super::tries::Tries;
use super::workload::{self, Chance};
use super::world::World;

/// Turns and faults of the time of trouble.
const TROUBLE_STEPS: u64 = 600;

/// More steps than this to heal means that something will never end.
const HEALING_STEPS_MAX: u64 = 50_000;

/// What a clean run did.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunReport {
    pub seed: u64,
    pub steps: u64,
    pub jobs: u64,
    pub faults: u64,
    /// Moments at which nothing was on its way and everything was compared.
    pub quiescent_checks: u64,
    /// Virtual seconds that passed.
    pub seconds: f64,
    /// A digest of everything every machine said: equal runs have equal digests.
    pub digest: u64,
}

/// A run that broke a promise. The seed makes it happen again.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize)]
#[error("seed {seed}, step {step}: {kind}: {what}")]
pub struct Failure {
    pub seed: u64,
    pub step: u64,
    pub kind: FailureKind,
    pub what: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A promise does not hold.
    Promise,
    /// Something never ends although nothing is in its way.
    Liveness,
    /// A machine stopped at an assertion.
    Panic,
}

impl std::fmt::Display for FailureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FailureKind::Promise => "a promise is broken",
            FailureKind::Liveness => "something never ends",
            FailureKind::Panic => "a machine stopped",
        })
    }
}

/// One thing that happened, for people who replay a seed.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceLine {
    pub step: u64,
    pub at: Time,
    pub what: String,
}

/// Runs one seed.
pub fn run(seed: u64) -> Result<RunReport, Failure> {
    Run::new(seed).guarded(|run| run.whole())
}

/// Runs one seed and tells everything that happens.
pub fn run_traced(seed: u64, trace: &mut dyn FnMut(TraceLine)) -> Result<RunReport, Failure> {
    let mut run = Run::new(seed);
    run.trace = Some(trace);
    run.guarded(|run| run.whole())
}

pub(super) struct Run<'a> {
    seed: u64,
    rng: Rng,
    world: World,
    behaviour: Chance,
    trouble: Troublemaker,
    tries: Tries,
    endings: Endings,
    tags: Tags,
    report: RunReport,
    trace: Option<&'a mut dyn FnMut(TraceLine)>,
    /// The host takes so many assignments at a time, if it carries them out itself.
    credit_window: Option<u64>,
    bound: u64,
    /// Draws the moments at which machines are turned into bytes and back.
    pub(super) restores: Option<Rng>,
}

impl Run<'_> {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let behaviour = Chance::new(rng.fork());
        let mut trouble = Troublemaker::new(rng.fork(), Mixer::of(seed));
        let settings = trouble.with_presets(workload::settings(&mut rng, 0));
        let settings = Arc::new(Settings { filters: filters(), ..settings });
        let mut world = World::new(Arc::clone(&settings));
        world.monitor = Some(Monitor::new(settings).in_slices_of(rng.u32(1..5)));
        world.keep_outboxes();
        world.scheduler.keep_evidence_of_stops();
        for _ in 0..rng.usize(1..=5) {
            trouble.add_node(&mut world);
        }
        let credit_window = (rng.u8(0..4) == 0).then(|| rng.u64(1..8));
        let report = RunReport {
            seed,
            steps: 0,
            jobs: 0,
            faults: 0,
            quiescent_checks: 0,
            seconds: 0.0,
            digest: 0xcbf2_9ce4_8422_2325,
        };
        let (trace, restores, bound, tries) = (None, None, 0, Tries::default());
        let mut run = Run {
            seed,
            rng,
            world,
            behaviour,
            trouble,
            tries,
            endings: Endings::default(),
            tags: Tags::default(),
            report,
            trace,
            credit_window,
            bound,
            restores,
        };
        run.grant_credit();
        run
    }

    /// Runs to the end, with panics turned into failures that carry the seed.
    pub(super) fn guarded(
        mut self,
        body: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<RunReport, Failure> {
        let outcome = catch_unwind(AssertUnwindSafe(|| body(&mut self)));
        match outcome {
            Ok(result) => result.map(|()| self.report.clone()),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                Err(self.failure(FailureKind::Panic, text.unwrap_or_else(|| "without a word".into())))
            }
        }
    }

    pub(super) fn whole(&mut self) -> Result<(), Failure> {
        while self.report.steps < TROUBLE_STEPS {
            self.trouble_step()?;
        }
        self.note(|| "healing begins".into());
        self.behaviour.healed = true;
        self.trouble.heal(&mut self.world);
        self.heal()?;
        self.report.jobs = self.trouble.jobs;
        self.report.seconds = self.world.now.as_seconds();
        Ok(())
    }

    fn trouble_step(&mut self) -> Result<(), Failure> {
        self.report.steps += 1;
        match self.rng.u8(0..100) {
            0..=5 => {
                let Some(fault) = Fault::choose(&mut self.trouble.rng, &self.world) else { return Ok(()) };
                self.note(|| format!("{fault:?}"));
                self.report.faults += 1;
                self.trouble.apply(&fault, &mut self.world);
                Ok(())
            }
            6 => {
                self.grant_credit();
                Ok(())
            }
            7 => {
                report_heartbeats(&mut self.world);
                Ok(())
            }
            8..=12 => {
                self.advance();
                Ok(())
            }
            _ => self.ordinary_step(),
        }
    }

    /// Something that is on its way or due happens; if nothing is, everything is compared and time
    /// passes.
    fn ordinary_step(&mut self) -> Result<(), Failure> {
        self.world.run_executors();
        let links = self.world.open_links();
        let due = self.world.due();
        if links.is_empty() && due.is_empty() {
            self.report.quiescent_checks += 1;
            self.world.check_quiescent().map_err(|broken| self.broken(broken))?;
            self.advance();
            return Ok(());
        }
        let choice = self.rng.usize(0..links.len() + due.len());
        match links.get(choice) {
            Some(link) if self.rng.u8(0..3) == 0 => {
                let all = self.world.open_links_to(link.to);
                self.turn(link.to, &all)
            }
            Some(link) => self.turn(link.to, &[*link]),
            None => self.turn(due[choice - links.len()], &[]),
        }
    }

    fn turn(&mut self, to: Party, links: &[Link]) -> Result<(), Failure> {
        for link in links {
            if let Some(batch) = self.world.queues.peek(*link) {
                self.trouble.remember(*link, batch);
                if let Some(trace) = &mut self.trace {
                    let what = format!("{:?} → {to:?}: {batch:?}", link.from);
                    trace(TraceLine { step: self.report.steps, at: self.world.now, what });
                }
            }
        }
        if links.is_empty() {
            self.note(|| format!("{to:?} wakes"));
        }
        self.restore_now_and_then(to);
        let result = self.world.deliver(to, links, &mut self.behaviour);
        let bound = |message: &HostMessage| matches!(message, HostMessage::Job(JobEvent::Bound { .. }));
        let messages = self.world.take_host_messages();
        self.bound += messages.iter().filter(|message| bound(message)).count() as u64;
        self.trouble.prepare(&messages, &mut self.world);
        let watched = nothing_was_found(&messages);
        let watched = watched.and(self.tries.watch(&messages, &self.world));
        let watched = watched.and(self.endings.watch(&messages, &self.world)).and(self.tags.watch(&messages));
        let outbox = self.world.last_outbox().expect("outboxes are kept");
        let bytes =
            codec::encode(outbox).map_err(|error| self.failure(FailureKind::Panic, error.to_string()))?;
        for byte in bytes {
            self.report.digest = (self.report.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        result.and(watched).map_err(|broken| self.broken(broken))
    }

    /// The host has dealt with everything it was given so far.
    fn grant_credit(&mut self) {
        if let Some(window) = self.credit_window {
            let credit = SchedulerMessage::Credit { granted: self.bound + window, window };
            self.world.tell(Party::Scheduler, Batch::Scheduler(vec![credit]));
        }
    }

    /// Turns the machine that is about to move into bytes and back. Nobody must be able to tell.
    fn restore_now_and_then(&mut self, to: Party) {
        let Some(rng) = &mut self.restores else { return };
        if rng.u8(0..8) > 0 {
            return;
        }
        macro_rules! restore {
            ($machine:expr) => {{
                let bytes = codec::encode(&$machine).expect("a machine can be written");
                $machine = codec::decode_machine(&bytes, &filters()).expect("a machine can be read");
            }};
        }
        match to {
            Party::Jobs => restore!(self.world.jobs),
            Party::Scheduler => restore!(self.world.scheduler),
            Party::Cluster => restore!(self.world.cluster),
            Party::Runner => restore!(self.world.runner),
            Party::Rebalancer => restore!(self.world.rebalancer),
            Party::Agent(node) => {
                if let Some(agent) = self.world.agents.get_mut(&node) {
                    restore!(*agent);
                }
            }
            // Nothing of the Monitor has to outlive the runtime.
            Party::Monitor | Party::Executor(_) | Party::Host => {}
        }
    }

    /// Time passes: to the next thing that is due, or a little.
    fn advance(&mut self) {
        let little = self.world.now + Span::from_millis(self.rng.u64(0..30));
        let audit = self.world.monitor_wakes_at();
        self.world.now = match self.world.next_event().into_iter().chain(audit).min() {
            Some(next) if self.rng.bool() => next.max(self.world.now),
            _ => little,
        };
    }

    fn heal(&mut self) -> Result<(), Failure> {
        let mut cancelled = false;
        let mut heartbeats_at = None;
        let mut walked_at = None;
        for _ in 0..HEALING_STEPS_MAX {
            self.report.steps += 1;
            self.world.run_executors();
            if !self.world.is_quiescent() {
                self.ordinary_step()?;
                continue;
            }
            self.report.quiescent_checks += 1;
            self.world.check_quiescent().map_err(|broken| self.broken(broken))?;
            if self.world.scheduler.is_starved() {
                self.grant_credit();
                continue;
            }
            // Heartbeats are heard once at each moment; a sweep takes its time.
            if heartbeats_at != Some(self.world.now) {
                heartbeats_at = Some(self.world.now);
                report_heartbeats(&mut self.world);
                continue;
            }
            if self.trouble.mend(&mut self.world) {
                continue;
            }
            // A node that came back may still be ending what it had lost.
            let ended = self.world.jobs.unfinished() == 0 && !self.is_sweeping();
            let next = self.world.next_event();
            // When nothing more happens, everything is compared once more.
            if (ended || next.is_none()) && walked_at != Some(self.world.now) {
                walked_at = Some(self.world.now);
                let everything = ClusterMessage::Audit { first: NodeId(0), most: u32::MAX };
                tell_cluster(&mut self.world, everything);
                continue;
            }
            if ended {
                return self.check_nothing_is_left();
            }
            match next {
                Some(next) => self.world.now = next.max(self.world.now),
                None if cancelled => break,
                None => {
                    self.check_the_rest_can_never_run()?;
                    self.cancel_the_rest();
                    cancelled = true;
                }
            }
        }
        let waiting = self.world.jobs.unfinished();
        Err(self.failure(FailureKind::Liveness, format!("{waiting} jobs are never finished")))
    }

    fn is_sweeping(&self) -> bool {
        let away = self.world.cluster.nodes().any(|(_, node)| node.liveness != Liveness::Ready);
        away && self.world.executors.running().next().is_some()
    }

    /// What still waits when nothing runs any more could not run on an empty cluster either, and
    /// says so.
    fn check_the_rest_can_never_run(&self) -> Result<(), Failure> {
        for Startable { group: id, roles, atomic } in self.world.scheduler.startable() {
            let job = self.world.jobs.job(id.job()).expect("a waiting job is kept");
            let spec = &asked(&job.spec, id);
            if self.world.could_ever_fit(id, spec, &roles, atomic) {
                let what = format!("{id} waits on an empty cluster that has room for it");
                return Err(self.failure(FailureKind::Liveness, what));
            }
            let explanation = self.world.scheduler.explain(id).expect("a waiting group is known");
            let says_so = match explanation.reason {
                Reason::NeverFits(_) => true,
                Reason::NoRoom(_) => atomic,
                _ => false,
            };
            if !says_so {
                let what = format!("{id} can never run but its explanation is: {explanation}");
                return Err(self.failure(FailureKind::Promise, what));
            }
        }
        Ok(())
    }

    fn cancel_the_rest(&mut self) {
        let unfinished: Vec<JobId> =
            self.world.jobs.jobs().filter(|(_, job)| job.finished.is_none()).map(|(id, _)| id).collect();
        for job in unfinished {
            self.trouble.cancel(&mut self.world, job);
        }
    }

    fn check_nothing_is_left(&self) -> Result<(), Failure> {
        let live = self.world.cluster.live().count();
        let waiting = self.world.scheduler.waiting_tasks();
        let running = self.world.executors.running().count();
        match (live, waiting, running) {
            (0, 0, 0) => Ok(()),
            _ => {
                let what = format!("all jobs are finished but {live} live, {waiting} wait, {running} run");
                Err(self.failure(FailureKind::Promise, what))
            }
        }
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace(TraceLine { step: self.report.steps, at: self.world.now, what: what() });
        }
    }

    fn broken(&self, broken: Broken) -> Failure {
        self.failure(FailureKind::Promise, broken.to_string())
    }

    fn failure(&self, kind: FailureKind, what: String) -> Failure {
        Failure { seed: self.seed, step: self.report.steps, kind, what }
    }
}

/// Whatever the Monitor finds is a fault of one of the machines.
fn nothing_was_found(messages: &[HostMessage]) -> Result<(), Broken> {
    let finding = messages.iter().find_map(|message| match message {
        HostMessage::Finding(finding) => Some(finding),
        _ => None,
    });
    finding.map_or(Ok(()), |finding| Err(Broken::new(5, finding.to_string())))
}
