//! Jobs as services describe them, with resources by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::constraint::{Constraint, Key};
use plimsoll_core::quantity::QuantityError;
use plimsoll_core::resources::Resources;
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::{
    self, CommandSpec, Hops, HostPort, Invalid, NodeChoice, Platform, Problem, Retries, Rules, ShapeSpec,
    Standing, Start,
};
use plimsoll_core::time::{Span, Time};

/// An amount of a resource: `2`, `0.5`, `"500m"` or `"4Gi"`.
#[derive(Clone, PartialEq, Debug)]
pub enum Amount {
    /// A whole number.
    Whole(i64),
    /// A number with decimals.
    Number(f64),
    /// A text, with or without a suffix.
    Text(String),
}

macro_rules! amount_from {
    ($($from:ty => $variant:ident),+) => {
        $(impl From<$from> for Amount {
            fn from(amount: $from) -> Amount {
                Amount::$variant(amount.into())
            }
        })+
    };
}

amount_from!(i32 => Whole, u32 => Whole, i64 => Whole, f64 => Number, &str => Text, String => Text);

/// A job to be run: a bag of groups.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobSpec {
    /// What people call it; it need not be unique.
    pub name: String,
    /// Who asks for it.
    pub requestor: String,
    /// Jobs that belong together.
    pub job_set: String,
    /// The queue it waits in; empty for none.
    pub queue: String,
    /// The band it belongs to; empty for the default one.
    pub band: String,
    /// Inside a queue, larger is sooner.
    pub priority: i32,
    /// How long it may hold what it holds beyond its queue's share; `None` for as long as it runs.
    pub lifetime: Option<Duration>,
    /// When it should be finished, on the runtime's own clock: inside a band and priority the earliest
    /// goes first.
    pub finish_by: Option<Time>,
    /// At least one.
    pub groups: Vec<GroupSpec>,
}

/// The unit of admission.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GroupSpec {
    /// Unique within its job.
    pub name: String,
    /// Whether all tasks start together or each on its own.
    pub atomic: bool,
    /// How far apart in the network tree its tasks may run; for atomic groups.
    pub hops: Option<Hops>,
    /// At least one.
    pub roles: Vec<RoleSpec>,
}

/// A number of identical tasks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RoleSpec {
    /// Unique within its group.
    pub name: String,
    /// How many there are.
    pub tasks: u32,
    /// What each of them needs, by resource kind.
    pub request: BTreeMap<String, Amount>,
    /// The service and version of which the tasks are replicas.
    pub service: Option<(String, u64)>,
    /// How long one task is expected to run.
    pub duration: Option<Duration>,
    /// Under which name run times are remembered, where nobody knows how long a task runs.
    pub task_key: Option<String>,
    /// How long one attempt may run before it is ended; `deadlines.run` unless given.
    pub timeout: Option<Duration>,
    /// What a [`ProcessExecutor`](crate::ProcessExecutor) starts for each task.
    pub command: Option<CommandSpec>,
    /// When a task that did not come to a good end is tried again; never unless given.
    pub retries: Option<Retries>,
    /// What a node must be, such as `node.labels.zone == a`; all of it must hold.
    pub constraints: Vec<String>,
    /// Platforms such as `linux/amd64`, one of which the node must have; any if there are none.
    pub platforms: Vec<String>,
    /// Plugins that the node must have.
    pub plugins: Vec<String>,
    /// The only node on which the tasks may run.
    pub node: Option<String>,
    /// Facts such as `node.labels.rack` over which the tasks of the service are spread, level by level.
    pub spread: Vec<String>,
    /// Ports of the node that each task needs for itself, such as `80/tcp`.
    pub ports: Vec<String>,
    /// So many tasks of the service at most on one node; 0 for no limit.
    pub max_per_node: u32,
    /// Each task takes its whole node.
    pub exclusive: bool,
    /// Which of the nodes with room a task gets; as the settings say if it is not said here.
    pub placement: Option<NodeChoice>,
    /// What the tasks start from. A node on which the task before started from the same is preferred.
    pub snapshot: Option<String>,
    /// How far apart in the network tree the tasks of the role may run; for atomic groups.
    pub hops: Option<Hops>,
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

    /// Says when the job should be finished, on the runtime's own clock.
    #[must_use]
    pub fn finish_by(mut self, moment: Time) -> JobSpec {
        self.finish_by = Some(moment);
        self
    }

    fn standing(&self) -> Result<Standing, Invalid> {
        Ok(Standing {
            queue: self.queue.as_str().into(),
            band: self.band.as_str().into(),
            priority: self.priority,
            lifetime: self.lifetime.map(|lifetime| span("lifetime", lifetime)).transpose()?,
            finish_by: self.finish_by,
        })
    }

    pub(crate) fn validated(&self, settings: &Settings) -> Result<Arc<spec::JobSpec>, Invalid> {
        let groups = self.groups.iter().enumerate();
        let groups = groups.map(|(index, group)| group.convert(&format!("groups[{index}]"), settings));
        let job = spec::JobSpec {
            name: self.name.clone(),
            requestor: self.requestor.as_str().into(),
            job_set: self.job_set.clone(),
            standing: self.standing()?,
            groups: groups.collect::<Result<_, _>>()?,
        };
        job.validate(settings)?;
        Ok(Arc::new(job))
    }
}

