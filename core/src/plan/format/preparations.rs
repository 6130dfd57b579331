//! `prepare`: how long nodes take to prepare for tasks, which only a dry run has to be told.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::document::Fields;
use crate::time::{SECONDS_MAX, Span};

fn allowed() -> RangeInclusive<Span> {
    Span::ZERO..=Span::from_seconds(SECONDS_MAX).unwrap_or_default()
}

/// By the positions of group and role. Roles that could not be read are left out: their job is too.
pub(super) fn read(job: &Fields<'_>) -> BTreeMap<(u16, u16), Span> {
    let mut preparations = BTreeMap::new();
    let Some(groups) = job.get("groups") else { return preparations };
    let mut group_index = 0;
    while let Some(group) = groups.item(group_index) {
        let mut role_index = 0;
        while let Some(roles) = group.field("roles")
            && let Some(role) = roles.item(role_index)
        {
            if let Some(span) = role.field("prepare").and_then(|cursor| cursor.span(allowed())) {
                preparations.insert((group_index as u16, role_index as u16), span);
            }
            role_index += 1;
        }
        group_index += 1;
    }
    preparations
}
