//! A role as callers describe it: a number of identical tasks, and everything about one of them that
//! placement looks at.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::collections::Seldom;
use crate::constraint::Key;
use crate::resources::Resources;
use crate::settings::Settings;
use crate::time::{MaybeSpan, Span};

use super::limits::{check_count, check_length, note_amounts};
use super::{
    CommandSpec, Hops, HostPort, Invalid, NodeChoice, OnPreempt, Problem, Retries, SharedRules, Start,
};

/// A number of identical tasks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RoleSpec {
    pub name: String,
    /// How many must run together; 0 in an independent group.
    pub min: u32,
    /// How many tasks there are. An atomic group grows up to this as long as there is room.
    pub max: u32,
    /// With how many an atomic group starts if there is room for all of them; else with `min`.
    pub initial: Option<u32>,
    pub shape: Arc<ShapeSpec>,
    /// How long one task is expected to run.
    pub duration: MaybeSpan,
    /// Under which name run times are remembered, for those of whom nobody knows how long they run.
    pub task_key: Option<Arc<str>>,
    /// How long one attempt may run before it is ended; `deadlines.run` unless given.
    pub timeout: MaybeSpan,
    /// What an executor of processes starts for each task.
    pub command: Option<Arc<CommandSpec>>,
    /// When a task that did not come to a good end is tried again.
    pub retries: Option<Box<Retries>>,
    /// What becomes of a task that is stopped for others; as the settings say if it is not said here.
    pub on_preempt: Option<OnPreempt>,
    /// They are there for the other roles, such as a master or a server of parameters: when those are
    /// done, these are stopped, and the group is complete.
    pub auxiliary: bool,
}

/// Everything about a task that placement looks at. Tasks of equal shape are identical: they share
/// a window, an index and a verdict.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct ShapeSpec {
    /// The service and version of which tasks are replicas, where the caller names them.
    pub service: Option<Box<(String, u64)>>,
    pub request: Resources,
    pub rules: SharedRules,
    /// Tasks of the service are spread over the values of these facts first, level by level.
    pub spread: Seldom<Vec<Key>>,
    pub ports: Seldom<Vec<HostPort>>,
    /// So many tasks of the service at most on one node; 0 for no limit.
    pub max_per_node: u32,
    /// A task takes its whole node, whatever it requests.
    pub exclusive: bool,
    /// Which of the nodes with room is taken; as the settings say if it is not said here.
    pub placement: Option<NodeChoice>,
    /// What tasks start from: nodes that have it from the task before them are preferred.
    pub snapshot: Option<Arc<str>>,
    /// How far apart the tasks of the role may run; their group must start as a whole.
    pub hops: Option<Hops>,
    /// The role of the group whose tasks these are guests of, one of each: they run on the nodes of those,
    /// inside what those were given.
    pub guest_of: Option<u16>,
}

impl RoleSpec {
    pub fn new(name: impl Into<String>, min: u32, max: u32, request: Resources) -> RoleSpec {
        let shape = Arc::new(ShapeSpec { request, ..ShapeSpec::default() });
        RoleSpec {
            name: name.into(),
            min,
            max,
            initial: None,
            shape,
            duration: MaybeSpan::NONE,
            task_key: None,
            timeout: MaybeSpan::NONE,
            command: None,
            retries: None,
            on_preempt: None,
            auxiliary: false,
        }
    }

    pub(super) fn note_sizes(&self, field: impl Display + Copy, start: Start, problems: &mut Vec<Invalid>) {
        let Some(initial) = self.initial else { return };
        let problem = match start {
            Start::Independent => Problem::NotElastic,
            Start::Atomic if (self.min..=self.max).contains(&initial) => return,
            Start::Atomic => Problem::InitialOutside { min: self.min, max: self.max },
        };
        problems.push(Invalid::new(format!("{field}.initial"), initial, problem));
    }

    pub(super) fn note_problems(
        &self,
        field: impl Display + Copy,
        settings: &Settings,
        problems: &mut Vec<Invalid>,
    ) {
        let length = settings.limits.name_length;
        problems.extend(check_length(format_args!("{field}.name"), &self.name, length));
        if self.max == 0 {
            problems.push(Invalid::new(format!("{field}.max"), 0, Problem::Empty));
        }
        if self.min > self.max {
            problems.push(Invalid::new(format!("{field}.min"), self.min, Problem::MinAboveMax));
        }
        if let Some(key) = &self.task_key {
            problems.extend(check_length(format_args!("{field}.task_key"), key, length));
        }
        if self.timeout.get().is_some_and(Span::is_zero) {
            problems.push(Invalid::new(format!("{field}.timeout"), 0, Problem::NoTime));
        }
        if let Some((service, _)) = self.shape.service.as_deref() {
            problems.extend(check_length(format_args!("{field}.service"), service, length));
        }
        if let Some(snapshot) = &self.shape.snapshot {
            problems.extend(check_length(format_args!("{field}.snapshot"), snapshot, length));
        }
        note_amounts(format_args!("{field}.request"), &self.shape.request, settings, problems);
        problems.extend(check_gpus(format_args!("{field}.request"), &self.shape.request, settings));
        if let Some(command) = &self.command {
            command.note_problems(format_args!("{field}.command"), problems);
        }
        if let Some(retries) = &self.retries {
            retries.note_problems(format_args!("{field}.retries"), problems);
        }
        self.shape.rules.note_problems(field, settings, problems);
        self.shape.note_problems(field, problems);
    }
}

impl ShapeSpec {
    fn note_problems(&self, field: impl Display + Copy, problems: &mut Vec<Invalid>) {
        const PORTS_MAX: u64 = 256;
        const LEVELS_MAX: u64 = 8;
        problems.extend(check_count(format_args!("{field}.ports"), self.ports.len(), PORTS_MAX));
        problems.extend(check_count(format_args!("{field}.spread"), self.spread.len(), LEVELS_MAX));
        let needs_service = [("spread", !self.spread.is_empty()), ("max_per_node", self.max_per_node > 0)];
        for (name, _) in needs_service.into_iter().filter(|(_, given)| *given && self.service.is_none()) {
            let problem = Problem::NeedsService;
            problems.push(Invalid::new(format!("{field}.{name}"), "no service", problem));
        }
        let mut seen = BTreeSet::new();
        for (index, port) in self.ports.iter().enumerate().filter(|(_, port)| !seen.insert(**port)) {
            problems.push(Invalid::new(format!("{field}.ports[{index}]"), port, Problem::Duplicate));
        }
    }
}

/// Whether a task brings enough CPU for its GPUs, where the settings ask for that.
fn check_gpus(field: impl Display + Copy, request: &Resources, settings: &Settings) -> Option<Invalid> {
    let amount = |name| settings.kinds.id(name).map_or(0, |kind| request.get(kind));
    let (gpus, cpus) = (amount("gpu"), amount("cpu"));
    let wanted = i128::from(gpus) * i128::from(settings.gpu_cpu_ratio);
    // Both are counted in thousandths, and so is the ratio.
    if gpus <= 0 || i128::from(cpus) * 1_000 >= wanted {
        return None;
    }
    let found = format!("{} CPUs for {} GPUs", cpus as f64 / 1_000.0, gpus as f64 / 1_000.0);
    let ratio = f64::from(settings.gpu_cpu_ratio) / 1_000.0;
    Some(Invalid::new(format!("{field}.cpu"), found, Problem::TooLittleCpu { ratio: ratio.to_string() }))
}
