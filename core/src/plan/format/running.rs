//! `running`: tasks that hold a node when the dry run begins.

use std::collections::BTreeMap;

use crate::document::{Cursor, FaultKind, Fields, suggest};
use crate::plan::{RunningTasks, ScenarioJob};
use crate::time::Time;

use super::names::Names;

/// How many tasks of each role run, to see that there are not more than the role has.
type Counts = BTreeMap<(usize, u16, u16), u64>;

pub(super) fn read_all(
    list: Cursor<'_>,
    now: Time,
    jobs: &[ScenarioJob],
    job_names: &Names,
    node_names: &Names,
) -> Vec<RunningTasks> {
    let mut counts = Counts::new();
    let read = |item: Cursor<'_>| {
        item.table(|fields| {
            let job = fields.required("job", "the name of a job");
            let job = job.and_then(|cursor| job_names.find(cursor.name()?, &cursor));
            let role = read_role(fields, job.map(|position| &jobs[position]));
            let node = match fields.get("node") {
                Some(cursor) => cursor.name().and_then(|name| node_names.find(name, &cursor)).map(Some),
                None => Some(None),
            };
            let started = read_started(fields, now);
            let count_at = fields.get("count");
            let count = count_at.map_or(Some(1), |cursor| cursor.whole(1..=u64::from(u32::MAX)))?;
            let (job, (group, role)) = (job?, role?);
            let running = counts.entry((job, group, role)).or_insert(0);
            *running += count;
            let tasks = jobs[job].spec.groups[usize::from(group)].roles[usize::from(role)].max;
            if *running > u64::from(tasks) {
                let expected = format!("the role has {tasks} tasks, {running} of them would run");
                count_at.unwrap_or(item).fault(FaultKind::Refused, expected);
            }
            Some(RunningTasks { job, group, role, count: count as u32, node: node?, started })
        })?
    };
    list.list(read).unwrap_or_default()
}

fn read_started(fields: &Fields<'_>, now: Time) -> Time {
    let Some(cursor) = fields.get("started") else { return now };
    let Some(started) = cursor.time() else { return now };
    if started > now {
        let expected = format!("must not be after `now`, which is {}", now.as_seconds());
        cursor.fault(FaultKind::Refused, expected);
    }
    started
}

/// The positions of group and role; where there is only one, it need not be named.
fn read_role(fields: &Fields<'_>, job: Option<&ScenarioJob>) -> Option<(u16, u16)> {
    let (group_at, role_at) = (fields.get("group"), fields.get("role"));
    let groups = &job?.spec.groups;
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let group = find(fields, "group", group_at, &names)?;
    let roles = &groups[usize::from(group)].roles;
    let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
    Some((group, find(fields, "role", role_at, &names)?))
}

fn find(fields: &Fields<'_>, what: &'static str, place: Option<Cursor<'_>>, names: &[&str]) -> Option<u16> {
    let place = match (place, names) {
        (None, [_]) => return Some(0),
        (None, _) => fields.required(what, &format!("one of {}", suggest("", names.iter().copied())))?,
        (Some(place), _) => place,
    };
    let name = place.name()?;
    let position = names.iter().position(|known| *known == name);
    if position.is_none() {
        let known = suggest(name, names.iter().copied());
        place.fault(FaultKind::UnknownName, format!("the name of a {what} of this job: {known}"));
    }
    position.and_then(|position| u16::try_from(position).ok())
}
