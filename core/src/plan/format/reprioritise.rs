//! `reprioritise`: a job, or every job of a set, comes to stand elsewhere.

use std::sync::Arc;

use crate::document::{Cursor, Fault, FaultKind, Fields};
use crate::plan::{Happening, WhichJobs};
use crate::settings::Settings;
use crate::spec::StandingChange;

pub(super) fn read(cursor: Cursor<'_>, settings: &Settings) -> Option<Happening> {
    cursor.table(|fields| {
        let jobs = read_which(fields);
        let text = |name| fields.get(name).and_then(|place| place.text()).map(Arc::from);
        let priority = fields.get("priority");
        let priority = priority.and_then(|place| place.integer(i64::from(i32::MIN)..=i64::from(i32::MAX)));
        let priority = priority.map(|priority| priority as i32);
        let change = StandingChange { queue: text("queue"), band: text("band"), priority };
        for invalid in change.problems(settings) {
            fields.log().note_invalid(fields.path(), invalid);
        }
        Some(Happening::Reprioritise { jobs: jobs?, change })
    })?
}

fn read_which(fields: &Fields<'_>) -> Option<WhichJobs> {
    let name = |place: Cursor<'_>| place.name().map(str::to_owned);
    match (fields.get("job"), fields.get("job_set")) {
        (Some(job), None) => name(job).map(WhichJobs::Job),
        (None, Some(set)) => name(set).map(WhichJobs::Set),
        (job, _) => {
            let kind = if job.is_some() { FaultKind::Refused } else { FaultKind::Missing };
            fields.log().note(|| Fault::new(fields.path(), kind, None, "either `job` or `job_set`"));
            None
        }
    }
}