impl GroupSpec {
    /// A group of tasks that start each on its own.
    pub fn new(name: impl Into<String>) -> GroupSpec {
        GroupSpec { name: name.into(), ..GroupSpec::default() }
    }

    /// All tasks start together or not at all.
    #[must_use]
    pub fn atomic(mut self) -> GroupSpec {
        self.atomic = true;
        self
    }

    /// Says how far apart in the network tree its tasks may run.
    #[must_use]
    pub fn hops(mut self, hops: Hops) -> GroupSpec {
        self.hops = Some(hops);
        self
    }

    /// Adds a role.
    #[must_use]
    pub fn role(mut self, role: RoleSpec) -> GroupSpec {
        self.roles.push(role);
        self
    }

    fn convert(&self, field: &str, settings: &Settings) -> Result<spec::GroupSpec, Invalid> {
        let start = if self.atomic { Start::Atomic } else { Start::Independent };
        let roles = self.roles.iter().enumerate();
        let roles =
            roles.map(|(index, role)| role.convert(&format!("{field}.roles[{index}]"), start, settings));
        let roles = roles.collect::<Result<_, _>>()?;
        Ok(spec::GroupSpec { name: self.name.clone(), start, hops: self.hops, roles })
    }
}

impl RoleSpec {
    /// So many identical tasks that need nothing yet.
    pub fn new(name: impl Into<String>, tasks: u32) -> RoleSpec {
        RoleSpec { name: name.into(), tasks, ..RoleSpec::default() }
    }

    /// Adds to what each task needs.
    #[must_use]
    pub fn request(mut self, kind: impl Into<String>, amount: impl Into<Amount>) -> RoleSpec {
        self.request.insert(kind.into(), amount.into());
        self
    }

    /// Says how long one task is expected to run.
    #[must_use]
    pub fn duration(mut self, duration: Duration) -> RoleSpec {
        self.duration = Some(duration);
        self
    }

    /// Says under which name run times are remembered, where nobody knows how long a task runs.
    #[must_use]
    pub fn task_key(mut self, key: impl Into<String>) -> RoleSpec {
        self.task_key = Some(key.into());
        self
    }

