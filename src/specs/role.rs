//! A role as services describe it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::constraint::{Constraint, Key};
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::{
    self, CommandSpec, Hops, HostPort, Invalid, NodeChoice, OnPreempt, Platform, Problem, Retries, Rules,
    ShapeSpec, Start, WantedFilter,
};

use super::amount::{Amount, optional_span, parsed, resources};

/// A number of identical tasks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RoleSpec {
    /// Unique within its group.
    pub name: String,
    /// How many there are; of an atomic group that may vary in size, at the most.
    pub tasks: u32,
    /// With how many an atomic group is content; with all of them unless given.
    pub min: Option<u32>,
    /// With how many an atomic group that may vary in size starts if there is room; with `min` unless given.
    pub initial: Option<u32>,
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
    /// What becomes of a task that is stopped for others; as the settings say if it is not said here.
    pub on_preempt: Option<OnPreempt>,
    /// What a node must be, such as `node.labels.zone == a`; all of it must hold.
    pub constraints: Vec<String>,
    /// Platforms such as `linux/amd64`, one of which the node must have; any if there are none.
    pub platforms: Vec<String>,
    /// Plugins that the node must have.
    pub plugins: Vec<String>,
    /// What is wanted of the filters of the runtime, by their names.
    pub filters: BTreeMap<String, String>,
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
    /// The tasks are there for those of the other roles: when these are done, they are stopped and the
    /// group is complete.
    pub auxiliary: bool,
    /// The role of whose tasks these are guests, one of each: they run on the same nodes, inside what
    /// their hosts were given, and end with them; for atomic groups.
    pub guest_of: Option<String>,
}

impl RoleSpec {
    /// So many identical tasks that need nothing yet.
    pub fn new(name: impl Into<String>, tasks: u32) -> RoleSpec {
        RoleSpec { name: name.into(), tasks, ..RoleSpec::default() }
    }

    /// Says with how many tasks an atomic group is content: it starts with these and grows while there is
    /// room.
    #[must_use]
    pub fn at_least(mut self, min: u32) -> RoleSpec {
        self.min = Some(min);
        self
    }

    /// Says with how many tasks an atomic group that may vary in size starts if there is room.
    #[must_use]
    pub fn initially(mut self, initial: u32) -> RoleSpec {
        self.initial = Some(initial);
        self
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

    /// Says what becomes of a task that is stopped for others.
    #[must_use]
    pub fn on_preempt(mut self, on_preempt: OnPreempt) -> RoleSpec {
        self.on_preempt = Some(on_preempt);
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

    /// Asks a filter of the runtime for nodes that will do: see [`Builder::filter`](crate::Builder::filter).
    #[must_use]
    pub fn filter(mut self, name: impl Into<String>, wanted: impl Into<String>) -> RoleSpec {
        self.filters.insert(name.into(), wanted.into());
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

    /// Says that the tasks are there for those of the other roles, and are stopped when these are done.
    #[must_use]
    pub fn auxiliary(mut self) -> RoleSpec {
        self.auxiliary = true;
        self
    }

    /// Says of which role the tasks are guests.
    #[must_use]
    pub fn guest_of(mut self, host: impl Into<String>) -> RoleSpec {
        self.guest_of = Some(host.into());
        self
    }

    fn rules(&self, field: impl Display + Copy) -> Result<Rules, Invalid> {
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
            filters: self
                .filters
                .iter()
                .map(|(name, wanted)| WantedFilter::new(&**name, &**wanted))
                .collect(),
            node: self.node.clone(),
            ..Rules::default()
        })
    }

    pub(super) fn convert(
        &self,
        field: impl Display + Copy,
        start: Start,
        settings: &Settings,
    ) -> Result<spec::RoleSpec, Invalid> {
        let rules = self.rules(field)?;
        let request = resources(format_args!("{field}.request"), &self.request, settings)?;
        let min = self.min.unwrap_or(if start == Start::Atomic { self.tasks } else { 0 });
        Ok(spec::RoleSpec {
            name: self.name.clone(),
            min,
            max: self.tasks,
            initial: self.initial,
            shape: Arc::new(ShapeSpec {
                service: self.service.clone().map(Box::new),
                request,
                rules: rules.into(),
                spread: parsed(field, "spread", &self.spread, Key::parse, &Problem::NoFact)?.into(),
                ports: parsed(field, "ports", &self.ports, HostPort::parse, &Problem::NoPort)?.into(),
                max_per_node: self.max_per_node,
                exclusive: self.exclusive,
                placement: self.placement,
                snapshot: self.snapshot.as_deref().map(Arc::from),
                hops: self.hops,
                guest_of: None,
            }),

            duration: optional_span(field, "duration", self.duration)?.into(),
            task_key: self.task_key.as_deref().map(Into::into),
            timeout: optional_span(field, "timeout", self.timeout)?.into(),
            command: self.command.clone().map(Arc::new),
            retries: self.retries.clone().map(Box::new),
            on_preempt: self.on_preempt,
            auxiliary: self.auxiliary,
        })
    }
}
