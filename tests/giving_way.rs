//! Work that is taken away while it runs: the time it is given to end, and what becomes of its place.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll::core::outcome::StopCause;
use plimsoll::{
    CommandSpec, Config, Executor, GroupId, GroupSpec, Handle, JobId, JobSpec, NodeSpec, OnPreempt, Outcome,
    ProcessExecutor, RoleSpec, Runtime, TaskContext, TaskError, TaskId, tasks,
};

const DEADLINE: Duration = Duration::from_secs(60);

/// One slot, and a strict band that takes from others.
const SETTINGS: &str = "
    window = 0
    strict_bands = [\"urgent\"]
    rebalance = { higher = true }
    [bands]
    normal = 1
    urgent = 2
";

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(DEADLINE, test).await.expect("in time") });
}

async fn start(executor: impl Executor, grace: Duration) -> (Runtime, Handle) {
    let config = Config::from_toml(SETTINGS).expect("good settings");
    let runtime =
        Runtime::builder().config(config).stop_grace(grace).executor(executor).start().expect("it starts");
    let handle = runtime.handle();
    handle.add_node(NodeSpec::new("n").capacity("slot", 1)).await.expect("the node is new");
    (runtime, handle)
}

fn task_of(job: JobId) -> TaskId {
    TaskId { group: GroupId::new(job, 0), role: 0, index: 0 }
}

