//! What commands print: tables for people, JSON for programs, problems for both.

use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use plimsoll::InputError;
use serde::Serialize;
use serde_json::json;

use super::BAD_INPUT;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HEADING: Style = Style::new().bold();
/// One line below the header, so that the rows stay easy to search and to cut.
const ROWS: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Standard output, in the form that was asked for.
pub(super) struct Output {
    pub(super) json: bool,
}

impl Output {
    pub(super) fn new(json: bool) -> Output {
        Output { json }
    }

    /// One line above a table.
    pub(super) fn heading(&mut self, text: &str) -> io::Result<()> {
        writeln!(anstream::stdout().lock(), "{HEADING}{text}{HEADING:#}")
    }

    pub(super) fn table(
        &mut self,
        header: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> io::Result<()> {
        let mut table = Table::new();
        table.load_style(ROWS);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(header.iter().copied());
        table.add_rows(rows);
        writeln!(anstream::stdout().lock(), "{}", table.trim_fmt())
    }

    /// A line below a table.
    pub(super) fn note(&mut self, text: &str) -> io::Result<()> {
        writeln!(anstream::stdout().lock(), "{text}")
    }

    /// Tells why the command could not be carried out.
    pub(super) fn failure(&mut self, error: &dyn std::error::Error) -> io::Result<()> {
        if self.json {
            return self.document(&json!({"ok": false, "problems": [{"message": error.to_string()}]}));
        }
        writeln!(anstream::stderr().lock(), "{ERROR}error{ERROR:#}: {error}")
    }

    pub(super) fn document(&mut self, document: &impl Serialize) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        serde_json::to_writer_pretty(&mut stdout, document)?;
        writeln!(stdout)
    }

    /// Tells everything that is wrong with the input, and the exit code that says so.
    pub(super) fn problems(&mut self, error: &InputError) -> io::Result<ExitCode> {
        if self.json {
            self.document(&problems_document(error))?;
        } else {
            writeln!(anstream::stderr().lock(), "{ERROR}error{ERROR:#}: {error}")?;
        }
        Ok(ExitCode::from(BAD_INPUT))
    }
}

fn problems_document(error: &InputError) -> serde_json::Value {
    match error {
        InputError::Faulty { faults, .. } => {
            let problems = faults.listed.iter().map(|fault| {
                json!({
                    "field": fault.field,
                    "kind": fault.kind,
                    "found": fault.found,
                    "expected": fault.expected,
                    "message": fault.to_string(),
                })
            });
            json!({"ok": false, "problems": problems.collect::<Vec<_>>(), "more_problems": faults.more})
        }
        other => json!({"ok": false, "problems": [{"message": other.to_string()}], "more_problems": 0}),
    }
}
