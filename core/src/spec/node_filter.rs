//! Filters of the embedding service, which knows things about its nodes that nobody else knows.
//!
//! A role names a filter and says what it wants of it; the filter says of each node whether it will do, and
//! if not, why. Its verdict depends on nothing but what it was asked and the facts of the node: it is
//! remembered for both, and asked for again only when the facts change.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::settings::Settings;

use super::limits::check_length;
use super::{Invalid, JobSpec, NodeFacts, Problem};

/// Decides which nodes will do for tasks of roles that name it.
///
/// What it says must depend on its arguments alone: not on time, chance, or anything that changes. It is
/// asked on the thread that decides, so it must not wait for anything, and must not panic.
pub trait NodeFilter: Send + Sync + 'static {
    /// The name by which roles ask for it. No two filters of a runtime share one.
    fn name(&self) -> &str;

    /// Gets ready to judge nodes for tasks that want this, once for each shape. An error refuses the job: it
    /// says what the filter can be asked for.
    fn prepare(&self, wanted: &str) -> Result<Box<dyn NodeTest>, String>;

    /// Whether it also judges for roles that do not name it, as if they had named it and wanted `""`.
    fn is_for_all(&self) -> bool {
        false
    }

    /// Whether it looks at the name, the address or the path of a node. Where no filter does, nodes that are
    /// alike but for these are looked at once when somebody asks why a task waits.
    fn looks_at_names(&self) -> bool {
        true
    }
}

/// Judges nodes for tasks of one shape.
pub trait NodeTest: Send + Sync + 'static {
    /// Whether the node will do. If not, why, in words that follow the name of the node, such as
    /// "has the driver 470".
    fn judge(&self, node: &NodeFacts) -> Result<(), String>;
}

impl<T> NodeTest for T
where
    T: Fn(&NodeFacts) -> Result<(), String> + Send + Sync + 'static,
{
    fn judge(&self, node: &NodeFacts) -> Result<(), String> {
        self(node)
    }
}

type Known = BTreeMap<Arc<str>, Option<Arc<dyn NodeFilter>>>;

/// The filters of a runtime, by name. What is stored of them are the names: whoever reads them brings the
/// filters themselves.
#[derive(Clone, Default)]
pub struct Filters(Option<Arc<Known>>);

/// The filters that judge a node, in the hands of the node. They are no part of what it is.
#[derive(Clone, Debug, Default)]
pub struct Judges(pub Filters);

/// What a role wants of one filter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WantedFilter {
    pub name: Arc<str>,
    /// In words that the filter understands.
    pub wanted: Arc<str>,
    #[serde(skip)]
    prepared: Option<Prepared>,
}

#[derive(Clone)]
struct Prepared {
    test: Arc<dyn NodeTest>,
    looks_at_names: bool,
}

/// Bytes of what is asked of a filter.
const WANTED_MAX: u64 = 4_096;
/// Bytes of a verdict that are shown.
const VERDICT_MAX: usize = 512;

impl Filters {
    pub fn new(filters: impl IntoIterator<Item = Arc<dyn NodeFilter>>) -> Result<Filters, Invalid> {
        let mut known = Known::new();
        for filter in filters {
            let name: Arc<str> = filter.name().into();
            if name.is_empty() {
                return Err(Invalid::new("filters", "\"\"", Problem::Empty));
            }
            if known.insert(Arc::clone(&name), Some(filter)).is_some() {
                return Err(Invalid::new("filters", name, Problem::Duplicate));
            }
        }
        Ok(Filters((!known.is_empty()).then(|| Arc::new(known))))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().flat_map(|known| known.keys())
    }

    fn get(&self, name: &str) -> Option<&Arc<dyn NodeFilter>> {
        self.0.as_ref()?.get(name)?.as_ref()
    }

    /// The first of these filters that is not among the given ones.
    pub fn missing_in<'a>(&'a self, given: &Filters) -> Option<&'a Arc<str>> {
        self.names().find(|name| given.get(name).is_none())
    }

    /// Whether both are the same filters, and not only of the same names.
    pub fn are(&self, others: &Filters) -> bool {
        match (&self.0, &others.0) {
            (None, None) => true,
            (Some(these), Some(others)) => Arc::ptr_eq(these, others),
            _ => false,
        }
    }

    /// Those that judge also for roles that do not name them.
    fn for_all(&self) -> impl Iterator<Item = &Arc<dyn NodeFilter>> {
        self.0.iter().flat_map(|known| known.values()).flatten().filter(|filter| filter.is_for_all())
    }
}

