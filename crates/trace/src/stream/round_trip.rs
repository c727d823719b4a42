//! Round-trip times between the capture point and an end. Owned by [`super::data`], one for each
//! direction with data. [`super::downstream`] adds a sample for each range that arrived unambiguously (`add`); `Data::new` takes over
//! the round trip of the handshake (`on_handshake`); `Direction::note_far` lowers the smallest by later ones (`at_most`).
//!
//! The smallest sample is not a lower bound of the round trip: a capture may begin while a queue is full. Verdicts by time ("too
//! soon to be the answer to that packet") need a known lower bound ([`RoundTrip::bound`]).

use std::collections::VecDeque;

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::spread::LogHistogram;

/// The shortest of so many samples is near the shortest there is.
const SOME_SAMPLES: u64 = 8;
/// No retransmission timer runs for less than this and the round trip.
pub(super) const MIN_TIMEOUT: Duration = Duration::from_millis(150);

/// The samples of a round trip: smoothed as in RFC 6298, the smallest, and their distribution.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RoundTrip {
    least: Option<Duration>,
    /// The round trip of the handshake, before the connection filled any queue, or a shorter sample.
    bound: Option<Duration>,
    smoothed: Duration,
    variation: Duration,
    /// The samples in microseconds.
    pub(crate) samples: LogHistogram,
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

    /// A round trip that was seen, for example by timestamps, but is no sample of the distribution.
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

    /// No answer comes sooner than this, as far as known; none if the handshake was not captured.
    pub(super) fn bound(&self) -> Option<Duration> {
        self.bound
    }

    /// The same with a margin. The handshake alone may have been slow, for example while a radio link was set up.
    pub(super) fn shortest_answer(&self) -> Option<Duration> {
        let share = if self.samples.values < SOME_SAMPLES { 0.5 } else { 0.9 };
        self.bound.map(|bound| bound.mul_f64(share))
    }

    pub(crate) fn least(&self) -> Option<Duration> {
        self.least
    }

    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The shortest retransmission timeout of common systems with this round trip: Linux adds at least 200 ms.
    pub(super) fn shortest_timeout(&self) -> Duration {
        self.smoothed + (self.variation * 4).max(MIN_TIMEOUT)
    }
}

/// Matches the timestamps that one end sends with their echoes, for the round trip to the other end. Called by
/// `Stream::on_packet` after both directions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Echoes {
    /// The newest values, ascending, and when they passed.
    passed: VecDeque<(u32, Instant)>,
    newest: Option<u32>,
}

impl Echoes {
    const MOST: usize = 32;

    /// A packet with this TSval; only the first with each value counts.
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

    /// The time since the packet with the echoed value passed; none if it is not known or the value was echoed before. A further
    /// echo of the same or an older value can only take longer, so these values are forgotten.
    pub(super) fn since(&mut self, echo: u32, now: Instant) -> Option<Duration> {
        let newest = self.newest?;
        let age = |value: u32| newest.wrapping_sub(value);
        let (oldest, sent) = *self.passed.front()?;
        if oldest == echo {
            self.passed.pop_front();
            return Some(now.since(sent));
        }
        if age(oldest) < age(echo) {
            return None; // the usual case: the value has been echoed, or the round trip is long
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
