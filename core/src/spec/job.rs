//! A job as callers describe it: a bag of groups.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::collections::{Empty, Seldom};
use crate::id::JobId;
use crate::resources::Resources;
use crate::settings::Settings;

use super::limits::{check_count, check_length};
use super::{GroupSpec, Invalid, PoolRule, Problem, RoleSpec, Standing, Start};

/// A job to be run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct JobSpec {
    pub name: String,
    /// Who asks for it.
    pub requestor: Arc<str>,
    /// Where it queues and how urgent it is.
    pub standing: Standing,
    /// With which jobs it has to do, if with any.
    pub relations: Seldom<Relations>,
    /// Whether all of its groups stay in one pool; as the settings say if it is not said here.
    pub pool: Option<PoolRule>,
    pub groups: Vec<GroupSpec>,
}

/// What a job has to do with others.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Relations {
    /// Jobs that are watched and cancelled as one.
    pub job_set: String,
    /// The job that it is a part of, submitted while that runs.
    pub parent: Option<JobId>,
    /// What it works on: jobs of one requestor and basis replace each other.
    pub basis: String,
    /// Which version of the basis; another one replaces the jobs of this.
    pub tag: String,
}

impl Empty for Relations {
    const EMPTY: &'static Relations =
        &Relations { job_set: String::new(), parent: None, basis: String::new(), tag: String::new() };

    fn has_nothing(&self) -> bool {
        self == Relations::EMPTY
    }
}

impl JobSpec {
    /// The common case: so many independent, identical tasks.
    pub fn bag(name: impl Into<String>, tasks: u32, request: Resources) -> JobSpec {
        let group = GroupSpec {
            name: "tasks".into(),
            roles: vec![RoleSpec::new("task", 0, tasks, request)],
            ..GroupSpec::default()
        };
        JobSpec { name: name.into(), groups: vec![group], ..JobSpec::default() }
    }

    /// A job whose tasks start together or not at all.
    pub fn gang(name: impl Into<String>, tasks: u32, request: Resources) -> JobSpec {
        let group = GroupSpec {
            name: "gang".into(),
            start: Start::Atomic,
            roles: vec![RoleSpec::new("member", tasks, tasks, request)],
            ..GroupSpec::default()
        };
        JobSpec { name: name.into(), groups: vec![group], ..JobSpec::default() }
    }

    /// Lets every task run in these pools only; in any if none are given.
    pub fn confine(&mut self, pools: &[String]) {
        for role in self.groups.iter_mut().flat_map(|group| &mut group.roles).filter(|_| !pools.is_empty()) {
            Arc::make_mut(&mut role.shape).rules.pools = pools.to_vec();
        }
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
        let Relations { job_set, basis, tag, .. } = &*self.relations;
        for (field, value) in [("name", &*self.name), ("requestor", &*self.requestor), ("job_set", job_set)] {
            problems.extend(check_length(field, value, limits.name_length));
        }
        for (field, value) in [("basis", basis), ("tag", tag)] {
            problems.extend(check_length(field, value, limits.name_length));
        }
        if basis.is_empty() && !tag.is_empty() {
            problems.push(Invalid::new("tag", tag, Problem::NeedsBasis));
        }
        self.standing.note_problems(settings, &mut problems);
        if self.groups.is_empty() {
            problems.push(Invalid::new("groups", "[]", Problem::Empty));
        }
        problems.extend(check_count("groups", self.groups.len(), limits.groups_per_job));
        let mut names = BTreeSet::new();
        for (index, group) in self.groups.iter().enumerate() {
            let field = format_args!("groups[{index}]");
            if !names.insert(&group.name) {
                problems.push(Invalid::new(format!("{field}.name"), &group.name, Problem::Duplicate));
            }
            group.note_problems(field, settings, &mut problems);
        }
        if self.tasks() > limits.tasks_per_job {
            let problem = Problem::TooMany { limit: limits.tasks_per_job };
            problems.push(Invalid::new("groups", format!("{} tasks", self.tasks()), problem));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{AMOUNT_MAX, KindId};

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
        job.groups[0].roles[0].initial = Some(4);
        job.groups.push(GroupSpec { name: "gang".into(), ..GroupSpec::default() });
        let problems = job.problems(&Settings::default());
        let fields: Vec<&str> = problems.iter().map(|invalid| invalid.field.as_str()).collect();
        let expected = [
            "name",
            "groups[0].roles[0].request.cpu",
            "groups[0].roles[0].initial",
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
