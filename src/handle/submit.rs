//! Handing jobs in.

use std::sync::Arc;
use std::time::Instant;

use plimsoll_actors::{Command, PushError};
use plimsoll_core::id::JobId;
use plimsoll_core::messages::Answer;
use plimsoll_core::spec::{self, Invalid};
use tokio::sync::oneshot;

use super::Handle;
use crate::error::{StoppedError, SubmitError};
use crate::specs::JobSpec;

/// More jobs than this become several commands, so that no single one holds up the others.
const JOBS_PER_COMMAND_MAX: usize = 1_024;

/// Where an answer comes in.
type Reply = oneshot::Receiver<Answer>;

/// What became of each job of [`Handle::submit_many`], in order.
pub type SubmitMany = Vec<Result<JobId, SubmitError>>;

impl Handle {
    /// Submits a job, waiting for room on the lane and for the runtime's word.
    pub async fn submit(&self, job: JobSpec) -> Result<JobId, SubmitError> {
        let began = Instant::now();
        let (command, answer, job) = self.submission(job)?;
        match self.push(command).await {
            Ok(()) => {
                let answer = answer.await.ok();
                self.port.note_submission(began);
                self.accepted(answer, job)
            }
            Err(stopped) => Err(SubmitError::Stopped { stopped, job: Box::new(job) }),
        }
    }

    /// Submits a job without waiting for room: a full lane gives it back. What is returned completes
    /// with the runtime's word.
    pub fn try_submit(
        &self,
        job: JobSpec,
    ) -> Result<impl Future<Output = Result<JobId, SubmitError>> + Send + use<>, SubmitError> {
        let (command, answer, job) = self.submission(job)?;
        match self.port.push(command) {
            Ok(()) => {}
            Err(PushError::Full(_)) => return Err(SubmitError::Full(Box::new(job))),
            Err(PushError::Closed(_)) => {
                return Err(SubmitError::Stopped { stopped: self.stopped(), job: Box::new(job) });
            }
        }
        let handle = self.clone();
        Ok(async move { handle.accepted(answer.await.ok(), job) })
    }

    /// Submits a job from a thread that may wait. Must not be called from asynchronous code.
    pub fn submit_blocking(&self, job: JobSpec) -> Result<JobId, SubmitError> {
        pollster::block_on(self.submit(job))
    }

    /// Submits many jobs with few commands. Each is accepted or refused on its own.
    pub async fn submit_many(&self, mut jobs: Vec<JobSpec>) -> Result<SubmitMany, StoppedError> {
        let mut outcomes = Vec::with_capacity(jobs.len());
        while !jobs.is_empty() {
            let rest = jobs.split_off(jobs.len().min(JOBS_PER_COMMAND_MAX));
            outcomes.extend(self.submit_some(std::mem::replace(&mut jobs, rest)).await?);
        }
        Ok(outcomes)
    }

    async fn submit_some(&self, jobs: Vec<JobSpec>) -> Result<SubmitMany, StoppedError> {
        let settings = self.port.settings();
        let mut validated: Vec<Result<Arc<spec::JobSpec>, Invalid>> = Vec::with_capacity(jobs.len());
        for (position, job) in jobs.iter().enumerate() {
            // Nothing changes a specification any more: equal jobs in a row share one.
            let before = position.checked_sub(1).filter(|before| jobs[*before] == *job);
            validated.push(match before.map(|before| &validated[before]) {
                Some(Ok(same)) => Ok(Arc::clone(same)),
                _ => job.validated(&settings),
            });
        }
        let valid = validated.iter().filter_map(|job| job.as_ref().ok()).cloned().collect();
        let (reply, answers) = oneshot::channel();
        self.push(Command::SubmitMany(valid, reply)).await?;
        let mut answers = answers.await.map_err(|_| self.stopped())?.into_iter();
        let outcome = |(job, validated)| match validated {
            Ok(_) => self.accepted(answers.next(), job),
            Err(problem) => Err(SubmitError::Invalid { problem, job: Box::new(job) }),
        };
        Ok(jobs.into_iter().zip(validated).map(outcome).collect())
    }

    fn submission(&self, job: JobSpec) -> Result<(Command, Reply, JobSpec), SubmitError> {
        let spec = match job.validated(&self.port.settings()) {
            Ok(spec) => spec,
            Err(problem) => return Err(SubmitError::Invalid { problem, job: Box::new(job) }),
        };
        let (reply, answer) = oneshot::channel();
        Ok((Command::Submit(spec, reply), answer, job))
    }

    /// What the runtime said about a job; nothing at all if it has stopped.
    fn accepted(&self, answer: Option<Answer>, job: JobSpec) -> Result<JobId, SubmitError> {
        match answer {
            Some(Answer::Accepted(id)) => Ok(id),
            Some(Answer::Refused(refusal)) => Err(SubmitError::Refused { refusal, job: Box::new(job) }),
            Some(other) => unreachable!("a submission is accepted or refused, not {other:?}"),
            None => Err(SubmitError::Stopped { stopped: self.stopped(), job: Box::new(job) }),
        }
    }
}
