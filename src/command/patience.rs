//! A line on a terminal that says that work goes on, for work that cannot tell how far it is.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The line goes when this does.
pub(super) struct Patience {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Patience {
    /// Says every second what is being done; nothing if it is over sooner, or nobody watches.
    pub(super) fn with(what: &'static str, quiet: bool) -> Patience {
        if quiet || !io::stderr().is_terminal() {
            return Patience { running: None };
        }
        let (over, is_over) = mpsc::channel();
        let began = Instant::now();
        let thread = std::thread::spawn(move || {
            let mut shown = false;
            while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(Duration::from_secs(1)) {
                shown = true;
                let _ = write!(io::stderr().lock(), "\r{what} for {} s ", began.elapsed().as_secs());
            }
            if shown {
                let _ = write!(io::stderr().lock(), "\r\x1b[K");
            }
        });
        Patience { running: Some((over, thread)) }
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        if let Some((over, thread)) = self.running.take() {
            drop(over);
            let _ = thread.join();
        }
    }
}
