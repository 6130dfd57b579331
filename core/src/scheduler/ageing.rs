//! Ageing: what has waited for long is raised by one strict band, and again after as long.
//!
//! A group ages from the end of the turn in which it began to wait to the end of the one in which nothing of
//! it waits any more. Each has one deadline, the moment at which it is raised next; nobody goes over what
//! waits. Raised work stands among that of the higher band, by priority and arrival as always. By force it
//! takes no more from others than before: once it runs it is what it was, and would be stopped in its turn.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::{GroupId, JobId};
use crate::machine::{Broken, promise};
use crate::mutation::{self, Mutation};
use crate::share_explanation::Raise;
use crate::time::{Span, Time};

use super::Scheduler;
use super::groups::{self, GroupView};
use super::leaf::LeafId;

/// How long a group has waited, where that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Age {
    since: Time,
    /// By how many levels it is raised.
    pub(super) raised: u16,
    /// Where it waits by now.
    leaf: LeafId,
    /// When it is raised next, if its own level leaves room for that.
    next: Option<Time>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ageing {
    /// Groups that may have begun or ceased to wait in this turn.
    touched: Vec<GroupId>,
    /// When each group is raised next.
    #[serde(skip)]
    raises: BTreeSet<(Time, GroupId)>,
    /// Groups that are raised.
    #[serde(skip)]
    raised: BTreeSet<GroupId>,
}

impl Ageing {
    fn enter(&mut self, id: GroupId, age: &Age) {
        self.raises.extend(age.next.map(|at| (at, id)));
        self.raised.extend((age.raised > 0).then_some(id));
    }

    fn leave(&mut self, id: GroupId, age: &Age) {
        if let Some(at) = age.next {
            self.raises.remove(&(at, id));
        }
        self.raised.remove(&id);
    }
}

impl GroupView {
    /// Whether anything of it waits for its turn. What an elastic group has above its minima does not.
    fn waits_in_line(&self) -> bool {
        let queued = self.elastic.is_none() && self.roles.iter().any(|role| role.queued > 0);
        !self.withdrawn && (self.gang.is_some() || queued)
    }

    /// By how many levels it is raised.
    pub(super) fn raised(&self) -> u16 {
        self.age.as_ref().map_or(0, |age| age.raised)
    }
}

impl Scheduler {
    /// The level at which the work of a job waits by itself.
    pub(super) fn own_level(&self, id: JobId) -> u16 {
        self.shares.leaf(self.leaf_of(id)).level
    }

    /// The leaf in which a group waits: that of its job, unless it is raised.
    pub(super) fn leaf_of_group(&self, id: GroupId) -> LeafId {
        let age = self.group(id).and_then(|group| group.age.as_ref());
        age.map_or_else(|| self.leaf_of(id.job()), |age| age.leaf)
    }

    /// A group may have begun or ceased to wait.
    pub(super) fn touch_age(&mut self, id: GroupId) {
        if self.settings.shares.ageing.is_some() && self.ageing.touched.last() != Some(&id) {
            self.ageing.touched.push(id);
        }
    }

    /// Ends a turn: whoever waits from now on ages, whoever does not is as if it had never waited.
    pub(super) fn note_ages(&mut self, now: Time) {
        for id in std::mem::take(&mut self.ageing.touched) {
            let Some(group) = self.group(id) else { continue };
            match (self.ages(id, group), group.age.is_some()) {
                (true, false) => {
                    let age = Age { since: now, raised: 0, leaf: self.leaf_of(id.job()), next: None };
                    self.set_age(id, Some(age));
                    self.stand_by_age(now, id);
                }
                (false, true) => self.end_age(now, id),
                _ => {}
            }
        }
    }

    fn ages(&self, id: GroupId, group: &GroupView) -> bool {
        let counts = self.settings.shares.ageing().is_some() && self.own_level(id.job()) > 0;
        counts && group.waits_in_line()
    }

    fn set_age(&mut self, id: GroupId, age: Option<Age>) {
        let group = groups::find_mut(&mut self.jobs, id).expect("the caller has seen the group");
        if let Some(before) = group.age.take() {
            self.ageing.leave(id, &before);
        }
        age.iter().for_each(|age| self.ageing.enter(id, age));
        group.age = age.map(Box::new);
    }

    /// Nothing of a group waits any more: what comes back of it waits where its job does.
    fn end_age(&mut self, now: Time, id: GroupId) {
        let group = self.group(id).expect("the caller has seen the group");
        let moves = group.raised() > 0 && !group.withdrawn;
        self.set_age(id, None);
        if moves {
            let unlisted = self.unlist_group(id);
            self.list_again(now, unlisted);
        }
    }

    /// A group goes.
    pub(super) fn forget_age(&mut self, id: GroupId) {
        if self.group(id).is_some_and(|group| group.age.is_some()) {
            self.set_age(id, None);
        }
    }

    /// Raises those whose time has come, so many at a time.
    pub(super) fn raise_due(&mut self, now: Time) {
        for _ in 0..self.settings.limits.placements_per_turn {
            let due = self.ageing.raises.first().copied().filter(|(at, _)| *at <= now);
            let Some((at, id)) = due else { return };
            if mutation::active(Mutation::MissAgeing) {
                self.ageing.raises.remove(&(at, id));
                continue;
            }
            let unlisted = self.unlist_group(id);
            self.stand_by_age(now, id);
            self.list_again(now, unlisted);
        }
    }

