//! Assignments for a service that carries them out itself: a lossless stream with one reader, who
//! may read again what it has not acknowledged. What is unacknowledged is bounded by credit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use plimsoll_core::id::{Attempt, NodeId};
use plimsoll_core::spec::JobSpec;
use thiserror::Error;
use tokio::sync::Notify;

/// Something the service is to do.
#[derive(Clone, PartialEq, Debug)]
pub struct Assignment {
    /// Counted from 1, without gaps except for starts that were taken back before they were read.
    pub sequence: u64,
    pub order: Order,
    pub attempt: Attempt,
    pub job: Arc<JobSpec>,
    /// The name of the node.
    pub node: Arc<str>,
    pub(crate) node_id: NodeId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Start,
    /// End the attempt, and report that it has ended.
    Stop,
}

/// What was acknowledged cannot be read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("assignment {asked} was acknowledged already; the first that is kept is {first}")]
pub struct Acknowledged {
    pub asked: u64,
    pub first: u64,
}

#[derive(Debug, Default)]
pub(crate) struct AssignmentQueue {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Everything that is not acknowledged, in order.
    items: VecDeque<Assignment>,
    last_sequence: u64,
    /// The reader has seen everything up to here.
    read: u64,
    /// Attempts that the reader has seen the start of and not reported the end of, by node.
    begun: BTreeMap<NodeId, BTreeSet<Attempt>>,
    closed: bool,
}

impl AssignmentQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn push(
        &self,
        order: Order,
        attempt: Attempt,
        job: Arc<JobSpec>,
        node: Arc<str>,
        node_id: NodeId,
    ) {
        let mut state = self.state();
        state.last_sequence += 1;
        let sequence = state.last_sequence;
        state.items.push_back(Assignment { sequence, order, attempt, job, node, node_id });
        drop(state);
        self.news.notify_one();
    }

    /// Takes back a start that the reader has not seen; false if it has.
    pub(crate) fn take_back(&self, attempt: Attempt) -> bool {
        let mut state = self.state();
        let read = state.read;
        let unseen =
            |item: &Assignment| item.sequence > read && item.attempt == attempt && item.order == Order::Start;
        let position = state.items.iter().rposition(unseen);
        position.and_then(|position| state.items.remove(position)).is_some()
    }

    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.news.notify_one();
    }

    /// Notes that an attempt has ended, as the reader says; the answer is its node, if it is known.
    pub(crate) fn end(&self, attempt: Attempt) -> Option<NodeId> {
        let mut state = self.state();
        let (node, attempts) = state.begun.iter_mut().find(|(_, attempts)| attempts.contains(&attempt))?;
        let node = *node;
        attempts.remove(&attempt);
        if attempts.is_empty() {
            state.begun.remove(&node);
        }
        Some(node)
    }

    /// Everything that the reader has begun on a node has ended.
    pub(crate) fn end_all(&self, node: NodeId) -> Vec<Attempt> {
        self.state().begun.remove(&node).into_iter().flatten().collect()
    }
}

impl State {
    /// Everything the reader has not seen yet, which counts as seen from now on.
    fn read_on(&mut self) -> Vec<Assignment> {
        let read = self.read;
        let items: Vec<Assignment> = self.items.iter().filter(|item| item.sequence > read).cloned().collect();
        for item in items.iter().filter(|item| item.order == Order::Start) {
            self.begun.entry(item.node_id).or_default().insert(item.attempt);
        }
        self.read = self.last_sequence;
        items
    }
}

/// The reading end; there is only one.
#[derive(Debug)]
pub struct Assignments {
    queue: Arc<AssignmentQueue>,
}

impl Assignments {
    pub(crate) fn new(queue: Arc<AssignmentQueue>) -> Assignments {
        Assignments { queue }
    }

    /// The next assignments, at least one; `None` once the runtime has stopped.
    pub async fn next(&mut self) -> Option<Vec<Assignment>> {
        loop {
            if let Some(items) = self.try_next()? {
                return Some(items);
            }
            self.queue.news.notified().await;
        }
    }

    /// The next assignments if there are some: `Some(None)` if not yet, `None` if never again.
    pub fn try_next(&mut self) -> Option<Option<Vec<Assignment>>> {
        let mut state = self.queue.state();
        let items = state.read_on();
        match items.is_empty() {
            false => Some(Some(items)),
            true if state.closed => None,
            true => Some(None),
        }
    }

    /// Reads again from this sequence number on.
    pub fn rewind(&mut self, sequence: u64) -> Result<(), Acknowledged> {
        let mut state = self.queue.state();
        let first = state.items.front().map_or(state.last_sequence + 1, |item| item.sequence);
        if sequence < first {
            return Err(Acknowledged { asked: sequence, first });
        }
        state.read = sequence.saturating_sub(1).min(state.last_sequence);
        Ok(())
    }

    /// Lets go of everything that was read up to this sequence number; the answer is the starts among
    /// them, whose credit is to be given back.
    pub fn acknowledge(&mut self, sequence: u64) -> Vec<Attempt> {
        let mut state = self.queue.state();
        let seen = sequence.min(state.read);
        let mut released = Vec::new();
        while state.items.front().is_some_and(|item| item.sequence <= seen) {
            let item = state.items.pop_front().expect("just seen");
            if item.order == Order::Start {
                released.push(item.attempt);
            }
        }
        released
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::id::{GroupId, JobId, Slot, TaskId};

    use super::*;

    fn attempt(index: u32) -> Attempt {
        let task = TaskId { group: GroupId::new(JobId(1), 0), role: 0, index };
        Attempt { task, number: 1, slot: Slot(index) }
    }

    fn queue(starts: u32) -> Arc<AssignmentQueue> {
        let queue = Arc::new(AssignmentQueue::default());
        for index in 0..starts {
            queue.push(Order::Start, attempt(index), Arc::default(), "n".into(), NodeId(0));
        }
        queue
    }

    #[test]
    fn what_is_not_acknowledged_can_be_read_again() {
        let queue = queue(3);
        let mut reader = Assignments::new(Arc::clone(&queue));
        assert_eq!(reader.try_next().flatten().map(|items| items.len()), Some(3));
        assert_eq!(reader.try_next(), Some(None));
        assert_eq!(reader.acknowledge(1), [attempt(0)]);
        reader.rewind(2).expect("it is kept");
        assert_eq!(reader.try_next().flatten().map(|items| items[0].sequence), Some(2));
        assert_eq!(reader.rewind(1), Err(Acknowledged { asked: 1, first: 2 }));
        queue.close();
        assert_eq!(reader.try_next(), None);
    }

    #[test]
    fn a_start_nobody_has_seen_can_be_taken_back() {
        let queue = queue(2);
        let mut reader = Assignments::new(Arc::clone(&queue));
        assert!(queue.take_back(attempt(1)));
        assert_eq!(reader.try_next().flatten().map(|items| items.len()), Some(1));
        assert!(!queue.take_back(attempt(0)), "it was seen");
        assert_eq!(queue.end_all(NodeId(0)), [attempt(0)]);
        assert_eq!(queue.end(attempt(0)), None, "its end was told already");
    }
}
