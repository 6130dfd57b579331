//! Groups as they come, return, are cancelled, break and go.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::id::{Attempt, GroupId, Slot, TaskId, Ticket};
use crate::messages::{
    Answer, ClusterMessage, Extended, GroupArrival, Outbox, ReturnedTask, StopOrder, Withdrawal,
};
use crate::mutation::{self, Mutation};
use crate::outcome::StopCause;
use crate::settings::JobKey;
use crate::spec::{OnUnsatisfiable, Start};
use crate::time::{Span, Time};

use super::Scheduler;
use super::elastic::{ElasticGroup, ElasticRole};
use super::groups::{self, GroupView, RoleView};
use super::growth::Size;
use super::job_standing::{self, InLine};
use super::plan::{Adoption, Turn};
use super::queue::Entry;
use super::shapes::ShapeKey;

impl Scheduler {
    pub(super) fn new_group(&mut self, now: Time, arrival: GroupArrival, turn: &mut Turn) {
        let id = arrival.group;
        self.enter_job(now, id.job(), arrival.requestor, arrival.standing);
        let elastic = ElasticGroup::for_arrival(arrival.start, &arrival.roles, arrival.freeze);
        let place = match elastic {
            None => self.place_of_job(id.job()),
            Some(_) => self.surplus_place_of(id.job()),
        };
        let has_size = self.settings.shares.job_key == JobKey::RunTime && arrival.start == Start::Atomic;
        let whole = has_size.then(|| Size::of(arrival.roles.iter().map(|role| &role.shape.request)));
        let mut roles = SmallVec::with_capacity(arrival.roles.len());
        for (index, mut role) in arrival.roles.into_iter().enumerate() {
            let entry = Entry { group: id, role: index as u16 };
            role.shape = self.asked_by(id.job(), &role.shape);
            let shape = self.shapes.intern(place, ShapeKey::Task(Arc::clone(&role.shape)), &mut self.nodes);
            self.shapes.get_mut(shape).references += 1;
            let mut adopted = 0;
            for (node, tasks, since) in role.adopted.iter().copied() {
                turn.adopt(Adoption { entry, node, first: adopted, tasks, since });
                adopted += tasks;
            }
            let sizes = elastic.as_ref().map(|_| Box::new(ElasticRole::new(&role)));
            let mut view = RoleView::new(shape, role, adopted);
            view.elastic = sizes;
            if let (0, Some(key)) = (view.expected, &view.task_key) {
                view.expected = self.durations.mean(key).map_or(0, job_standing::milliseconds);
            }
            let job = self.jobs.get(id.job().0).expect("the job was entered");
            let size = || whole.unwrap_or_else(|| Size::of([&view.spec.request]));
            view.order = job_standing::order(
                &self.settings.shares,
                (now, self.ahead()),
                (job, InLine { raised: 0, last: self.is_last(job.leaf) }),
                entry,
                view.expected,
                size,
            );
            roles.push(view);
        }
        let job = self.jobs.get_mut(id.job().0).expect("the job was entered");
        let mut group = GroupView::new(arrival.start, arrival.hops, arrival.tie, roles);
        group.elastic = elastic;
        group.since = now;
        group.fails_if_unable = arrival.on_unsatisfiable == OnUnsatisfiable::Fail;
        group.runs_already();
        job.insert(id.index(), group);
        self.join_the_others(id);
        self.enqueue_group(now, id);
    }

    /// Queues everything of a group that waits and is not queued yet.
    pub(super) fn enqueue_group(&mut self, now: Time, id: GroupId) {
        let group = groups::find(&self.jobs, id).expect("only groups that are there are queued");
        if group.waiting() == 0 || group.withdrawn {
            return;
        }
        self.doubt(id);
        let group = groups::find(&self.jobs, id).expect("just seen");
        match group.start {
            Start::Atomic if group.elastic.is_some() => self.resettle(now, id),
            Start::Atomic => {
                let shape = self.enqueue_gang(id);
                self.arrived(now, shape);
            }
            Start::Independent => {
                for role in 0..group.roles.len() {
                    self.enqueue_role(now, Entry { group: id, role: role as u16 });
                }
            }
        }
    }

    pub(super) fn enqueue_role(&mut self, now: Time, entry: Entry) {
        let group = groups::find_mut(&mut self.jobs, entry.group).expect("the caller has seen the group");
        let role = &mut group.roles[usize::from(entry.role)];
        let (shape, added) = (role.shape, role.waiting() - role.queued);
        if added == 0 {
            return;
        }
        role.queued += added;
        let queued = (role.order, entry);
        self.add_waiting(shape, queued, u64::from(added));
        self.arrived(now, shape);
    }

    pub(super) fn take_back(&mut self, now: Time, tasks: Vec<ReturnedTask>) {
        let mut groups: Vec<GroupId> = Vec::new();
        for ReturnedTask { task, number, avoid } in tasks {
            let Some(group) = self.group_mut(task.group) else { continue };
            group.count_returning(task.role, -1);
            if group.waiting() == 0 {
                group.since = now;
            }
            group.roles[usize::from(task.role)].take_back(task.index, number, avoid);
            if groups.last() != Some(&task.group) {
                groups.push(task.group);
            }
        }
        for group in groups {
            self.enqueue_group(now, group);
        }
    }

