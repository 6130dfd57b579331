//! A doorbell beside a queue: of many who push, only the first wakes the one who drains.
//!
//! Both sides use an unconditional acquire-release swap. A plain store on the draining side, or a
//! check before the swap, loses wake-ups on weakly ordered machines; the model test below explores
//! every interleaving.

#[cfg(plimsoll_loom)]
use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(plimsoll_loom))]
use std::sync::atomic::{AtomicBool, Ordering};

/// A queue that many push to and one drains.
pub(crate) trait Queue<T> {
    /// Gives the item back when there is no room.
    fn try_push(&self, item: T) -> Result<(), T>;
    fn try_pop(&self) -> Option<T>;
}

#[derive(Debug)]
pub(crate) struct Belled<Q> {
    queue: Q,
    rung: AtomicBool,
}

impl<Q> Belled<Q> {
    pub(crate) fn new(queue: Q) -> Belled<Q> {
        Belled { queue, rung: AtomicBool::new(false) }
    }

    pub(crate) fn queue(&self) -> &Q {
        &self.queue
    }

    /// Pushes an item; `Ok(true)` means that the caller must wake the one who drains.
    pub(crate) fn push<T>(&self, item: T) -> Result<bool, T>
    where
        Q: Queue<T>,
    {
        self.queue.try_push(item)?;
        Ok(!self.rung.swap(true, Ordering::AcqRel))
    }

    /// Answers the bell: whoever pushes from now on rings again. To be called before draining.
    pub(crate) fn answer(&self) {
        self.rung.swap(false, Ordering::AcqRel);
    }

    pub(crate) fn pop<T>(&self) -> Option<T>
    where
        Q: Queue<T>,
    {
        self.queue.try_pop()
    }
}

/// Run with `RUSTFLAGS="--cfg plimsoll_loom" cargo test -p plimsoll-actors --lib doorbell --release`.
#[cfg(all(test, plimsoll_loom))]
mod model {
    use std::collections::VecDeque;

    use loom::sync::atomic::AtomicUsize;
    use loom::sync::{Arc, Mutex};

    use super::*;

    struct Locked(Mutex<VecDeque<u32>>);

    impl Queue<u32> for Locked {
        fn try_push(&self, item: u32) -> Result<(), u32> {
            self.0.lock().expect("no thread panics").push_back(item);
            Ok(())
        }

        fn try_pop(&self) -> Option<u32> {
            self.0.lock().expect("no thread panics").pop_front()
        }
    }

    /// Goal: whatever the interleaving, after the last wake-up was served nothing is left behind.
    #[test]
    fn no_wake_up_is_lost() {
        loom::model(|| {
            let lane = Arc::new(Belled::new(Locked(Mutex::new(VecDeque::new()))));
            let wakes = Arc::new(AtomicUsize::new(0));
            let producers: Vec<_> = (0..2)
                .map(|number| {
                    let (lane, wakes) = (Arc::clone(&lane), Arc::clone(&wakes));
                    loom::thread::spawn(move || {
                        if lane.push(number).expect("the queue has no limit") {
                            wakes.fetch_add(1, Ordering::AcqRel);
                        }
                    })
                })
                .collect();
            let mut taken = 0;
            let mut serve = |lane: &Belled<Locked>| {
                lane.answer();
                while lane.pop().is_some() {
                    taken += 1;
                }
            };
            // The consumer serves one wake-up while the producers are at work ...
            if wakes.load(Ordering::Acquire) > 0 {
                wakes.fetch_sub(1, Ordering::AcqRel);
                serve(&lane);
            }
            for producer in producers {
                producer.join().expect("no thread panics");
            }
            // ... and every wake-up that is still outstanding afterwards.
            while wakes.load(Ordering::Acquire) > 0 {
                wakes.fetch_sub(1, Ordering::AcqRel);
                serve(&lane);
            }
            assert_eq!(taken, 2, "an item is left without a wake-up");
        });
    }
}
