//! Jobs as callers describe them: a bag of groups, each with roles of identical tasks.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::constraint::Key;
use crate::resources::{AMOUNT_MAX, KindId, Resources};
use crate::settings::Settings;
use crate::time::Span;

use super::{CommandSpec, HOPS_MAX, Hops, HostPort, Invalid, NodeChoice, Problem, Retries, Rules, Standing};

/// A job to be run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct JobSpec {
    pub name: String,
    /// Who asks for it.
    pub requestor: Arc<str>,
    /// Jobs that are watched and cancelled as one.
    pub job_set: String,
    /// Where it queues and how urgent it is.
    pub standing: Standing,
    pub groups: Vec<GroupSpec>,
}

/// The unit of admission.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GroupSpec {
    pub name: String,
    pub start: Start,
    /// How far apart all of its tasks may run; it must start as a whole.
    pub hops: Option<Hops>,
    pub roles: Vec<RoleSpec>,
}

/// How the tasks of a group may start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Start {
    /// Each task on its own, as soon as it fits.
    #[default]
    Independent,
    /// All of them in one commit, or none.
    Atomic,
}

/// A number of identical tasks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RoleSpec {
    pub name: String,
    /// How many must run together; 0 in an independent group.
    pub min: u32,
    /// How many tasks there are.
    pub max: u32,
    pub shape: Arc<ShapeSpec>,
    /// How long one task is expected to run.
    pub duration: Option<Span>,
    /// Under which name run times are remembered, for those of whom nobody knows how long they run.
    pub task_key: Option<Arc<str>>,
    /// How long one attempt may run before it is ended; `deadlines.run` unless given.
    pub timeout: Option<Span>,
    /// What an executor of processes starts for each task.
    pub command: Option<Arc<CommandSpec>>,
    /// When a task that did not come to a good end is tried again.
    pub retries: Option<Box<Retries>>,
}

/// Everything about a task that placement looks at. Tasks of equal shape are identical: they share
/// a window, an index and a verdict.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct ShapeSpec {
    /// The service and version of which tasks are replicas, where the caller names them.
    pub service: Option<(String, u64)>,
    pub request: Resources,
    pub rules: Rules,
    /// Tasks of the service are spread over the values of these facts first, level by level.
    pub spread: Vec<Key>,
    pub ports: Vec<HostPort>,
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
}

impl JobSpec {
    /// The common case: so many independent, identical tasks.
    pub fn bag(name: impl Into<String>, tasks: u32, request: Resources) -> JobSpec {
        let group = GroupSpec {
            name: "tasks".into(),
            start: Start::Independent,
            hops: None,
            roles: vec![RoleSpec::new("task", 0, tasks, request)],
        };
        JobSpec { name: name.into(), groups: vec![group], ..JobSpec::default() }
    }

    /// A job whose tasks start together or not at all.
    pub fn gang(name: impl Into<String>, tasks: u32, request: Resources) -> JobSpec {
        let group = GroupSpec {
            name: "gang".into(),
            start: Start::Atomic,
            hops: None,
            roles: vec![RoleSpec::new("member", tasks, tasks, request)],
        };
        JobSpec { name: name.into(), groups: vec![group], ..JobSpec::default() }
    }

    pub fn tasks(&self) -> u64 {
        let roles = self.groups.iter().flat_map(|group| &group.roles);
        roles.map(|role| u64::from(role.max)).sum()
    }

    /// Checks everything that can be known without looking at the state of the runtime.
    pub fn validate(&self, settings: &Settings) -> Result<(), Invalid> {
        self.problems(settings).into_iter().next().map_or(Ok(()), Err)
    }

