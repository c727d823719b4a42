//! Round-trip times between the point of capture and an end.
//!
//! Samples say how long a round trip may take, not how long it takes at least: a capture may begin while a queue is full.
//! Verdicts by time ("too soon to be the answer to that packet") need a lower bound that is known ([`RoundTrip::bound`]).

use std::collections::VecDeque;

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::spread::Spread;

/// The samples of a round trip: smoothed as in RFC 6298, the smallest, and their distribution.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RoundTrip {
    least: Option<Duration>,
    /// The round trip of the handshake, before the connection filled any queue, or a shorter one.
    bound: Option<Duration>,
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
        self.bound = self.bound.map(|bound| bound.min(sample));
        self.samples.add(sample.as_nanos() / 1_000);
    }

    /// A round trip that is known to be possible, for example that of the handshake.
    pub(super) fn at_most(&mut self, sample: Duration) {
        let least = self.least.map_or(sample, |least| least.min(sample));
        self.least = Some(least);
        self.bound = self.bound.map(|bound| bound.min(least));
        if self.samples.values == 0 {
            self.smoothed = least;
            self.variation = least / 2;
        }
    }

    /// The round trip of the handshake.
    pub(super) fn on_handshake(&mut self, sample: Duration) {
        self.at_most(sample);
        self.bound = Some(self.bound.map_or(sample, |bound| bound.min(sample)));
    }

    /// No answer comes sooner than this, as far as is known; none if the handshake was not captured.
    pub(super) fn bound(&self) -> Option<Duration> {
        self.bound
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
    /// The newest values, which grow, and when they passed.
    passed: VecDeque<(u32, Instant)>,
    newest: Option<u32>,
}

impl Echoes {
    const MOST: usize = 32;

    /// A packet with this TSval passes; only the first with each value counts.
    pub(super) fn on_value(&mut self, value: u32, now: Instant) {
        if self.newest.is_some_and(|newest| value.wrapping_sub(newest).cast_signed() <= 0) {
            return;
        }
        self.newest = Some(value);
        if self.passed.len() == Self::MOST {
            self.passed.pop_front();
        }
        self.passed.push_back((value, now));
    }

    /// The time since the packet with the echoed value passed; none if that is not known, or longer than it has been. A
    /// further echo of the same value or of an older one can only take longer, so these are forgotten.
    pub(super) fn since(&mut self, echo: u32, now: Instant) -> Option<Duration> {
        let newest = self.newest?;
        let age = |value: u32| newest.wrapping_sub(value);
        let (oldest, sent) = *self.passed.front()?;
        if oldest == echo {
            self.passed.pop_front();
            return Some(now.since(sent));
        }
        if age(oldest) < age(echo) {
            return None; // as mostly, if the value has been echoed or the round trip is long
        }
        let place = self.passed.iter().position(|(value, _)| age(*value) <= age(echo))?;
        let (value, sent) = self.passed[place];
        if value != echo {
            return None;
        }
        self.passed.drain(..=place);
        Some(now.since(sent))
    }
}
