//! Assignments for a service that carries them out itself: a lossless stream with one reader, who
//! may read again what it has not acknowledged and not reported the end of. That is bounded by credit.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use plimsoll_core::id::{Attempt, NodeId};
use plimsoll_core::spec::{JobSpec, UnitNames};
use thiserror::Error;
use tokio::sync::Notify;

use crate::begun::Begun;

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
    /// The units of the node that are for this attempt alone, by kind, where they have names. Said with the
    /// start.
    pub units: Option<Arc<UnitNames>>,
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
    /// The reader goes on behind this one.
    read: u64,
    /// The reader has seen everything up to here, even if it reads some of it again.
    seen: u64,
    /// Starts that the reader has seen and not reported the end of.
    begun: Begun,
    /// Stops that are not acknowledged, by the attempt that is to end.
    stops: BTreeMap<Attempt, u64>,
    closed: bool,
}

impl AssignmentQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Numbers these and hands them to the reader, many for one look at the lock and one word to him.
    pub(crate) fn push(&self, assignments: &mut Vec<Assignment>) {
        if assignments.is_empty() {
            return;
        }
        let mut state = self.state();
        state.items.reserve(assignments.len());
        for mut assignment in assignments.drain(..) {
            state.last_sequence += 1;
            assignment.sequence = state.last_sequence;
            if assignment.order == Order::Stop {
                state.stops.insert(assignment.attempt, assignment.sequence);
            }
            state.items.push_back(assignment);
        }
        drop(state);
        self.news.notify_one();
    }

    /// Takes back a start that the reader has not seen; false if it has.
    pub(crate) fn take_back(&self, attempt: Attempt) -> bool {
        let mut state = self.state();
        let seen = state.seen;
        let unseen =
            |item: &Assignment| item.sequence > seen && item.attempt == attempt && item.order == Order::Start;
        let position = state.items.iter().rposition(unseen);
        position.and_then(|position| state.items.remove(position)).is_some()
    }

    /// The node is gone, or its agent began anew: starts that nobody has seen are taken back, those that
    /// were seen are to be stopped.
    pub(crate) fn abandon(&self, node: NodeId) {
        let mut state = self.state();
        let seen = state.seen;
        state.items.retain(|item| item.node_id != node || item.sequence <= seen || item.order == Order::Stop);
        for begun in state.begun.on_node(node) {
            state.begun.remove(begun.attempt);
            state.last_sequence += 1;
            let sequence = state.last_sequence;
            state.stops.insert(begun.attempt, sequence);
            state.items.push_back(Assignment { sequence, order: Order::Stop, ..begun });
        }
        drop(state);
        self.news.notify_one();
    }

    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.news.notify_one();
    }

    /// Those of these that have begun, with their nodes.
    pub(crate) fn begun(&self, attempts: &[Attempt]) -> Vec<(NodeId, Attempt)> {
        let state = self.state();
        let node = |attempt: &Attempt| Some((state.begun.node_of(*attempt)?, *attempt));
        attempts.iter().filter_map(node).collect()
    }

    /// What the reader has begun on the node of this name. A name may have been used again: each
    /// attempt says which node it was.
    pub(crate) fn begun_on(&self, name: &str) -> Vec<(NodeId, Attempt)> {
        self.state().begun.on(name)
    }

    pub(crate) fn forget_begun(&self, ended: &[(NodeId, Attempt)]) {
        let mut state = self.state();
        for (_, attempt) in ended {
            // Its end was told: nobody needs to read of it again, also if it is never acknowledged.
            let begun = state.begun.remove(*attempt).map(|begun| begun.sequence);
            let stop = state.stops.remove(attempt);
            for sequence in begun.into_iter().chain(stop) {
                if let Ok(position) = state.items.binary_search_by_key(&sequence, |item| item.sequence) {
                    state.items.remove(position);
                }
            }
        }
    }
}