impl WantedFilter {
    pub fn new(name: impl Into<Arc<str>>, wanted: impl Into<Arc<str>>) -> WantedFilter {
        WantedFilter { name: name.into(), wanted: wanted.into(), prepared: None }
    }

    pub(super) fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    pub(super) fn looks_at_names(&self) -> bool {
        self.prepared.as_ref().is_none_or(|prepared| prepared.looks_at_names)
    }

    /// Gets ready to judge; without it every verdict gets ready for itself.
    pub(super) fn prepare(&mut self, filters: &Filters) -> Result<(), Problem> {
        if self.is_prepared() {
            return Ok(());
        }
        let Some(filter) = filters.get(&self.name) else {
            return Err(Problem::UnknownFilter { known: known_names(filters) });
        };
        let test = filter.prepare(&self.wanted).map_err(|why| Problem::FilterRefuses { why })?;
        self.prepared = Some(Prepared { test: test.into(), looks_at_names: filter.looks_at_names() });
        Ok(())
    }

    /// Why the node will not do, if it will not.
    pub fn judge(&self, node: &NodeFacts) -> Result<(), String> {
        let verdict = match &self.prepared {
            Some(prepared) => prepared.test.judge(node),
            None => match node.judges.0.get(&self.name) {
                Some(filter) => filter.prepare(&self.wanted).and_then(|test| test.judge(node)),
                None => Err("cannot be judged: the filter is not here".to_owned()),
            },
        };
        verdict.map_err(|mut why| {
            let end = (0..=VERDICT_MAX.min(why.len())).rev().find(|end| why.is_char_boundary(*end));
            why.truncate(end.unwrap_or(0));
            why
        })
    }

    fn key(&self) -> (&str, &str) {
        (&self.name, &self.wanted)
    }
}

fn known_names(filters: &Filters) -> String {
    let names: Vec<String> = filters.names().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "there are none".to_owned() } else { format!("there are {}", names.join(", ")) }
}

/// What is wrong with what a role wants of filters.
pub(super) fn note_problems(
    wanted: &[WantedFilter],
    field: impl Display + Copy,
    settings: &Settings,
    problems: &mut Vec<Invalid>,
) {
    let mut names = BTreeSet::new();
    for filter in wanted {
        let field = format!("{field}.filters.{}", filter.name);
        if !names.insert(&filter.name) {
            problems.push(Invalid::new(&field, &filter.name, Problem::Duplicate));
        }
        problems.extend(check_length(&field, &filter.wanted, WANTED_MAX));
        if let Err(problem) = filter.clone().prepare(&settings.filters) {
            problems.push(Invalid::new(&field, format!("`{}`", filter.wanted), problem));
        }
    }
}

impl JobSpec {
    /// Gets the filters ready that its roles name, and adds those that judge for all. What cannot be got
    /// ready is for [`JobSpec::problems`] to say.
    pub fn prepare_filters(&mut self, filters: &Filters) {
        if filters.is_empty() {
            return;
        }
        for role in self.groups.iter_mut().flat_map(|group| &mut group.roles) {
            let shape = Arc::make_mut(&mut role.shape);
            if shape.guest_of.is_none() {
                for filter in filters.for_all() {
                    if shape.rules.filters.iter().all(|wanted| *wanted.name != *filter.name()) {
                        shape.rules.filters.push(WantedFilter::new(filter.name(), ""));
                    }
                }
            }
            if !shape.rules.filters.is_empty() {
                shape.rules.filters.sort();
                shape.rules.prepare_filters(filters);
            }
        }
    }
}

impl fmt::Debug for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}

impl PartialEq for Filters {
    fn eq(&self, other: &Filters) -> bool {
        self.names().eq(other.names())
    }
}

impl Eq for Filters {}

impl Serialize for Filters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names: Vec<&str> = self.names().map(|name| &**name).collect();
        names.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Filters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Filters, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let known: Known = names.into_iter().map(|name| (name.into(), None)).collect();
        Ok(Filters((!known.is_empty()).then(|| Arc::new(known))))
    }
}

