//! A flag that is raised once, for whoever waits for it. There are two for every execution, and most are
//! never waited for: so one is a few bytes, and costs nothing until somebody does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

const DOWN: u8 = 0;
const RAISED: u8 = 1;
/// Nobody will raise it any more.
const GONE: u8 = 2;

#[derive(Debug)]
struct State {
    state: AtomicU8,
    news: Notify,
}

/// Who raises the flag. Dropping it tells those who wait that nobody will.
#[derive(Debug)]
pub(crate) struct Raiser(Arc<State>);

/// Who sees the flag.
#[derive(Clone, Debug)]
pub(crate) struct Flag(Arc<State>);

impl Raiser {
    pub(crate) fn new() -> (Raiser, Flag) {
        let state = Arc::new(State { state: AtomicU8::new(DOWN), news: Notify::new() });
        (Raiser(Arc::clone(&state)), Flag(state))
    }

    pub(crate) fn raise(&self) {
        self.0.state.store(RAISED, Ordering::SeqCst);
        self.0.news.notify_waiters();
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.state.load(Ordering::SeqCst) == RAISED
    }
}

impl Drop for Raiser {
    fn drop(&mut self) {
        let left_down = self.0.state.compare_exchange(DOWN, GONE, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        // Where nobody sees the flag, nobody waits.
        if left_down && Arc::strong_count(&self.0) > 1 {
            self.0.news.notify_waiters();
        }
    }
}

impl Flag {
    pub(crate) fn is_raised(&self) -> bool {
        self.0.state.load(Ordering::SeqCst) == RAISED
    }

    /// Completes when the flag is raised, or with `false` when nobody will raise it any more.
    pub(crate) async fn raised(&self) -> bool {
        loop {
            let mut news = std::pin::pin!(self.0.news.notified());
            // Entered before the look: what happens after the look is heard of.
            news.as_mut().enable();
            match self.0.state.load(Ordering::SeqCst) {
                RAISED => return true,
                GONE => return false,
                _ => news.await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flag_that_is_raised_is_seen_before_and_after() {
        let (raiser, flag) = Raiser::new();
        let waiting = tokio::spawn({
            let flag = flag.clone();
            async move { flag.raised().await }
        });
        tokio::task::yield_now().await;
        assert!(!flag.is_raised() && !raiser.is_raised());
        raiser.raise();
        assert!(waiting.await.expect("no panic") && flag.raised().await && flag.is_raised());
        drop(raiser);
        assert!(flag.raised().await, "raised stays raised");
    }

    #[tokio::test]
    async fn whoever_waits_learns_that_nobody_will_raise_it() {
        let (raiser, flag) = Raiser::new();
        let waiting = tokio::spawn(async move { flag.raised().await });
        tokio::task::yield_now().await;
        drop(raiser);
        assert!(!waiting.await.expect("no panic"));
    }

    /// Goal: no raise is missed, whenever it comes. Method: threads race for a while.
    #[test]
    fn no_raise_is_missed() {
        let driver = tokio::runtime::Builder::new_current_thread().build().expect("a thread waits");
        for round in 0..2_000 {
            let (raiser, flag) = Raiser::new();
            let other = std::thread::spawn(move || match round % 2 {
                0 => raiser.raise(),
                _ => drop(raiser),
            });
            assert_eq!(driver.block_on(flag.raised()), round % 2 == 0);
            other.join().expect("no panic");
        }
    }
}
