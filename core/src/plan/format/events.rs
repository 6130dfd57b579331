//! `events`: what happens after the dry run has begun, in order of time.

use std::collections::BTreeSet;

use crate::document::{Cursor, Fault, FaultKind, FaultLog, Fields, Value};
use crate::messages::Cancelled;
use crate::plan::{Happening, ScenarioEvent, Which};
use crate::resources::Kinds;
use crate::settings::{Settings, bounds};
use crate::spec::{NodePatch, PoolState, Units};
use crate::time::Time;

use super::names::Names;
use super::settings_course::SettingsCourse;
use super::{access, jobs, nodes, reprioritise, resize};

const ACTIONS: [&str; 12] = [
    "finish",
    "fail",
    "idle",
    "node",
    "pool",
    "submit",
    "cancel",
    "abort",
    "extend",
    "reprioritise",
    "resize",
    "settings",
];
/// Those that name a job.
const ABOUT_JOBS: [&str; 7] = ["finish", "fail", "cancel", "abort", "extend", "reprioritise", "resize"];

/// An event as it stands in the file. What could not be read keeps its place in time, because later
/// events may refer to it.
struct Entry {
    at: Time,
    position: usize,
    what: Option<Happening>,
}

/// Where an event stands, and what it may refer to.
struct Place<'a> {
    now: Time,
    /// Its position in the file.
    position: usize,
    course: &'a SettingsCourse,
    node_names: &'a Names,
    /// A node comes by it.
    comes: bool,
}

/// Makes the kinds known that nodes come to offer by an event; what is wrong with their names is
/// noted when the event is read.
pub(super) fn declare_kinds(events: &Value, kinds: &mut Kinds) {
    let log = FaultLog::new();
    Cursor::root(events, &log).list(|event| {
        let node = event.field("node")?;
        let capacity = node.field("capacity")?;
        nodes::read_capacity(capacity, kinds).map(drop)
    });
}

pub(super) fn read_all(
    list: Cursor<'_>,
    settings: &Settings,
    now: Time,
    mut job_names: Names,
    mut node_names: Names,
) -> Vec<ScenarioEvent> {
    let coming = nodes_to_come(list, &mut node_names);
    let course = SettingsCourse::read(list, settings);
    let mut position = 0;
    let entries = list.list(|item| {
        let (course, node_names, comes) = (&course, &node_names, coming.contains(&position));
        let place = Place { now, position, course, node_names, comes };
        position += 1;
        let (at, what) = item.table(|fields| read_event(fields, &place))?;
        Some(Entry { at: at?, position: position - 1, what })
    });
    let mut entries = entries.unwrap_or_default();
    entries.sort_by_key(|entry| entry.at);
    for entry in &entries {
        if let Some(item) = list.item(entry.position) {
            check_jobs(&item, &mut job_names);
        }
    }
    entries.into_iter().filter_map(|entry| Some(ScenarioEvent { at: entry.at, what: entry.what? })).collect()
}

/// The positions of the events by which nodes come: of those that name a node that is not there from the
/// start, the first that says what it offers.
fn nodes_to_come(list: Cursor<'_>, names: &mut Names) -> BTreeSet<usize> {
    let log = FaultLog::new();
    let mut position = 0;
    let found = Cursor::root(list.value(), &log).list(|event| {
        position += 1;
        let node = event.field("node")?;
        node.field("capacity")?;
        let name = node.field("name")?.name()?;
        (!names.knows(name)).then_some((event.field("at")?.time()?, position - 1, name.to_owned()))
    });
    let mut found = found.unwrap_or_default();
    found.sort();
    let mut coming = BTreeSet::new();
    for (_, position, name) in found {
        let place = list.item(position);
        if !names.knows(&name) && place.is_some_and(|place| names.enter(&name, None, &place)) {
            coming.insert(position);
        }
    }
    coming
}

/// Jobs may be named by events that come after their submission.
fn check_jobs(event: &Cursor<'_>, names: &mut Names) {
    if let Some(job) = event.field("submit") {
        jobs::enter_name(&job, None, names);
    }
    for action in ABOUT_JOBS {
        let Some(action) = event.field(action) else { continue };
        let Some(place) = action.field("job") else { continue };
        if let Value::Text(name) = place.value()
            && !name.is_empty()
        {
            names.find(name, &place);
        }
    }
}

