//! `plimsoll plan`: what would be decided for a cluster and a workload described in a file?

use std::io;
use std::process::ExitCode;

use clap::Args;
use plimsoll::core::plan::{self, DecisionKind, PlanError, PlanReport, Scenario, UsageReport};
use plimsoll::scenario;
use serde::Serialize;

use super::output::Output;
use super::patience::Patience;
use super::{BAD_INPUT, FAILED, share_tables, usage_tables};

/// Decide what would run where, without running anything
///
/// The file describes nodes, jobs, what runs already and what happens later, as JSON or TOML. The
/// exit code is 0 for a good file and 2 for a bad one.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// A TOML or JSON file; - for standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Tell how nodes and jobs would spend their time too
    #[arg(long)]
    usage: bool,
}

const EXAMPLES: &str = "Examples:
  plimsoll plan cluster.toml
  plimsoll plan cluster.toml --usage
  echo '{\"nodes\": [{\"name\": \"n\", \"count\": 2, \"capacity\": {\"slot\": 1}}],
         \"jobs\": [{\"name\": \"j\", \"tasks\": 3, \"request\": {\"slot\": 1}}]}' | plimsoll plan - --json";

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> io::Result<ExitCode> {
    match scenario::load(&arguments.file) {
        Ok(scenario) => decide(&scenario, arguments.usage, output),
        Err(error) => output.problems(&error),
    }
}

/// What the dry run answers as one document.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    report: PlanReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageReport>,
}

/// Carries out the dry run and prints what it decided.
fn decide(scenario: &Scenario, wants_usage: bool, output: &mut Output) -> io::Result<ExitCode> {
    let patience = Patience::with("deciding", output.json);
    let result = match wants_usage {
        true => plan::run_with_usage(scenario).map(|(report, usage)| Answer { report, usage: Some(usage) }),
        false => plan::run(scenario).map(|report| Answer { report, usage: None }),
    };
    drop(patience);
    match result {
        Ok(answer) if output.json => output.document(&answer)?,
        Ok(answer) => {
            print(&answer.report, output)?;
            if let Some(usage) = &answer.usage {
                usage_tables::print(usage, output)?;
            }
        }
        Err(error @ PlanError::Broken(_)) => {
            output.failure(&error)?;
            return Ok(ExitCode::from(FAILED));
        }
        Err(error) => {
            output.failure(&error)?;
            return Ok(ExitCode::from(BAD_INPUT));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// More decisions than this are summed up for people; programs get them all.
const DECISIONS_SHOWN_MAX: usize = 50;

fn print(report: &PlanReport, output: &mut Output) -> io::Result<()> {
    output.heading("Decisions")?;
    let shown = report.decisions.iter().take(DECISIONS_SHOWN_MAX);
    let rows = shown.map(|one| {
        let kind = match one.kind {
            DecisionKind::Stop => "stop",
            DecisionKind::Grow => "grow",
            DecisionKind::Shrink => "shrink",
            DecisionKind::Fail => "fail",
            DecisionKind::Claim => "claim",
            DecisionKind::Revoke => "revoke",
            _ => "assign",
        };
        let task = format!("{}/{}/{}", one.group, one.role, one.task);
        let names = one.units.iter().flatten().flat_map(|(_, names)| names.iter().map(|name| &**name));
        let names: Vec<&str> = names.collect();
        let node = match names.is_empty() {
            true => one.node.clone(),
            false => format!("{} ({})", one.node, names.join(", ")),
        };
        vec![format!("{:.3}", one.at), kind.into(), one.job.clone(), task, node, one.why.clone()]
    });
    output.table(&["at", "what", "job", "task", "node", "why"], rows)?;
    if report.decisions.len() > DECISIONS_SHOWN_MAX {
        let hidden = report.decisions.len() - DECISIONS_SHOWN_MAX;
        output.note(&format!("… and {hidden} more; --json lists them all"))?;
    }
    output.heading("\nSummary")?;
    share_tables::print(&report.summary, output)?;
    let jobs = &report.summary.assigned_by_job;
    output
        .table(&["job", "assigned"], jobs.iter().map(|(job, count)| vec![job.clone(), count.to_string()]))?;
    let (assigned, stopped) = (report.summary.assigned, report.summary.stopped);
    output.note(&format!("{assigned} assigned, {stopped} stopped"))?;
    if report.waiting.is_empty() {
        return output.note("nothing waits");
    }
    output.heading("\nWaiting")?;
    let rows = report
        .waiting
        .iter()
        .map(|one| vec![one.job.clone(), one.group.clone(), one.tasks.to_string(), one.sentence.clone()]);
    output.table(&["job", "group", "tasks", "why"], rows)
}
