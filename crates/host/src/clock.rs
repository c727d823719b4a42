//! The only place that reads a clock.

use reknit_units::Instant;

/// A monotonic clock that starts at zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "real time enters here and nowhere else")]
    pub(crate) fn start() -> Clock {
        Clock { origin: std::time::Instant::now() }
    }

    /// The time of day, in nanoseconds since 1970, at which this clock stood at zero.
    #[expect(clippy::disallowed_methods, reason = "captures carry the time of day")]
    pub(crate) fn time_of_day(self) -> Instant {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let elapsed = self.origin.elapsed();
        Instant::from_nanos(since_1970.saturating_sub(elapsed).as_nanos() as u64)
    }

    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }
}
