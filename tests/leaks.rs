//! Goal: a runtime that has ended leaves no memory behind. Method: whole lives of runtimes, one after the
//! other, in a program that does nothing else; after some to warm up, the bytes held do not grow.

use std::alloc::System;
use std::time::Duration;

use plimsoll::{Config, JobSpec, NodeSpec, Runtime, tasks};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn held() -> i64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

/// A runtime with nodes, jobs that end and jobs that do not, a reader that never reads, and a waiter.
async fn one_life(ends_in_order: bool) {
    let executor = tasks(|_| async { Ok(()) });
    let config = Config::from_toml("window = 0.0").expect("a good setting");
    let runtime = Runtime::builder().config(config).executor(executor).start().expect("it starts");
    let handle = runtime.handle();
    let _never_read = handle.events().expect("the runtime runs");
    for number in 0..20 {
        let node = NodeSpec::new(format!("n{number}")).capacity("slot", 4).label("zone", "a");
        handle.add_node(node).await.expect("the node is new");
    }
    for _ in 0..20 {
        let job = JobSpec::bag("runs", 10).request("slot", 1);
        let job = handle.submit(job).await.expect("accepted");
        handle.wait(job).await.expect("it finishes");
    }
    for _ in 0..20 {
        let job = handle.submit(JobSpec::gang("waits", 1_000).request("slot", 1)).await.expect("accepted");
        let waits = tokio::time::timeout(Duration::from_micros(10), handle.wait(job));
        assert!(waits.await.is_err(), "it does not fit");
    }
    match ends_in_order {
        true => assert!(runtime.shutdown(Duration::from_secs(10)).await.threads_joined),
        false => drop(runtime),
    }
}

#[test]
fn no_memory_is_left_after_shutdown_or_drop() {
    const WARM_UP: usize = 6;
    const MEASURED: usize = 40;
    // One life holds some hundred kilobytes: forty of them would be seen.
    const SLACK: i64 = 64 * 1_024;
    let driver = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
    let lives = |count: usize| {
        for number in 0..count {
            driver.block_on(one_life(number % 2 == 0));
        }
    };
    lives(WARM_UP);
    let before = held();
    lives(MEASURED);
    // A thread that has been joined may take a moment to give its last bytes back.
    for _ in 0..100 {
        if held() - before <= SLACK {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} bytes are left after {MEASURED} lives", held() - before);
}
