//! How many actors should share the agents of the nodes: whole task lives per second through the real
//! runtime, with one actor for all of them up to one actor for each.
//!
//!     cargo bench --bench agents [-- --quick]
//!
//! The first row, one actor for all, is the baseline of the others. Each row is a process of its own, so that
//! none finds memory that another has left behind.

use std::process::Command;
use std::time::{Duration, Instant};

use plimsoll::{Config, Handle, JobSpec, NodeSpec, Runtime, tasks};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SLOTS_PER_NODE: u32 = 4;
const TASKS_PER_JOB: u32 = 100;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick")
        || std::env::var_os("PLIMSOLL_BENCH_QUICK").is_some();
    let (nodes, jobs) = if quick { (1_000, 500) } else { (20_000, 5_000) };
    if let Some(shards) = std::env::var(ONLY).ok().and_then(|shards| shards.parse().ok()) {
        let (rate, start, bytes) = measure(nodes, jobs, shards);
        return println!("{rate} {} {bytes}", start.as_millis());
    }
    println!("whole task lives, {nodes} nodes, {jobs} jobs of {TASKS_PER_JOB} tasks");
    let titles = ["nodes/actor", "lives/s", "of first", "start ms", "bytes/node"];
    println!("{:>10}{}", "actors", titles.map(|title| format!("{title:>14}")).concat());
    let mut first = None;
    for shards in [1, 2, 4, 16, 256, nodes] {
        let own = std::env::current_exe().expect("this program has a path");
        let row = Command::new(own).args(std::env::args().skip(1)).env(ONLY, shards.to_string()).output();
        let row = String::from_utf8(row.expect("it can be started again").stdout).expect("figures");
        let [rate, start, bytes] = row.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{row}") };
        let rate: f64 = rate.parse().expect("a figure");
        let of_first = rate / *first.get_or_insert(rate);
        println!("{shards:>10}{:>14}{rate:>14.0}{of_first:>14.2}{start:>14}{bytes:>14}", nodes / shards);
    }
}

/// So many actors are to be measured, and nothing else.
const ONLY: &str = "PLIMSOLL_BENCH_AGENTS_ONLY";

/// Bytes that this process holds.
fn resident() -> u64 {
    const PAGE: u64 = 4_096;
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE
}

/// Task lives per second, how long the nodes took to be there, and how many bytes each takes in all: with its
/// agent, and what every machine and the board know of it.
fn measure(nodes: usize, jobs: usize, shards: usize) -> (f64, Duration, u64) {
    let config = Config::from_toml("window = 0.0").expect("a good setting");
    let executor = tasks(|_| async { Ok(()) }).inline();
    let runtime = Runtime::builder().config(config).executor(executor).agent_shards(shards).start();
    let runtime = runtime.expect("it starts");
    let handle = runtime.handle();
    let driver = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a thread waits");
    let result = driver.block_on(async {
        let (begin, before) = (Instant::now(), resident());
        for number in 0..nodes {
            let node = NodeSpec::new(format!("n{number}")).capacity("slot", SLOTS_PER_NODE);
            handle.add_node(node).await.expect("the node is new");
        }
        let start = begin.elapsed();
        let bytes = resident().saturating_sub(before) / nodes as u64;
        let begin = Instant::now();
        live(&handle, jobs).await;
        let lives = jobs as f64 * f64::from(TASKS_PER_JOB);
        (lives / begin.elapsed().as_secs_f64(), start, bytes)
    });
    driver.block_on(runtime.shutdown(Duration::from_secs(30)));
    result
}

/// Submits the jobs and waits for the last task of each.
async fn live(handle: &Handle, jobs: usize) {
    let job = || JobSpec::bag("j", TASKS_PER_JOB).request("slot", 1);
    let outcomes = handle.submit_many((0..jobs).map(|_| job()).collect()).await;
    for id in outcomes {
        handle.wait(id.expect("a good job")).await.expect("it finishes");
    }
}
