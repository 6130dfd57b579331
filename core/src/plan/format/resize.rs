//! `resize`: a role of an elastic group may vary between other sizes.

use crate::document::{Cursor, FaultKind};
use crate::plan::{Happening, Which};

/// Groups and roles are looked up when it happens, because jobs may come by events. Where there is only one
/// group or role it need not be named.
pub(super) fn read(cursor: Cursor<'_>) -> Option<Happening> {
    cursor.table(|fields| {
        let job = fields.required("job", "the name of a job").and_then(|place| place.name());
        let name = |field: &'static str| fields.get(field).and_then(|place| place.name()).map(str::to_owned);
        let which = Which { group: name("group"), role: name("role"), node: None };
        let size = |field: &'static str| {
            let place = fields.required(field, "a number of tasks")?;
            Some((place, place.whole(0..=u64::from(u32::MAX))? as u32))
        };
        let (min, max) = (size("min"), size("max"));
        let ((_, min), (place, max)) = (min?, max?);
        if max < min.max(1) {
            place.fault(FaultKind::Refused, format!("at least {}", min.max(1)));
            return None;
        }
        Some(Happening::Resize { job: job?.to_owned(), which, sizes: (min, max) })
    })?
}
