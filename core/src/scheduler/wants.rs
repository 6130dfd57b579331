//! What the host might add a node for.

use std::sync::Arc;

use crate::spec::ShapeSpec;

use super::shapes::{ShapeKey, Shapes};

impl Shapes {
    /// Of the shapes that were tried in vain those of which so many wait that it is news.
    pub(super) fn news_of_wants(&mut self) -> Vec<(Arc<ShapeSpec>, u64)> {
        let mut news = Vec::new();
        for id in self.parked().to_vec() {
            let shape = self.get_mut(id);
            let tasks = shape.queue.tasks;
            if shape.window.is_some() || tasks < (2 * shape.wanted).max(1) {
                continue;
            }
            shape.wanted = tasks;
            match &shape.key {
                ShapeKey::Task(spec) => news.push((Arc::clone(spec), tasks)),
                ShapeKey::Gang(roles, _) => {
                    let groups = tasks / roles.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
                    let role = |(spec, count): &(Arc<ShapeSpec>, u32)| {
                        (Arc::clone(spec), u64::from(*count) * groups)
                    };
                    news.extend(roles.iter().filter(|(spec, _)| spec.guest_of.is_none()).map(role));
                }
            }
        }
        news
    }
}
