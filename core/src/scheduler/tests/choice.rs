//! Which node is chosen: packed, warm, and among many branches.

use super::*;
use crate::codec;
use crate::constraint::{Constraint, Key};
use crate::scheduler::nodes::NodeEntry;
use crate::spec::{CommonFacts, NodeChoice, NodeFacts, Rules};

const GPU: KindId = KindId(3);

fn shaped(job: u64, tasks: u32, shape: ShapeSpec) -> SchedulerMessage {
    let role = RoleArrival { shape: Arc::new(shape), ..role(Resources::new(), tasks) };
    SchedulerMessage::NewGroups(vec![independent(job, vec![role])])
}

fn packed(kind: KindId, amount: i64) -> ShapeSpec {
    let placement = Some(NodeChoice::Pack);
    ShapeSpec { request: Resources::of(kind, amount), placement, ..ShapeSpec::default() }
}

fn from_snapshot(snapshot: &str) -> ShapeSpec {
    let snapshot = Some(Arc::from(snapshot));
    ShapeSpec { request: Resources::of(SLOT, 1), snapshot, ..ShapeSpec::default() }
}

fn nodes_of(placed: &[Placed]) -> Vec<u32> {
    placed.iter().map(|one| one.3).collect()
}

/// Goal: a batch fills the fullest node that has room, then the next. Method: three nodes with different
/// room and seven tasks.
#[test]
fn a_batch_fills_the_fullest_node_first() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[4, 2, 3]);
    let placed = bench.hear(vec![shaped(1, 7, packed(CPU, 1))]);
    assert_eq!(nodes_of(&placed), [1, 1, 2, 2, 2, 0, 0]);
}

/// Goal: what is scarce stays free for those who ask for it. Method: one node has GPUs and the least CPUs;
/// tasks without GPUs go elsewhere until nothing else is left, and a task with one finds the fewest.
#[test]
fn gpus_are_left_to_those_who_ask_for_them() {
    let mut bench = Bench::new();
    let with_gpus = |cpu: i64, gpus: i64| both((CPU, cpu), (GPU, gpus));
    let news = [with_gpus(2, 4), with_gpus(4, 0), with_gpus(2, 2)];
    let news = news.into_iter().zip(0..).map(|(capacity, id)| node(id, capacity)).collect();
    bench.hear(vec![SchedulerMessage::Nodes(news)]);
    assert_eq!(nodes_of(&bench.hear(vec![shaped(1, 3, packed(CPU, 1))])), [1, 1, 1]);
    let gpu = ShapeSpec { request: both((CPU, 1), (GPU, 1)), ..packed(CPU, 1) };
    assert_eq!(nodes_of(&bench.hear(vec![shaped(2, 1, gpu)])), [2]);
    assert_eq!(nodes_of(&bench.hear(vec![shaped(3, 3, packed(CPU, 1))])), [1, 2, 0]);
}

/// Goal: the setting decides for whoever does not say, also for those that wait already. Method: tasks
/// that wait for room, another setting, and room on two nodes at once.
#[test]
fn a_change_of_the_setting_applies_to_what_waits() {
    for (choice, expected) in [(NodeChoice::Spread, [0, 1, 0, 1]), (NodeChoice::Pack, [1, 1, 1, 0])] {
        let mut bench = Bench::new();
        bench.hear(vec![bag(1, 4, CPU, 1)]);
        let settings = (*bench.scheduler.settings).clone();
        let settings = SchedulerMessage::Settings(Arc::new(Settings { placement: choice, ..settings }));
        bench.hear(vec![settings]);
        assert_eq!(nodes_of(&bench.add_nodes(CPU, &[4, 3])), expected, "{choice:?}");
    }
}

/// Goal: of several nodes that gain room in one turn, a packed task goes to the fullest. Method: two nodes
/// with one running task each, of which the second has less left, gain room at once.
#[test]
fn among_nodes_that_gained_room_the_fullest_is_taken() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[5, 4]);
    bench.hear(vec![shaped(1, 1, packed(CPU, 4)), shaped(2, 1, packed(CPU, 5))]);
    let running = bench.attempts();
    bench.hear(vec![shaped(3, 1, packed(CPU, 2))]);
    let pending = bench.pending(&[0, 1]);
    let placed = bench.hear(vec![released(&running, Outcome::Completed), pending]);
    assert_eq!(nodes_of(&placed), [1]);
}

/// Goal: where facts are named to spread over, they come first, and packing decides inside a branch.
#[test]
fn packing_is_inside_the_branches_of_a_spread() {
    let mut bench = Bench::new();
    let zones = [("a", 4), ("a", 2), ("b", 9)];
    bench.hear(vec![SchedulerMessage::Nodes(in_zones(zones.into_iter()))]);
    let spread = Key::parse("node.labels.zone").into_iter().collect();
    let shape = ShapeSpec { service: Some(Box::new(("web".into(), 1))), spread, ..packed(CPU, 1) };
    assert_eq!(nodes_of(&bench.hear(vec![shaped(1, 6, shape)])), [1, 2, 1, 2, 0, 2]);
}

