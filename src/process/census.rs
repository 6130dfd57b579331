//! Which process groups have members that have not ended, as `/proc` says.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Mutex;

/// The groups at one moment. Clones share it, so that many who ask at the same time cost one look.
#[derive(Clone, Debug, Default)]
pub(super) struct Census {
    last: Arc<Mutex<Option<Look>>>,
}

#[derive(Debug)]
struct Look {
    began: Instant,
    groups: BTreeSet<u32>,
}

impl Census {
    /// Whether somebody of the group has not ended by now. Nobody has where `/proc` cannot be read.
    pub(super) async fn is_alive(&self, group: u32) -> bool {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        let look = match last.take() {
            Some(look) if look.began >= asked => look,
            _ => {
                let began = Instant::now();
                let groups = tokio::task::spawn_blocking(living_groups).await.unwrap_or_default();
                Look { began, groups }
            }
        };
        last.insert(look).groups.contains(&group)
    }
}

fn living_groups() -> BTreeSet<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeSet::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let processes = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    processes
        .filter_map(|process| living_group(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?))
        .collect()
}

/// The group of a process that has not ended, from its line in `/proc`.
fn living_group(status: &str) -> Option<u32> {
    // The name of the program comes before and may hold anything.
    let (_, rest) = status.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let (state, _parent, group) = (fields.next()?, fields.next()?, fields.next()?);
    if matches!(state, "Z" | "X") { None } else { group.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_read_whatever_the_program_is_called() {
        assert_eq!(living_group("7 (a) Z 1 (b) S 1 42 42 0"), Some(42));
        assert_eq!(living_group("7 (sh) Z 1 42 42 0"), None, "it has ended");
        assert_eq!(living_group(""), None);
    }

    #[test]
    fn this_process_is_alive_and_a_group_that_cannot_be_is_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let own = rustix::process::getpgrp().as_raw_nonzero().get() as u32;
            let census = Census::default();
            assert!(census.is_alive(own).await && !census.is_alive(u32::MAX).await);
        });
    }
}
