//! Callers that wait for an answer, by the ticket that travels with their request.

use std::collections::BTreeMap;

use plimsoll_core::id::Ticket;
use plimsoll_core::messages::Answer;
use tokio::sync::oneshot;

use crate::commands::ReplySender;

/// Hands out tickets, each once.
#[derive(Debug)]
pub(crate) struct Tickets {
    last: u64,
    /// Who waits for the tickets handed out since they were last taken.
    pub(crate) expected: Vec<Expected>,
}

/// Who waits for an answer.
#[derive(Debug)]
pub(crate) enum Expected {
    One(Ticket, ReplySender),
    /// So many tickets in a row, from this one on, that are answered together, in their order. Should the
    /// runtime stop in between, those answers come that were there.
    Many(Ticket, usize, oneshot::Sender<Vec<Answer>>),
}

#[derive(Debug, Default)]
pub(crate) struct Replies {
    plain: BTreeMap<Ticket, ReplySender>,
    /// By the first ticket of each: the others follow it.
    many: BTreeMap<Ticket, Many>,
}

/// Callers with many requests in one command. JobState answers in the order in which it was asked, so each
/// answer belongs to the next ticket.
#[derive(Debug)]
struct Many {
    answers: Vec<Answer>,
    count: usize,
    reply: oneshot::Sender<Vec<Answer>>,
}

impl Tickets {
    /// Tickets go on behind the last one that was handed out.
    pub(crate) fn after(last: u64) -> Tickets {
        Tickets { last, expected: Vec::new() }
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn one(&mut self, reply: ReplySender) -> Ticket {
        self.last += 1;
        self.expected.push(Expected::One(Ticket(self.last), reply));
        Ticket(self.last)
    }

    pub(crate) fn many(
        &mut self,
        count: usize,
        reply: oneshot::Sender<Vec<Answer>>,
    ) -> impl Iterator<Item = Ticket> + use<> {
        let first = self.last + 1;
        self.last += count as u64;
        self.expected.push(Expected::Many(Ticket(first), count, reply));
        (first..=self.last).map(Ticket)
    }
}

impl Replies {
    pub(crate) fn expect(&mut self, expected: Vec<Expected>) {
        for one in expected {
            match one {
                Expected::One(ticket, reply) => {
                    self.plain.insert(ticket, reply);
                }
                Expected::Many(_, 0, reply) => {
                    let _ = reply.send(Vec::new());
                }
                Expected::Many(first, count, reply) => {
                    self.many.insert(first, Many { answers: Vec::with_capacity(count), count, reply });
                }
            }
        }
    }

    pub(crate) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        if let Some((first, many)) = self.many.range_mut(..=ticket).next_back() {
            let (first, place) = (*first, (ticket.0 - first.0) as usize);
            if place < many.count {
                assert_eq!(place, many.answers.len(), "many are answered in the order of their tickets");
                many.answers.push(answer);
                if many.answers.len() == many.count {
                    let many = self.many.remove(&first).expect("just seen");
                    let _ = many.reply.send(many.answers);
                }
                return;
            }
        }
        if let Some(reply) = self.plain.remove(&ticket) {
            let _ = reply.send(answer);
        }
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        for many in std::mem::take(&mut self.many).into_values() {
            let _ = many.reply.send(many.answers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_answered_together_and_in_order() {
        let (mut tickets, mut replies) = (Tickets::after(7), Replies::default());
        let (reply, mut answers) = oneshot::channel();
        assert_eq!(tickets.many(2, reply).collect::<Vec<_>>(), [Ticket(8), Ticket(9)]);
        replies.expect(std::mem::take(&mut tickets.expected));
        replies.answer(Ticket(8), Answer::Done);
        assert!(answers.try_recv().is_err(), "one is missing");
        replies.answer(Ticket(9), Answer::Done);
        assert_eq!(answers.try_recv(), Ok(vec![Answer::Done, Answer::Done]));
        let (reply, mut answers) = oneshot::channel();
        assert_eq!(tickets.many(0, reply).count(), 0);
        replies.expect(std::mem::take(&mut tickets.expected));
        assert_eq!((answers.try_recv(), tickets.last()), (Ok(Vec::new()), 9));
    }

    #[test]
    fn what_was_answered_is_told_when_no_more_comes() {
        let (mut tickets, mut replies) = (Tickets::after(0), Replies::default());
        let (reply, mut answers) = oneshot::channel();
        let asked: Vec<Ticket> = tickets.many(3, reply).collect();
        replies.expect(std::mem::take(&mut tickets.expected));
        replies.answer(asked[0], Answer::Done);
        drop(replies);
        assert_eq!(answers.try_recv(), Ok(vec![Answer::Done]));
    }
}
