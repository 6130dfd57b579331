//! JobState: jobs, groups, tasks and what becomes of their attempts.
//!
//! It accepts work, says whether what ended is finished or waits once more, and rolls tasks up to
//! groups and jobs. Where and when something runs is not its business.

mod audit;
mod bases;
mod check;
mod company;
mod control;
mod elastic;
mod family;
mod group;
mod job_sets;
mod reprioritise;
mod resize;
mod retention;
mod retries;
mod role;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::collections::{Blocks, Paged, Seldom};
use crate::id::{Attempt, GROUPS_PER_JOB_MAX, GroupId, JobId, NodeId, Ticket};
use crate::machine::{Broken, Machine};
use crate::messages::{
    Adopted, Answer, GroupArrival, HostMessage, JobEvent, JobMessage, Outbox, Refusal, Released,
    ReturnedTask, RoleArrival, Started,
};
use crate::mutation::{self, Mutation};
use crate::outcome::{Phase, TaskState};
use crate::roll_up::{TaskResult, state_of_all};
use crate::settings::Settings;
use crate::spec::{GroupSpec, JobSpec, PoolDefault, Start, Tie};
use crate::time::{MaybeTime, Span, Time};

pub use elastic::Bounds;
pub use group::{Group, GroupStatus};
pub use retention::Summary;
pub use retries::Tried;
pub use role::Role;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobState {
    settings: Arc<Settings>,
    last_job: u64,
    jobs: Paged<Job>,
    unfinished: u64,
    /// Jobs of which something was ever bound to a node.
    scheduled: u64,
    /// Live attempts by slot.
    live: Blocks<Option<LiveTask>>,
    /// How many of them are on each node.
    #[serde(skip)]
    on_node: audit::OnNode,
    finished: retention::Finished,
    #[serde(skip)]
    delays: retries::Delays,
    #[serde(skip)]
    sets: job_sets::NamedJobs,
    /// Those that have not ended.
    #[serde(skip)]
    queues: job_sets::NamedJobs,
    bases: bases::Bases,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub spec: Arc<JobSpec>,
    /// Most jobs have one group, and most groups one role: these need no room of their own.
    pub groups: SmallVec<[Group; 1]>,
    pub accepted: Time,
    pub finished: MaybeTime,
    pub spent: Spent,
    /// Something of it was bound to a node.
    was_scheduled: bool,
    unfinished_groups: u32,
    /// Why it was aborted, if it was.
    pub aborted: Option<Arc<str>>,
    /// Unfinished jobs that are parts of it.
    pub children: Seldom<BTreeSet<JobId>>,
    /// So many jobs it is a part of, one inside the other.
    depth: u8,
}

/// Time that attempts took which have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// From being bound to a node until they ran, or ended.
    pub provisioning: Span,
    /// From then until they ended.
    pub running: Span,
}

impl Spent {
    pub fn add(&mut self, bound: Time, began: Option<Time>, ended: Time) {
        let began = began.unwrap_or(ended);
        self.provisioning = Span(self.provisioning.0.saturating_add(began.since(bound).0));
        self.running = Span(self.running.0.saturating_add(ended.since(began).0));
    }
}

/// A live attempt as its job sees it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LiveTask {
    pub attempt: Attempt,
    pub node: NodeId,
    pub since: Time,
    /// It runs, the preparations over. Apart from the moment: so a place without a record needs no more room.
    has_begun: bool,
    /// Since when it runs, if it does.
    ran_from: Time,
}

impl LiveTask {
    /// Since when it runs, the preparations over.
    pub fn began(&self) -> Option<Time> {
        self.has_begun.then_some(self.ran_from)
    }
}

impl JobState {
    pub fn new(settings: Arc<Settings>) -> JobState {
        assert!(settings.limits.groups_per_job <= GROUPS_PER_JOB_MAX as u64);
        JobState {
            settings,
            last_job: 0,
            jobs: Paged::default(),
            unfinished: 0,
            scheduled: 0,
            live: Blocks::default(),
            on_node: audit::OnNode::default(),
            finished: retention::Finished::default(),
            delays: retries::Delays::default(),
            sets: job_sets::NamedJobs::default(),
            queues: job_sets::NamedJobs::default(),
            bases: bases::Bases::default(),
        }
    }

