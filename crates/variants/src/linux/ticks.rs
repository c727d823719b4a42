//! The ticks of the kernel's timers.
//!
//! Timers of TCP expire in ticks of 4 ms (`CONFIG_HZ` = 250, as Debian has it), except those for pacing and
//! for compressed SACKs. The kernel's timer wheel is described in `kernel/time/timer.c`: a timer never expires early, so
//! its delay is rounded up to ticks, and it expires in the tick after. Delays of 63 ticks (252 ms) and more are kept with
//! an eighth of the precision, those of 504 ticks with a 64th, and so on.

use reknit_units::{Duration, Instant};

/// The time between two ticks.
const TICK: Duration = Duration::from_millis(4);
/// Delays of fewer ticks are kept precisely.
const PRECISE: u64 = 63;
/// Each level of the wheel divides the precision by two to the power of this.
const LEVEL: u32 = 3;
/// The levels above the first.
const LEVELS: u32 = 8;

/// When a timer expires that is set at `now` for `at`.
pub(super) fn expiry(now: Instant, at: Instant) -> Instant {
    if !at.is_set() {
        return at;
    }
    let tick = TICK.as_nanos();
    let (begins, ticks) = (now.as_nanos() / tick, at.since(now).as_nanos().div_ceil(tick));
    let level = (0..LEVELS).find(|level| ticks >> (level * LEVEL) < PRECISE).unwrap_or(LEVELS);
    let shift = level * LEVEL;
    let expires = ((begins.saturating_add(ticks) >> shift) + 1) << shift;
    Instant::from_nanos(expires.saturating_mul(tick))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(now: u64, delay: u64) -> u64 {
        let now = Instant::from_nanos(now * 1_000_000);
        expiry(now, now + Duration::from_millis(delay)).as_nanos() / 1_000_000
    }

    #[test]
    fn a_timer_expires_in_the_tick_after_its_delay() {
        assert_eq!(after(0, 0), 4);
        assert_eq!(after(0, 8), 12);
        assert_eq!(after(3, 9), 16);
        assert_eq!(after(1, 248), 252);
    }

    #[test]
    fn long_delays_are_less_precise() {
        assert_eq!(after(0, 252), 256);
        assert_eq!(after(4, 252), 288);
        assert_eq!(after(0, 2016), 2048);
        assert_eq!(after(4, 2016), 2048);
    }

    #[test]
    fn what_is_not_set_stays_so() {
        assert_eq!(expiry(Instant::ZERO, Instant::NEVER), Instant::NEVER);
    }
}
