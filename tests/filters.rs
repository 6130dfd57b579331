//! Filters of the embedding service: they rule nodes out, say why, are asked for again when facts change, and
//! come with whoever restores or replays a runtime.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll::core::explanation::{Nearest, Reason};
use plimsoll::core::plan;
use plimsoll::core::settings::RawSettings;
use plimsoll::core::spec::{Filter, Problem};
use plimsoll::{
    Builder, Config, Filters, Format, GroupSpec, JobSpec, NodeFacts, NodeFilter, NodePatch, NodeSpec,
    NodeTest, ReplayError, RoleSpec, Runtime, StartError, SubmitError, TaskContext, replay, replay_with,
    scenario, tasks,
};

const DEADLINE: Duration = Duration::from_secs(30);

fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(DEADLINE, body).await.expect("within the deadline") })
}

/// The driver of a node must be at least this.
struct Driver;

impl NodeFilter for Driver {
    fn name(&self) -> &str {
        "driver"
    }

    fn prepare(&self, wanted: &str) -> Result<Box<dyn NodeTest>, String> {
        let wanted: u32 = wanted.parse().map_err(|_| "a version such as `535`".to_owned())?;
        Ok(Box::new(move |node: &NodeFacts| {
            let found = node.labels.get("driver").and_then(|driver| driver.parse::<u32>().ok());
            match found {
                Some(found) if found >= wanted => Ok(()),
                Some(found) => Err(format!("has the driver {found}")),
                None => Err("has no driver".to_owned()),
            }
        }))
    }
}

/// Keeps everybody away from nodes whose licence has run out.
struct Licence;

impl NodeFilter for Licence {
    fn name(&self) -> &str {
        "licence"
    }

    fn prepare(&self, _wanted: &str) -> Result<Box<dyn NodeTest>, String> {
        Ok(Box::new(|node: &NodeFacts| match node.labels.get("licence").map(String::as_str) {
            Some("over") => Err("has no licence any more".to_owned()),
            _ => Ok(()),
        }))
    }

    fn is_for_all(&self) -> bool {
        true
    }
}

fn builder() -> Builder {
    let config = Config::from_toml("window = 0.0").expect("a good setting");
    Runtime::builder().config(config).executor(tasks(|_: TaskContext| async { Ok(()) }))
}

fn node(name: &str, driver: u32) -> NodeSpec {
    NodeSpec::new(name).capacity("slot", 4).label("driver", driver.to_string())
}

fn job(driver: &str) -> JobSpec {
    let role = RoleSpec::new("r", 1).request("slot", 1).filter("driver", driver);
    JobSpec::new("j").group(GroupSpec::new("g").role(role))
}

fn driver(version: u32) -> NodePatch {
    let labels = Some([("driver".to_owned(), version.to_string())].into());
    NodePatch { labels, ..NodePatch::default() }
}

fn problem(result: Result<plimsoll::JobId, SubmitError>) -> (String, Problem) {
    match result.expect_err("it is refused") {
        SubmitError::Invalid { problem, .. } => (problem.field, problem.problem),
        other => panic!("refused for another reason: {other}"),
    }
}