    /// A job, or why there is none with this number.
    pub fn job(&self, id: JobId) -> Result<&Job, Refusal> {
        match self.jobs.get(id.0) {
            Some(job) => Ok(job),
            None if (1..=self.last_job).contains(&id.0) => Err(Refusal::ExpiredJob(id)),
            None => Err(Refusal::UnknownJob(id)),
        }
    }

    /// All jobs that are kept, oldest first.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.jobs.iter().map(|(number, job)| (JobId(number), job))
    }

    pub fn live(&self) -> impl Iterator<Item = &LiveTask> {
        self.live.iter().flatten()
    }

    /// The number of the newest job.
    pub fn last_job(&self) -> JobId {
        JobId(self.last_job)
    }

    pub fn unfinished(&self) -> u64 {
        self.unfinished
    }

    /// Jobs of which something was ever bound to a node.
    pub fn scheduled(&self) -> u64 {
        self.scheduled
    }

    /// What is known in sum about finished jobs that are no longer kept.
    pub fn summary(&self) -> &Summary {
        &self.finished.summary
    }

    fn submit(
        &mut self,
        now: Time,
        ticket: Ticket,
        spec: Arc<JobSpec>,
        adopted: &[Adopted],
        out: &mut Outbox,
    ) {
        let limit = self.settings.limits.jobs;
        if self.unfinished >= limit {
            return out.refuse(ticket, Refusal::TooManyJobs { limit });
        }
        let id = JobId(self.last_job + 1);
        let tag = bases::tag_of(&spec, id);
        let depth = match self
            .check_parent(spec.relations.parent)
            .and_then(|depth| self.check_tag(&spec, &tag).map(|()| depth))
        {
            Ok(depth) => depth,
            Err(refusal) => return out.refuse(ticket, refusal),
        };
        self.last_job += 1;
        self.supersede(&spec, tag, id, out);
        let groups: SmallVec<[Group; 1]> = spec.groups.iter().map(Group::new).collect();
        for (index, group) in spec.groups.iter().enumerate() {
            let roles = group.roles.iter().enumerate().map(|(role, spec)| RoleArrival {
                shape: Arc::clone(&spec.shape),
                tasks: spec.max,
                min: spec.min,
                initial: spec.initial.unwrap_or(spec.min),
                duration: spec.duration.get(),
                task_key: spec.task_key.clone(),
                adopted: adopted_tasks(adopted, index, role),
                timeout: spec.timeout.get(),
                on_preempt: spec.on_preempt,
            });
            let roles = roles.collect();
            out.new_group(GroupArrival {
                group: GroupId::new(id, index as u16),
                start: group.start,
                hops: group.hops,
                freeze: group.freeze.get(),
                tie: tie(&spec, group, self.settings.pool),
                on_unsatisfiable: group.on_unsatisfiable.unwrap_or(self.settings.on_unsatisfiable),
                requestor: Arc::clone(&spec.requestor),
                standing: spec.standing.clone(),
                roles,
            });
        }
        let unfinished_groups = groups.len() as u32;
        out.host.push(HostMessage::Accepted { job: id, spec: Arc::clone(&spec) });
        self.sets.enter(&spec.relations.job_set, id);
        self.queues.enter(&spec.standing.queue, id);
        let job = Job {
            spec,
            groups,
            accepted: now,
            finished: MaybeTime::NONE,
            spent: Spent::default(),
            was_scheduled: false,
            unfinished_groups,
            aborted: None,
            children: Seldom::default(),
            depth,
        };
        self.enter_parent(job.spec.relations.parent, id);
        self.jobs.insert(id.0, job);
        self.unfinished += 1;
        out.reply(ticket, Answer::Accepted(id));
    }

    fn committed(&mut self, now: Time, started: Started, out: &mut Outbox) {
        let Started { attempt, node } = started;
        let index = attempt.slot.index();
        self.live.reach(index, || None);
        assert!(self.live[index].is_none(), "a slot is used again only after its release");
        let (has_begun, ran_from) = (false, Time::ZERO);
        self.live[index] = Some(LiveTask { attempt, node, since: now, has_begun, ran_from });
        self.on_node.change(node, 1);
        let id = attempt.task.group;
        let job = self.jobs.get_mut(id.job().0).expect("an unfinished job is kept");
        self.scheduled += u64::from(!std::mem::replace(&mut job.was_scheduled, true));
        let group = &mut job.groups[id.index()];
        group.live += 1;
        group.set_state(attempt.task, TaskState::Scheduled);
        out.job_event(JobEvent::Bound { attempt, node, at: now });
    }

    fn progress(&mut self, now: Time, attempt: Attempt, phase: Phase) {
        let live = self.live.get_mut(attempt.slot.index()).and_then(Option::as_mut);
        if let Some(live) = live.filter(|live| live.attempt == attempt) {
            if phase == Phase::Running {
                (live.has_begun, live.ran_from) = (true, now);
            }
            self.group_mut(attempt.task.group).set_state(attempt.task, phase.state());
        }
    }

    fn released(&mut self, now: Time, released: Released, out: &mut Outbox) {
        let Released { attempt, node, outcome } = released;
        let live = self.live.get_mut(attempt.slot.index()).and_then(Option::take);
        let live = live.filter(|live| live.attempt == attempt).expect("what is released was committed");
        self.on_node.change(node, -1);
        let id = attempt.task.group;
        let job = self.jobs.get_mut(id.job().0).expect("an unfinished job is kept");
        let role = &job.spec.groups[id.index()].roles[usize::from(attempt.task.role)];
        let (retries, on_preempt) = (&role.retries, role.on_preempt);
        let group = &mut job.groups[id.index()];
        job.spent.add(live.since, live.began(), now);
        group.live -= 1;
        let next = group.decide(released, &live, retries.as_deref(), now);
        let next = next.after_stop(outcome, on_preempt.unwrap_or(self.settings.rebalance.on_preempt));
        let next = group.next_of_guest(attempt.task, next);
        let next = group.next_of_cancelled(attempt.task, next);
        let state = next.state();
        out.job_event(JobEvent::Ended {
            attempt,
            node,
            outcome,
            bound: live.since,
            began: live.began(),
            at: now,
            state,
        });
        self.go_on(now, attempt, outcome, next, out);
        self.close_roles(now, id, out);
        self.finish_group_if_done(now, id, out);
    }

    fn withdrawn(&mut self, now: Time, id: GroupId, out: &mut Outbox) {
        let (state, tasks) = self.group_mut(id).end_rest();
        if tasks > 0 {
            out.job_event(JobEvent::NotRun { group: id, state, tasks, at: now });
        }
        self.finish_group_if_done(now, id, out);
    }

    fn finish_group_if_done(&mut self, now: Time, id: GroupId, out: &mut Outbox) {
        let job_id = id.job();
        let job = self.jobs.get_mut(job_id.0).expect("a job outlives its groups");
        if !job.groups[id.index()].finish_if_done() {
            return;
        }
        out.forget_group(id);
        job.unfinished_groups -= 1;
        if job.unfinished_groups == 0 {
            job.finished = now.into();
            let (state, result) = (job.state(), job.result());
            out.job_event(JobEvent::Finished { job: job_id, state, result, at: now });
            let spec = Arc::clone(&job.spec);
            self.leave_parent(spec.relations.parent, job_id);
            self.leave_basis(&spec, job_id);
            self.queues.leave(&spec.standing.queue, job_id);
            self.unfinished -= 1;
            self.finished.enter(now, job_id);
        }
    }

    fn group_mut(&mut self, id: GroupId) -> &mut Group {
        let job = self.jobs.get_mut(id.job().0).expect("an unfinished job is kept");
        &mut job.groups[id.index()]
    }

    fn handle(&mut self, now: Time, message: JobMessage, out: &mut Outbox) {
        match message {
            JobMessage::Submit { ticket, job, adopted } => self.submit(now, ticket, job, &adopted, out),
            JobMessage::Cancel { ticket, job } => self.cancel(ticket, job, out),
            JobMessage::Resize { ticket, resize } => self.resize(ticket, resize, out),
            JobMessage::Reprioritise { ticket, jobs, change } => {
                self.reprioritise(ticket, &jobs, &change, out);
            }
            JobMessage::ListSet { ticket, set } => self.list_set(ticket, &set, out),
            JobMessage::Abort { ticket, job, reason } => self.abort(ticket, job, reason, out),
            JobMessage::CancelAll { ticket, which } => self.cancel_all(ticket, which, out),
            JobMessage::CancelTasks { ticket, tasks } => self.cancel_tasks(ticket, tasks, out),
            JobMessage::ListChildren { ticket, job } => self.list_children(ticket, job, out),
            JobMessage::Assigned { group, pool } => self.assigned(group, Some(pool), out),
            JobMessage::Unassigned { group } => self.assigned(group, None, out),
            JobMessage::ExplainDelay { ticket, subject } => self.explain_delay(now, ticket, subject, out),
            JobMessage::History { ticket, task } => self.tell_history(ticket, task, out),
            JobMessage::Unsatisfiable { group, explanation } => {
                self.unsatisfiable(now, group, explanation, out)
            }
            JobMessage::Settings(settings) => self.settings = settings,
            JobMessage::Committed(list) => list.into_iter().for_each(|one| self.committed(now, one, out)),
            JobMessage::Progress(list) => {
                list.into_iter().for_each(|(attempt, phase)| self.progress(now, attempt, phase));
            }
            JobMessage::Released(list) => list.into_iter().for_each(|one| self.released(now, one, out)),
            JobMessage::Audit(audit) => self.audit(now, &audit, out),
            JobMessage::Withdrawn(list) => list.into_iter().for_each(|one| self.withdrawn(now, one, out)),
            JobMessage::Fenced(list) => list.into_iter().for_each(|one| self.fenced(now, one, out)),
        }
    }
}

