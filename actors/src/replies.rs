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
    /// So many tickets in a row, from this one on, that are answered together.
    Many(Ticket, usize, oneshot::Sender<Vec<Answer>>),
}

#[derive(Debug, Default)]
pub(crate) struct Replies {
    waiting: BTreeMap<Ticket, Waiting>,
    many: BTreeMap<Ticket, Many>,
}

#[derive(Debug)]
enum Waiting {
    Plain(ReplySender),
    /// One of many; the first ticket of them stands for all.
    OfMany(Ticket),
}

#[derive(Debug)]
struct Many {
    answers: Vec<Answer>,
    outstanding: usize,
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
                    self.waiting.insert(ticket, Waiting::Plain(reply));
                }
                Expected::Many(_, 0, reply) => {
                    let _ = reply.send(Vec::new());
                }
                Expected::Many(first, count, reply) => {
                    let tickets = (first.0..first.0 + count as u64).map(Ticket);
                    self.waiting.extend(tickets.map(|ticket| (ticket, Waiting::OfMany(first))));
                    let many = Many { answers: Vec::with_capacity(count), outstanding: count, reply };
                    self.many.insert(first, many);
                }
            }
        }
    }

    pub(crate) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        let Some(waiting) = self.waiting.remove(&ticket) else { return };
        match waiting {
            Waiting::Plain(reply) => {
                let _ = reply.send(answer);
            }
            Waiting::OfMany(first) => {
                let many = self.many.get_mut(&first).expect("many are kept until all are answered");
                many.answers.push(answer);
                many.outstanding -= 1;
                if many.outstanding == 0 {
                    let many = self.many.remove(&first).expect("just seen");
                    let _ = many.reply.send(many.answers);
                }
            }
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
}
