//! Who may use a node.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use crate::constraint::is_exactly_like;

use super::limits::{check_count, check_length};
use super::node::POOL_DEFAULT;
use super::{Invalid, NodeFacts, Problem};

/// Who may use a node that is not for everybody. Names of requestors and queues may be patterns in which
/// `*` stands for any letters and `?` for one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Access {
    /// Whose node it is: always among those who may use it, unless it is lent.
    pub owner: Option<String>,
    /// These may use it,
    pub requestors: Vec<String>,
    /// and the work of these queues.
    pub queues: Vec<String>,
    /// Not these, whatever else is said. Where nobody is named above, everybody but these.
    pub except: Vec<String>,
    /// As long as it is lent to somebody it is for that one alone, also while its owner waits.
    pub loan: Option<String>,
}

/// For whom a task runs, as far as nodes mind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Asker {
    pub requestor: String,
    pub queue: String,
}

/// More names than this in one list are refused.
const NAMES_MAX: u64 = 1_024;

impl Access {
    /// A node of this owner alone.
    pub fn owned_by(owner: impl Into<String>) -> Access {
        Access { owner: Some(owner.into()), ..Access::default() }
    }

    pub fn allows(&self, asker: &Asker) -> bool {
        match &self.loan {
            Some(loan) => *loan == asker.requestor,
            None => self.allows_unless_lent(asker),
        }
    }

    /// Whether the asker may use the node at some time: a loan ends, the rest is for good.
    pub fn ever_allows(&self, asker: &Asker) -> bool {
        self.allows(asker) || self.allows_unless_lent(asker)
    }

    fn allows_unless_lent(&self, asker: &Asker) -> bool {
        if self.is_owner(asker) {
            return true;
        }
        let is_named = |names: &[String], name: &str| names.iter().any(|like| is_exactly_like(name, like));
        let everybody = self.requestors.is_empty() && self.queues.is_empty() && !self.except.is_empty();
        let granted =
            everybody || is_named(&self.requestors, &asker.requestor) || is_named(&self.queues, &asker.queue);
        granted && !is_named(&self.except, &asker.requestor)
    }

    /// Whether it names those who may use the node, and not only those who may not.
    fn is_for_few(&self) -> bool {
        let names = || self.requestors.iter().chain(&self.queues);
        let everybody = names().next().is_none() && !self.except.is_empty();
        self.loan.is_some() || !(everybody || names().any(|like| like == "*"))
    }

    pub fn is_owner(&self, asker: &Asker) -> bool {
        self.owner.as_ref() == Some(&asker.requestor)
    }

    pub(super) fn note_problems(&self, name_length: u64, problems: &mut Vec<Invalid>) {
        let lists = [("requestors", &self.requestors), ("queues", &self.queues), ("except", &self.except)];
        let names_nobody = self.owner.is_none() && lists.iter().all(|(_, names)| names.is_empty());
        if names_nobody && self.loan.is_none() {
            problems.push(Invalid::new("access", "nobody", Problem::NoAccess));
        }
        for (field, name) in [("owner", &self.owner), ("loan", &self.loan)] {
            let field = format_args!("access.{field}");
            problems.extend(name.as_ref().and_then(|name| check_name(field, name, name_length)));
        }
        for (list, names) in lists {
            problems.extend(check_count(format_args!("access.{list}"), names.len(), NAMES_MAX));
            for (index, name) in names.iter().enumerate() {
                problems.extend(check_name(format_args!("access.{list}[{index}]"), name, name_length));
            }
        }
    }
}

/// How far a node is from who asks: 0 for his own, 1 for one that was granted to him and few others, 2 for one
/// of a named pool, 3 for any other. He may use all of these.
pub fn remoteness(asker: Option<&Asker>, facts: &NodeFacts) -> u32 {
    match &facts.access {
        Some(access) if asker.is_some_and(|asker| access.is_owner(asker)) => 0,
        Some(access) if access.is_for_few() => 1,
        _ if facts.pool != POOL_DEFAULT => 2,
        _ => 3,
    }
}

