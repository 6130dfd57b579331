//! `settings` among the events: what is in effect when.

use std::sync::Arc;

use crate::document::{Cursor, FaultKind, FaultLog, Value};
use crate::settings::{RawSettings, Settings};
use crate::time::Time;

/// More changes than this in one file are refused: each is kept whole until it happens.
const CHANGES_MAX: usize = 1_000;

/// The settings in effect from the beginning, and from each change on.
pub(super) struct SettingsCourse {
    initial: Settings,
    /// In order of time, and of the file where times are equal.
    changes: Vec<Change>,
}

struct Change {
    at: Time,
    /// The position of the event in the file.
    position: usize,
    settings: Arc<Settings>,
}

impl SettingsCourse {
    /// Reads all changes of settings among the events. Each builds on what is in effect by then.
    pub(super) fn read(events: Cursor<'_>, initial: &Settings) -> SettingsCourse {
        let mut course = SettingsCourse { initial: initial.clone(), changes: Vec::new() };
        let Value::List(all) = events.value() else { return course };
        let there = all.iter().enumerate().filter(|(_, event)| event.field("settings").is_some());
        let mut there: Vec<(Time, usize)> =
            there.map(|(position, event)| (time_of(event), position)).collect();
        if let Some((_, position)) = there.get(CHANGES_MAX)
            && let Some(event) = events.item(*position)
        {
            let expected = format!("at most {CHANGES_MAX} changes of settings are allowed in one file");
            event.fault(FaultKind::Refused, expected);
            return course;
        }
        there.sort_unstable();
        for (at, position) in there {
            let event = events.item(position).expect("it was seen in the list");
            let Some(place) = event.field("settings") else { continue };
            let Some(overrides) = RawSettings::read(place) else { continue };
            let changed = course.at(at, position).edited(|raw| {
                raw.merge(&overrides);
                Ok(())
            });
            match changed {
                Ok(settings) => course.changes.push(Change { at, position, settings: Arc::new(settings) }),
                Err(mut faults) => {
                    let place = place.path().to_string();
                    faults.listed.iter_mut().for_each(|fault| {
                        fault.field = format!("{place}.{}", fault.field);
                    });
                    events.log().extend(faults);
                }
            }
        }
        course
    }

    /// What is in effect when the event at this position of the file happens.
    pub(super) fn at(&self, at: Time, position: usize) -> &Settings {
        let before = self.changes.partition_point(|change| (change.at, change.position) < (at, position));
        before.checked_sub(1).map_or(&self.initial, |last| &self.changes[last].settings)
    }

    /// What is in effect once the event at this position has happened, if it is a good change of settings.
    pub(super) fn changed_by(&self, at: Time, position: usize) -> Option<Arc<Settings>> {
        let sought = (at, position);
        let found = self.changes.binary_search_by_key(&sought, |change| (change.at, change.position));
        found.ok().map(|index| Arc::clone(&self.changes[index].settings))
    }
}

/// When an event happens. What is wrong with its time is told when the event is read.
fn time_of(event: &Value) -> Time {
    let log = FaultLog::new();
    let at = event.field("at").and_then(|at| Cursor::root(at, &log).time());
    at.unwrap_or(Time::NEVER)
}
