//! ClusterState and Scheduler with nodes in them, everything entered through real messages.

use std::sync::Arc;

use plimsoll_core::cluster_state::ClusterState;
use plimsoll_core::id::Ticket;
use plimsoll_core::machine::Machine;
use plimsoll_core::messages::{ClusterMessage, Outbox};
use plimsoll_core::resources::{KindId, Resources};
use plimsoll_core::scheduler::Scheduler;
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::NodeSpec;
use plimsoll_core::time::{Span, Time};

pub const CPU: KindId = KindId(1);

#[derive(Debug)]
pub struct Machines {
    pub cluster: ClusterState,
    pub scheduler: Scheduler,
}

/// The default settings, except that one turn may place everything: what is measured is deciding, and
/// not how it is cut into turns.
pub fn settings_with_window() -> Settings {
    let mut settings = Settings::default();
    settings.limits.placements_per_turn = 1_000_000;
    settings
}

/// The same, except that nothing waits for identical arrivals.
pub fn settings_without_window() -> Arc<Settings> {
    let mut settings = settings_with_window();
    settings.window.gap = Span::ZERO;
    Arc::new(settings)
}

impl Machines {
    /// Both machines, with so many equal nodes that the Scheduler has heard of. The outbox is what
    /// ClusterState said besides, for the other machines.
    pub fn with_nodes(settings: &Arc<Settings>, nodes: u32, capacity: &Resources) -> (Machines, Outbox) {
        let mut machines = Machines {
            cluster: ClusterState::new(Arc::clone(settings)),
            scheduler: Scheduler::new(Arc::clone(settings)),
        };
        let add = |number| ClusterMessage::AddNode {
            ticket: Ticket(u64::from(number)),
            node: Box::new(NodeSpec::new(format!("node-{number}"), capacity.clone())),
        };
        let mut out = Outbox::default();
        machines.cluster.receive(Time::ZERO, (0..nodes).map(add).collect(), &mut out);
        let news = std::mem::take(&mut out.scheduler);
        let mut seen = Outbox::default();
        machines.scheduler.receive(Time::ZERO, news, &mut seen);
        machines.cluster.receive(Time::ZERO, seen.cluster, &mut out);
        (machines, out)
    }
}
