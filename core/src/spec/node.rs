//! Nodes as callers describe them, and the three things that decide whether one takes work.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::resources::{KindId, Resources};
use crate::settings::Settings;

use super::facts::{check_path, note_labels, note_plugins};
use super::limits::{check_length, note_amounts};
use super::{Access, CommonFacts, Invalid, NodeFacts, NodePath, PoolState, Problem, Units};

/// A node to be added.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeSpec {
    pub facts: NodeFacts,
    pub capacity: Resources,
    /// The names of its units, where they have some. They are counted in the capacity.
    pub units: Units,
    /// So much of its capacity is used by others, who are not asked.
    pub reserved: Resources,
    pub condition: Condition,
    pub availability: Availability,
    /// Whether the node's agent answers at the moment it is added.
    pub liveness: Liveness,
}

/// What the operators say about a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Condition {
    #[default]
    Automated,
    /// In the hands of people, who may reserve it.
    Manual,
    Broken,
    /// Out of use, but not forgotten: nothing runs there, and what did is moved.
    Removed,
}

/// Whether a node may take new work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Availability {
    #[default]
    Active,
    Pause,
    Drain,
}

/// Whether a node's agent answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Liveness {
    #[default]
    Ready,
    /// Silent for a while: it keeps its attempts and gets no new ones.
    Suspect,
    /// Given up: its attempts are lost for good.
    Down,
}

/// What decides whether a node takes new work, apart from room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct NodeState {
    pub condition: Condition,
    pub availability: Availability,
    pub liveness: Liveness,
    /// Somebody has it for himself.
    pub reserved: bool,
    /// What the operators say about its pool.
    pub pool: PoolState,
}

impl Condition {
    pub const NAMES: [(&str, Condition); 4] = [
        ("automated", Condition::Automated),
        ("manual", Condition::Manual),
        ("broken", Condition::Broken),
        ("removed", Condition::Removed),
    ];

    pub fn name(self) -> &'static str {
        Condition::NAMES[self as usize].0
    }
}

impl NodeState {
    /// Whether it may be given new work, room permitting.
    pub fn takes_work(self) -> bool {
        self.condition == Condition::Automated
            && self.availability == Availability::Active
            && self.liveness == Liveness::Ready
            && !self.reserved
            && self.pool != PoolState::Disabled
    }

    /// Whether what runs there has to go elsewhere.
    pub fn is_vacated(self) -> bool {
        self.availability == Availability::Drain || self.condition == Condition::Removed
    }

    /// What keeps new work away, in words that follow the name of the node.
    pub fn objections(self) -> Vec<&'static str> {
        let condition = match self.condition {
            Condition::Automated => None,
            Condition::Manual => Some("is in manual condition"),
            Condition::Broken => Some("is broken"),
            Condition::Removed => Some("is out of use"),
        };
        let availability = match self.availability {
            Availability::Active => None,
            Availability::Pause => Some("is paused"),
            Availability::Drain => Some("is being drained"),
        };
        let liveness = match self.liveness {
            Liveness::Ready => None,
            Liveness::Suspect => Some("is silent"),
            Liveness::Down => Some("is down"),
        };
        let reserved = self.reserved.then_some("is reserved");
        let pool = match self.pool {
            PoolState::Enabled => None,
            PoolState::Cordoned => Some("is in a cordoned pool"),
            PoolState::Disabled => Some("is in a disabled pool"),
        };
        condition.into_iter().chain(availability).chain(liveness).chain(reserved).chain(pool).collect()
    }
}

/// Somebody wants a manual node for himself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReservationSpec {
    pub who: Arc<str>,
    /// What is to be installed first, in words that the executor understands.
    pub prepare: Option<Arc<str>>,
}

/// A change of a node; what is `None` stays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NodePatch {
    pub capacity: Option<Resources>,
    /// The names of its units from now on; goes with the capacity, in which they are counted.
    pub units: Units,
    /// So much of it is used by others from now on.
    pub reserved: Option<Resources>,
    pub labels: Option<BTreeMap<String, String>>,
    /// The pool it belongs to; changed only while nothing runs on it.
    pub pool: Option<String>,
    pub engine_labels: Option<BTreeMap<String, String>>,
    pub os: Option<String>,
    pub arch: Option<String>,
    pub role: Option<String>,
    pub ip: Option<String>,
    pub plugins: Option<Vec<String>>,
    pub path: Option<NodePath>,
    /// Who may use it from now on; `Some(None)` is everybody.
    pub access: Option<Option<Arc<Access>>>,
    pub condition: Option<Condition>,
    /// Why it is set broken.
    pub reason: Option<String>,
    pub availability: Option<Availability>,
}

pub const POOL_DEFAULT: &str = "default";

impl NodeSpec {
    pub fn new(name: impl Into<String>, capacity: Resources) -> NodeSpec {
        NodeSpec {
            facts: NodeFacts {
                name: name.into(),
                common: CommonFacts { pool: POOL_DEFAULT.into(), ..CommonFacts::default() }.into(),
                ..NodeFacts::default()
            },
            capacity,
            units: Units::default(),
            reserved: Resources::new(),
            condition: Condition::default(),
            availability: Availability::default(),
            liveness: Liveness::default(),
        }
    }

    pub fn validate(&self, settings: &Settings) -> Result<(), Invalid> {
        self.problems(settings).into_iter().next().map_or(Ok(()), Err)
    }

