//! Carries out a dry run: the real machines in a world without faults.

mod group_decisions;
mod moments;
mod names;
mod time_spent;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::{Attempt, GroupId, JobId, NodeId, Ticket};
use crate::job_state::{GroupStatus, Spent};
use crate::messages::{
    Addressed, Answer, Cancelled, ClusterMessage, Extended, HostMessage, JobEvent, JobMessage, NodeEvent,
    Resize, SchedulerMessage,
};
use crate::outcome::{Exit, FailureCause, Outcome, StopCause};
use crate::settings::Settings;
use crate::sim::{Batch, Party, World};
use crate::spec::{JobSpec, Liveness, NodePatch, UnitNames};
use crate::time::Time;

use super::courses::Courses;
use super::error::PlanError;
use super::lay::{Laid, lay};
use super::reasons::{why_stopped, why_there};
use super::report::{Decision, DecisionKind, PlanReport};
use super::scenario::{Happening, Scenario, ScenarioJob, Which, WhichJobs};
use super::usage::UsageReport;

/// What would be decided.
pub fn run(scenario: &Scenario) -> Result<PlanReport, PlanError> {
    Ok(go_through(scenario)?.finish())
}

/// The same, and how nodes and jobs would spend their time.
pub fn run_with_usage(scenario: &Scenario) -> Result<(PlanReport, UsageReport), PlanError> {
    let dry_run = go_through(scenario)?;
    let usage = dry_run.usage();
    Ok((dry_run.finish(), usage))
}

fn go_through(scenario: &Scenario) -> Result<DryRun<'_>, PlanError> {
    let mut dry_run = DryRun::begin(scenario)?;
    dry_run.settle()?;
    let mut events = scenario.events.iter().enumerate().peekable();
    loop {
        let next_event = events.peek().map(|(_, event)| event.at);
        let planned = [next_event, dry_run.next_arrival()].into_iter().flatten().min();
        let next = [planned, dry_run.next_moment(planned)].into_iter().flatten().min();
        let Some(next) = next.filter(|next| scenario.until.is_none_or(|until| *next <= until)) else { break };
        dry_run.world.now = next.max(dry_run.world.now);
        dry_run.submit_arrived()?;
        while let Some((index, event)) = events.next_if(|(_, event)| event.at <= next) {
            dry_run.happen(index, &event.what)?;
        }
        dry_run.settle()?;
    }
    Ok(dry_run)
}

struct DryRun<'a> {
    scenario: &'a Scenario,
    /// In effect by now.
    settings: Arc<Settings>,
    world: World,
    courses: Courses,
    report: PlanReport,
    /// Jobs of the file that have not been submitted yet, the next one last.
    to_come: Vec<usize>,
    laid: BTreeMap<usize, Laid>,
    /// Submitted jobs: the position in here is the number of the job minus one.
    jobs: Vec<Arc<JobSpec>>,
    /// By the same position: what their ended attempts took.
    spent: Vec<Spent>,
    numbers: BTreeMap<String, JobId>,
    /// How many tasks of each role ran before the dry run began.
    adopted: BTreeMap<(GroupId, u16), u32>,
    /// Tasks that an event of this moment has ended already.
    ending: BTreeSet<Attempt>,
    /// The named units that attempts were given.
    units: BTreeMap<Attempt, Arc<UnitNames>>,
}