    /// Everything that is wrong with the job, in the order of its fields.
    pub fn problems(&self, settings: &Settings) -> Vec<Invalid> {
        let limits = &settings.limits;
        let mut problems = Vec::new();
        for (field, value) in
            [("name", &*self.name), ("requestor", &*self.requestor), ("job_set", &*self.job_set)]
        {
            problems.extend(check_length(field, value, limits.name_length));
        }
        self.standing.note_problems(settings, &mut problems);
        if self.groups.is_empty() {
            problems.push(Invalid::new("groups", "[]", Problem::Empty));
        }
        problems.extend(check_count("groups", self.groups.len(), limits.groups_per_job));
        let mut names = BTreeSet::new();
        for (index, group) in self.groups.iter().enumerate() {
            let field = format!("groups[{index}]");
            if !names.insert(&group.name) {
                problems.push(Invalid::new(format!("{field}.name"), &group.name, Problem::Duplicate));
            }
            group.note_problems(&field, settings, &mut problems);
        }
        if self.tasks() > limits.tasks_per_job {
            let problem = Problem::TooMany { limit: limits.tasks_per_job };
            problems.push(Invalid::new("groups", format!("{} tasks", self.tasks()), problem));
        }
        problems
    }
}

impl GroupSpec {
    fn note_problems(&self, field: &str, settings: &Settings, problems: &mut Vec<Invalid>) {
        let limits = &settings.limits;
        problems.extend(check_length(&format!("{field}.name"), &self.name, limits.name_length));
        if self.roles.is_empty() {
            problems.push(Invalid::new(format!("{field}.roles"), "[]", Problem::Empty));
        }
        problems.extend(check_hops(field, self.hops, self.start));
        problems.extend(check_count(&format!("{field}.roles"), self.roles.len(), limits.roles_per_group));
        let mut names = BTreeSet::new();
        for (index, role) in self.roles.iter().enumerate() {
            let field = format!("{field}.roles[{index}]");
            if !names.insert(&role.name) {
                problems.push(Invalid::new(format!("{field}.name"), &role.name, Problem::Duplicate));
            }
            role.note_problems(&field, settings, problems);
            problems.extend(check_hops(&field, role.shape.hops, self.start));
            if self.start == Start::Atomic && role.min < role.max {
                // Sizes that vary while a group runs are a capability of their own.
                problems.push(Invalid::new(format!("{field}.min"), role.min, Problem::NotSupported));
            }
        }
    }
}

impl RoleSpec {
    pub fn new(name: impl Into<String>, min: u32, max: u32, request: Resources) -> RoleSpec {
        let shape = Arc::new(ShapeSpec { request, ..ShapeSpec::default() });
        let (duration, task_key, timeout, command, retries) = (None, None, None, None, None);
        RoleSpec { name: name.into(), min, max, shape, duration, task_key, timeout, command, retries }
    }

    fn note_problems(&self, field: &str, settings: &Settings, problems: &mut Vec<Invalid>) {
        let length = settings.limits.name_length;
        problems.extend(check_length(&format!("{field}.name"), &self.name, length));
        if self.max == 0 {
            problems.push(Invalid::new(format!("{field}.max"), 0, Problem::Empty));
        }
        if self.min > self.max {
            problems.push(Invalid::new(format!("{field}.min"), self.min, Problem::MinAboveMax));
        }
        if let Some(key) = &self.task_key {
            problems.extend(check_length(&format!("{field}.task_key"), key, length));
        }
        if self.timeout.is_some_and(Span::is_zero) {
            problems.push(Invalid::new(format!("{field}.timeout"), 0, Problem::NoTime));
        }
        if let Some((service, _)) = &self.shape.service {
            problems.extend(check_length(&format!("{field}.service"), service, length));
        }
        if let Some(snapshot) = &self.shape.snapshot {
            problems.extend(check_length(&format!("{field}.snapshot"), snapshot, length));
        }
        note_amounts(&format!("{field}.request"), &self.shape.request, settings, problems);
        if let Some(command) = &self.command {
            command.note_problems(&format!("{field}.command"), problems);
        }
        if let Some(retries) = &self.retries {
            retries.note_problems(&format!("{field}.retries"), problems);
        }
        self.shape.rules.note_problems(field, length, problems);
        self.shape.note_problems(field, problems);
    }
}

