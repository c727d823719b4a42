//! What the tests of single plug-ins start from: eight segments in flight, window and threshold of eight.

use reknit_tcp::experiment::{Experiment, Features};
use reknit_tcp::facts::{AckFacts, Phase, SendState};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Duration, Instant, Segments};

pub(crate) const SMSS: Bytes = Bytes(1000);

pub(crate) fn segments(n: u32) -> Bytes {
    Segments(n).of(SMSS)
}

pub(crate) fn state() -> SendState {
    SendState {
        snd_una: Offset::DATA,
        snd_nxt: Offset::DATA + segments(8),
        snd_wnd: Bytes::MAX,
        max_snd_wnd: Bytes::MAX,
        smss: SMSS,
        cwnd: segments(8),
        ssthresh: segments(8),
        recovery_window: segments(8),
        snapshot: None,
        phase: Phase::Recovery,
        recover: Offset::DATA + segments(8),
        dup_acks: Segments::ZERO,
        dup_thresh: Segments(3),
        limited_transmit: Bytes::ZERO,
        flight_before_disorder: Bytes::ZERO,
        postponed_until: Instant::ZERO,
        frozen_until: Instant::ZERO,
        srtt: None,
        rto: Duration::from_secs(1),
        rto_expires: Instant::NEVER,
        can_send_new: true,
        sack: true,
        timestamps: false,
        ecn: false,
        features: Features::NONE,
    }
}

/// An ACK without news.
pub(crate) fn ack() -> AckFacts<'static> {
    AckFacts {
        ack: Offset::DATA,
        una_before: Offset::DATA,
        flight_before: segments(8),
        stale: false,
        newly: &[],
        newly_sacked: Segments::ZERO,
        delivered: Bytes::ZERO,
        highest: None,
        duplicate: false,
        dsack: None,
        echoed: None,
        ece: false,
        experiment: Experiment::default(),
        reordering: None,
        rtt: None,
        rtt_sample: None,
    }
}
