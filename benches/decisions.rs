//! How many placements the Scheduler decides per CPU second, and how many bytes everything costs.
//!
//! Nothing is asserted about time: each figure is printed beside its target and beside a baseline
//! taken in the same run. `--quick` (or `PLIMSOLL_BENCH_QUICK=1`) is the short run, `--json` prints
//! a document for programs.

#[path = "decisions/baseline.rs"]
mod baseline;
#[path = "decisions/grid.rs"]
mod grid;
#[path = "decisions/memory.rs"]
mod memory;
mod support;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use support::{Options, Report};

/// Counts every byte that is held. The machines allocate per batch, not per task, so counting does
/// not show in the rates.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let options = Options::from_environment();
    let mut report = Report::new("decisions", options);
    let baselines = baseline::measure(options);
    report.add(grid::table(options, &baselines));
    report.add(baseline::table(&baselines));
    report.add(memory::table(options));
    report.finish();
}
