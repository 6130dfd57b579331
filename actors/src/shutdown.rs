//! The end of an engine: nothing new is taken, executions are told to stop, every thread is joined.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use actix::{Addr, Arbiter};
use tokio::runtime::{Builder, Runtime};

use crate::agents::{AgentShard, CountExecutions, StopAll};
use crate::front::{DrainAll, Leave, Settle};
use crate::port::Port;
use crate::recorder::Recorder;

/// How a shutdown went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShutdownReport {
    /// Commands that were on the lane and were still handed on.
    pub drained: u64,
    /// Executions that were told to stop.
    pub stopped: u64,
    /// Of these, executions that had not ended at the deadline.
    pub abandoned: u64,
    /// Whether the deciding thread and the agents' thread have ended. Worker threads that a blocking
    /// task does not give back are left behind at the deadline.
    pub threads_joined: bool,
    /// Turns that did not fit into the turn log.
    pub turns_left_out: u64,
    /// Why the turn log could not be written, if it could not.
    pub record_error: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Threads {
    pub(crate) deciding: JoinHandle<()>,
    pub(crate) arbiters: Vec<Arbiter>,
    pub(crate) shards: Vec<Addr<AgentShard>>,
    pub(crate) workers: Runtime,
}

impl Threads {
    pub(crate) fn end(self, port: &Port, deadline: Duration, recorder: Option<&Recorder>) -> ShutdownReport {
        port.fatal.note_ending();
        const A_LONG_TIME: Duration = Duration::from_secs(365 * 24 * 3_600);
        let until = Instant::now() + deadline.min(A_LONG_TIME);
        let mut report = ShutdownReport::default();
        let wait = Builder::new_current_thread().enable_time().build();
        if let Ok(wait) = wait {
            wait.block_on(async {
                let soon = |left: Duration| left.max(Duration::from_millis(100));
                let left = || soon(until.saturating_duration_since(Instant::now()));
                let drained = tokio::time::timeout(left(), port.front.send(DrainAll)).await;
                report.drained = drained.ok().and_then(Result::ok).unwrap_or(0);
                for shard in &self.shards {
                    let stopped = tokio::time::timeout(left(), shard.send(StopAll)).await;
                    report.stopped += stopped.ok().and_then(Result::ok).unwrap_or(0) as u64;
                }
                report.abandoned = self.wait_for_executions(until).await;
                // The last words of the machines still reach those who wait for them.
                let _ = tokio::time::timeout(left(), port.front.send(Settle)).await;
            });
        }
        port.front.do_send(Leave);
        report.threads_joined = self.deciding.join().is_ok();
        for arbiter in self.arbiters {
            arbiter.stop();
            report.threads_joined &= arbiter.join().is_ok();
        }
        self.workers.shutdown_timeout(
            until.saturating_duration_since(Instant::now()).max(Duration::from_millis(100)),
        );
        port.board.close();
        port.assignments.close();
        match recorder.map(Recorder::finish) {
            Some(Ok(left_out)) => report.turns_left_out = left_out,
            Some(Err(error)) => report.record_error = Some(error.to_string()),
            None => {}
        }
        report
    }

    /// Waits until every execution has ended or time is up; the answer is how many are left.
    async fn wait_for_executions(&self, until: Instant) -> u64 {
        const LOOK_EVERY: Duration = Duration::from_millis(2);
        loop {
            let mut left = 0;
            for shard in &self.shards {
                let patience = until.saturating_duration_since(Instant::now()).max(LOOK_EVERY);
                let count = tokio::time::timeout(patience, shard.send(CountExecutions)).await;
                // A shard that does not answer is held up by something that has not ended.
                left += count.map_or(1, |count| count.unwrap_or(0)) as u64;
            }
            if left == 0 || Instant::now() >= until {
                return left;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
