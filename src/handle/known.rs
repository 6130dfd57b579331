//! Jobs that were validated lately. Services submit equal jobs again and again: those share one validated
//! specification, which nothing changes any more.
//!
//! Each thread remembers a few for itself, so nobody waits for anybody.

use std::cell::RefCell;
use std::sync::Arc;

use plimsoll_core::settings::Settings;
use plimsoll_core::spec::{self, Invalid};

use crate::specs::JobSpec;

/// So many jobs a thread remembers.
const KNOWN_MAX: usize = 8;

/// A job that was found good, and by which settings.
struct Known {
    given: Arc<JobSpec>,
    settings: Arc<Settings>,
    valid: Arc<spec::JobSpec>,
}

#[derive(Default)]
struct Memory {
    known: Vec<Known>,
    /// Whose place the next one takes.
    next: usize,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
}

impl Memory {
    fn find(&self, job: &Arc<JobSpec>, settings: &Arc<Settings>) -> Option<Arc<spec::JobSpec>> {
        let is_it = |known: &&Known| {
            Arc::ptr_eq(&known.settings, settings) && (Arc::ptr_eq(&known.given, job) || known.given == *job)
        };
        self.known.iter().find(is_it).map(|known| Arc::clone(&known.valid))
    }

    fn remember(&mut self, known: Known) {
        if self.known.len() < KNOWN_MAX {
            return self.known.push(known);
        }
        self.known[self.next] = known;
        self.next = (self.next + 1) % KNOWN_MAX;
    }
}

/// The job as the machines know it, or what is wrong with it.
pub(super) fn validated(job: &Arc<JobSpec>, settings: &Arc<Settings>) -> Result<Arc<spec::JobSpec>, Invalid> {
    MEMORY.with_borrow_mut(|memory| {
        if let Some(valid) = memory.find(job, settings) {
            return Ok(valid);
        }
        let valid = job.validated(settings)?;
        let (given, settings) = (Arc::clone(job), Arc::clone(settings));
        memory.remember(Known { given, settings, valid: Arc::clone(&valid) });
        Ok(valid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_jobs_share_a_specification_under_the_same_settings() {
        let settings = Arc::new(Settings::default());
        let job = |tasks| Arc::new(JobSpec::bag("j", tasks).request("cpu", 1));
        let first = validated(&job(1), &settings).expect("a good job");
        assert!(Arc::ptr_eq(&first, &validated(&job(1), &settings).expect("the same")));
        assert!(!Arc::ptr_eq(&first, &validated(&job(2), &settings).expect("another")));
        let mut narrow = Settings::default();
        narrow.limits.tasks_per_job = 1;
        let narrow = Arc::new(narrow);
        assert!(validated(&job(2), &narrow).is_err(), "what was good is judged anew");
        assert!(validated(&job(2), &settings).is_ok());
    }

    #[test]
    fn no_more_is_remembered_than_so_many() {
        let settings = Arc::new(Settings::default());
        for tasks in 1..=100 {
            validated(&Arc::new(JobSpec::bag("j", tasks)), &settings).expect("a good job");
        }
        MEMORY.with_borrow(|memory| assert_eq!(memory.known.len(), KNOWN_MAX));
    }
}
