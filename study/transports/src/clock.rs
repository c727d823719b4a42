//! The simulator's time as the `std::time::Instant` that some crates want.

use std::sync::LazyLock;

use reknit_units::Instant;

/// Any time will do: only differences matter.
#[expect(clippy::disallowed_methods, reason = "there is no other way to make an instant; no result depends on it")]
static ZERO: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

/// `now` as an instant of the standard library.
pub fn to_std(now: Instant) -> std::time::Instant {
    *ZERO + std::time::Duration::from_nanos(now.as_nanos())
}

/// And back.
pub fn from_std(at: std::time::Instant) -> Instant {
    let since = at.saturating_duration_since(*ZERO).as_nanos();
    Instant::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
}