fn in_zones<'a>(zones: impl Iterator<Item = (&'a str, i64)>) -> Vec<NodeNews> {
    let one = |(id, (zone, cpu)): (u32, (&str, i64))| {
        let labels = [("zone".to_owned(), zone.to_owned())].into();
        let common = CommonFacts { labels, ..CommonFacts::default() }.into();
        let facts = Arc::new(NodeFacts { name: format!("n{id}"), common, ..NodeFacts::default() });
        let news = node(id, Resources::of(CPU, cpu));
        NodeNews { view: news.view.map(|view| NodeView { facts, ..view }), ..news }
    };
    (0..).zip(zones).map(one).collect()
}

/// Goal: many branches are no burden, even when most of them are full. Method: ten thousand zones of one
/// node each, all but the last fifty full; then as many tasks as there are places, one in each.
#[test]
fn one_branch_of_ten_thousand_is_found() {
    const ZONES: u32 = 10_000;
    const FREE: u32 = 50;
    let mut bench = Bench::new();
    let names: Vec<String> = (0..ZONES).map(|zone| format!("z{zone}")).collect();
    let cpu = |zone: usize| i64::from(zone as u32 >= ZONES - FREE);
    let zones = names.iter().enumerate().map(|(zone, name)| (name.as_str(), cpu(zone)));
    bench.hear(vec![SchedulerMessage::Nodes(in_zones(zones))]);
    let spread = Key::parse("node.labels.zone").into_iter().collect();
    let request = Resources::of(CPU, 1);
    let shape =
        ShapeSpec { service: Some(Box::new(("web".into(), 1))), spread, request, ..ShapeSpec::default() };
    let mut found = nodes_of(&bench.hear(vec![shaped(1, FREE + 1, shape)]));
    found.sort_unstable();
    assert_eq!(found, (ZONES - FREE..ZONES).collect::<Vec<_>>());
    assert_eq!(bench.scheduler.waiting_tasks(), 1);
}

/// Goal: packed tasks that do not admit each other find the next node, however many are taken. Method: a
/// port on each of three nodes, and tasks that want a whole node.
#[test]
fn packed_tasks_mind_their_company() {
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[2, 3, 4]);
    let port = crate::spec::HostPort::parse("80/tcp").into_iter().collect();
    let web = ShapeSpec { ports: port, ..packed(CPU, 1) };
    assert_eq!(nodes_of(&bench.hear(vec![shaped(1, 2, web)])), [0, 1]);
    let alone = ShapeSpec { exclusive: true, ..packed(CPU, 1) };
    assert_eq!(nodes_of(&bench.hear(vec![shaped(2, 2, alone)])), [2]);
}

/// Goal: a task goes to the node that has its snapshot, then to one that has none, then to any. Method:
/// three nodes of which one ran the snapshot and one ran another; tasks come one by one.
#[test]
fn warm_nodes_come_first_then_new_ones_then_any() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[2, 2, 2]);
    assert_eq!(nodes_of(&bench.hear(vec![shaped(1, 1, from_snapshot("other"))])), [0]);
    assert_eq!(nodes_of(&bench.hear(vec![shaped(2, 1, from_snapshot("mine"))])), [1]);
    let placed = bench.hear(vec![shaped(3, 4, from_snapshot("mine"))]);
    assert_eq!(nodes_of(&placed), [1, 2, 2, 0]);
}

/// Goal: a node remembers what it ran last only. Method: a task without a snapshot, and then one with, on
/// nodes that had another.
#[test]
fn a_node_remembers_its_last_task() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[3, 3]);
    bench.hear(vec![shaped(1, 1, from_snapshot("mine"))]);
    bench.hear(vec![shaped(2, 1, from_snapshot("mine"))]);
    // By fewest tasks: the other node, and then this one, which forgets.
    assert_eq!(nodes_of(&bench.hear(vec![bag(3, 3, SLOT, 1)])), [1, 1, 0]);
    assert_eq!(nodes_of(&bench.hear(vec![shaped(4, 1, from_snapshot("mine"))])), [1]);
}

/// Goal: the memory survives being stored. Method: a node that ran the snapshot, a Scheduler turned into
/// bytes and back, and one task more.
#[test]
fn memories_survive_being_stored() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[2, 2]);
    bench.hear(vec![shaped(1, 1, from_snapshot("mine"))]);
    let bytes = codec::encode(&bench.scheduler).expect("it can be stored");
    let mut scheduler: Scheduler = codec::decode(&bytes).expect("it can be read");
    scheduler.rebuild();
    bench.scheduler = scheduler;
    assert_eq!(nodes_of(&bench.hear(vec![shaped(2, 1, from_snapshot("mine"))])), [0]);
}

