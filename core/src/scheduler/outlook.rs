//! What the gate means for a group that waits, computed when somebody asks.
//!
//! Who would go is found by a pass that stops nobody and only supposes, for everybody who comes before the group as
//! well: what these are given is not there for it any more. The work of that is bounded, too; beyond it nothing is
//! said.

use crate::gate_explanation::GateOutlook;
use crate::id::{GroupId, Slot, TaskId};
use crate::messages::Outbox;
use crate::outcome::StopCause;
use crate::time::Time;

use super::Scheduler;
use super::preempt::{Pass, Wish};
use super::search::{Beneficiary, Places};

/// So many candidates are looked at before nobody more is helped.
const STEPS_MAX: usize = 32_768;

/// A pass that only asks what would become of one group.
#[derive(Debug)]
pub(super) struct Supposition {
    whom: GroupId,
    /// Whether the gate is supposed to be open.
    open: bool,
    steps: usize,
    /// Who would have gone by now.
    gone: Vec<Slot>,
    found: Option<Found>,
    /// It was broken off before everybody was looked at.
    broken_off: bool,
}

#[derive(Debug)]
enum Found {
    /// There is room for it without anybody's help, once everybody has ended who is about to.
    Room,
    /// These go for it, after so many others that go for others.
    Victims { cause: StopCause, victims: Vec<TaskId>, others: u64 },
}

/// What a supposed pass has come to.
struct Answer {
    found: Option<Found>,
    /// It was broken off.
    is_vague: bool,
    /// Nobody more is protected then, as far as that is known.
    next: Option<Time>,
}

impl Supposition {
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    pub(super) fn is_over(&self) -> bool {
        self.found.is_some() || self.steps >= STEPS_MAX
    }

    pub(super) fn note_steps(&mut self, steps: usize) {
        self.steps += steps;
    }

    pub(super) fn note_break(&mut self) {
        self.broken_off = self.found.is_none();
    }

    /// Room was found for a group without anybody having to go.
    pub(super) fn note_room(&mut self, group: GroupId) {
        // Who is helped without a look at candidates costs something, too.
        self.steps += 1;
        if group == self.whom {
            self.found = Some(Found::Room);
        }
    }
}

impl Scheduler {
    /// Whether the gate could open for a group that waits and has no room, and who would go.
    pub(super) fn outlook(&mut self, id: GroupId) -> Option<GateOutlook> {
        if !self.settings.rebalance.any() || self.has_more_to_plan() || self.is_starved() {
            return None;
        }
        let kept = self.earmarks().into_iter().find(|(_, group, ..)| *group == id);
        if let Some((_, _, cause, _)) = kept {
            return Some(GateOutlook::Kept { cause });
        }
        let victims = self.fillers_before(id);
        if !victims.is_empty() {
            return Some(GateOutlook::Backfill { victims });
        }
        let group = self.group(id)?;
        let role = group.roles.iter().find(|role| role.wants_room())?;
        let shape = group.gang.unwrap_or(role.shape);
        let wishes = self.wishes(self.now);
        wishes.iter().find(|wish| wish.shape == shape)?;
        let answer = self.suppose_helped(id, &wishes, self.gate_open);
        let may_open = !self.gate_open && self.settings.rebalance.threshold > 0;
        if answer.found.is_none() && !answer.is_vague && may_open {
            let open = self.suppose_helped(id, &wishes, true);
            if open.found.is_some() || open.is_vague {
                return self.foretell(open, true);
            }
        }
        self.foretell(answer, false)
    }

    fn foretell(&self, answer: Answer, by_gate: bool) -> Option<GateOutlook> {
        let nobody = GateOutlook::Nobody { until: answer.next.filter(|until| *until > self.now) };
        match answer.found {
            None if answer.is_vague => None,
            None => Some(nobody),
            Some(Found::Room) => None,
            Some(Found::Victims { cause, victims, others }) => {
                let opens = if by_gate { self.gate_opens } else { Some(self.now) };
                let earliest = opens.unwrap_or(self.now).max(self.now);
                let Some(from) = self.stoppable_from(earliest, others, victims.len() as u64) else {
                    return Some(nobody);
                };
                let from = opens.map(|_| from);
                let at_once = from.is_some_and(|from| from <= self.now) && !by_gate;
                Some(GateOutlook::Would { cause, at_once, from: from.filter(|_| !at_once), victims })
            }
        }
    }

    fn suppose_helped(&mut self, whom: GroupId, wishes: &[Wish], open: bool) -> Answer {
        let mut pass = self.begin_pass(self.now);
        let (gone, found, broken_off) = (Vec::new(), None, false);
        pass.supposed = Some(Supposition { whom, open, steps: 0, gone, found, broken_off });
        self.help_by_cause(wishes, &mut pass, &mut Outbox::default());
        self.end_pass(&mut pass);
        let supposed = pass.supposed.take().expect("it was given");
        self.put_back(&supposed.gone);
        supposed.gone.iter().for_each(|slot| self.suppose_stopping(*slot, false));
        let next = pass.candidates.next.into_iter().chain(pass.again).min();
        Answer { found: supposed.found, is_vague: supposed.broken_off, next }
    }

    /// Supposes that these have gone and that the beneficiary has started.
    pub(super) fn suppose(
        &mut self,
        beneficiary: &Beneficiary,
        cause: StopCause,
        places: &Places,
        slots: &[Slot],
        pass: &mut Pass,
    ) {
        let group = beneficiary.entry.group;
        self.put_aside(slots);
        for (role, node) in places {
            let spec = self.role_spec(group, *role);
            self.nodes.take(*node, &spec);
            pass.found.push((*node, spec));
        }
        let victims = slots.iter().map(|slot| self.task_in(*slot)).collect();
        slots.iter().for_each(|slot| self.suppose_stopping(*slot, true));
        let supposed = pass.supposed.as_mut().expect("the caller has seen it");
        let others = supposed.gone.len() as u64;
        supposed.gone.extend_from_slice(slots);
        if group == supposed.whom {
            supposed.found = Some(Found::Victims { cause, victims, others });
        }
    }
}
