//! Small pieces of the machines' work for `benches/instructions.sh`, which counts their instructions under
//! valgrind: on a busy machine times mean little, instructions hardly move.
//!
//! `cargo bench --bench instructions -- NAME` does one piece, without a name every one.

#[path = "pending_node/steps.rs"]
mod steps;
mod support;
#[path = "pending_node/workload.rs"]
mod workload;

use std::sync::Arc;

use plimsoll_core::messages::EndReport;
use plimsoll_core::outcome::Exit;
use plimsoll_core::resources::Resources;
use plimsoll_core::spec::JobSpec;
use plimsoll_core::time::Span;

use support::Lives;
use support::machines::{CPU, settings_without_window};
use workload::Size;

type Piece = (&'static str, fn());

const PIECES: [Piece; 5] = [
    ("decide_and_book", decide_and_book),
    ("submit_what_waits", submit_what_waits),
    ("live_one_by_one", live_one_by_one),
    ("pending_node", || pending_node(false)),
    ("pending_node_shared", || pending_node(true)),
];

/// Jobs are submitted so many at a time.
const BATCH: usize = 64;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if std::env::args().any(|word| word == "--names") {
        return PIECES.iter().for_each(|(name, _)| println!("{name}"));
    }
    for (name, piece) in PIECES {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            piece();
        }
    }
}

fn lives(nodes: u32) -> Lives {
    Lives::new(&settings_without_window(), nodes, &Resources::of(CPU, 16_000))
}

fn one_core() -> Arc<JobSpec> {
    Arc::new(JobSpec::bag("job", 1, Resources::of(CPU, 1_000)))
}

/// A job of ten thousand tasks three times, into the room that the one before left.
fn decide_and_book() {
    let mut lives = lives(1_000);
    for _ in 0..3 {
        lives.submit(vec![Arc::new(JobSpec::bag("bag", 10_000, Resources::of(CPU, 1_000)))], |_| None);
        let ended = |attempt| EndReport { attempt, exit: Exit::Completed };
        let ended = lives.jobs.live().map(|task| ended(task.attempt)).collect();
        lives.end(ended, |_| None);
    }
    assert_eq!(lives.ended, 30_000);
}

/// Ten thousand jobs of one task for which there is no room.
fn submit_what_waits() {
    let mut lives = lives(0);
    for _ in 0..10_000 / BATCH {
        lives.submit(vec![one_core(); BATCH], |_| None);
    }
    assert_eq!(lives.waiting() as usize, 10_000 / BATCH * BATCH);
}

/// Ten thousand jobs of one task, each of which lives a whole life.
fn live_one_by_one() {
    let mut lives = lives(100);
    for _ in 0..10_000 / BATCH {
        lives.submit(vec![one_core(); BATCH], |_| Some(Span::from_millis(1)));
        while lives.advance(|_| None) {}
    }
    assert_eq!(lives.ended as usize, 10_000 / BATCH * BATCH);
}

/// A full cluster of which one task after the other ends while ten thousand wait.
fn pending_node(shared: bool) {
    let measured = steps::measure(Size { nodes: 100, waiting: 10_000, shared }, 2_000);
    assert!(measured.decisions > 0);
}
