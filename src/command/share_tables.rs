//! How classes and queues stand when a dry run ends, as tables.

use std::io;

use plimsoll::core::plan::{ShareSummary, Summary};

use super::output::Output;

/// More queues than this are summed up for people; programs get them all.
const QUEUES_SHOWN_MAX: usize = 50;

pub(super) fn print(summary: &Summary, output: &mut Output) -> io::Result<()> {
    let classes = summary.shares.iter().filter(|share| {
        let name = &share.status.name;
        name.queue.is_none() && !name.class.is_empty()
    });
    let rows: Vec<Vec<String>> = classes.map(class_row).collect();
    if !rows.is_empty() {
        output.table(&["class", "percent", "target", "held", "running", "assigned", "waiting"], rows)?;
    }
    let queues = summary.shares.iter().filter(|share| {
        let status = &share.status;
        let is_named = status.name.queue.as_ref().is_some_and(|queue| !queue.is_empty());
        is_named && status.running + status.waiting + share.assigned > 0
    });
    let mut rows: Vec<Vec<String>> = queues.map(queue_row).collect();
    let hidden = rows.len().saturating_sub(QUEUES_SHOWN_MAX);
    rows.truncate(QUEUES_SHOWN_MAX);
    if !rows.is_empty() {
        let header =
            ["queue", "class", "fair share", "of use to it", "held", "running", "assigned", "waiting"];
        output.table(&header, rows)?;
    }
    if hidden > 0 {
        output.note(&format!("… and {hidden} queues more; --json lists them all"))?;
    }
    Ok(())
}

fn class_row(share: &ShareSummary) -> Vec<String> {
    let status = &share.status;
    let percent = status.percent.unwrap_or_default().to_string();
    let amounts = [status.target, status.held].map(|amount| status.unit.describe(amount));
    [vec![status.name.class.to_string(), percent], amounts.to_vec(), counts(share)].concat()
}

fn queue_row(share: &ShareSummary) -> Vec<String> {
    let status = &share.status;
    let name = status.name.queue.as_deref().unwrap_or_default().to_owned();
    let usable = status.adjusted.map_or(0, |adjusted| adjusted.capped);
    let amounts = [status.target, usable, status.held].map(|amount| status.unit.describe(amount));
    [vec![name, status.name.class.to_string()], amounts.to_vec(), counts(share)].concat()
}

fn counts(share: &ShareSummary) -> Vec<String> {
    [share.status.running, share.assigned, share.status.waiting].map(|count| count.to_string()).to_vec()
}
