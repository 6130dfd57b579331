//! Goal: whatever several threads call in whatever order, every call gets an answer or a typed error,
//! nothing hangs, and in the end the promises hold. Method: random sequences of calls from three
//! threads against a real runtime, which in the middle of it all is photographed and restored, or
//! stopped, or whose work a service carries out itself. A snapshot is checked whole when it is restored.
//! In the end everything is cancelled, and nothing may be live.

use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll::core::spec::{Availability, Condition};
use plimsoll::{
    Assignments, Builder, Config, GroupSpec, Handle, JobId, JobSpec, NodePatch, NodeSpec, Order, RoleSpec,
    Runtime, TaskContext, TaskError, TaskOutcome, tasks,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Call {
    Submit {
        tasks: u32,
        slots: u32,
        atomic: bool,
    },
    SubmitMany(u8),
    Cancel(u64),
    AddNode(u8, u32),
    UpdateNode(u8, u32, bool),
    RemoveNode(u8),
    Heartbeat(u8, bool),
    Explain(u64),
    Wait(u64),
    Window(bool),
    Read,
    /// A submission whose future is dropped half way.
    Dropped,
    /// What a service says that carries out the work itself.
    Idle(u8),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        5 => (1..5u32, 0..4u32, any::<bool>())
            .prop_map(|(tasks, slots, atomic)| Call::Submit { tasks, slots, atomic }),
        1 => (0..6u8).prop_map(Call::SubmitMany),
        2 => (0..30u64).prop_map(Call::Cancel),
        3 => (0..4u8, 1..6u32).prop_map(|(node, slots)| Call::AddNode(node, slots)),
        2 => (0..5u8, 0..6u32, any::<bool>()).prop_map(|(node, slots, open)| Call::UpdateNode(node, slots, open)),
        1 => (0..5u8).prop_map(Call::RemoveNode),
        2 => (0..5u8, any::<bool>()).prop_map(|(node, heard)| Call::Heartbeat(node, heard)),
        2 => (0..30u64).prop_map(Call::Explain),
        1 => (0..30u64).prop_map(Call::Wait),
        1 => any::<bool>().prop_map(Call::Window),
        2 => Just(Call::Read),
        1 => Just(Call::Dropped),
        1 => (0..5u8).prop_map(Call::Idle),
    ]
}

fn job(tasks: u32, slots: u32, atomic: bool) -> JobSpec {
    let group = GroupSpec::new("g").role(RoleSpec::new("r", tasks).request("slot", slots));
    JobSpec::new("j").group(if atomic { group.atomic() } else { group })
}

async fn make(handle: &Handle, call: Call) {
    let name = |node: u8| format!("n{node}");
    match call {
        Call::Submit { tasks, slots, atomic } => drop(handle.submit(job(tasks, slots, atomic)).await),
        Call::SubmitMany(count) => {
            let jobs = (0..count).map(|number| job(u32::from(number), 1, false)).collect();
            assert_eq!(handle.submit_many(jobs).await.len(), usize::from(count));
        }
        Call::Cancel(job) => drop(handle.cancel(JobId(job)).await),
        Call::AddNode(node, slots) => {
            drop(handle.add_node(NodeSpec::new(name(node)).capacity("slot", slots)).await);
        }
        Call::UpdateNode(node, slots, open) => {
            let availability = Some(if open { Availability::Active } else { Availability::Pause });
            let capacity = Some([("slot".to_owned(), slots.into())].into());
            let patch = NodePatch { capacity, availability, ..NodePatch::default() };
            drop(handle.update_node(&name(node), patch).await);
        }
        Call::RemoveNode(node) => drop(handle.remove_node(&name(node)).await),
        Call::Heartbeat(node, heard) => drop(handle.heartbeat(&name(node), heard).await),
        Call::Explain(job) => drop(handle.explain(JobId(job)).await),
        Call::Wait(job) => {
            let wait = tokio::time::timeout(Duration::from_millis(1), handle.wait(JobId(job)));
            drop(wait.await);
        }
        Call::Window(open) => {
            let window = Some(if open { 0.01 } else { 0.0 });
            let patch = plimsoll::core::settings::RawSettings { window, ..Default::default() };
            drop(handle.update_settings(&patch));
        }
        Call::Read => drop((handle.jobs(), handle.nodes(), handle.settings())),
        Call::Dropped => {
            let submission = handle.submit(job(2, 1, false));
            drop(tokio::time::timeout(Duration::ZERO, submission).await);
        }
        Call::Idle(node) => drop(handle.node_idle(&name(node)).await),
    }
}

/// Puts every node right and cancels every job; then nothing may be left.
async fn bring_to_rest(handle: &Handle) {
    for node in handle.nodes() {
        let patch = NodePatch {
            condition: Some(Condition::Automated),
            availability: Some(Availability::Active),
            ..NodePatch::default()
        };
        handle.update_node(&node.name, patch).await.expect("the node is there");
        handle.heartbeat(&node.name, true).await.expect("the node is there");
    }
    for (id, _) in handle.jobs() {
        handle.cancel(id).await.expect("the job is known");
        handle.wait(id).await.expect("a cancelled job ends");
    }
}

