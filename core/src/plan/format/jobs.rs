//! `jobs`: each with its groups, or with so many equal tasks.

use std::sync::Arc;

use crate::constraint::{Constraint, Key};
use crate::document::{Cursor, Fault, FaultKind, Fields, Value};
use crate::plan::ScenarioJob;
use crate::resources::{Kinds, Resources};
use crate::settings::{Settings, bounds};
use crate::spec::{
    GroupSpec, HOPS_MAX, Hops, HostPort, JobSpec, NodeChoice, OnPreempt, OnUnsatisfiable, Platform, PoolRule,
    Relations, RoleSpec, Rules, ShapeSpec, Standing, Start, WantedFilter,
};
use crate::time::{SECONDS_MAX, Span, Time};

use super::command;
use super::names::Names;
use super::nodes::read_names;
use super::{preparations, retries};

const TASKS: u64 = u32::MAX as u64;
const PRIORITIES: std::ops::RangeInclusive<i64> = i32::MIN as i64..=i32::MAX as i64;
pub(super) const VERSION_MAX: u64 = i64::MAX as u64;

/// Reads `jobs`. Names are entered also for jobs that could not be read.
pub(super) fn read_all(
    list: Cursor<'_>,
    settings: &Settings,
    now: Time,
    names: &mut Names,
) -> Vec<ScenarioJob> {
    let mut jobs = Vec::new();
    list.list(|item| {
        let job = read_job(item, settings, now, "`now`");
        enter_name(&item, job.is_some().then_some(jobs.len()), names);
        jobs.extend(job);
        Some(())
    });
    jobs
}

/// Enters the name of the job at `cursor`, if it has one.
pub(super) fn enter_name(cursor: &Cursor<'_>, position: Option<usize>, names: &mut Names) {
    let Some(place) = cursor.field("name") else { return };
    if let Value::Text(name) = place.value() {
        names.enter(name, position, &place);
    }
}

/// Reads one job, which is there at `latest`; `None` when too much is wrong with it.
pub(super) fn read_job(
    cursor: Cursor<'_>,
    settings: &Settings,
    latest: Time,
    moment: &str,
) -> Option<ScenarioJob> {
    cursor.table(|fields| {
        let name = fields.required("name", "the name of the job").and_then(|name| name.name());
        let text = |name| fields.get(name).and_then(|cursor| cursor.text()).unwrap_or_default().to_owned();
        let (requestor, job_set) = (text("requestor").into(), text("job_set"));
        let parent =
            fields.get("parent").map_or(Some(None), |cursor| cursor.name().map(|it| Some(it.to_owned())));
        let (basis, tag) = (text("basis"), text("tag"));
        let standing = read_standing(fields);
        let submitted = read_submitted(fields, latest, moment);
        let (groups, pools) = (read_groups(fields, settings), read_pools(fields));
        let (pool, pools) = pools?;
        let mut spec = JobSpec {
            name: name?.to_owned(),
            requestor,
            standing: standing?,
            groups: groups?,
            relations: Relations { job_set, parent: None, basis, tag }.into(),
            pool,
        };
        spec.confine(&pools);
        spec.note_parts(&settings.kinds);
        spec.prepare_filters(&settings.filters);
        for invalid in spec.problems(settings) {
            fields.log().note_invalid(fields.path(), invalid);
        }
        let preparations = preparations::read(fields);
        Some(ScenarioJob { spec, submitted, parent: parent?, preparations })
    })?
}

/// The pools in which the job may run: one name, several, `any`, or the `same` for all of it.
fn read_pools(fields: &Fields<'_>) -> Option<(Option<PoolRule>, Vec<String>)> {
    let Some(cursor) = fields.get("pool") else { return Some((None, Vec::new())) };
    match cursor.value() {
        Value::Text(text) if text == "any" => Some((Some(PoolRule::Any), Vec::new())),
        Value::Text(text) if text == "same" => Some((Some(PoolRule::Same), Vec::new())),
        Value::Text(_) => cursor.name().map(|name| (None, vec![name.to_owned()])),
        _ => read_each(cursor, |item| item.name().map(str::to_owned)).map(|pools| (None, pools)),
    }
}