async fn until(mut reached: impl FnMut() -> bool) {
    while !reached() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Says that something is over, whether it returned or was dropped.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Goal: who has to go is told, has the grace time, and its place goes to nobody before its end; its attempt says who
/// it went for, and it waits once more. Method: one slot; a task that takes its time to end, within its grace time or
/// for ever; urgent work that notes whether the other was over when it began.
#[test]
fn who_has_to_go_has_time_to_end_and_keeps_its_place_until_then() {
    for (ends_itself, grace) in [(true, DEADLINE), (false, Duration::from_millis(50))] {
        run(async {
            let (over, told) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let (began_after, seen) = (Arc::clone(&told), Arc::clone(&over));
            let executor = tasks(move |mut task: TaskContext| {
                let (told, over) = (Arc::clone(&told), Arc::clone(&over));
                async move {
                    if &*task.job.name == "urgent" {
                        assert!(told.load(Ordering::SeqCst) && over.load(Ordering::SeqCst), "too early");
                        return Ok(());
                    }
                    if task.attempt.number > 1 {
                        return Ok(());
                    }
                    let _over = Over(over);
                    task.stop.stopped().await;
                    told.store(true, Ordering::SeqCst);
                    if !ends_itself {
                        return pending().await;
                    }
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    Err(TaskError::new("went"))
                }
            });
            let (runtime, handle) = start(executor, grace).await;
            let modest = handle.submit(JobSpec::bag("modest", 1).request("slot", 1)).await.expect("accepted");
            until(|| handle.job(modest).expect("it is known").live == 1).await;
            let urgent = JobSpec::bag("urgent", 1).request("slot", 1).band("urgent");
            let urgent = handle.submit(urgent).await.expect("accepted");
            let status = handle.wait(urgent).await.expect("it ends");
            assert_eq!(status.completed, 1, "it began when the place was free: {status:?}");
            assert!(began_after.load(Ordering::SeqCst) && seen.load(Ordering::SeqCst));
            assert_eq!(handle.wait(modest).await.expect("it ends").completed, 1, "it had its turn once more");
            let history = handle.task(task_of(modest)).await.expect("it is known");
            let outcomes: Vec<Outcome> = history.attempts.iter().map(|attempt| attempt.outcome).collect();
            let cause = StopCause::HigherWork(GroupId::new(urgent, 0));
            let status = handle.job(modest).expect("it is known");
            let last = status.last_preempted.map(|last| (last.attempt.task, last.cause));
            assert_eq!((status.preempted, last), (1, Some((task_of(modest), cause))));
            assert_eq!(outcomes, [Outcome::Preempted(cause), Outcome::Completed]);
            runtime.shutdown(DEADLINE).await;
        });
    }
}

/// Goal: of a task that runs it is told for whom it could be stopped, and what keeps it from that. Method: the same
/// task, once as it is, once firm, once of the highest band, and once in its first hour.
#[test]
fn what_runs_says_what_could_stop_it_and_what_protects_it() {
    run(async {
        let (runtime, handle) = start(tasks(|_: TaskContext| pending()), Duration::ZERO).await;
        let bag = || JobSpec::bag("j", 1).request("slot", 1);
        let first_hour = "rebalance = { minimum_run = 3600 }";
        let cases = [
            (bag(), "", "it could be stopped for"),
            (bag().firm(), "", "nobody could stop it for others now"),
            (bag().band("urgent"), "", "nobody could stop it for others now"),
            (bag(), first_hour, "nobody could stop it for others now"),
        ];
        let mut told = BTreeSet::new();
        for (job, settings, expected) in cases {
            let patch = Config::from_toml(settings).expect("good settings");
            handle.update_settings(patch.raw()).expect("they can change");
            let job = handle.submit(job).await.expect("accepted");
            until(|| handle.job(job).expect("it is known").live == 1).await;
            let explanations = handle.explain(task_of(job)).await.expect("it is known");
            let sentence = explanations[0].sentence();
            assert!(sentence.contains(expected), "{sentence}");
            let (_, protection) = sentence.rsplit_once("; ").expect("two parts");
            assert!(told.insert(protection.to_owned()), "each for another reason: {told:?} and {protection}");
            handle.cancel(job).await.expect("it is known");
            handle.wait(job).await.expect("it ends");
        }
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: a member above the minimum of a group whose size rests goes for a strict band only, and says so; of the
/// highest
/// band it goes for nobody. Method: an elastic group that has just grown, of either band, asked, and then urgent work.
#[test]
fn what_rests_says_that_higher_work_could_stop_it() {
    run(async {
        let (runtime, handle) = start(tasks(|_: TaskContext| pending()), Duration::ZERO).await;
        handle.add_node(NodeSpec::new("m").capacity("slot", 1)).await.expect("the node is new");
        let rest = "freeze = 3600\nrebalance = { higher = false, elastic = true }";
        let patch = Config::from_toml(rest).expect("good settings");
        handle.update_settings(patch.raw()).expect("they can change");
        for (band, expected) in [("urgent", "nobody could stop it"), ("normal", "work of a higher band")] {
            let role = RoleSpec::new("r", 2).at_least(1).request("slot", 1);
            let job = JobSpec::new("elastic").band(band).group(GroupSpec::new("g").atomic().role(role));
            let job = handle.submit(job).await.expect("accepted");
            until(|| handle.job(job).expect("it is known").live == 2).await;
            let newest = TaskId { index: 1, ..task_of(job) };
            let explanations = handle.explain(newest).await.expect("it is known");
            let sentence = explanations[0].sentence();
            assert!(sentence.contains(expected) && sentence.contains("protected until"), "{sentence}");
            if band == "normal" {
                let urgent = JobSpec::bag("urgent", 1).request("slot", 1).band("urgent");
                let urgent = handle.submit(urgent).await.expect("accepted");
                until(|| handle.job(urgent).expect("it is known").live == 1).await;
                assert_eq!(handle.job(job).expect("it is known").live, 1, "one went, the other goes on");
                continue;
            }
            handle.cancel(job).await.expect("it is known");
            handle.wait(job).await.expect("it ends");
        }
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: a process that has to go is asked first, and has its grace time. Method: a process that takes a moment to
/// write a file when it is asked to end, and urgent work that succeeds only if the file is there.
#[test]
fn a_process_that_has_to_go_is_asked_first() {
    run(async {
        let file = std::env::temp_dir().join(format!("plimsoll-giving-way-{}", std::process::id()));
        let (ready, name) = (file.with_extension("ready"), file.display());
        let asked = format!("sleep 0.1; echo done > {name}; exit 1");
        let patient = format!("trap '{asked}' TERM; touch {}; while :; do sleep 0.01; done", ready.display());
        let job = |name: &str, script: &str| {
            let role = RoleSpec::new("r", 1).request("slot", 1);
            let role = role.command(CommandSpec::new(["sh", "-c", script])).on_preempt(OnPreempt::Drop);
            JobSpec::new(name).group(GroupSpec::new("g").role(role))
        };
        let (runtime, handle) = start(ProcessExecutor::new(), DEADLINE).await;
        let modest = handle.submit(job("modest", &patient)).await.expect("accepted");
        until(|| ready.exists()).await;
        let urgent = job("urgent", &format!("grep -q done {name}")).band("urgent");
        let urgent = handle.submit(urgent).await.expect("accepted");
        let status = handle.wait(urgent).await.expect("it ends");
        assert_eq!(status.completed, 1, "the other had time to end: {:?}", status.failures);
        let status = handle.wait(modest).await.expect("it ends");
        assert_eq!(status.completed + status.failed, 0, "it is dropped: {status:?}");
        runtime.shutdown(DEADLINE).await;
        for file in [file, ready] {
            std::fs::remove_file(file).expect("it was written");
        }
    });
}
