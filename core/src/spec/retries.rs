//! When a task that did not come to a good end is tried again.

use serde::{Deserialize, Serialize};
use std::fmt::Display;

use crate::outcome::{FailureCause, Outcome, StopCause};
use crate::time::Span;

use super::limits::check_count;
use super::{Invalid, Problem};

/// How often, after which ends and how soon a task is tried again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Retries {
    /// So many attempts at most follow those that ended in one of these ways.
    pub most: u32,
    pub on: RetryOn,
    /// How long it waits before the first of them.
    pub backoff: Span,
    /// By how many thousandths each wait is longer than the last; 1,000 for equal ones.
    pub factor: u32,
    /// No wait is longer than this.
    pub cap: Span,
}

/// The ends that count and are followed by another attempt. Lost and preempted attempts that do not count are
/// followed by another one too, at once and without limit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RetryOn {
    pub start_failure: bool,
    pub failure: bool,
    pub timeout: bool,
    pub lost: bool,
    pub preempted: bool,
    /// Ends with one of these codes, where not every failure counts.
    pub codes: Vec<i32>,
}

pub const FACTOR_DEFAULT: u32 = 2_000;
/// A factor is between 1 and this many thousandths.
pub const FACTOR_MAX: u32 = 1_000_000;
pub const RETRIES_MAX: u32 = 1_000_000;
pub const BACKOFF_DEFAULT: Span = Span::from_whole_seconds(1);
pub const BACKOFF_CAP_DEFAULT: Span = Span::from_whole_seconds(60);
const CODES_MAX: u64 = 256;

impl Default for RetryOn {
    fn default() -> RetryOn {
        let (lost, preempted, codes) = (false, false, Vec::new());
        RetryOn { start_failure: true, failure: true, timeout: true, lost, preempted, codes }
    }
}

impl RetryOn {
    /// Nothing at all, to which ends are added.
    pub fn nothing() -> RetryOn {
        RetryOn { start_failure: false, failure: false, timeout: false, ..RetryOn::default() }
    }
}

impl Retries {
    /// So many more attempts after every failure and every timeout, each wait twice as long as the last.
    pub fn new(most: u32) -> Retries {
        let on = RetryOn::default();
        Retries { most, on, backoff: BACKOFF_DEFAULT, factor: FACTOR_DEFAULT, cap: BACKOFF_CAP_DEFAULT }
    }

    /// Whether an attempt that ended like this counts, and is followed by another while some are left.
    pub fn covers(&self, outcome: Outcome) -> bool {
        let on = &self.on;
        match outcome {
            Outcome::Completed | Outcome::Cancelled | Outcome::Aborted | Outcome::Dismissed => false,
            Outcome::Failed(FailureCause::NotStarted) => on.start_failure,
            Outcome::Failed(FailureCause::Code(code)) => on.failure || on.codes.contains(&code),
            Outcome::Failed(_) => on.failure,
            Outcome::TimedOut(_) => on.timeout,
            // That another member of its group was lost, or its node is needed otherwise, is not its own
            // doing.
            Outcome::Preempted(StopCause::GroupBroken | StopCause::Drain) => false,
            Outcome::Preempted(_) => on.preempted,
            Outcome::Lost => on.lost,
        }
    }

    /// How long it waits before its `retry`-th retry, counted from 1. Whole numbers only, so that it is
    /// the same on every machine.
    pub fn delay(&self, retry: u32) -> Span {
        let mut delay = self.backoff.min(self.cap);
        for _ in 1..retry {
            let next = u128::from(delay.0) * u128::from(self.factor) / 1_000;
            let next = Span(u64::try_from(next).unwrap_or(u64::MAX)).min(self.cap);
            if next == delay {
                break;
            }
            delay = next;
        }
        delay
    }

    pub(super) fn note_problems(&self, field: impl Display + Copy, problems: &mut Vec<Invalid>) {
        if self.most > RETRIES_MAX {
            let problem = Problem::TooMany { limit: RETRIES_MAX.into() };
            problems.push(Invalid::new(format!("{field}.most"), self.most, problem));
        }
        if !(1_000..=FACTOR_MAX).contains(&self.factor) {
            let factor = f64::from(self.factor) / 1_000.0;
            problems.push(Invalid::new(format!("{field}.backoff_factor"), factor, Problem::NoFactor));
        }
        problems.extend(check_count(format_args!("{field}.on"), self.on.codes.len(), CODES_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums of the waits of a service that begins with half a second and doubles it: 1.5, 7.5, 15.5 and
    /// 31.5 seconds before the second, fourth, fifth and sixth retry.
    #[test]
    fn waits_double_up_to_their_cap() {
        let retries = Retries { backoff: Span::from_millis(500), ..Retries::new(9) };
        let begins = |retry: u32| (1..=retry).map(|one| retries.delay(one).0).sum::<u64>() / 1_000;
        assert_eq!([2, 4, 5, 6].map(begins), [1_500, 7_500, 15_500, 31_500]);
        assert_eq!(retries.delay(7), Span::from_whole_seconds(32));
        assert_eq!(retries.delay(8), retries.cap);
        assert_eq!(retries.delay(u32::MAX), retries.cap);
    }

    #[test]
    fn a_wait_of_nothing_and_equal_waits_stay_what_they_are() {
        let at_once = Retries { backoff: Span::ZERO, ..Retries::new(1) };
        assert_eq!(at_once.delay(1_000_000), Span::ZERO);
        let equal = Retries { factor: 1_000, ..Retries::new(1) };
        assert_eq!(equal.delay(u32::MAX), BACKOFF_DEFAULT);
    }

    #[test]
    fn only_the_ends_that_are_listed_count() {
        let codes = Retries { on: RetryOn { codes: vec![75], ..RetryOn::nothing() }, ..Retries::new(1) };
        assert!(codes.covers(Outcome::Failed(FailureCause::Code(75))));
        assert!(!codes.covers(Outcome::Failed(FailureCause::Code(1))));
        let plain = Retries::new(1);
        assert!(plain.covers(Outcome::Failed(FailureCause::NotStarted)));
        assert!(!plain.covers(Outcome::Lost) && !plain.covers(Outcome::Cancelled));
    }
}
