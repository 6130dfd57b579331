//! People who want a node for themselves, and the host that prepares it for them: in time, too late,
//! in vain, or twice.

use crate::id::NodeId;
use crate::messages::{ClusterMessage, HostMessage, NodeEvent, Preparation, UsageOf};
use crate::spec::{Condition, NodePatch, ReservationSpec};

use super::faults::{Troublemaker, node_name, tell_cluster};
use super::world::World;

impl Troublemaker {
    /// Somebody reserves a node, after it was taken out of the scheduler's hands or without a look.
    pub(super) fn reserve(&mut self, world: &mut World, node: NodeId) {
        let Some(name) = node_name(world, node) else { return };
        if self.rng.u8(0..4) > 0 {
            let patch = NodePatch { condition: Some(Condition::Manual), ..NodePatch::default() };
            let ticket = self.ticket();
            let update = ClusterMessage::UpdateNode { ticket, name: name.clone(), patch: Box::new(patch) };
            tell_cluster(world, update);
        }
        let prepare = self.rng.u8(0..4) > 0;
        let wish = ReservationSpec { who: "somebody".into(), prepare: prepare.then(|| "system".into()) };
        let ticket = self.ticket();
        tell_cluster(world, ClusterMessage::Reserve { ticket, name, wish: Box::new(wish) });
    }

    pub(super) fn give_back(&mut self, world: &mut World, node: NodeId) {
        if let Some(name) = node_name(world, node) {
            let ticket = self.ticket();
            tell_cluster(world, ClusterMessage::Return { ticket, name });
        }
    }

    pub(super) fn ask_usage(&mut self, world: &mut World, node: NodeId) {
        let of = match node_name(world, node) {
            Some(name) if self.rng.bool() => UsageOf::Node(name),
            _ => UsageOf::All,
        };
        let since = self.rng.bool().then_some(world.now);
        let ticket = self.ticket();
        tell_cluster(world, ClusterMessage::AskUsage { ticket, of, since });
    }

    /// The host prepares nodes, as well as hosts do.
    pub(super) fn prepare(&mut self, messages: &[HostMessage], world: &mut World) {
        for message in messages {
            let (node, reservation, ending) = match message {
                HostMessage::Node(NodeEvent::Prepare { node, reservation, .. }) => {
                    (*node, *reservation, false)
                }
                HostMessage::Node(NodeEvent::EndPreparation { node, reservation }) => {
                    (*node, *reservation, true)
                }
                _ => continue,
            };
            use Preparation::{Begun, Done, Failed};
            let courses: [&[Preparation]; 6] =
                [&[], &[Begun], &[Begun, Done], &[Begun, Begun, Done, Done], &[Done], &[Begun, Failed]];
            let course: &[Preparation] = match (ending, self.rng.bool()) {
                (true, false) => &[],
                (true, true) => &[Failed],
                (false, _) => self.rng.choice(courses).expect("not empty"),
            };
            for how in course.iter().copied() {
                tell_cluster(world, ClusterMessage::Prepared { node, reservation, how });
            }
        }
    }
}
