//! The initial state for tests of single plug-ins: eight segments in flight, cwnd and ssthresh of eight segments.

use reknit_tcp::Config;
use reknit_tcp::experiment::ExperimentalOption;
use reknit_tcp::facts::{AckFacts, Phase, SendState};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Segments};

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
        ssthresh: segments(8),
        recovery_window: segments(8),
        phase: Phase::Recovery,
        recover: Offset::DATA + segments(8),
        can_send_new: true,
        sack: true,
        ..SendState::new(&Config { mss: SMSS.0 as u16, initial_window: Segments(8), ..Config::default() })
    }
}

/// An ACK that reports nothing new.
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
        experiment: ExperimentalOption::default(),
        reordering: None,
        rtt: None,
        rtt_sample: None,
        rate: None,
    }
}