/// Goal: a filter is one of all filters: counted, named, explained in its own words, nearest when it alone is in
/// the way, and asked for again when the facts change, also after a change of settings.
#[test]
fn a_filter_of_the_service_rules_nodes_out_and_says_why() {
    run(async {
        let runtime = builder().filter(Driver).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(node("old", 470)).await.expect("the node is new");
        handle.add_node(node("new", 550)).await.expect("the node is new");
        let fits = handle.submit(job("535")).await.expect("accepted");
        handle.wait(fits).await.expect("it finishes on the new one");
        handle.update_settings(&RawSettings::default()).expect("nothing changes");
        let waits = handle.submit(job("600")).await.expect("accepted");
        let explained = handle.explain(waits).await.expect("the job is known");
        let Reason::NeverFits(room) = &explained[0].reason else { panic!("{}", explained[0]) };
        let counts: Vec<_> =
            room.filters.iter().map(|count| (&count.filter, count.fails, count.only)).collect();
        assert_eq!(counts, [(&Filter::Custom("driver".into()), 2, 2)]);
        let filter = Filter::Custom("driver".into());
        let suitable = Nearest::Suitable { node: "old".into(), filter, wanted: None };
        assert_eq!(room.nearest, Some(suitable));
        let expected = "1 task waits: no node could take it even if empty (of 2 nodes 2 do not pass the filter \
                        `driver`); nearest: node old if it passed the filter `driver`";
        assert_eq!(explained[0].sentence(), expected);
        let why = handle.explain_on(waits, "new").await.expect("the node is there");
        assert_eq!(why[0].sentence(), "node new has the driver 550");
        handle.update_node("old", driver(610)).await.expect("the node is there");
        handle.wait(waits).await.expect("it finishes on what is newest now");
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: what a role asks of filters is checked when it is handed in, and filters when a runtime starts.
#[test]
fn what_cannot_be_asked_is_refused_with_field_and_reason() {
    run(async {
        let runtime = builder().filter(Driver).start().expect("it starts");
        let handle = runtime.handle();
        let field = "groups[0].roles[0].filters.driver".to_owned();
        let refuses = Problem::FilterRefuses { why: "a version such as `535`".into() };
        assert_eq!(problem(handle.submit(job("newest")).await), (field, refuses));
        let role = RoleSpec::new("r", 1).filter("drivers", "535");
        let unknown = JobSpec::new("j").group(GroupSpec::new("g").role(role));
        let field = "groups[0].roles[0].filters.drivers".to_owned();
        let there_are = Problem::UnknownFilter { known: "there are `driver`".into() };
        assert_eq!(problem(handle.submit(unknown).await), (field, there_are));
        assert!(handle.jobs().is_empty(), "nothing was taken");
        runtime.shutdown(DEADLINE).await;
        let twice = builder().filter(Driver).filter(Driver).start();
        let Err(StartError::Filters(problem)) = twice else { panic!("two filters share a name") };
        assert_eq!((problem.value.as_str(), problem.problem), ("driver", Problem::Duplicate));
    });
}

/// Goal: a filter may judge for roles that do not name it.
#[test]
fn a_filter_may_be_for_all() {
    run(async {
        let runtime = builder().filter(Licence).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(node("a", 1).label("licence", "over")).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("j", 1).request("slot", 1)).await.expect("accepted");
        let why = handle.explain_on(job, "a").await.expect("the node is there");
        assert_eq!(why[0].sentence(), "node a has no licence any more");
        handle.update_node("a", driver(1)).await.expect("the node is there");
        handle.wait(job).await.expect("it finishes");
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: whoever restores brings the filters; with them everything goes on as if nothing had happened.
#[test]
fn a_restored_runtime_has_the_same_filters() {
    run(async {
        let runtime = builder().filter(Driver).filter(Licence).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(node("a", 470)).await.expect("the node is new");
        let waits = handle.submit(job("535")).await.expect("accepted");
        let snapshot = runtime.snapshot().await.expect("it runs");
        runtime.shutdown(DEADLINE).await;
        let executor = || tasks(|_: TaskContext| async { Ok(()) });
        let without =
            Runtime::builder().executor(executor()).filter(Licence).restore(snapshot.clone()).start();
        let Err(StartError::FilterMissing(name)) = without else { panic!("a filter is missing") };
        assert_eq!(name, "driver");
        let with = Runtime::builder().executor(executor()).filter(Licence).filter(Driver).restore(snapshot);
        let runtime = with.start().expect("both filters are there");
        let handle = runtime.handle();
        let why = handle.explain_on(waits, "a").await.expect("the node is there");
        assert_eq!(why[0].sentence(), "node a has the driver 470");
        handle.add_node(node("b", 500)).await.expect("the node is new");
        let why = handle.explain_on(waits, "b").await.expect("the node is there");
        assert_eq!(why[0].sentence(), "node b has the driver 500");
        handle.update_node("b", driver(540)).await.expect("the node is there");
        handle.wait(waits).await.expect("it finishes on b");
        runtime.shutdown(DEADLINE).await;
    });
}

/// Somewhere to write to, and to read from afterwards.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Goal: a recorded run is replayed bit for bit with its filters, and not without them.
#[test]
fn a_recorded_run_is_replayed_with_its_filters() {
    let page = Page::default();
    run(async {
        let builder = builder().filter(Driver).record(page.clone(), 1 << 26);
        let runtime = builder.start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(node("old", 470)).await.expect("the node is new");
        let waits = handle.submit(job("535")).await.expect("accepted");
        handle.update_node("old", driver(540)).await.expect("the node is there");
        handle.wait(waits).await.expect("it finishes");
        runtime.shutdown(DEADLINE).await;
    });
    let log = page.0.lock().expect("nobody panics").clone();
    let without = replay(log.as_slice());
    assert!(matches!(without, Err(ReplayError::FilterMissing(name)) if name == "driver"));
    let filters = Filters::new([Arc::new(Driver) as Arc<dyn NodeFilter>]).expect("it has a name");
    assert!(replay_with(log.as_slice(), &filters).expect("the same again") > 0);
}

/// Goal: dry runs of a service know its filters, and those of others refuse them by name.
#[test]
fn a_dry_run_has_the_filters_it_is_given() {
    let text = r#"{
        "nodes": [{"name": "old", "capacity": {"slot": 4}, "labels": {"driver": "470"}},
                  {"name": "new", "capacity": {"slot": 1}, "labels": {"driver": "550"}}],
        "jobs": [{"name": "j", "groups": [{"name": "g", "start": "atomic", "on_unsatisfiable": "wait", "roles": [
                  {"name": "r", "max": 2, "request": {"slot": 1}, "filters": {"driver": "535"}}]}]}],
        "events": [{"at": 5, "node": {"name": "old", "labels": {"driver": "535"}}}]
    }"#;
    let refused = scenario::from_text(text, Format::Json).expect_err("nobody knows the filter");
    let refused = refused.to_string();
    assert!(refused.contains("filters.driver") && refused.contains("there are none"), "{refused}");
    let filters = Filters::new([Arc::new(Driver) as Arc<dyn NodeFilter>]).expect("it has a name");
    let scenario = scenario::from_text_with(text, Format::Json, &filters).expect("a good scenario");
    let report = plan::run(&scenario).expect("it can be played");
    let placed: Vec<_> = report.decisions.iter().map(|one| (one.at, one.node.as_str())).collect();
    assert_eq!(placed, [(5.0, "old"), (5.0, "new")]);
}

/// Goal: a service's own tests have the filters of its runtime.
#[cfg(feature = "test-util")]
#[test]
fn a_test_cluster_has_filters() {
    use plimsoll::test_util::TestCluster;
    let filters = Filters::new([Arc::new(Driver) as Arc<dyn NodeFilter>]).expect("it has a name");
    let config = Config::from_toml("window = 0.0").expect("a good setting");
    let mut cluster = TestCluster::with_filters(&config, &filters);
    cluster.add_node(&node("a", 470)).expect("the node is new");
    let job = cluster.submit(&job("535")).expect("accepted");
    assert_eq!(cluster.waiting(job), 1);
    cluster.update_node("a", &driver(535)).expect("the node is there");
    assert_eq!((cluster.running(job), cluster.waiting(job)), (1, 0));
}
