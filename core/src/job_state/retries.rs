//! Whether and when a task that did not come to a good end runs again, and what is remembered of its
//! attempts. Tasks that come to a good end at once leave nothing here.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::explanation::{Explanation, Subject};
use crate::id::{Attempt, NodeId, TaskId, Ticket};
use crate::messages::{Answer, AttemptRecord, Outbox, Refusal, Released, ReturnedTask, TaskHistory};
use crate::mutation::{self, Mutation};
use crate::outcome::{Outcome, StopCause, TaskState};
use crate::roll_up::TaskResult;
use crate::spec::{OnPreempt, Retries, Start};
use crate::time::Time;

use super::{Group, GroupStatus, JobState, LiveTask};

/// So many of the last attempts of a task are remembered.
const ATTEMPTS_KEPT: usize = 8;

/// So many of the nodes on which a task failed last are avoided.
const AVOIDED_KEPT: usize = 16;

/// What is remembered of a task of which an attempt did not end well.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tried {
    /// Attempts that counted against the most that its role allows.
    pub counted: u32,
    /// Until when it waits before it is tried again, and the number of that attempt.
    pub delayed: Option<(Time, u32)>,
    avoided: VecDeque<NodeId>,
    attempts: VecDeque<AttemptRecord>,
    ended: u32,
}

/// Tasks that wait for their time, soonest first.
pub(super) type Delays = BTreeSet<(Time, TaskId)>;

/// What becomes of a task after the end of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Final(TaskState),
    AtOnce,
    Later(Time),
}

impl Next {
    pub(super) fn state(self) -> TaskState {
        match self {
            Next::Final(state) => state,
            Next::AtOnce | Next::Later(_) => TaskState::Queued,
        }
    }
}

impl Next {
    /// What was stopped for others, or because its room was lost, goes on as its role says.
    pub(super) fn after_stop(self, outcome: Outcome, on_preempt: OnPreempt) -> Next {
        let Outcome::Preempted(cause) = outcome else { return self };
        if cause.beneficiary().is_none() && cause != StopCause::CapacityLoss {
            return self;
        }
        match on_preempt {
            OnPreempt::Requeue => self,
            OnPreempt::Fail => Next::Final(TaskState::Failed),
            OnPreempt::Drop => Next::Final(TaskState::Cancelled),
        }
    }
}

impl Tried {
    fn note(&mut self, released: Released, live: &LiveTask, now: Time) {
        let Released { attempt, node, outcome } = released;
        self.ended += 1;
        if self.attempts.len() == ATTEMPTS_KEPT {
            self.attempts.pop_front();
        }
        let (bound, began, ended) = (live.since, live.began(), now);
        self.attempts.push_back(AttemptRecord { number: attempt.number, node, bound, began, ended, outcome });
        if matches!(outcome, Outcome::Failed(_) | Outcome::TimedOut(_)) {
            self.avoided.retain(|avoided| *avoided != node);
            self.avoided.push_back(node);
            while self.avoided.len() > AVOIDED_KEPT {
                self.avoided.pop_front();
            }
        }
    }

    /// The next attempt, or the end of the tries.
    fn next(&mut self, outcome: Outcome, retries: &Retries, now: Time) -> Next {
        if !retries.covers(outcome) {
            return outcome.final_state().map_or(Next::AtOnce, Next::Final);
        }
        if self.counted >= retries.most && !mutation::active(Mutation::RetryForever) {
            return Next::Final(TaskState::Failed);
        }
        self.counted += 1;
        match retries.delay(self.counted) {
            delay if delay.is_zero() => Next::AtOnce,
            _ if mutation::active(Mutation::RetryEarly) => Next::AtOnce,
            delay => Next::Later(now + delay),
        }
    }
}

