//! The sequence state of a direction. Written by [`super::direction`]: `acked`, `heard` and `highest` advance only after
//! [`super::data`] has processed the packet, which therefore sees them as they were before it. Owned by [`super::direction`].

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// One direction's sequence numbers and the round trips from its handshake and timestamps.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct SequenceState {
    /// Everything before this is acknowledged, and since when. If no packet of this direction was captured: when the first
    /// acknowledgment passed.
    pub(super) acked: u64,
    pub(super) acked_at: Instant,
    /// The highest acknowledgment that passed; zero before the first.
    pub(super) heard: u64,
    /// The end of the captured data; zero before the first packet.
    pub(super) highest: u64,
    /// What the sender must have sent by now, captured or not: also by sequence numbers of packets without data.
    pub(super) announced: u64,
    /// Data before this may have been sent before the capture began.
    pub(super) unseen_below: u64,
    /// No captured data is acknowledged yet. What passes now may have been sent before the capture began too, so a DSACK may be about
    /// that.
    pub(super) is_beginning: bool,
    /// The shortest round trips to the receiver, without those measured by data, and to the sender.
    pub(super) far: Option<Duration>,
    pub(super) near: Option<Duration>,
    /// The round trip of the handshake to the sender.
    pub(super) near_bound: Option<Duration>,
    /// SACK was negotiated, so the receiver may report duplicates (DSACK).
    pub(super) may_report: bool,
}
