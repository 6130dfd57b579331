//! How long executions take in a dry run.

use std::collections::BTreeMap;

use crate::id::{Attempt, GroupId};
use crate::sim::{Behaviour, Course};
use crate::time::{Span, Time};

/// Executions take the time the file declares, if time passes at all.
pub(super) struct Courses {
    pub(super) ends: bool,
    pub(super) now: Time,
    pub(super) preparations: BTreeMap<(GroupId, u16), Span>,
    pub(super) durations: BTreeMap<(GroupId, u16), Span>,
    pub(super) started: BTreeMap<(GroupId, u16), Vec<Time>>,
}

impl Behaviour for Courses {
    fn course(&mut self, attempt: Attempt) -> Course {
        let role = (attempt.task.group, attempt.task.role);
        let duration = self.durations.get(&role).copied().filter(|_| self.ends);
        let started = self.started.get(&role).and_then(|all| all.get(attempt.task.index as usize));
        if let Some(started) = started.filter(|_| attempt.number == 1) {
            let earlier = self.now.since(*started);
            return Course::plain(duration.map(|duration| Span(duration.0.saturating_sub(earlier.0))));
        }
        let prepare = self.preparations.get(&role).copied().filter(|_| self.ends);
        Course { prepare: Some(prepare.unwrap_or(Span::ZERO)), ..Course::plain(duration) }
    }
}
