//! The runtime through its public handle: whole lives of jobs on real threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use plimsoll::core::id::GroupId;
use plimsoll::core::messages::Refusal;
use plimsoll::core::settings::RawSettings;
use plimsoll::{
    Config, Executor, GroupSpec, JobId, JobSpec, NodePatch, NodeSpec, Order, RequestError, RoleSpec, Runtime,
    SubmitError, TaskContext, TaskError, TaskId, TaskOutcome, blocking_tasks, tasks,
};

const DEADLINE: Duration = Duration::from_secs(20);

fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(DEADLINE, body).await.expect("within the deadline") })
}

/// Every task is done as soon as it has a node.
fn nothing() -> impl Executor {
    tasks(|_| async { Ok(()) })
}

fn slot_node(name: &str, slots: u32) -> NodeSpec {
    NodeSpec::new(name).capacity("slot", slots)
}

#[test]
fn a_job_runs_to_its_end_and_can_be_asked_about() {
    run(async {
        let ran = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&ran);
        let executor = tasks(move |_: TaskContext| {
            let counter = Arc::clone(&counter);
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        });
        let runtime = Runtime::builder().executor(executor).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 2)).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("j", 20).request("slot", 1)).await.expect("accepted");
        let status = handle.wait(job).await.expect("it finishes");
        assert_eq!((status.completed, status.live, status.queued()), (20, 0, 0));
        assert_eq!(ran.load(Ordering::Relaxed), 20);
        let report = runtime.shutdown(DEADLINE).await;
        assert!(report.threads_joined && report.abandoned == 0, "{report:?}");
        let late = handle.submit(JobSpec::bag("late", 1)).await;
        assert!(matches!(late, Err(SubmitError::Stopped { .. })), "{late:?}");
    });
}

#[test]
fn what_fails_or_panics_fails_its_own_task_only() {
    run(async {
        let executor = tasks(|task: TaskContext| async move {
            match task.index() {
                0 => Err(TaskError::new("no luck")),
                1 => panic!("a task may panic"),
                2 => {
                    tokio::task::yield_now().await;
                    panic!("also later")
                }
                _ => Ok(()),
            }
        });
        let runtime = Runtime::builder().executor(executor).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 1)).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("j", 5).request("slot", 1)).await.expect("accepted");
        let status = handle.wait(job).await.expect("it finishes");
        assert_eq!((status.completed, status.failed), (2, 3));
    });
}

#[test]
fn blocking_work_and_gangs_run_too() {
    run(async {
        let executor = blocking_tasks(|_| {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        });
        let runtime = Runtime::builder().executor(executor).start().expect("it starts");
        let handle = runtime.handle();
        for name in ["a", "b"] {
            handle.add_node(slot_node(name, 2)).await.expect("the node is new");
        }
        let gang = GroupSpec::new("g")
            .atomic()
            .role(RoleSpec::new("leader", 1).request("slot", 2))
            .role(RoleSpec::new("worker", 2).request("slot", 1));
        let job = handle.submit(JobSpec::new("gang").group(gang)).await.expect("accepted");
        assert_eq!(handle.wait(job).await.expect("it finishes").completed, 3);
    });
}

#[test]
fn cancelling_ends_what_waits_and_what_runs() {
    run(async {
        let executor = tasks(|mut task: TaskContext| async move {
            task.stop.stopped().await;
            Err(TaskError::new("stopped"))
        });
        let runtime = Runtime::builder().executor(executor).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 1)).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("j", 3).request("slot", 1)).await.expect("accepted");
        handle.cancel(job).await.expect("the job is known");
        let status = handle.wait(job).await.expect("it finishes");
        assert_eq!((status.cancelled, status.live), (3, 0));
        handle.cancel(job).await.expect("cancelling twice is fine");
        let unknown = handle.cancel(JobId(99)).await;
        assert_eq!(unknown, Err(RequestError::Refused(Refusal::UnknownJob(JobId(99)))));
    });
}

