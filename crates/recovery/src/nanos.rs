//! Times and durations.

use core::ops::{Add, Div, Mul, Sub};
use core::time::Duration;

/// A duration in nanoseconds, or a time: nanoseconds since an origin that the caller has chosen. Arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Nanos(pub u64);

impl Nanos {
    /// A duration of zero, or the origin.
    pub const ZERO: Nanos = Nanos(0);
    /// A time that never comes, or the longest duration.
    pub const NEVER: Nanos = Nanos(u64::MAX);

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000))
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000_000))
    }

    /// Whole microseconds, rounded down, at most `u32::MAX`.
    pub(crate) const fn as_micros_u32(self) -> u32 {
        let micros = self.0 / 1_000;
        if micros > u32::MAX as u64 { u32::MAX } else { micros as u32 }
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Nanos {
    type Output = Nanos;
    fn mul(self, factor: u64) -> Nanos {
        Nanos(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Nanos {
    type Output = Nanos;
    fn div(self, divisor: u64) -> Nanos {
        Nanos(self.0 / divisor)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Duration {
        Duration::from_nanos(nanos.0)
    }
}
