//! Identical-task windows: tasks of one shape that arrive within a short time are planned together.

use serde::{Deserialize, Serialize};

use crate::mutation::{self, Mutation};
use crate::settings::WindowSettings;
use crate::time::Time;

use super::Scheduler;
use super::shapes::{Place, ShapeId, ShapeKey};

/// A window that collects arrivals of one shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Window {
    first: Time,
    pub(super) closes: Time,
}

impl Window {
    fn open(now: Time, settings: WindowSettings) -> Window {
        Window { first: now, closes: now + settings.gap.min(settings.cap) }
    }

    /// Another arrival: the window stays open a little longer, but never beyond its cap.
    fn extend(self, now: Time, settings: WindowSettings) -> Window {
        let closes = (now + settings.gap).min(self.first + settings.cap);
        Window { closes, ..self }
    }
}

impl Scheduler {
    /// Tasks of this shape were queued: decides whether they are planned now or collected first.
    pub(super) fn arrived(&mut self, now: Time, id: ShapeId) {
        let settings = self.settings.window;
        let window = self.shapes.get(id).window;
        let plan_now = match window {
            _ if settings.gap.is_zero() => {
                self.shapes.close_window(id);
                true
            }
            Some(window) => {
                self.shapes.open_window(id, window.extend(now, settings));
                settings.adaptive && self.fills_all_that_is_free(id) && {
                    self.shapes.close_window(id);
                    true
                }
            }
            None => {
                self.shapes.open_window(id, Window::open(now, settings));
                settings.adaptive
            }
        };
        match plan_now {
            true => self.shapes.move_to(id, Place::Open, &self.jobs),
            false => self.shapes.settle(id, &self.jobs),
        }
    }

    /// Whether collecting more would be of no use: what waits already takes every free place.
    fn fills_all_that_is_free(&self, id: ShapeId) -> bool {
        let shape = self.shapes.get(id);
        match &shape.key {
            ShapeKey::Task(spec) => self.shapes.waiting(id) >= self.nodes.places_at_most(&spec.request),
            ShapeKey::Gang(roles, _) => {
                roles.iter().any(|(spec, count)| self.nodes.places_at_most(&spec.request) < u64::from(*count))
            }
        }
    }

    pub(super) fn close_due_windows(&mut self, now: Time) {
        while let Some(id) = self.shapes.pop_due_window(now, &mut self.nodes) {
            if !mutation::active(Mutation::MissWindowClose) {
                self.shapes.move_to(id, Place::Open, &self.jobs);
            }
            // What finds no room now may be helped by the gate.
            self.unsettled = true;
        }
    }
}
