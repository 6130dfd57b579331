//! `nodes`: entries with a count become that many nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::document::{Cursor, FaultKind, Fields, Value};
use crate::resources::{Kinds, Resources};
use crate::settings::{Settings, declare_kind};
use crate::spec::{Availability, Condition, Liveness, NodeFacts, NodePath, NodeSpec, Problem, Units};

use super::access;
use super::names::Names;

pub(super) fn read_all(list: Cursor<'_>, settings: &mut Settings, names: &mut Names) -> Vec<NodeSpec> {
    let mut nodes = Vec::new();
    list.list(|item| item.table(|fields| read_entry(&item, fields, settings, names, &mut nodes)));
    nodes
}

fn read_entry(
    entry: &Cursor<'_>,
    fields: &Fields<'_>,
    settings: &mut Settings,
    names: &mut Names,
    nodes: &mut Vec<NodeSpec>,
) {
    let name_at = fields.required("name", "the name of the node");
    let name = name_at.and_then(|cursor| cursor.name());
    let limit = settings.limits.nodes;
    let count = fields.get("count").map_or(Some(1), |cursor| cursor.whole(1..=limit)).unwrap_or(1);
    let node = read_spec(name.unwrap_or("unnamed"), fields, settings);
    let longest = named(&node, count, count - 1);
    for invalid in longest.problems(settings) {
        entry.log().note_invalid(entry.path(), invalid);
    }
    if nodes.len() as u64 + count > limit {
        entry.fault(FaultKind::Refused, format!("at most {limit} nodes are allowed in all (`limits.nodes`)"));
        return;
    }
    let (Some(_), Some(name_at)) = (name, name_at) else { return };
    for index in 0..count {
        let node = named(&node, count, index);
        if !names.enter(&node.facts.name, Some(nodes.len()), &name_at) {
            return;
        }
        nodes.push(node);
    }
}

/// Everything about a node but its name, and how many there are of it.
pub(super) fn read_spec(name: &str, fields: &Fields<'_>, settings: &mut Settings) -> NodeSpec {
    let mut node = NodeSpec::new(name, Resources::new());
    if let Some(pool) = fields.get("pool").and_then(|cursor| cursor.name()) {
        node.facts.pool = pool.to_owned();
    }
    if let Some(capacity) = fields.required("capacity", "what the node offers, such as {\"cpu\": 4}") {
        (node.capacity, node.units) = read_capacity(capacity, &mut settings.kinds).unwrap_or_default();
    }
    let reserved = fields.get("reserved").and_then(|reserved| read_reserved(reserved, &mut settings.kinds));
    node.reserved = reserved.unwrap_or_default();
    read_facts(fields, &mut node.facts);
    node.condition = fields.get("condition").and_then(read_condition).unwrap_or_default();
    node.availability = fields.get("availability").and_then(read_availability).unwrap_or_default();
    node.liveness = fields.get("liveness").and_then(read_liveness).unwrap_or_default();
    node
}

/// One of so many nodes that are alike but for their names and the ends of their paths.
fn named(node: &NodeSpec, count: u64, index: u64) -> NodeSpec {
    let mut node = node.clone();
    if count > 1 {
        node.facts.name = format!("{}-{index}", node.facts.name);
        node.facts.path = node.facts.path.map(|path| path.numbered(index));
    }
    node
}

fn read_facts(fields: &Fields<'_>, facts: &mut NodeFacts) {
    let text = |name| fields.get(name).and_then(|cursor| cursor.name()).map(str::to_owned);
    facts.labels = fields.get("labels").and_then(read_labels).unwrap_or_default();
    facts.engine_labels = fields.get("engine_labels").and_then(read_labels).unwrap_or_default();
    (facts.os, facts.arch) = (text("os"), text("arch"));
    (facts.role, facts.ip) = (text("role"), text("ip"));
    facts.path = fields.get("path").and_then(read_path);
    facts.access = fields.get("access").and_then(access::read).flatten();
    facts.plugins = fields.get("plugins").and_then(read_names).unwrap_or_default();
}

/// Where a node is in the network tree.
pub(super) fn read_path(cursor: Cursor<'_>) -> Option<NodePath> {
    let path = NodePath::parse(cursor.text()?);
    if path.is_none() {
        cursor.fault(FaultKind::Refused, Problem::NoPath.to_string());
    }
    path
}

/// A list of names.
pub(super) fn read_names(cursor: Cursor<'_>) -> Option<Vec<String>> {
    cursor.list(|item| item.name().map(str::to_owned))
}

/// What a node offers; kinds that are not known yet become known. A list instead of an amount names the units.
pub(super) fn read_capacity(cursor: Cursor<'_>, kinds: &mut Kinds) -> Option<(Resources, Units)> {
    let (mut capacity, mut units) = (Resources::new(), Units::default());
    cursor.entries(|name, amount| {
        declare_kind(kinds, name, amount.path(), amount.log());
        let Some(kind) = kinds.id(name) else { return };
        if let Value::List(_) = amount.value() {
            let names = read_names(amount).unwrap_or_default();
            units.offer(kind, names.into_iter().map(Arc::from).collect(), &mut capacity);
        } else if let Some(amount) = amount.amount(kinds.unit(kind)) {
            capacity.set(kind, amount);
        }
    })?;
    Some((capacity, units))
}

/// What others use of a node: amounts without names.
pub(super) fn read_reserved(cursor: Cursor<'_>, kinds: &mut Kinds) -> Option<Resources> {
    let mut reserved = Resources::new();
    cursor.entries(|name, amount| {
        declare_kind(kinds, name, amount.path(), amount.log());
        let Some(kind) = kinds.id(name) else { return };
        if let Some(amount) = amount.amount(kinds.unit(kind)) {
            reserved.set(kind, amount);
        }
    })?;
    Some(reserved)
}

pub(super) fn read_labels(cursor: Cursor<'_>) -> Option<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    cursor.entries(|key, value| {
        if let Some(text) = value.text() {
            labels.insert(key.to_owned(), text.to_owned());
        }
    })?;
    Some(labels)
}

pub(super) fn read_condition(cursor: Cursor<'_>) -> Option<Condition> {
    cursor.one_of(&Condition::NAMES)
}

pub(super) fn read_availability(cursor: Cursor<'_>) -> Option<Availability> {
    const NAMES: [(&str, Availability); 3] =
        [("active", Availability::Active), ("pause", Availability::Pause), ("drain", Availability::Drain)];
    cursor.one_of(&NAMES)
}

pub(super) fn read_liveness(cursor: Cursor<'_>) -> Option<Liveness> {
    const NAMES: [(&str, Liveness); 3] =
        [("ready", Liveness::Ready), ("suspect", Liveness::Suspect), ("down", Liveness::Down)];
    cursor.one_of(&NAMES)
}
