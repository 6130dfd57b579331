//! A job as services describe it.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::id::JobId;
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::{self, Invalid, PoolRule, Standing};
use plimsoll_core::time::Time;

use super::amount::{Amount, span};
use super::{GroupSpec, RoleSpec};

/// A job to be run: a bag of groups.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobSpec {
    /// What people call it; it need not be unique.
    pub name: String,
    /// Who asks for it.
    pub requestor: String,
    /// Jobs that belong together.
    pub job_set: String,
    /// The job that it is a part of, which must still go on.
    pub parent: Option<JobId>,
    /// What it works on: a job of the same requestor and basis with another tag replaces it.
    pub basis: String,
    /// Which version of the basis; none stands for a version of its own.
    pub tag: String,
    /// The queue it waits in; empty for none.
    pub queue: String,
    /// The band it belongs to; empty for the default one.
    pub band: String,
    /// Inside a queue, larger is sooner.
    pub priority: i32,
    /// How long it may hold what it holds beyond its queue's share; `None` for as long as it runs.
    pub lifetime: Option<Duration>,
    /// Whether it is never stopped for somebody else's sake, whoever that is.
    pub firm: bool,
    /// When it should be finished, on the runtime's own clock: inside a band and priority the earliest
    /// goes first.
    pub finish_by: Option<Time>,
    /// The pools in which its tasks may run; any if there are none.
    pub pools: Vec<String>,
    /// Whether all of its groups stay in one pool; as the settings say if it is not said here.
    pub pool_rule: Option<PoolRule>,
    /// At least one.
    pub groups: Vec<GroupSpec>,
}

impl JobSpec {
    /// A job without groups, to which groups are added.
    pub fn new(name: impl Into<String>) -> JobSpec {
        JobSpec { name: name.into(), ..JobSpec::default() }
    }

    /// So many independent, identical tasks.
    pub fn bag(name: impl Into<String>, tasks: u32) -> JobSpec {
        JobSpec::new(name).group(GroupSpec::new("tasks").role(RoleSpec::new("task", tasks)))
    }

    /// So many identical tasks that start together or not at all.
    pub fn gang(name: impl Into<String>, tasks: u32) -> JobSpec {
        JobSpec::new(name).group(GroupSpec::new("gang").atomic().role(RoleSpec::new("member", tasks)))
    }

    /// Adds a group.
    #[must_use]
    pub fn group(mut self, group: GroupSpec) -> JobSpec {
        self.groups.push(group);
        self
    }

    /// Adds to what every task of the last group needs.
    #[must_use]
    pub fn request(mut self, kind: impl Into<String>, amount: impl Into<Amount>) -> JobSpec {
        let (kind, amount) = (kind.into(), amount.into());
        for role in self.groups.last_mut().into_iter().flat_map(|group| &mut group.roles) {
            role.request.insert(kind.clone(), amount.clone());
        }
        self
    }

    /// Says who asks for the job.
    #[must_use]
    pub fn requestor(mut self, requestor: impl Into<String>) -> JobSpec {
        self.requestor = requestor.into();
        self
    }

    /// Makes the job a part of another, which must still go on. Both end by themselves; whoever waits for
    /// the other job does not wait for this one.
    #[must_use]
    pub fn parent(mut self, parent: JobId) -> JobSpec {
        self.parent = Some(parent);
        self
    }

    /// Replaces the jobs of the same requestor and basis that have another tag: they are cancelled, and
    /// their tag is refused from then on.
    #[must_use]
    pub fn supersedes(mut self, basis: impl Into<String>, tag: impl Into<String>) -> JobSpec {
        (self.basis, self.tag) = (basis.into(), tag.into());
        self
    }

    /// Puts the job into a queue.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> JobSpec {
        self.queue = queue.into();
        self
    }

    /// Puts the job into a band.
    #[must_use]
    pub fn band(mut self, band: impl Into<String>) -> JobSpec {
        self.band = band.into();
        self
    }

    /// Says how urgent the job is inside its queue: larger is sooner.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> JobSpec {
        self.priority = priority;
        self
    }

    /// Puts the job into a set of jobs.
    #[must_use]
    pub fn job_set(mut self, job_set: impl Into<String>) -> JobSpec {
        self.job_set = job_set.into();
        self
    }

    /// Says how long the job may hold what it holds beyond the share of its queue.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> JobSpec {
        self.lifetime = Some(lifetime);
        self
    }

    /// Says that the job is never stopped for somebody else's sake, whoever that is.
    #[must_use]
    pub fn firm(mut self) -> JobSpec {
        self.firm = true;
        self
    }

    /// Says when the job should be finished, on the runtime's own clock.
    #[must_use]
    pub fn finish_by(mut self, moment: Time) -> JobSpec {
        self.finish_by = Some(moment);
        self
    }

    /// Adds a pool in which its tasks may run; those that are not named will not do.
    #[must_use]
    pub fn pool(mut self, pool: impl Into<String>) -> JobSpec {
        self.pools.push(pool.into());
        self
    }

    /// Says whether all groups of the job stay in one pool.
    #[must_use]
    pub fn pool_rule(mut self, rule: PoolRule) -> JobSpec {
        self.pool_rule = Some(rule);
        self
    }

    fn standing(&self) -> Result<Standing, Invalid> {
        Ok(Standing {
            queue: self.queue.as_str().into(),
            band: self.band.as_str().into(),
            priority: self.priority,
            lifetime: self.lifetime.map(|lifetime| span("lifetime", lifetime)).transpose()?.into(),
            firm: self.firm,
            finish_by: self.finish_by.into(),
        })
    }

    pub(crate) fn validated(&self, settings: &Settings) -> Result<Arc<spec::JobSpec>, Invalid> {
        let groups = self.groups.iter().enumerate();
        let groups = groups.map(|(index, group)| group.convert(format_args!("groups[{index}]"), settings));
        let relations = spec::Relations {
            job_set: self.job_set.clone(),
            parent: self.parent,
            basis: self.basis.clone(),
            tag: self.tag.clone(),
        };
        let mut job = spec::JobSpec {
            name: self.name.clone(),
            requestor: self.requestor.as_str().into(),
            standing: self.standing()?,
            relations: relations.into(),
            pool: self.pool_rule,
            groups: groups.collect::<Result<_, _>>()?,
        };
        job.confine(&self.pools);
        job.note_parts(&settings.kinds);
        job.prepare_filters(&settings.filters);
        job.validate(settings)?;
        Ok(Arc::new(job))
    }
}
