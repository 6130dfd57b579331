//! How the attempts of a job ended, read from the events of a real runtime.

use plimsoll::core::messages::JobEvent;
use plimsoll::core::outcome::Outcome;
use plimsoll::{Event, Handle, JobId, JobSpec, JobStatus, Subscription};

/// Runs a job to its end; how each of its attempts ended, and how it stands.
pub async fn outcomes(handle: &Handle, job: JobSpec) -> (Vec<Outcome>, JobStatus) {
    let events = handle.events().expect("the runtime runs");
    let id = handle.submit(job).await.expect("accepted");
    ends_of(handle, events, id).await
}

/// Reads events until the job is finished.
pub async fn ends_of(handle: &Handle, mut events: Subscription, id: JobId) -> (Vec<Outcome>, JobStatus) {
    let mut ended = Vec::new();
    loop {
        for event in events.next().await.expect("the runtime runs").events.iter() {
            match *event {
                Event::Job(JobEvent::Ended { attempt, outcome, .. }) if attempt.task.job() == id => {
                    ended.push(outcome);
                }
                Event::Job(JobEvent::Finished { job, .. }) if job == id => {
                    return (ended, handle.wait(job).await.expect("it has finished"));
                }
                _ => {}
            }
        }
    }
}
