//! The sections of a settings file, each field optional.

use serde::Serialize;

use crate::document::{Fault, FaultKind, FaultLog, Fields, Value};
use crate::time::Span;

use super::bounds::{self, Bounds};
use super::raw::read_seconds;
use super::{DeadlineSettings, Limits, Retention};

/// `[limits]`
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RawLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_per_job: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups_per_job: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles_per_group: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels_per_node: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placements_per_turn: Option<u64>,
}

/// `[retention]`
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RawRetention {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_jobs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_age: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_entries_per_node: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_entries: Option<u64>,
}

/// `[deadlines]`
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RawDeadlines {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepare: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<f64>,
}

impl RawLimits {
    pub(super) fn read(fields: &Fields<'_>) -> RawLimits {
        RawLimits {
            jobs: read_whole(fields, "jobs", bounds::JOBS),
            tasks_per_job: read_whole(fields, "tasks_per_job", bounds::TASKS_PER_JOB),
            groups_per_job: read_whole(fields, "groups_per_job", bounds::GROUPS_PER_JOB),
            roles_per_group: read_whole(fields, "roles_per_group", bounds::ROLES_PER_GROUP),
            nodes: read_whole(fields, "nodes", bounds::NODES),
            name_length: read_whole(fields, "name_length", bounds::NAME_LENGTH),
            labels_per_node: read_whole(fields, "labels_per_node", bounds::LABELS_PER_NODE),
            label_length: read_whole(fields, "label_length", bounds::LABEL_LENGTH),
            placements_per_turn: read_whole(fields, "placements_per_turn", bounds::PLACEMENTS_PER_TURN),
        }
    }

    pub(super) fn merge(&mut self, over: &RawLimits) {
        override_with(&mut self.jobs, &over.jobs);
        override_with(&mut self.tasks_per_job, &over.tasks_per_job);
        override_with(&mut self.groups_per_job, &over.groups_per_job);
        override_with(&mut self.roles_per_group, &over.roles_per_group);
        override_with(&mut self.nodes, &over.nodes);
        override_with(&mut self.name_length, &over.name_length);
        override_with(&mut self.labels_per_node, &over.labels_per_node);
        override_with(&mut self.label_length, &over.label_length);
        override_with(&mut self.placements_per_turn, &over.placements_per_turn);
    }

    pub(super) fn validate(&self, log: &FaultLog) -> Limits {
        let whole = |field, value, bounds| whole_or_default(log, field, value, bounds);
        Limits {
            jobs: whole("limits.jobs", self.jobs, bounds::JOBS),
            tasks_per_job: whole("limits.tasks_per_job", self.tasks_per_job, bounds::TASKS_PER_JOB),
            groups_per_job: whole("limits.groups_per_job", self.groups_per_job, bounds::GROUPS_PER_JOB),
            roles_per_group: whole("limits.roles_per_group", self.roles_per_group, bounds::ROLES_PER_GROUP),
            nodes: whole("limits.nodes", self.nodes, bounds::NODES),
            name_length: whole("limits.name_length", self.name_length, bounds::NAME_LENGTH),
            labels_per_node: whole("limits.labels_per_node", self.labels_per_node, bounds::LABELS_PER_NODE),
            label_length: whole("limits.label_length", self.label_length, bounds::LABEL_LENGTH),
            placements_per_turn: whole(
                "limits.placements_per_turn",
                self.placements_per_turn,
                bounds::PLACEMENTS_PER_TURN,
            ),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == RawLimits::default()
    }
}

impl RawRetention {
    pub(super) fn read(fields: &Fields<'_>) -> RawRetention {
        RawRetention {
            finished_jobs: read_whole(fields, "finished_jobs", bounds::FINISHED_JOBS),
            finished_age: read_seconds(fields, "finished_age", bounds::FINISHED_AGE),
            usage_entries_per_node: read_whole(
                fields,
                "usage_entries_per_node",
                bounds::USAGE_ENTRIES_PER_NODE,
            ),
            usage_entries: read_whole(fields, "usage_entries", bounds::USAGE_ENTRIES),
        }
    }

    pub(super) fn merge(&mut self, over: &RawRetention) {
        override_with(&mut self.finished_jobs, &over.finished_jobs);
        override_with(&mut self.finished_age, &over.finished_age);
        override_with(&mut self.usage_entries_per_node, &over.usage_entries_per_node);
        override_with(&mut self.usage_entries, &over.usage_entries);
    }

    pub(super) fn validate(&self, log: &FaultLog) -> Retention {
        let (jobs, age) = ("retention.finished_jobs", "retention.finished_age");
        let (each, all) = ("retention.usage_entries_per_node", "retention.usage_entries");
        Retention {
            finished_jobs: whole_or_default(log, jobs, self.finished_jobs, bounds::FINISHED_JOBS),
            finished_age: seconds_or_default(log, age, self.finished_age, bounds::FINISHED_AGE),
            usage_entries_per_node: whole_or_default(
                log,
                each,
                self.usage_entries_per_node,
                bounds::USAGE_ENTRIES_PER_NODE,
            ),
            usage_entries: whole_or_default(log, all, self.usage_entries, bounds::USAGE_ENTRIES),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == RawRetention::default()
    }
}

impl RawDeadlines {
    pub(super) fn read(fields: &Fields<'_>) -> RawDeadlines {
        RawDeadlines {
            dispatch: read_seconds(fields, "dispatch", bounds::DISPATCH),
            prepare: read_seconds(fields, "prepare", bounds::PREPARE),
            run: read_seconds(fields, "run", bounds::RUN),
            overhead: read_seconds(fields, "overhead", bounds::OVERHEAD),
            stop: read_seconds(fields, "stop", bounds::STOP),
            heartbeat: read_seconds(fields, "heartbeat", bounds::HEARTBEAT),
            down: read_seconds(fields, "down", bounds::DOWN),
        }
    }

