//! The dry-run file: from a document to a [`Scenario`], with every fault of the file at once.
//!
//! Reading takes two steps because this crate opens no files: [`config_of`] says which
//! configuration the file builds on, the caller finds it, [`read`] does the rest.

mod access;
mod command;
mod events;
mod failures;
mod jobs;
mod names;
mod nodes;
mod preparations;
mod reprioritise;
mod resize;
mod retries;
mod running;
mod settings_course;
#[cfg(test)]
mod tests;

use crate::document::{Cursor, Fault, FaultKind, FaultLog, Faults, Fields, Value};
use crate::settings::{RawSettings, Settings};
use crate::spec::Filters;
use crate::time::Time;

use super::Scenario;
use names::Names;

/// More tasks than this in one file are refused: a dry run keeps a decision for each of them.
pub const TASKS_MAX: u64 = 100_000_000;

/// The preset or path the file builds on, if it names one.
pub fn config_of(document: &Value) -> Option<&str> {
    match document.field("config") {
        Some(Value::Text(name)) => Some(name),
        _ => None,
    }
}

/// Reads the file on top of the configuration it names, or of the default.
pub fn read(document: &Value, base: &RawSettings) -> Result<Scenario, Faults> {
    read_with(document, base, &Filters::default())
}

/// The same for jobs that may name these filters.
pub fn read_with(document: &Value, base: &RawSettings, filters: &Filters) -> Result<Scenario, Faults> {
    let log = FaultLog::new();
    let scenario = Cursor::root(document, &log).table(|fields| read_fields(fields, base, filters));
    log.into_result(scenario)
}

fn read_fields(fields: &Fields<'_>, base: &RawSettings, filters: &Filters) -> Scenario {
    if let Some(config) = fields.get("config") {
        config.name();
    }
    let mut settings = read_settings(fields, base);
    settings.filters = filters.clone();
    let now = fields.get("now").and_then(|now| now.time()).unwrap_or_default();
    let until = read_until(fields, now);
    let mut node_names = Names::new("node");
    let nodes = match fields.get("nodes") {
        Some(list) => nodes::read_all(list, &mut settings, &mut node_names),
        None => Vec::new(),
    };
    if let Some(events) = fields.get("events") {
        events::declare_kinds(events.value(), &mut settings.kinds);
    }
    let mut job_names = Names::new("job");
    let jobs = match fields.get("jobs") {
        Some(list) => jobs::read_all(list, &settings, now, &mut job_names),
        None => Vec::new(),
    };
    let running = match fields.get("running") {
        Some(list) => running::read_all(list, now, &jobs, &job_names, &node_names),
        None => Vec::new(),
    };
    let failures = match fields.get("failures") {
        Some(list) => failures::read_all(list, now, &node_names),
        None => Vec::new(),
    };
    let events = match fields.get("events") {
        Some(list) => events::read_all(list, &settings, now, job_names, node_names),
        None => Vec::new(),
    };
    let scenario = Scenario { settings, now, until, nodes, jobs, running, failures, events };
    check_totals(fields, &scenario);
    scenario
}

fn read_settings(fields: &Fields<'_>, base: &RawSettings) -> Settings {
    let overrides = fields.get("settings").and_then(RawSettings::read).unwrap_or_default();
    let mut raw = base.clone();
    raw.merge(&overrides);
    raw.validate().unwrap_or_else(|mut faults| {
        for fault in &mut faults.listed {
            fault.field.insert_str(0, "settings.");
        }
        fields.log().extend(faults);
        Settings::default()
    })
}

fn read_until(fields: &Fields<'_>, now: Time) -> Option<Time> {
    let cursor = fields.get("until")?;
    let until = cursor.time()?;
    if until < now {
        cursor.fault(FaultKind::Refused, format!("must not be before `now`, which is {}", now.as_seconds()));
    }
    Some(until)
}

fn check_totals(fields: &Fields<'_>, scenario: &Scenario) {
    let submitted = scenario.events.iter().filter(|event| matches!(event.what, super::Happening::Submit(_)));
    let jobs = (scenario.jobs.len() + submitted.count()) as u64;
    let limit = scenario.settings.limits.jobs;
    for (count, limit, what) in [(jobs, limit, "jobs"), (scenario.tasks(), TASKS_MAX, "tasks")] {
        if count > limit {
            let found = Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
            let expected = format!("at most {limit} {what} are allowed in all");
            fields.log().note(|| Fault::new("jobs", FaultKind::Refused, Some(&found), expected));
        }
    }
}
