//! What holds of every placement, whatever the cluster: shown on random ones with dry runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll::core::constraint::{Constraint, Key};
use plimsoll::core::explanation::{Nearest, Reason};
use plimsoll::core::plan::{self, PlanReport, Scenario, ScenarioJob};
use plimsoll::core::quantity::Unit;
use plimsoll::core::resources::{KindId, Resources};
use plimsoll::core::settings::Settings;
use plimsoll::core::spec::{
    Access, Availability, Filter, Filters, GroupSpec, HostPort, JobSpec, NodeChoice, NodeFacts, NodeFilter,
    NodeSpec, NodeTest, Platform, RoleSpec, Rules, ShapeSpec, Start, WantedFilter,
};
use plimsoll::core::time::Time;
use proptest::prelude::*;

const CPU: KindId = KindId(1);
const GPU: KindId = KindId(3);

#[derive(Clone, Debug)]
struct NodeSketch {
    zone: Option<u8>,
    cpu: i64,
    paused: bool,
}

fn node_sketch() -> impl Strategy<Value = NodeSketch> {
    (prop::option::of(0..4u8), 0..5i64, prop::bool::weighted(0.2))
        .prop_map(|(zone, cpu, paused)| NodeSketch { zone, cpu, paused })
}

fn node(number: usize, sketch: &NodeSketch) -> NodeSpec {
    let mut node = NodeSpec::new(format!("n{number}"), Resources::of(CPU, sketch.cpu));
    if let Some(zone) = sketch.zone {
        node.facts.labels.insert("zone".into(), zone.to_string());
    }
    if sketch.paused {
        node.availability = Availability::Pause;
    }
    node
}

fn job(name: &str, shape: ShapeSpec, tasks: u32) -> ScenarioJob {
    let role = RoleSpec { shape: Arc::new(shape), ..RoleSpec::new("r", 0, tasks, Resources::new()) };
    let group = GroupSpec { name: "g".into(), roles: vec![role], ..GroupSpec::default() };
    let spec = JobSpec { name: name.into(), groups: vec![group], ..JobSpec::default() };
    ScenarioJob { spec, submitted: Time::ZERO, parent: None, preparations: BTreeMap::new() }
}

fn run(nodes: Vec<NodeSpec>, jobs: Vec<ScenarioJob>) -> PlanReport {
    plan::run(&Scenario { nodes, jobs, ..Scenario::default() }).expect("a good scenario")
}

fn service(name: &str) -> Option<Box<(String, u64)>> {
    Some(Box::new((name.to_owned(), 1)))
}

fn by_node(report: &PlanReport, job: &str) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for decision in report.decisions.iter().filter(|decision| decision.job == job) {
        *counts.entry(decision.node.clone()).or_default() += 1;
    }
    counts
}

