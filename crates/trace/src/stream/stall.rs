//! Stalls: data was outstanding, but nothing was acknowledged for longer than a retransmission timer runs. Called by
//! [`super::data`]: `on_retransmission`, then `on_sent`, for each packet with data; `on_progress` for each ACK with progress.
//! Owned by [`super::data`].

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::round_trip::MIN_TIMEOUT;

/// Without retransmissions, the receiver may cause a shorter silence: it delays ACKs (RFC 9293 §3.8.6.3).
const MIN_SILENCE: Duration = Duration::from_secs(1);

/// Without acknowledgments, a sender does not send so many new packets for so long, or after a retransmission.
const MANY_NEW: u32 = 10;

/// Follows the progress of one direction.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct StallDetector {
    /// Since when data is outstanding without progress; none if nothing is outstanding.
    since: Option<Instant>,
    retransmissions: u32,
    /// Packets with new data since the first retransmission, or since the last progress if there was none.
    new_packets: u32,
    /// The first retransmission, or else the first packet with outstanding data.
    frame: u64,
    at: Instant,
    /// The closed window explains it.
    is_window: bool,
}

/// A time without progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stall {
    pub(super) lasted: Duration,
    pub(super) retransmissions: u32,
    /// The sender goes on: it gets acknowledgments that were not captured.
    pub(super) goes_on: bool,
    pub(super) frame: u64,
    pub(super) at: Instant,
}

impl StallDetector {
    /// A packet with data that is not acknowledged; `is_new`: nothing with these bytes has passed before.
    #[inline]
    pub(super) fn on_sent(&mut self, is_new: bool, frame: u64, now: Instant) {
        if self.since.is_none() {
            *self = StallDetector { since: Some(now), frame, at: now, ..StallDetector::default() };
        }
        self.new_packets += u32::from(is_new);
    }

    /// A retransmission.
    pub(super) fn on_retransmission(&mut self, frame: u64, now: Instant) {
        if self.retransmissions == 0 {
            (self.frame, self.at, self.new_packets) = (frame, now, 0);
        }
        self.retransmissions += 1;
    }

    /// The window is closed. Called before `on_progress` of the same ACK, which clears it.
    pub(super) fn on_closed_window(&mut self) {
        self.is_window = true;
    }

    /// The window opens: the next data is outstanding anew.
    pub(super) fn on_opened_window(&mut self) {
        self.since = None;
    }

    /// True if there may have been a stall until now. Called before the round trip is updated by the acknowledgment that ends it.
    #[inline]
    pub(super) fn may_have_stalled(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now.since(since) >= MIN_TIMEOUT)
    }

    /// Something was acknowledged. `timeout`: the shortest time that a retransmission timer runs, if there may have been a stall.
    #[inline]
    pub(super) fn on_progress(
        &mut self,
        is_outstanding: bool,
        timeout: Option<Duration>,
        now: Instant,
    ) -> Option<Stall> {
        self.since?;
        let stall = timeout.and_then(|timeout| self.stall(timeout, now));
        self.since = is_outstanding.then_some(now);
        (self.retransmissions, self.new_packets, self.is_window) = (0, 0, false);
        stall
    }

    /// The connection or the capture ends.
    pub(super) fn finish(&mut self, timeout: Duration, now: Instant) -> Option<Stall> {
        let stall = self.stall(timeout, now);
        *self = StallDetector::default();
        stall
    }

    #[cold]
    fn stall(&self, timeout: Duration, now: Instant) -> Option<Stall> {
        let lasted = now.since(self.since?);
        let least = if self.retransmissions > 0 { timeout } else { timeout.max(MIN_SILENCE) };
        let StallDetector { retransmissions, frame, at, .. } = *self;
        let goes_on = self.new_packets >= MANY_NEW;
        let explains = self.is_window || retransmissions == 0 && goes_on;
        (lasted >= least && !explains).then_some(Stall { lasted, retransmissions, goes_on, frame, at })
    }
}
