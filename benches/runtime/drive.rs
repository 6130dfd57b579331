//! Producer threads that feed a runtime until everything they fed has been dealt with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use plimsoll::{Builder, Config, Handle, JobId, JobSpec, NodeSpec, Runtime, SubmitError, tasks};

use crate::deciding::Shared;

const NODES: u32 = 1_000;
const SLOTS_PER_NODE: u32 = 16;

/// What producers feed.
#[derive(Clone, Copy, Debug)]
pub enum Feed {
    /// Jobs that no node has room for: taken in, numbered, looked at, answered.
    Waiting { batch: u32 },
    /// Jobs of one task and the ends of these, as a service tells that runs the work itself: half of the
    /// events are submissions and half are ends.
    Deciding { batch: u32 },
    /// Jobs of so many tasks, each of which lives a whole life.
    Lives { tasks: u32 },
}

#[derive(Clone, Copy, Debug)]
pub struct Driven {
    pub count: u64,
    pub wall: Duration,
    pub cpu: Duration,
}

/// A runtime with nodes whose executor does nothing.
pub fn runtime(nodes: u32) -> Runtime {
    with_nodes(builder().executor(tasks(|_| async { Ok(()) }).inline()).start().expect("it starts"), nodes)
}

fn builder() -> Builder {
    Runtime::builder().config(Config::from_toml("window = 0.0").expect("a good setting"))
}

fn with_nodes(runtime: Runtime, nodes: u32) -> Runtime {
    let handle = runtime.handle();
    for number in 0..nodes {
        let node = NodeSpec::new(format!("n{number}")).capacity("slot", SLOTS_PER_NODE);
        pollster::block_on(handle.add_node(node)).expect("the node is new");
    }
    runtime
}

pub fn drive(feed: Feed, producers: u32, count: u64) -> Driven {
    let runtime = match feed {
        Feed::Waiting { .. } => runtime(0),
        Feed::Deciding { batch } => return deciding(producers, count, batch),
        Feed::Lives { .. } => runtime(NODES),
    };
    let handle = runtime.handle();
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    let fed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(|| match feed {
                Feed::Waiting { batch: 1 } => one_by_one(&handle, count / u64::from(producers), &fed),
                Feed::Deciding { .. } => unreachable!("measured elsewhere"),
                Feed::Waiting { batch } => in_batches(&handle, count / u64::from(producers), batch, &fed),
                Feed::Lives { tasks } => lives(&handle, count / u64::from(producers), tasks, &fed),
            });
        }
    });
    let driven = Driven { count: fed.load(Ordering::Relaxed), wall: wall.elapsed(), cpu: cpu.elapsed() };
    stop(runtime);
    driven
}

fn stop(runtime: Runtime) {
    let driver = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a thread waits");
    driver.block_on(runtime.shutdown(Duration::from_secs(30)));
}

/// Producers submit and report ends, and one more thread reads what was assigned.
fn deciding(producers: u32, count: u64, batch: u32) -> Driven {
    let runtime = with_nodes(builder().start().expect("it starts"), NODES);
    let (handle, shared) = (runtime.handle(), Arc::new(Shared::default()));
    let reader = runtime.assignments().expect("nobody else reads them");
    let reading = std::thread::spawn({
        let (handle, shared) = (handle.clone(), Arc::clone(&shared));
        move || shared.read(&handle, reader)
    });
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    std::thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(|| shared.feed(&handle, count, batch as usize));
        }
    });
    let driven = Driven { count: shared.events(), wall: wall.elapsed(), cpu: cpu.elapsed() };
    stop(runtime);
    reading.join().expect("the reader ends");
    driven
}

fn in_batches(handle: &Handle, count: u64, batch: u32, fed: &AtomicU64) {
    let job = Arc::new(JobSpec::bag("j", 1).request("slot", 1));
    for _ in 0..count / u64::from(batch) {
        let outcomes = pollster::block_on(handle.submit_many(vec![Arc::clone(&job); batch as usize]));
        let accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        fed.fetch_add(accepted as u64, Ordering::Relaxed);
    }
}

/// The answers are waited for in the end, and not each before the next submission.
fn one_by_one(handle: &Handle, count: u64, fed: &AtomicU64) {
    const UNANSWERED_MAX: usize = 1_024;
    let job = Arc::new(JobSpec::bag("j", 1).request("slot", 1));
    let mut answers = std::collections::VecDeque::with_capacity(UNANSWERED_MAX);
    for _ in 0..count {
        let answer = loop {
            match handle.try_submit(Arc::clone(&job)) {
                Ok(answer) => break answer,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            // The lane is full: whoever has answers outstanding waits for the first of them.
            match answers.pop_front() {
                Some(answer) => take(answer, fed),
                None => std::thread::yield_now(),
            }
        };
        answers.push_back(answer);
        if answers.len() == UNANSWERED_MAX {
            answers.drain(..UNANSWERED_MAX / 2).for_each(|answer| take(answer, fed));
        }
    }
    answers.drain(..).for_each(|answer| take(answer, fed));
}

fn take(answer: impl Future<Output = Result<JobId, SubmitError>>, fed: &AtomicU64) {
    pollster::block_on(answer).expect("the job is accepted");
    fed.fetch_add(1, Ordering::Relaxed);
}

/// Submits in batches, a few of them ahead, and waits for the last task of every job.
fn lives(handle: &Handle, count: u64, tasks: u32, fed: &AtomicU64) {
    let job = Arc::new(JobSpec::bag("j", tasks).request("slot", 1));
    let batch = (6_400 / u64::from(tasks)).clamp(1, 512);
    let mut unfinished = std::collections::VecDeque::new();
    let mut left = count / u64::from(tasks);
    while left > 0 || !unfinished.is_empty() {
        if left > 0 && unfinished.len() < 4 {
            let jobs = vec![Arc::clone(&job); batch.min(left) as usize];
            left -= jobs.len() as u64;
            let outcomes = pollster::block_on(handle.submit_many(jobs));
            unfinished.push_back(outcomes);
            continue;
        }
        let outcomes = unfinished.pop_front().expect("there are some");
        for outcome in outcomes {
            // One that is over and forgotten already is over.
            let _ = pollster::block_on(handle.wait(outcome.expect("a good job")));
            fed.fetch_add(u64::from(tasks), Ordering::Relaxed);
        }
    }
}
