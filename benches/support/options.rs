//! What a benchmark is asked for on its command line and by its environment.

/// Set to anything but `0`, this asks for the short run.
const QUICK_VARIABLE: &str = "PLIMSOLL_BENCH_QUICK";

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Smaller sizes and fewer repetitions: a check that everything still works and roughly holds.
    pub quick: bool,
    /// One JSON document instead of tables.
    pub json: bool,
}

impl Options {
    /// Unknown arguments are passed over: cargo adds its own.
    pub fn from_environment() -> Options {
        let asked = |name: &str| std::env::args().skip(1).any(|argument| argument == name);
        let variable = std::env::var(QUICK_VARIABLE).is_ok_and(|value| !value.is_empty() && value != "0");
        Options { quick: variable || asked("--quick"), json: asked("--json") }
    }
}
