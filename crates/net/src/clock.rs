//! The only module that reads a clock.

use reknit_units::Instant;
use tokio::time::Instant as Tokio;

/// A monotonic clock. It starts an hour after the origin of time, because some of the stack's times look back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Tokio,
}

/// The longest time that the runtime is asked to wait.
const DAY: std::time::Duration = std::time::Duration::from_hours(24);
const HEAD_START: std::time::Duration = std::time::Duration::from_hours(1);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { origin: Tokio::now() - HEAD_START }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }

    /// The runtime's time for `at`; a day from now if that is further away.
    pub(crate) fn at(self, at: Instant) -> Tokio {
        let far = self.origin.elapsed() + DAY;
        self.origin + std::time::Duration::from_nanos(at.as_nanos()).min(far)
    }
}
