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

/// A moment that may not be known, in half the room of an `Option`. It is stored like one.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<Time>", into = "Option<Time>")]
pub struct MaybeTime(u64);

/// The same of a length of time.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<Span>", into = "Option<Span>")]
pub struct MaybeSpan(u64);

/// Stands for none. Nobody can tell a length of this from one that is shorter by a microsecond.
const NONE: u64 = u64::MAX;

macro_rules! maybe {
    ($maybe:ident, $what:ident) => {
        impl $maybe {
            pub const NONE: $maybe = $maybe(NONE);

            pub fn get(self) -> Option<$what> {
                (self.0 != NONE).then_some($what(self.0))
            }

            pub fn is_none(self) -> bool {
                self.0 == NONE
            }

            pub fn is_some(self) -> bool {
                self.0 != NONE
            }
        }

        impl Default for $maybe {
            fn default() -> $maybe {
                $maybe::NONE
            }
        }

        impl From<Option<$what>> for $maybe {
            fn from(what: Option<$what>) -> $maybe {
                $maybe(what.map_or(NONE, |what| what.0.min(NONE - 1)))
            }
        }

        impl From<$maybe> for Option<$what> {
            fn from(maybe: $maybe) -> Option<$what> {
                maybe.get()
            }
        }

        impl From<$what> for $maybe {
            fn from(what: $what) -> $maybe {
                Some(what).into()
            }
        }

        impl fmt::Debug for $maybe {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.get().fmt(f)
            }
        }
    };
}

maybe!(MaybeTime, Time);
maybe!(MaybeSpan, Span);

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
    fn what_may_not_be_known_is_like_an_option() {
        for time in [None, Some(Time::ZERO), Some(Time(7))] {
            let maybe = MaybeTime::from(time);
            assert_eq!(maybe.get(), time);
            let bytes = crate::codec::encode(&time).expect("small");
            assert_eq!(crate::codec::encode(&maybe).expect("small"), bytes);
            assert_eq!(crate::codec::decode::<MaybeTime>(&bytes).expect("whole"), maybe);
        }
        assert_eq!(MaybeSpan::from(Span(u64::MAX)).get(), Some(Span(u64::MAX - 1)));
    }

    #[test]
    fn never_stays_never() {
        assert_eq!(Time::NEVER + Span(1), Time::NEVER);
    }
}
