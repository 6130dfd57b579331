//! Atomic groups that want to be near each other.

use super::*;
use crate::explanation::{Reason, WithinHops};
use crate::spec::{Hops, NodeFacts, NodePath, hops_between};

/// A node somewhere in the network; every change has a version of its own.
fn at(id: u32, version: u64, path: Option<&str>, cpu: i64) -> NodeNews {
    let path = path.map(|path| NodePath::parse(path).expect("a path"));
    let facts = Arc::new(NodeFacts { name: format!("n{id}"), path, ..NodeFacts::default() });
    let view = NodeView {
        version,
        facts,
        capacity: Resources::of(CPU, cpu),
        reserved: Default::default(),
        open: true,
        breakdown: None,
        state: NodeState::default(),
    };
    NodeNews { node: NodeId(id), view: Some(view) }
}

/// One node per entry, each with this much.
fn network(bench: &mut Bench, nodes: &[(&str, i64)]) {
    let news = nodes.iter().enumerate();
    let news = news.map(|(id, (path, cpu))| at(id as u32, 1, Some(*path), *cpu)).collect();
    assert_eq!(bench.hear(vec![SchedulerMessage::Nodes(news)]), []);
}

fn near(job: u64, hops: Hops, roles: Vec<RoleArrival>) -> SchedulerMessage {
    SchedulerMessage::NewGroups(vec![GroupArrival { hops: Some(hops), ..atomic(job, roles) }])
}

fn tasks(amount: i64, tasks: u32) -> RoleArrival {
    role(Resources::of(CPU, amount), tasks)
}

fn nodes(placed: &[Placed]) -> Vec<u32> {
    let mut nodes: Vec<u32> = placed.iter().map(|(_, _, _, node)| *node).collect();
    nodes.sort_unstable();
    nodes
}

/// Goal: the fewest hops are found, whatever else has room. Method: the first two nodes are in different
/// racks, only the last rack holds all; a second group must cross racks, a third crosses blocks.
#[test]
fn the_nearest_nodes_are_found() {
    let mut bench = Bench::new();
    let hosts = [("a/1/x", 1), ("a/2/x", 1), ("b/1/x", 1), ("b/2/x", 1), ("b/2/y", 1)];
    network(&mut bench, &hosts);
    let pair = || vec![tasks(1, 2)];
    assert_eq!(nodes(&bench.hear(vec![near(1, Hops::Fewest, pair())])), [3, 4]);
    assert_eq!(nodes(&bench.hear(vec![near(2, Hops::Fewest, pair())])), [0, 1]);
    assert_eq!(bench.hear(vec![near(3, Hops::Fewest, pair())]), [], "one node is left");
}

/// Goal: of the racks that would do, the busiest is taken, so that quiet ones stay whole. Method: one of
/// two equal racks has a task already.
#[test]
fn the_busiest_part_of_the_network_is_filled_first() {
    let mut bench = Bench::new();
    network(&mut bench, &[("a/1/x", 2), ("a/1/y", 2), ("a/2/x", 3), ("a/2/y", 2)]);
    assert_eq!(nodes(&bench.hear(vec![bag(1, 1, CPU, 3)])), [2]);
    assert_eq!(nodes(&bench.hear(vec![near(2, Hops::AtMost(2), vec![tasks(2, 1)])])), [3]);
}

/// Goal: a group waits, with a true reason, until it finds room near enough, and whatever makes room wakes
/// it. Method: two places in two racks; then one of the nodes moves into the other's rack.
#[test]
fn a_group_waits_until_it_finds_room_near_enough() {
    let mut bench = Bench::new();
    network(&mut bench, &[("a/1/x", 1), ("a/2/x", 1)]);
    assert_eq!(bench.hear(vec![near(1, Hops::AtMost(3), vec![tasks(1, 2)])]), [], "4 hops are too many");
    let Reason::NoRoom(room) = bench.reason(1) else { panic!("there is no room near enough") };
    assert_eq!(room.within, Some(WithinHops { hops: 3, placeable: 1, wanted: 2, best: Some("a/1".into()) }));
    let sentence = room.to_string();
    assert!(sentence.ends_with("room for 1 of 2 within 3 hops (best: a/1)"), "{sentence}");
    let moved = SchedulerMessage::Nodes(vec![at(1, 2, Some("a/1/y"), 1)]);
    let pending = bench.pending(&[1]);
    assert_eq!(nodes(&bench.hear(vec![moved, pending])), [0, 1]);
}

