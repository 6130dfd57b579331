//! `failures`: what failed on which node before the dry run begins.

use crate::document::{Cursor, FaultKind};
use crate::id::NodeId;
use crate::messages::PastFailure;
use crate::time::Time;

use super::jobs::VERSION_MAX;
use super::names::Names;

/// Oldest first.
pub(super) fn read_all(list: Cursor<'_>, now: Time, node_names: &Names) -> Vec<PastFailure> {
    let read = |item: Cursor<'_>| {
        item.table(|fields| {
            let service =
                fields.required("service", "the name of a service").and_then(|cursor| cursor.name());
            let version = fields.get("version").map_or(Some(0), |cursor| cursor.whole(0..=VERSION_MAX));
            let node = fields.required("node", "the name of a node");
            let node = node.and_then(|cursor| node_names.find(cursor.name()?, &cursor));
            let times = fields.required("at", "a list of times in seconds");
            let times = times.and_then(|cursor| cursor.list(|time| read_time(time, now)));
            let (service, node) = ((service?.to_owned(), version?), NodeId(node? as u32));
            let one = |at| PastFailure { service: service.clone(), node, at };
            Some(times?.into_iter().map(one).collect::<Vec<_>>())
        })?
    };
    let mut failures: Vec<PastFailure> = list.list(read).unwrap_or_default().concat();
    failures.sort_by_key(|failure| failure.at);
    failures
}

fn read_time(cursor: Cursor<'_>, now: Time) -> Option<Time> {
    let at = cursor.time()?;
    if at > now {
        cursor.fault(FaultKind::Refused, format!("must not be after `now`, which is {}", now.as_seconds()));
    }
    Some(at)
}