#[test]
fn waits_are_explained_and_end_when_a_node_changes() {
    run(async {
        let config = Config::preset("paddle").expect("it is there");
        let runtime = Runtime::builder().config(config).executor(nothing()).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 1)).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("big", 1).request("slot", 4)).await.expect("accepted");
        let waits = handle.explain(job).await.expect("the job is known");
        assert_eq!(waits.len(), 1);
        assert!(waits[0].sentence().contains("even if empty"), "{}", waits[0]);
        let capacity = Some([("slot".to_owned(), 4.into())].into());
        let patch = NodePatch { capacity, ..NodePatch::default() };
        handle.update_node("a", patch).await.expect("the node is there");
        handle.wait(job).await.expect("it finishes");
    });
}

/// Goal: where the settings say so, what can never fit is ended with the reason instead of waiting for ever.
#[test]
fn what_can_never_fit_is_ended_with_the_reason_where_the_settings_say_so() {
    run(async {
        let config = Config::preset("beaker").expect("it is there");
        let runtime = Runtime::builder().config(config).executor(nothing()).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 1)).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("big", 1).request("slot", 4)).await.expect("accepted");
        let status = handle.wait(job).await.expect("it is ended");
        assert_eq!((status.completed, status.aborted), (0, 1));
        let reason = status.abort_reason.expect("the reason is kept");
        assert!(reason.contains("even if empty"), "{reason}");
    });
}

#[test]
fn bad_requests_say_which_field_and_change_nothing() {
    run(async {
        let runtime = Runtime::builder().executor(nothing()).start().expect("it starts");
        let handle = runtime.handle();
        let bad = handle.submit(JobSpec::bag("j", 1).request("cpu", "lots")).await;
        let Err(SubmitError::Invalid { problem, job }) = bad else { panic!("{bad:?}") };
        assert_eq!((problem.field.as_str(), job.name.as_str()), ("groups[0].roles[0].request.cpu", "j"));
        let ghost = handle.remove_node("ghost").await;
        assert_eq!(ghost, Err(RequestError::Refused(Refusal::UnknownNode("ghost".into()))));
        let before = handle.settings();
        let patch = RawSettings { window: Some(-1.0), ..RawSettings::default() };
        assert!(matches!(handle.update_settings(&patch), Err(RequestError::Settings(_))));
        assert_eq!(handle.settings(), before);
        let patch = RawSettings { window: Some(0.0), ..RawSettings::default() };
        let after = handle.update_settings(&patch).expect("a good patch");
        assert_eq!((after.version, after.window.gap.as_seconds()), (before.version + 1, 0.0));
    });
}

#[test]
fn many_jobs_go_in_as_one_command_and_are_answered_one_by_one() {
    run(async {
        let runtime = Runtime::builder().executor(nothing()).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 4)).await.expect("the node is new");
        let mut jobs: Vec<JobSpec> = (0..100).map(|n| JobSpec::bag(format!("j{n}"), 1)).collect();
        jobs.insert(50, JobSpec::new("empty"));
        let outcomes = handle.submit_many(jobs).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 100);
        assert!(matches!(outcomes[50], Err(SubmitError::Invalid { .. })));
        for job in outcomes.into_iter().flatten() {
            handle.wait(job).await.expect("it finishes");
        }
    });
}

#[test]
fn a_snapshot_goes_on_where_it_was_taken() {
    run(async {
        let never = tasks(|mut task: TaskContext| async move {
            task.stop.stopped().await;
            Ok(())
        });
        let runtime = Runtime::builder().executor(never).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 1)).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("j", 3).request("slot", 1)).await.expect("accepted");
        let bytes = runtime.snapshot().await.expect("a snapshot");
        drop(runtime);
        let restored =
            Runtime::builder().executor(nothing()).restore(bytes).start().expect("it starts again");
        let status = restored.handle().wait(job).await.expect("it finishes");
        assert_eq!(status.completed, 3);
        let garbage = Runtime::builder().restore(vec![1, 2, 3]).start();
        assert!(garbage.is_err());
    });
}

