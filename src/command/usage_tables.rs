//! How nodes and jobs spent their time, as tables: a row for each condition, a column for each usage.

use std::collections::BTreeMap;
use std::io;

use plimsoll::core::cluster_state::Usage;
use plimsoll::core::plan::{StateSeconds, UsageReport};

use super::output::Output;

/// More nodes or jobs than this are left to programs.
const ROWS_MAX: usize = 50;

pub(super) fn print(report: &UsageReport, output: &mut Output) -> io::Result<()> {
    let (from, until) = (report.from, report.until);
    output.heading(&format!("\nTime of nodes from {from:.3} to {until:.3}, in node seconds"))?;
    if report.nodes.iter().all(|node| node.states.is_empty()) {
        output.note("nothing is known: there are no nodes, or `retention.usage_entries` is 0")?;
    } else {
        let pools =
            report.pools.iter().map(|pool| (vec![pool.pool.clone(), pool.nodes.to_string()], &*pool.states));
        states(&["pool", "nodes"], pools, output)?;
        output.note("")?;
        let nodes =
            report.nodes.iter().map(|node| (vec![node.node.clone(), node.pool.clone()], &*node.states));
        states(&["node", "pool"], nodes.take(ROWS_MAX), output)?;
        more(report.nodes.len(), "nodes", output)?;
    }
    output.heading("\nTime of attempts, in seconds")?;
    let jobs = report.jobs.iter().take(ROWS_MAX).map(|job| {
        let (provisioning, all) = (job.provisioning, job.provisioning + job.running);
        let part = if all > 0.0 { format!("{:.1} %", 100.0 * provisioning / all) } else { "-".into() };
        vec![job.job.clone(), format!("{provisioning:.3}"), format!("{:.3}", job.running), part]
    });
    output.table(&["job", "provisioning", "running", "of it provisioning"], jobs)?;
    more(report.jobs.len(), "jobs", output)
}

fn more(count: usize, what: &str, output: &mut Output) -> io::Result<()> {
    match count.saturating_sub(ROWS_MAX) {
        0 => Ok(()),
        hidden => output.note(&format!("… and {hidden} more {what}; --json lists them all")),
    }
}

/// One row for whatever `names` say, and each condition it was in.
pub(super) fn states<'a>(
    names: &[&str],
    rows: impl Iterator<Item = (Vec<String>, &'a [StateSeconds])>,
    output: &mut Output,
) -> io::Result<()> {
    let usages = Usage::ALL.map(Usage::name);
    let header: Vec<&str> = names.iter().copied().chain(["condition"]).chain(usages).collect();
    let rows = rows.flat_map(|(names, states)| {
        let mut conditions: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
        for state in states {
            *conditions.entry(state.condition).or_default().entry(state.usage).or_default() += state.seconds;
        }
        conditions.into_iter().map(move |(condition, seconds)| {
            let spent =
                usages.map(|usage| seconds.get(usage).map_or("-".to_owned(), |spent| format!("{spent:.3}")));
            names.iter().cloned().chain([condition.to_owned()]).chain(spent).collect()
        })
    });
    output.table(&header, rows)
}
