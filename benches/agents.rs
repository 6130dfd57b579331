//! How many actors should share the agents of the nodes: whole task lives per second through the real
//! runtime, with one actor for all of them up to one actor for each.
//!
//!     cargo bench --bench agents [-- --quick]
//!
//! The first row, one actor for all, is the baseline of the others.

use std::time::{Duration, Instant};

use plimsoll::{Config, Handle, JobSpec, NodeSpec, Runtime, tasks};

const SLOTS_PER_NODE: u32 = 4;
const TASKS_PER_JOB: u32 = 100;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick")
        || std::env::var_os("PLIMSOLL_BENCH_QUICK").is_some();
    let (nodes, jobs) = if quick { (1_000, 500) } else { (20_000, 5_000) };
    println!("whole task lives, {nodes} nodes, {jobs} jobs of {TASKS_PER_JOB} tasks");
    println!("{:>10}{:>14}{:>14}{:>12}{:>12}", "actors", "nodes/actor", "lives/s", "of first", "start ms");
    let mut first = None;
    for shards in [1, 2, 4, 16, 256, nodes] {
        let (rate, start) = measure(nodes, jobs, shards);
        let of_first = rate / *first.get_or_insert(rate);
        let start = start.as_millis();
        println!("{shards:>10}{:>14}{rate:>14.0}{of_first:>12.2}{start:>12}", nodes / shards);
    }
}

/// Task lives per second, and how long the nodes took to be there.
fn measure(nodes: usize, jobs: usize, shards: usize) -> (f64, Duration) {
    let config = Config::from_toml("window = 0.0").expect("a good setting");
    let executor = tasks(|_| async { Ok(()) }).inline();
    let runtime = Runtime::builder().config(config).executor(executor).agent_shards(shards).start();
    let runtime = runtime.expect("it starts");
    let handle = runtime.handle();
    let driver = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a thread waits");
    let result = driver.block_on(async {
        let begin = Instant::now();
        for number in 0..nodes {
            let node = NodeSpec::new(format!("n{number}")).capacity("slot", SLOTS_PER_NODE);
            handle.add_node(node).await.expect("the node is new");
        }
        let start = begin.elapsed();
        let begin = Instant::now();
        live(&handle, jobs).await;
        let lives = jobs as f64 * f64::from(TASKS_PER_JOB);
        (lives / begin.elapsed().as_secs_f64(), start)
    });
    driver.block_on(runtime.shutdown(Duration::from_secs(30)));
    result
}

/// Submits the jobs and waits for the last task of each.
async fn live(handle: &Handle, jobs: usize) {
    let job = || JobSpec::bag("j", TASKS_PER_JOB).request("slot", 1);
    let outcomes = handle.submit_many((0..jobs).map(|_| job()).collect()).await.expect("the runtime runs");
    for id in outcomes {
        handle.wait(id.expect("a good job")).await.expect("it finishes");
    }
}