/// Goal: a service that carries out the work itself gets every assignment once, may read again what it
/// has not acknowledged, and gets no more than its credit.
#[test]
fn a_service_that_runs_the_work_itself_is_served_by_credit() {
    run(async {
        let config = Config::from_toml("window = 0.0").expect("a good setting");
        let runtime = Runtime::builder().config(config).assignment_window(3).start().expect("it starts");
        let handle = runtime.handle();
        let mut assignments = runtime.assignments().expect("the first reader");
        assert!(runtime.assignments().is_none(), "there is only one");
        handle.add_node(slot_node("a", 10)).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("j", 5).request("slot", 1)).await.expect("accepted");
        let mut begun = Vec::new();
        while begun.len() < 3 {
            begun.extend(assignments.next().await.expect("the runtime runs"));
        }
        let waits = handle.explain(job).await.expect("the job is known");
        assert!(waits[0].sentence().contains("has not dealt with"), "{}", waits[0]);
        assignments.rewind(1).expect("nothing was acknowledged");
        let again = assignments.next().await.expect("the runtime runs");
        assert_eq!(again, begun, "what is not acknowledged can be read again");
        handle.acknowledge(&mut assignments, 3).await.expect("the runtime runs");
        assert!(assignments.rewind(1).is_err());
        while begun.len() < 5 {
            begun.extend(assignments.next().await.expect("the runtime runs"));
        }
        assert!(begun.iter().all(|one| one.order == Order::Start && &*one.node == "a"));
        handle.task_finished(begun[0].attempt, TaskOutcome::Failed).await.expect("the runtime runs");
        let both = [begun[0].attempt, begun[1].attempt];
        handle.tasks_finished(&both, TaskOutcome::Completed).await.expect("for the first it is too late");
        handle.node_idle("a").await.expect("the node is there");
        let status = handle.wait(job).await.expect("it finishes");
        assert_eq!((status.completed, status.failed), (4, 1));
    });
}

/// Goal: a cancelled assignment that nobody has read is taken back; one that was read is to be stopped.
#[test]
fn cancelling_assignments_takes_back_or_stops() {
    run(async {
        let config = Config::from_toml("window = 0.0").expect("a good setting");
        let runtime = Runtime::builder().config(config).start().expect("it starts");
        let handle = runtime.handle();
        let mut assignments = runtime.assignments().expect("the first reader");
        handle.add_node(slot_node("a", 2)).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("seen", 1).request("slot", 1)).await.expect("accepted");
        let start = assignments.next().await.expect("the runtime runs").remove(0);
        handle.cancel(job).await.expect("the job is known");
        let stop = assignments.next().await.expect("the runtime runs").remove(0);
        assert_eq!((stop.order, stop.attempt), (Order::Stop, start.attempt));
        handle.task_finished(stop.attempt, TaskOutcome::Stopped).await.expect("the runtime runs");
        assert_eq!(handle.wait(job).await.expect("it finishes").cancelled, 1);
        let unseen = handle.submit(JobSpec::bag("unseen", 1).request("slot", 1)).await.expect("accepted");
        while handle.job(unseen).expect("kept").live == 0 {
            tokio::task::yield_now().await;
        }
        handle.cancel(unseen).await.expect("the job is known");
        assert_eq!(handle.wait(unseen).await.expect("it finishes without the service").cancelled, 1);
        assert_eq!(assignments.try_next(), Some(None), "nobody ever hears of it");
    });
}

/// Goal: one task can be asked about, and tasks that are not there are typed errors.
#[test]
fn a_single_task_can_be_asked_about() {
    run(async {
        let config = Config::from_toml("window = 0.0").expect("a good setting");
        let runtime = Runtime::builder().config(config).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 1)).await.expect("the node is new");
        let job = handle.submit(JobSpec::bag("j", 2).request("slot", 1)).await.expect("accepted");
        let task = |index| TaskId { group: GroupId::new(job, 0), role: 0, index };
        let runs = handle.explain(task(0)).await.expect("it is known");
        assert!(runs[0].sentence().ends_with("; nothing is ever taken away"), "{}", runs[0]);
        let waits = handle.explain(task(1)).await.expect("it is known");
        assert_eq!((waits.len(), waits[0].waiting), (1, 1));
        let unknown = handle.explain(task(2)).await;
        assert_eq!(unknown, Err(RequestError::Refused(Refusal::UnknownTask(task(2)))));
        handle.cancel(job).await.expect("the job is known");
    });
}

