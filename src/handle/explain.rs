//! Asking why something waits.

use plimsoll_actors::Command;
use plimsoll_core::explanation::{Explanation, NodeExplanation, Subject};
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
    /// Why a job waits, group by group, and role by role where these wait each for itself, or why one task of it
    /// waits; of a task that runs, what could stop it for others and what protects it. Groups that do not wait
    /// and tasks that have ended are left out. What waits before it is tried again is told apart from what is
    /// queued.
    pub async fn explain(&self, what: impl Into<Explained>) -> Result<Vec<Explanation>, RequestError> {
        let mut explanations = Vec::new();
        for subject in self.subjects(what.into())? {
            let queued = match self.ask(|reply| Command::Explain(subject, reply)).await {
                Ok(Answer::Explained(explanations)) => explanations,
                Ok(_) | Err(RequestError::Refused(Refusal::UnknownGroup(_))) => Vec::new(),
                Err(RequestError::Refused(Refusal::UnknownTask(task))) => {
                    self.known_task(task)?;
                    Vec::new()
                }
                Err(error) => return Err(error),
            };
            explanations.extend(Explanation::with_delay(queued, self.delay_of(subject).await?));
        }
        Ok(explanations)
    }

    async fn delay_of(&self, subject: Subject) -> Result<Option<Explanation>, RequestError> {
        if !self.is_tried_again(subject)? {
            return Ok(None);
        }
        match self.ask(|reply| Command::ExplainDelay(subject, reply)).await? {
            Answer::Explained(mut delay) => Ok(delay.pop()),
            _ => Ok(None),
        }
    }

    /// Whether somebody of the group may be tried again after a while.
    fn is_tried_again(&self, subject: Subject) -> Result<bool, Refusal> {
        let group = match subject {
            Subject::Group(group) => group,
            Subject::Task(task) => task.group,
        };
        let job = self.port.board().job(group.job())?;
        let roles = job.spec.groups.get(group.index()).map(|group| &group.roles);
        Ok(roles.is_some_and(|roles| roles.iter().any(|role| role.retries.is_some())))
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