    pub(super) fn next_raise(&self) -> Option<Time> {
        self.ageing.raises.first().map(|(at, _)| *at)
    }

    /// Finds the leaf in which a group waits by its age, after its job came to stand elsewhere or time has
    /// passed; the caller lists it there.
    pub(super) fn stand_by_age(&mut self, now: Time, id: GroupId) {
        let Some(age) = self.group(id).and_then(|group| group.age.as_deref()).copied() else { return };
        let (own, home) = (self.own_level(id.job()), self.leaf_of(id.job()));
        let after = self.settings.shares.ageing().filter(|_| own > 0);
        let age = after.map(|after| {
            let raised = (now.since(age.since).0 / after.0.max(1)).min(u64::from(own)) as u16;
            let (leaf, is_new) = self.shares.leaf_above(home, raised);
            if is_new {
                self.shapes.add_leaf(self.settings.kinds.len());
            }
            let next = age.since + Span(after.0.saturating_mul(u64::from(raised) + 1));
            Age { raised, leaf, next: Some(next).filter(|_| raised < own), ..age }
        });
        self.set_age(id, age);
    }

    /// The same for all groups of a job.
    pub(super) fn stand_by_ages(&mut self, now: Time, id: JobId) {
        let groups = self.jobs.get(id.0).map_or(0, |job| job.groups.len());
        for index in 0..groups {
            self.stand_by_age(now, GroupId::new(id, index as u16));
        }
    }

    pub(super) fn rebuild_ages(&mut self) {
        (self.ageing.raises, self.ageing.raised) = Default::default();
        for (job, view) in self.jobs.iter() {
            for (index, group) in view.groups.iter().enumerate() {
                if let Some(age) = group.as_ref().and_then(|group| group.age.as_ref()) {
                    self.ageing.enter(GroupId::new(JobId(job), index as u16), age);
                }
            }
        }
    }

    /// Where raised groups wait, and the level of their own.
    pub(super) fn raised_places(&self) -> BTreeSet<(LeafId, u16)> {
        let raised = self.ageing.raised.iter();
        raised.map(|id| (self.leaf_of_group(*id), self.own_level(id.job()))).collect()
    }

    /// To which band a group is raised, and when it is raised next.
    pub(super) fn explain_raise(&self, id: GroupId) -> Option<Raise> {
        let age = self.group(id)?.age.as_deref()?;
        let settings = &self.settings.shares;
        let own = self.own_level(id.job());
        let band = |raised: u16| {
            let level = own.checked_sub(raised).filter(|_| raised > 0)?;
            settings.band_of_level(usize::from(level)).map(|band| settings.bands[band].name.clone())
        };
        let next = age.next.and_then(|at| Some((band(age.raised + 1)?, at)));
        Some(Raise { since: age.since, to: band(age.raised), next })
    }

    /// Where a group waits by its age: since when, and at which level. For those who watch.
    pub fn age_of(&self, id: GroupId) -> Option<(Time, u16)> {
        let age = self.group(id)?.age.as_deref()?;
        Some((age.since, self.shares.leaf(age.leaf).level))
    }

    /// Groups that wait below the first level, with the level of their own.
    pub fn waiting_below(&self) -> Vec<(GroupId, u16)> {
        let mut below = Vec::new();
        for (job, view) in self.jobs.iter() {
            let own = self.shares.leaf(view.leaf).level;
            for (index, group) in view.groups.iter().enumerate() {
                if own > 0 && group.as_ref().is_some_and(GroupView::waits_in_line) {
                    below.push((GroupId::new(JobId(job), index as u16), own));
                }
            }
        }
        below
    }

    /// Whoever waits ages, and is listed at the level that it was raised to.
    pub(super) fn check_ages(&self) -> Result<(), Broken> {
        let mut raises = BTreeSet::new();
        for (job, view) in self.jobs.iter() {
            let own = self.shares.leaf(view.leaf).level;
            for (index, group) in view.groups.iter().enumerate() {
                let (Some(group), id) = (group, GroupId::new(JobId(job), index as u16)) else { continue };
                let ages = self.ages(id, group);
                promise!(4, ages == group.age.is_some(), "{id} ages: {ages}, and has {:?}", group.age);
                let Some(age) = &group.age else { continue };
                raises.extend(age.next.map(|at| (at, id)));
                promise!(4, age.next.is_some() == (age.raised < own), "{id} has a wrong deadline");
                let level = self.shares.leaf(age.leaf).level;
                promise!(4, level + age.raised == own, "{id} is raised to a wrong level");
                let queued = group.roles.iter().filter(|role| role.queued > 0).map(|role| role.shape);
                for shape in queued.chain(group.gang) {
                    promise!(4, self.shapes.get(shape).leaf == age.leaf, "{id} is listed elsewhere");
                }
            }
        }
        promise!(4, raises == self.ageing.raises, "the deadlines of ageing are not what they should be");
        Ok(())
    }
}
