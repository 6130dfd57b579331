//! Backfill: who may use what is claimed without holding the claimant up. What a claim does not need is open
//! to everybody as it is. What it needs may be used by those who say that they are gone before the claimant
//! is expected to start, and by those who go once it can (`fillers.rs`).

use std::sync::Arc;

use crate::id::NodeId;
use crate::messages::{ClaimEvent, SchedulerMessage};
use crate::mutation::{self, Mutation};
use crate::spec::ShapeSpec;
use crate::time::{Span, Time};

use super::claims::Claim;
use super::plan::{Served, Turn};
use super::queue::Entry;
use super::shapes::{Place, ShapeId, ShapeKey};
use super::{Scheduler, groups};

/// So many waiting shapes are looked at when something that is claimed may be used meanwhile.
const SHAPES_MAX: usize = 256;

impl Scheduler {
    /// How long this takes at the most, by its own words: what it says, else its timeout with what it gets on top
    /// of that, else its lifetime.
    pub(super) fn longest(&self, entry: Entry, atomic: bool) -> Option<Span> {
        let job = self.jobs.get(entry.group.job().0)?;
        let group = groups::find(&self.jobs, entry.group)?;
        let overhead = self.settings.deadlines.overhead;
        let of_role = |index: usize| {
            let role = &group.roles[index];
            let stopped = || role.timeout.get().map(|timeout| Span(timeout.0.saturating_add(overhead.0)));
            role.declares().or_else(stopped).or(job.lifetime())
        };
        if !atomic {
            return of_role(usize::from(entry.role));
        }
        let needed = group.roles.iter().enumerate().filter(|(_, role)| role.waiting() > 0);
        let spans: Vec<Option<Span>> = needed.map(|(index, _)| of_role(index)).collect();
        spans.into_iter().try_fold(Span::ZERO, |longest, span| Some(longest.max(span?)))
    }

    /// Whether this is gone before the claimant is expected to start.
    pub(super) fn is_gone_before(&self, claim: &Claim, entry: Entry, atomic: bool, now: Time) -> bool {
        let Some(expected) = claim.expected.filter(|expected| !claim.late && *expected > now) else {
            return false;
        };
        let in_time = |span: Span| now + span <= expected || mutation::active(Mutation::DelayClaim);
        self.longest(entry, atomic).is_some_and(in_time)
    }

    /// Serves this with the claims lifted that it may use.
    pub(super) fn place_beside_claims(
        &mut self,
        entry: Entry,
        atomic: bool,
        most: u32,
        turn: &mut Turn,
    ) -> Served {
        if self.claims.is_empty() {
            return self.place_waiting(entry, atomic, most, turn);
        }
        let own = self.claims.of(entry.group);
        let own = own.filter(|index| self.claims.entries[*index].entry == entry);
        own.iter().for_each(|index| self.lift_claim(*index));
        let before = turn.placed().count();
        let served = self.place_waiting(entry, atomic, most, turn);
        let placed = (turn.placed().count() - before) as u32;
        match own {
            Some(index) if placed > 0 => {
                let nodes = self.end_claim(index, ClaimEvent::Started);
                self.unserved.extend(nodes);
            }
            Some(index) => self.hold_claim(index),
            None => {}
        }
        if own.is_some() || served != Served::NoRoom || (placed >= most && !atomic) {
            return served;
        }
        self.place_on_claimed(entry, atomic, most - placed, turn).unwrap_or(served)
    }

    /// Serves this with the claims lifted that it may use; nothing if there are none.
    fn place_on_claimed(
        &mut self,
        entry: Entry,
        atomic: bool,
        mut most: u32,
        turn: &mut Turn,
    ) -> Option<Served> {
        // Of each claim, whether those who are let in go once the claimant can start.
        let mut lifted: Vec<(usize, bool)> = Vec::new();
        for (index, claim) in self.claims.entries.iter().enumerate() {
            if self.is_gone_before(claim, entry, atomic, turn.now) {
                lifted.push((index, false));
                continue;
            }
            let fillers = self.may_fill(claim, entry, atomic, turn.now);
            if fillers > 0 {
                lifted.push((index, true));
                most = most.min(fillers);
            }
        }
        if lifted.is_empty() {
            return None;
        }
        lifted.iter().for_each(|(index, _)| self.lift_claim(*index));
        let mark = turn.placed().count();
        let served = self.place_waiting(entry, atomic, most, turn);
        // Who was let in is awaited like the others.
        let placed = turn.placed_since(mark);
        for (index, fills) in lifted.iter().copied() {
            for (attempt, node) in &placed {
                if let Some(held) = self.claims.entries[index].nodes.get_mut(node) {
                    held.awaited.push(*attempt);
                }
            }
            if fills {
                self.note_fillers(&placed, index);
            }
        }
        lifted.iter().for_each(|(index, _)| self.hold_claim(*index));
        Some(served)
    }

    pub(super) fn place_waiting(&mut self, entry: Entry, atomic: bool, most: u32, turn: &mut Turn) -> Served {
        match atomic {
            false => self.place_role(entry, most, turn),
            true => self.place_gang(entry.group, turn),
        }
    }

    /// Whether something was said after which others may use what is claimed.
    pub(super) fn note_offers(&mut self, batch: &[SchedulerMessage]) {
        use SchedulerMessage::{Audit, Committed, Explain, ExplainOn, ListWaiting, Pending, Released};
        let means_nothing = |message: &SchedulerMessage| {
            matches!(
                message,
                Audit(_)
                    | Committed { .. }
                    | Explain { .. }
                    | ExplainOn { .. }
                    | ListWaiting { .. }
                    | Pending { .. }
                    | Released(_)
            )
        };
        self.claims.offers |= !self.claims.is_empty() && !batch.iter().all(means_nothing);
    }

    /// Has those tried who may use what is claimed, where there is room for them by now.
    pub(super) fn offer_claimed(&mut self, turn: &Turn) {
        if self.claims.is_empty() {
            return;
        }
        let anew = std::mem::take(&mut self.claims.offers);
        let mut opened: Vec<ShapeId> = Vec::new();
        for claim in &self.claims.entries {
            let by_time = claim.expected.is_some_and(|expected| !claim.late && expected > turn.now);
            let is_open = by_time || self.admits_fillers(claim);
            let touched = || turn.touched().iter().any(|node| claim.nodes.contains_key(node));
            if !is_open || !(anew || touched()) {
                continue;
            }
            let waiting = self.shapes.iter().filter(|(_, shape)| shape.place == Place::Indexed);
            let waiting = waiting.filter(|(_, shape)| shape.window.is_none()).take(SHAPES_MAX);
            let room_for = |spec: &Arc<ShapeSpec>| {
                claim.nodes.keys().any(|node: &NodeId| self.has_room_unclaimed(*node, spec))
            };
            for (id, shape) in waiting.filter(|(_, shape)| shape.key.specs().any(room_for)) {
                let atomic = matches!(shape.key, ShapeKey::Gang(..));
                let head =
                    shape.queue.first(1, |queued| super::shapes::waits(&self.jobs, id, atomic, queued));
                let may = |entry: Entry| {
                    self.is_gone_before(claim, entry, atomic, turn.now)
                        || self.may_fill(claim, entry, atomic, turn.now) > 0
                };
                if head.first().is_some_and(|entry| may(*entry)) {
                    opened.push(id);
                }
            }
        }
        for shape in opened {
            self.shapes.move_to(shape, Place::Open, &self.jobs);
        }
    }
}
