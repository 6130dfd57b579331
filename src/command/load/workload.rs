//! The nodes and jobs of a load run.

use std::time::Duration;

use plimsoll::{GroupSpec, JobSpec, NodeSpec, RoleSpec};

use super::Arguments;

const GIBIBYTE: u64 = 1 << 30;

/// Of each kind: its name, what a node has and what a task requests.
pub(super) const KINDS: [(&str, u64, u64); 3] =
    [("slot", 8, 1), ("cpu", 8, 1), ("memory", 32 * GIBIBYTE, 3 * GIBIBYTE)];

pub(super) fn node(number: u32) -> NodeSpec {
    let node = NodeSpec::new(format!("node-{number}")).capacity("slot", 8).capacity("cpu", 8);
    node.capacity("memory", "32Gi")
}

/// A job as the producers submit it.
pub(super) fn job(arguments: &Arguments) -> JobSpec {
    with_tasks(arguments, "load", arguments.tasks)
}

/// A job of one task, to measure how long it takes.
pub(super) fn probe(arguments: &Arguments) -> JobSpec {
    with_tasks(arguments, "probe", 1)
}

fn with_tasks(arguments: &Arguments, name: &str, tasks: u32) -> JobSpec {
    let mut role = RoleSpec::new("task", tasks).request("slot", 1).request("cpu", 1).request("memory", "3Gi");
    if arguments.run_millis > 0 {
        role = role.duration(Duration::from_millis(arguments.run_millis));
    }
    JobSpec::new(name).requestor("load").group(GroupSpec::new("tasks").role(role))
}
