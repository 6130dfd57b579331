//! Asking why something waits.

use plimsoll_actors::Command;
use plimsoll_core::explanation::{Explanation, NodeExplanation, Reason, Subject};
use plimsoll_core::id::{GroupId, JobId, TaskId};
use plimsoll_core::messages::{Answer, Refusal};

use super::Handle;
use crate::error::RequestError;

/// What [`Handle::explain`] is asked about: a job or one of its tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Explained {
    /// Every group of the job that waits.
    Job(JobId),
    /// This task.
    Task(TaskId),
}

impl From<JobId> for Explained {
    fn from(job: JobId) -> Explained {
        Explained::Job(job)
    }
}

impl From<TaskId> for Explained {
    fn from(task: TaskId) -> Explained {
        Explained::Task(task)
    }
}

impl Handle {
    /// Why a job waits, group by group, or why one task of it waits; of a task that runs, what could stop it for
    /// others and what protects it. Groups that do not wait and tasks that have ended are left out.
    pub async fn explain(&self, what: impl Into<Explained>) -> Result<Vec<Explanation>, RequestError> {
        let mut explanations = Vec::new();
        for subject in self.subjects(what.into())? {
            match self.ask(|reply| Command::Explain(subject, reply)).await {
                Ok(Answer::Explained(explanation)) if says_something(&explanation) => {
                    explanations.push(*explanation);
                }
                Ok(_) | Err(RequestError::Refused(Refusal::UnknownGroup(_))) => {}
                Err(RequestError::Refused(Refusal::UnknownTask(task))) => self.known_task(task)?,
                Err(error) => return Err(error),
            }
        }
        Ok(explanations)
    }

    /// Everything that keeps the waiting tasks of a job, or one task of it, from the node of this name,
    /// role by role. Roles and tasks that do not wait are left out.
    pub async fn explain_on(
        &self,
        what: impl Into<Explained>,
        node: &str,
    ) -> Result<Vec<NodeExplanation>, RequestError> {
        // Also when nothing waits, a name that no node has is a mistake.
        self.port.board().node(node)?;
        let mut explanations = Vec::new();
        for subject in self.subjects(what.into())? {
            match self.ask(|reply| Command::ExplainOn(subject, node.to_owned(), reply)).await {
                Ok(Answer::ExplainedOn(explained)) => explanations.extend(explained),
                Ok(_) | Err(RequestError::Refused(Refusal::UnknownGroup(_))) => {}
                Err(RequestError::Refused(Refusal::UnknownTask(task))) => self.known_task(task)?,
                Err(error) => return Err(error),
            }
        }
        Ok(explanations)
    }

    /// What has to be asked about a job, group by group, or about one task.
    fn subjects(&self, what: Explained) -> Result<Vec<Subject>, Refusal> {
        match what {
            Explained::Task(task) => Ok(vec![Subject::Task(task)]),
            Explained::Job(job) => {
                let groups = self.port.board().job(job)?.spec.groups.len() as u16;
                Ok((0..groups).map(|index| Subject::Group(GroupId::new(job, index))).collect())
            }
        }
    }

    /// Whether there is or was such a task; one of a finished group is fine.
    fn known_task(&self, task: TaskId) -> Result<(), Refusal> {
        let job = self.port.board().job(task.job())?;
        let role =
            job.spec.groups.get(task.group.index()).and_then(|group| group.roles.get(usize::from(task.role)));
        let known = role.is_some_and(|role| task.index < role.max);
        if known { Ok(()) } else { Err(Refusal::UnknownTask(task)) }
    }
}

fn says_something(explanation: &Explanation) -> bool {
    explanation.waiting > 0 || matches!(explanation.reason, Reason::Running(_))
}
