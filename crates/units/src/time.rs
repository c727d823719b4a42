//! Points in time and durations, in integer nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

use serde::{Deserialize, Serialize};

use crate::quantity::{Syntax, quantity};

static SYNTAX: Syntax = Syntax {
    what: "a duration",
    units: &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)],
    example: "25 ms",
};

/// A duration in nanoseconds. Arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

quantity!(Duration, SYNTAX);

impl Duration {
    /// A duration of zero.
    pub const ZERO: Duration = Duration(0);
    /// The longest duration, about 584 years.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Duration {
        Duration(n)
    }

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000))
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000_000))
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000_000_000))
    }

    /// `seconds`, rounded to the nearest nanosecond. Negative and NaN become zero.
    #[expect(clippy::cast_sign_loss, reason = "a float cast saturates: negative and NaN become zero")]
    pub fn from_secs_f64(seconds: f64) -> Duration {
        Duration((seconds * 1e9 + 0.5) as u64)
    }

    /// The duration in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The duration in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// True if the duration is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, or zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// The absolute difference of two durations.
    #[must_use]
    pub const fn abs_diff(self, other: Duration) -> Duration {
        Duration(self.0.abs_diff(other.0))
    }

    /// `self` scaled by a non-negative factor, rounded to the nearest nanosecond.
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Duration {
        Duration::from_secs_f64(self.as_secs_f64() * factor)
    }

    /// Rounded to the nearest multiple of `tick`; unchanged if `tick` is zero.
    #[must_use]
    pub const fn round_to(self, tick: Duration) -> Duration {
        match self.0.saturating_add(tick.0 / 2).checked_div(tick.0) {
            Some(ticks) => Duration(ticks * tick.0),
            None => self,
        }
    }

    /// Rounded up to a multiple of `tick`; unchanged if `tick` is zero.
    #[must_use]
    pub const fn ceil_to(self, tick: Duration) -> Duration {
        if tick.0 == 0 { self } else { Duration(self.0.div_ceil(tick.0).saturating_mul(tick.0)) }
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        self.saturating_sub(other)
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, factor: u64) -> Duration {
        Duration(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, divisor: u64) -> Duration {
        Duration(self.0 / divisor)
    }
}

/// A point in time: nanoseconds since an origin that the caller has chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Instant = Instant(0);
    /// A time that never comes, for a timer that is off.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// `n` nanoseconds after the origin.
    pub const fn from_nanos(n: u64) -> Instant {
        Instant(n)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// False for [`Instant::NEVER`].
    pub const fn is_set(self) -> bool {
        self.0 != u64::MAX
    }

    /// Rounded down to a multiple of `tick` since the origin; unchanged if `tick` is zero.
    #[must_use]
    pub const fn floor_to(self, tick: Duration) -> Instant {
        match self.0.checked_div(tick.0) {
            Some(ticks) => Instant(ticks * tick.0),
            None => self,
        }
    }

    /// The time from `earlier` to `self`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, span: Duration) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_set() { write!(f, "t={:.9} s", self.as_secs_f64()) } else { f.write_str("never") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_saturates() {
        let tick = Duration::from_millis(10);
        assert_eq!(Duration::MAX.ceil_to(tick), Duration::MAX);
        assert!(Duration::MAX.round_to(tick) > Duration::from_secs(1_000_000_000));
        assert_eq!(Instant::NEVER.since(Instant::ZERO), Duration::MAX);
    }

    #[test]
    fn durations_parse_and_format_with_units() {
        assert_eq!("25 ms".parse(), Ok(Duration::from_millis(25)));
        assert_eq!("1.5s".parse(), Ok(Duration::from_millis(1500)));
        assert_eq!("2 MIN".parse(), Ok(Duration::from_secs(120)));
        assert_eq!(Duration::from_micros(37_500).to_string(), "37.5 ms");
        assert_eq!(Duration::ZERO.to_string(), "0 ns");
    }

    #[test]
    fn a_serialised_duration_is_read_back_exactly() {
        let written = |nanos: u64| {
            let text = SYNTAX.exact(nanos);
            assert_eq!(text.parse(), Ok(Duration(nanos)), "{text}");
            text
        };
        assert_eq!(written(80_000_000_000), "80 s"); // not 1.333 min
        assert_eq!(written(90_000_000_000), "1.5 min");
        assert_eq!(written(1_234_567), "1234.567 us");
        assert_eq!(written(25_000_000), "25 ms");
        assert_eq!(written(0), "0 ns");
    }

    #[test]
    fn a_wrong_unit_names_the_allowed_ones() {
        let error = "5 mss".parse::<Duration>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`5 mss` is not a duration; write a number and a unit (ns, us, ms, s, min), for example `25 ms`"
        );
        let told = |text: &str| text.parse::<Duration>().unwrap_err().to_string();
        assert_eq!(told("-5 s"), "`-5 s` is negative; a duration is 0 or more, for example `25 ms`");
        assert_eq!(told("99999999999 s"), "`99999999999 s` is too large; at most 9200000000 s");
        for text in ["", "5", "ms", "-5 ms", "1e3 ms", "1.2.3 ms", "99999999999999999999 s"] {
            assert!(text.parse::<Duration>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Duration::MAX + Duration::from_secs(1), Duration::MAX);
        assert_eq!(Instant::ZERO.since(Instant::from_nanos(5)), Duration::ZERO);
    }

    #[test]
    fn ticks_round_to_the_nearest_and_up() {
        let tick = Duration::from_millis(100);
        assert_eq!(Duration::from_millis(149).round_to(tick), tick);
        assert_eq!(Duration::from_millis(101).ceil_to(tick), tick * 2);
        assert_eq!(Duration::from_millis(7).round_to(Duration::ZERO), Duration::from_millis(7));
    }
}