async fn short_work(mut task: TaskContext) -> Result<(), TaskError> {
    match task.index() {
        0 => Ok(()),
        1 => Err(TaskError::new("as it goes")),
        _ => {
            let nap = tokio::time::sleep(Duration::from_micros(200));
            tokio::select! { () = nap => Ok(()), () = task.stop.stopped() => Err(TaskError::new("stopped")) }
        }
    }
}

/// Calls from several threads, begun at once.
fn callers(handle: &Handle, calls: Vec<Vec<Call>>) -> Vec<JoinHandle<()>> {
    let caller = |calls: Vec<Call>| {
        let handle = handle.clone();
        std::thread::spawn(move || {
            driver().block_on(async {
                for call in calls {
                    make(&handle, call).await;
                }
            });
        })
    };
    calls.into_iter().map(caller).collect()
}

fn join(callers: Vec<JoinHandle<()>>) {
    callers.into_iter().for_each(|caller| caller.join().expect("no caller panics"));
}

fn driver() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a thread can wait")
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("nothing hangs")
}

fn assert_at_rest(handle: &Handle) {
    for (id, status) in handle.jobs() {
        assert!(status.finished.is_some() && status.live == 0, "{id}: {status:?}");
    }
    assert!(handle.nodes().iter().all(|node| node.live == 0), "{:?}", handle.nodes());
}

fn builder() -> Builder {
    Runtime::builder().lane_capacity(8)
}

fn config() -> Config {
    Config::from_toml("window = 0.005").expect("a good setting")
}

/// Carries out assignments until the runtime ends: every other one fails, some are told twice.
async fn carry_out(handle: Handle, mut assignments: Assignments) {
    while let Some(batch) = assignments.next().await {
        for one in &batch {
            let outcome = match (one.order, one.sequence % 3) {
                (Order::Stop, _) => TaskOutcome::Stopped,
                (Order::Start, 0) => TaskOutcome::Failed,
                (Order::Start, _) => TaskOutcome::Completed,
            };
            drop(handle.task_finished(one.attempt, outcome).await);
        }
        let last = batch.last().map_or(0, |one| one.sequence);
        drop(handle.acknowledge(&mut assignments, last).await);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_before_and_after_a_restore_leave_nothing_behind(
        before in prop::collection::vec(prop::collection::vec(call(), 0..30), 3),
        after in prop::collection::vec(prop::collection::vec(call(), 0..15), 2),
    ) {
        let runtime = builder().config(config()).executor(tasks(short_work)).start().expect("it starts");
        join(callers(&runtime.handle(), before));
        driver().block_on(async {
            let accepted: Vec<JobId> = runtime.handle().jobs().into_iter().map(|(id, _)| id).collect();
            let bytes = in_time(runtime.snapshot()).await.expect("a snapshot");
            drop(runtime);
            let runtime = builder().executor(tasks(short_work)).restore(bytes).start().expect("it is whole");
            let handle = runtime.handle();
            for id in accepted {
                assert!(handle.job(id).is_ok(), "{id} is lost");
            }
            join(callers(&handle, after));
            in_time(bring_to_rest(&handle)).await;
            assert_at_rest(&handle);
            let report = runtime.shutdown(Duration::from_secs(10)).await;
            assert!(report.threads_joined && report.abandoned == 0, "{report:?}");
        });
    }

    #[test]
    fn any_calls_while_the_runtime_stops_are_answered(
        calls in prop::collection::vec(prop::collection::vec(call(), 10..60), 3),
        pause in 0..3_000u64,
    ) {
        let runtime = builder().config(config()).executor(tasks(short_work)).start().expect("it starts");
        let callers = callers(&runtime.handle(), calls);
        std::thread::sleep(Duration::from_micros(pause));
        let report = driver().block_on(in_time(runtime.shutdown(Duration::from_secs(10))));
        join(callers);
        assert!(report.threads_joined && report.abandoned == 0, "{report:?}");
    }

    #[test]
    fn a_service_that_carries_out_the_work_itself_leaves_nothing_behind(
        calls in prop::collection::vec(prop::collection::vec(call(), 0..30), 3),
    ) {
        let runtime = builder().config(config()).assignment_window(3).start().expect("it starts");
        let handle = runtime.handle();
        let assignments = runtime.assignments().expect("the first reader");
        let host = handle.clone();
        let host = std::thread::spawn(move || driver().block_on(carry_out(host, assignments)));
        join(callers(&handle, calls));
        driver().block_on(async {
            in_time(bring_to_rest(&handle)).await;
            assert_at_rest(&handle);
            let report = in_time(runtime.shutdown(Duration::from_secs(10))).await;
            assert!(report.threads_joined, "{report:?}");
        });
        host.join().expect("the stream ends with the runtime");
    }
}
