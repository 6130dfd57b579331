//! Events for whoever wants them, in batches. A reader that is too slow is told how many it missed;
//! nobody ever waits for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::explanation::Explanation;
use plimsoll_core::id::GroupId;
use plimsoll_core::messages::{Finding, JobEvent, NodeEvent};
use plimsoll_core::time::Time;
use tokio::sync::mpsc;

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    Job(JobEvent),
    Node(NodeEvent),
    /// A group can never fit and is ended for that, as it was to be.
    Unsatisfiable {
        group: GroupId,
        at: Time,
        explanation: Arc<Explanation>,
    },
    /// The monitor has found something that should not be: a fault of the runtime, mended where that is
    /// safe.
    Finding(Finding),
}

/// Events in order. `missed` were lost before the first of them because the reader was too slow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventBatch {
    pub missed: u64,
    pub events: Arc<[Event]>,
}

/// The reading end.
#[derive(Debug)]
pub struct Subscription {
    receiver: mpsc::Receiver<(u64, Arc<[Event]>)>,
    missed: Arc<AtomicU64>,
    reported: u64,
}

/// The writing end, kept by the front.
#[derive(Debug)]
pub struct Subscriber {
    sender: mpsc::Sender<(u64, Arc<[Event]>)>,
    missed: Arc<AtomicU64>,
}

/// A subscription that holds at most `batches` batches for its reader.
pub(crate) fn subscription(batches: usize) -> (Subscriber, Subscription) {
    let (sender, receiver) = mpsc::channel(batches.max(1));
    let missed = Arc::new(AtomicU64::new(0));
    (Subscriber { sender, missed: Arc::clone(&missed) }, Subscription { receiver, missed, reported: 0 })
}

impl Subscriber {
    /// Whether somebody still holds the reading end.
    pub(crate) fn is_read(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Hands a batch over, or counts it as missed; false once the reader is gone.
    pub(crate) fn publish(&self, events: &Arc<[Event]>) -> bool {
        let missed = self.missed.load(Ordering::Acquire);
        match self.sender.try_send((missed, Arc::clone(events))) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.missed.fetch_add(events.len() as u64, Ordering::AcqRel);
                true
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }
}

impl Subscription {
    /// The next batch; `None` once the runtime has stopped.
    pub async fn next(&mut self) -> Option<EventBatch> {
        let (missed, events) = self.receiver.recv().await?;
        Some(self.batch(missed, events))
    }

    /// The next batch, for threads that may wait; `None` once the runtime has stopped.
    pub fn next_blocking(&mut self) -> Option<EventBatch> {
        let (missed, events) = self.receiver.blocking_recv()?;
        Some(self.batch(missed, events))
    }

    /// The next batch if one is there.
    pub fn try_next(&mut self) -> Option<EventBatch> {
        let (missed, events) = self.receiver.try_recv().ok()?;
        Some(self.batch(missed, events))
    }

    /// All events missed so far, also those no batch has reported yet.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Acquire)
    }

    fn batch(&mut self, missed: u64, events: Arc<[Event]>) -> EventBatch {
        let gap = missed - self.reported;
        self.reported = missed;
        EventBatch { missed: gap, events }
    }
}

impl futures_core::Stream for Subscription {
    type Item = EventBatch;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<EventBatch>> {
        let next = std::task::ready!(self.receiver.poll_recv(context));
        std::task::Poll::Ready(next.map(|(missed, events)| self.batch(missed, events)))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::id::JobId;
    use plimsoll_core::outcome::TaskState;
    use plimsoll_core::roll_up::TaskResult;
    use plimsoll_core::time::Time;

    use super::*;

    fn events(count: u64) -> Arc<[Event]> {
        let one = |job| {
            Event::Job(JobEvent::Finished {
                job: JobId(job),
                state: TaskState::Completed,
                result: TaskResult::Pass,
                at: Time::ZERO,
            })
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_slow_reader_is_told_how_many_it_missed() {
        let (subscriber, mut subscription) = subscription(1);
        assert!(subscriber.publish(&events(1)));
        assert!(subscriber.publish(&events(5)));
        assert_eq!(subscription.try_next().map(|batch| batch.missed), Some(0));
        assert!(subscriber.publish(&events(2)));
        let batch = subscription.try_next().expect("a batch is there");
        assert_eq!((batch.missed, batch.events.len()), (5, 2));
        drop(subscription);
        assert!(!subscriber.publish(&events(1)));
    }
}
