//! What the rates are compared with: a plain scan for the least loaded node, and one step of a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use cpu_time::ThreadTime;

use crate::support::{Options, Table, Value, nanos_each, per_second};

/// The costs at one number of nodes, in nanoseconds per assignment.
#[derive(Clone, Copy, Debug)]
pub struct Baseline {
    pub nodes: u32,
    pub scan: f64,
    pub heap: f64,
    scanned: u32,
}

/// A scan looks at so many nodes in all, then stops: what one assignment costs does not depend on
/// how many there are, so the bounded run stands for the long one.
const LOOKS_MAX: u32 = 20_000_000;

#[derive(Clone, Copy)]
struct PlainNode {
    free: [i64; 4],
    tasks: u32,
}

pub fn measure(options: Options) -> Vec<Baseline> {
    let looks = if options.quick { LOOKS_MAX / 10 } else { LOOKS_MAX };
    [1_000, 10_000, 100_000].into_iter().map(|nodes| at(nodes, looks)).collect()
}

fn at(nodes: u32, looks: u32) -> Baseline {
    let scanned = looks / nodes;
    Baseline { nodes, scan: scan(nodes, scanned), heap: heap(nodes), scanned }
}

/// For each task, looks at every node and takes the one with the fewest tasks that has room.
fn scan(nodes: u32, assignments: u32) -> f64 {
    let mut list = vec![PlainNode { free: [0, 1 << 40, 0, 0], tasks: 0 }; nodes as usize];
    let request = black_box([0, 1_000, 0, 0]);
    let begin = ThreadTime::now();
    for _ in 0..assignments {
        let with_room = list.iter_mut().filter(|node| {
            let mut amounts = node.free.iter().zip(&request);
            amounts.all(|(free, wanted)| free >= wanted)
        });
        let best = with_room.min_by_key(|node| node.tasks).expect("there is room");
        best.tasks += 1;
        for (free, wanted) in best.free.iter_mut().zip(&request) {
            *free -= wanted;
        }
    }
    let elapsed = begin.elapsed();
    black_box(list);
    nanos_each(elapsed, u64::from(assignments))
}

/// The cheapest ordered structure that could do the job if every node had room for everything:
/// takes the least loaded node out of a heap and puts it back with one task more.
fn heap(nodes: u32) -> f64 {
    const STEPS: u32 = 300_000;
    let mut heap: BinaryHeap<Reverse<(u32, u32)>> = (0..nodes).map(|node| Reverse((0, node))).collect();
    let begin = ThreadTime::now();
    for _ in 0..STEPS {
        let Reverse((tasks, node)) = heap.pop().expect("nodes never leave");
        heap.push(Reverse((tasks + 1, node)));
    }
    let elapsed = begin.elapsed();
    black_box(heap);
    nanos_each(elapsed, u64::from(STEPS))
}

pub fn table(baselines: &[Baseline]) -> Table {
    let columns =
        ["nodes", "scan assignments", "scan ns each", "scan per CPU s", "heap ns each", "heap per CPU s"];
    let mut table = Table::new("Baselines of the same run", &columns);
    for baseline in baselines {
        table.row(vec![
            Value::count(baseline.nodes),
            Value::count(baseline.scanned),
            Value::Number(baseline.scan, 0),
            Value::Number(per_second(baseline.scan), 0),
            Value::Number(baseline.heap, 1),
            Value::Number(per_second(baseline.heap), 0),
        ]);
    }
    table.note(
        "scan: every node is looked at for every task. Only so many assignments are made as the column",
    );
    table.note(
        "  says; the cost of one does not depend on their number, so longer runs are extrapolated from it.",
    );
    table.note(
        "heap: the least loaded node is taken out and put back; no fitting, no bookkeeping. For scale.",
    );
    table
}