impl State {
    /// Everything the reader has not seen yet, which counts as seen from now on.
    fn read_on(&mut self) -> Vec<Assignment> {
        let first = self.items.partition_point(|item| item.sequence <= self.read);
        let items: Vec<Assignment> = self.items.range(first..).cloned().collect();
        for item in items.iter().filter(|item| item.sequence > self.seen && item.order == Order::Start) {
            self.begun.insert(item.clone());
        }
        self.read = self.last_sequence;
        self.seen = self.last_sequence;
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

    /// The starts among everything that was read up to this sequence number.
    pub fn up_to(&self, sequence: u64) -> Vec<Attempt> {
        let state = self.queue.state();
        let read = state.items.iter().take_while(|item| item.sequence <= sequence.min(state.read));
        read.filter(|item| item.order == Order::Start).map(|item| item.attempt).collect()
    }

    /// Lets go of everything that was read up to this sequence number: it cannot be read again.
    pub fn let_go(&mut self, sequence: u64) {
        let mut state = self.queue.state();
        let last = sequence.min(state.read);
        while state.items.front().is_some_and(|item| item.sequence <= last) {
            let item = state.items.pop_front().expect("just seen");
            if item.order == Order::Stop {
                state.stops.remove(&item.attempt);
            }
        }
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

    fn push(queue: &AssignmentQueue, order: Order, index: u32) {
        let (job, node, node_id) = (Arc::default(), "n".into(), NodeId(0));
        let attempt = attempt(index);
        queue.push(&mut vec![Assignment { sequence: 0, order, attempt, job, node, units: None, node_id }]);
    }

    fn queue(starts: u32) -> Arc<AssignmentQueue> {
        let queue = Arc::new(AssignmentQueue::default());
        for index in 0..starts {
            push(&queue, Order::Start, index);
        }
        queue
    }

    #[test]
    fn what_is_not_acknowledged_can_be_read_again() {
        let queue = queue(3);
        let mut reader = Assignments::new(Arc::clone(&queue));
        assert_eq!(reader.try_next().flatten().map(|items| items.len()), Some(3));
        assert_eq!(reader.try_next(), Some(None));
        assert_eq!(reader.up_to(1), [attempt(0)]);
        reader.let_go(1);
        reader.rewind(2).expect("it is kept");
        assert_eq!(reader.try_next().flatten().map(|items| items[0].sequence), Some(2));
        assert_eq!(reader.rewind(1), Err(Acknowledged { asked: 1, first: 2 }));
        queue.close();
        assert_eq!(reader.try_next(), None);
    }

    #[test]
    fn what_has_ended_is_not_kept_for_a_reader_that_never_acknowledges() {
        let queue = queue(3);
        let mut reader = Assignments::new(Arc::clone(&queue));
        assert_eq!(reader.try_next().flatten().map(|items| items.len()), Some(3));
        push(&queue, Order::Stop, 1);
        queue.forget_begun(&[(NodeId(0), attempt(0)), (NodeId(0), attempt(1))]);
        reader.rewind(3).expect("it is kept");
        let items = reader.try_next().flatten().expect("one is left");
        assert_eq!(items.iter().map(|item| item.attempt).collect::<Vec<_>>(), [attempt(2)]);
    }

    #[test]
    fn a_start_nobody_has_seen_can_be_taken_back() {
        let queue = queue(2);
        let mut reader = Assignments::new(Arc::clone(&queue));
        assert!(queue.take_back(attempt(1)));
        assert_eq!(reader.try_next().flatten().map(|items| items.len()), Some(1));
        assert!(!queue.take_back(attempt(0)), "it was seen");
        reader.rewind(1).expect("it is kept");
        assert!(!queue.take_back(attempt(0)), "also when it is to be read again");
        let begun = queue.begun_on("n");
        assert_eq!(begun, [(NodeId(0), attempt(0))]);
        queue.forget_begun(&begun);
        assert_eq!(queue.begun(&[attempt(0)]), [], "its end was told already");
    }

    #[test]
    fn what_a_lost_node_had_begun_is_to_be_stopped_and_the_rest_is_taken_back() {
        let queue = queue(1);
        let mut reader = Assignments::new(Arc::clone(&queue));
        assert_eq!(reader.try_next().flatten().map(|items| items.len()), Some(1));
        push(&queue, Order::Start, 1);
        queue.abandon(NodeId(0));
        let items = reader.try_next().flatten().expect("there is news");
        assert_eq!(items.len(), 1);
        assert_eq!((items[0].order, items[0].attempt), (Order::Stop, attempt(0)));
    }
}
