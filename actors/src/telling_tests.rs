//! What operators see of a running engine: spans, figures and the log, through a subscriber and a recorder
//! that only write down what they are told.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use plimsoll_core::id::{Attempt, GroupId, JobId, NodeId, Slot, TaskId};
use plimsoll_core::messages::AgentMessage;
use plimsoll_core::settings::{MonitorSettings, Settings, WindowSettings};
use plimsoll_core::time::Span;
use tokio::sync::Notify;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};

use crate::agents::AgentBatch;
use crate::tests::{bag, node, options};
use crate::{BoxFuture, Command, Engine, Executor, Port, TaskContext, TaskError};

/// What was told, in words and figures.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    /// The machine and the number of messages of every turn.
    turns: Vec<(String, u64)>,
    warnings: Vec<String>,
    figures: BTreeMap<String, Arc<AtomicU64>>,
}

impl Told {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn figure(&self, key: &Key) -> Arc<AtomicU64> {
        let labels = key.labels().map(|label| format!(",{}", label.value()));
        let name = format!("{}{}", key.name(), labels.collect::<String>());
        Arc::clone(self.notes().figures.entry(name).or_default())
    }

    fn count(&self, name: &str) -> u64 {
        self.notes().figures[name].load(Ordering::SeqCst)
    }

    /// How deep each mailbox is by its gauge.
    fn mailboxes(&self) -> BTreeMap<String, f64> {
        let notes = self.notes();
        let mailboxes = notes.figures.iter().filter(|(name, _)| name.starts_with("plimsoll_mailbox_depth"));
        mailboxes.map(|(name, bits)| (name.clone(), f64::from_bits(bits.load(Ordering::SeqCst)))).collect()
    }
}

impl Recorder for Told {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.figure(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.figure(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// The fields of a span or of an event.
#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Told {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("plimsoll")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let messages = fields.0["messages"].parse().expect("a number");
        self.notes().turns.push((fields.0["machine"].clone(), messages));
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        if *event.metadata().level() <= Level::WARN {
            let mut fields = Fields::default();
            event.record(&mut fields);
            self.notes().warnings.push(format!("{:?}", fields.0));
        }
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Work of the job `deaf` goes on until the test lets it, all other is over at once.
struct Deaf(Arc<Notify>);

impl Executor for Deaf {
    fn polls_inline(&self) -> bool {
        true
    }

    fn ends_when_dropped(&self) -> bool {
        false
    }

    fn run(&self, task: TaskContext) -> BoxFuture<Result<(), TaskError>> {
        let let_go = Arc::clone(&self.0);
        Box::pin(async move {
            if &*task.job.name == "deaf" {
                let_go.notified().await;
            }
            Ok(())
        })
    }
}

fn ask<T>(port: &Port, command: impl FnOnce(tokio::sync::oneshot::Sender<T>) -> Command) -> T {
    let (reply, answer) = tokio::sync::oneshot::channel();
    assert!(port.push(command(reply)).is_ok(), "there is room");
    answer.blocking_recv().expect("it is answered")
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("in vain: {what}");
}

/// Goal: turns are spans, one for a whole batch; what the monitor finds is counted and logged; gauges of
/// mailboxes come back to nothing. Method: a job of many tasks; an agent that is told to run what nobody wants;
/// an execution that does not end when it is told to, so that its agent is asked whether it is alive.
#[test]
fn operators_see_what_happens() {
    if std::env::var_os("PLIMSOLL_ALONE").is_none() {
        // There is one recorder and one subscriber for all: this test is run by itself.
        let own = std::env::current_exe().expect("a test has a file");
        let alone = std::process::Command::new(own)
            .args(["operators_see_what_happens", "--nocapture"])
            .env("PLIMSOLL_ALONE", "1")
            .output()
            .expect("it can be started");
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stderr));
        assert!(String::from_utf8_lossy(&alone.stdout).contains("1 passed"), "it was run");
        return;
    }
    const TASKS: u32 = 777;
    let told = Told::default();
    metrics::set_global_recorder(told.clone()).expect("it is the first one");
    tracing::subscriber::set_global_default(told.clone()).expect("it is the first one");
    let let_go = Arc::new(Notify::new());
    let mut settings = Settings {
        monitor: MonitorSettings { interval: Span::from_millis(20) },
        window: WindowSettings { gap: Span::ZERO, ..WindowSettings::default() },
        ..Settings::default()
    };
    settings.deadlines.stop = Span::from_millis(50);
    let engine = Engine::start(options(Some(Arc::new(Deaf(Arc::clone(&let_go)))), settings));
    let engine = engine.expect("it starts");
    let port = engine.port().clone();
    ask(&port, |reply| Command::AddNode(node("n", i64::from(TASKS)), reply));

    ask(&port, |reply| Command::Submit(Arc::new(bag("many", TASKS)), reply));
    let many = port.board().wait(JobId(1)).expect("it is known").blocking_recv().expect("it ends");
    assert_eq!(many.completed, u64::from(TASKS));
    let machines = ["JobState", "Scheduler", "ClusterState", "TaskRunner", "NodeAgents", "Monitor"];
    let has_turned = |machine: &str| told.notes().turns.iter().any(|(name, _)| name == machine);
    wait_until("a turn of each machine", || machines.iter().all(|machine| has_turned(machine)));
    let batch = ("NodeAgents".to_owned(), u64::from(TASKS));
    assert!(told.notes().turns.contains(&batch), "the starts of all tasks are one batch");

    ask(&port, |reply| Command::Submit(Arc::new(bag("deaf", 1)), reply));
    let task = TaskId { group: GroupId::new(JobId(2), 0), role: 0, index: 0 };
    let unwanted = Attempt { task, number: 9, slot: Slot(999) };
    let start = AgentMessage::Start { session: 1 << u32::BITS, attempt: unwanted, units: None };
    metrics::gauge!("plimsoll_mailbox_depth", "machine" => "NodeAgents").increment(1.0);
    engine.shards()[0].do_send(AgentBatch(vec![(NodeId(0), start)]));
    wait_until("the orphan is counted", || told.count("plimsoll_findings_total,orphan") > 0);
    let is_logged = || told.notes().warnings.iter().any(|words| words.contains("nobody wanted it"));
    wait_until("the orphan is logged", is_logged);

    ask(&port, |reply| Command::Cancel(JobId(2), reply));
    let beats = || told.notes().turns.iter().filter(|(name, _)| name == "ClusterState").count();
    let before = beats();
    // Some audits, and the stops that nobody confirmed.
    wait_until("time has passed", || beats() > before + 20);
    let_go.notify_waiters();
    assert!(port.board().wait(JobId(2)).expect("it is known").blocking_recv().is_ok());
    let is_empty = || told.mailboxes().values().all(|depth| *depth == 0.0);
    wait_until("every mailbox is empty", is_empty);
    assert!(engine.stop(Duration::from_secs(5)).threads_joined);
}