proptest! {
    /// Goal: the fill is level: no task could be moved to a branch, or to a node of its branch, that has
    /// fewer tasks and room. Method: one service over zones; afterwards every pair is compared.
    #[test]
    fn no_move_improves_the_spread(
        sketches in prop::collection::vec(node_sketch(), 1..12),
        tasks in 1..30u32,
    ) {
        let nodes: Vec<NodeSpec> = sketches.iter().enumerate().map(|(index, one)| node(index, one)).collect();
        let spread = Key::parse("node.labels.zone").into_iter().collect();
        let request = Resources::of(CPU, 1);
        let shape = ShapeSpec { service: service("web"), request, spread, ..ShapeSpec::default() };
        let report = run(nodes.clone(), vec![job("web", shape, tasks)]);
        let counts = by_node(&report, "web");
        let count = |index: usize| counts.get(&format!("n{index}")).copied().unwrap_or(0);
        let has_room = |index: usize| !sketches[index].paused && i64::from(count(index)) < sketches[index].cpu;
        let zone_count = |zone: Option<u8>| -> u32 {
            (0..sketches.len()).filter(|index| sketches[*index].zone == zone).map(count).sum()
        };
        for (from, to) in (0..sketches.len()).flat_map(|a| (0..sketches.len()).map(move |b| (a, b))) {
            if count(from) == 0 || !has_room(to) {
                continue;
            }
            let (zone, other) = (sketches[from].zone, sketches[to].zone);
            let level = match zone == other {
                true => count(from) <= count(to) + 1,
                false => zone_count(zone) <= zone_count(other) + 1,
            };
            prop_assert!(level, "a task of n{from} should be on n{to}: {counts:?}");
        }
        let places: i64 = sketches.iter().filter(|one| !one.paused).map(|one| one.cpu).sum();
        prop_assert_eq!(report.decisions.len() as i64, i64::from(tasks).min(places));
    }

    /// Goal: the order in which nodes are listed changes names at most, not how many each zone gets.
    #[test]
    fn the_order_of_nodes_does_not_matter(
        sketches in prop::collection::vec(node_sketch(), 1..10).prop_shuffle(),
        tasks in 1..20u32,
    ) {
        let spread: Vec<Key> = Key::parse("node.labels.zone").into_iter().collect();
        let zones = |sketches: &[NodeSketch]| {
            let nodes: Vec<NodeSpec> = sketches.iter().enumerate().map(|(index, one)| node(index, one)).collect();
            let request = Resources::of(CPU, 1);
            let spread = spread.clone().into();
            let shape = ShapeSpec { service: service("web"), request, spread, ..ShapeSpec::default() };
            let report = run(nodes, vec![job("web", shape, tasks)]);
            let mut zones: BTreeMap<Option<u8>, u32> = BTreeMap::new();
            for (name, count) in by_node(&report, "web") {
                let index: usize = name[1..].parse().expect("a number");
                *zones.entry(sketches[index].zone).or_default() += count;
            }
            zones
        };
        let mut reversed = sketches.clone();
        reversed.reverse();
        prop_assert_eq!(zones(&sketches), zones(&reversed));
    }

    /// Goal: the nearest thing is true: with that change, and no other, the task runs. Method: a full or
    /// unsuitable cluster and one more task; the change it names is made, and everything planned anew.
    #[test]
    fn the_nearest_thing_lets_the_task_run(
        sketches in prop::collection::vec(node_sketch(), 0..6),
        first in 0..8u32,
        wish in 0..13u8,
        cpu in 1..7i64,
        members in 0..4u32,
    ) {
        let mut nodes: Vec<NodeSpec> = sketches.iter().enumerate().map(|(index, one)| node(index, one)).collect();
        let mut filler = ShapeSpec { request: Resources::of(CPU, 1), ..ShapeSpec::default() };
        let mut wanted = ShapeSpec { request: Resources::of(CPU, cpu), ..ShapeSpec::default() };
        let constraint = |text: &str| vec![Constraint::parse(text).expect("a constraint")];
        match wish {
            0 => wanted.rules = Rules { constraints: constraint("node.labels.zone == 2"), ..Rules::default() }.into(),
            1 => wanted.rules = Rules { node: Some("n1".into()), ..Rules::default() }.into(),
            2 => wanted.rules = Rules { plugins: vec!["gpu".into()], ..Rules::default() }.into(),
            3 => {
                filler.ports = HostPort::parse("80").into_iter().collect();
                wanted.ports.clone_from(&filler.ports);
            }
            4 => wanted.rules.platforms = Platform::parse("linux/").into_iter().collect(),
            5 => wanted.rules.pools = vec!["lab".into()],
            6 => wanted.exclusive = true,
            7 => {
                (filler.service, wanted.service) = (service("web"), service("web"));
                (filler.max_per_node, wanted.max_per_node) = (1, 1);
            }
            8 => nodes.iter_mut().for_each(|node| node.facts.access = Some(Arc::new(Access::owned_by("eve")))),
            9 => wanted.rules.filters = vec![WantedFilter::new("letters", "z")],
            _ => {}
        }
        let filters = Filters::new([Arc::new(Letters) as Arc<dyn NodeFilter>]).expect("it has a name");
        let run = |nodes: &[NodeSpec], jobs, held: &BTreeMap<String, u32>| {
            run_with_filler(nodes.to_vec(), jobs, held, &filters)
        };
        let jobs = |first: u32| {
            let mut filler = (first > 0).then(|| job("filler", filler.clone(), first));
            filler.iter_mut().for_each(|filler| filler.spec.requestor = "eve".into());
            let mut all = job("wanted", wanted.clone(), members.max(1));
            if members > 0 {
                all.spec.groups[0].start = Start::Atomic;
                all.spec.groups[0].roles[0].min = members;
            }
            filler.into_iter().chain([all]).collect::<Vec<_>>()
        };
        let report = run(&nodes, jobs(first), &BTreeMap::new());
        if by_node(&report, "wanted").is_empty() {
            let waits = report.waiting.iter().find(|group| group.job == "wanted").expect("it waits");
            let (Reason::NoRoom(room) | Reason::NeverFits(room)) = &waits.explanation.reason else {
                panic!("{}", waits.sentence)
            };
            let fails: u64 = room.filters.iter().map(|count| count.first).sum();
            // A node that would do for one task of a group may not do for all.
            if members < 2 {
                prop_assert_eq!(fails, room.nodes, "every node fails somewhere first: {:?}", &room.filters);
            }
            let nearest = room.nearest.clone().expect("something would help");
            // The filler that runs stays where it is; the rest of it, which is ahead, is left out.
            let mut held = by_node(&report, "filler");
            apply(&nearest, &wanted, members.max(1), &mut nodes, &mut held);
            let changed = run(&nodes, jobs(held.values().sum()), &held);
            let placed: u32 = by_node(&changed, "wanted").values().sum();
            prop_assert_eq!(placed, members.max(1), "{} / {:?}", &waits.sentence, changed.waiting);
        }
    }
}

