//! The command as people and programs start it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Starts the command with these arguments and this input, and waits for its end.
pub fn plimsoll(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A command that has seen enough of its input closes it; that is no failure of the test.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("the command ends")
}