fn read_event(fields: &Fields<'_>, place: &Place<'_>) -> (Option<Time>, Option<Happening>) {
    let at = fields.required("at", "seconds").and_then(|cursor| read_at(cursor, place.now));
    let given = ACTIONS.into_iter().filter_map(|action| Some((action, fields.get(action)?)));
    let given: Vec<(&str, Cursor<'_>)> = given.collect();
    if given.len() > 1 {
        let rule = "only one thing may happen in one event";
        fields.log().note(|| Fault::new(fields.path(), FaultKind::Refused, None, rule));
    } else if given.is_empty() {
        let expected = "what happens, such as `finish`, `submit` or `cancel`";
        fields.log().note(|| Fault::new(fields.path(), FaultKind::Missing, None, expected));
    }
    let read = |(action, cursor)| read_action(action, cursor, at, place);
    // All of them are read, so that everything that is wrong is told.
    let happenings: Vec<Option<Happening>> = given.into_iter().map(read).collect();
    (at, happenings.into_iter().flatten().next())
}

fn read_action(action: &str, cursor: Cursor<'_>, at: Option<Time>, place: &Place<'_>) -> Option<Happening> {
    let (moment, node_names) = (at.unwrap_or(Time::NEVER), place.node_names);
    // What is asked for is judged by the settings of that moment.
    let settings = place.course.at(moment, place.position);
    match action {
        "finish" => read_finish(cursor),
        "fail" => read_fail(cursor, node_names),
        "idle" => read_idle(cursor, node_names),
        "node" if place.comes => read_coming_node(cursor, settings),
        "node" => read_node(cursor, settings, node_names),
        "settings" => place.course.changed_by(moment, place.position).map(Happening::Settings),
        "submit" => {
            let job = jobs::read_job(cursor, settings, moment, "the event")?;
            Some(Happening::Submit(Box::new(job)))
        }
        "abort" => read_abort(cursor),
        "reprioritise" => reprioritise::read(cursor, settings),
        "extend" => read_extend(cursor),
        "pool" => read_pool(cursor),
        "resize" => resize::read(cursor),
        _ => read_cancel(cursor, node_names),
    }
}

fn read_at(cursor: Cursor<'_>, now: Time) -> Option<Time> {
    let at = cursor.time()?;
    if at < now {
        let expected = format!("must not be before `now`, which is {}", now.as_seconds());
        cursor.fault(FaultKind::Refused, expected);
    }
    Some(at)
}

fn read_job_name(fields: &Fields<'_>) -> Option<String> {
    fields.required("job", "the name of a job")?.name().map(str::to_owned)
}

fn read_finish(cursor: Cursor<'_>) -> Option<Happening> {
    cursor.table(|fields| {
        let (job, count) = (read_job_name(fields), read_count(fields));
        Some(Happening::Finish { job: job?, count: count? })
    })?
}

fn read_count(fields: &Fields<'_>) -> Option<u32> {
    let count = fields.get("count").map_or(Some(1), |cursor| cursor.whole(1..=u64::from(u32::MAX)));
    count.map(|count| count as u32)
}

/// Groups and roles are looked up when it happens, because jobs may come by events.
fn read_fail(cursor: Cursor<'_>, node_names: &Names) -> Option<Happening> {
    cursor.table(|fields| {
        let (job, count) = (read_job_name(fields), read_count(fields));
        let [group, role, node] = ["group", "role", "node"].map(|field| fields.get(field));
        let name = |place: Option<Cursor<'_>>| place?.name().map(str::to_owned);
        let which = Which { group: name(group), role: name(role), node: name(node) };
        if let (Some(name), Some(place)) = (&which.node, node) {
            node_names.find(name, &place);
        }
        Some(Happening::Fail { job: job?, count: count?, which })
    })?
}

fn read_idle(cursor: Cursor<'_>, node_names: &Names) -> Option<Happening> {
    cursor.table(|fields| {
        let place = fields.required("node", "the name of a node")?;
        let node = place.name()?;
        node_names.find(node, &place)?;
        Some(Happening::Idle { node: node.to_owned() })
    })?
}

fn read_abort(cursor: Cursor<'_>) -> Option<Happening> {
    cursor.table(|fields| {
        let job = read_job_name(fields);
        let reason = fields.get("reason").map_or(Some(""), |cursor| cursor.text());
        Some(Happening::Abort { job: job?, reason: reason?.to_owned() })
    })?
}

/// Lets what runs of a job run for so many seconds from then on.
fn read_extend(cursor: Cursor<'_>) -> Option<Happening> {
    cursor.table(|fields| {
        let seconds = fields.required("seconds", "seconds");
        let span = seconds.and_then(|cursor| cursor.span(bounds::RUN.range()));
        Some(Happening::Extend { job: read_job_name(fields)?, span: span? })
    })?
}

fn read_pool(cursor: Cursor<'_>) -> Option<Happening> {
    cursor.table(|fields| {
        let name = fields.required("name", "the name of a pool").and_then(|name| name.name());
        let state = fields.required("state", "`enabled`, `cordoned` or `disabled`");
        let state = state.and_then(|state| state.one_of(&PoolState::NAMES));
        Some(Happening::Pool { name: name?.to_owned(), state: state? })
    })?
}

/// A job, with its parts if they are asked for, or everything of a job set, of a queue or on a node.
fn read_cancel(cursor: Cursor<'_>, node_names: &Names) -> Option<Happening> {
    cursor.table(|fields| {
        let [set, queue, node] = ["job_set", "queue", "node"].map(|field| fields.get(field));
        let children = fields.get("children").map_or(Some(false), |cursor| cursor.flag());
        let others = [set, queue, node].iter().flatten().count();
        if others > 1 || (others == 1 && fields.get("job").is_some()) {
            cursor.fault(
                FaultKind::Refused,
                "one of `job`, `job_set`, `queue` and `node` is cancelled, not several",
            );
            return None;
        }
        if let Some(set) = set {
            return Some(Happening::CancelAll(Cancelled::Set(set.name()?.to_owned())));
        }
        if let Some(queue) = queue {
            return Some(Happening::CancelAll(Cancelled::Queue(queue.name()?.into())));
        }
        if let Some(place) = node {
            let node = place.name()?;
            node_names.find(node, &place)?;
            return Some(Happening::CancelOnNode { node: node.to_owned() });
        }
        Some(Happening::Cancel { job: read_job_name(fields)?, children: children? })
    })?
}

/// A node that was not there before.
fn read_coming_node(cursor: Cursor<'_>, settings: &Settings) -> Option<Happening> {
    // All kinds of the file are known by now.
    let mut settings = settings.clone();
    cursor.table(|fields| {
        let name = fields.required("name", "the name of the node")?.name()?;
        let node = nodes::read_spec(name, fields, &mut settings);
        for invalid in node.problems(&settings) {
            fields.log().note_invalid(fields.path(), invalid);
        }
        Some(Happening::AddNode(Box::new(node)))
    })?
}

fn read_node(cursor: Cursor<'_>, settings: &Settings, names: &Names) -> Option<Happening> {
    // All kinds of the file are known by now.
    let mut kinds = settings.kinds.clone();
    cursor.table(|fields| {
        let name_at = fields.required("name", "the name of a node");
        let name = name_at.and_then(|cursor| cursor.name());
        if let (Some(name), Some(place)) = (name, name_at) {
            names.find(name, &place);
        }
        let capacity = fields.get("capacity");
        let capacity = capacity.and_then(|cursor| nodes::read_capacity(cursor, &mut kinds));
        let (capacity, units) = capacity.map_or((None, Units::default()), |(all, units)| (Some(all), units));
        let text = |name| fields.get(name).and_then(|cursor| cursor.name()).map(str::to_owned);
        let reserved = fields.get("reserved");
        let patch = NodePatch {
            capacity,
            units,
            reserved: reserved.and_then(|cursor| nodes::read_reserved(cursor, &mut kinds)),
            labels: fields.get("labels").and_then(nodes::read_labels),
            pool: text("pool"),
            engine_labels: fields.get("engine_labels").and_then(nodes::read_labels),
            os: text("os"),
            arch: text("arch"),
            role: text("role"),
            ip: text("ip"),
            plugins: fields.get("plugins").and_then(nodes::read_names),
            path: fields.get("path").and_then(nodes::read_path),
            access: fields.get("access").and_then(access::read),
            condition: fields.get("condition").and_then(nodes::read_condition),
            reason: fields.get("reason").and_then(|cursor| cursor.text()).map(str::to_owned),
            availability: fields.get("availability").and_then(nodes::read_availability),
        };
        let liveness = fields.get("liveness").and_then(nodes::read_liveness);
        for invalid in patch.problems(settings) {
            fields.log().note_invalid(fields.path(), invalid);
        }
        Some(Happening::Node { name: name?.to_owned(), patch: Box::new(patch), liveness })
    })?
}
