//! What is known about a direction beside its data.

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// One direction's numbers, and the round trips that the handshake and timestamps show.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Known {
    /// Everything before it is acknowledged, and since when.
    pub(super) acked: u64,
    pub(super) acked_at: Instant,
    /// The highest acknowledgment that passed; zero before the first.
    pub(super) heard: u64,
    /// The end of the data that has been seen; zero before the first packet.
    pub(super) highest: u64,
    /// What the sender must have sent by now, captured or not: sequence numbers of packets without data tell it.
    pub(super) announced: u64,
    /// Data before this may have been sent before the capture began.
    pub(super) unseen_below: u64,
    /// The shortest round trips to the receiver, without those that data has shown, and to the sender.
    pub(super) far: Option<Duration>,
    pub(super) near: Option<Duration>,
    /// The round trip of the handshake to the sender.
    pub(super) near_bound: Option<Duration>,
    /// The handshake allows reports of duplicates.
    pub(super) may_report: bool,
}