fn check_name(field: impl Display + Copy, name: &str, limit: u64) -> Option<Invalid> {
    match name.is_empty() {
        true => Some(Invalid::new(field, "\"\"", Problem::Empty)),
        false => check_length(field, name, limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::CommonFacts;

    fn asker(requestor: &str, queue: &str) -> Asker {
        Asker { requestor: requestor.into(), queue: queue.into() }
    }

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_node_that_is_not_shared_is_for_its_owner() {
        let access = Access::owned_by("ann");
        assert!(access.allows(&asker("ann", "")));
        assert!(!access.allows(&asker("bob", "")) && !access.allows(&asker("", "")));
    }

    #[test]
    fn names_may_be_patterns_of_requestors_and_of_queues() {
        let access = Access {
            requestors: list(&["land-*"]),
            queues: list(&["team-?"]),
            except: list(&["land-9"]),
            ..Access::owned_by("ann")
        };
        assert!(access.allows(&asker("land-7", "")) && access.allows(&asker("bob", "team-a")));
        assert!(access.allows(&asker("ann", "")), "the owner need not be named twice");
        assert!(!access.allows(&asker("land-9", "team-a")) && !access.allows(&asker("bob", "team-10")));
    }

    #[test]
    fn everybody_may_but_those_who_are_left_out() {
        let access = Access { except: list(&["bob"]), ..Access::default() };
        assert!(access.allows(&asker("ann", "")) && access.allows(&asker("", "")));
        assert!(!access.allows(&asker("bob", "")));
    }

    #[test]
    fn a_loan_is_for_one_alone_and_ends() {
        let lent = Access { loan: Some("cid".into()), requestors: list(&["*"]), ..Access::owned_by("ann") };
        assert!(lent.allows(&asker("cid", "")));
        for other in ["ann", "bob"] {
            assert!(!lent.allows(&asker(other, "")) && lent.ever_allows(&asker(other, "")));
        }
        let private = Access { loan: Some("cid".into()), ..Access::owned_by("ann") };
        assert!(private.ever_allows(&asker("cid", "")) && !private.ever_allows(&asker("bob", "")));
    }

    #[test]
    fn own_nodes_are_nearer_than_granted_ones_and_those_than_what_is_for_all() {
        let node = |pool: &str, access: Option<Access>| {
            let (pool, access) = (pool.to_owned(), access.map(std::sync::Arc::new));
            NodeFacts {
                common: CommonFacts { pool, access, ..CommonFacts::default() }.into(),
                ..NodeFacts::default()
            }
        };
        let granted = Access { requestors: list(&["ann", "b*"]), ..Access::default() };
        let shared = Access { requestors: list(&["*"]), ..Access::owned_by("bob") };
        let all_but = Access { except: list(&["eve"]), ..Access::default() };
        let cases = [
            (node("default", Some(Access::owned_by("ann"))), 0),
            (node("lab", Some(granted)), 1),
            (node("lab", Some(shared.clone())), 2),
            (node("lab", None), 2),
            (node("default", Some(shared)), 3),
            (node("default", Some(all_but)), 3),
            (node("default", None), 3),
        ];
        for (facts, expected) in cases {
            assert_eq!(remoteness(Some(&asker("ann", "")), &facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn access_for_nobody_is_a_mistake() {
        let mut problems = Vec::new();
        Access::default().note_problems(256, &mut problems);
        Access { queues: list(&[""]), ..Access::default() }.note_problems(256, &mut problems);
        let found: Vec<(&str, &Problem)> =
            problems.iter().map(|invalid| (invalid.field.as_str(), &invalid.problem)).collect();
        assert_eq!(found, [("access", &Problem::NoAccess), ("access.queues[0]", &Problem::Empty)]);
    }
}
