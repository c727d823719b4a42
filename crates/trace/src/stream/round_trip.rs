//! Round-trip times between the point of capture and an end.

use reknit_units::{Duration, Instant};

use crate::spread::Spread;

/// The samples of a round trip: smoothed as in RFC 6298, the smallest, and their distribution.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrip {
    least: Option<Duration>,
    smoothed: Duration,
    variation: Duration,
    /// The samples in microseconds.
    pub(crate) samples: Spread,
}

impl RoundTrip {
    pub(super) fn add(&mut self, sample: Duration) {
        if self.samples.values == 0 {
            self.smoothed = sample;
            self.variation = sample / 2;
        } else {
            self.variation = (self.variation * 3 + self.smoothed.abs_diff(sample)) / 4;
            self.smoothed = (self.smoothed * 7 + sample) / 8;
        }
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        self.samples.add(sample.as_nanos() / 1_000);
    }

    /// A round trip that is known to be possible, for example that of the handshake.
    pub(super) fn at_most(&mut self, sample: Duration) {
        let least = self.least.map_or(sample, |least| least.min(sample));
        self.least = Some(least);
        if self.samples.values == 0 {
            self.smoothed = least;
            self.variation = least / 2;
        }
    }

    pub(crate) fn least(&self) -> Option<Duration> {
        self.least
    }

    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The shortest retransmission timeout that this round trip allows in common systems: Linux adds at least 200 ms.
    pub(super) fn shortest_timeout(&self) -> Duration {
        self.smoothed + (self.variation * 4).max(Duration::from_millis(150))
    }
}

/// Matches the timestamps that one end sends with their echoes: how long the other end takes, as seen here.
#[derive(Clone, Debug, Default)]
pub(super) struct Echoes {
    sent: Vec<(u32, Instant)>,
    next: usize,
}

impl Echoes {
    const MOST: usize = 32;

    /// A packet with this TSval passes; only the first with each value counts.
    pub(super) fn on_value(&mut self, value: u32, now: Instant) {
        let newest = self.sent.get(self.next.wrapping_sub(1) % Self::MOST);
        if newest.is_some_and(|(newest, _)| value.wrapping_sub(*newest).cast_signed() <= 0) {
            return;
        }
        if self.sent.len() < Self::MOST {
            self.sent.push((value, now));
        } else {
            self.sent[self.next % Self::MOST] = (value, now);
        }
        self.next = (self.next + 1) % Self::MOST;
    }

    /// The time since the packet with the echoed value passed.
    pub(super) fn since(&self, echo: u32, now: Instant) -> Option<Duration> {
        let (_, sent) = self.sent.iter().find(|(value, _)| *value == echo)?;
        Some(now.since(*sent))
    }
}
