//! Questions of the host, answered one a turn.

use serde::{Deserialize, Serialize};

use crate::explanation::Subject;
use crate::id::Ticket;
use crate::messages::{Answer, Outbox, Refusal};

use super::Scheduler;

/// More questions than this do not wait for an answer at one time.
const QUESTIONS_MAX: usize = 1_024;

/// What the host wants to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) ticket: Ticket,
    pub(super) subject: Subject,
    /// What keeps it from the node of this name, rather than why it waits.
    pub(super) node: Option<String>,
}

impl Scheduler {
    pub(super) fn ask(&mut self, question: Question, out: &mut Outbox) {
        if self.questions.len() >= QUESTIONS_MAX {
            let refusal = Refusal::TooManyQuestions { limit: QUESTIONS_MAX as u64 };
            return out.refuse(question.ticket, refusal);
        }
        self.questions.push_back(question);
    }

    pub(super) fn answer_next_question(&mut self, out: &mut Outbox) {
        let Some(Question { ticket, subject, node }) = self.questions.pop_front() else { return };
        self.prepare_to_explain();
        if let Some(node) = node {
            return match self.explain_on(subject, &node) {
                Ok(explained) => out.reply(ticket, Answer::ExplainedOn(explained)),
                Err(refusal) => out.refuse(ticket, refusal),
            };
        }
        let (explanations, unknown) = match subject {
            Subject::Group(group) => (self.explain_with_gate(group), Refusal::UnknownGroup(group.job())),
            Subject::Task(task) => {
                (self.explain_task(task).map(|explanation| vec![explanation]), Refusal::UnknownTask(task))
            }
        };
        match explanations {
            Some(explanations) => out.reply(ticket, Answer::Explained(explanations)),
            None => out.refuse(ticket, unknown),
        }
    }
}
