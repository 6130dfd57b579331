//! Snapshots and the end of a runtime: what goes on, and what answers afterwards.

use std::time::Duration;

use plimsoll::core::explanation::Reason;
use plimsoll::core::settings::RawSettings;
use plimsoll::core::time::Time;
use plimsoll::{
    Config, Handle, JobId, JobSpec, NodePatch, NodeSpec, Order, RequestError, Runtime, StartError,
    SubmitError, TaskContext, TaskOutcome, tasks,
};

fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(30), body).await.expect("within the deadline")
    })
}

fn at_once() -> Config {
    Config::from_toml("window = 0.0").expect("a good setting")
}

/// Goal: after the end nobody waits for what will never come.
#[test]
fn waiting_after_the_end_is_a_typed_error() {
    run(async {
        let runtime = Runtime::builder().config(at_once()).start().expect("it starts");
        let handle = runtime.handle();
        let job = handle.submit(JobSpec::bag("j", 1)).await.expect("accepted");
        runtime.shutdown(Duration::MAX).await;
        assert!(matches!(handle.wait(job).await, Err(RequestError::Stopped(_))));
        assert!(handle.events().is_err());
    });
}

/// Goal: every call after the end is answered with a typed error or does nothing.
#[test]
fn every_call_after_the_end_is_answered() {
    run(async {
        let runtime = Runtime::builder().config(at_once()).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(NodeSpec::new("a").capacity("slot", 1)).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("j", 1).request("slot", 1)).await.expect("accepted");
        let mut assignments = runtime.assignments().expect("the first reader");
        let begun = assignments.next().await.expect("the runtime runs").remove(0);
        runtime.shutdown(Duration::from_secs(5)).await;
        let stopped = |result: Result<(), RequestError>| matches!(result, Err(RequestError::Stopped(_)));
        assert!(stopped(handle.cancel(job).await));
        assert!(stopped(handle.add_node(NodeSpec::new("b")).await));
        assert!(stopped(handle.update_node("a", NodePatch::default()).await));
        assert!(stopped(handle.remove_node("a").await));
        assert!(stopped(handle.heartbeat("a", true).await));
        assert!(stopped(handle.explain(job).await.map(drop)));
        assert!(stopped(handle.update_settings(&RawSettings::default()).map(drop)));
        assert!(stopped(handle.node_idle("a").await));
        assert!(handle.task_finished(begun.attempt, TaskOutcome::Completed).await.is_err());
        assert!(handle.acknowledge(&mut assignments, begun.sequence).await.is_err());
        let late = handle.submit_many(vec![JobSpec::bag("late", 1)]).await;
        assert!(matches!(late[..], [Err(SubmitError::Stopped { .. })]));
        assert!(handle.try_submit(JobSpec::bag("late", 1)).is_err_and(|error| !error.is_retryable()));
        assert_eq!(assignments.next().await, None);
        assert_eq!(handle.job(job).expect("the board can still be read").live, 1);
    });
}

/// Goal: a service that runs the work itself is served after a restore, window after window.
#[test]
fn a_restored_service_that_runs_the_work_itself_is_served_on_and_on() {
    run(async {
        let runtime = Runtime::builder().config(at_once()).assignment_window(2).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(NodeSpec::new("a").capacity("slot", 1)).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("j", 9).request("slot", 1)).await.expect("accepted");
        let mut assignments = runtime.assignments().expect("the first reader");
        for _ in 0..4 {
            let batch = assignments.next().await.expect("the runtime runs");
            handle.node_idle("a").await.expect("the node is there");
            handle.acknowledge(&mut assignments, batch[0].sequence).await.expect("the runtime runs");
        }
        let bytes = runtime.snapshot().await.expect("a snapshot");
        drop(runtime);
        let restored =
            Runtime::builder().assignment_window(2).restore(bytes).start().expect("it starts again");
        let handle = restored.handle();
        let mut assignments = restored.assignments().expect("the first reader");
        let finished = handle.wait(job);
        tokio::pin!(finished);
        let status = loop {
            let batch = tokio::select! {
                status = &mut finished => break status.expect("it finishes"),
                batch = assignments.next() => batch.expect("the runtime runs"),
            };
            let last = batch.last().map_or(0, |assignment| assignment.sequence);
            handle.node_idle("a").await.expect("the node is there");
            handle.acknowledge(&mut assignments, last).await.expect("the runtime runs");
        };
        assert_eq!(status.completed, 9);
    });
}