impl Group {
    /// Remembers an attempt that ended, where there is something to remember, and decides what follows.
    pub(super) fn decide(
        &mut self,
        released: Released,
        live: &LiveTask,
        retries: Option<&Retries>,
        now: Time,
    ) -> Next {
        let (task, outcome) = (released.attempt.task, released.outcome);
        let plain = outcome.final_state().map_or(Next::AtOnce, Next::Final);
        let role = &mut self.roles[usize::from(task.role)];
        let is_new = !role.tried.contains_key(&task.index);
        let ends_well = matches!(
            outcome,
            Outcome::Completed | Outcome::Cancelled | Outcome::Aborted | Outcome::Dismissed
        );
        if is_new && (ends_well || retries.is_none() && matches!(plain, Next::Final(_))) {
            return plain;
        }
        let tried = role.tried.entry(task.index).or_default();
        tried.note(released, live, now);
        let going = matches!(self.status, GroupStatus::Active | GroupStatus::Breaking);
        match retries {
            Some(retries) if going => tried.next(outcome, retries, now),
            _ => plain,
        }
    }

    /// The task as it goes back to the queue.
    pub(super) fn returned_task(&self, task: TaskId, number: u32) -> ReturnedTask {
        let tried = self.roles[usize::from(task.role)].tried.get(&task.index);
        let avoid = tried.map(|tried| tried.avoided.iter().copied().collect()).unwrap_or_default();
        ReturnedTask { task, number, avoid }
    }

    /// How many tasks wait for the time at which they are tried again, and when that is for the first of them.
    /// A group that starts again as a whole waits for the last of its members.
    pub fn delay(&self, now: Time) -> Option<(u64, Time)> {
        if self.waits_as_a_whole(now) {
            return Some((self.returned.len() as u64, self.not_before));
        }
        let tried = self.roles.iter().flat_map(|role| role.tried.values());
        let first = tried.filter_map(|tried| tried.delayed).map(|(at, _)| at).min()?;
        Some((self.delayed(), first))
    }

    fn waits_as_a_whole(&self, now: Time) -> bool {
        self.status == GroupStatus::Breaking && self.live == 0 && now < self.not_before
    }

    /// The same of a single task.
    fn delay_of(&self, task: TaskId, now: Time) -> Option<(u64, Time)> {
        if self.waits_as_a_whole(now) && self.returned.iter().any(|returned| returned.task == task) {
            return Some((1, self.not_before));
        }
        let (at, _) = self.roles.get(usize::from(task.role))?.tried.get(&task.index)?.delayed?;
        Some((1, at))
    }

    /// Tasks that wait for their time.
    pub fn delayed(&self) -> u64 {
        let tried = self.roles.iter().flat_map(|role| role.tried.values());
        tried.filter(|tried| tried.delayed.is_some()).count() as u64
    }

    /// Nothing waits for its time any more; whoever did, by the moments.
    pub(super) fn forget_delays(&mut self) -> Vec<(Time, u16, u32)> {
        let mut forgotten = Vec::new();
        for (index, role) in self.roles.iter_mut().enumerate() {
            for (task, tried) in role.tried.there_mut().into_iter().flatten() {
                forgotten.extend(tried.delayed.take().map(|(at, _)| (at, index as u16, *task)));
            }
        }
        forgotten
    }
}

impl JobState {
    /// Carries out what was decided about a task whose attempt has ended.
    pub(super) fn go_on(
        &mut self,
        now: Time,
        attempt: Attempt,
        outcome: Outcome,
        next: Next,
        out: &mut Outbox,
    ) {
        let (task, id) = (attempt.task, attempt.task.group);
        let number = attempt.number + 1;
        let group = self.group_mut(id);
        group.set_state(task, next.state());
        if let Next::Final(_) = next {
            let role = &mut group.roles[usize::from(task.role)];
            role.result = role.result.max(TaskResult::of(outcome));
            self.end_company(now, task, out);
        }
        let group = self.group_mut(id);
        let (atomic, waits) = (group.start == Start::Atomic, !matches!(next, Next::Final(_)));
        if atomic && waits != outcome.final_state().is_none() {
            // The Scheduler cannot tell from the end alone whether this member comes back.
            let role = task.role;
            out.scheduler.push(crate::messages::SchedulerMessage::Member {
                group: id,
                role,
                comes_back: waits,
            });
        }
        match next {
            Next::Final(_) => {}
            Next::AtOnce => group.take_back(id, group.returned_task(task, number), out),
            Next::Later(at) => {
                let role = &mut group.roles[usize::from(task.role)];
                role.tried.entry(task.index).or_default().delayed = Some((at, number));
                if atomic && !group.has_minima() {
                    group.not_before = group.not_before.max(at);
                    group.take_back(id, group.returned_task(task, number), out);
                }
                self.delays.insert((at, task));
            }
        }
        self.group_mut(id).start_again_when_clear(id, now, out);
    }

