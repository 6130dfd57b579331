//! On which nodes tasks may run, as far as it does not depend on who else runs there.

use std::fmt::{self, Display};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::constraint::{Constraint, Facts};
use crate::settings::Settings;

use super::{Asker, Filters, Invalid, KindSet, NodeFacts, Problem, WantedFilter};

/// What a node must be for tasks of a role. All of it must hold.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Rules {
    pub constraints: Vec<Constraint>,
    /// The node must be one of these; none at all means any.
    pub platforms: Vec<Platform>,
    /// The node must have every one of these.
    pub plugins: Vec<String>,
    /// The node must be in one of these pools; none at all means any.
    pub pools: Vec<String>,
    /// The tasks run on the node of this name or not at all.
    pub node: Option<String>,
    /// For whom they run. The Scheduler fills it in where some node is not for everybody.
    pub asker: Option<Arc<Asker>>,
    /// The pool in which others run with whom they stay together. Nobody asks for it: it comes and goes
    /// with what runs.
    pub bound_pool: Option<Arc<str>>,
    /// Kinds of which they ask for a part of a unit: where units have names nobody gets a part of one.
    pub parts: KindSet,
    /// What they want of the filters of the service, by name; each filter once.
    pub filters: Vec<WantedFilter>,
}

/// An operating system and an architecture; what is not given may be any.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Platform {
    pub os: Option<String>,
    pub arch: Option<String>,
}

/// What can rule a node out, in the order in which it is looked at.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// Condition, availability and liveness.
    Ready,
    Resources,
    Plugins,
    Constraints,
    Platform,
    /// The node is in another pool.
    Pool,
    /// The node is not for everybody, and not for those who ask.
    Access,
    /// A port is in use.
    Ports,
    /// There are as many replicas as there may be.
    Replicas,
    /// Somebody wants the node for itself.
    Exclusive,
    /// The task is for another node.
    Node,
    /// Others with whom it stays together run in another pool.
    BoundPool,
    /// The units of the node have names, and a part of one is asked for.
    Units,
    /// A filter of the embedding service, by its name.
    Custom(Arc<str>),
    /// What is free there is kept for somebody else.
    Kept,
}

/// More of any one thing than this is refused.
const RULES_MAX: usize = 64;

/// One name for each architecture.
fn plain_name(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

impl Platform {
    /// From `os/arch`; either may be left empty or be `*`.
    pub fn parse(text: &str) -> Option<Platform> {
        let (os, arch) = text.split_once('/')?;
        let given = |part: &str| (!part.is_empty() && part != "*").then(|| part.to_owned());
        (!arch.contains('/')).then(|| Platform { os: given(os), arch: given(arch) })
    }

    fn allows(&self, facts: &NodeFacts) -> bool {
        let same = |wanted: &Option<String>, found: &Option<String>| match (wanted, found) {
            (None, _) => true,
            (Some(wanted), found) => found.as_deref().map(plain_name) == Some(plain_name(wanted)),
        };
        same(&self.os, &facts.os) && same(&self.arch, &facts.arch)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |part: &Option<String>| part.clone().unwrap_or_else(|| "*".to_owned());
        write!(f, "{}/{}", part(&self.os), part(&self.arch))
    }
}

impl Rules {
    /// Those that allow every node.
    pub const NONE: Rules = Rules {
        parts: 0,
        constraints: Vec::new(),
        platforms: Vec::new(),
        plugins: Vec::new(),
        pools: Vec::new(),
        node: None,
        asker: None,
        bound_pool: None,
        filters: Vec::new(),
    };

    /// Whether every node will do.
    pub fn is_empty(&self) -> bool {
        *self == Rules::NONE
    }

    pub fn allow(&self, facts: &NodeFacts) -> bool {
        self.failures(facts).next().is_none()
    }

    /// Whether the node may do at some time, whoever has borrowed it now.
    pub fn may_allow(&self, facts: &NodeFacts) -> bool {
        let may_come = |filter| match (filter, &facts.access) {
            // It is bound only while something it stays with runs.
            (Filter::BoundPool, _) => true,
            (Filter::Access, Some(access)) => {
                access.ever_allows(self.asker.as_deref().unwrap_or(&Asker::default()))
            }
            _ => false,
        };
        self.failures(facts).all(may_come)
    }

    /// Everything that rules this node out, in the order of the filters.
    pub fn failures<'a>(&'a self, facts: &'a NodeFacts) -> impl Iterator<Item = Filter> + 'a {
        let plugins = || self.plugins.iter().all(|plugin| facts.has_plugin(plugin));
        let constraints = || self.constraints.iter().all(|constraint| constraint.holds(facts));
        let platform =
            || self.platforms.is_empty() || self.platforms.iter().any(|platform| platform.allows(facts));
        let node = || self.node.as_ref().is_none_or(|node| *node == facts.name);
        let pool = || self.pools.is_empty() || self.pools.contains(&facts.pool);
        let bound_pool = || self.bound_pool.as_ref().is_none_or(|pool| **pool == *facts.pool);
        let verdicts = [
            (Filter::Plugins, plugins()),
            (Filter::Constraints, constraints()),
            (Filter::Platform, platform()),
            (Filter::Pool, pool()),
            (Filter::Access, self.may_use(facts)),
            (Filter::Node, node()),
            (Filter::BoundPool, bound_pool()),
            (Filter::Units, self.parts & facts.named_kinds == 0),
        ];
        let own = verdicts.into_iter().filter(|(_, holds)| !holds).map(|(filter, _)| filter);
        let others = self.filters.iter().filter(|wanted| wanted.judge(facts).is_err());
        own.chain(others.map(|wanted| Filter::Custom(Arc::clone(&wanted.name))))
    }

    /// Gets its filters ready, as far as these are they.
    pub fn prepare_filters(&mut self, filters: &Filters) {
        for wanted in &mut self.filters {
            // What is wrong with it was said when it was handed in.
            let _ = wanted.prepare(filters);
        }
    }

    /// Whether all of its filters are ready.
    pub fn are_prepared(&self) -> bool {
        self.filters.iter().all(WantedFilter::is_prepared)
    }

    /// Whether one of its filters may tell nodes apart by their names.
    pub fn filter_by_name(&self) -> bool {
        self.filters.iter().any(WantedFilter::looks_at_names)
    }

    /// Whether those for whom the tasks run may use the node.
    pub fn may_use(&self, facts: &NodeFacts) -> bool {
        let Some(access) = &facts.access else { return true };
        match &self.asker {
            Some(asker) => access.allows(asker),
            None => access.allows(&Asker::default()),
        }
    }

    pub(super) fn note_problems(
        &self,
        field: impl Display + Copy,
        settings: &Settings,
        problems: &mut Vec<Invalid>,
    ) {
        let name_length = settings.limits.name_length;
        let counts = [
            ("constraints", self.constraints.len()),
            ("platforms", self.platforms.len()),
            ("plugins", self.plugins.len()),
            ("pools", self.pools.len()),
            ("filters", self.filters.len()),
        ];
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > RULES_MAX) {
            let problem = Problem::TooMany { limit: RULES_MAX as u64 };
            problems.push(Invalid::new(format!("{field}.{name}"), count, problem));
        }
        for (index, plugin) in self.plugins.iter().enumerate() {
            let field = format_args!("{field}.plugins[{index}]");
            problems.extend(super::limits::check_length(field, plugin, name_length));
        }
        for (index, pool) in self.pools.iter().enumerate() {
            let field = format_args!("{field}.pools[{index}]");
            problems.extend(super::limits::check_length(field, pool, name_length));
        }
        if let Some(node) = &self.node {
            problems.extend(super::limits::check_length(format_args!("{field}.node"), node, name_length));
        }
        super::node_filter::note_problems(&self.filters, field, settings, problems);
    }
}