/// Goal: a release wakes a group that waits for room near enough. Method: a task leaves the rack in which
/// the group then fits.
#[test]
fn a_release_near_enough_wakes_the_group() {
    let mut bench = Bench::new();
    network(&mut bench, &[("a/1/x", 1), ("a/1/y", 1), ("b/1/x", 1)]);
    bench.hear(vec![bag(1, 1, CPU, 1)]);
    let running = bench.attempts();
    assert_eq!(bench.hear(vec![near(2, Hops::AtMost(2), vec![tasks(1, 2)])]), []);
    let pending = bench.pending(&[0]);
    assert_eq!(nodes(&bench.hear(vec![released(&running, Outcome::Completed), pending])), [0, 1]);
}

/// Goal: nodes without a path are near to nobody but themselves. Method: two of them, and a limit that all
/// paths satisfy; then no limit at all.
#[test]
fn a_node_without_a_path_is_far_from_everybody() {
    let mut bench = Bench::new();
    bench.hear(vec![SchedulerMessage::Nodes(vec![
        at(0, 1, None, 1),
        at(1, 1, None, 1),
        at(2, 1, Some("a"), 1),
    ])]);
    assert_eq!(bench.hear(vec![near(1, Hops::AtMost(15), vec![tasks(1, 2)])]), []);
    assert_eq!(nodes(&bench.hear(vec![near(2, Hops::AtMost(15), vec![tasks(1, 1)])])).len(), 1);
    assert_eq!(nodes(&bench.hear(vec![near(3, Hops::Fewest, vec![tasks(1, 2)])])).len(), 2);
}

/// A random group on a random network, and every way to place it.
struct Case {
    nodes: Vec<(Option<NodePath>, i64)>,
    group: Option<Hops>,
    roles: Vec<(i64, u32, Option<Hops>)>,
}

impl Case {
    fn random(rng: &mut fastrand::Rng) -> Case {
        let hops = |rng: &mut fastrand::Rng| match rng.u8(0..4) {
            0 => Some(Hops::Fewest),
            1 => Some(Hops::AtMost(rng.u8(0..7))),
            _ => None,
        };
        let path = |rng: &mut fastrand::Rng, id: usize| {
            let text = match rng.u8(0..6) {
                0 => return None,
                1 => format!("b{}/h{id}", rng.u8(0..2)),
                _ => format!("b{}/r{}/h{}", rng.u8(0..2), rng.u8(0..2), rng.u8(0..4)),
            };
            NodePath::parse(&text)
        };
        let nodes = (0..rng.usize(1..6)).map(|id| (path(rng, id), rng.i64(0..5))).collect();
        let roles = (0..rng.usize(1..3)).map(|_| (rng.i64(1..4), rng.u32(1..4), hops(rng))).collect();
        Case { nodes, group: hops(rng), roles }
    }

    /// The tasks by role.
    fn tasks(&self) -> Vec<usize> {
        let roles = self.roles.iter().enumerate();
        roles.flat_map(|(role, (_, tasks, _))| std::iter::repeat_n(role, *tasks as usize)).collect()
    }

    /// The largest distance between two of these nodes.
    fn hops(&self, nodes: &[usize]) -> u8 {
        let path = |node: &usize| self.nodes[*node].0.as_ref();
        let pairs = nodes.iter().flat_map(|left| nodes.iter().map(move |right| (left, right)));
        let pairs = pairs.filter(|(left, right)| left != right);
        pairs.map(|(left, right)| hops_between(path(left), path(right))).max().unwrap_or(0)
    }

