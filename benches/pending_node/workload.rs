//! The cluster and the queue: equal nodes, a thousand jobs, fifty shapes.

use plimsoll_core::resources::{KindId, Resources};

use crate::support::machines::CPU;

pub const JOBS: u32 = 1_000;
pub const MEMORY: KindId = KindId(2);
const SHAPES: u32 = 50;
const GIBIBYTE: i64 = 1 << 30;

/// The same ends in the same order for everybody who is measured.
pub const SEED: u64 = 7;

#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub nodes: u32,
    pub waiting: u32,
}

impl Size {
    pub fn tasks_per_job(self) -> u32 {
        self.waiting / JOBS
    }
}

pub fn capacity() -> Resources {
    let mut capacity = Resources::of(CPU, 32_000);
    capacity.set(MEMORY, 64 * GIBIBYTE);
    capacity
}

/// What each task of the job with this number asks for: one to five cores and one to ten gibibytes.
/// What fits into the place of a task that ended depends on it, so heads of the queue are skipped.
pub fn request(job: u32) -> Resources {
    let shape = i64::from(job % SHAPES);
    let mut request = Resources::of(CPU, (1 + shape % 5) * 1_000);
    request.set(MEMORY, (1 + shape / 5) * GIBIBYTE);
    request
}
