//! Tasks as processes of this machine: how they end, what they leave behind, and that it is nothing.
#![cfg(target_os = "linux")]

#[path = "kit/outcomes.rs"]
mod outcomes;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll::core::id::GroupId;
use plimsoll::core::messages::JobEvent;
use plimsoll::core::outcome::{FailureCause, Outcome, Phase};
use plimsoll::core::time::Span;
use plimsoll::{
    CommandSpec, Config, Event, GroupSpec, Handle, JobId, JobSpec, NodeSpec, OutputTo, ProcessExecutor,
    RoleSpec, Runtime, TaskId,
};

use outcomes::{ends_of, outcomes};

const DEADLINE: Duration = Duration::from_secs(60);

fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(DEADLINE, body).await.expect("within the deadline") })
}

/// A pretend cluster of this machine: two nodes with so many slots each.
async fn cluster(settings: &str, slots: u32, executor: ProcessExecutor) -> (Runtime, Handle) {
    let config = Config::from_toml(settings).expect("good settings");
    let runtime = Runtime::builder().config(config).executor(executor).start().expect("it starts");
    let handle = runtime.handle();
    for name in ["a", "b"] {
        handle.add_node(NodeSpec::new(name).capacity("slot", slots)).await.expect("the node is new");
    }
    (runtime, handle)
}

fn shell(script: &str) -> CommandSpec {
    CommandSpec::new(["sh", "-c", script])
}

fn job(tasks: u32, command: CommandSpec) -> JobSpec {
    let role = RoleSpec::new("r", tasks).request("slot", 1).command(command);
    JobSpec::new("j").group(GroupSpec::new("g").role(role))
}

fn task(job: JobId, index: u32) -> TaskId {
    TaskId { group: GroupId::new(job, 0), role: 0, index }
}