impl<'a> DryRun<'a> {
    /// All nodes and all jobs of the file arrive in one turn.
    fn begin(scenario: &'a Scenario) -> Result<DryRun<'a>, PlanError> {
        // The file says which nodes are heard.
        let settings = Arc::new(scenario.settings.clone().without_heartbeats());
        let mut world = World::new(Arc::clone(&settings));
        world.now = scenario.now;
        let add = |node| ClusterMessage::AddNode { ticket: Ticket(0), node: Box::new(node) };
        world.tell(Party::Cluster, Batch::Cluster(scenario.nodes.iter().cloned().map(add).collect()));
        if !scenario.failures.is_empty() {
            let failures = SchedulerMessage::PastFailures(scenario.failures.clone());
            world.tell(Party::Scheduler, Batch::Scheduler(vec![failures]));
        }
        let courses = Courses {
            ends: scenario.until.is_some(),
            now: scenario.now,
            preparations: BTreeMap::new(),
            durations: BTreeMap::new(),
            started: BTreeMap::new(),
        };
        let (report, jobs, spent) = (PlanReport::default(), Vec::new(), Vec::new());
        let (numbers, adopted) = (BTreeMap::new(), BTreeMap::new());
        let laid = lay(scenario)?;
        let mut to_come: Vec<usize> = (0..scenario.jobs.len()).collect();
        to_come.sort_by_key(|job| std::cmp::Reverse((scenario.jobs[*job].submitted, *job)));
        let (ending, units) = (BTreeSet::new(), BTreeMap::new());
        let mut dry_run = DryRun {
            scenario,
            settings,
            world,
            courses,
            report,
            to_come,
            laid,
            jobs,
            spent,
            numbers,
            adopted,
            ending,
            units,
        };
        dry_run.submit_arrived()?;
        Ok(dry_run)
    }

    fn next_arrival(&self) -> Option<Time> {
        self.to_come.last().map(|job| self.scenario.jobs[*job].submitted)
    }

    /// Submits the jobs whose time has come, earlier ones first.
    fn submit_arrived(&mut self) -> Result<(), PlanError> {
        while self.next_arrival().is_some_and(|submitted| submitted <= self.world.now) {
            let job = self.to_come.pop().expect("one is to come");
            let laid = self.laid.remove(&job).unwrap_or_default();
            let job = &self.scenario.jobs[job];
            let spec = &job.spec;
            if self.world.now > self.scenario.now && !laid.adopted.is_empty() {
                let what = format!("job `{}` is submitted later and cannot run already", spec.name);
                return Err(PlanError::Impossible { field: "running".into(), what });
            }
            self.submit(job, laid)?;
        }
        Ok(())
    }

    fn submit(&mut self, plan: &ScenarioJob, laid: Laid) -> Result<(), PlanError> {
        let mut spec = plan.spec.clone();
        if let Some(parent) = &plan.parent {
            let what = || format!("no job named `{parent}` was submitted before `{}`", spec.name);
            let unknown = || PlanError::Impossible { field: "parent".into(), what: what() };
            spec.relations.parent = Some(*self.numbers.get(parent).ok_or_else(unknown)?);
        }
        let spec = Arc::new(spec);
        self.jobs.push(Arc::clone(&spec));
        self.spent.push(Spent::default());
        let job = JobId(self.jobs.len() as u64);
        self.numbers.insert(spec.name.clone(), job);
        for (index, group) in spec.groups.iter().enumerate() {
            let id = GroupId::new(job, index as u16);
            for (role, spec) in group.roles.iter().enumerate() {
                if let Some(duration) = spec.duration.get() {
                    self.courses.durations.insert((id, role as u16), duration);
                }
            }
        }
        for ((group, role), span) in &plan.preparations {
            self.courses.preparations.insert((GroupId::new(job, *group), *role), *span);
        }
        for ((group, role), started) in laid.started {
            let role = (GroupId::new(job, group), role);
            self.adopted.insert(role, started.len() as u32);
            self.courses.started.insert(role, started);
        }
        let submit = JobMessage::Submit { ticket: Ticket(0), job: spec, adopted: laid.adopted };
        self.world.tell(Party::Jobs, Batch::Jobs(vec![submit]));
        Ok(())
    }

    fn settle(&mut self) -> Result<(), PlanError> {
        self.world.settle(&mut self.courses)?;
        self.ending.clear();
        self.world.check_quiescent()?;
        let messages = self.world.take_host_messages();
        for message in &messages {
            if let HostMessage::Node(NodeEvent::UnitsGiven { attempt, units, .. }) = message {
                self.units.insert(*attempt, Arc::clone(units));
            }
        }
        for message in messages {
            match message {
                HostMessage::Reply { answer: Answer::Refused(refusal), .. } => return Err(refusal.into()),
                HostMessage::Job(event) => self.record(event),
                HostMessage::Respecified { job, spec } => self.jobs[job.0 as usize - 1] = spec,
                HostMessage::Unsatisfiable { group, at, explanation } => self.fail(group, at, &explanation),
                HostMessage::Claim(news) => self.claim(&news),
                _ => {}
            }
        }
        Ok(())
    }

    /// When something happens by itself next. Without an end the dry run lets deadlines come only
    /// until the last thing that is `planned`, and windows close.
    fn next_moment(&self, planned: Option<Time>) -> Option<Time> {
        match (self.scenario.until, planned) {
            (None, None) => self.world.scheduler.next_but_claims(),
            _ => self.world.next_event(),
        }
    }

    fn happen(&mut self, index: usize, what: &Happening) -> Result<(), PlanError> {
        match what {
            Happening::Finish { job, count } => self.end_tasks(
                &format!("events[{index}].finish"),
                job,
                *count,
                &Which::default(),
                Exit::Completed,
            ),
            Happening::Fail { job, count, which } => self.end_tasks(
                &format!("events[{index}].fail"),
                job,
                *count,
                which,
                Exit::Failed(FailureCause::Error),
            ),
            Happening::Idle { node } => {
                self.idle(node);
                Ok(())
            }
            Happening::Settings(settings) => {
                self.change_settings(settings);
                Ok(())
            }
            Happening::Node { name, patch, liveness } => self.change_node(index, name, patch, *liveness),
            Happening::AddNode(node) => {
                let add = ClusterMessage::AddNode { ticket: Ticket(0), node: node.clone() };
                self.world.tell(Party::Cluster, Batch::Cluster(vec![add]));
                Ok(())
            }
            Happening::Pool { name, state } => {
                let (ticket, pool, state) = (Ticket(0), name.clone(), *state);
                let message = ClusterMessage::SetPool { ticket, pool, state };
                self.world.tell(Party::Cluster, Batch::Cluster(vec![message]));
                Ok(())
            }
            Happening::Submit(job) => self.submit(job, Laid::default()),
            Happening::Abort { job, reason } => {
                let (job, reason) = (self.numbers[job], reason.as_str().into());
                let abort = JobMessage::Abort { ticket: Ticket(0), job, reason };
                self.world.tell(Party::Jobs, Batch::Jobs(vec![abort]));
                Ok(())
            }
            Happening::Reprioritise { jobs, change } => {
                let jobs = match jobs {
                    WhichJobs::Job(job) => Addressed::Job(self.numbers[job]),
                    WhichJobs::Set(set) => Addressed::Set(set.clone()),
                };
                let change = change.clone();
                let reprioritise = JobMessage::Reprioritise { ticket: Ticket(0), jobs, change };
                self.world.tell(Party::Jobs, Batch::Jobs(vec![reprioritise]));
                Ok(())
            }
            Happening::Resize { job, which, sizes } => self.resize(index, job, which, *sizes),
            Happening::Cancel { .. }
            | Happening::CancelAll(_)
            | Happening::CancelOnNode { .. }
            | Happening::Extend { .. } => {
                self.control(what);
                Ok(())
            }
        }
    }

    fn resize(
        &mut self,
        index: usize,
        job: &str,
        which: &Which,
        (min, max): (u32, u32),
    ) -> Result<(), PlanError> {
        self.check_names(&format!("events[{index}].resize"), job, which)?;
        let number = self.numbers[job];
        let groups = &self.jobs[number.0 as usize - 1].groups;
        let group = groups.iter().position(|group| is_it(&group.name, &which.group)).unwrap_or(0);
        let role = which.role.clone().unwrap_or_default();
        let resize = Resize { group: GroupId::new(number, group as u16), role, min, max };
        let message = JobMessage::Resize { ticket: Ticket(0), resize };
        self.world.tell(Party::Jobs, Batch::Jobs(vec![message]));
        Ok(())
    }

    /// What somebody does to work that is there.
    fn control(&mut self, what: &Happening) {
        let ticket = Ticket(0);
        let batch = match what {
            Happening::Cancel { job, children: false } => {
                Batch::Jobs(vec![JobMessage::Cancel { ticket, job: self.numbers[job] }])
            }
            Happening::Cancel { job, .. } => {
                let which = Cancelled::Tree(self.numbers[job]);
                Batch::Jobs(vec![JobMessage::CancelAll { ticket, which }])
            }
            Happening::CancelAll(which) => {
                Batch::Jobs(vec![JobMessage::CancelAll { ticket, which: which.clone() }])
            }
            Happening::CancelOnNode { node } => {
                Batch::Cluster(vec![ClusterMessage::CancelOnNode { ticket, name: node.clone() }])
            }
            Happening::Extend { job, span } => {
                let (what, span) = (Extended::Job(self.numbers[job]), *span);
                Batch::Scheduler(vec![SchedulerMessage::Extend { ticket, what, span }])
            }
            _ => return,
        };
        let party = match batch {
            Batch::Jobs(_) => Party::Jobs,
            Batch::Cluster(_) => Party::Cluster,
            _ => Party::Scheduler,
        };
        self.world.tell(party, batch);
    }

    /// Ends the tasks of the job that have run longest; `field` is the event that says so.
    fn end_tasks(
        &mut self,
        field: &str,
        job: &str,
        count: u32,
        which: &Which,
        exit: Exit,
    ) -> Result<(), PlanError> {
        let number = self.numbers[job];
        self.check_names(field, job, which)?;
        let of_job = self.world.jobs.live().filter(|task| task.attempt.task.job() == number);
        let of_job = of_job.filter(|task| !self.ending.contains(&task.attempt));
        let of_job = of_job.filter(|task| self.is_one_of(task.attempt.task, task.node, which));
        let mut running: Vec<(Time, Attempt, NodeId)> =
            of_job.map(|task| (self.started(task.attempt, task.since), task.attempt, task.node)).collect();
        if running.len() < count as usize {
            let what =
                format!("job `{job}` has only {} running tasks at that time, not {count}", running.len());
            return Err(PlanError::Impossible { field: format!("{field}.count"), what });
        }
        running.sort_unstable();
        for (_, attempt, node) in running.into_iter().take(count as usize) {
            self.world.finish_execution(node, attempt, exit);
            self.ending.insert(attempt);
        }
        Ok(())
    }

    fn started(&self, attempt: Attempt, since: Time) -> Time {
        let role = (attempt.task.group, attempt.task.role);
        let started = self.courses.started.get(&role).and_then(|all| all.get(attempt.task.index as usize));
        started.copied().filter(|_| attempt.number == 1).unwrap_or(since)
    }

    fn change_node(
        &mut self,
        index: usize,
        name: &str,
        patch: &NodePatch,
        liveness: Option<Liveness>,
    ) -> Result<(), PlanError> {
        let Some(id) = self.world.cluster.node_id(name) else {
            let what = format!("no node named `{name}` is there yet");
            return Err(PlanError::Impossible { field: format!("events[{index}].node"), what });
        };
        let update = |patch| ClusterMessage::UpdateNode { ticket: Ticket(0), name: name.to_owned(), patch };
        let mut messages = Vec::new();
        if *patch != NodePatch::default() {
            messages.push(update(Box::new(patch.clone())));
        }
        messages.extend(liveness.map(|liveness| match liveness {
            Liveness::Ready => ClusterMessage::HeartbeatBack(id),
            Liveness::Suspect => ClusterMessage::HeartbeatLost(id),
            Liveness::Down => ClusterMessage::NodeDown(id),
        }));
        self.world.tell(Party::Cluster, Batch::Cluster(messages));
        Ok(())
    }

    /// Also of a node that came by an event.
    fn node_name(&self, node: NodeId) -> String {
        self.world.cluster.node(node).expect("nodes stay until the end").facts.name.clone()
    }

    fn record(&mut self, event: JobEvent) {
        match event {
            JobEvent::Bound { attempt, node, at } => {
                let role = (attempt.task.group, attempt.task.role);
                let adopted = self.adopted.get(&role).copied().unwrap_or(0);
                if attempt.number > 1 || attempt.task.index >= adopted {
                    let grows = self.world.scheduler.has_joined(attempt);
                    let why = self.why(attempt).to_owned();
                    let kind = if grows { DecisionKind::Grow } else { DecisionKind::Assign };
                    self.decide(kind, attempt, node, at, why);
                }
            }
            JobEvent::Ended { attempt, node, outcome, at, bound, began, .. } => {
                self.spent[attempt.task.job().0 as usize - 1].add(bound, began, at);
                let aborted = self.world.jobs.job(attempt.task.job()).is_ok_and(|job| job.aborted.is_some());
                let outcome = match outcome {
                    Outcome::Aborted if !aborted => Outcome::Preempted(StopCause::HostEnded),
                    outcome => outcome,
                };
                if let Some(why) = why_stopped(outcome) {
                    let why = self.name_beneficiary(why, outcome);
                    let kind = if self.only_shrinks(attempt, outcome) {
                        DecisionKind::Shrink
                    } else {
                        DecisionKind::Stop
                    };
                    self.decide(kind, attempt, node, at, why);
                }
            }
            JobEvent::NotRun { .. } | JobEvent::Finished { .. } | JobEvent::Expired { .. } => {}
        }
    }

    /// Adds for whom it was done, if it was for somebody.
    fn name_beneficiary(&self, why: &str, outcome: Outcome) -> String {
        let Outcome::Preempted(cause) = outcome else { return why.to_owned() };
        match cause.beneficiary() {
            Some(group) => format!("{why} `{}`", self.jobs[group.job().0 as usize - 1].name),
            None => why.to_owned(),
        }
    }

    /// Whether the end of this attempt only makes its elastic group smaller.
    fn only_shrinks(&self, attempt: Attempt, outcome: Outcome) -> bool {
        let job = self.world.jobs.job(attempt.task.job());
        let group = job.as_ref().ok().map(|job| &job.groups[attempt.task.group.index()]);
        matches!(outcome, Outcome::Preempted(_))
            && group.is_some_and(|group| group.status == GroupStatus::Active && group.has_minima())
    }

    /// Why this node and no other.
    fn why(&self, attempt: Attempt) -> &'static str {
        let spec = &self.jobs[attempt.task.job().0 as usize - 1];
        let group = &spec.groups[attempt.task.group.index()];
        why_there(group, attempt.task.role, self.settings.placement)
    }

    fn decide(&mut self, kind: DecisionKind, attempt: Attempt, node: NodeId, at: Time, why: String) {
        let spec = &self.jobs[attempt.task.job().0 as usize - 1];
        let group = &spec.groups[attempt.task.group.index()];
        let shares = &self.settings.shares;
        self.report.record(Decision {
            at: at.as_seconds(),
            kind,
            job: spec.name.clone(),
            group: group.name.clone(),
            role: group.roles[usize::from(attempt.task.role)].name.clone(),
            task: attempt.task.index,
            node: self.node_name(node),
            class: shares.class_of(&spec.requestor, &spec.standing.queue).map(str::to_owned),
            queue: (!spec.standing.queue.is_empty()).then(|| spec.standing.queue.to_string()),
            units: self.units.get(&attempt).map(|units| (**units).clone()),
            why,
        });
    }
}

/// Whether this is the name that is wanted, if any is.
fn is_it(name: &str, wanted: &Option<String>) -> bool {
    wanted.as_ref().is_none_or(|wanted| wanted == name)
}
