//! The output of processes that goes to no file: the last bytes of each, within bounds.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_core::id::{Attempt, TaskId};
use plimsoll_core::spec::{CommandSpec, OutputTo};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use super::group::Readers;

/// So much of what ended processes said is kept, the oldest goes first.
const ENDED_KEPT: usize = 1_000;
const ENDED_BYTES_KEPT: usize = 64 << 20;

/// What processes said, by task. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct OutputBook {
    pages: Arc<Mutex<Pages>>,
}

/// What the newest attempt of a task said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// Whose words these are.
    pub attempt: Attempt,
    /// The last bytes of its standard output.
    pub stdout: Vec<u8>,
    /// The last bytes of its standard error.
    pub stderr: Vec<u8>,
    /// Bytes that came before them and are gone.
    pub dropped: u64,
    /// Whether more may come.
    pub live: bool,
}

#[derive(Debug, Default)]
struct Pages {
    by_task: BTreeMap<TaskId, Entry>,
    /// Ended attempts, oldest first, and the bytes they hold.
    ended: VecDeque<Attempt>,
    ended_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    attempt: Attempt,
    rings: [Ring; 2],
    live: bool,
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
struct Ring {
    bytes: VecDeque<u8>,
    dropped: u64,
}

impl Ring {
    fn push(&mut self, bytes: &[u8], most: usize) {
        let over = (self.bytes.len() + bytes.len()).saturating_sub(most);
        let old = over.min(self.bytes.len());
        self.bytes.drain(..old);
        self.bytes.extend(&bytes[over - old..]);
        self.dropped += over as u64;
    }
}

impl OutputBook {
    /// What the newest attempt of a task has said so far, if that is still kept.
    pub fn read(&self, task: TaskId) -> Option<Output> {
        let pages = self.pages();
        let entry = pages.by_task.get(&task)?;
        let [stdout, stderr] = entry.rings.each_ref().map(|ring| ring.bytes.iter().copied().collect());
        let dropped = entry.rings.iter().map(|ring| ring.dropped).sum();
        Some(Output { attempt: entry.attempt, stdout, stderr, dropped, live: entry.live })
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the page of an attempt; what earlier ones of its task said goes.
    pub(super) fn open(&self, attempt: Attempt) -> Page {
        let mut pages = self.pages();
        pages.forget_ended(attempt.task);
        let rings = [Ring::default(), Ring::default()];
        pages.by_task.insert(attempt.task, Entry { attempt, rings, live: true });
        drop(pages);
        Page { book: self.clone(), attempt }
    }
}

impl Pages {
    fn forget_ended(&mut self, task: TaskId) {
        if let Some(entry) = self.by_task.get(&task).filter(|entry| !entry.live) {
            self.ended_bytes -= entry.bytes();
            self.ended.retain(|ended| ended.task != task);
            self.by_task.remove(&task);
        }
    }

    fn end(&mut self, attempt: Attempt) {
        let entry = self.by_task.get_mut(&attempt.task).filter(|entry| entry.attempt == attempt);
        let Some(entry) = entry else { return };
        entry.live = false;
        if entry.bytes() == 0 {
            // Whoever said nothing needs no place.
            self.by_task.remove(&attempt.task);
            return;
        }
        self.ended_bytes += entry.bytes();
        self.ended.push_back(attempt);
        while self.ended.len() > ENDED_KEPT || self.ended_bytes > ENDED_BYTES_KEPT {
            let Some(oldest) = self.ended.pop_front() else { return };
            if let Some(entry) = self.by_task.remove(&oldest.task) {
                self.ended_bytes -= entry.bytes();
            }
        }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        self.rings.iter().map(|ring| ring.bytes.len()).sum()
    }
}

/// Where the words of one attempt go, until it is dropped.
#[derive(Debug)]
pub(super) struct Page {
    book: OutputBook,
    attempt: Attempt,
}

impl Page {
    /// Reads until both streams are at their ends.
    pub(super) async fn read(&self, readers: Readers, command: &CommandSpec) {
        let [stdout, stderr] = readers;
        tokio::join!(
            self.read_stream(0, stdout, &command.stdout),
            self.read_stream(1, stderr, &command.stderr)
        );
    }

    async fn read_stream(&self, which: usize, stream: Option<Receiver>, to: &OutputTo) {
        const PIECE: usize = 8 << 10;
        let (Some(mut stream), OutputTo::Ring(most)) = (stream, to) else { return };
        let mut piece = Vec::with_capacity(PIECE);
        // An error is an end too: there is nobody to tell but the task, and it goes on.
        while stream.read_buf(&mut piece).await.is_ok_and(|read| read > 0) {
            let mut pages = self.book.pages();
            let entry = pages.by_task.get_mut(&self.attempt.task);
            if let Some(entry) = entry.filter(|entry| entry.attempt == self.attempt) {
                entry.rings[which].push(&piece, *most as usize);
            }
            piece.clear();
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.book.pages().end(self.attempt);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::id::{GroupId, JobId, Slot};

    use super::*;

    fn attempt(index: u32, number: u32) -> Attempt {
        let task = TaskId { group: GroupId::new(JobId(1), 0), role: 0, index };
        Attempt { task, number, slot: Slot(index) }
    }

    fn say(page: &Page, bytes: &[u8], most: usize) {
        let mut pages = page.book.pages();
        let entry = pages.by_task.get_mut(&page.attempt.task).expect("the page is open");
        entry.rings[0].push(bytes, most);
    }

    #[test]
    fn a_ring_keeps_the_last_bytes_and_counts_the_rest() {
        let mut ring = Ring::default();
        for bytes in ["abc", "de", "", "fghij", "klmnopqr"] {
            ring.push(bytes.as_bytes(), 6);
        }
        assert_eq!((ring.bytes.make_contiguous() as &[u8], ring.dropped), (&b"mnopqr"[..], 12));
    }

    #[test]
    fn a_new_attempt_replaces_the_words_of_the_last() {
        let book = OutputBook::default();
        let page = book.open(attempt(0, 1));
        say(&page, b"first", 9);
        drop(page);
        assert_eq!(book.read(attempt(0, 1).task).map(|output| output.stdout), Some(b"first".to_vec()));
        let page = book.open(attempt(0, 2));
        let output = book.read(attempt(0, 2).task).expect("it is live");
        assert_eq!((output.attempt.number, output.stdout.len(), output.live), (2, 0, true));
        drop(page);
        assert_eq!(book.read(attempt(0, 2).task), None, "it said nothing");
        let pages = book.pages();
        assert_eq!((pages.ended.len(), pages.ended_bytes), (0, 0));
    }

    #[test]
    fn what_ended_long_ago_goes() {
        let book = OutputBook::default();
        for index in 0..ENDED_KEPT as u32 + 5 {
            say(&book.open(attempt(index, 1)), b"x", 1);
        }
        assert_eq!(book.read(attempt(4, 1).task), None);
        assert!(book.read(attempt(5, 1).task).is_some());
        assert_eq!(book.pages().ended_bytes, ENDED_KEPT);
    }
}