impl Facts for NodeFacts {
    fn fact(&self, key: &crate::constraint::Key) -> Option<&str> {
        use crate::constraint::Key;
        match key {
            Key::Id | Key::Hostname => Some(&self.name),
            Key::Ip => self.ip.as_deref(),
            Key::Role => self.role.as_deref(),
            Key::Pool => Some(&self.pool),
            Key::Os => self.os.as_deref(),
            Key::Arch => self.arch.as_deref(),
            Key::NodeLabel(name) => self.labels.get(name).map(String::as_str),
            Key::EngineLabel(name) => self.engine_labels.get(name).map(String::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::CommonFacts;

    fn facts(os: &str, arch: &str) -> NodeFacts {
        let (os, arch) = (Some(os.to_owned()), Some(arch.to_owned()));
        let common = CommonFacts { os, arch, plugins: vec!["net:latest".into()], ..CommonFacts::default() };
        NodeFacts { name: "n".into(), common: common.into(), ..NodeFacts::default() }
    }

    #[test]
    fn platforms_know_two_names_of_an_architecture_and_mind_the_case() {
        let cases = [
            ("linux/amd64", "linux", "x86_64", true),
            ("linux/aarch64", "linux", "arm64", true),
            ("/x86_64", "windows", "amd64", true),
            ("linux/", "linux", "sparc", true),
            ("*/*", "plan9", "mips", true),
            ("linux/amd64", "linux", "arm64", false),
            ("Linux/amd64", "linux", "amd64", false),
        ];
        for (wanted, os, arch, holds) in cases {
            let platforms = vec![Platform::parse(wanted).expect("a platform")];
            let rules = Rules { platforms, ..Rules::default() };
            assert_eq!(rules.allow(&facts(os, arch)), holds, "{wanted} on {os}/{arch}");
        }
        let any = Platform::default();
        let known = Platform { os: Some("linux".into()), ..Platform::default() };
        let nothing_known = NodeFacts::default();
        assert!(any.allows(&nothing_known) && !known.allows(&nothing_known));
        assert_eq!((Platform::parse("linux"), Platform::parse("a/b/c")), (None, None));
    }

    #[test]
    fn every_reason_is_named_and_plugins_may_carry_a_tag() {
        let rules = Rules {
            constraints: vec![Constraint::parse("node.labels.zone == a").expect("a constraint")],
            platforms: vec![Platform::parse("linux/arm64").expect("a platform")],
            plugins: vec!["net".into()],
            node: Some("other".into()),
            pools: vec!["lab".into()],
            asker: None,
            bound_pool: None,
            parts: 0b1000,
            filters: Vec::new(),
        };
        let failures: Vec<Filter> = rules.failures(&facts("linux", "amd64")).collect();
        assert_eq!(failures, [Filter::Constraints, Filter::Platform, Filter::Pool, Filter::Node]);
        let missing = Rules { plugins: vec!["gone".into()], ..Rules::default() };
        assert_eq!(missing.failures(&facts("linux", "amd64")).collect::<Vec<_>>(), [Filter::Plugins]);
    }
}