impl Job {
    /// The roll-up of its groups.
    pub fn state(&self) -> TaskState {
        state_of_all(self.groups.iter().map(Group::state)).expect("a job has groups")
    }

    /// The worst that came of its tasks.
    pub fn result(&self) -> TaskResult {
        TaskResult::of_all(self.groups.iter().map(Group::result))
    }
}

/// With whom the tasks of a group stay in one pool; one alone is always in one.
fn tie(job: &JobSpec, group: &GroupSpec, default: PoolDefault) -> Tie {
    let tie = Tie::of(job.pool, group.pool, default);
    let is_alone = match tie {
        Tie::None => true,
        Tie::Group => group.roles.iter().map(|role| u64::from(role.max)).sum::<u64>() == 1,
        Tie::Job => job.tasks() == 1,
    };
    if is_alone { Tie::None } else { tie }
}

fn adopted_tasks(adopted: &[Adopted], group: usize, role: usize) -> Vec<(NodeId, u32, Time)> {
    let own = adopted.iter().filter(|one| usize::from(one.group) == group && usize::from(one.role) == role);
    own.map(|one| (one.node, one.tasks, one.started)).collect()
}

impl Group {
    /// A task ended unfinished: it waits again, on its own or with its whole group.
    fn take_back(&mut self, id: GroupId, returned: ReturnedTask, out: &mut Outbox) {
        if mutation::active(Mutation::LoseReturnedTask) && returned.task.index.is_multiple_of(3) {
            return;
        }
        match self.status {
            // Nothing of it will start again: the withdrawal ends it.
            GroupStatus::Withdrawing | GroupStatus::Finished => {}
            GroupStatus::Active if self.start == Start::Independent => out.return_task(returned),
            // A loss above the minima makes it smaller and no more.
            GroupStatus::Active if self.has_minima() => out.return_task(returned),
            GroupStatus::Active => {
                self.returned.push(returned);
                self.begin_to_break(id, out);
            }
            GroupStatus::Breaking => self.returned.push(returned),
        }
    }

    /// It runs with too few members: the others end, then all start again.
    fn begin_to_break(&mut self, id: GroupId, out: &mut Outbox) {
        self.status = GroupStatus::Breaking;
        self.fences += u32::from(self.is_elastic());
        if (self.live > 0 && !mutation::active(Mutation::KeepBrokenGroup)) || self.is_elastic() {
            out.break_group(id);
        }
    }
}

impl Machine for JobState {
    type Message = JobMessage;

    fn receive(&mut self, now: Time, batch: Vec<JobMessage>, out: &mut Outbox) {
        for message in batch {
            self.handle(now, message, out);
        }
        self.return_due(now, out);
        self.forget_old(now, out);
    }

    fn wake_at(&self) -> Option<Time> {
        let expiry = self.finished.next_expiry(self.settings.retention);
        expiry.into_iter().chain(self.delays.first().map(|(at, _)| *at)).min()
    }

    fn rebuild(&mut self) {
        self.rebuild_delays();
        self.rebuild_sets();
        self.rebuild_on_node();
    }

    fn check(&self) -> Result<(), Broken> {
        self.check_jobs()
    }
}

#[cfg(test)]
mod tests;
