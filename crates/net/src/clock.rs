//! The only module that reads a clock.

use reknit_units::{Duration, Instant};
use tokio::time::Instant as Tokio;

/// A monotonic clock. It starts an hour after the origin of time, because the stack computes some times before the present.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Tokio,
}

const HEAD_START: std::time::Duration = std::time::Duration::from_hours(1);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { origin: Tokio::now() - HEAD_START }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }
}

/// A time for the standard library.
pub(crate) fn to_std(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}

/// A time of the standard library.
pub(crate) fn from_std(time: std::time::Duration) -> Duration {
    u64::try_from(time.as_nanos()).map_or(Duration::MAX, Duration::from_nanos)
}
