//! The clocks of services: for limits and durations, and the time of day for logs.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Now, on a clock that is never set back.
#[expect(clippy::disallowed_methods, reason = "real time enters here and nowhere else")]
pub fn now() -> Instant {
    Instant::now()
}

/// Time since 1970.
#[expect(clippy::disallowed_methods, reason = "logs carry the time of day")]
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
