//! Goal: whatever several threads call in whatever order, every call gets an answer or a typed error,
//! nothing hangs, and in the end the promises hold. Method: random sequences of calls from three
//! threads against a real runtime; then everything is cancelled and the board must show that nothing
//! is live, and a snapshot of the machines must say the same.

use std::time::Duration;

use plimsoll::core::spec::{Availability, Condition};
use plimsoll::{
    Config, GroupSpec, Handle, JobId, JobSpec, NodePatch, NodeSpec, RoleSpec, Runtime, TaskContext,
    TaskError, tasks,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Call {
    Submit { tasks: u32, slots: u32, atomic: bool },
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
            let outcomes = handle.submit_many(jobs).await.expect("the runtime runs");
            assert_eq!(outcomes.len(), usize::from(count));
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
        1 => Err(TaskError("as it goes".into())),
        _ => {
            let nap = tokio::time::sleep(Duration::from_micros(200));
            tokio::select! { () = nap => Ok(()), () = task.stop.stopped() => Err(TaskError("stopped".into())) }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_in_any_order_leave_nothing_behind(
        calls in prop::collection::vec(prop::collection::vec(call(), 0..40), 3),
    ) {
        let config = Config::from_toml("window = 0.005").expect("a good setting");
        let runtime = Runtime::builder().config(config).executor(tasks(short_work)).lane_capacity(8).start();
        let runtime = runtime.expect("it starts");
        let callers: Vec<_> = calls
            .into_iter()
            .map(|calls| {
                let handle = runtime.handle();
                std::thread::spawn(move || {
                    let driver = tokio::runtime::Builder::new_current_thread().enable_time().build();
                    driver.expect("a thread can wait").block_on(async {
                        for call in calls {
                            make(&handle, call).await;
                        }
                    });
                })
            })
            .collect();
        for caller in callers {
            caller.join().expect("no caller panics");
        }
        let driver = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("one");
        driver.block_on(async {
            let handle = runtime.handle();
            let rest = tokio::time::timeout(Duration::from_secs(60), bring_to_rest(&handle));
            rest.await.expect("nothing hangs");
            for (id, status) in handle.jobs() {
                assert!(status.finished.is_some() && status.live == 0, "{id}: {status:?}");
            }
            assert!(handle.nodes().iter().all(|node| node.live == 0), "{:?}", handle.nodes());
            let bytes = runtime.snapshot().await.expect("a snapshot");
            assert!(!bytes.is_empty());
            let report = runtime.shutdown(Duration::from_secs(10)).await;
            assert!(report.threads_joined && report.abandoned == 0, "{report:?}");
        });
    }
}