/// Goal: a window that is open when the snapshot is taken closes when it would have closed, counted on the
/// runtime's own clock. (Without a node: one with room is looked at after a restore, and may take tasks
/// whose window is still open.)
#[test]
fn an_open_window_keeps_its_deadline() {
    run(async {
        let config = Config::from_toml("window = 2.0\nwindow_cap = 4.0\nwindow_adaptive = false");
        let runtime = Runtime::builder().config(config.expect("good settings")).start().expect("it starts");
        let handle = runtime.handle();
        let job = handle.submit(JobSpec::bag("j", 3).request("slot", 1)).await.expect("accepted");
        let closes = window_of(&handle, job).await;
        let bytes = runtime.snapshot().await.expect("a snapshot");
        drop(runtime);
        let restored = Runtime::builder().restore(bytes).start().expect("it starts again");
        let handle = restored.handle();
        assert_eq!(window_of(&handle, job).await, closes);
        while handle.now() < closes {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let waits = handle.explain(job).await.expect("the job is known");
        assert!(matches!(waits[0].reason, Reason::NeverFits(_)), "its window is closed: {}", waits[0]);
    });
}

async fn window_of(handle: &Handle, job: JobId) -> Time {
    let waits = handle.explain(job).await.expect("the job is known");
    match waits[0].reason {
        Reason::Window { closes } => closes,
        ref other => panic!("it waits for its window, not for {other:?}"),
    }
}

/// Goal: after a restore nothing waits that fits: every node with room was looked at. Method: a service
/// without credit leaves both nodes empty while tasks wait; the restored one has credit.
#[test]
fn every_node_with_room_is_looked_at_after_a_restore() {
    run(async {
        let runtime = Runtime::builder().config(at_once()).assignment_window(1).start().expect("it starts");
        let handle = runtime.handle();
        for name in ["a", "b"] {
            handle.add_node(NodeSpec::new(name).capacity("slot", 2)).await.expect("the node is new");
        }
        let job = handle.submit(JobSpec::bag("j", 4).request("slot", 1)).await.expect("accepted");
        let mut assignments = runtime.assignments().expect("the first reader");
        let begun = assignments.next().await.expect("the runtime runs");
        assert_eq!(begun.len(), 1, "one at a time");
        let bytes = runtime.snapshot().await.expect("a snapshot");
        drop(runtime);
        let restored =
            Runtime::builder().assignment_window(9).restore(bytes).start().expect("it starts again");
        let handle = restored.handle();
        let mut assignments = restored.assignments().expect("the first reader");
        let mut orders = Vec::new();
        while orders.len() < 5 {
            orders.extend(assignments.next().await.expect("the runtime runs"));
        }
        // What the service may still run is to end first; then everything runs, on both nodes.
        assert_eq!((orders[0].order, orders[0].attempt), (Order::Stop, begun[0].attempt));
        assert!(orders[1..].iter().all(|one| one.order == Order::Start));
        for name in ["a", "b"] {
            assert_eq!(orders[1..].iter().filter(|one| &*one.node == name).count(), 2);
            handle.node_idle(name).await.expect("the node is there");
        }
        assert_eq!(handle.wait(job).await.expect("it finishes").completed, 4);
    });
}

/// Goal: settings beside a snapshot, and a snapshot that was changed, are refused before anything starts.
#[test]
fn what_cannot_be_restored_is_refused() {
    run(async {
        let runtime = Runtime::builder().config(at_once()).start().expect("it starts");
        let bytes = runtime.snapshot().await.expect("a snapshot");
        let both = Runtime::builder().config(at_once()).restore(bytes.clone()).start();
        assert!(matches!(both, Err(StartError::ConfigRestored(_))), "{both:?}");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            // Whatever comes out, it is a value: some bytes make no difference that matters.
            drop(Runtime::builder().restore(changed).start());
        }
        for length in 0..bytes.len() {
            assert!(Runtime::builder().restore(bytes[..length].to_vec()).start().is_err(), "{length}");
        }
    });
}

/// Goal: a node that is added while a snapshot is taken works after the restore.
#[test]
fn a_node_added_during_the_snapshot_works_after_it() {
    run(async {
        let runtime = Runtime::builder().executor(tasks(|_| async { Ok(()) })).start().expect("it starts");
        let handle = runtime.handle();
        let (added, bytes) =
            tokio::join!(handle.add_node(NodeSpec::new("a").capacity("slot", 1)), runtime.snapshot());
        added.expect("the node is new");
        let bytes = bytes.expect("a snapshot");
        drop(runtime);
        let restored = Runtime::builder().executor(tasks(|_| async { Ok(()) })).restore(bytes).start();
        let restored = restored.expect("it starts again");
        let handle = restored.handle();
        // Whether the node is in the snapshot depends on which was first; both are fine.
        let _ = handle.add_node(NodeSpec::new("a").capacity("slot", 1)).await;
        let job = handle.submit(JobSpec::bag("j", 2).request("slot", 1)).await.expect("accepted");
        assert_eq!(handle.wait(job).await.expect("it finishes").completed, 2);
    });
}

/// Goal: the numbers of resource kinds keep their meaning while the runtime runs.
#[test]
fn resource_kinds_are_only_added_while_the_runtime_runs() {
    run(async {
        let config = Config::from_toml("window = 0.0\nresources = [\"disk\"]").expect("good settings");
        let executor = tasks(|_: TaskContext| async { Ok(()) });
        let runtime = Runtime::builder().config(config).executor(executor).start().expect("it starts");
        let handle = runtime.handle();
        let job = handle.submit(JobSpec::bag("j", 1).request("disk", "1Gi")).await.expect("accepted");
        let fewer = RawSettings { resources: Some(Vec::new()), ..RawSettings::default() };
        assert!(matches!(handle.update_settings(&fewer), Err(RequestError::Settings(_))));
        let more = ["disk", "licence"].map(str::to_owned).to_vec();
        let more = RawSettings { resources: Some(more), ..RawSettings::default() };
        handle.update_settings(&more).expect("kinds can be added");
        handle
            .add_node(NodeSpec::new("a").capacity("disk", "2Gi").capacity("licence", 1))
            .await
            .expect("new");
        handle.wait(job).await.expect("it finishes");
    });
}
