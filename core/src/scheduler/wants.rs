//! What the host might add a node for.

use std::sync::Arc;

use crate::spec::ShapeSpec;

use super::nodes::{NodeEntry, Nodes};
use super::shapes::{ShapeKey, Shapes};

/// The node that tasks of this shape are for alone, if it is there: no other becomes it.
fn own_node<'a>(shape: &ShapeSpec, nodes: &'a Nodes) -> Option<&'a NodeEntry> {
    nodes.get(nodes.scopes.pinned_to(shape.rules.node.as_ref()?)?)
}

/// Whether tasks of this shape could run on a node that is not there yet.
fn could_come(shape: &ShapeSpec, nodes: &Nodes) -> bool {
    shape.guest_of.is_none() && own_node(shape, nodes).is_none()
}

/// Whether another node does nothing for tasks of this shape, nor for whoever starts together with them.
fn holds_up(shape: &ShapeSpec, nodes: &Nodes) -> bool {
    let takes = |node: &NodeEntry| shape.rules.allow(&node.view.facts) && node.has_room_for(shape);
    own_node(shape, nodes).is_some_and(|node| !takes(node))
}

impl Shapes {
    /// Of the shapes that were tried in vain those of which so many wait that it is news, and that another
    /// node would help.
    pub(super) fn news_of_wants(&mut self, nodes: &Nodes) -> Vec<(Arc<ShapeSpec>, u64)> {
        let mut news = Vec::new();
        for id in self.parked().to_vec() {
            let shape = self.get_mut(id);
            let tasks = shape.queue.tasks;
            if shape.window.is_some() || tasks < (2 * shape.wanted).max(1) {
                continue;
            }
            let before = news.len();
            match &shape.key {
                ShapeKey::Task(spec) => news.push((Arc::clone(spec), tasks)),
                ShapeKey::Gang(roles, _) if roles.iter().any(|(spec, _)| holds_up(spec, nodes)) => {}
                ShapeKey::Gang(roles, _) => {
                    let groups = tasks / roles.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
                    let role = |(spec, count): &(Arc<ShapeSpec>, u32)| {
                        (Arc::clone(spec), u64::from(*count) * groups)
                    };
                    news.extend(roles.iter().map(role));
                }
            }
            news.retain(|(spec, _)| could_come(spec, nodes));
            // What another node would not help may be helped by one later: that is news then.
            shape.wanted = if news.len() > before { tasks } else { shape.wanted };
        }
        news
    }
}
