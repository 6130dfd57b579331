//! What the benchmarks stand on: options, the machines under measurement, and the report.

// Not every benchmark uses everything.
#[allow(dead_code)]
pub mod lives;
#[allow(dead_code)]
pub mod machines;
#[allow(dead_code)]
pub mod options;
#[allow(dead_code)]
pub mod report;

#[allow(unused_imports)]
pub use lives::Lives;
#[allow(unused_imports)]
pub use machines::Machines;
#[allow(unused_imports)]
pub use options::Options;
#[allow(unused_imports)]
pub use report::{Report, Table, Value};

/// Nanoseconds per item.
#[allow(dead_code)]
pub fn nanos_each(elapsed: std::time::Duration, items: u64) -> f64 {
    elapsed.as_nanos() as f64 / items.max(1) as f64
}

/// Items per second at so many nanoseconds each.
#[allow(dead_code)]
pub fn per_second(nanos_each: f64) -> f64 {
    1e9 / nanos_each.max(f64::MIN_POSITIVE)
}
