//! The cluster and the queue: equal nodes, a thousand jobs, fifty shapes.

use std::sync::Arc;

use plimsoll::Config;
use plimsoll_core::resources::{KindId, Resources};
use plimsoll_core::settings::Settings;
use plimsoll_core::spec::JobSpec;

use crate::support::machines::{CPU, settings_without_window};

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
    /// Ten classes with a hundred queues, instead of first come, first served.
    pub shared: bool,
}

const CLASSES: u32 = 10;
const QUEUES: u32 = 100;

impl Size {
    pub fn settings(self) -> Arc<Settings> {
        if !self.shared {
            return settings_without_window();
        }
        let mut text = String::from(
            "window = 0.0\nshare_key = \"entitlement\"\nqueue_key = \"flow\"\nhalf_time = 3600.0\n",
        );
        text.push_str("[limits]\nplacements_per_turn = 1000000\n");
        for class in 0..CLASSES {
            text.push_str(&format!("[[classes]]\nname = \"c{class}\"\npercent = 10\n"));
        }
        for queue in 0..QUEUES {
            let class = queue % CLASSES;
            text.push_str(&format!("[[queues]]\nname = \"q{queue}\"\nclass = \"c{class}\"\n"));
        }
        Arc::new(Config::from_toml(&text).expect("good settings").settings().clone())
    }

    /// The job with this number.
    pub fn job(self, number: u32, tasks: u32) -> Arc<JobSpec> {
        let mut job = JobSpec::bag("bag", tasks, request(number));
        if self.shared {
            job.standing.queue = format!("q{}", number % QUEUES).into();
        }
        Arc::new(job)
    }

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
