//! Callers that wait for an answer, by the ticket that travels with their request.

use std::collections::BTreeMap;

use plimsoll_core::id::Ticket;
use plimsoll_core::messages::Answer;
use tokio::sync::oneshot;

use crate::commands::ReplySender;

#[derive(Debug)]
pub(crate) struct Replies {
    last_ticket: u64,
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

impl Replies {
    /// Tickets go on behind the last one that was given out.
    pub(crate) fn after(last_ticket: u64) -> Replies {
        Replies { last_ticket, waiting: BTreeMap::new(), many: BTreeMap::new() }
    }

    pub(crate) fn last_ticket(&self) -> u64 {
        self.last_ticket
    }

    pub(crate) fn ticket(&mut self, reply: ReplySender) -> Ticket {
        self.next(Waiting::Plain(reply))
    }

    /// So many tickets in a row that are answered together; none at all is answered at once.
    pub(crate) fn tickets(
        &mut self,
        count: usize,
        reply: oneshot::Sender<Vec<Answer>>,
    ) -> impl Iterator<Item = Ticket> {
        let first = Ticket(self.last_ticket + 1);
        if count == 0 {
            let _ = reply.send(Vec::new());
        } else {
            let many = Many { answers: Vec::with_capacity(count), outstanding: count, reply };
            self.many.insert(first, many);
        }
        (0..count).map(move |_| self.next(Waiting::OfMany(first)))
    }

    fn next(&mut self, waiting: Waiting) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.waiting.insert(ticket, waiting);
        ticket
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

    /// Nobody will answer any more: callers learn of it when the other end of their answer is dropped.
    pub(crate) fn drop_all(&mut self) {
        self.waiting.clear();
        self.many.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_answered_together_and_in_order() {
        let mut replies = Replies::after(7);
        let (reply, mut answers) = oneshot::channel();
        let tickets: Vec<Ticket> = replies.tickets(2, reply).collect();
        assert_eq!(tickets, [Ticket(8), Ticket(9)]);
        replies.answer(Ticket(8), Answer::Done);
        assert!(answers.try_recv().is_err(), "one is missing");
        replies.answer(Ticket(9), Answer::Done);
        assert_eq!(answers.try_recv(), Ok(vec![Answer::Done, Answer::Done]));
        let (reply, mut answers) = oneshot::channel();
        assert_eq!(replies.tickets(0, reply).count(), 0);
        assert_eq!(answers.try_recv(), Ok(Vec::new()));
    }
}
