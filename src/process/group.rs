//! A process and everything it starts that stays in its group.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_actors::TaskError;
use plimsoll_core::spec::{CommandSpec, OutputTo};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, test_kill_process_group};
use tokio::net::unix::pipe::Receiver;

use super::census::Census;

/// The leader of a group that has not been reaped yet, so that nobody else can have its number. Dropping
/// it ends the whole group.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    child: Child,
    /// Becomes readable when the leader has ended; it is reaped afterwards.
    leader: Receiver,
    /// How the leader ended, once it has been reaped: from then on its number may be somebody else's.
    ended: Option<Ended>,
}

/// How the leader ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    Code(i32),
    Signal(i32),
}

/// So many moments at most whoever is left of a group is waited for once it was killed: it ends soon, but for what
/// is held up in the kernel, or has nobody who would reap it.
const MOMENT: Duration = Duration::from_millis(1);
const MOMENTS: usize = 500;
/// Where a thread is blocked meanwhile.
const MOMENTS_BLOCKED: usize = 50;

/// What is read of the output that goes to no file: standard output and standard error.
pub(super) type Readers = [Option<Receiver>; 2];

impl ProcessGroup {
    pub(super) fn start(
        command: &CommandSpec,
        surroundings: &BTreeMap<&'static str, String>,
        inherit: bool,
    ) -> Result<(ProcessGroup, Readers), TaskError> {
        let program = command.argv.first().ok_or_else(|| TaskError::not_started("no program is named"))?;
        let failed = |what: &str, error: io::Error| TaskError::not_started(format!("{what}: {error}"));
        let mut process = Command::new(program);
        process.args(&command.argv[1..]).process_group(0).stdin(Stdio::null());
        if !inherit {
            let path = std::env::var_os("PATH");
            process.env_clear().envs(path.map(|path| ("PATH", path)));
        }
        for (name, value) in surroundings {
            process.env(format!("PLIMSOLL_{}", name.to_uppercase()), value);
        }
        process.envs(&command.env);
        if let Some(cwd) = &command.cwd {
            process.current_dir(cwd);
        }
        process.stdout(open(&command.stdout, surroundings)?).stderr(open(&command.stderr, surroundings)?);
        let mut child = process.spawn().map_err(|error| failed(&format!("`{program}`"), error))?;
        let outputs = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
        let watched = watch(&child, outputs);
        match watched {
            Ok((leader, readers)) => Ok((ProcessGroup { child, leader, ended: None }, readers)),
            Err(error) => {
                end_group(&mut child);
                Err(failed("it cannot be watched", error))
            }
        }
    }

    /// Waits for the end of the leader, and ends whatever it leaves behind in its group.
    pub(super) async fn ended(&mut self) -> io::Result<Ended> {
        let ended = match self.ended {
            Some(ended) => ended,
            None => {
                // Readable means ended; the content of this descriptor is nothing.
                self.leader.readable().await?;
                self.reap()?
            }
        };
        for _ in 0..MOMENTS {
            if is_gone(&self.child) {
                break;
            }
            tokio::time::sleep(MOMENT).await;
        }
        Ok(ended)
    }

    /// Asks the group to end, and ends after the grace time whoever is left of it.
    pub(super) async fn stop(&mut self, grace: Duration, census: &Census) -> io::Result<Ended> {
        if self.ended.is_none() {
            signal_group(&self.child, Signal::TERM);
            let _ = tokio::time::timeout(grace, self.nobody_left(census)).await;
            signal_group(&self.child, Signal::KILL);
        }
        self.ended().await
    }

    /// Completes when everybody has ended: a leader may go at once, and others still have something to see to.
    async fn nobody_left(&self, census: &Census) -> io::Result<()> {
        const SOON: Duration = Duration::from_millis(5);
        const LATER: Duration = Duration::from_millis(100);
        self.leader.readable().await?;
        let mut pause = SOON;
        while census.is_alive(self.child.id()).await {
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(LATER);
        }
        Ok(())
    }

