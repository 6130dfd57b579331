//! What happens to the whole of a dry run, or to a whole node.

use std::sync::Arc;

use crate::id::{Attempt, NodeId};
use crate::outcome::Exit;
use crate::settings::Settings;

use super::DryRun;

impl DryRun<'_> {
    /// Other settings are in effect from now on.
    pub(super) fn change_settings(&mut self, settings: &Arc<Settings>) {
        self.settings = Arc::new(Settings::clone(settings).without_heartbeats());
        self.world.tell_settings(&self.settings);
    }

    /// Everything that runs on a node ends well. Nothing to end is nothing wrong, as where a host says so.
    pub(super) fn idle(&mut self, node: &str) {
        let id = self.world.cluster.node_id(node).expect("the file names its own nodes");
        let there = self.world.jobs.live().filter(|task| task.node == id);
        let there = there.filter(|task| !self.ending.contains(&task.attempt));
        let there: Vec<(NodeId, Attempt)> = there.map(|task| (task.node, task.attempt)).collect();
        for (node, attempt) in there {
            self.world.finish_execution(node, attempt, Exit::Completed);
            self.ending.insert(attempt);
        }
    }
}
