//! Guests: tasks that run on the nodes of others of their group, inside what those were given. They look
//! for no room; each is bound to the node of its host, in the same commit.

use std::collections::BTreeMap;

use crate::id::{GroupId, NodeId};
use crate::mutation::{self, Mutation};

use super::groups::GroupView;
use super::live::LiveTable;
use super::nodes::Nodes;
use super::plan::{Bind, Turn, bind};
use super::queue::Entry;

/// The guests of a group that is about to start, and the nodes of their hosts.
pub(super) struct Guests {
    roles: Vec<usize>,
    hosts: BTreeMap<(usize, u32), NodeId>,
}

impl Guests {
    pub(super) fn of(group: &GroupView) -> Guests {
        let is_guest = |role: &usize| {
            let role = &group.roles[*role];
            role.spec.guest_of.is_some() && role.waiting() > 0
        };
        Guests { roles: (0..group.roles.len()).filter(is_guest).collect(), hosts: BTreeMap::new() }
    }

    /// A task was bound that may be the host of somebody.
    pub(super) fn note_host(&mut self, role: usize, index: u32, node: NodeId) {
        if !self.roles.is_empty() {
            self.hosts.insert((role, index), node);
        }
    }

    /// Binds every guest to the node of its host. Says how many tasks of which role have started.
    pub(super) fn bind_all(
        self,
        id: GroupId,
        group: &mut GroupView,
        live: &mut LiveTable,
        nodes: &mut Nodes,
        turn: &mut Turn,
    ) -> Vec<(Entry, u32)> {
        let mut started = Vec::with_capacity(self.roles.len());
        for role in self.roles {
            turn.bind_last_to_next();
            turn.begin_part(&group.roles[role], true, false);
            let entry = Entry { group: id, role: role as u16 };
            let (tasks, spec) = (group.roles[role].waiting(), group.roles[role].spec.clone());
            let host = usize::from(spec.guest_of.expect("only guests are bound here"));
            for _ in 0..tasks {
                let (index, number) = group.roles[role].take();
                let mut node = self.hosts.get(&(host, index)).copied();
                if mutation::active(Mutation::LodgeElsewhere) {
                    node = self.hosts.values().next().copied();
                }
                let node = node.expect("a guest waits only together with its host");
                nodes.take(node, &spec);
                bind(live, nodes, group, Bind { entry, index, number, node }, turn);
            }
            started.push((entry, tasks));
        }
        started
    }
}
