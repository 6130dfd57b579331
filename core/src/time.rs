//! Time as the machines see it: whole microseconds since the start of the runtime, always given
//! from outside. Microseconds keep every second-valued number of a file exact for centuries.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// A moment, in microseconds since the runtime's own beginning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Time(pub u64);

/// A length of time, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Span(pub u64);

const MICROS_PER_SECOND: f64 = 1_000_000.0;

/// The largest number of seconds a file or a caller may state: about 31,000 years.
pub const SECONDS_MAX: f64 = 1e12;

impl Time {
    pub const ZERO: Time = Time(0);
    /// Later than any moment that can be computed: "no deadline".
    pub const NEVER: Time = Time(u64::MAX);

    /// From seconds; `None` for what is negative, not a number or too large.
    pub fn from_seconds(seconds: f64) -> Option<Time> {
        Span::from_seconds(seconds).map(|span| Time(span.0))
    }

    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / MICROS_PER_SECOND
    }

    /// The span since `earlier`, or zero when `earlier` is not earlier.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    pub const ZERO: Span = Span(0);

    pub const fn from_millis(millis: u64) -> Span {
        Span(millis * 1_000)
    }

    pub const fn from_whole_seconds(seconds: u64) -> Span {
        Span(seconds * 1_000_000)
    }

    /// From seconds; `None` for what is negative, not a number or too large.
    pub fn from_seconds(seconds: f64) -> Option<Span> {
        if !(0.0..=SECONDS_MAX).contains(&seconds) {
            return None;
        }
        Some(Span((seconds * MICROS_PER_SECOND).round() as u64))
    }

    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / MICROS_PER_SECOND
    }

    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", self.as_seconds())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", self.as_seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_survive_the_way_in_and_out() {
        assert_eq!(Time::from_seconds(3600.05), Some(Time(3_600_050_000)));
        assert_eq!(Time(3_600_050_000).as_seconds(), 3600.05);
        assert_eq!(Span::from_seconds(0.05), Some(Span::from_millis(50)));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY, SECONDS_MAX * 2.0] {
            assert_eq!(Time::from_seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn never_stays_never() {
        assert_eq!(Time::NEVER + Span(1), Time::NEVER);
    }
}
