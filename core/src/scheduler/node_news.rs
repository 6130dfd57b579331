//! What the Scheduler makes of news about a node.

use crate::messages::{NodeNews, Outbox};
use crate::spec::NodeFacts;

use super::Scheduler;
use super::plan::Turn;

impl Scheduler {
    pub(super) fn node_news(&mut self, news: NodeNews, turn: &mut Turn, out: &mut Outbox) {
        let NodeNews { node, view } = news;
        turn.capacity_changed = true;
        self.prospects.node_changed(node);
        self.release_claimed(node);
        self.claims.unsettled = true;
        match view {
            None => {
                self.end_earmarks_on(node, turn);
                for slot in self.nodes.remove(node, &self.live) {
                    self.live.leave_node(slot);
                }
            }
            Some(mut view) => {
                // What was on its way when a snapshot was taken comes without them.
                NodeFacts::be_judged_by(&mut view.facts, &self.settings.filters);
                self.mind_access(&view);
                self.end_earmarks_on(node, turn);
                let was_divided = self.nodes.pools.is_divided();
                self.bind_before_move(node, &view.facts.pool);
                self.nodes.update(node, view);
                if !was_divided && self.nodes.pools.is_divided() {
                    self.bind_all();
                }
                self.vacate(node, out);
                self.relieve(node, out);
                turn.touch(node);
            }
        }
    }
}
