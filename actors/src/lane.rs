//! The bounded lane into the runtime: any thread pushes, the front drains. When it is full the item
//! comes back, or the caller waits for room.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use thiserror::Error;

use crate::doorbell::{Belled, Queue};

/// Why an item was not taken. The item is inside.
#[derive(Debug, Error)]
pub enum PushError<T> {
    #[error("the lane is full")]
    Full(T),
    #[error("the runtime has stopped")]
    Closed(T),
}

#[derive(Debug)]
struct Channel<T> {
    sender: Sender<T>,
    receiver: Receiver<T>,
}

impl<T> Queue<T> for Channel<T> {
    fn try_push(&self, item: T) -> Result<(), T> {
        self.sender.try_send(item).map_err(TrySendError::into_inner)
    }

    fn try_pop(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

#[derive(Debug)]
pub(crate) struct Lane<T> {
    belled: Belled<Channel<T>>,
    closed: AtomicBool,
    /// Tasks that wait for room, woken all together when some was made.
    waiting: Mutex<Vec<Waker>>,
}

impl<T> Lane<T> {
    pub(crate) fn new(capacity: usize) -> Lane<T> {
        let (sender, receiver) = bounded(capacity);
        let belled = Belled::new(Channel { sender, receiver });
        Lane { belled, closed: AtomicBool::new(false), waiting: Mutex::new(Vec::new()) }
    }

    /// Pushes an item; `Ok(true)` means that the caller must ring.
    pub(crate) fn try_push(&self, item: T) -> Result<bool, PushError<T>> {
        if self.closed.load(Ordering::Acquire) {
            return Err(PushError::Closed(item));
        }
        let rings = self.belled.push(item).map_err(PushError::Full)?;
        // Closed in between: nobody may drain any more, so nobody's answer may stay in here.
        if self.closed.load(Ordering::SeqCst) {
            while self.pop().is_some() {}
        }
        Ok(rings)
    }

    /// Asks to be woken when there may be room. The caller tries once more afterwards.
    pub(crate) fn wait_for_room(&self, waker: &Waker) {
        let mut waiting = self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    /// Answers the bell; to be called before draining.
    pub(crate) fn answer(&self) {
        self.belled.answer();
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.belled.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.belled.queue().receiver.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.belled.queue().receiver.len()
    }

    /// Tells everybody who waits that room was made.
    pub(crate) fn wake_waiting(&self) {
        let waiting =
            std::mem::take(&mut *self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Nothing more is taken; whoever waits is told.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.wake_waiting();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_lane_gives_the_item_back_and_a_closed_one_too() {
        let lane = Lane::new(1);
        assert!(lane.try_push(1).expect("there is room"), "the first one rings");
        assert!(matches!(lane.try_push(2), Err(PushError::Full(2))));
        lane.answer();
        assert_eq!(lane.pop(), Some(1));
        assert!(lane.try_push(3).expect("there is room again"));
        lane.close();
        assert!(matches!(lane.try_push(4), Err(PushError::Closed(4))));
    }
}