/// CPUs and GPUs of a node.
fn machine() -> impl Strategy<Value = (i64, i64)> {
    (0..6i64, prop_oneof![Just(0i64), Just(0), 1..4i64])
}

fn machines(sketches: &[(i64, i64)]) -> Vec<NodeSpec> {
    let one = |(index, (cpu, gpus)): (usize, &(i64, i64))| {
        let mut capacity = Resources::of(CPU, *cpu);
        capacity.set(GPU, *gpus);
        NodeSpec::new(format!("n{index}"), capacity)
    };
    sketches.iter().enumerate().map(one).collect()
}

fn packed(cpu: i64, gpus: i64) -> ShapeSpec {
    let mut request = Resources::of(CPU, cpu);
    request.set(GPU, gpus);
    ShapeSpec { request, placement: Some(NodeChoice::Pack), ..ShapeSpec::default() }
}

proptest! {
    /// Goal: packing does not depend on the order in which nodes are listed, names apart where two have the
    /// same left. Method: some packed jobs, and the same with the nodes in another order; as many tasks are
    /// placed, and the nodes have as much left.
    #[test]
    fn packing_does_not_depend_on_the_order_of_nodes(
        sketches in prop::collection::vec(machine(), 1..10),
        jobs in prop::collection::vec((1..3i64, 0..2i64, 1..6u32), 1..4),
        turn in 0..10usize,
    ) {
        let jobs = || -> Vec<ScenarioJob> {
            let one = |(index, (cpu, gpus, tasks)): (usize, &(i64, i64, u32))| {
                job(&format!("j{index}"), packed(*cpu, *gpus), *tasks)
            };
            jobs.iter().enumerate().map(one).collect()
        };
        let nodes = machines(&sketches);
        let mut turned = nodes.clone();
        let by = turn % nodes.len();
        turned.rotate_left(by);
        let left = |nodes: &[NodeSpec], report: &PlanReport| {
            let mut left: BTreeMap<String, Resources> =
                nodes.iter().map(|node| (node.facts.name.clone(), node.capacity.clone())).collect();
            for decision in &report.decisions {
                let number: usize = decision.job[1..].parse().expect("a number");
                *left.get_mut(&decision.node).expect("a node") -= &jobs()[number].spec.groups[0].roles[0].shape.request;
            }
            let mut left: Vec<Resources> = left.into_values().collect();
            left.sort();
            left
        };
        let (first, second) = (run(nodes.clone(), jobs()), run(turned.clone(), jobs()));
        prop_assert_eq!(first.decisions.len(), second.decisions.len());
        prop_assert_eq!(left(&nodes, &first), left(&turned, &second));
    }

    /// Goal: work that asks for no GPU goes to a node that has one only when nothing else has room. Method:
    /// packed tasks of one CPU; if a node with GPUs has one of them, every node without is full.
    #[test]
    fn nodes_with_gpus_are_the_last_resort(
        sketches in prop::collection::vec(machine(), 1..10),
        tasks in 1..30u32,
    ) {
        let report = run(machines(&sketches), vec![job("j", packed(1, 0), tasks)]);
        let counts = by_node(&report, "j");
        let count = |index: usize| i64::from(counts.get(&format!("n{index}")).copied().unwrap_or(0));
        let places: i64 = sketches.iter().map(|(cpu, _)| cpu).sum();
        prop_assert_eq!(report.decisions.len() as i64, places.min(i64::from(tasks)));
        let uses_gpus = (0..sketches.len()).any(|index| sketches[index].1 > 0 && count(index) > 0);
        for (index, (cpu, _)) in sketches.iter().enumerate().filter(|(_, (_, gpus))| *gpus == 0) {
            prop_assert!(!uses_gpus || count(index) == *cpu, "n{} has room: {:?}", index, counts);
        }
    }

    /// Goal: a task with a snapshot goes to a node that has it, if one has room. Method: tasks that run
    /// already leave two snapshots on some nodes; one task more starts from the first of them.
    #[test]
    fn a_warm_node_with_room_is_taken(
        nodes in prop::collection::vec((1..4i64, prop::option::of(0..2u8)), 1..10),
        packs in any::<bool>(),
    ) {
        let placement = Some(if packs { NodeChoice::Pack } else { NodeChoice::Spread });
        let shape = |snapshot: u8| ShapeSpec {
            request: Resources::of(CPU, 1),
            snapshot: Some(snapshot.to_string().into()),
            placement,
            ..ShapeSpec::default()
        };
        let holders = |snapshot: u8| nodes.iter().filter(|(_, one)| *one == Some(snapshot)).count() as u32;
        let old = (0..2u8).filter(|snapshot| holders(*snapshot) > 0);
        let old: Vec<u8> = old.collect();
        let mut jobs: Vec<ScenarioJob> =
            old.iter().map(|snapshot| job(&format!("old{snapshot}"), shape(*snapshot), holders(*snapshot))).collect();
        jobs.push(job("new", shape(0), 1));
        let running = nodes.iter().enumerate().filter_map(|(node, (_, snapshot))| {
            let position = old.iter().position(|one| Some(*one) == *snapshot)?;
            let (node, started) = (Some(node), Time::ZERO);
            Some(plan::RunningTasks { job: position, group: 0, role: 0, count: 1, node, started })
        });
        let running = running.collect();
        let specs = nodes.iter().enumerate().map(|(index, (cpu, _))| {
            NodeSpec::new(format!("n{index}"), Resources::of(CPU, *cpu))
        });
        let scenario = Scenario { nodes: specs.collect(), jobs, running, ..Scenario::default() };
        let report = plan::run(&scenario).expect("a good scenario");
        let room = |index: usize| nodes[index].0 - i64::from(nodes[index].1.is_some());
        let rank = |index: usize| match nodes[index].1 {
            Some(0) => 0,
            None => 1,
            Some(_) => 2,
        };
        let best = (0..nodes.len()).filter(|index| room(*index) > 0).map(rank).min();
        let found = report.decisions.first().map(|one| rank(one.node[1..].parse().expect("a number")));
        prop_assert_eq!(found, best);
    }
}

