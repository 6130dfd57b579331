//! Handing jobs in.

use std::sync::Arc;
use std::time::Instant;

use plimsoll_actors::{Command, PushError};
use plimsoll_core::id::JobId;
use plimsoll_core::messages::Answer;
use plimsoll_core::spec::{self, Invalid};
use tokio::sync::oneshot;

use super::Handle;
use super::known;
use crate::error::SubmitError;
use crate::specs::JobSpec;

/// More jobs than this become several commands, so that no single one holds up the others.
const JOBS_PER_COMMAND_MAX: usize = 1_024;

/// Where an answer comes in.
type Reply = oneshot::Receiver<Answer>;

/// What became of each job of [`Handle::submit_many`], in order.
pub type SubmitMany = Vec<Result<JobId, SubmitError>>;

impl Handle {
    /// Submits a job, waiting for room on the lane and for the runtime's word. Whoever submits the same
    /// again and again shares it as an `Arc`: then nothing of it is copied or looked at twice.
    pub async fn submit<J: Into<Arc<JobSpec>>>(&self, job: J) -> Result<JobId, SubmitError> {
        let began = Instant::now();
        let (command, answer, job) = self.submission(job.into())?;
        match self.push(command).await {
            Ok(()) => {
                let answer = answer.await.ok();
                self.port.note_submission(began);
                self.accepted(answer, job)
            }
            Err(stopped) => Err(SubmitError::Stopped { stopped, job: back(job) }),
        }
    }

    /// Submits a job without waiting for room: a full lane gives it back. What is returned completes
    /// with the runtime's word.
    pub fn try_submit<J: Into<Arc<JobSpec>>>(
        &self,
        job: J,
    ) -> Result<impl Future<Output = Result<JobId, SubmitError>> + Send + use<J>, SubmitError> {
        let began = Instant::now();
        let (command, answer, job) = self.submission(job.into())?;
        match self.port.push(command) {
            Ok(()) => {}
            Err(PushError::Full(_)) => return Err(SubmitError::Full(back(job))),
            Err(PushError::Closed(_)) => {
                return Err(SubmitError::Stopped { stopped: self.stopped(), job: back(job) });
            }
        }
        let handle = self.clone();
        Ok(async move {
            let answer = answer.await.ok();
            handle.port.note_submission(began);
            handle.accepted(answer, job)
        })
    }

    /// Submits a job from a thread that may wait. Must not be called from asynchronous code.
    pub fn submit_blocking<J: Into<Arc<JobSpec>>>(&self, job: J) -> Result<JobId, SubmitError> {
        pollster::block_on(self.submit(job))
    }

    /// Submits many jobs with few commands. Each is accepted or refused on its own. Should the runtime stop
    /// in between, what was accepted before is told, and the others come back with the cause.
    pub async fn submit_many<J: Into<Arc<JobSpec>>>(&self, jobs: Vec<J>) -> SubmitMany {
        let mut outcomes = Vec::with_capacity(jobs.len());
        let mut jobs = jobs.into_iter().map(Into::into);
        loop {
            let some: Vec<Arc<JobSpec>> = jobs.by_ref().take(JOBS_PER_COMMAND_MAX).collect();
            if some.is_empty() {
                return outcomes;
            }
            self.submit_some(some, &mut outcomes).await;
        }
    }

    async fn submit_some(&self, jobs: Vec<Arc<JobSpec>>, outcomes: &mut SubmitMany) {
        let began = Instant::now();
        let settings = self.port.settings();
        let mut valid: Vec<Arc<spec::JobSpec>> = Vec::with_capacity(jobs.len());
        let mut invalid: Vec<(usize, Invalid)> = Vec::new();
        for (place, job) in jobs.iter().enumerate() {
            // Equal jobs in a row need no second look.
            let same = place.checked_sub(1).is_some_and(|before| Arc::ptr_eq(&jobs[before], job));
            match valid.last().filter(|_| same && invalid.is_empty()) {
                Some(known) => valid.push(Arc::clone(known)),
                None => match known::validated(job, &settings) {
                    Ok(spec) => valid.push(spec),
                    Err(problem) => invalid.push((place, problem)),
                },
            }
        }
        let (reply, answers) = oneshot::channel();
        let answers = match self.push(Command::SubmitMany(valid, reply)).await {
            Ok(()) => answers.await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        self.port.note_submission(began);
        let mut answers = answers.into_iter();
        let mut invalid = invalid.into_iter().peekable();
        outcomes.extend(jobs.into_iter().enumerate().map(|(place, job)| {
            match invalid.next_if(|(bad, _)| *bad == place) {
                Some((_, problem)) => Err(SubmitError::Invalid { problem, job: back(job) }),
                None => self.accepted(answers.next(), job),
            }
        }));
    }

    fn submission(&self, job: Arc<JobSpec>) -> Result<(Command, Reply, Arc<JobSpec>), SubmitError> {
        let spec = match known::validated(&job, &self.port.settings()) {
            Ok(spec) => spec,
            Err(problem) => return Err(SubmitError::Invalid { problem, job: back(job) }),
        };
        let (reply, answer) = oneshot::channel();
        Ok((Command::Submit(spec, reply), answer, job))
    }

    /// What the runtime said about a job; nothing at all if it has stopped.
    fn accepted(&self, answer: Option<Answer>, job: Arc<JobSpec>) -> Result<JobId, SubmitError> {
        match answer {
            Some(Answer::Accepted(id)) => Ok(id),
            Some(Answer::Refused(refusal)) => Err(SubmitError::Refused { refusal, job: back(job) }),
            Some(other) => unreachable!("a submission is accepted or refused, not {other:?}"),
            None => Err(SubmitError::Stopped { stopped: self.stopped(), job: back(job) }),
        }
    }
}

/// The job as it is given back.
fn back(job: Arc<JobSpec>) -> Box<JobSpec> {
    Box::new(Arc::unwrap_or_clone(job))
}