    /// Returns the tasks whose time has come.
    pub(super) fn return_due(&mut self, now: Time, out: &mut Outbox) {
        while let Some((at, task)) = self.delays.first().copied().filter(|(at, _)| *at <= now) {
            self.delays.remove(&(at, task));
            let group = self.group_mut(task.group);
            let tried = group.roles[usize::from(task.role)].tried.there_mut();
            let tried = tried.and_then(|tried| tried.get_mut(&task.index));
            let delayed = tried.and_then(|tried| tried.delayed.take());
            // Whoever came back with its group waits for no time any more.
            let Some((_, number)) = delayed else { continue };
            match group.start {
                Start::Independent => out.return_task(group.returned_task(task, number)),
                Start::Atomic => group.return_member(group.returned_task(task, number), now, out),
            }
        }
    }

    pub(super) fn rebuild_delays(&mut self) {
        let mut delays = Delays::new();
        for (id, job) in self.jobs() {
            for (index, group) in job.groups.iter().enumerate() {
                for (role, view) in group.roles.iter().enumerate() {
                    let group = crate::id::GroupId::new(id, index as u16);
                    let waiting =
                        view.tried.iter().filter_map(|(task, tried)| Some((*task, tried.delayed?.0)));
                    delays
                        .extend(waiting.map(|(index, at)| (at, TaskId { group, role: role as u16, index })));
                }
            }
        }
        self.delays = delays;
    }

    /// What waits for its time is not queued: the Scheduler knows nothing of it.
    pub(super) fn explain_delay(&self, now: Time, ticket: Ticket, subject: Subject, out: &mut Outbox) {
        let id = match subject {
            Subject::Group(id) => id,
            Subject::Task(task) => task.group,
        };
        let job = match self.job(id.job()) {
            Ok(job) => job,
            Err(refusal) => return out.refuse(ticket, refusal),
        };
        let delay = job.groups.get(id.index()).and_then(|group| match subject {
            Subject::Group(_) => group.delay(now),
            Subject::Task(task) => group.delay_of(task, now),
        });
        let explanation = Explanation::of_delay(delay, self.settings.version);
        out.reply(ticket, Answer::Explained(vec![explanation]));
    }

    /// What is known of the attempts of a task.
    pub(super) fn tell_history(&self, ticket: Ticket, task: TaskId, out: &mut Outbox) {
        let job = match self.job(task.job()) {
            Ok(job) => job,
            Err(refusal) => return out.refuse(ticket, refusal),
        };
        let group = job.groups.get(task.group.index());
        let Some(state) = group.and_then(|group| group.task_state(task)) else {
            return out.refuse(ticket, Refusal::UnknownTask(task));
        };
        let tried = group.and_then(|group| group.roles[usize::from(task.role)].tried.get(&task.index));
        out.reply(ticket, Answer::History(Box::new(history(state, tried))));
    }
}

fn history(state: TaskState, tried: Option<&Tried>) -> TaskHistory {
    let Some(tried) = tried else { return TaskHistory { state, ..TaskHistory::default() } };
    TaskHistory {
        state,
        ended: tried.ended,
        counted: tried.counted,
        not_before: tried.delayed.map(|(at, _)| at),
        attempts: tried.attempts.iter().copied().collect(),
    }
}
