//! The runtime runs the work too, through closures: independent tasks, a gang, and one that fails.
//!
//!     cargo run --example decide_and_run

use std::error::Error;
use std::time::Duration;

use plimsoll::{GroupSpec, JobSpec, NodeSpec, RoleSpec, Runtime, TaskContext, TaskError, tasks};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let executor = tasks(|mut task: TaskContext| async move {
        if task.job.name == "doomed" {
            return Err(TaskError::new("there is no bottom to this"));
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(20)) => Ok(()),
            () = task.stop.stopped() => Err(TaskError::new("told to stop")),
        }
    });
    let runtime = Runtime::builder().executor(executor).start()?;
    let handle = runtime.handle();
    for name in ["a", "b"] {
        handle.add_node(NodeSpec::new(name).capacity("cpu", 4).capacity("memory", "8Gi")).await?;
    }
    let bag = JobSpec::bag("bag", 12).request("cpu", 1).request("memory", "1Gi");
    let gang = GroupSpec::new("training")
        .atomic()
        .role(RoleSpec::new("leader", 1).request("cpu", 2))
        .role(RoleSpec::new("worker", 4).request("cpu", 1));
    let jobs = [bag, JobSpec::new("gang").group(gang), JobSpec::bag("doomed", 1)];
    for job in jobs {
        let name = job.name.clone();
        let id = handle.submit(job).await?;
        let status = handle.wait(id).await?;
        println!("{name}: {} completed, {} failed", status.completed, status.failed);
    }
    let too_large = handle.submit(JobSpec::bag("huge", 1).request("cpu", 64)).await?;
    for explanation in handle.explain(too_large).await? {
        println!("huge: {explanation}");
    }
    let report = runtime.shutdown(Duration::from_secs(1)).await;
    println!("all threads ended: {}", report.threads_joined);
    Ok(())
}