    /// The leader has ended: its number still belongs to the group, whose rest goes with it.
    fn reap(&mut self) -> io::Result<Ended> {
        signal_group(&self.child, Signal::KILL);
        let status = self.child.wait()?;
        let ended = match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Code(code),
            (None, signal) => Ended::Signal(signal.unwrap_or_default()),
        };
        self.ended = Some(ended);
        Ok(ended)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.ended.is_none() {
            end_group(&mut self.child);
        }
    }
}

fn watch(child: &Child, outputs: [Option<OwnedFd>; 2]) -> io::Result<(Receiver, Readers)> {
    // Not a pipe, but nothing is ever read: only whether there is something to read is asked.
    let leader = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let leader = Receiver::from_owned_fd_unchecked(leader)?;
    let [stdout, stderr] = outputs.map(|output| output.map(Receiver::from_owned_fd).transpose());
    Ok((leader, [stdout?, stderr?]))
}

/// Ends a group whose leader has not been reaped, without waiting for more than a moment.
fn end_group(child: &mut Child) {
    signal_group(child, Signal::KILL);
    let mut is_reaped = false;
    for _ in 0..MOMENTS_BLOCKED {
        is_reaped = is_reaped || !matches!(child.try_wait(), Ok(None));
        if is_reaped && is_gone(child) {
            return;
        }
        std::thread::sleep(MOMENT);
    }
    if is_reaped {
        return;
    }
    // Something holds it up in the kernel: somebody has to be there when it ends.
    if let Ok(pid) = i32::try_from(child.id()).map(Pid::from_raw) {
        let wait = move || rustix::process::waitpid(pid, rustix::process::WaitOptions::empty());
        let waiting = std::thread::Builder::new().name("plimsoll-reaper".into()).spawn(wait);
        drop(waiting);
    }
}

/// Whether nobody is left of a group whose leader has been reaped: what was told to end takes a moment, and whoever
/// comes next is not to meet it. Nothing is sent, so it does no harm if somebody else has the number by now.
fn is_gone(leader: &Child) -> bool {
    test_kill_process_group(Pid::from_child(leader)) == Err(Errno::SRCH)
}

/// A group that is gone already needs no signal.
fn signal_group(leader: &Child, signal: Signal) {
    let _ = kill_process_group(Pid::from_child(leader), signal);
}

fn open(to: &OutputTo, surroundings: &BTreeMap<&'static str, String>) -> Result<Stdio, TaskError> {
    match to {
        OutputTo::Ring(0) => Ok(Stdio::null()),
        OutputTo::Ring(_) => Ok(Stdio::piped()),
        OutputTo::Path(template) => {
            let path = fill_in(template, surroundings);
            let file = OpenOptions::new().create(true).append(true).open(&path);
            file.map(Stdio::from).map_err(|error| TaskError::not_started(format!("`{path}`: {error}")))
        }
    }
}

/// Puts what is known of the task into a path. A name never leads to another directory.
fn fill_in(template: &str, surroundings: &BTreeMap<&'static str, String>) -> String {
    let fill_part = |part: &str| {
        let mut filled = part.to_owned();
        for (name, value) in surroundings {
            let value = value.replace(['/', '\0'], "_");
            filled = filled.replace(&format!("{{{name}}}"), &value);
        }
        match filled.as_str() {
            "." | ".." if filled != part => filled.replace('.', "_"),
            _ => filled,
        }
    };
    template.split('/').map(fill_part).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_paths_stay_in_their_directory() {
        let known = [("job", "7"), ("role", "../up"), ("group", ".."), ("node", ".")];
        let known = known.map(|(name, value)| (name, value.to_owned())).into();
        assert_eq!(fill_in("out/{job}-{role}.{task}", &known), "out/7-.._up.{task}");
        assert_eq!(fill_in("../{group}/{node}{node}/{group}.txt", &known), "../__/__/...txt");
    }
}
