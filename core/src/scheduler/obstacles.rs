//! Everything that keeps a task from one node, as filters and in words.

use crate::explanation::{NodeReason, OnNode};
use crate::resources::{KindId, Kinds};
use crate::spec::{Filter, NodeFacts, ShapeSpec};

use super::nodes::NodeEntry;
use super::sight::Seen;

/// Every filter that the node does not pass, in order.
pub(super) fn failures(shape: &ShapeSpec, seen: Seen<'_>) -> Vec<Filter> {
    let mut failures = failures_of(shape, seen.bare);
    // It is what is kept there that is in the way, if more is in the way because of it.
    if !seen.is_bare() && failures_of(shape, seen.node) != failures {
        failures.push(Filter::Kept);
    }
    failures
}

fn failures_of(shape: &ShapeSpec, node: &NodeEntry) -> Vec<Filter> {
    let ready = node.keeps_out(shape).then_some(Filter::Ready);
    // A node in deficit takes nothing at all until that is over.
    let room = node.free.has_negative() || !shape.request.fits_in(&node.free);
    let room = room.then_some(Filter::Resources);
    let company = node.company.objections(shape);
    let mut failures: Vec<Filter> =
        ready.into_iter().chain(room).chain(shape.rules.failures(&node.view.facts)).chain(company).collect();
    failures.sort_unstable();
    failures
}

/// Everything that keeps tasks of this shape from the node, in words.
pub(super) fn on_node(shape: &ShapeSpec, seen: Seen<'_>, kinds: &Kinds) -> OnNode {
    let node = seen.bare;
    let reasons = failures(shape, seen).into_iter().map(|filter| {
        let detail = detail(&filter, shape, node, kinds);
        NodeReason { filter, detail }
    });
    OnNode { node: node.view.facts.name.clone(), reasons: reasons.collect() }
}

fn detail(filter: &Filter, shape: &ShapeSpec, node: &NodeEntry, kinds: &Kinds) -> String {
    let facts = &*node.view.facts;
    match filter {
        Filter::Ready => match node.view.state.objections() {
            reasons if reasons.is_empty() => "takes no new work".to_owned(),
            reasons => reasons.join(" and "),
        },
        Filter::Resources => lacking(shape, node, kinds),
        Filter::Plugins => format!("lacks {}", missing_plugins(shape, facts)),
        Filter::Constraints => format!("does not satisfy {}", broken_constraints(shape, facts)),
        Filter::Platform => format!("has the platform {}", platform(facts)),
        Filter::Ports => format!("has {} in use", taken_ports(shape, node)),
        Filter::Replicas => {
            let service = shape.service.as_deref().map_or("", |(service, _)| service);
            let count = node.company.of_service(service);
            format!("has {count} replicas of `{service}`, and {} are allowed", shape.max_per_node)
        }
        Filter::Exclusive if node.company.is_closed() => "is taken by a task that is to be alone".to_owned(),
        Filter::Exclusive => format!("has {} tasks already", node.company.tasks),
        Filter::Pool => format!("is in pool `{}`", facts.pool),
        Filter::Access => access(shape, facts),
        Filter::BoundPool => {
            let pool = shape.rules.bound_pool.as_deref().unwrap_or_default();
            format!("is not in the pool `{pool}`, where others run with whom it stays")
        }
        Filter::Units => {
            let parts = shape.rules.parts & facts.named_kinds;
            let names = kinds.names().enumerate().filter(|(kind, _)| parts & (1 << kind) != 0);
            let names: Vec<&str> = names.map(|(_, name)| name).collect();
            format!("gives {} out in whole units only", names.join(" and "))
        }
        Filter::Custom(name) => {
            let own = shape.rules.filters.iter().find(|wanted| wanted.name == *name);
            own.and_then(|wanted| wanted.judge(facts).err())
                .unwrap_or_else(|| format!("does not pass `{name}`"))
        }
        Filter::Kept => "is kept for others until they start".to_owned(),
        Filter::Node => {
            let wanted = shape.rules.node.as_deref().unwrap_or_default();
            format!("is not the node `{wanted}` that it is for")
        }
    }
}

fn missing_plugins(shape: &ShapeSpec, facts: &NodeFacts) -> String {
    let missing = shape.rules.plugins.iter().filter(|plugin| !facts.has_plugin(plugin));
    listed("plugin", missing.map(|plugin| format!("`{plugin}`")))
}

fn broken_constraints(shape: &ShapeSpec, facts: &NodeFacts) -> String {
    let broken = shape.rules.constraints.iter().filter(|constraint| !constraint.holds(facts));
    listed("", broken.map(|constraint| format!("`{constraint}`")))
}

fn taken_ports(shape: &ShapeSpec, node: &NodeEntry) -> String {
    let taken = shape.ports.iter().filter(|port| node.company.has_port(**port));
    listed("port", taken.map(ToString::to_string))
}

/// What the node lacks or would have to be to pass a filter, where the name of the filter does not say all of it.
pub(super) fn wanted(filter: &Filter, shape: &ShapeSpec, node: &NodeEntry) -> Option<String> {
    let facts = &*node.view.facts;
    let any_of = |names: Vec<String>| names.join(" or ");
    Some(match filter {
        Filter::Plugins => missing_plugins(shape, facts),
        Filter::Constraints => broken_constraints(shape, facts),
        Filter::Platform => any_of(shape.rules.platforms.iter().map(ToString::to_string).collect()),
        Filter::Pool => any_of(shape.rules.pools.iter().map(|pool| format!("`{pool}`")).collect()),
        Filter::Ports => taken_ports(shape, node),
        _ => return None,
    })
}

fn lacking(shape: &ShapeSpec, node: &NodeEntry, kinds: &Kinds) -> String {
    let more = |(kind, amount): (KindId, i64)| {
        format!("{} more {}", kinds.unit(kind).format(amount), kinds.name(kind))
    };
    let now: Vec<String> = shape.request.lacking_in(&node.free).map(more).collect();
    let mut parts = Vec::new();
    if node.free.has_negative() {
        parts.push("holds more than it can since it shrank".to_owned());
    }
    if !now.is_empty() {
        parts.push(format!("needs {}", now.join(" and ")));
    }
    if !shape.request.fits_in(&node.view.capacity) {
        parts.push("is too small even if empty".to_owned());
    }
    parts.join(", ")
}

fn access(shape: &ShapeSpec, facts: &NodeFacts) -> String {
    let loan = facts.access.as_ref().and_then(|access| access.loan.as_ref());
    match (loan, &shape.rules.asker) {
        (Some(loan), _) => format!("is lent to `{loan}`"),
        (None, Some(asker)) if !asker.requestor.is_empty() => format!("is not for `{}`", asker.requestor),
        (None, _) => "is not for everybody".to_owned(),
    }
}

fn platform(facts: &NodeFacts) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_else(|| "unknown".to_owned());
    format!("{}/{}", part(&facts.os), part(&facts.arch))
}

/// A list in words, with the name of what is listed before it.
fn listed(what: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    let plural = if items.len() == 1 || what.is_empty() { "" } else { "s" };
    let list = items.join(" and ");
    if what.is_empty() { list } else { format!("{what}{plural} {list}") }
}
