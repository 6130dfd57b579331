//! Tasks as processes on a pretend cluster of this machine: what they say, how they end, some that are told
//! to stop, and that nothing is left when the service is interrupted.
//!
//!     cargo run --example processes

use std::error::Error;

#[cfg(not(target_os = "linux"))]
fn main() -> Result<(), Box<dyn Error>> {
    println!("processes are run on Linux");
    Ok(())
}

#[cfg(target_os = "linux")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    use std::time::Duration;

    use plimsoll::core::id::GroupId;
    use plimsoll::{CommandSpec, GroupSpec, JobSpec, NodeSpec, ProcessExecutor, RoleSpec, Runtime, TaskId};

    let executor = ProcessExecutor::new().grace(Duration::from_secs(1));
    let outputs = executor.outputs();
    let runtime = Runtime::builder().executor(executor).start()?;
    let handle = runtime.handle();
    for name in ["left", "right"] {
        handle.add_node(NodeSpec::new(name).capacity("cpu", 2)).await?;
    }
    let shell = |script: &str| CommandSpec::new(["sh", "-c", script]);
    let job = |name: &str, tasks: u32, command: CommandSpec| {
        let role = RoleSpec::new("work", tasks).request("cpu", 1).command(command);
        JobSpec::new(name).group(GroupSpec::new("all").role(role))
    };

    let greeting = shell("echo task $PLIMSOLL_TASK on $PLIMSOLL_NODE says $WORD").env("WORD", "hello");
    let greet = handle.submit(job("greet", 4, greeting)).await?;
    println!("greet: {} completed", handle.wait(greet).await?.completed);
    for index in 0..4 {
        let task = TaskId { group: GroupId::new(greet, 0), role: 0, index };
        if let Some(said) = outputs.read(task) {
            print!("    {}", String::from_utf8_lossy(&said.stdout));
        }
    }

    let broken = handle.submit(job("broken", 1, shell("exit 7"))).await?;
    for failure in handle.wait(broken).await?.failures {
        println!("broken: {} on {}", failure.text, failure.node);
    }

    let endless = handle.submit(job("endless", 4, shell("sleep 1000 & sleep 1000"))).await?;
    while handle.job(endless)?.live < 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Ctrl-C ends the service, and processes do not hear of it: they lead groups of their own. Whoever is
    // interrupted stops the runtime in order, as at any other end.
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs(1)) => {
            handle.cancel(endless).await?;
            println!("endless: {} cancelled", handle.wait(endless).await?.cancelled);
        }
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            println!("interrupted");
        }
    }

    let report = runtime.shutdown(Duration::from_secs(5)).await;
    println!("all threads ended: {}", report.threads_joined);
    Ok(())
}
