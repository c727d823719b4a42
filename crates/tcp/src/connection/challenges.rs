//! Rate limit for the answers to unacceptable segments (RFC 5961 §7).

use reknit_units::{Duration, Instant};

use crate::config::Paws;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Challenges {
    /// When the first answer of the current period was sent.
    began: Instant,
    sent: u32,
}

impl Challenges {
    /// Answers in a period; the values that RFC 5961 proposes.
    const MAX: u32 = 10;
    const PERIOD: Duration = Duration::from_secs(5);
    /// In which Linux sends one (`tcp_invalid_ratelimit`).
    const LINUX_PERIOD: Duration = Duration::from_millis(500);

    pub(super) fn new(now: Instant) -> Challenges {
        Challenges { began: now, sent: 0 }
    }

    pub(super) fn allow(&mut self, now: Instant, paws: Paws) -> bool {
        let (most, period) = match paws {
            Paws::Rfc7323 => (Challenges::MAX, Challenges::PERIOD),
            Paws::Linux => (1, Challenges::LINUX_PERIOD),
        };
        if self.sent == 0 || now.since(self.began) >= period {
            *self = Challenges { began: now, sent: 0 };
        }
        self.sent += 1;
        self.sent <= most
    }
}
