//! What is left open when the connection or the capture ends has no verdict, and the reason is right.

#[expect(dead_code, reason = "other tests need more")]
mod wire;

use std::collections::BTreeMap;

use reknit_tcp::segment::Flags;
use reknit_trace::UnknownReason;
use wire::{ACK, Headers, Passing, Wire};

/// Four segments, of which the second is lost, and an ACK that shows it.
fn with_a_hole() -> Wire {
    let mut wire = Wire::opened(Headers { near: 1, ..Headers::default() });
    for (ms, seq) in [(110.0, 1), (110.2, 2001), (110.3, 3001)] {
        wire.data(ms, 0, seq, 1000);
    }
    wire.ack(110.1, 1, 1001);
    wire.pass(110.4, 1, Passing { flags: ACK, seq: 1, ack: 1001, sack: &[(2001, 4001)], ..Passing::default() });
    wire
}

#[test]
fn the_capture_ends_before_a_hole_is_filled() {
    let reasons = with_a_hole().direction(0).verdicts.reasons.clone();
    assert_eq!(reasons, BTreeMap::from([(UnknownReason::CaptureEnds, 1)]));
}

#[test]
fn a_reset_ends_the_wait_for_a_hole() {
    for end in [0, 1] {
        let mut wire = with_a_hole();
        let (seq, ack) = if end == 0 { (4001, 1) } else { (1, 1001) };
        wire.pass(115.0, end, Passing { flags: Flags::RST | ACK, seq, ack, ..Passing::default() });
        let direction = wire.direction(0);
        assert_eq!(direction.verdicts.reasons, BTreeMap::from([(UnknownReason::ConnectionReset, 1)]), "{end}");
    }
}
