//! Tasks that share no node: each role gets so many nodes of its candidates, no node twice.
//!
//! This is a matching between tasks and nodes, found by augmenting paths over the roles: a role that
//! lacks a node takes one from another role that can have a different one instead. It is exact, and the
//! work grows with roles and candidates, not with the ways to distribute them.

use std::collections::{BTreeMap, VecDeque};

use crate::id::NodeId;

/// The matching gives up after so many looks at a candidate.
pub(super) const LOOKS_MAX: u64 = 4_000_000;

/// For each role, with the number of its tasks, the nodes it gets; `None` if there is no way, or if more
/// than [`LOOKS_MAX`] `looks` at a candidate were needed.
pub(super) fn one_node_each(roles: &[(u32, &[NodeId])], looks: &mut u64) -> Option<Vec<Vec<NodeId>>> {
    let short = roles.iter().any(|(tasks, candidates)| candidates.len() < *tasks as usize);
    if short {
        return None;
    }
    let mut matching = Matching { roles, owners: BTreeMap::new(), looks };
    for (role, (tasks, candidates)) in roles.iter().enumerate() {
        let mut left = *tasks;
        for node in *candidates {
            if left > 0 && !matching.owners.contains_key(node) {
                matching.owners.insert(*node, role);
                left -= 1;
            }
        }
        for _ in 0..left {
            if !matching.augment(role) {
                return None;
            }
        }
    }
    let mut nodes = vec![Vec::new(); roles.len()];
    for (node, role) in matching.owners {
        nodes[role].push(node);
    }
    Some(nodes)
}

struct Matching<'a> {
    roles: &'a [(u32, &'a [NodeId])],
    owners: BTreeMap<NodeId, usize>,
    looks: &'a mut u64,
}

impl Matching<'_> {
    /// Finds one more node for a role, letting other roles change theirs.
    fn augment(&mut self, first: usize) -> bool {
        // From whom a role would take which of its nodes.
        let mut taken_by: Vec<Option<(usize, NodeId)>> = vec![None; self.roles.len()];
        let mut queue = VecDeque::from([first]);
        while let Some(role) = queue.pop_front() {
            for node in self.roles[role].1 {
                *self.looks += 1;
                if *self.looks > LOOKS_MAX {
                    return false;
                }
                match self.owners.get(node).copied() {
                    None => {
                        self.hand_over(first, role, *node, &taken_by);
                        return true;
                    }
                    Some(owner) if owner != first && taken_by[owner].is_none() => {
                        taken_by[owner] = Some((role, *node));
                        queue.push_back(owner);
                    }
                    Some(_) => {}
                }
            }
        }
        false
    }

    fn hand_over(
        &mut self,
        first: usize,
        mut role: usize,
        node: NodeId,
        taken_by: &[Option<(usize, NodeId)>],
    ) {
        self.owners.insert(node, role);
        while role != first {
            let (taker, node) = taken_by[role].expect("every role on the way was reached");
            self.owners.insert(node, taker);
            role = taker;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether there is a way, by trying every node for every task.
    fn is_possible(tasks: &[&[NodeId]], used: &mut Vec<NodeId>) -> bool {
        let Some((candidates, rest)) = tasks.split_first() else { return true };
        candidates.iter().any(|node| {
            !used.contains(node) && {
                used.push(*node);
                let possible = is_possible(rest, used);
                used.pop();
                possible
            }
        })
    }

    #[test]
    fn a_role_that_may_use_two_nodes_leaves_the_only_one_of_another() {
        let (a, b) = (NodeId(0), NodeId(1));
        assert_eq!(one_node_each(&[(1, &[a, b]), (1, &[a])], &mut 0), Some(vec![vec![b], vec![a]]));
        assert_eq!(one_node_each(&[(1, &[a]), (1, &[a])], &mut 0), None);
        assert_eq!(one_node_each(&[(2, &[a])], &mut 0), None);
    }

    #[test]
    fn a_way_is_found_exactly_where_there_is_one() {
        let mut rng = fastrand::Rng::with_seed(11);
        let (mut possible, mut impossible) = (0, 0);
        for _ in 0..3_000 {
            let nodes = rng.u32(1..6);
            let roles: Vec<(u32, Vec<NodeId>)> = (0..rng.usize(1..4))
                .map(|_| (rng.u32(1..3), (0..nodes).filter(|_| rng.bool()).map(NodeId).collect()))
                .collect();
            let given: Vec<(u32, &[NodeId])> =
                roles.iter().map(|(tasks, nodes)| (*tasks, nodes.as_slice())).collect();
            let tasks: Vec<&[NodeId]> = given
                .iter()
                .flat_map(|(tasks, nodes)| std::iter::repeat_n(*nodes, *tasks as usize))
                .collect();
            let found = one_node_each(&given, &mut 0);
            assert_eq!(found.is_some(), is_possible(&tasks, &mut Vec::new()), "{roles:?}");
            let Some(found) = found else {
                impossible += 1;
                continue;
            };
            possible += 1;
            for ((tasks, candidates), nodes) in given.iter().zip(&found) {
                assert_eq!(nodes.len(), *tasks as usize);
                assert!(nodes.iter().all(|node| candidates.contains(node)));
            }
            let mut all: Vec<NodeId> = found.concat();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), tasks.len(), "no node is given twice");
        }
        assert!(possible > 500 && impossible > 500, "{possible} possible, {impossible} impossible");
    }
}