    /// Ends a group: nothing of it waits any more, and ClusterState ends what is live of it,
    /// behind every commit that is on its way.
    pub(super) fn withdraw(&mut self, id: GroupId, cause: StopCause, out: &mut Outbox) {
        let Some(group) = groups::find_mut(&mut self.jobs, id) else { return };
        if group.fails_if_unable {
            self.prospects.forget(id);
        }
        (group.withdrawn, group.returning) = (true, 0);
        let attempts: Vec<Attempt> = self.live.of_group(group.live).map(|live| live.attempt).collect();
        let nothing_waits = group.waiting() == 0;
        for attempt in &attempts {
            self.mark_stopping(attempt.slot);
        }
        self.dequeue_group(id);
        if nothing_waits && mutation::active(Mutation::SkipWithdrawal) {
            return;
        }
        out.withdrawal(Withdrawal { group: id, attempts, cause });
    }

    pub(super) fn dequeue_group(&mut self, id: GroupId) {
        self.touch_age(id);
        if self.group(id).is_some_and(|group| group.gang.is_some()) {
            self.dequeue_gang(id);
        }
        let group = groups::find_mut(&mut self.jobs, id).expect("the caller has seen the group");
        let mut left = Vec::with_capacity(group.roles.len());
        for role in &mut group.roles {
            role.abandon_waiting();
            let queued = std::mem::take(&mut role.queued);
            if queued > 0 {
                left.push((role.shape, queued));
            }
        }
        for (shape, queued) in left {
            self.take_waiting(shape, u64::from(queued));
            self.shapes.settle(shape, &self.jobs);
        }
    }

    /// Lets what runs of a job, or one task, run for so much longer. It is told to the TaskRunner behind
    /// everything that was decided before.
    pub(super) fn extend(&mut self, ticket: Ticket, what: Extended, span: Span, out: &mut Outbox) {
        let live: Vec<(Attempt, Span)> = match what {
            Extended::Task(task) => {
                let group = self.group(task.group).map(|group| group.live);
                let live = group.into_iter().flat_map(|live| self.live.of_group(live));
                live.map(|live| live.attempt)
                    .filter(|attempt| attempt.task == task)
                    .map(|it| (it, span))
                    .collect()
            }
            Extended::Job(job) => {
                let groups = self.jobs.get(job.0).into_iter().flat_map(|job| job.groups.iter().flatten());
                groups
                    .flat_map(|group| self.live.of_group(group.live))
                    .map(|live| (live.attempt, span))
                    .collect()
            }
        };
        out.reply(ticket, Answer::Count(live.len() as u64));
        if !live.is_empty() {
            out.cluster.push(ClusterMessage::Extend(live));
        }
    }

    /// Stops the live attempt of one task, if there is one.
    pub(super) fn stop_task(&mut self, task: TaskId, cause: StopCause, out: &mut Outbox) {
        let Some(group) = self.group(task.group) else { return };
        let live = self.live.of_group(group.live).find(|live| live.attempt.task == task);
        if let Some(slot) = live.map(|live| live.attempt.slot) {
            self.stop(slot, cause, out);
        }
    }

    /// Stops what still runs of an atomic group that lost a member.
    pub(super) fn break_group(&mut self, id: GroupId, out: &mut Outbox) {
        let Some(group) = self.group(id) else { return };
        let slots: Vec<_> = self.live.of_group(group.live).map(|live| live.attempt.slot).collect();
        for slot in slots {
            self.stop(slot, StopCause::GroupBroken, out);
        }
        self.break_elastic(self.now, id, out);
    }

    pub(super) fn stop(&mut self, slot: Slot, cause: StopCause, out: &mut Outbox) {
        if self.mark_stopping(slot) {
            let live = self.live.get(slot).expect("only live attempts are stopped");
            out.stop(StopOrder { attempt: live.attempt, cause });
        }
    }

    /// An attempt is being stopped; false if it was already.
    fn mark_stopping(&mut self, slot: Slot) -> bool {
        let is_new = self.live.mark_stopping(slot);
        let task = self.task_in(slot);
        let group = groups::find_mut(&mut self.jobs, task.group).expect("a group outlives its attempts");
        if let Some(elastic) = &mut group.roles[usize::from(task.role)].elastic {
            elastic.stopping += u32::from(is_new);
        }
        is_new
    }

    /// An attempt is supposed to be stopped from now on, or is not any more.
    pub(super) fn suppose_stopping(&mut self, slot: Slot, stopping: bool) {
        self.live.get_mut(slot).expect("only live attempts are stopped").stopping = stopping;
        let task = self.task_in(slot);
        let group = groups::find_mut(&mut self.jobs, task.group).expect("a group outlives its attempts");
        if let Some(elastic) = &mut group.roles[usize::from(task.role)].elastic {
            elastic.stopping = if stopping { elastic.stopping + 1 } else { elastic.stopping - 1 };
        }
    }

    pub(super) fn forget(&mut self, id: GroupId) {
        if let Some(group) = self.group_mut(id) {
            group.forgotten = true;
            self.drop_group_when_clear(id);
        }
    }

    /// A forgotten group stays until the releases that are on their way have come in.
    pub(super) fn drop_group_when_clear(&mut self, id: GroupId) {
        let Some(group) = self.group(id) else { return };
        if !group.forgotten || group.live_count > 0 {
            return;
        }
        self.dequeue_group(id);
        self.forget_elastic(id);
        self.forget_age(id);
        let job = self.jobs.get_mut(id.job().0).expect("the group is there");
        let group = job.groups[id.index()].take().expect("the group is there");
        if group.fails_if_unable {
            self.prospects.forget(id);
        }
        if job.groups.iter().all(Option::is_none) {
            self.jobs.remove(id.job().0);
        }
        for role in group.roles {
            self.shapes.release(role.shape, &mut self.nodes);
        }
    }
}
