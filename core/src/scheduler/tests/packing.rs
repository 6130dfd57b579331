//! The exact search against trying everything.

use super::*;
use crate::resources::KindId;
use crate::scheduler::scopes::EVERYWHERE;
use crate::spec::HostPort;

const CPU: KindId = KindId(1);
const GPU: KindId = KindId(3);

fn demand(shape: &ShapeSpec, tasks: u32) -> Demand<'_> {
    Demand { scope: EVERYWHERE, shape, tasks }
}

fn room(free: Resources) -> Room {
    Room { free, company: Company::default() }
}

#[test]
fn a_role_that_fits_anywhere_leaves_the_only_node_of_another() {
    let mut both = Resources::of(CPU, 1);
    both.set(GPU, 1);
    let plain = Resources::of(CPU, 1);
    let shape = |request: &Resources| ShapeSpec { request: request.clone(), ..ShapeSpec::default() };
    let (plain_task, both_task) = (shape(&plain), shape(&both));
    let (any, only) = ([NodeId(0), NodeId(1)], [NodeId(0)]);
    let demands = [(demand(&plain_task, 1), any.as_slice()), (demand(&both_task, 1), only.as_slice())];
    let room_on = |node: NodeId| room(if node == NodeId(0) { both.clone() } else { plain.clone() });
    assert_eq!(pack(&demands, room_on), Some(vec![vec![NodeId(1)], vec![NodeId(0)]]));
    let twice = [demands[1], (demand(&both_task, 1), only.as_slice())];
    assert_eq!(pack(&twice, room_on), None);
}

/// Goal: what the search does not try is bounded by the number of nodes that tasks would have to share,
/// and only by that. Method: more nodes than the bound, once with a node for each task, once not.
#[test]
fn only_the_search_over_shared_nodes_is_bounded() {
    let request = Resources::of(CPU, 1);
    let nodes: Vec<NodeId> = (0..=CANDIDATES_MAX as u32).map(NodeId).collect();
    let shape = ShapeSpec { request: request.clone(), ..ShapeSpec::default() };
    let each = nodes.len() as u32;
    assert!(pack(&[(demand(&shape, each), &nodes)], |_| room(Resources::of(CPU, 2))).is_some());
    assert_eq!(pack(&[(demand(&shape, each + 1), &nodes)], |_| room(Resources::of(CPU, 2))), None);
}

/// Whether these tasks find room together, by trying every node for every task in turn.
fn is_possible(tasks: &[&ShapeSpec], rooms: &mut [Room]) -> bool {
    let Some((shape, rest)) = tasks.split_first() else { return true };
    (0..rooms.len()).any(|node| {
        rooms[node].admits(shape) && {
            rooms[node].take(shape);
            let possible = is_possible(rest, rooms);
            rooms[node].give_back(shape);
            possible
        }
    })
}

fn random_shape(rng: &mut fastrand::Rng) -> ShapeSpec {
    let mut shape = ShapeSpec { request: Resources::of(CPU, rng.i64(0..4)), ..ShapeSpec::default() };
    if rng.bool() {
        shape.service = Some(Box::new(("web".into(), 1)));
        shape.max_per_node = rng.u32(0..3);
    }
    match rng.u8(0..5) {
        0 => shape.ports = HostPort::parse("80").into_iter().collect(),
        1 => shape.exclusive = true,
        _ => {}
    }
    shape
}

/// Goal: the search finds a way exactly where there is one, whoever minds which company. Method: random
/// roles and nodes, some of them with guests, against trying everything.
#[test]
fn the_search_knows_room_and_company() {
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut possible, mut impossible) = (0, 0);
    for _ in 0..4_000 {
        let shapes: Vec<ShapeSpec> = (0..rng.usize(1..4)).map(|_| random_shape(&mut rng)).collect();
        let most = if shapes.len() == 3 { 1 } else { 2 };
        let tasks: Vec<u32> = shapes.iter().map(|_| rng.u32(1..=most)).collect();
        let mut rooms: Vec<Room> =
            (0..rng.usize(1..5)).map(|_| room(Resources::of(CPU, rng.i64(0..7)))).collect();
        for room in &mut rooms {
            let guest = random_shape(&mut rng);
            if rng.u8(0..3) == 0 && room.admits(&guest) {
                room.take(&guest);
            }
        }
        let order = crate::scheduler::gangs::role_order(&shapes.iter().collect::<Vec<_>>());
        let takes = |shape: &ShapeSpec| -> Vec<NodeId> {
            let admits = |node: &usize| rooms[*node].admits(shape);
            (0..rooms.len()).filter(admits).map(|node| NodeId(node as u32)).collect()
        };
        let candidates: Vec<Vec<NodeId>> = order.iter().map(|role| takes(&shapes[*role])).collect();
        let demands: Vec<(Demand<'_>, &[NodeId])> = order
            .iter()
            .zip(&candidates)
            .map(|(role, nodes)| (demand(&shapes[*role], tasks[*role]), nodes.as_slice()))
            .collect();
        let found = pack(&demands, |node| rooms[node.index()].clone());
        let all: Vec<&ShapeSpec> = (0..shapes.len())
            .flat_map(|role| std::iter::repeat_n(&shapes[role], tasks[role] as usize))
            .collect();
        // In any order of the tasks: whether one may come depends on who came before.
        let expected = permutations(all.len()).into_iter().any(|order| {
            let tasks: Vec<&ShapeSpec> = order.into_iter().map(|task| all[task]).collect();
            is_possible(&tasks, &mut rooms.clone())
        });
        assert_eq!(found.is_some(), expected, "{shapes:?} {tasks:?} {rooms:?}");
        possible += u32::from(expected);
        impossible += u32::from(!expected);
        for ((demand, _), nodes) in demands.iter().zip(found.unwrap_or_default()) {
            assert_eq!(nodes.len(), demand.tasks as usize);
            for node in nodes {
                assert!(rooms[node.index()].admits(demand.shape), "what was found holds, task by task");
                rooms[node.index()].take(demand.shape);
            }
        }
    }
    assert!(possible > 500 && impossible > 500, "{possible} possible, {impossible} impossible");
}

fn permutations(length: usize) -> Vec<Vec<usize>> {
    let Some(last) = length.checked_sub(1) else { return vec![Vec::new()] };
    let insert = |order: Vec<usize>| {
        (0..=order.len()).map(move |place| {
            let mut longer = order.clone();
            longer.insert(place, last);
            longer
        })
    };
    permutations(last).into_iter().flat_map(insert).collect()
}