    /// Everything that is wrong with the node, in the order of its fields.
    pub fn problems(&self, settings: &Settings) -> Vec<Invalid> {
        let mut problems = Vec::new();
        self.facts.note_problems(settings, &mut problems);
        note_amounts("capacity", &self.capacity, settings, &mut problems);
        self.units.note_problems(&self.capacity, settings, &mut problems);
        note_amounts("reserved", &self.reserved, settings, &mut problems);
        if let Some(kind) = both_reserved_and_named(&self.reserved, |kind| self.units.has(kind)) {
            let field = format!("reserved.{}", settings.kinds.name(kind));
            problems.push(Invalid::new(field, self.reserved.get(kind), Problem::ReservedUnits));
        }
        problems
    }
}

/// A kind of which others use some although its units have names: nobody says which of them.
pub(crate) fn both_reserved_and_named(
    reserved: &Resources,
    has_names: impl Fn(KindId) -> bool,
) -> Option<KindId> {
    reserved.iter().find(|(kind, amount)| *amount > 0 && has_names(*kind)).map(|(kind, _)| kind)
}

impl ReservationSpec {
    pub fn validate(&self, settings: &Settings) -> Result<(), Invalid> {
        let fields = [("who", Some(&self.who)), ("prepare", self.prepare.as_ref())];
        for (field, text) in fields.into_iter().filter_map(|(field, text)| Some((field, text?))) {
            let limit = settings.limits.name_length;
            let problem = match text.len() as u64 {
                0 => Problem::Empty,
                length if length > limit => Problem::TooLong { limit },
                _ => continue,
            };
            return Err(Invalid::new(field, text, problem));
        }
        Ok(())
    }
}

impl NodePatch {
    pub fn validate(&self, settings: &Settings) -> Result<(), Invalid> {
        self.problems(settings).into_iter().next().map_or(Ok(()), Err)
    }

    /// Changes what is known about a node, as far as it is to change.
    pub fn change_facts(&mut self, facts: &mut Arc<NodeFacts>) {
        let is_given =
            [&self.pool, &self.os, &self.arch, &self.role, &self.ip].into_iter().any(Option::is_some)
                || [&self.labels, &self.engine_labels].into_iter().any(Option::is_some)
                || (self.plugins.is_some() || self.path.is_some() || self.access.is_some());
        if !is_given {
            return;
        }
        fn set<T>(field: &mut T, given: Option<T>) {
            given.into_iter().for_each(|given| *field = given);
        }
        let NodeFacts { ip, path, common, .. } = Arc::make_mut(facts);
        let common = Arc::make_mut(common);
        set(&mut common.pool, self.pool.take());
        set(&mut common.labels, self.labels.take());
        set(&mut common.engine_labels, self.engine_labels.take());
        set(&mut common.plugins, self.plugins.take());
        set(&mut common.access, self.access.take());
        let optional = [
            (&mut common.os, self.os.take()),
            (&mut common.arch, self.arch.take()),
            (&mut common.role, self.role.take()),
            (ip, self.ip.take()),
        ];
        for (field, given) in optional {
            *field = given.or(field.take());
        }
        *path = self.path.take().or(path.take());
    }

    /// Everything that is wrong with the change, in the order of its fields.
    pub fn problems(&self, settings: &Settings) -> Vec<Invalid> {
        let mut problems = Vec::new();
        for (field, labels) in [("labels", &self.labels), ("engine_labels", &self.engine_labels)] {
            labels.iter().for_each(|labels| note_labels(field, labels, settings, &mut problems));
        }
        let texts = [("os", &self.os), ("arch", &self.arch), ("role", &self.role), ("ip", &self.ip)];
        let texts = texts.into_iter().chain([("pool", &self.pool)]);
        for (field, text) in texts.filter_map(|(field, text)| Some((field, text.as_ref()?))) {
            problems.extend(check_length(field, text, settings.limits.name_length));
        }
        if self.pool.as_ref().is_some_and(String::is_empty) {
            problems.push(Invalid::new("pool", "\"\"", Problem::Empty));
        }
        if let Some(plugins) = &self.plugins {
            note_plugins(plugins, settings, &mut problems);
        }
        problems.extend(self.path.as_ref().and_then(|path| check_path(path, settings)));
        if let Some(access) = self.access.as_ref().and_then(Option::as_ref) {
            access.note_problems(settings.limits.name_length, &mut problems);
        }
        if let Some(capacity) = &self.capacity {
            note_amounts("capacity", capacity, settings, &mut problems);
            self.units.note_problems(capacity, settings, &mut problems);
        }
        if let Some(reserved) = &self.reserved {
            note_amounts("reserved", reserved, settings, &mut problems);
        }
        problems.extend(self.reason.as_ref().and_then(|reason| check_reason(reason, self.condition)));
        problems
    }
}

/// Bytes of what people say when they set a node broken.
const REASON_MAX: usize = 1_024;

fn check_reason(reason: &str, condition: Option<Condition>) -> Option<Invalid> {
    let invalid = |problem| Some(Invalid::new("reason", reason, problem));
    match reason.len() {
        0 => invalid(Problem::Empty),
        length if length > REASON_MAX => invalid(Problem::TooLong { limit: REASON_MAX as u64 }),
        _ if condition != Some(Condition::Broken) => invalid(Problem::NeedsBroken),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Problem;

    #[test]
    fn bad_nodes_name_the_field_and_the_problem() {
        let settings = Settings::default();
        let nameless = NodeSpec::new("", Resources::new()).validate(&settings).expect_err("no name");
        assert_eq!((nameless.field.as_str(), nameless.problem), ("name", Problem::Empty));
        let mut labelled = NodeSpec::new("n", Resources::of(KindId(0), 1_000));
        labelled.facts.labels.insert("zone".into(), "z".repeat(300));
        let invalid = labelled.validate(&settings).expect_err("the label is long");
        assert_eq!(invalid.field, "labels.zone");
        assert!(invalid.value.len() < 100, "the value is shortened");
    }
}