/// The name must have every letter that is wanted.
struct Letters;

impl NodeFilter for Letters {
    fn name(&self) -> &str {
        "letters"
    }

    fn prepare(&self, wanted: &str) -> Result<Box<dyn NodeTest>, String> {
        let wanted = wanted.to_owned();
        Ok(Box::new(move |node: &NodeFacts| match wanted.chars().all(|letter| node.name.contains(letter)) {
            true => Ok(()),
            false => Err("lacks a letter".to_owned()),
        }))
    }
}

fn run_with_filler(
    nodes: Vec<NodeSpec>,
    jobs: Vec<ScenarioJob>,
    held: &BTreeMap<String, u32>,
    filters: &Filters,
) -> PlanReport {
    let running = held.iter().map(|(name, count)| {
        let node = nodes.iter().position(|node| node.facts.name == *name);
        plan::RunningTasks { job: 0, group: 0, role: 0, count: *count, node, started: Time::ZERO }
    });
    let running = running.collect();
    let settings = Settings { filters: filters.clone(), ..Settings::default() };
    plan::run(&Scenario { settings, nodes, jobs, running, ..Scenario::default() }).expect("a good scenario")
}

/// Adds so much, which is CPUs and nothing else.
fn add(capacity: &mut Resources, amounts: &[(String, String)]) {
    for (kind, amount) in amounts {
        assert_eq!(kind, "cpu");
        capacity.set(CPU, capacity.get(CPU) + Unit::of_kind(kind).parse(amount).expect("an amount"));
    }
}