/// Where the job queues and how urgent it is.
fn read_standing(fields: &Fields<'_>) -> Option<Standing> {
    let text = |name| fields.get(name).map_or(Some(""), |cursor| cursor.text());
    let (queue, band) = (text("queue"), text("band"));
    let priority = fields.get("priority").map_or(Some(0), |cursor| cursor.integer(PRIORITIES));
    let longest = Span::from_seconds(SECONDS_MAX).unwrap_or_default();
    let lifetime = fields.get("lifetime").map(|cursor| cursor.span(Span::ZERO..=longest));
    let preemptible = fields.get("preemptible").map_or(Some(true), |cursor| cursor.flag());
    let finish_by = fields.get("finish_by").map(|cursor| cursor.time());
    Some(Standing {
        queue: queue?.into(),
        band: band?.into(),
        priority: priority? as i32,
        lifetime: lifetime.map_or(Some(None), |span| span.map(Some))?.into(),
        firm: !preemptible?,
        finish_by: finish_by.map_or(Some(None), |time| time.map(Some))?.into(),
    })
}

fn read_submitted(fields: &Fields<'_>, latest: Time, moment: &str) -> Time {
    let Some(cursor) = fields.get("submitted") else { return latest };
    let Some(submitted) = cursor.time() else { return latest };
    if submitted > latest {
        let latest = latest.as_seconds();
        let expected =
            format!("must not be after {moment}, which is {latest}; what comes later belongs in `events`");
        cursor.fault(FaultKind::Refused, expected);
    }
    submitted
}

/// The groups as they are written out, or the one group that `tasks` and `request` stand for.
fn read_groups(fields: &Fields<'_>, settings: &Settings) -> Option<Vec<GroupSpec>> {
    let (groups, tasks, request) = (fields.get("groups"), fields.get("tasks"), fields.get("request"));
    if let Some(groups) = groups {
        let either = "a job has either `groups` or `tasks` and `request`, not both";
        for shorthand in tasks.iter().chain(&request) {
            shorthand.fault(FaultKind::Refused, either);
        }
        return read_each(groups, |group| read_group(group, &settings.kinds));
    }
    let request = request.map_or(Some(Resources::new()), |request| request.amounts(&settings.kinds));
    let Some(tasks) = tasks else {
        let field = fields.path().field("groups");
        let expected = "the groups of the job, or `tasks` and `request`";
        fields.log().note(|| Fault::new(field, FaultKind::Missing, None, expected));
        return None;
    };
    let tasks = tasks.whole(1..=settings.limits.tasks_per_job.min(TASKS))?;
    Some(JobSpec::bag("", tasks as u32, request?).groups)
}