/// Goal: looking for a node does not make it warm. Method: an atomic group that does not fit tries a node
/// and gives it back; the snapshot it starts from is remembered nowhere.
#[test]
fn nothing_is_remembered_of_what_was_not_placed() {
    let mut bench = Bench::new();
    bench.add_nodes(SLOT, &[1, 2]);
    let shape = Arc::new(from_snapshot("mine"));
    bench.hear(vec![gang(1, vec![RoleArrival { shape, ..role(Resources::new(), 4) }])]);
    assert!(bench.scheduler.nodes.iter().all(|(_, node)| node.snapshot.is_none()));
}

/// Goal: the first tasks of a service, or of a rule, do not look at every node to find the best. Method: many
/// services and a rule on many nodes, a task each: no index is made, and each goes where the fewest tasks are.
/// A service that is on most nodes gets one.
#[test]
fn the_first_tasks_of_a_service_need_no_index() {
    const NODES: usize = 5_000;
    let mut bench = Bench::new();
    bench.add_nodes(CPU, &[40; NODES]);
    let of = |service: &str| ShapeSpec {
        service: Some((service.to_owned(), 1).into()),
        request: Resources::of(CPU, 1),
        ..ShapeSpec::default()
    };
    for job in 1..=40 {
        let shape = of(&job.to_string());
        assert_eq!(
            nodes_of(&bench.hear(vec![shaped(job, 2, shape.clone())])),
            [2 * job as u32 - 2, 2 * job as u32 - 1]
        );
        assert!(!bench.scheduler.nodes.scopes.is_built(&shape));
    }
    let constraints = vec![Constraint::parse("node.hostname != n80").expect("a constraint")];
    let rules = Rules { constraints, ..Rules::default() };
    let ruled = ShapeSpec { rules: rules.into(), request: Resources::of(CPU, 1), ..ShapeSpec::default() };
    assert_eq!(nodes_of(&bench.hear(vec![shaped(41, 2, ruled.clone())])), [81, 82]);
    assert!(!bench.scheduler.nodes.scopes.is_built(&ruled));
    let wide = of("wide");
    for job in [42, 43] {
        bench.hear(vec![shaped(job, NODES as u32, wide.clone())]);
        while !bench.attempts().is_empty() {
            bench.hear(Vec::new());
        }
    }
    let of_wide = |node: &NodeEntry| node.company.of_service("wide");
    assert!(bench.scheduler.nodes.iter().all(|(_, node)| of_wide(node) == 2));
    assert!(bench.scheduler.nodes.scopes.is_built(&wide));
}

/// Goal: a batch of one does not look at every node, also when nobody else wants what it wants. Method: jobs of
/// one task that end before the next comes, packed, spread and nearest first, on many nodes: what the index of
/// their shape has to look at is counted.
#[test]
fn a_batch_of_one_looks_at_the_nodes_that_changed() {
    const NODES: usize = 10_000;
    let service = Some(Box::new(("web".to_owned(), 1)));
    let spread = Key::parse("node.labels.zone").into_iter().collect();
    let placement = Some(NodeChoice::OwnFirst);
    let shapes = [
        packed(CPU, 1),
        ShapeSpec { service, spread, request: Resources::of(CPU, 1), ..ShapeSpec::default() },
        ShapeSpec { placement, ..packed(CPU, 1) },
    ];
    for shape in shapes {
        let mut bench = Bench::new();
        bench.add_nodes(CPU, &[4; NODES]);
        for job in 1..=20 {
            let looked_at = bench.scheduler.nodes.scopes.backlog(&shape, NODES);
            assert!(job == 1 || looked_at <= 4, "job {job} looks at {looked_at} nodes");
            let placed = bench.hear(vec![shaped(job, 1, shape.clone())]);
            assert_eq!(placed.len(), 1);
            let ended = released(&bench.attempts(), Outcome::Completed);
            bench.hear(vec![ended]);
            bench.hear(vec![SchedulerMessage::Forget(vec![group(job)])]);
        }
    }
}

/// Goal: among equals, tasks without GPUs leave the nodes with GPUs to those who ask for them. Method: two nodes
/// of three have GPUs; tasks of a bag, one by one and of a service.
#[test]
fn among_equals_nodes_without_gpus_go_first() {
    let with_gpus = both((CPU, 4), (GPU, 1));
    let nodes =
        || vec![node(0, with_gpus.clone()), node(1, Resources::of(CPU, 4)), node(2, with_gpus.clone())];
    let plain = ShapeSpec { request: Resources::of(CPU, 1), ..ShapeSpec::default() };
    let served = ShapeSpec { service: Some(Box::new(("web".into(), 1))), ..plain.clone() };
    for shape in [plain, served] {
        let mut bench = Bench::new();
        bench.hear(vec![SchedulerMessage::Nodes(nodes())]);
        assert_eq!(nodes_of(&bench.hear(vec![shaped(1, 1, shape.clone())])), [1]);
        // Now the others have fewer tasks.
        assert_eq!(nodes_of(&bench.hear(vec![shaped(2, 2, shape.clone())])), [0, 2]);
        assert_eq!(nodes_of(&bench.hear(vec![shaped(3, 2, shape)])), [1, 0]);
    }
}