/// Makes the change that an explanation names.
fn apply(
    nearest: &Nearest,
    wanted: &ShapeSpec,
    tasks: u32,
    nodes: &mut Vec<NodeSpec>,
    held: &mut BTreeMap<String, u32>,
) {
    let another = |number: usize, nodes: &mut Vec<NodeSpec>| {
        let mut another = NodeSpec::new(format!("z{number}"), wanted.request.clone());
        another.facts.labels.insert("zone".into(), "2".into());
        another.facts.plugins.push("gpu".into());
        another.facts.os = Some("linux".into());
        if let [pool] = wanted.rules.pools.as_slice() {
            another.facts.pool.clone_from(pool);
        }
        nodes.push(another);
    };
    let find = |nodes: &mut Vec<NodeSpec>, name: &str| {
        nodes.iter().position(|node| node.facts.name == name).expect("it names a node that is there")
    };
    match nearest {
        Nearest::Room { node, missing } => {
            let index = find(nodes, node);
            add(&mut nodes[index].capacity, missing);
        }
        Nearest::Ready { node } => {
            let index = find(nodes, node);
            nodes[index].availability = Availability::Active;
        }
        Nearest::Suitable { node, filter, .. } => {
            let index = find(nodes, node);
            let facts = &mut nodes[index].facts;
            match filter {
                Filter::Plugins => facts.plugins.push("gpu".into()),
                Filter::Constraints => drop(facts.labels.insert("zone".into(), "2".into())),
                Filter::Platform => facts.os = Some("linux".into()),
                Filter::Pool => facts.pool = "lab".into(),
                Filter::Access => facts.access = None,
                Filter::Ports | Filter::Replicas | Filter::Exclusive => drop(held.remove(node)),
                Filter::Custom(name) => {
                    assert_eq!(&**name, "letters");
                    let renamed = format!("{node}z");
                    if let Some(count) = held.remove(node) {
                        held.insert(renamed.clone(), count);
                    }
                    facts.name = renamed;
                }
                other => panic!("nothing in here asks for {other:?}"),
            }
        }
        Nearest::Several { node, filters } => {
            assert!(filters.len() > 1, "one thing would be named: {filters:?}");
            let index = find(nodes, node);
            nodes[index].availability = Availability::Active;
            let capacity = &mut nodes[index].capacity;
            capacity.set(CPU, capacity.get(CPU) + i64::from(tasks) * wanted.request.get(CPU));
        }
        Nearest::NamedNode { node, request } => {
            let mut capacity = Resources::new();
            add(&mut capacity, request);
            nodes.push(NodeSpec::new(node.clone(), capacity));
        }
        Nearest::AnotherNode { .. } => another(0, nodes),
        Nearest::OtherNodes { nodes: others, place: None } => {
            let [(count, _)] = others.as_slice() else { panic!("there is one role") };
            (0..*count as usize).for_each(|number| another(number, nodes));
        }
        other => panic!("{other:?} is not known here"),
    }
}
