//! Spreading is a true level fill, whatever runs already and however the nodes are labelled: shown on random
//! clusters, decision by decision.

use std::collections::BTreeMap;

use fastrand::Rng;
use plimsoll::core::plan;
use plimsoll::{Format, scenario};
use serde_json::{Value, json};

/// A node as it stands while the decisions of a dry run are followed.
#[derive(Clone, Debug)]
struct Node {
    name: String,
    /// What it is on each level; nothing where it lacks the label.
    levels: [Option<String>; 2],
    free: u64,
    paused: bool,
    of_service: u64,
    tasks: u64,
}

impl Node {
    fn is_usable(&self) -> bool {
        self.free > 0 && !self.paused
    }
}

fn report(scenario: &Value) -> Value {
    let scenario = scenario::from_text(&scenario.to_string(), Format::Json)
        .unwrap_or_else(|error| panic!("{error}: {scenario}"));
    serde_json::to_value(plan::run(&scenario).expect("it can be played")).expect("a report can be written")
}

/// Nodes in zones and racks, some without one or both, some paused, some full; and what runs there.
fn draw_nodes(rng: &mut Rng) -> Vec<Node> {
    let label = |rng: &mut Rng, values: [&str; 3]| {
        (rng.u8(0..5) > 0).then(|| rng.choice(values).expect("not empty").to_owned())
    };
    let one = |index: usize, rng: &mut Rng| {
        let levels = [label(rng, ["a", "b", "c"]), label(rng, ["x", "y", "z"])];
        let (of_service, others) = (rng.u64(0..4), rng.u64(0..3));
        let name = format!("n{index}");
        Node {
            name,
            levels,
            free: rng.u64(0..5),
            paused: rng.u8(0..5) == 0,
            of_service,
            tasks: of_service + others,
        }
    };
    (0..rng.usize(1..12)).map(|index| one(index, rng)).collect()
}

fn scenario_of(nodes: &[Node], tasks: u64) -> Value {
    let node = |node: &Node| {
        let labels: BTreeMap<&str, &String> = ["zone", "rack"]
            .into_iter()
            .zip(&node.levels)
            .filter_map(|(level, value)| Some((level, value.as_ref()?)))
            .collect();
        json!({
            "name": node.name, "labels": labels, "capacity": {"slot": node.free + node.tasks},
            "availability": if node.paused { "pause" } else { "active" },
        })
    };
    let job = |name: &str, service: &str, tasks: u64| {
        let role = json!({"name": "r", "max": tasks, "service": service, "version": 1, "request": {"slot": 1},
                          "spread": ["node.labels.zone", "node.labels.rack"]});
        json!({"name": name, "groups": [{"name": "g", "roles": [role]}]})
    };
    let others = |node: &Node| node.tasks - node.of_service;
    let sum = |count: &dyn Fn(&Node) -> u64| nodes.iter().map(count).sum::<u64>();
    let olds = [("old", "web", sum(&|node| node.of_service)), ("else", "other", sum(&others))];
    let jobs = olds.into_iter().filter(|(_, _, count)| *count > 0);
    let jobs: Vec<Value> = jobs.chain([("new", "web", tasks)]).map(|(a, b, c)| job(a, b, c)).collect();
    let runs = |job: &str, node: &Node, count: u64| {
        (count > 0).then(|| json!({"job": job, "node": node.name, "count": count}))
    };
    let running: Vec<Value> = nodes
        .iter()
        .flat_map(|node| [runs("old", node, node.of_service), runs("else", node, others(node))])
        .flatten()
        .collect();
    json!({
        "settings": {"window": 0},
        "nodes": nodes.iter().map(node).collect::<Vec<_>>(), "jobs": jobs, "running": running,
    })
}

