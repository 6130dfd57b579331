//! Goal: a runtime that was shut down or dropped leaves no thread behind. Method: count the threads of
//! this process before and after; nothing else runs in this test program.

#![cfg(target_os = "linux")]

use std::time::Duration;

use plimsoll::{JobSpec, NodeSpec, Runtime, tasks};

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("linux shows the threads of a process").count()
}

#[test]
fn no_thread_is_left_after_shutdown_or_drop() {
    let driver = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
    let before = threads();
    driver.block_on(async {
        for number in 0..10 {
            let runtime =
                Runtime::builder().executor(tasks(|_| async { Ok(()) })).start().expect("it starts");
            let handle = runtime.handle();
            handle.add_node(NodeSpec::new("n").capacity("slot", 1)).await.expect("the node is new");
            let job = handle.submit(JobSpec::bag("j", 3).request("slot", 1)).await.expect("accepted");
            handle.wait(job).await.expect("it finishes");
            match number % 2 {
                0 => assert!(runtime.shutdown(Duration::from_secs(5)).await.threads_joined),
                _ => drop(runtime),
            }
        }
    });
    // A thread that has been joined may take a moment to leave the list.
    for _ in 0..100 {
        if threads() <= before {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} threads are left of {before}", threads());
}
