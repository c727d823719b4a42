//! Round-trip times between the point of capture and an end.

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::spread::Spread;

/// The samples of a round trip: smoothed as in RFC 6298, the smallest, and their distribution.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Echoes {
    /// The newest values, which grow, and when they passed: the place of the oldest is `next` once there are many.
    values: Vec<u32>,
    sent: Vec<Instant>,
    next: usize,
    newest: u32,
}

impl Echoes {
    const MOST: usize = 32;

    /// A packet with this TSval passes; only the first with each value counts.
    pub(super) fn on_value(&mut self, value: u32, now: Instant) {
        if !self.values.is_empty() && value.wrapping_sub(self.newest).cast_signed() <= 0 {
            return;
        }
        self.newest = value;
        if self.values.len() < Self::MOST {
            self.values.push(value);
            self.sent.push(now);
        } else {
            self.values[self.next] = value;
            self.sent[self.next] = now;
        }
        self.next = (self.next + 1) % Self::MOST;
    }

    /// The time since the packet with the echoed value passed.
    pub(super) fn since(&self, echo: u32, now: Instant) -> Option<Duration> {
        let oldest = if self.values.len() < Self::MOST { 0 } else { self.next };
        let place = |nth: usize| (oldest + nth) % Self::MOST;
        let age = |nth: usize| self.newest.wrapping_sub(self.values[place(nth)]);
        let wanted = self.newest.wrapping_sub(echo);
        let (mut low, mut high) = (0, self.values.len());
        if high == 0 || age(0) < wanted {
            return None; // as mostly if the round trip is long
        }
        while low < high {
            let middle = low.midpoint(high);
            (low, high) = if age(middle) > wanted { (middle + 1, high) } else { (low, middle) };
        }
        let is_found = low < self.values.len() && age(low) == wanted;
        is_found.then(|| now.since(self.sent[place(low)]))
    }
}