    /// What a way costs, party by party; `None` if it breaks a limit or does not fit.
    fn cost(&self, way: &[usize]) -> Option<Vec<u8>> {
        let tasks = self.tasks();
        for (node, (_, cpu)) in self.nodes.iter().enumerate() {
            let on_it = tasks.iter().zip(way).filter(|(_, place)| **place == node);
            if on_it.map(|(role, _)| self.roles[*role].0).sum::<i64>() > *cpu {
                return None;
            }
        }
        // The role with the larger request looks for room first.
        let mut order: Vec<usize> = (0..self.roles.len()).collect();
        order.sort_by_key(|role| (std::cmp::Reverse(self.roles[*role].0), *role));
        let of_role = |role: usize| -> Vec<usize> {
            tasks.iter().zip(way).filter(|(own, _)| **own == role).map(|(_, node)| *node).collect()
        };
        let roles = order.into_iter().map(|role| (self.roles[role].2, of_role(role)));
        let mut costs = Vec::new();
        for (hops, nodes) in std::iter::once((self.group, way.to_vec())).chain(roles) {
            match hops {
                Some(Hops::AtMost(most)) if self.hops(&nodes) > most => return None,
                Some(Hops::Fewest) => costs.push(self.hops(&nodes)),
                _ => {}
            }
        }
        Some(costs)
    }

    fn best(&self) -> Option<Vec<u8>> {
        let (tasks, nodes) = (self.tasks().len() as u32, self.nodes.len());
        let ways = (0..nodes.pow(tasks)).map(|number| -> Vec<usize> {
            (0..tasks).map(|task| number / nodes.pow(task) % nodes).collect()
        });
        ways.filter_map(|way| self.cost(&way)).min()
    }

    /// Where the Scheduler places the tasks, role by role.
    fn decided(&self) -> Option<Vec<usize>> {
        let mut bench = Bench::new();
        let nodes = self
            .nodes
            .iter()
            .enumerate()
            .map(|(id, (path, cpu))| at(id as u32, 1, path.as_ref().map(NodePath::as_str), *cpu));
        bench.hear(vec![SchedulerMessage::Nodes(nodes.collect())]);
        let roles = self.roles.iter().map(|(cpu, tasks, hops)| {
            let shape = ShapeSpec { request: Resources::of(CPU, *cpu), hops: *hops, ..ShapeSpec::default() };
            RoleArrival { shape: Arc::new(shape), ..role(Resources::new(), *tasks) }
        });
        let arrival = GroupArrival { hops: self.group, ..atomic(1, roles.collect()) };
        let mut placed = bench.hear(vec![SchedulerMessage::NewGroups(vec![arrival])]);
        placed.sort_unstable();
        (!placed.is_empty()).then(|| placed.iter().map(|(_, _, _, node)| *node as usize).collect())
    }
}

/// Goal: a group starts exactly where there is a way within its hops, and where it asks for the fewest no
/// way has fewer. Method: random groups and networks against trying every way.
#[test]
fn what_is_decided_is_the_best_of_all_ways() {
    let mut rng = fastrand::Rng::with_seed(5);
    let (mut possible, mut impossible) = (0, 0);
    for number in 0..1_500 {
        let case = Case::random(&mut rng);
        let (best, decided) = (case.best(), case.decided());
        let cost = decided.as_ref().map(|way| case.cost(way).expect("what is decided keeps the limits"));
        assert_eq!(cost, best, "case {number}: {:?} {:?} {:?}", case.nodes, case.group, case.roles);
        possible += u32::from(best.is_some());
        impossible += u32::from(best.is_none());
    }
    assert!(possible > 300 && impossible > 300, "{possible} possible, {impossible} impossible");
}
