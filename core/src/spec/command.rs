//! The command of a role: what an executor of processes starts for each of its tasks. Placement does not
//! look at it.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::{Deserialize, Serialize};

use crate::time::Span;

use super::limits::check_count;
use super::{Invalid, Problem};

/// A program to be started, and what it finds around it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CommandSpec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables of its environment, besides those that the executor gives to every program.
    pub env: BTreeMap<String, String>,
    /// The directory it is started in; that of the service unless given.
    pub cwd: Option<String>,
    pub stdout: OutputTo,
    pub stderr: OutputTo,
    /// How long it may go on after it was asked to end; as the executor says unless given.
    pub grace: Option<Span>,
}

/// Where the output of a program goes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum OutputTo {
    /// To the end of this file. `{job}`, `{group}`, `{role}`, `{task}`, `{attempt}` and `{node}` stand for
    /// what they name.
    Path(String),
    /// The last so many bytes are kept and can be asked for; 0 keeps nothing.
    Ring(u32),
}

pub const RING_DEFAULT: u32 = 64 << 10;
pub const RING_MAX: u32 = 16 << 20;

/// As much as any operating system passes on to a program.
const ARGUMENTS_MAX: u64 = 4_096;
const VARIABLES_MAX: u64 = 1_024;
const TEXT_MAX: u64 = 128 << 10;

impl Default for OutputTo {
    fn default() -> OutputTo {
        OutputTo::Ring(RING_DEFAULT)
    }
}

impl CommandSpec {
    /// A program with its arguments.
    pub fn new<T: Into<String>>(argv: impl IntoIterator<Item = T>) -> CommandSpec {
        CommandSpec { argv: argv.into_iter().map(Into::into).collect(), ..CommandSpec::default() }
    }

    /// Adds a variable to its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> CommandSpec {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Says in which directory it is started.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<String>) -> CommandSpec {
        self.cwd = Some(directory.into());
        self
    }

    /// Says where what it prints goes.
    #[must_use]
    pub fn stdout(mut self, to: OutputTo) -> CommandSpec {
        self.stdout = to;
        self
    }

    /// Says where what it complains about goes.
    #[must_use]
    pub fn stderr(mut self, to: OutputTo) -> CommandSpec {
        self.stderr = to;
        self
    }

    /// Says how long it may go on after it was asked to end.
    #[must_use]
    pub fn grace(mut self, grace: Span) -> CommandSpec {
        self.grace = Some(grace);
        self
    }

    pub(super) fn note_problems(&self, field: impl Display + Copy, problems: &mut Vec<Invalid>) {
        if self.argv.first().is_none_or(String::is_empty) {
            problems.push(Invalid::new(format!("{field}.argv"), "nothing", Problem::Empty));
        }
        problems.extend(check_count(format_args!("{field}.argv"), self.argv.len(), ARGUMENTS_MAX));
        problems.extend(check_count(format_args!("{field}.env"), self.env.len(), VARIABLES_MAX));
        for (index, argument) in self.argv.iter().enumerate() {
            note_text(format_args!("{field}.argv[{index}]"), argument, problems);
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                problems.push(Invalid::new(format!("{field}.env"), name, Problem::NoVariable));
            }
            note_text(format_args!("{field}.env.{name}"), value, problems);
        }
        if let Some(cwd) = &self.cwd {
            note_text(format_args!("{field}.cwd"), cwd, problems);
        }
        let argv = self.argv.iter().map(String::len);
        let whole: usize = argv.chain(self.env.iter().map(|(name, value)| name.len() + value.len())).sum();
        if whole as u64 > TEXT_MAX {
            problems.push(Invalid::new(
                field,
                format!("{whole} bytes"),
                Problem::TooLong { limit: TEXT_MAX },
            ));
        }
        for (name, to) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            let field = format_args!("{field}.{name}");
            match to {
                OutputTo::Path(path) if path.is_empty() => {
                    problems.push(Invalid::new(field, path, Problem::Empty));
                }
                OutputTo::Path(path) => note_text(field, path, problems),
                OutputTo::Ring(bytes) if *bytes > RING_MAX => {
                    problems.push(Invalid::new(field, bytes, Problem::TooLong { limit: RING_MAX.into() }));
                }
                OutputTo::Ring(_) => {}
            }
        }
    }
}

/// No program can be given a zero byte, and none of its own words may fill the whole.
fn note_text(field: impl Display + Copy, text: &str, problems: &mut Vec<Invalid>) {
    if text.contains('\0') {
        problems.push(Invalid::new(field, text.escape_debug(), Problem::ZeroByte));
    }
    if text.len() as u64 > TEXT_MAX {
        problems.push(Invalid::new(field, text, Problem::TooLong { limit: TEXT_MAX }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields_of(command: &CommandSpec) -> Vec<String> {
        let mut problems = Vec::new();
        command.note_problems("command", &mut problems);
        problems.into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn what_no_system_could_start_is_named() {
        assert_eq!(fields_of(&CommandSpec::new(["true"])), Vec::<String>::new());
        assert_eq!(fields_of(&CommandSpec::default()), ["command.argv"]);
        let bad = CommandSpec::new(["sh", "a\0b"]).env("A=B", "").cwd("\0").stdout(OutputTo::Path("".into()));
        let bad = bad.stderr(OutputTo::Ring(RING_MAX + 1));
        let fields = ["command.argv[1]", "command.env", "command.cwd", "command.stdout", "command.stderr"];
        assert_eq!(fields_of(&bad), fields);
        let long = "x".repeat(TEXT_MAX as usize);
        assert_eq!(fields_of(&CommandSpec::new(["echo", &long])), ["command"]);
    }
}
