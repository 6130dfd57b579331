//! Rate limits as token buckets: so many tokens per second, so many at most at once. A bucket is
//! refilled when it is looked at, exactly: with rates in millionths per second and time in
//! microseconds every amount is a whole number of millionths of a millionth of a token.

use serde::{Deserialize, Serialize};

use crate::time::{Span, Time};

/// Parts of one token.
const TOKEN: i128 = 1_000_000_000_000;

/// The deepest debt, in tokens: further charges change nothing.
const DEBT_MAX: i128 = 1 << 62;

/// How fast tokens come and how many may lie ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// Millionths of a token per second.
    pub millionths_per_second: u64,
    /// Tokens a full bucket holds.
    pub burst: u64,
}

/// Why a bucket has no tokens for a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Refusal {
    /// There is less than one token.
    Empty,
    /// Not even a full bucket holds so many: waiting does not help.
    AboveBurst,
    /// There are some tokens, but fewer than asked for.
    TooFew,
}

/// A bucket that starts full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bucket {
    rate: Rate,
    /// Parts of tokens that lay ready at `since`; negative after a charge beyond them.
    level: i128,
    since: Time,
}

impl Bucket {
    pub fn new(rate: Rate, now: Time) -> Bucket {
        Bucket { rate, level: full(rate), since: now }
    }

    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Goes on at another rate. What lies ready stays, as far as the new bucket holds it.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.refill(now);
        self.rate = rate;
        self.level = self.level.min(full(rate));
    }

    /// Whole tokens that lie ready; negative while a debt is open.
    pub fn tokens(&self, now: Time) -> i64 {
        // Debts have a limit; a burst may be larger than what is told here.
        i64::try_from(self.level_at(now).div_euclid(TOKEN)).unwrap_or(i64::MAX)
    }

    /// Why `count` tokens cannot be had now; `None` if they can.
    pub fn refusal(&self, now: Time, count: u64) -> Option<Refusal> {
        let level = self.level_at(now);
        if count == 0 || level >= parts(count) {
            return None;
        }
        Some(match (level < TOKEN, count > self.rate.burst) {
            (true, _) => Refusal::Empty,
            (false, true) => Refusal::AboveBurst,
            (false, false) => Refusal::TooFew,
        })
    }

    /// Takes `count` tokens if they are all there.
    pub fn take(&mut self, now: Time, count: u64) -> Result<(), Refusal> {
        match self.refusal(now, count) {
            Some(refusal) => Err(refusal),
            None => {
                self.charge(now, count);
                Ok(())
            }
        }
    }

    /// Takes `count` tokens after the fact, whether they are there or not.
    pub fn charge(&mut self, now: Time, count: u64) {
        self.refill(now);
        self.level = (self.level - parts(count)).max(-DEBT_MAX * TOKEN);
    }

    /// When `count` tokens lie ready, if nobody takes any before; [`Time::NEVER`] if waiting does not
    /// help.
    pub fn next_time_for(&self, now: Time, count: u64) -> Time {
        let missing = parts(count) - self.level_at(now);
        if count == 0 || missing <= 0 {
            return now;
        }
        if count > self.rate.burst || self.rate.millionths_per_second == 0 {
            return Time::NEVER;
        }
        // Both are positive.
        let micros = (missing as u128).div_ceil(u128::from(self.rate.millionths_per_second));
        match u64::try_from(micros) {
            Ok(micros) => now.max(self.since) + Span(micros),
            Err(_) => Time::NEVER,
        }
    }

    fn refill(&mut self, now: Time) {
        self.level = self.level_at(now);
        self.since = now.max(self.since);
    }

    fn level_at(&self, now: Time) -> i128 {
        // A millionth per second is one part per microsecond; at most 2^128 for all of time.
        let elapsed = i128::from(now.since(self.since).0);
        let come = elapsed.saturating_mul(i128::from(self.rate.millionths_per_second));
        self.level.saturating_add(come).min(full(self.rate))
    }
}

fn parts(count: u64) -> i128 {
    i128::from(count) * TOKEN
}