/// Where the next task should go: at each level to a branch with the fewest tasks of those that can take one,
/// there to the node with the fewest of the service, then with the fewest at all, then to the first.
fn is_best(nodes: &[Node], chosen: usize) -> Result<(), String> {
    let mut inside: Vec<usize> = (0..nodes.len()).collect();
    for level in 0..2 {
        let branch_of = |index: usize| &nodes[index].levels[level];
        let mut branches: BTreeMap<&Option<String>, (u64, bool)> = BTreeMap::new();
        for index in &inside {
            let branch = branches.entry(branch_of(*index)).or_default();
            branch.0 += nodes[*index].of_service;
            branch.1 |= nodes[*index].is_usable();
        }
        let fewest = branches.values().filter(|branch| branch.1).map(|branch| branch.0).min();
        let own = branches[branch_of(chosen)];
        if !own.1 || Some(own.0) != fewest {
            return Err(format!("level {level}: the branch has {own:?}, the fewest are {fewest:?}"));
        }
        let branch = branch_of(chosen);
        inside.retain(|index| branch_of(*index) == branch);
    }
    let key = |index: &usize| (nodes[*index].of_service, nodes[*index].tasks, *index);
    let best = inside.iter().copied().filter(|index| nodes[*index].is_usable()).min_by_key(key);
    if best == Some(chosen) { Ok(()) } else { Err(format!("{best:?} comes first in its branch")) }
}

/// Goal: the fill is a true level fill at every level, from any start: no other place was better for any task,
/// so no move improves the spread. Method: random clusters with two levels, labels that are missing, nodes that
/// are full or paused and tasks that run already; each decision is compared with all nodes as they stood.
#[test]
fn every_task_goes_where_the_fewest_are() {
    let mut rng = Rng::with_seed(4);
    let mut placed = 0;
    for round in 0..400 {
        let mut nodes = draw_nodes(&mut rng);
        let tasks = rng.u64(1..20);
        let places: u64 = nodes.iter().filter(|node| node.is_usable()).map(|node| node.free).sum();
        let scenario = scenario_of(&nodes, tasks);
        let report = report(&scenario);
        let decisions = report["decisions"].as_array().expect("a list");
        assert_eq!(decisions.len() as u64, tasks.min(places), "round {round}: {scenario}");
        for decision in decisions {
            let chosen = nodes.iter().position(|node| decision["node"] == node.name).expect("it is there");
            let verdict = is_best(&nodes, chosen);
            assert_eq!(verdict, Ok(()), "round {round}, {decision}: {nodes:?}");
            nodes[chosen].of_service += 1;
            nodes[chosen].tasks += 1;
            nodes[chosen].free -= 1;
            placed += 1;
        }
    }
    assert!(placed > 1_000, "the rounds place something: {placed}");
}

/// Goal: the order in which nodes are listed changes neither how many tasks each branch gets nor what is
/// counted of those that wait. Method: the same random clusters with their nodes in another order.
#[test]
fn the_order_of_nodes_changes_no_branch_and_no_count() {
    let mut rng = Rng::with_seed(5);
    let mut waited = 0;
    for round in 0..200 {
        let mut nodes = draw_nodes(&mut rng);
        let tasks = rng.u64(1..30);
        let outcome = |nodes: &[Node]| {
            let report = report(&scenario_of(nodes, tasks));
            let mut branches: BTreeMap<[Option<String>; 2], u64> = BTreeMap::new();
            for decision in report["decisions"].as_array().expect("a list") {
                let node = nodes.iter().find(|node| decision["node"] == node.name).expect("it is there");
                *branches.entry(node.levels.clone()).or_default() += 1;
            }
            let reasons = report["waiting"].as_array().expect("a list").iter();
            let counts = reasons.map(|waiting| {
                let reason = waiting["explanation"]["reason"].as_object().expect("a table");
                reason.values().map(|room| room["filters"].clone()).collect::<Vec<_>>()
            });
            (branches, counts.collect::<Vec<_>>())
        };
        let before = outcome(&nodes);
        waited += before.1.len();
        rng.shuffle(&mut nodes);
        assert_eq!(before, outcome(&nodes), "round {round}: {nodes:?}");
    }
    assert!(waited > 50, "something waits: {waited}");
}
