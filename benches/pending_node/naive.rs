//! The baseline: one entry per waiting task, looked through from the front.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};

use fastrand::Rng;

use plimsoll_core::resources::Resources;

use crate::support::machines::CPU;
use crate::support::nanos_each;

use super::workload::{JOBS, MEMORY, SEED, Size, capacity, request};

/// Cores and memory: a plain scheduler would carry no more.
type Amounts = [i64; 2];

/// The scan stops after so long, however many steps that were.
const LONGEST: Duration = Duration::from_millis(500);

struct Naive {
    free: Vec<Amounts>,
    running: Vec<(usize, Amounts)>,
    waiting: VecDeque<Amounts>,
}

fn amounts(resources: &Resources) -> Amounts {
    [resources.get(CPU), resources.get(MEMORY)]
}

impl Naive {
    /// Gives a node the first waiting tasks that fit, and says how many those were.
    fn serve(&mut self, node: usize) -> u64 {
        let mut decisions = 0;
        let free = &mut self.free[node];
        while let Some(first) =
            self.waiting.iter().position(|wanted| wanted[0] <= free[0] && wanted[1] <= free[1])
        {
            let wanted = self.waiting.remove(first).expect("it was just found");
            (free[0], free[1]) = (free[0] - wanted[0], free[1] - wanted[1]);
            self.running.push((node, wanted));
            decisions += 1;
        }
        decisions
    }
}

/// Nanoseconds per decision.
pub fn measure(size: Size, steps: u32) -> f64 {
    let tasks =
        (0..JOBS).flat_map(|job| std::iter::repeat_n(amounts(&request(job)), size.tasks_per_job() as usize));
    let free = vec![amounts(&capacity()); size.nodes as usize];
    // The cluster is filled from a queue of its own, so that the measured one has its full length.
    let filling = (0..).map(|job| amounts(&request(job))).take(32 * size.nodes as usize).collect();
    let mut naive = Naive { free, running: Vec::new(), waiting: filling };
    (0..size.nodes as usize).for_each(|node| {
        naive.serve(node);
    });
    naive.waiting = tasks.collect();
    let mut rng = Rng::with_seed(SEED);
    let mut decisions = 0;
    let begin = Instant::now();
    for _ in 0..steps {
        let ended = rng.usize(..naive.running.len());
        let (node, held) = naive.running.swap_remove(ended);
        naive.free[node] = [naive.free[node][0] + held[0], naive.free[node][1] + held[1]];
        decisions += naive.serve(node);
        if begin.elapsed() > LONGEST || naive.waiting.len() < size.waiting as usize / 2 {
            break;
        }
    }
    let elapsed = begin.elapsed();
    black_box(naive.waiting);
    nanos_each(elapsed, decisions)
}