/// A directory of its own that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("plimsoll-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Scratch(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    /// The numbers that processes have written into a file, as many as expected.
    async fn numbers(&self, name: &str, expected: usize) -> Vec<u32> {
        loop {
            let text = fs::read_to_string(self.0.join(name)).unwrap_or_default();
            let numbers: Vec<u32> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
            if numbers.len() >= expected && text.ends_with('\n') {
                return numbers;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a process is there and no zombie.
fn is_alive(process: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    let state = status.rsplit(')').next().unwrap_or("").trim().chars().next();
    state.is_some_and(|state| state != 'Z')
}

/// The children of this process, zombies too.
fn children() -> BTreeSet<u32> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").expect("there is /proc");
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let parent = |process: &u32| {
        let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        status.rsplit(')').next()?.split_whitespace().nth(1).map(str::to_owned)
    };
    numbers.filter(|process| parent(process).as_ref() == Some(&own)).collect()
}

async fn gone(processes: &[u32]) {
    let began = Instant::now();
    while let Some(left) = processes.iter().find(|process| is_alive(**process)) {
        assert!(began.elapsed() < Duration::from_secs(5), "process {left} is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Goal: a process gets what its command says, and how it ended is told. Method: good and bad ends, and
/// what cannot be started at all.
#[test]
fn a_process_gets_what_its_command_says_and_its_end_is_told() {
    let scratch = Scratch::new("ends");
    run(async {
        let executor = ProcessExecutor::new();
        let book = executor.outputs();
        let (runtime, handle) = cluster("", 4, executor).await;
        let script = "cat; echo $A $PLIMSOLL_ROLE $PLIMSOLL_TASK $HOME; pwd; echo oops >&2";
        let command =
            shell(script).env("A", "b c").cwd("/").stderr(OutputTo::Path(scratch.path("{task}.txt")));
        let (ended, _) = outcomes(&handle, job(1, command)).await;
        assert_eq!(ended, [Outcome::Completed]);
        let said = book.read(task(JobId(1), 0)).expect("it said something");
        assert_eq!(String::from_utf8_lossy(&said.stdout), "b c r 0\n/\n");
        assert_eq!(fs::read_to_string(scratch.path("0.txt")).expect("a file"), "oops\n");
        let failed = |cause| vec![Outcome::Failed(cause)];
        let (ended, status) = outcomes(&handle, job(1, shell("exit 3"))).await;
        assert_eq!(ended, failed(FailureCause::Code(3)));
        assert_eq!(&*status.failures[0].text, "ended with code 3");
        let (ended, _) = outcomes(&handle, job(1, shell("kill -SEGV $$"))).await;
        assert_eq!(ended, failed(FailureCause::Signal(11)));
        for bad in [CommandSpec::new(["/no/such/program"]), shell("true").cwd("/no/such/place")] {
            let (ended, status) = outcomes(&handle, job(1, bad)).await;
            assert_eq!(ended, failed(FailureCause::NotStarted), "{:?}", status.failures);
        }
        let (ended, status) = outcomes(&handle, JobSpec::bag("none", 1)).await;
        assert_eq!(ended, failed(FailureCause::NotStarted));
        assert_eq!(&*status.failures[0].text, "its role has no command");
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: output that goes to no file is bounded. Method: a process that says a megabyte and keeps a few
/// bytes of it.
#[test]
fn a_ring_keeps_the_last_of_much_output() {
    run(async {
        let executor = ProcessExecutor::new();
        let book = executor.outputs();
        let (runtime, handle) = cluster("", 4, executor).await;
        let much = shell("head -c 1000000 /dev/zero; echo the end").stdout(OutputTo::Ring(8));
        assert_eq!(outcomes(&handle, job(1, much)).await.0, [Outcome::Completed]);
        let said = book.read(task(JobId(1), 0)).expect("it said something");
        assert_eq!((&*said.stdout, said.dropped), (&b"the end\n"[..], 1_000_000));
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: somebody kills the group of a task from outside with `kill -9`: the attempt ends by that signal.
#[test]
fn a_group_that_is_killed_from_outside_ends_its_attempt() {
    let scratch = Scratch::new("outside");
    run(async {
        let (runtime, handle) = cluster("", 4, ProcessExecutor::new()).await;
        let script = format!("sleep 100 & echo $! >>{0}; echo $$ >>{0}; wait", scratch.path("pids"));
        let events = handle.events().expect("the runtime runs");
        let id = handle.submit(job(1, shell(&script))).await.expect("accepted");
        let pids = scratch.numbers("pids", 2).await;
        let killed = std::process::Command::new("kill").args(["-9", "--", &format!("-{}", pids[1])]).status();
        assert!(killed.expect("kill can be started").success());
        let (ended, _) = ends_of(&handle, events, id).await;
        assert_eq!(ended, [Outcome::Failed(FailureCause::Signal(9))]);
        gone(&pids).await;
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: a process that hangs and does not listen to `SIGTERM` is ended after the grace time, when its
/// time is over as well as when it is cancelled; one that listens gets the time to end well.
#[test]
fn a_process_that_does_not_listen_is_ended_after_the_grace_time() {
    let scratch = Scratch::new("hanging");
    let deaf = format!("trap '' TERM; echo $$ >>{}; while :; do sleep 100; done", scratch.path("pids"));
    run(async {
        let grace = Span::from_millis(100);
        let (runtime, handle) = cluster("[deadlines]\noverhead = 0", 4, ProcessExecutor::new()).await;
        let mut timed = job(1, shell(&deaf).grace(grace));
        timed.groups[0].roles[0].timeout = Some(Duration::from_millis(200));
        assert_eq!(outcomes(&handle, timed).await.0, [Outcome::TimedOut(Phase::Running)]);
        let id = handle.submit(job(1, shell(&deaf).grace(grace))).await.expect("accepted");
        let pids = scratch.numbers("pids", 2).await;
        handle.cancel(id).await.expect("it is known");
        assert_eq!(handle.wait(id).await.expect("it ends").cancelled, 1);
        gone(&pids).await;
        let polite =
            format!("trap 'echo 7 >>{0}; exit' TERM; echo $$ >>{0}; sleep 100 & wait", scratch.path("p"));
        let id = handle.submit(job(1, shell(&polite))).await.expect("accepted");
        scratch.numbers("p", 1).await;
        handle.cancel(id).await.expect("it is known");
        handle.wait(id).await.expect("it ends");
        assert_eq!(scratch.numbers("p", 2).await[1], 7, "it was asked first");
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: everybody of a group that is to end has the grace time, also when the leader goes at once. Method: shells
/// that do, with a child that takes its time to end well, and with one that does not listen.
#[test]
fn everybody_of_a_group_has_the_grace_time() {
    let scratch = Scratch::new("group");
    run(async {
        let (runtime, handle) = cluster("", 4, ProcessExecutor::new()).await;
        let said = scratch.path("said");
        let careful = format!(
            "(trap 'sleep 0.2; echo 7 >>{said}; exit' TERM; echo 1 >>{said}; sleep 100 & wait) & echo $! >>{said}; wait"
        );
        let id = handle.submit(job(1, shell(&careful))).await.expect("accepted");
        let began = scratch.numbers("said", 2).await;
        handle.cancel(id).await.expect("it is known");
        assert_eq!(handle.wait(id).await.expect("it ends").cancelled, 1);
        assert_eq!(scratch.numbers("said", 2).await[2..], [7], "it ended well, and before its task did");
        let pids = scratch.path("pids");
        let deaf = format!("(trap '' TERM; echo 1 >>{pids}; sleep 100) & echo $! >>{pids}; wait");
        let deaf = shell(&deaf).grace(Span::from_millis(100));
        let id = handle.submit(job(1, deaf)).await.expect("accepted");
        let deaf = scratch.numbers("pids", 2).await;
        handle.cancel(id).await.expect("it is known");
        assert_eq!(handle.wait(id).await.expect("it ends").cancelled, 1);
        let children: Vec<u32> = began.into_iter().chain(deaf).filter(|process| *process > 1).collect();
        assert_eq!(children.len(), 2);
        gone(&children).await;
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: what a process has started and left behind in its group ends with it, also when it ends well, and before
/// anybody hears of that: whoever comes next does not meet it.
#[test]
fn children_of_a_process_end_with_it() {
    let scratch = Scratch::new("forks");
    run(async {
        let (runtime, handle) = cluster("", 4, ProcessExecutor::new()).await;
        let forks = format!(
            "for i in 1 2 3; do (sleep 100 & echo $! >>{0}; sleep 100) & echo $! >>{0}; done; sleep 0.2",
            scratch.path("pids")
        );
        assert_eq!(outcomes(&handle, job(1, shell(&forks))).await.0, [Outcome::Completed]);
        let pids = scratch.numbers("pids", 6).await;
        assert!(!pids.iter().any(|process| is_alive(*process)), "{pids:?}");
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: nothing is left when the runtime stops while processes run, in an orderly way or not. Method:
/// deaf processes with children; a shutdown with time, one without any, and a runtime that is dropped.
#[test]
fn nothing_is_left_when_the_runtime_stops() {
    run(async {
        for way in ["orderly", "hasty", "dropped"] {
            let scratch = Scratch::new(way);
            let script = format!(
                "trap '' TERM; sleep 100 & echo $! >>{0}; echo $$ >>{0}; wait; wait",
                scratch.path("pids")
            );
            let executor = ProcessExecutor::new().grace(Duration::from_millis(100));
            let (runtime, handle) = cluster("", 4, executor).await;
            handle.submit(job(4, shell(&script))).await.expect("accepted");
            let pids = scratch.numbers("pids", 8).await;
            assert!(pids.iter().all(|process| is_alive(*process)));
            match way {
                "orderly" => {
                    let report = runtime.shutdown(DEADLINE).await;
                    assert_eq!((report.stopped, report.abandoned), (4, 0));
                }
                "hasty" => drop(runtime.shutdown(Duration::ZERO).await),
                _ => drop(tokio::task::spawn_blocking(move || drop(runtime)).await),
            }
            gone(&pids).await;
        }
    });
}

/// Goal: nothing is left of a service that is interrupted with Ctrl-C and stops its runtime then. Method: this
/// program as such a service, with deaf processes that have children.
#[test]
fn nothing_is_left_of_a_service_that_is_interrupted() {
    const SERVICE: &str = "PLIMSOLL_INTERRUPTED_SERVICE";
    if let Ok(script) = std::env::var(SERVICE) {
        return run(async {
            let executor = ProcessExecutor::new().grace(Duration::from_millis(100));
            let (runtime, handle) = cluster("", 4, executor).await;
            // Whoever sees the processes may interrupt at once.
            let interrupted = tokio::signal::ctrl_c();
            let mut interrupted = std::pin::pin!(interrupted);
            assert!(tokio::time::timeout(Duration::ZERO, &mut interrupted).await.is_err());
            handle.submit(job(4, shell(&script))).await.expect("accepted");
            interrupted.await.expect("it can be waited for");
            assert_eq!(runtime.shutdown(DEADLINE).await.abandoned, 0);
        });
    }
    let scratch = Scratch::new("interrupted");
    let deaf = "trap '' TERM INT; sleep 100 & echo $! >>PIDS; echo $$ >>PIDS; wait; wait";
    let own = std::env::current_exe().expect("a test has a file");
    let mut service = std::process::Command::new(own)
        .args(["nothing_is_left_of_a_service_that_is_interrupted", "--exact"])
        .env(SERVICE, deaf.replace("PIDS", &scratch.path("pids")))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it can be started");
    run(async {
        let pids = scratch.numbers("pids", 8).await;
        assert!(pids.iter().all(|process| is_alive(*process)));
        let told = std::process::Command::new("kill").args(["-INT", &service.id().to_string()]).status();
        assert!(told.expect("kill can be started").success());
        let ended = tokio::task::spawn_blocking(move || service.wait()).await.expect("no panic");
        assert!(ended.expect("it can be waited for").success());
        gone(&pids).await;
    });
}

/// Goal: a node that is lost takes its processes along, and their tasks run again elsewhere.
#[test]
fn processes_of_a_removed_node_end_and_their_tasks_run_elsewhere() {
    let scratch = Scratch::new("removed");
    run(async {
        let (runtime, handle) = cluster("", 1, ProcessExecutor::new()).await;
        let script =
            format!("echo $$ >>{}; test $PLIMSOLL_ATTEMPT = 2 || exec sleep 100", scratch.path("pids"));
        let id = handle.submit(job(2, shell(&script))).await.expect("accepted");
        let first = scratch.numbers("pids", 2).await;
        handle.add_node(NodeSpec::new("c").capacity("slot", 2)).await.expect("the node is new");
        for node in ["a", "b"] {
            handle.remove_node(node).await.expect("it is there");
        }
        assert_eq!(handle.wait(id).await.expect("it ends").completed, 2);
        gone(&first).await;
        runtime.shutdown(DEADLINE).await;
    });
}

/// Goal: an agent that panics while processes run begins anew: their groups are ended before their tasks run
/// again, once each, and the other node notices nothing. Method: processes that hold a lock of their task as
/// long as they live, so that a second one beside the first would fail.
#[test]
fn an_agent_that_crashes_leaves_no_process_and_runs_nothing_twice() {
    let scratch = Scratch::new("crash");
    run(async {
        let (runtime, handle) = cluster("[faulty]\nbroken_after = 0", 2, ProcessExecutor::new()).await;
        let mut events = handle.events().expect("the runtime runs");
        let script = format!(
            "mkdir {1}-$PLIMSOLL_TASK-$PLIMSOLL_ATTEMPT || exit 9; sleep 100 & echo $! >>{0}; echo $$ >>{0}; \
             if test -e {1}-go; then kill $!; exit 0; fi; wait",
            scratch.path("pids"),
            scratch.path("ran"),
        );
        let id = handle.submit(job(4, shell(&script))).await.expect("accepted");
        let pids = scratch.numbers("pids", 8).await;
        fs::write(scratch.path("ran-go"), "").expect("a file");
        assert!(runtime.crash_agent("a") && !runtime.crash_agent("c"));
        let mut lost = 0;
        while lost < 2 {
            for event in events.next().await.expect("the runtime runs").events.iter() {
                let Event::Job(JobEvent::Ended { outcome, .. }) = event else { continue };
                assert_eq!(*outcome, Outcome::Lost, "only what ran on the node is lost");
                lost += 1;
                // Its group was ended before anybody heard of it.
                let alive = pids.iter().filter(|process| is_alive(**process)).count();
                assert!(alive <= 4, "{alive} of the first processes are still there");
            }
        }
        while handle.job(id).expect("it is kept").completed < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let status = handle.job(id).expect("it is kept");
        assert_eq!((status.live, status.failed), (2, 0), "the others run on");
        handle.cancel(id).await.expect("it is known");
        assert_eq!(handle.wait(id).await.expect("it ends").cancelled, 2);
        gone(&pids).await;
        runtime.shutdown(DEADLINE).await;
        assert!(!children().iter().any(|process| pids.contains(process)));
    });
}

fn open_files() -> usize {
    fs::read_dir(Path::new("/proc/self/fd")).expect("there is /proc").count()
}

/// Goal: ten thousand short processes leave no zombie and no open file. Method: both are counted before
/// and after, in a process that runs nothing else.
#[test]
fn ten_thousand_short_processes_leave_nothing_behind() {
    const PROCESSES: u32 = 10_000;
    if std::env::var_os("PLIMSOLL_ALONE").is_none() {
        // Other tests of this file start processes too: this one is run by itself.
        let own = std::env::current_exe().expect("a test has a file");
        let alone = std::process::Command::new(own)
            .args(["ten_thousand_short_processes_leave_nothing_behind", "--exact", "--nocapture"])
            .env("PLIMSOLL_ALONE", "1")
            .output();
        let alone = alone.expect("it can be started");
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stderr));
        let said = String::from_utf8_lossy(&alone.stdout);
        assert!(said.contains("test result: ok. 1 passed"), "it was run: {said}");
        return;
    }
    run(async {
        let (runtime, handle) = cluster("", 50, ProcessExecutor::new()).await;
        handle.wait(handle.submit(job(1, shell("true"))).await.expect("accepted")).await.expect("it ends");
        let before = (open_files(), children());
        let id = handle.submit(job(PROCESSES, CommandSpec::new(["/bin/true"]))).await.expect("accepted");
        assert_eq!(handle.wait(id).await.expect("it ends").completed, u64::from(PROCESSES));
        // The last futures may be on their way out.
        let began = Instant::now();
        while (open_files(), children()) != before && began.elapsed() < Duration::from_secs(2) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!((open_files(), children()), before);
        runtime.shutdown(DEADLINE).await;
        assert_eq!(children(), BTreeSet::new());
    });
}