    /// Ends attempts that run for longer than this and `deadlines.overhead`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> RoleSpec {
        self.timeout = Some(timeout);
        self
    }

    /// Tries tasks that did not come to a good end again.
    #[must_use]
    pub fn retries(mut self, retries: Retries) -> RoleSpec {
        self.retries = Some(retries);
        self
    }

    /// Says what is started for each task.
    #[must_use]
    pub fn command(mut self, command: CommandSpec) -> RoleSpec {
        self.command = Some(command);
        self
    }

    /// Says what a node must be, in the language of constraints.
    #[must_use]
    pub fn constraint(mut self, constraint: impl Into<String>) -> RoleSpec {
        self.constraints.push(constraint.into());
        self
    }

    /// Adds a platform that will do, such as `linux/amd64`.
    #[must_use]
    pub fn platform(mut self, platform: impl Into<String>) -> RoleSpec {
        self.platforms.push(platform.into());
        self
    }

    /// Adds a plugin that the node must have.
    #[must_use]
    pub fn plugin(mut self, plugin: impl Into<String>) -> RoleSpec {
        self.plugins.push(plugin.into());
        self
    }

    /// Lets the tasks run on this node only.
    #[must_use]
    pub fn on_node(mut self, node: impl Into<String>) -> RoleSpec {
        self.node = Some(node.into());
        self
    }

    /// Says of which service and version the tasks are replicas: they are spread over the nodes.
    #[must_use]
    pub fn service(mut self, service: impl Into<String>, version: u64) -> RoleSpec {
        self.service = Some((service.into(), version));
        self
    }

    /// Spreads the tasks of the service over the values of this fact, below those given before.
    #[must_use]
    pub fn spread(mut self, fact: impl Into<String>) -> RoleSpec {
        self.spread.push(fact.into());
        self
    }

    /// Adds a port of the node that each task needs for itself.
    #[must_use]
    pub fn port(mut self, port: impl Into<String>) -> RoleSpec {
        self.ports.push(port.into());
        self
    }

    /// Lets at most so many tasks of the service run on one node.
    #[must_use]
    pub fn max_per_node(mut self, tasks: u32) -> RoleSpec {
        self.max_per_node = tasks;
        self
    }

    /// Gives each task a whole node.
    #[must_use]
    pub fn exclusive(mut self) -> RoleSpec {
        self.exclusive = true;
        self
    }

    /// Says which of the nodes with room a task gets, whatever the settings say.
    #[must_use]
    pub fn placement(mut self, placement: NodeChoice) -> RoleSpec {
        self.placement = Some(placement);
        self
    }

    /// Says what the tasks start from: they go to nodes that have it already where those have room.
    #[must_use]
    pub fn snapshot(mut self, snapshot: impl Into<String>) -> RoleSpec {
        self.snapshot = Some(snapshot.into());
        self
    }

    /// Says how far apart in the network tree the tasks may run.
    #[must_use]
    pub fn hops(mut self, hops: Hops) -> RoleSpec {
        self.hops = Some(hops);
        self
    }

    fn rules(&self, field: &str) -> Result<Rules, Invalid> {
        let constraint = |(index, text): (usize, &String)| {
            Constraint::parse(text).map_err(|error| {
                let problem = Problem::BadConstraint { why: error.to_string() };
                Invalid::new(format!("{field}.constraints[{index}]"), text, problem)
            })
        };
        Ok(Rules {
            constraints: self.constraints.iter().enumerate().map(constraint).collect::<Result<_, _>>()?,
            platforms: parsed(field, "platforms", &self.platforms, Platform::parse, &Problem::NoPlatform)?,
            plugins: self.plugins.clone(),
            node: self.node.clone(),
        })
    }

    fn convert(&self, field: &str, start: Start, settings: &Settings) -> Result<spec::RoleSpec, Invalid> {
        let rules = self.rules(field)?;
        let request = resources(&format!("{field}.request"), &self.request, settings)?;
        let min = if start == Start::Atomic { self.tasks } else { 0 };
        Ok(spec::RoleSpec {
            name: self.name.clone(),
            min,
            max: self.tasks,
            shape: Arc::new(ShapeSpec {
                service: self.service.clone(),
                request,
                rules,
                spread: parsed(field, "spread", &self.spread, Key::parse, &Problem::NoFact)?,
                ports: parsed(field, "ports", &self.ports, HostPort::parse, &Problem::NoPort)?,
                max_per_node: self.max_per_node,
                exclusive: self.exclusive,
                placement: self.placement,
                snapshot: self.snapshot.as_deref().map(Arc::from),
                hops: self.hops,
            }),

            duration: optional_span(field, "duration", self.duration)?,
            task_key: self.task_key.as_deref().map(Into::into),
            timeout: optional_span(field, "timeout", self.timeout)?,
            command: self.command.clone().map(Arc::new),
            retries: self.retries.clone().map(Box::new),
        })
    }
}

/// Texts that all mean something; the first that does not is named.
fn parsed<T>(
    field: &str,
    name: &str,
    texts: &[String],
    parse: impl Fn(&str) -> Option<T>,
    problem: &Problem,
) -> Result<Vec<T>, Invalid> {
    let one = |(index, text): (usize, &String)| {
        let invalid = || Invalid::new(format!("{field}.{name}[{index}]"), text, problem.clone());
        parse(text).ok_or_else(invalid)
    };
    texts.iter().enumerate().map(one).collect()
}

fn optional_span(field: &str, name: &str, duration: Option<Duration>) -> Result<Option<Span>, Invalid> {
    duration.map(|duration| span(&format!("{field}.{name}"), duration)).transpose()
}

fn span(field: &str, duration: Duration) -> Result<Span, Invalid> {
    let too_long = || Invalid::new(field, format!("{duration:?}"), Problem::DurationTooLong);
    Span::from_seconds(duration.as_secs_f64()).ok_or_else(too_long)
}

pub(crate) fn resources(
    field: &str,
    amounts: &BTreeMap<String, Amount>,
    settings: &Settings,
) -> Result<Resources, Invalid> {
    let mut resources = Resources::new();
    for (name, amount) in amounts {
        let Some(kind) = settings.kinds.id(name) else {
            return Err(Invalid::new(field, name, Problem::UnknownKind));
        };
        let unit = settings.kinds.unit(kind);
        let (base, shown) = match amount {
            Amount::Whole(number) => (unit.from_whole(*number), number.to_string()),
            Amount::Number(number) => (unit.from_number(*number), number.to_string()),
            Amount::Text(text) => (unit.parse(text), text.clone()),
        };
        let wrong = |error: QuantityError| Problem::NoAmount { why: error.to_string() };
        let base = base.map_err(|error| Invalid::new(format!("{field}.{name}"), shown, wrong(error)))?;
        resources.set(kind, base);
    }
    Ok(resources)
}