impl PartialEq for Judges {
    fn eq(&self, _: &Judges) -> bool {
        true
    }
}

impl Eq for Judges {}

impl PartialOrd for Judges {
    fn partial_cmp(&self, other: &Judges) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Judges {
    fn cmp(&self, _: &Judges) -> Ordering {
        Ordering::Equal
    }
}

impl PartialEq for WantedFilter {
    fn eq(&self, other: &WantedFilter) -> bool {
        self.key() == other.key()
    }
}

impl Eq for WantedFilter {}

impl PartialOrd for WantedFilter {
    fn partial_cmp(&self, other: &WantedFilter) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for WantedFilter {
    fn cmp(&self, other: &WantedFilter) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Resources;
    use crate::spec::{Filter, Rules};

    struct Letter;

    impl NodeFilter for Letter {
        fn name(&self) -> &str {
            "letter"
        }

        fn prepare(&self, wanted: &str) -> Result<Box<dyn NodeTest>, String> {
            let letter = wanted.chars().next().ok_or("a letter")?;
            Ok(Box::new(move |node: &NodeFacts| match node.name.contains(letter) {
                true => Ok(()),
                false => Err(format!("has no `{letter}` in its name")),
            }))
        }
    }

    fn filters() -> Filters {
        Filters::new([Arc::new(Letter) as Arc<dyn NodeFilter>]).expect("they have names")
    }

    fn node(name: &str) -> NodeFacts {
        NodeFacts { name: name.into(), ..NodeFacts::default() }
    }

    #[test]
    fn a_filter_judges_and_says_why_also_when_it_was_only_read_back() {
        let mut rules = Rules { filters: vec![WantedFilter::new("letter", "a")], ..Rules::default() };
        let mut known = node("bob");
        assert_eq!(rules.failures(&node("ann")).collect::<Vec<_>>(), [Filter::Custom("letter".into())]);
        known.judges = Judges(filters());
        assert_eq!(rules.filters[0].judge(&known), Err("has no `a` in its name".into()));
        rules.prepare_filters(&filters());
        assert!(rules.allow(&node("ann")) && !rules.allow(&node("bob")));
        let bytes = crate::codec::encode(&rules).expect("rules can be stored");
        let read: Rules = crate::codec::decode(&bytes).expect("and read");
        assert!(read == rules && !read.filters[0].is_prepared());
    }

    #[test]
    fn names_are_stored_and_what_is_missing_is_named() {
        let bytes = crate::codec::encode(&filters()).expect("names can be stored");
        let read: Filters = crate::codec::decode(&bytes).expect("and read");
        assert_eq!(read, filters());
        assert_eq!(read.missing_in(&filters()), None);
        assert_eq!(read.missing_in(&Filters::default()).map(|name| &**name), Some("letter"));
        assert_eq!(filters().missing_in(&read).map(|name| &**name), Some("letter"), "names are no filters");
        let twice = [Arc::new(Letter) as Arc<dyn NodeFilter>, Arc::new(Letter)];
        assert_eq!(Filters::new(twice).expect_err("one name").problem, Problem::Duplicate);
    }

    #[test]
    fn roles_that_name_no_filter_or_ask_it_nonsense_are_refused() {
        let settings = Settings { filters: filters(), ..Settings::default() };
        let problem = |name: &str, wanted: &str| {
            let mut job = JobSpec::bag("j", 1, Resources::new());
            let shape = Arc::make_mut(&mut job.groups[0].roles[0].shape);
            shape.rules.filters.push(WantedFilter::new(name, wanted));
            job.prepare_filters(&settings.filters);
            job.validate(&settings).map_err(|invalid| (invalid.field, invalid.problem))
        };
        assert_eq!(problem("letter", "a"), Ok(()));
        let field = |name: &str| format!("groups[0].roles[0].filters.{name}");
        let refuses = Problem::FilterRefuses { why: "a letter".into() };
        assert_eq!(problem("letter", ""), Err((field("letter"), refuses)));
        let unknown = Problem::UnknownFilter { known: "there are `letter`".into() };
        assert_eq!(problem("other", "a"), Err((field("other"), unknown)));
    }
}
