//! A rate limit for answers that any host can trigger: RSTs, ACKs in TIME-WAIT, and ICMP messages. Asked before each is queued.
//! Owned by `answers` and `messages`.

use reknit_units::{Duration, Instant};

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    /// The time that is one token.
    interval: Duration,
    /// The unused time at `counted`; at most [`BURST`].
    credit: Duration,
    counted: Instant,
}

/// The tokens of at most this time can be used at once.
const BURST: Duration = Duration::from_secs(1);

impl RateLimit {
    /// At most `per_second` on average, and as many at once. Zero allows none.
    pub(crate) fn new(per_second: u32) -> RateLimit {
        let interval = BURST.as_nanos().checked_div(u64::from(per_second));
        let interval = interval.map_or(Duration::MAX, Duration::from_nanos);
        RateLimit { interval, credit: BURST, counted: Instant::ZERO }
    }

    /// True if one more is allowed now; it then counts.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        self.credit = (self.credit + now.since(self.counted)).min(BURST);
        self.counted = self.counted.max(now);
        if self.credit < self.interval {
            return false;
        }
        self.credit = self.credit - self.interval;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_allows_its_share() {
        for start in [0, 100] {
            let mut limit = RateLimit::new(10);
            let start = Instant::ZERO + Duration::from_secs(start);
            let allowed = |limit: &mut RateLimit, at| (0..100).filter(|_| limit.allows(at)).count();
            assert_eq!(allowed(&mut limit, start), 10);
            assert_eq!(allowed(&mut limit, start + Duration::from_secs(1)), 10);
            assert_eq!(allowed(&mut limit, start + Duration::from_millis(1300)), 3);
        }
        assert!(!RateLimit::new(0).allows(Instant::ZERO + Duration::from_secs(5)));
    }
}
