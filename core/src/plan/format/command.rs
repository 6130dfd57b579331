//! `command` of a role: what an executor of processes would start. A dry run only checks it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::document::{Cursor, Fields, Value};
use crate::settings::bounds;
use crate::spec::{CommandSpec, OutputTo, RING_MAX};
use crate::time::Span;

use super::jobs::read_each;

/// The command, if there is one; `None` when too much is wrong with it.
pub(super) fn read(fields: &Fields<'_>) -> Option<Option<Arc<CommandSpec>>> {
    let Some(cursor) = fields.get("command") else { return Some(None) };
    let command = cursor.table(|fields| {
        let argv = fields.required("argv", "the program and its arguments");
        let argv = argv.and_then(|argv| read_each(argv, |item| item.text().map(str::to_owned)));
        let mut env = BTreeMap::new();
        let mut is_complete = true;
        if let Some(table) = fields.get("env") {
            let read = table.entries(|name, item| match item.text() {
                Some(value) => drop(env.insert(name.to_owned(), value.to_owned())),
                None => is_complete = false,
            });
            is_complete &= read.is_some();
        }
        let cwd = fields.get("cwd").map(|cwd| cwd.name().map(str::to_owned));
        let cwd = cwd.map_or(Some(None), |cwd| cwd.map(Some));
        let (stdout, stderr) = (read_output(fields, "stdout"), read_output(fields, "stderr"));
        let graces = Span::ZERO..=bounds::RUN.maximum;
        let grace = fields.get("grace").map(|grace| grace.span(graces));
        let grace = grace.map_or(Some(None), |grace| grace.map(Some));
        let env = is_complete.then_some(env)?;
        Some(CommandSpec { argv: argv?, env, cwd: cwd?, stdout: stdout?, stderr: stderr?, grace: grace? })
    })??;
    Some(Some(Arc::new(command)))
}

/// A path, or how many bytes are kept.
fn read_output(fields: &Fields<'_>, name: &'static str) -> Option<OutputTo> {
    let Some(cursor) = fields.get(name) else { return Some(OutputTo::default()) };
    match cursor.value() {
        Value::Text(_) => read_path(&cursor),
        _ => cursor.whole(0..=u64::from(RING_MAX)).map(|bytes| OutputTo::Ring(bytes as u32)),
    }
}

fn read_path(cursor: &Cursor<'_>) -> Option<OutputTo> {
    cursor.name().map(|path| OutputTo::Path(path.to_owned()))
}