fn full(rate: Rate) -> i128 {
    parts(rate.burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::from_seconds(seconds).expect("a time")
    }

    fn rate(millionths_per_second: u64, burst: u64) -> Rate {
        Rate { millionths_per_second, burst }
    }

    /// A bucket of `burst` that holds `tokens` thousandths and gets no more.
    fn holding(burst: u64, thousandths: i128) -> Bucket {
        Bucket { rate: rate(0, burst), level: thousandths * TOKEN / 1_000, since: Time::ZERO }
    }

    #[test]
    fn the_reason_of_a_refusal_is_told() {
        // Burst and thousandths of tokens, asked for, refusal.
        for (bucket, count, expected) in [
            ((1, 1_000), 1, None),
            ((10, 10_000), 1, None),
            ((10, 0), 1, Some(Refusal::Empty)),
            ((10, 500), 1, Some(Refusal::Empty)),
            ((2, 2_000), 5, Some(Refusal::AboveBurst)),
            ((10, 3_000), 5, Some(Refusal::TooFew)),
            ((10, -3_000), 0, None),
        ] {
            let bucket = holding(bucket.0, bucket.1);
            assert_eq!(bucket.refusal(Time::ZERO, count), expected, "{bucket:?} {count}");
        }
    }

    #[test]
    fn tokens_come_back_with_time_up_to_the_burst() {
        let mut bucket = Bucket::new(rate(2_500_000, 5), at(0.0));
        assert_eq!(bucket.take(at(0.0), 5), Ok(()));
        assert_eq!(bucket.take(at(0.0), 1), Err(Refusal::Empty));
        assert_eq!(bucket.next_time_for(at(0.0), 1), at(0.4));
        assert_eq!(bucket.take(at(0.399999), 1), Err(Refusal::Empty));
        assert_eq!(bucket.take(at(0.4), 1), Ok(()));
        assert_eq!(bucket.tokens(at(1_000.0)), 5);
        assert_eq!(bucket.next_time_for(at(1_000.0), 5), at(1_000.0));
        assert_eq!(bucket.next_time_for(at(1_000.0), 6), Time::NEVER);
    }

    #[test]
    fn the_stated_time_is_the_first_at_which_they_are_there() {
        for per_second in [1, 3, 7, 999_999, 1_000_003, 123_456_789] {
            let mut bucket = Bucket::new(rate(per_second, 10), at(5.0));
            bucket.charge(at(5.0), 12);
            for count in [1, 3, 10] {
                let when = bucket.next_time_for(at(5.0), count);
                assert_eq!(bucket.refusal(when, count), None, "{per_second} {count}");
                assert!(bucket.refusal(when - Span(1), count).is_some(), "{per_second} {count}");
            }
        }
    }

    #[test]
    fn a_charge_may_go_into_debt() {
        let mut bucket = Bucket::new(rate(1_000_000, 5), at(0.0));
        bucket.charge(at(0.0), 8);
        assert_eq!(bucket.tokens(at(0.0)), -3);
        assert_eq!(bucket.refusal(at(3.5), 1), Some(Refusal::Empty));
        assert_eq!(bucket.next_time_for(at(0.0), 1), at(4.0));
        for _ in 0..4 {
            bucket.charge(at(0.0), u64::MAX);
        }
        assert_eq!(bucket.tokens(at(0.0)), -(DEBT_MAX as i64));
    }

    #[test]
    fn looking_often_loses_nothing() {
        let mut often = Bucket::new(rate(3, 1_000), at(0.0));
        often.charge(at(0.0), 1_000);
        let mut seldom = often;
        for second in 1..=1_000 {
            often.charge(at(f64::from(second) * 1.000_001), 0);
        }
        seldom.refill(at(1_000.001));
        assert_eq!(often, seldom);
    }

    #[test]
    fn a_bucket_without_rate_or_burst_never_fills() {
        let mut bucket = Bucket::new(rate(0, 0), at(0.0));
        assert_eq!(bucket.take(at(9.0), 1), Err(Refusal::Empty));
        assert_eq!(bucket.next_time_for(at(9.0), 1), Time::NEVER);
        bucket.set_rate(at(9.0), rate(1_000_000, 2));
        assert_eq!(bucket.next_time_for(at(9.0), 1), at(10.0));
        bucket.set_rate(at(20.0), rate(u64::MAX, 1));
        assert_eq!(bucket.tokens(Time::NEVER), 1);
        bucket.set_rate(at(20.0), rate(u64::MAX, u64::MAX));
        assert_eq!(bucket.tokens(Time::NEVER), i64::MAX);
    }

    #[test]
    fn an_earlier_time_changes_nothing() {
        let mut bucket = Bucket::new(rate(1_000_000, 5), at(10.0));
        bucket.charge(at(10.0), 5);
        bucket.charge(at(1.0), 0);
        assert_eq!(bucket.tokens(at(1.0)), 0);
        assert_eq!(bucket.next_time_for(at(1.0), 1), at(11.0));
    }
}
