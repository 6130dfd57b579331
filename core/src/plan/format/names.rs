//! The names a file gives to its nodes or jobs, and what they stand for.

use std::collections::BTreeMap;

use crate::document::{Cursor, FaultKind, suggest};

/// Names of one kind of thing. A name may stand for something that could not be read: referring to
/// it is no further fault.
#[derive(Debug)]
pub(super) struct Names {
    what: &'static str,
    positions: BTreeMap<String, Option<usize>>,
}

impl Names {
    pub(super) fn new(what: &'static str) -> Names {
        Names { what, positions: BTreeMap::new() }
    }

    /// Enters a name; `place` is where the file gives it.
    pub(super) fn enter(&mut self, name: &str, position: Option<usize>, place: &Cursor<'_>) -> bool {
        if self.positions.contains_key(name) {
            let shown = name.escape_debug();
            let expected = format!("there is another {} named `{shown}`", self.what);
            place.fault(FaultKind::Duplicate, expected);
            return false;
        }
        self.positions.insert(name.to_owned(), position);
        true
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.positions.contains_key(name)
    }

    /// What the name at `place` stands for; a name nobody entered is noted.
    pub(super) fn find(&self, name: &str, place: &Cursor<'_>) -> Option<usize> {
        match self.positions.get(name) {
            Some(position) => *position,
            None => {
                self.note_unknown(name, place);
                None
            }
        }
    }

    fn note_unknown(&self, name: &str, place: &Cursor<'_>) {
        let expanded = format!("{name}-0");
        let known = match self.positions.get_key_value(&expanded) {
            Some((first, _)) => format!("`{}`", first.escape_debug()),
            None => suggest(name, self.positions.keys().map(String::as_str)),
        };
        place.fault(FaultKind::UnknownName, format!("the name of a known {}: {known}", self.what));
    }
}
