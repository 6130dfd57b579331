//! What the demonstration measures, read the way a collector reads it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout can be set");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it can be asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers and closes");
    answer
}

/// The value of the first series that begins like this.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(series))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Goal: everything that operators watch is there under its name, with figures that fit together. Method:
/// the demonstration with a preset that has classes, on an address of its own.
#[test]
fn the_demonstration_serves_its_figures() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["demo", "--seconds", "4", "--nodes", "5", "--preset", "scoot", "--metrics", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the demonstration starts");
    let mut said = BufReader::new(demo.stderr.take().expect("it is read"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it says where");
    let address =
        line.trim().strip_prefix("figures at http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("it says where: {line}"));
    assert!(get(address, "/").starts_with("HTTP/1.1 404"));
    let wanted = [
        "plimsoll_events_in_total ",
        "plimsoll_lane_depth ",
        "plimsoll_herald_backlog ",
        "plimsoll_mailbox_depth{machine=",
        "plimsoll_turns_total{machine=",
        "plimsoll_messages_total{machine=",
        "plimsoll_turn_seconds{machine=",
        "plimsoll_decisions_total ",
        "plimsoll_decision_seconds{",
        "plimsoll_window_tasks{",
        "plimsoll_conflicts_total ",
        "plimsoll_stops_total ",
        "plimsoll_waiting_tasks ",
        "plimsoll_tasks_started_total ",
        "plimsoll_live_attempts ",
        "plimsoll_jobs_scheduled_total ",
        "plimsoll_attempts_ended_total{outcome=\"completed\"}",
        "plimsoll_attempts_ended_total{outcome=\"aborted\"}",
        "plimsoll_attempt_seconds_total{part=\"running\"}",
        "plimsoll_attempt_seconds_total{part=\"provisioning\"}",
        "plimsoll_node_seconds_total{usage=\"installing\"}",
        "plimsoll_mailbox_depth{machine=\"NodeAgents\"}",
        "plimsoll_deadline_lateness_seconds",
        "plimsoll_findings_total{kind=",
        "plimsoll_nodes{usage=\"running\"}",
        "plimsoll_utilisation{resource=\"cpu\"}",
        "plimsoll_jobs_accepted_total ",
        "plimsoll_jobs_finished_total ",
        "plimsoll_unfinished_jobs ",
        "plimsoll_submission_seconds{",
        "plimsoll_share_held{",
        "plimsoll_share_target{",
        "plimsoll_share_waiting_tasks{",
    ];
    let mut missing = Vec::new();
    let mut text = String::new();
    while demo.try_wait().expect("it can be asked").is_none() {
        text = get(address, "/metrics");
        missing = wanted.into_iter().filter(|name| value(&text, name).is_none()).collect();
        if missing.is_empty() && value(&text, "plimsoll_nodes{usage=\"running\"}") > Some(0.0) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(missing.is_empty(), "missing: {missing:?} in\n{text}");
    let nodes = text.lines().filter(|line| line.starts_with("plimsoll_nodes{"));
    let nodes: f64 = nodes.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
    assert_eq!(nodes, 5.0, "every node is in one state");
    let (decided, started) =
        (value(&text, "plimsoll_decisions_total "), value(&text, "plimsoll_tasks_started_total "));
    assert!(started > Some(0.0) && decided >= started, "{decided:?} were decided, {started:?} started");
    assert!(demo.wait().expect("it ends").success());
}
