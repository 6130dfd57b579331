//! The bounded lane into the runtime: any thread pushes, the front drains. When it is full the item
//! comes back, or the caller waits for its turn: callers are admitted in the order in which they came.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use thiserror::Error;
use tokio::sync::{Semaphore, TryAcquireError};

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

/// Set in `pushing` once nothing more is taken; the rest of it counts pushes under way.
const CLOSED: usize = 1 << (usize::BITS - 1);

#[derive(Debug)]
pub(crate) struct Lane<T> {
    belled: Belled<Channel<T>>,
    /// One permit per free place. It queues those who wait and wakes as many as there is room for.
    places: Semaphore,
    pushing: AtomicUsize,
}

impl<T> Lane<T> {
    pub(crate) fn new(capacity: usize) -> Lane<T> {
        let capacity = capacity.clamp(1, Semaphore::MAX_PERMITS);
        let (sender, receiver) = bounded(capacity);
        let belled = Belled::new(Channel { sender, receiver });
        Lane { belled, places: Semaphore::new(capacity), pushing: AtomicUsize::new(0) }
    }

    /// Pushes an item if there is a place; `Ok(true)` means that the caller must ring.
    pub(crate) fn try_push(&self, item: T) -> Result<bool, PushError<T>> {
        match self.places.try_acquire() {
            Ok(place) => place.forget(),
            Err(TryAcquireError::NoPermits) => return Err(PushError::Full(item)),
            Err(TryAcquireError::Closed) => return Err(PushError::Closed(item)),
        }
        self.put(item)
    }

    /// Pushes an item as soon as there is a place for it; `Ok(true)` means that the caller must ring.
    /// Whoever drops the future before it is done has changed nothing.
    pub(crate) async fn push(&self, item: T) -> Result<bool, PushError<T>> {
        match self.places.acquire().await {
            Ok(place) => place.forget(),
            Err(_) => return Err(PushError::Closed(item)),
        }
        self.put(item)
    }

    /// Puts an item on a place that is held for it.
    fn put(&self, item: T) -> Result<bool, PushError<T>> {
        // Whoever closes the lane waits for those who are counted here, so nothing stays behind.
        let before = self.pushing.fetch_add(1, Ordering::SeqCst);
        let pushed = match before & CLOSED {
            0 => self.belled.push(item).map_err(PushError::Full),
            _ => Err(PushError::Closed(item)),
        };
        self.pushing.fetch_sub(1, Ordering::SeqCst);
        pushed
    }

    /// Answers the bell: the next push rings again. Whoever drains looks once more afterwards.
    pub(crate) fn answer(&self) {
        self.belled.answer();
    }

    /// Takes the next item. Its place is free again when [`Lane::free`] is told so.
    pub(crate) fn pop(&self) -> Option<T> {
        self.belled.pop()
    }

    /// So many places are free again: those who have waited longest are admitted.
    pub(crate) fn free(&self, places: usize) {
        if places > 0 {
            self.places.add_permits(places);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.belled.queue().receiver.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.belled.queue().receiver.len()
    }

    /// Nothing more is taken; whoever waits is told. What was pushed before is there to be popped.
    pub(crate) fn close(&self) {
        self.pushing.fetch_or(CLOSED, Ordering::SeqCst);
        self.places.close();
        // A push under way is a few instructions long.
        while self.pushing.load(Ordering::SeqCst) != CLOSED {
            std::thread::yield_now();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.pushing.load(Ordering::Acquire) & CLOSED != 0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn a_full_lane_gives_the_item_back_and_a_closed_one_too() {
        let lane = Lane::new(1);
        assert!(lane.try_push(1).expect("there is room"), "the first one rings");
        assert!(matches!(lane.try_push(2), Err(PushError::Full(2))));
        lane.answer();
        assert_eq!(lane.pop(), Some(1));
        lane.free(1);
        assert!(lane.try_push(3).expect("there is room again"));
        lane.close();
        assert!(matches!(lane.try_push(4), Err(PushError::Closed(4))));
        assert_eq!(lane.pop(), Some(3), "what was taken is not lost");
    }

    /// Goal: those who wait for room are admitted in the order in which they came, one per place.
    #[tokio::test]
    async fn callers_are_admitted_in_their_order() {
        let lane = Arc::new(Lane::new(1));
        lane.try_push(0).expect("there is room");
        let mut waiting = Vec::new();
        for number in 1..=3 {
            let mine = Arc::clone(&lane);
            waiting.push(tokio::spawn(async move { mine.push(number).await.map(drop) }));
            tokio::task::yield_now().await;
        }
        for number in 0..=3 {
            assert_eq!(lane.pop(), Some(number));
            assert!(lane.is_empty(), "one place, one caller");
            lane.free(1);
            tokio::task::yield_now().await;
            assert_eq!(lane.is_empty(), number == 3);
            assert!(number == 3 || matches!(lane.try_push(9), Err(PushError::Full(9))), "nobody overtakes");
        }
        for pushed in waiting {
            assert!(pushed.await.expect("no panic").is_ok());
        }
    }

    /// Goal: whatever was taken before or while the lane closed can be popped after it. Method: threads
    /// push until they are refused; the pushes that went well and the items found are the same number.
    #[test]
    fn nothing_is_lost_when_the_lane_closes() {
        for _ in 0..200 {
            let (lane, taken) = (Arc::new(Lane::new(1_000)), Arc::new(AtomicU64::new(0)));
            let pushers: Vec<_> = (0..2)
                .map(|_| {
                    let (lane, taken) = (Arc::clone(&lane), Arc::clone(&taken));
                    std::thread::spawn(move || {
                        while lane.try_push(()).is_ok() {
                            taken.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            lane.close();
            let mut found = 0;
            while lane.pop().is_some() {
                found += 1;
            }
            pushers.into_iter().for_each(|pusher| pusher.join().expect("no panic"));
            assert_eq!(found, taken.load(Ordering::Relaxed));
        }
    }
}