impl ShapeSpec {
    fn note_problems(&self, field: &str, problems: &mut Vec<Invalid>) {
        const PORTS_MAX: u64 = 256;
        const LEVELS_MAX: u64 = 8;
        problems.extend(check_count(&format!("{field}.ports"), self.ports.len(), PORTS_MAX));
        problems.extend(check_count(&format!("{field}.spread"), self.spread.len(), LEVELS_MAX));
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

fn check_hops(field: &str, hops: Option<Hops>, start: Start) -> Option<Invalid> {
    let (value, is_wide) = match hops? {
        Hops::Fewest => ("fewest".to_owned(), false),
        Hops::AtMost(hops) => (hops.to_string(), hops > HOPS_MAX),
    };
    let problem = match start {
        Start::Independent => Problem::NeedsAtomic,
        Start::Atomic => is_wide.then_some(Problem::TooManyHops { limit: HOPS_MAX })?,
    };
    Some(Invalid::new(format!("{field}.hops"), value, problem))
}

pub(super) fn check_length(field: &str, value: &str, limit: u64) -> Option<Invalid> {
    let is_long = value.len() as u64 > limit;
    is_long.then(|| Invalid::new(field, value, Problem::TooLong { limit }))
}

pub(super) fn check_count(field: &str, count: usize, limit: u64) -> Option<Invalid> {
    let is_many = count as u64 > limit;
    is_many.then(|| Invalid::new(field, count, Problem::TooMany { limit }))
}

pub(super) fn note_amounts(
    field: &str,
    amounts: &Resources,
    settings: &Settings,
    problems: &mut Vec<Invalid>,
) {
    if amounts.amounts().len() > settings.kinds.len() {
        let unknown = KindId(settings.kinds.len() as u16);
        problems.push(Invalid::new(field, format!("kind number {}", unknown.0), Problem::UnknownKind));
        return;
    }
    for (kind, amount) in amounts.iter().filter(|(_, amount)| !(0..=AMOUNT_MAX).contains(amount)) {
        let field = format!("{field}.{}", settings.kinds.name(kind));
        problems.push(Invalid::new(field, amount, Problem::AmountOutOfRange { limit: AMOUNT_MAX }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: KindId = KindId(1);

    fn problem_of(spec: JobSpec) -> (String, Problem) {
        let invalid = spec.validate(&Settings::default()).expect_err("the spec is bad");
        (invalid.field, invalid.problem)
    }

    #[test]
    fn bad_jobs_name_the_field_and_the_problem() {
        let empty = JobSpec::default();
        assert_eq!(problem_of(empty), ("groups".into(), Problem::Empty));
        let nothing = JobSpec::bag("j", 0, Resources::new());
        assert_eq!(problem_of(nothing), ("groups[0].roles[0].max".into(), Problem::Empty));
        let negative = JobSpec::bag("j", 1, Resources::of(CPU, -5));
        let range = Problem::AmountOutOfRange { limit: AMOUNT_MAX };
        assert_eq!(problem_of(negative), ("groups[0].roles[0].request.cpu".into(), range));
        let unknown = JobSpec::bag("j", 1, Resources::of(KindId(9), 1));
        assert_eq!(problem_of(unknown), ("groups[0].roles[0].request".into(), Problem::UnknownKind));
        let huge = JobSpec::bag("j", u32::MAX, Resources::new());
        assert_eq!(problem_of(huge).1, Problem::TooMany { limit: 10_000_000 });
        let mut twice = JobSpec::bag("j", 1, Resources::new());
        twice.groups.push(twice.groups[0].clone());
        assert_eq!(problem_of(twice), ("groups[1].name".into(), Problem::Duplicate));
        let long = JobSpec::bag("x".repeat(300), 1, Resources::new());
        assert_eq!(problem_of(long), ("name".into(), Problem::TooLong { limit: 256 }));
    }

    #[test]
    fn every_problem_is_named_at_once() {
        let mut job = JobSpec::gang("x".repeat(300), 3, Resources::of(CPU, -5));
        job.groups[0].roles[0].min = 2;
        job.groups.push(GroupSpec { name: "gang".into(), ..GroupSpec::default() });
        let problems = job.problems(&Settings::default());
        let fields: Vec<&str> = problems.iter().map(|invalid| invalid.field.as_str()).collect();
        let expected = [
            "name",
            "groups[0].roles[0].request.cpu",
            "groups[0].roles[0].min",
            "groups[1].name",
            "groups[1].roles",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_role_that_requests_nothing_is_fine() {
        assert_eq!(JobSpec::bag("j", 1, Resources::new()).validate(&Settings::default()), Ok(()));
    }
}
