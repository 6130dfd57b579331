//! Where in a document a value stands. Paths are links on the stack: they cost nothing until a
//! fault has to name one.

use std::fmt;

/// The place of a value, such as `jobs[2].groups[0].roles[1].request.cpu`.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
}

/// Longer names of fields are shown shortened: a document may contain anything.
const NAME_SHOWN_MAX: usize = 64;

impl<'a> Path<'a> {
    pub const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub fn field(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Field(name) }
    }

    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Field(name) => {
                let is_first = self.parent.is_none_or(|parent| matches!(parent.step, Step::Root));
                f.write_str(if is_first { "" } else { "." })?;
                write_name(f, name)
            }
        }
    }
}

fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/');
    if !name.is_empty() && name.len() <= NAME_SHOWN_MAX && name.bytes().all(is_plain) {
        return f.write_str(name);
    }
    let end = (0..=NAME_SHOWN_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    let more = if end < name.len() { "…" } else { "" };
    write!(f, "\"{}{more}\"", name[..end].escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_like_the_document() {
        let jobs = Path::ROOT.field("jobs");
        let job = jobs.index(2);
        let request = job.field("request");
        assert_eq!(request.field("cpu").to_string(), "jobs[2].request.cpu");
        assert_eq!(request.field("nvidia.com/gpu").to_string(), "jobs[2].request.\"nvidia.com/gpu\"");
        assert_eq!(Path::ROOT.to_string(), "");
    }

    #[test]
    fn strange_names_are_shown_safely() {
        assert_eq!(Path::ROOT.field("a\u{1b}[2J").to_string(), "\"a\\u{1b}[2J\"");
        assert_eq!(Path::ROOT.field("").to_string(), "\"\"");
        assert!(Path::ROOT.field(&"ü".repeat(1_000)).to_string().len() < 80);
    }
}
