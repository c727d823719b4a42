//! What made the sender retransmit, by the acknowledgments it had received. [`super::downstream`] calls `on_arrival` for each range
//! that an ACK delivers, then `on_ack` once; [`super::data`] calls `why` for each range that passes again.
//! Owned by [`super::downstream`].

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::ranges::Range;
use super::round_trip::RoundTrip;
use crate::RetransmitReason;

/// No common system has a retransmission timeout as short as this.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(190);

/// A loss recovery in progress: until everything that had been sent by then is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
enum Episode {
    #[default]
    None,
    Fast {
        until: u64,
    },
    Timeout {
        until: u64,
    },
}

/// What the sender knows from the acknowledgments.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Causes {
    last_ack: Option<Instant>,
    /// When data was last newly acknowledged or SACKed.
    progress: Option<Instant>,
    /// The highest position in the order of sending of all data that arrived.
    top: u64,
    /// ACKs without progress since the last progress.
    repeated_acks: u32,
    episode: Episode,
    /// A tail loss probe was sent since the last progress.
    has_probed: bool,
}

impl Causes {
    /// Data with this position in the order of sending has arrived.
    #[inline]
    pub(super) fn on_arrival(&mut self, order: u64) {
        self.top = self.top.max(order);
    }

    /// The highest position in the order of sending of all data that arrived.
    #[inline]
    pub(super) fn top(&self) -> u64 {
        self.top
    }

    /// An acknowledgment, after everything that it delivers.
    #[inline]
    pub(super) fn on_ack(&mut self, has_progressed: bool, now: Instant) {
        self.last_ack = Some(now);
        if has_progressed {
            self.progress = Some(now);
            self.repeated_acks = 0;
            self.has_probed = false;
        } else {
            self.repeated_acks += 1;
        }
    }

    pub(super) fn last_ack(&self) -> Option<Instant> {
        self.last_ack
    }

    /// What makes the sender retransmit `range` now. Called before the retransmission is added to `range`.
    pub(super) fn why(
        &mut self,
        range: &Range,
        (acked, highest): (u64, u64),
        now: Instant,
        round_trip: &RoundTrip,
    ) -> RetransmitReason {
        match self.episode {
            Episode::Timeout { until } if acked < until && range.start < until => return RetransmitReason::Timeout,
            Episode::Timeout { until } | Episode::Fast { until } if acked >= until => self.episode = Episode::None,
            _ => {}
        }
        let is_overtaken = self.top > range.order() || self.repeated_acks > 0;
        let last = [self.progress, Some(range.last_sent().at)].into_iter().flatten().max().unwrap_or(now);
        let idle = now.since(last);
        let is_timer = self.last_ack.is_none_or(|ack| now.since(ack) > clocked_by_acks(round_trip));
        let (is_lowest, is_highest) = (range.start <= acked, range.end >= highest);
        let why = if is_overtaken && !(is_timer && is_lowest && idle >= round_trip.shortest_timeout()) {
            RetransmitReason::FastRetransmit
        } else if !is_timer {
            // Clocked by an ACK: the next hole of a recovery without SACK.
            if self.episode == Episode::None { RetransmitReason::Unknown } else { RetransmitReason::FastRetransmit }
        } else if is_highest && !is_lowest {
            RetransmitReason::Probe
        } else if is_lowest && !is_highest || self.has_probed {
            RetransmitReason::Timeout
        } else if idle < SHORTEST_TIMEOUT {
            RetransmitReason::Probe
        } else {
            RetransmitReason::Unknown
        };
        match why {
            RetransmitReason::FastRetransmit => self.episode = Episode::Fast { until: highest },
            RetransmitReason::Timeout => self.episode = Episode::Timeout { until: highest },
            RetransmitReason::Probe => self.has_probed = true,
            RetransmitReason::Unknown => {}
        }
        why
    }
}

/// A packet that follows an ACK within this time was sent because of it.
fn clocked_by_acks(round_trip: &RoundTrip) -> Duration {
    (round_trip.smoothed() / 8).max(Duration::from_millis(2))
}