/// Goal: while four threads flood the runtime, the window of somebody else still closes and its job runs.
#[test]
fn a_flood_does_not_keep_a_window_open() {
    run(async {
        let config = Config::from_toml("window = 0.05\nwindow_adaptive = false").expect("good settings");
        let executor = tasks(|_| async { Ok(()) }).inline();
        let runtime = Runtime::builder().config(config).executor(executor).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 100).capacity("cpu", 100)).await.expect("the node is new");
        let over = Arc::new(AtomicBool::new(false));
        let floods: Vec<_> = (0..4)
            .map(|_| {
                let (handle, over) = (handle.clone(), Arc::clone(&over));
                std::thread::spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        drop(handle.try_submit(JobSpec::bag("flood", 1).request("slot", 1)));
                    }
                })
            })
            .collect();
        for number in 1..=5 {
            let job = handle.submit(JobSpec::bag("own shape", 1).request("cpu", number)).await;
            handle.wait(job.expect("there is room in its turn")).await.expect("it finishes");
        }
        over.store(true, Ordering::Relaxed);
        floods.into_iter().for_each(|flood| flood.join().expect("no panic"));
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: two runtimes in one process do not know of each other, and one can start inside another
/// runtime of a single thread. (Every test here starts inside one.)
#[test]
fn two_runtimes_live_side_by_side() {
    run(async {
        let first = Runtime::builder().executor(nothing()).start().expect("it starts");
        let second = Runtime::builder().executor(nothing()).start().expect("it starts");
        first.handle().add_node(slot_node("a", 1)).await.expect("the node is new");
        second.handle().add_node(slot_node("a", 1)).await.expect("the other one has its own");
        let job = second.handle().submit(JobSpec::bag("j", 1)).await.expect("accepted");
        assert!(first.handle().job(job).is_err());
        drop(first);
        second.handle().wait(job).await.expect("it finishes");
    });
}

/// Goal: a full lane gives the job back; futures dropped half way and events nobody reads do no harm.
#[test]
fn a_full_lane_dropped_futures_and_a_reader_that_never_reads() {
    run(async {
        let runtime = Runtime::builder().executor(nothing()).lane_capacity(4).start().expect("it starts");
        let handle = runtime.handle();
        let _never_read = handle.events().expect("the runtime runs");
        handle.add_node(slot_node("a", 4)).await.expect("the node is new");
        let mut full = 0;
        for number in 0..2_000 {
            match handle.try_submit(JobSpec::bag(format!("j{number}"), 1)) {
                Ok(answer) if number % 2 == 0 => drop(answer),
                Ok(answer) => drop(answer.await.expect("accepted")),
                Err(SubmitError::Full(job)) => {
                    assert_eq!(job.name, format!("j{number}"), "the job comes back");
                    full += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        let last = handle.submit(JobSpec::bag("last", 1)).await.expect("there is room in the end");
        handle.wait(last).await.expect("it finishes");
        assert!(full < 2_000);
    });
}

/// Goal: an executor that never returns is left behind at the deadline, and the report says so.
#[test]
fn an_execution_that_never_returns_is_reported() {
    run(async {
        let (began, mut begun) = tokio::sync::mpsc::channel(1);
        let executor = tasks(move |_: TaskContext| {
            let began = began.clone();
            async move {
                began.send(()).await.expect("the test waits for it");
                std::future::pending().await
            }
        });
        let runtime = Runtime::builder().executor(executor).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 1)).await.expect("the node is new");
        handle.submit(JobSpec::bag("j", 1).request("slot", 1)).await.expect("accepted");
        begun.recv().await.expect("it begins");
        let report = runtime.shutdown(Duration::from_millis(200)).await;
        assert_eq!((report.stopped, report.abandoned, report.threads_joined), (1, 1, true));
    });
}

/// Goal: thousands of submissions whose callers give up while they wait for room do no harm: their places
/// go to those who come after them.
#[test]
fn callers_that_give_up_while_they_wait_for_room_do_no_harm() {
    run(async {
        let runtime = Runtime::builder().executor(nothing()).lane_capacity(2).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 4)).await.expect("the node is new");
        for _ in 0..50 {
            let many: Vec<_> = (0..100).map(|_| handle.submit(JobSpec::bag("given up", 1))).collect();
            for submission in many {
                drop(tokio::time::timeout(Duration::ZERO, submission).await);
            }
        }
        let last = handle.submit(JobSpec::bag("last", 1)).await.expect("there is room for it");
        handle.wait(last).await.expect("it finishes");
    });
}

