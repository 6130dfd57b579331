//! The nearest thing that would let a task run, as data and in words.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::spec::Filter;

/// So much of each of these kinds, in words.
pub type Amounts = Vec<(String, String)>;

/// What would let a task run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Nearest {
    /// So much more of these kinds, free on this node.
    Room { node: String, missing: Amounts },
    /// This node, once it takes new work.
    Ready { node: String },
    /// This node, if it passed this filter. Where more can be said than that, `wanted` is what it lacks or is to
    /// be: constraints, plugins, platforms, pools, ports.
    Suitable { node: String, filter: Filter, wanted: Option<String> },
    /// The only node that may take it, once it passes all of these filters.
    Several { node: String, filters: Vec<Filter> },
    /// A node of this name with this much that suits: the tasks are for it alone and it is not there.
    NamedNode { node: String, request: Amounts },
    /// Another node that has this much and suits.
    AnotherNode {
        request: Amounts,
        /// The pool that it has to be in, because others run there with whom the task stays.
        pool: Option<String>,
    },
    /// So many other nodes that have this much each and suit: for a group that starts as a whole.
    OtherNodes { nodes: Vec<(u64, Amounts)>, place: Option<NewPlace> },
    /// All of these together.
    All(Vec<Nearest>),
}

/// Where other nodes have to be so that a group can start on them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewPlace {
    /// In this pool.
    Pool(String),
    /// In this part of the network, with a path that is no longer.
    Path(String),
    /// In one pool and at one place in the network, whichever.
    Together,
    /// At one place in the network, in this pool.
    TogetherIn(String),
}

/// So many other nodes that have this much each.
fn others(nodes: u64, request: &[(String, String)]) -> String {
    let with = with(request);
    match nodes {
        1 => format!("another node{with} that suits"),
        _ => format!("{nodes} other nodes{with} that suit"),
    }
}

fn with(request: &[(String, String)]) -> String {
    let amounts: Vec<String> = request.iter().map(|(kind, amount)| format!("{amount} {kind}")).collect();
    if amounts.is_empty() { String::new() } else { format!(" with {}", amounts.join(" and ")) }
}

/// When a node passes a filter, in words that follow its name.
fn condition(filter: &Filter, wanted: Option<&str>) -> String {
    match (filter, wanted) {
        (Filter::Plugins, Some(plugins)) => format!("if it had {plugins}"),
        (Filter::Platform, Some(platforms)) => format!("if it had the platform {platforms}"),
        (Filter::Pool, Some(pools)) => format!("if it were in pool {pools}"),
        (Filter::Ports, Some(ports)) if ports.starts_with("ports") => format!("once {ports} are free"),
        (Filter::Ports, Some(port)) => format!("once {port} is free"),
        (Filter::Constraints, Some(constraints)) => format!("if it satisfied {constraints}"),
        (Filter::Access, _) => "if those who ask might use it".to_owned(),
        (Filter::Custom(name), _) => format!("if it passed the filter `{name}`"),
        (Filter::Units, _) => "if whole units were asked for".to_owned(),
        (Filter::Replicas, _) => "once a replica there has ended".to_owned(),
        (Filter::Exclusive, _) => "once nobody else is there".to_owned(),
        (Filter::Kept, _) => "once it is not kept for others any more".to_owned(),
        _ => "if it suited".to_owned(),
    }
}

impl fmt::Display for NewPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NewPlace::Pool(pool) => write!(f, " in pool {pool}"),
            NewPlace::Path(path) => write!(f, " at {path}"),
            NewPlace::Together => f.write_str(" beside each other in one pool"),
            NewPlace::TogetherIn(pool) => write!(f, " beside each other in pool {pool}"),
        }
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Nearest::Room { node, missing } => {
                let parts = missing.iter().map(|(kind, amount)| format!("{amount} more {kind}"));
                write!(f, "{} on node {node}", parts.collect::<Vec<_>>().join(" and "))
            }
            Nearest::Ready { node } => write!(f, "node {node} once it takes new work"),
            Nearest::Suitable { node, filter, wanted } => {
                write!(f, "node {node} {}", condition(filter, wanted.as_deref()))
            }
            Nearest::Several { node, filters } => {
                write!(f, "node {node}, where {} things are in the way", filters.len())
            }
            Nearest::NamedNode { node, request } => write!(f, "a node named {node}{}", with(request)),
            Nearest::AnotherNode { request, pool } => {
                f.write_str(&others(1, request))?;
                pool.as_ref().map_or(Ok(()), |pool| write!(f, " in pool {pool}"))
            }
            Nearest::OtherNodes { nodes, place } => {
                let parts: Vec<String> =
                    nodes.iter().map(|(nodes, request)| others(*nodes, request)).collect();
                f.write_str(&parts.join(" and "))?;
                place.as_ref().map_or(Ok(()), |place| place.fmt(f))
            }
            Nearest::All(things) => {
                let things: Vec<String> = things.iter().map(Nearest::to_string).collect();
                f.write_str(&things.join(", and "))
            }
        }
    }
}