    pub(super) fn merge(&mut self, over: &RawDeadlines) {
        override_with(&mut self.dispatch, &over.dispatch);
        override_with(&mut self.prepare, &over.prepare);
        override_with(&mut self.run, &over.run);
        override_with(&mut self.overhead, &over.overhead);
        override_with(&mut self.stop, &over.stop);
        override_with(&mut self.heartbeat, &over.heartbeat);
        override_with(&mut self.down, &over.down);
    }

    pub(super) fn validate(&self, log: &FaultLog) -> DeadlineSettings {
        DeadlineSettings {
            dispatch: seconds_or_default(log, "deadlines.dispatch", self.dispatch, bounds::DISPATCH),
            prepare: seconds_or_default(log, "deadlines.prepare", self.prepare, bounds::PREPARE),
            run: seconds_or_default(log, "deadlines.run", self.run, bounds::RUN),
            overhead: seconds_or_default(log, "deadlines.overhead", self.overhead, bounds::OVERHEAD),
            stop: seconds_or_default(log, "deadlines.stop", self.stop, bounds::STOP),
            heartbeat: seconds_or_default(log, "deadlines.heartbeat", self.heartbeat, bounds::HEARTBEAT),
            down: seconds_or_default(log, "deadlines.down", self.down, bounds::DOWN),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == RawDeadlines::default()
    }
}

impl From<&Limits> for RawLimits {
    fn from(limits: &Limits) -> RawLimits {
        RawLimits {
            jobs: Some(limits.jobs),
            tasks_per_job: Some(limits.tasks_per_job),
            groups_per_job: Some(limits.groups_per_job),
            roles_per_group: Some(limits.roles_per_group),
            nodes: Some(limits.nodes),
            name_length: Some(limits.name_length),
            labels_per_node: Some(limits.labels_per_node),
            label_length: Some(limits.label_length),
            placements_per_turn: Some(limits.placements_per_turn),
        }
    }
}

impl From<&Retention> for RawRetention {
    fn from(retention: &Retention) -> RawRetention {
        RawRetention {
            finished_jobs: Some(retention.finished_jobs),
            finished_age: Some(retention.finished_age.as_seconds()),
            usage_entries_per_node: Some(retention.usage_entries_per_node),
            usage_entries: Some(retention.usage_entries),
        }
    }
}

impl From<&DeadlineSettings> for RawDeadlines {
    fn from(deadlines: &DeadlineSettings) -> RawDeadlines {
        RawDeadlines {
            dispatch: Some(deadlines.dispatch.as_seconds()),
            prepare: Some(deadlines.prepare.as_seconds()),
            run: Some(deadlines.run.as_seconds()),
            overhead: Some(deadlines.overhead.as_seconds()),
            stop: Some(deadlines.stop.as_seconds()),
            heartbeat: Some(deadlines.heartbeat.as_seconds()),
            down: Some(deadlines.down.as_seconds()),
        }
    }
}

pub(super) fn override_with<T: Clone>(field: &mut Option<T>, over: &Option<T>) {
    if over.is_some() {
        field.clone_from(over);
    }
}

pub(super) fn read_whole(fields: &Fields<'_>, name: &'static str, bounds: Bounds<u64>) -> Option<u64> {
    fields.get(name).and_then(|cursor| cursor.whole(bounds.range()))
}

pub(super) fn whole_or_default(log: &FaultLog, field: &str, value: Option<u64>, bounds: Bounds<u64>) -> u64 {
    let value = value.unwrap_or(bounds.default);
    if !bounds.range().contains(&value) {
        let found = Value::Integer(i64::try_from(value).unwrap_or(i64::MAX));
        let expected = format!("a whole number between {} and {}", bounds.minimum, bounds.maximum);
        log.note(|| Fault::new(field, FaultKind::OutOfRange, Some(&found), expected));
    }
    value
}

pub(super) fn seconds_or_default(
    log: &FaultLog,
    field: &str,
    value: Option<f64>,
    bounds: Bounds<Span>,
) -> Span {
    let Some(seconds) = value else { return bounds.default };
    let span = Span::from_seconds(seconds).filter(|span| bounds.range().contains(span));
    if span.is_none() {
        let (low, high) = (bounds.minimum.as_seconds(), bounds.maximum.as_seconds());
        let found = Value::Float(seconds);
        log.note(|| {
            let expected = format!("seconds between {low} and {high}");
            Fault::new(field, FaultKind::OutOfRange, Some(&found), expected)
        });
    }
    span.unwrap_or(bounds.default)
}