/// Goal: tasks go only to nodes that suit, what waits says which filter rules how many nodes out and what
/// is nearest, and that change lets it run.
#[test]
fn rules_are_kept_and_explained() {
    run(async {
        let config = Config::from_toml("window = 0.0").expect("a good setting");
        let runtime = Runtime::builder().config(config).executor(nothing()).start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 1).label("zone", "a")).await.expect("the node is new");
        handle.add_node(slot_node("b", 1).label("zone", "b")).await.expect("the node is new");
        let role = |constraint: &str| RoleSpec::new("r", 1).request("slot", 1).constraint(constraint);
        let job = |role: RoleSpec| JobSpec::new("j").group(GroupSpec::new("g").role(role));
        let fits = handle.submit(job(role("node.labels.zone in (b, c)"))).await.expect("accepted");
        handle.wait(fits).await.expect("it finishes");
        let waits = handle.submit(job(role("node.labels.zone == c"))).await.expect("accepted");
        let explained = handle.explain(waits).await.expect("the job is known");
        let sentence = explained[0].sentence();
        let expected = "1 task waits: no node could take it even if empty (of 2 nodes 2 do not satisfy the \
                        constraints); nearest: node a if it satisfied `node.labels.zone == c`";
        assert_eq!(sentence, expected);
        let labels = Some([("zone".to_owned(), "c".to_owned())].into());
        let patch = NodePatch { labels, ..NodePatch::default() };
        handle.update_node("a", patch).await.expect("the node is there");
        handle.wait(waits).await.expect("it finishes");
        let bad = handle.submit(job(role("node.label.zone == c"))).await;
        let Err(SubmitError::Invalid { problem, .. }) = bad else { panic!("{bad:?}") };
        assert_eq!(problem.field, "groups[0].roles[0].constraints[0]");
        assert!(problem.to_string().contains("node.label.zone"), "{problem}");
        let pinned = handle.submit(job(RoleSpec::new("r", 1).on_node("ghost"))).await.expect("accepted");
        let explained = handle.explain(pinned).await.expect("the job is known");
        assert!(explained[0].sentence().ends_with("nearest: a node named ghost"), "{}", explained[0]);
        handle.add_node(NodeSpec::new("ghost")).await.expect("the node is new");
        handle.wait(pinned).await.expect("it finishes");
    });
}

/// Goal: an execution that ignores its stop keeps what it holds, and nothing else: its node goes on.
#[test]
fn one_stuck_execution_does_not_take_its_node_down() {
    run(async {
        let config = Config::from_toml("window = 0.0\n[deadlines]\nstop = 0.05\ndown = 0.1");
        let (began, begun) = std::sync::mpsc::channel();
        let executor = blocking_tasks(move |task: TaskContext| {
            if task.job.name == "stuck" {
                began.send(()).expect("the test waits for it");
                std::thread::sleep(Duration::from_millis(600));
            }
            Ok(())
        });
        let builder = Runtime::builder().config(config.expect("good settings")).executor(executor);
        let runtime = builder.start().expect("it starts");
        let handle = runtime.handle();
        handle.add_node(slot_node("a", 2)).await.expect("the node is new");
        let stuck = handle.submit(JobSpec::bag("stuck", 1).request("slot", 1)).await.expect("accepted");
        // What is cancelled before it runs is never begun.
        tokio::task::spawn_blocking(move || begun.recv()).await.expect("no panic").expect("it begins");
        handle.cancel(stuck).await.expect("the job is known");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(handle.job(stuck).expect("kept").live, 1, "it still holds its place");
        let other = handle.submit(JobSpec::bag("other", 2).request("slot", 1)).await.expect("accepted");
        assert_eq!(handle.wait(other).await.expect("it finishes").completed, 2);
        handle.wait(stuck).await.expect("it ends in the end");
    });
}
