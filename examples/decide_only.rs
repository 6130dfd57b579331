//! A service that runs the work itself: it feeds job-submit and node-idle events and carries out the
//! assignments.
//!
//!     cargo run --example decide_only

use std::error::Error;
use std::time::Duration;

use plimsoll::{JobSpec, NodeSpec, Order, Runtime};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Without an executor the runtime decides and the service does.
    let runtime = Runtime::builder().assignment_window(100).start()?;
    let handle = runtime.handle();
    let mut assignments = runtime.assignments().expect("nobody else reads them");
    for name in ["worker-1", "worker-2", "worker-3"] {
        handle.add_node(NodeSpec::new(name).capacity("slot", 1)).await?;
    }
    let job = handle.submit(JobSpec::bag("render", 9).request("slot", 1)).await?;
    let mut done = 0;
    while done < 9 {
        let Some(batch) = assignments.next().await else { break };
        let last = batch.last().map_or(0, |assignment| assignment.sequence);
        for assignment in batch.iter().filter(|assignment| assignment.order == Order::Start) {
            println!("frame {} on {}", assignment.attempt.task.index, assignment.node);
            done += 1;
            // Here the service would send the work to the node; when the node says that it is idle
            // again, one event frees everything it had.
            tokio::time::sleep(Duration::from_millis(5)).await;
            handle.node_idle(&assignment.node).await?;
        }
        handle.acknowledge(&mut assignments, last).await?;
    }
    let status = handle.wait(job).await?;
    println!("{} of 9 frames are done", status.completed);
    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