/// Every element of a list, or `None` when one of them could not be read: the rules for the whole
/// would then judge something that nobody wrote.
pub(super) fn read_each<T>(
    list: Cursor<'_>,
    mut read: impl FnMut(Cursor<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut is_complete = true;
    let items = list.list(|item| {
        let value = read(item);
        is_complete &= value.is_some();
        value
    })?;
    is_complete.then_some(items)
}

fn read_group(cursor: Cursor<'_>, kinds: &Kinds) -> Option<GroupSpec> {
    const STARTS: [(&str, Start); 2] = [("atomic", Start::Atomic), ("independent", Start::Independent)];
    cursor.table(|fields| {
        let name = fields.required("name", "the name of the group").and_then(|name| name.name());
        let start = fields.get("start").map_or(Some(Start::Independent), |start| start.one_of(&STARTS));
        let list = fields.required("roles", "the roles of the group");
        let roles =
            list.and_then(|roles| read_each(roles, |role| read_role(role, start.unwrap_or_default(), kinds)));
        let hops = read_hops(fields);
        let freeze = read_optional(fields, "freeze", |cursor| cursor.span(bounds::FREEZE.range()));
        let pool = read_pool(fields);
        let unable = fields.get("on_unsatisfiable").map(|cursor| cursor.one_of(&OnUnsatisfiable::NAMES));
        let on_unsatisfiable = unable.map_or(Some(None), |unable| unable.map(Some))?;
        let (name, hops, freeze, pool) = (name?.to_owned(), hops?, freeze?.into(), pool?);
        let mut group =
            GroupSpec { name, start: start?, hops, freeze, pool, on_unsatisfiable, roles: roles? };
        lodge_guests(fields, &list?, &mut group);
        Some(group)
    })?
}

/// Roles whose tasks are guests of those of another role, which may come later in the file.
fn lodge_guests(fields: &Fields<'_>, list: &Cursor<'_>, group: &mut GroupSpec) {
    for index in 0..group.roles.len() {
        let Some(role) = list.item(index) else { continue };
        let Some(host) = role.field("guest_of") else { continue };
        let Value::Text(host) = host.value() else { continue };
        if let Err(invalid) = group.lodge(index, host, &format!("roles[{index}].guest_of")) {
            fields.log().note_invalid(fields.path(), invalid);
        }
    }
}

/// A field that may be left out: `None` if it is there and could not be read.
fn read_optional<T>(
    fields: &Fields<'_>,
    name: &'static str,
    read: impl Fn(Cursor<'_>) -> Option<T>,
) -> Option<Option<T>> {
    fields.get(name).map_or(Some(None), |cursor| read(cursor).map(Some))
}

/// How far apart tasks may run; nothing asks for nothing.
fn read_hops(fields: &Fields<'_>) -> Option<Option<Hops>> {
    let Some(cursor) = fields.get("hops") else { return Some(None) };
    let hops = match cursor.value() {
        Value::Integer(_) | Value::Float(_) => {
            cursor.whole(0..=u64::from(HOPS_MAX)).map(|hops| Hops::AtMost(hops as u8))
        }
        Value::Text(text) if text == "fewest" => Some(Hops::Fewest),
        _ => {
            let expected = format!("\"fewest\" or a whole number of hops between 0 and {HOPS_MAX}");
            cursor.fault(FaultKind::Refused, expected);
            None
        }
    };
    hops.map(Some)
}

/// Whether everything stays in one pool, if it is said.
fn read_pool(fields: &Fields<'_>) -> Option<Option<PoolRule>> {
    fields.get("pool").map_or(Some(None), |pool| pool.one_of(&PoolRule::NAMES).map(Some))
}

fn read_role(cursor: Cursor<'_>, start: Start, kinds: &Kinds) -> Option<RoleSpec> {
    cursor.table(|fields| {
        let name = fields.required("name", "the name of the role").and_then(|name| name.name());
        let sizes = read_sizes(fields, start);
        let initial = read_optional(fields, "initial", |cursor| cursor.whole(0..=TASKS));
        let request = fields.get("request").map_or(Some(Resources::new()), |cursor| cursor.amounts(kinds));
        let service = read_service(fields).map(Box::new);
        let longest = Span::from_seconds(SECONDS_MAX).unwrap_or_default();
        let duration = fields.get("duration").and_then(|cursor| cursor.span(Span::ZERO..=longest));
        // Not a part of the role: see `preparations`.
        fields.get("prepare");
        let task_key = fields.get("task_key").and_then(|cursor| cursor.name()).map(Into::into);
        let timeout = fields.get("timeout").and_then(|cursor| cursor.span(bounds::RUN.range()));
        let (command, retries) = (command::read(fields), retries::read(fields));
        let rules = read_rules(fields);
        let company = read_company(fields);
        let hops = read_hops(fields);
        let auxiliary = fields.get("auxiliary").map_or(Some(false), |cursor| cursor.flag());
        let guest = fields.get("guest_of").map_or(Some(""), |cursor| cursor.name());
        let on_preempt = read_optional(fields, "on_preempt", |cursor| cursor.one_of(&OnPreempt::NAMES));
        let (min, max) = sizes?;
        let shape =
            Arc::new(ShapeSpec { service, request: request?, rules: rules?.into(), hops: hops?, ..company? });
        let (command, retries) = (command?, retries?);
        Some(RoleSpec {
            name: name?.to_owned(),
            min,
            max,
            initial: initial?.map(|initial| initial as u32),
            shape,
            duration: duration.into(),
            task_key,
            timeout: timeout.into(),
            command,
            retries,
            on_preempt: on_preempt?,
            auxiliary: guest.and(auxiliary)?,
        })
    })?
}

/// Which nodes are preferred, and what the tasks ask of the company they keep.
fn read_company(fields: &Fields<'_>) -> Option<ShapeSpec> {
    let spread = read_parsed(fields, "spread", Key::parse, "a fact of a node, such as `node.labels.rack`");
    let port = "a port between 1 and 65535 with its protocol, such as `80/tcp` or `53/udp`";
    let ports = read_parsed(fields, "ports", HostPort::parse, port);
    let most = fields.get("max_per_node").map_or(Some(0), |cursor| cursor.whole(0..=TASKS));
    let exclusive = fields.get("exclusive").map_or(Some(false), |cursor| cursor.flag());
    let placement = fields.get("placement").map(|cursor| cursor.one_of(&NodeChoice::NAMES));
    let snapshot = fields.get("snapshot").map(|cursor| cursor.name().map(Arc::from));
    Some(ShapeSpec {
        placement: placement.map_or(Some(None), |placement| placement.map(Some))?,
        snapshot: snapshot.map_or(Some(None), |snapshot| snapshot.map(Some))?,
        spread: spread?.into(),
        ports: ports?.into(),
        max_per_node: most? as u32,
        exclusive: exclusive?,
        ..ShapeSpec::default()
    })
}

/// A list of texts that all mean something.
fn read_parsed<T>(
    fields: &Fields<'_>,
    name: &'static str,
    parse: impl Fn(&str) -> Option<T>,
    expected: &str,
) -> Option<Vec<T>> {
    let Some(list) = fields.get(name) else { return Some(Vec::new()) };
    read_each(list, |item| {
        let parsed = parse(item.text()?);
        if parsed.is_none() {
            item.fault(FaultKind::Refused, expected);
        }
        parsed
    })
}

/// What the role wants of filters of the service, by their names.
fn read_filters(cursor: Cursor<'_>) -> Option<Vec<WantedFilter>> {
    let (mut filters, mut all) = (Vec::new(), 0);
    cursor.entries(|name, wanted| {
        all += 1;
        filters.extend(wanted.text().map(|wanted| WantedFilter::new(name, wanted)));
    })?;
    (filters.len() == all).then_some(filters)
}

/// On which nodes the tasks may run.
fn read_rules(fields: &Fields<'_>) -> Option<Rules> {
    let constraints = fields.get("constraints").map_or(Some(Vec::new()), |list| {
        read_each(list, |item| match Constraint::parse(item.text()?) {
            Ok(constraint) => Some(constraint),
            Err(error) => {
                item.fault(FaultKind::Refused, error.to_string());
                None
            }
        })
    });
    let platform = "an operating system and an architecture such as `linux/amd64`";
    let platforms = read_parsed(fields, "platforms", Platform::parse, platform);
    let plugins = fields.get("plugins").map_or(Some(Vec::new()), read_names);
    let node = fields.get("node").map(|cursor| cursor.name().map(str::to_owned));
    let node = node.map_or(Some(None), |name| name.map(Some));
    let filters = fields.get("filters").map_or(Some(Vec::new()), read_filters);
    Some(Rules {
        filters: filters?,
        constraints: constraints?,
        platforms: platforms?,
        plugins: plugins?,
        node: node?,
        ..Rules::default()
    })
}

/// The smallest and the largest number of tasks. One given number stands for both, except that
/// independent tasks need no company.
fn read_sizes(fields: &Fields<'_>, start: Start) -> Option<(u32, u32)> {
    let min = fields.get("min").map(|cursor| cursor.whole(0..=TASKS));
    let max = fields.get("max").map(|cursor| cursor.whole(1..=TASKS));
    let (min, max) = match (min, max) {
        (None, None) => {
            let field = fields.path().field("max");
            fields.log().note(|| Fault::new(field, FaultKind::Missing, None, "how many tasks there are"));
            return None;
        }
        (Some(min), None) => (min?, min?),
        (None, Some(max)) if start == Start::Atomic => (max?, max?),
        (None, Some(max)) => (0, max?),
        (Some(min), Some(max)) => (min?, max?),
    };
    Some((min as u32, max as u32))
}

fn read_service(fields: &Fields<'_>) -> Option<(String, u64)> {
    let service = fields.get("service").map(|cursor| cursor.name());
    let version = fields.get("version");
    let number = version.and_then(|cursor| cursor.whole(0..=VERSION_MAX)).unwrap_or(0);
    if let (Some(version), None) = (version, service) {
        version.fault(FaultKind::Refused, "a version needs a `service` that it is a version of");
    }
    Some((service??.to_owned(), number))
}
