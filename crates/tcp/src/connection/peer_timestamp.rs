//! The peer's newest timestamp: the one that is echoed, and that old duplicates are recognized by (RFC 7323 §4.3 and §5.3).

use reknit_units::{Duration, Instant};

use crate::facts::TIMESTAMP_TICK;
use crate::seq::Offset;

/// After this time without an update, TS.Recent is no longer valid (RFC 7323 §5.5).
const OUTDATED: Duration = Duration::from_secs(24 * 24 * 3600);

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct PeerTimestamp {
    ts_recent: u32,
    /// When it arrived.
    at: Instant,
    /// Last.ACK.sent: what the newest segment of ours acknowledges. Kept without timestamps, too.
    last_ack_sent: Offset,
}

impl PeerTimestamp {
    pub(super) fn new(now: Instant) -> PeerTimestamp {
        PeerTimestamp { ts_recent: 0, at: now, last_ack_sent: Offset::SYN }
    }

    /// TS.Recent.
    pub(super) fn recent(&self) -> u32 {
        self.ts_recent
    }

    /// Last.ACK.sent.
    pub(super) fn last_ack_sent(&self) -> Offset {
        self.last_ack_sent
    }

    /// The peer's SYN had this timestamp.
    pub(super) fn on_syn(&mut self, now: Instant, val: u32) {
        (self.ts_recent, self.at) = (val, now);
    }

    /// A segment of ours acknowledges everything below `ack`.
    pub(super) fn on_ack_sent(&mut self, ack: Offset) {
        self.last_ack_sent = ack;
    }

    /// RFC 7323 §4.3: the timestamp to echo is that of the next segment in order. Only a segment that has passed all
    /// checks may set it: a forged timestamp would make PAWS reject everything after it.
    pub(super) fn note(&mut self, now: Instant, start: Offset, val: u32) {
        if start <= self.last_ack_sent && !self.is_older(now, val, 0) {
            (self.ts_recent, self.at) = (val, now);
        }
    }

    /// True if the timestamp is older than TS.Recent by more than `tolerated` milliseconds.
    pub(super) fn is_older(&self, now: Instant, val: u32, tolerated: i32) -> bool {
        let outdated = now.since(self.at) > OUTDATED;
        val.wrapping_sub(self.ts_recent).cast_signed() < -tolerated && !outdated
    }

    /// How much older the timestamp is than TS.Recent.
    pub(super) fn age(&self, val: u32) -> Duration {
        TIMESTAMP_TICK * u64::from(self.ts_recent.wrapping_sub(val))
    }
}
